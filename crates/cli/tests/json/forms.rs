//! Every form that `--json` has, on real output, for commands without trials. The commands that
//! measure are checked in `tests/measure/forms.rs`, `explain` and `gc` in the sibling modules.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::explained::store;
use crate::server::server;
use crate::{assert_follows, assert_form, assert_measured, loadline, reference, schema};

/// Each command with `--json`, and the schemas of what it prints.
const COMMANDS: [(&str, &[&str]); 23] = [
    ("doctor", &["doctor"]),
    ("verify", &["verify"]),
    ("size", &["result"]),
    ("run", &["result"]),
    ("drill", &["result"]),
    ("judge", &["result", "judge"]),
    ("plan", &["plan"]),
    ("fleet", &["fleet"]),
    ("load", &["load", "max-rate"]),
    ("profile", &["profile"]),
    ("merge", &["load"]),
    ("explain", &["explain"]),
    ("lint", &["judge"]),
    ("cache", &["result"]),
    ("gc", &["gc"]),
    ("predict", &["predict"]),
    ("footprint", &["footprint"]),
    ("soak", &["result"]),
    ("resume", &["result"]),
    ("list", &["list"]),
    ("show", &["result", "trial"]),
    ("compare", &["compare"]),
    ("export", &["result"]),
];

fn help(arguments: &[&str]) -> String {
    let output = loadline(arguments);
    String::from_utf8(output.stdout).expect("help is text")
}

#[test]
fn every_command_with_json_has_a_schema_in_the_reference() {
    let all = help(&["--help"]);
    let commands = all.lines().skip(3).take_while(|l| *l != "Options:");
    let names: Vec<&str> = commands
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let text = help(&[name, "--help"]);
        let has_flag = text.lines().any(|l| l.trim_start().starts_with("--json"));
        let prints = has_flag || name == "export";
        let known = COMMANDS.iter().find(|(command, _)| *command == name);
        assert_eq!(prints, known.is_some(), "{name}");
        for form in known.into_iter().flat_map(|(_, forms)| *forms) {
            let written = reference(&format!("{form}.schema.json"));
            assert!(
                ["properties", "anyOf", "oneOf"]
                    .iter()
                    .any(|key| !written[*key].is_null()),
                "{form}"
            );
        }
    }
}

fn recorded() -> String {
    let path = "../../records/2026-11-20-spring-web-size/result.json.gz";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    path.display().to_string()
}

#[test]
fn results_and_trials() {
    let directory = tempfile::tempdir().expect("a directory");
    let trial = store(directory.path());
    let state = directory.path().display().to_string();
    let on_store = |arguments: &[&str]| loadline(&[arguments, &["--state", &state]].concat());
    assert_follows(&on_store(&["show", "last", "--json"]), "result.schema.json");
    assert_follows(
        &on_store(&["show", &recorded(), "--json"]),
        "result.schema.json",
    );
    assert_follows(
        &on_store(&["export", "--format", "json"]),
        "result.schema.json",
    );
    assert_follows(&on_store(&["show", &trial]), "trial.schema.json");
    assert_follows(&on_store(&["list", "--json"]), "list.schema.json");
    let both = [recorded(), recorded()];
    let same = on_store(&["compare", &both[0], &both[1], "--json"]);
    assert_follows(&same, "compare.schema.json");
}

#[test]
fn manifests_that_are_judged() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("a.yaml");
    let text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: app, image: java}, {name: proxy, image: envoy}]}";
    std::fs::write(&file, text).expect("writable");
    let output = loadline(&["judge", "--json", "--manifest", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(1), "it has no limit");
    assert_form(&output, "judge.schema.json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["sound"], false);
    assert_eq!(
        document["containers"][0]["findings"][0]["severity"],
        "error"
    );
    assert!(document["containers"][1]["skipped"].is_string());
}

#[test]
fn plans() {
    let words = [
        "plan",
        "--json",
        "--url",
        "http://localhost:8080/",
        "--rate",
        "10/s",
        "--cpu",
        "1",
        "--slo",
        "p99<1s",
    ];
    // A plan also says whether it can run: what it names must be there.
    let application = ["--", "sh", "app.sh"];
    let plan = |more: &[&str]| loadline(&[&words[..], more, &application].concat());
    let matrix = plan(&["--cpu", "500m"]);
    assert_follows(&matrix, "plan.schema.json");
    let document: serde_json::Value = serde_json::from_slice(&matrix.stdout).expect("JSON");
    assert_eq!(document["trials"].as_array().map(Vec::len), Some(2));
    let search = plan(&[]);
    assert_follows(&search, "plan.schema.json");
    let document: serde_json::Value = serde_json::from_slice(&search.stdout).expect("JSON");
    assert_eq!(document["starts"].as_u64(), Some(5), "{document}");
    let nothing = loadline(&[&words[..], &["--", "java", "-jar", "app.jar"]].concat());
    assert_eq!(nothing.status.code(), Some(2), "{nothing:?}");
    let priced = ["--prices", "fargate"];
    let search = loadline(&[&words[..6], &words[8..], &priced, &application].concat());
    assert_follows(&search, "plan.schema.json");
    let document: serde_json::Value = serde_json::from_slice(&search.stdout).expect("JSON");
    assert!(document["cells"].is_array(), "{document}");
}

#[test]
fn what_is_predicted() {
    for jdk in ["8u412", "17", "25"] {
        let words = [
            "predict", "--cpu", "1.5", "--memory", "512Mi", "--jdk", jdk, "--json",
        ];
        assert_follows(&loadline(&words), "predict.schema.json");
    }
}

/// It may say that something is missing on this machine; the form is the same.
#[test]
fn what_the_machine_can_measure() {
    let output = loadline(&["doctor", "--json"]);
    let faults = schema::faults_of(&reference("doctor.schema.json"), &output.stdout);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn loads() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = server();
    let mut parts = Vec::new();
    for part in ["0/2", "1/2"] {
        let out = directory.path().join(part.replace('/', "-"));
        let out = out.display().to_string();
        let words = [
            "load", &url, "--rate", "100/s", "-d", "2s", "-c", "4", "--json",
        ];
        let output = loadline(&[&words[..], &["--part", part, "--out", &out]].concat());
        assert_measured(&output, "load.schema.json");
        parts.push(out);
    }
    assert_measured(
        &loadline(&["merge", &parts[0], &parts[1], "--json"]),
        "load.schema.json",
    );
    let closed = ["load", &url, "--closed", "-n", "100", "-c", "2", "--json"];
    assert_measured(&loadline(&closed), "load.schema.json");
}

#[test]
fn profiles() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).display().to_string();
    let log: String = (0..20)
        .map(|n| {
            format!(
                "::1 - - [20/Nov/2026:10:00:{:02} +0000] \"GET /owners/{n} HTTP/1.1\" {} {} 1500\n",
                n * 3,
                if n == 7 { 503 } else { 200 },
                n * 100
            )
        })
        .collect();
    std::fs::write(at("access.log"), log).expect("it is written");
    let format = "%h %l %u %t \"%r\" %s %b %D";
    let (log, toml) = (at("access.log"), at("day.toml"));
    let words = ["profile", "--server", "httpd", "--format", format, &log];
    let output = loadline(&[&words[..], &["--json"]].concat());
    assert_follows(&output, "profile.schema.json");
    let form: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(form["statuses"], serde_json::json!({"200": 19, "503": 1}));
    assert_eq!(form["response_bytes"]["max"], 1900.0);
    assert_eq!(form["duration_ms"]["count"], 20);
    assert_eq!(form["think_time_ms"]["count"], 19);
    // 3 s from begin to begin, of which the answer took 1.5 ms.
    let think = form["think_time_ms"]["p50"].as_f64().expect("a number");
    assert!((think / 2998.5 - 1.0).abs() < 0.001, "{think}");

    // A field missing in the log is null; written output can be replayed.
    let bare = ["profile", "--format", "%t \"%r\"", "--json", &toml];
    std::fs::write(&toml, "[20/Nov/2026:10:00:00 +0000] \"GET / HTTP/1.1\"\n").expect("the same");
    let output = loadline(&bare);
    assert_follows(&output, "profile.schema.json");
    let form: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(form["think_time_ms"].is_null() && form["duration_ms"].is_null());
    std::fs::write(&toml, loadline(&words).stdout).expect("the same");
    let replay = ["load", &server(), "--profile", &toml, "-d", "2s", "--json"];
    assert_measured(&loadline(&replay), "load.schema.json");
}

/// The search may come to no end on a busy machine; what it prints has the form all the same.
#[test]
fn the_highest_rate() {
    let url = server();
    let words = [
        "load",
        &url,
        "--max-rate",
        "--slo",
        "p99<900ms",
        "-d",
        "2s",
        "-c",
        "4",
    ];
    let output = loadline(&[&words[..], &["--curve", "2", "--json"]].concat());
    let faults = schema::faults_of(&reference("max-rate.schema.json"), &output.stdout);
    assert!(faults.is_empty(), "{faults:#?}");
}

/// A JVM that waits, and is killed at the end of the test.
struct Jvm(Child);

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[allow(clippy::print_stdout)] // SKIP lines stand on stdout.
fn where_memory_is() {
    let source =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../jvm/tests/data/gclog/Allocate.java");
    let started = Command::new("java")
        .args(["-Xmx48m", "-XX:NativeMemoryTracking=detail"])
        .arg(source)
        .args(["120000", "8", "20"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(jvm) = started.map(Jvm) else {
        println!("SKIP where_memory_is: no java on this machine");
        return;
    };
    let pid = jvm.0.id().to_string();
    // A JVM takes a while until it can be asked.
    let begin = Instant::now();
    let mut output = loadline(&["footprint", &pid, "--json"]);
    while !output.status.success() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(200));
        output = loadline(&["footprint", &pid, "--json"]);
    }
    assert_follows(&output, "footprint.schema.json");
}
