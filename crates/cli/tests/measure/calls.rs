//! gRPC calls to a real grpc-java service: messages are encoded as one running instance describes
//! itself, and a mix of unary and streaming calls is counted by the status of each, from loadline's own
//! load and from a load command.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::applications::workload;
use crate::lab::Lab;
use crate::load_commands::{installed_tool, project, script};
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    (
        "calls_are_encoded_as_a_running_instance_describes_itself",
        calls_are_encoded_as_a_running_instance_describes_itself,
    ),
    (
        "calls_of_a_load_command_are_timed_by_name",
        calls_of_a_load_command_are_timed_by_name,
    ),
];

struct Instance(Child);

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn calls_are_encoded_as_a_running_instance_describes_itself() -> Outcome {
    let built = match workload("grpc") {
        Ok(built) => built,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let jar = lab.path().join("grpc.jar");
    fs::copy(built, &jar).expect("a copy");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    drop(listener);
    // An older server: the first question, in v1, is refused.
    let instance = Command::new("java")
        .arg("-jar")
        .arg(&jar)
        .arg(format!("--port={port}"))
        .arg("--reflection=v1alpha")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let instance = Instance(instance.expect("java"));
    let begin = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "it never listens"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let jar = jar.display().to_string();
    let file = format!(
        r#"
slo = "errors<1%, Watch: p99<20s"
[app]
command = ["java", "-jar", {jar:?}]
ready = {{ grpc = 9090 }}
[load]
url = "http://localhost:9090/"
proto = "http://localhost:{port}"
rate = "50/s"
warm-up = "1s"
duration = "2s"
[[load.request]]
weight = 1
path = "/loadline.quotes.Quotes/Price"
body = '{{"customer": "7", "items": ["sku-{{rand:1:9999}}"]}}'
[[load.request]]
name = "Watch"
weight = 1
path = "/loadline.quotes.Quotes/Watch"
body = '{{"basket": {{"items": ["sku-1"]}}, "days": 5}}'
[run]
accept-noise = true
"#
    );
    fs::write(lab.path().join("calls.toml"), &file).expect("a file");
    let ended = lab.call("run").args(&["--wait", "calls.toml"]).into_end();
    ended.expect_code(0).says(&["PASS"]);
    let judged = &lab.trial()["evidence"]["load"][1];
    assert_eq!(judged["ok"], judged["scheduled"], "{judged}");

    let wrong = file.replace(r#""days": 5"#, r#""dais": 5"#);
    fs::write(lab.path().join("wrong.toml"), wrong).expect("a file");
    let ended = lab.call("run").args(&["--wait", "wrong.toml"]).into_end();
    ended
        .expect_code(2)
        .says(&["loadline.quotes.WatchRequest", "dais"]);

    // The result has the messages, so it can be resumed where no instance is.
    drop(instance);
    let result = lab.result("last");
    let kept = result["experiment"].as_str().expect("a text");
    assert!(
        kept.contains("{base64:") && !kept.contains("proto"),
        "{kept}"
    );
    None
}

/// A call as ghz takes it; the item decides how it ends.
const GHZ: &str = "GHZ --insecure --proto quotes.proto --call loadline.quotes.Quotes.Price \
    -d '{\"customer\": 7, \"items\": [\"ITEM\"]}' -r 50 -c 10 --connections 2 \
    -z {duration_s}s --duration-stop=wait -O json -o {results} localhost:9090";

/// The same with streams of answers, from loadline itself.
const LOADLINE: &str = "LOADLINE load --proto quotes.proto --streams 4 -c 2 --rate 50/s \
    --body '{\"basket\": {\"items\": [\"ITEM\"]}, \"days\": 5}' \
    -d {duration_s}s http://localhost:9090/loadline.quotes.Quotes/Watch";

fn calls_of_a_load_command_are_timed_by_name() -> Outcome {
    let jar = match workload("grpc") {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let schema = project().join("workloads/grpc/src/main/proto/quotes.proto");
    let schema = fs::read_to_string(schema).expect("the schema");
    script(&lab, "quotes.proto", &schema);
    let own = LOADLINE.replace("LOADLINE", &lab.program().display().to_string());
    let mut commands = vec![(own, "POST /loadline.quotes.Quotes/Watch")];
    match installed_tool("ghz") {
        Some(ghz) => {
            let words = GHZ.replace("GHZ", &ghz.display().to_string());
            commands.push((words, "POST /loadline.quotes.Quotes/Price"));
        }
        None => println!("SKIP load tool ghz: not in PATH (scripts/load-tools.sh)"),
    }
    for (words, name) in commands {
        for (item, class) in [("sku-1", "pass"), ("none", "slo_miss")] {
            let load = words.replace("ITEM", item);
            let slo = format!("errors<1%, {name}: p99<20s");
            let ended = lab.call("run").args(&["--wait", "--accept-noise"]);
            let ended = ended.args(&["--load", &load, "--url", "http://localhost:9090/"]);
            let ended = ended.args(&["--ready", "grpc:9090", "--cpu", "1", "--slo", &slo]);
            let ended = ended.args(&["--warm-up", "2s", "--duration", "3s"]);
            let ended = ended.args(&["--", "java", "-jar"]).arg(&jar).into_end();
            let trial = lab.trial();
            assert_eq!(trial["verdict"]["class"], class, "{load}: {trial} {ended}");
            let measure = &trial["evidence"]["load"][1];
            let seen = measure["scheduled"].as_u64().unwrap_or(0);
            assert!(seen > 0 && seen <= 160, "{load}: {measure}");
            assert_eq!(measure["by_request"][0]["name"], name, "{measure}");
            let failed = measure["errors"]["grpc_not_found"].as_u64().unwrap_or(0);
            assert_eq!(failed, if class == "pass" { 0 } else { seen }, "{measure}");
        }
    }
    None
}
