//! gRPC calls to a real grpc-java service: messages are encoded as one running instance describes
//! itself, and a mix of unary and streaming calls is counted by the status of each.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::applications::workload;
use crate::lab::Lab;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 1] = [(
    "calls_are_encoded_as_a_running_instance_describes_itself",
    calls_are_encoded_as_a_running_instance_describes_itself,
)];

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
