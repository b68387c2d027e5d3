//! The user's load script makes the load of a trial, and the result shows the observed load.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 4] = [
    (
        "a_script_of_the_user_makes_the_load_unchanged",
        a_script_of_the_user_makes_the_load_unchanged,
    ),
    (
        "a_load_command_that_ends_early_is_no_miss",
        a_load_command_that_ends_early_is_no_miss,
    ),
    (
        "results_of_a_load_command_are_compared_with_what_was_seen",
        results_of_a_load_command_are_compared_with_what_was_seen,
    ),
    ("vegeta_makes_the_load", vegeta_makes_the_load),
];

/// Four users who each wait for their answer; the script does not know loadline.
const CLOSED: &str = r#"
import http.client, threading, time
def user(number):
    server = http.client.HTTPConnection("localhost", 8080)
    while True:
        server.request("GET", f"/owners/{number}")
        server.getresponse().read()
        time.sleep(0.02)
for number in range(4):
    threading.Thread(target=user, args=(number,)).start()
"#;

/// A file that the application's user may read.
fn script(lab: &Lab, name: &str, text: &str) -> PathBuf {
    let path = lab.path().join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(lab.path(), Permissions::from_mode(0o755)).expect("the lab is its own");
    path
}

/// One trial of a service under this load command.
fn run_with_load(lab: &Lab, load: &str, duration: &str, more: &[&str]) -> Ended {
    lab.call("run")
        .args(&["--wait", "--accept-noise", "--load", load, "--cpu", "1"])
        .args(&["--url", "http://localhost:8080/", "--warm-up", "1s"])
        .args(&["--duration", duration])
        .args(more)
        .zoo(lab, &["serve"])
        .into_end()
}

pub fn python() -> Option<&'static str> {
    let python = "/usr/bin/python3";
    Path::new(python).is_file().then_some(python)
}

fn a_script_of_the_user_makes_the_load_unchanged() -> Outcome {
    let Some(python) = python() else {
        return Some("no /usr/bin/python3".into());
    };
    let lab = Lab::new();
    let script = script(&lab, "users.py", CLOSED);
    let load = format!("{python} {}", script.display());
    let slo = "GET /owners/{id}: p99<20s, errors<50%";
    let ended = run_with_load(&lab, &load, "2s", &["--full", "--slo", slo]);
    ended.expect_code(0).prints(&[
        "GET /owners/{id}: p99<20s",
        "timed by loadline before the service; when it meant to send is not measured",
    ]);
    let load = &lab.result("last")["trials"][0]["evidence"]["load"];
    let [warm_up, measure] = load.as_array().expect("two phases").as_slice() else {
        panic!("{load}");
    };
    assert!(warm_up["ok"].as_u64() > Some(10), "{warm_up}");
    assert!(measure["ok"].as_u64() > Some(50), "{measure}");
    assert_eq!(measure["duration_ns"], 2_000_000_000_u64);
    for unknown in ["service_time", "send_lag_p99_ns"] {
        assert!(measure.get(unknown).is_none(), "{unknown}: {measure}");
    }
    assert_eq!(measure["load_from"]["kind"], "command", "{measure}");
    assert_eq!(measure["by_request"][0]["name"], "GET /owners/{id}");
    None
}

fn a_load_command_that_ends_early_is_no_miss() -> Outcome {
    let lab = Lab::new();
    let load = "sh -c 'echo no target >&2; exit 7'";
    let ended = run_with_load(&lab, load, "2s", &["--slo", "p99<20s"]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    for part in [
        "the load command ended (exit code 7)",
        "it said: no target",
        "foreground",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let trial = &lab.result("last")["trials"][0];
    let verdict = trial["verdict"].to_string();
    assert!(verdict.contains("load_command"), "{verdict}");
    None
}

/// Says of each request that it was two, in the only file of a run below its results.
const REPORTING: &str = r#"
import http.client, json, os, threading, time
run = os.environ["LOADLINE_RESULTS"] + "/run"
os.makedirs(run)
rows = open(run + "/simulation.log", "w", buffering=1)
def user(number):
    server = http.client.HTTPConnection("localhost", 8080)
    while True:
        begin = time.time()
        server.request("GET", f"/owners/{number}")
        server.getresponse().read()
        row = {"time": begin, "latency": time.time() - begin, "ok": True}
        rows.write(2 * (json.dumps(row) + "\n"))
        time.sleep(0.02)
for number in range(4):
    threading.Thread(target=user, args=(number,)).start()
"#;

fn results_of_a_load_command_are_compared_with_what_was_seen() -> Outcome {
    let Some(python) = python() else {
        return Some("no /usr/bin/python3".into());
    };
    let lab = Lab::new();
    let reporting = script(&lab, "reporting.py", REPORTING);
    let load = format!("{python} {}", reporting.display());
    let ended = run_with_load(&lab, &load, "2s", &["--slo", "p99<20s"]);
    ended.expect_code(0).prints(&[
        "The load command's own results (JSON lines) differ from what loadline saw:",
        "were seen",
    ]);
    let measure = &lab.result("last")["trials"][0]["evidence"]["load"][1];
    let seen = measure["scheduled"].as_u64().unwrap_or(0);
    let reported = &measure["load_from"]["command"]["reported"]["all"];
    let told = reported["requests"].as_u64().unwrap_or(0);
    assert!(told > seen * 19 / 10 && told < seen * 21 / 10, "{measure}");

    // What a command puts there instead is not followed.
    let users = script(&lab, "users.py", CLOSED);
    let load = format!(
        "sh -c 'ln -s /etc/hostname $LOADLINE_RESULTS; exec {python} {}'",
        users.display()
    );
    run_with_load(&lab, &load, "2s", &["--slo", "p99<20s"]).expect_code(0);
    let evidence = &lab.result("last")["trials"][0]["evidence"];
    let warnings = evidence["warnings"].to_string();
    assert!(
        warnings.contains("the load command's results: "),
        "{warnings}"
    );
    let command = &evidence["load"][1]["load_from"]["command"];
    assert!(command.get("reported").is_none(), "{command}");
    None
}

fn vegeta_makes_the_load() -> Outcome {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|place| place.join("vegeta"));
    let Some(vegeta) = places.find(|place| place.is_file()) else {
        return Some(
            "no vegeta in PATH (go install github.com/tsenart/vegeta/v12@v12.13.0)".into(),
        );
    };
    let lab = Lab::new();
    let targets = script(&lab, "targets", "GET http://localhost:8080/\n");
    let load = format!(
        "{} attack -rate={{rate}}/s -duration={{duration_s}}s -targets={} -output={{results}}",
        vegeta.display(),
        targets.display()
    );
    let more = ["--rate", "100/s", "--slo", "p99<20s"];
    let ended = run_with_load(&lab, &load, "3s", &more);
    ended
        .expect_code(0)
        .prints(&["The load command's own results (vegeta) "]);
    let measure = &lab.result("last")["trials"][0]["evidence"]["load"][1];
    // An open tool sends at its rate, whatever else this machine does.
    let scheduled = measure["scheduled"].as_u64().unwrap_or(0);
    assert!((270..=330).contains(&scheduled), "{measure}");
    let reported = &measure["load_from"]["command"]["reported"]["all"];
    let told = reported["requests"].as_u64().unwrap_or(0);
    assert!(told.abs_diff(scheduled) < 30, "{measure}");
    None
}
