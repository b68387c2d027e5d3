//! The user's load script makes the load of a trial, and the result shows the observed load.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::applications::ping;
use crate::lab::{Lab, recommended};
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 6] = [
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
    (
        "a_load_command_is_judged_by_its_exit_code",
        a_load_command_is_judged_by_its_exit_code,
    ),
    (
        "a_search_with_a_load_command_squeezes",
        a_search_with_a_load_command_squeezes,
    ),
    (
        "the_tools_in_path_make_the_load",
        the_tools_in_path_make_the_load,
    ),
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
pub fn script(lab: &Lab, name: &str, text: &str) -> PathBuf {
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
    let load = &lab.trial()["evidence"]["load"];
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
    let trial = &lab.trial();
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
    let measure = &lab.trial()["evidence"]["load"][1];
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
    let evidence = &lab.trial()["evidence"];
    let warnings = evidence["warnings"].to_string();
    assert!(
        warnings.contains("the load command's results: "),
        "{warnings}"
    );
    let command = &evidence["load"][1]["load_from"]["command"];
    assert!(command.get("reported").is_none(), "{command}");
    None
}

/// The script of [`CLOSED`] until its time is over; then this exit code.
fn exits_with(code: u8) -> String {
    format!(
        "{CLOSED}\nimport os\ntime.sleep(float(os.environ['LOADLINE_DURATION_SECONDS']))\nos._exit({code})\n"
    )
}

fn a_load_command_is_judged_by_its_exit_code() -> Outcome {
    let Some(python) = python() else {
        return Some("no /usr/bin/python3".into());
    };
    let lab = Lab::new();
    let slo = "load passes unless 99, p99<20s";
    for (code, class, said) in [
        (0, "pass", "the load passes"),
        (
            99,
            "slo_miss",
            "exit code of the load command was 99, the SLO allows 0",
        ),
        (3, "invalid", "ended (exit code 3)"),
    ] {
        let script = script(&lab, "users.py", &exits_with(code));
        let load = format!("{python} {}", script.display());
        let ended = run_with_load(&lab, &load, "1s", &["--slo", slo]);
        let trial = &lab.trial();
        assert_eq!(trial["verdict"]["class"], class, "{trial} {ended}");
        assert!(trial["reason"].to_string().contains(said), "{trial}");
    }
    // Without a URL the code is all that is known.
    let driven = script(&lab, "users.py", &exits_with(1));
    let drive = format!("{python} {}", driven.display());
    let ended = lab
        .call("run")
        .args(&["--wait", "--accept-noise", "--drive", &drive]);
    let ended = ended.args(&["--cpu", "1", "--warm-up", "1s", "--duration", "2s"]);
    let ended = ended.args(&["--slo", "load passes", "--ready", ":8080/"]);
    ended.zoo(&lab, &["serve"]).into_end();
    let trial = &lab.trial();
    assert_eq!(trial["verdict"]["class"], "slo_miss", "{trial}");
    assert_eq!(trial["evidence"]["load_exit"], 1, "{trial}");
    None
}

/// Its starts age and are squeezed under the command, as under loadline's own load, unless it ends before.
fn a_search_with_a_load_command_squeezes() -> Outcome {
    let Some(wrk) = installed_tool("wrk") else {
        return Some("no wrk in PATH".into());
    };
    let jar = match ping() {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let walls: &[&str] = &["storm", "pressure", "busy", "no_room"];
    for (seconds, ends) in [("{duration_s}", walls), ("3", &["not_possible"])] {
        let lab = Lab::new();
        let load = format!("{} -t 1 -c 2 -d {seconds}s {{url}}", wrk.display());
        let ended = lab
            .call("size")
            .args(&["--wait", "--accept-noise", "--json", "--load", &load])
            .args(&["--url", "http://localhost:8080/", "--cpu", "1"])
            .args(&["--slo", "p50<20s", "--warm-up", "1s", "--duration", "1s"])
            .args(&["--min-memory=160Mi", "--max-memory=192Mi", "--prove=1"])
            .args(&["--", "java", "-jar"])
            .arg(&jar)
            .into_end();
        let result = ended.expect_code(0).json();
        assert!(recommended(&result).is_some(), "{result:#}");
        let trials = result["trials"].as_array().expect("trials");
        let squeezed = trials.iter().find(|trial| trial["purpose"] == "squeeze");
        let squeezed = squeezed.expect("a squeezed start");
        let end = &squeezed["evidence"]["squeeze"]["end"]["kind"];
        assert!(
            end.as_str().is_some_and(|end| ends.contains(&end)),
            "{squeezed:#}"
        );
    }
    None
}

/// A load tool of scripts/load-tools.sh, or one in PATH.
pub fn installed_tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = project().join("build/load-tools/bin");
    let places = std::iter::once(own).chain(std::env::split_paths(&path));
    let mut files = places.map(|place| place.join(name));
    files.find(|file| file.is_file())
}

pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const TARGETS: &str = "GET http://localhost:8080/\n";

const LOCUSTFILE: &str = "
from locust import FastHttpUser, constant_throughput, task
class User(FastHttpUser):
    wait_time = constant_throughput(10)
    @task
    def first(self):
        self.client.get('/')
";

const PLAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0"><hashTree>
<TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="plan"/><hashTree>
<OpenModelThreadGroup guiclass="OpenModelThreadGroupGui" testclass="OpenModelThreadGroup" testname="open">
<stringProp name="OpenModelThreadGroup.schedule">rate(${__P(rate)}/sec) even_arrivals(${__P(duration)} sec)</stringProp>
</OpenModelThreadGroup><hashTree>
<HTTPSamplerProxy guiclass="HttpTestSampleGui" testclass="HTTPSamplerProxy" testname="GET /">
<stringProp name="HTTPSampler.domain">localhost</stringProp><stringProp name="HTTPSampler.port">8080</stringProp>
<stringProp name="HTTPSampler.path">/</stringProp><stringProp name="HTTPSampler.method">GET</stringProp>
</HTTPSamplerProxy><hashTree/></hashTree></hashTree></hashTree></jmeterTestPlan>
"#;

/// A load tool: its program, how to get it, its words as a guide gives them, and the format that its
/// results are recognised as.
type ToolRow = (&'static str, &'static str, &'static str, &'static str);

const TOOLS: [ToolRow; 7] = [
    (
        "vegeta",
        "scripts/load-tools.sh",
        "vegeta attack -rate={rate}/s -duration={duration_s}s -targets=targets -output={results}",
        "vegeta",
    ),
    (
        "hey",
        "scripts/load-tools.sh",
        "sh -c 'exec hey -c 5 -q 20 -z {duration_s}s -o csv {url} >{results}'",
        "hey",
    ),
    (
        "oha",
        "cargo install oha",
        "oha -c 5 -q {rate} -z {duration_s}s --no-tui --output-format csv -o {results} {url}",
        "oha CSV",
    ),
    (
        "wrk",
        "apt-get install wrk",
        "sh -c 'exec wrk -t 1 -c 2 -d {duration_s}s --latency {url} >{results}'",
        "wrk",
    ),
    (
        "locust",
        "scripts/load-tools.sh",
        "locust --headless -f locustfile.py -H http://localhost:8080 -u 10 -r 10 -t {duration_s}s --csv {results}",
        "Locust",
    ),
    (
        "jmeter",
        "scripts/load-tools.sh",
        "jmeter -n -t plan.jmx -l {results} -j /tmp/jmeter.log -Jrate={rate} -Jduration={duration_s}",
        "JMeter CSV",
    ),
    (
        "gatling",
        "scripts/load-tools.sh",
        "gatling -s Readers -nr -rf {results}",
        "Gatling",
    ),
];

const SIMULATION: &str = r#"
import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;
import io.gatling.javaapi.core.Simulation;
public class Readers extends Simulation {{
    var rate = Double.parseDouble(System.getenv("LOADLINE_RATE"));
    var seconds = Long.parseLong(System.getenv("LOADLINE_DURATION_SECONDS"));
    setUp(scenario("read").exec(http("first").get("/"))
        .injectOpen(constantUsersPerSec(rate).during(seconds)))
        .protocols(http.baseUrl("http://localhost:8080").shareConnections());
}}
"#;

/// Compiles the simulation of Gatling into the lab, with the libraries of this directory.
fn compile_simulation(lab: &Lab, libraries: &Path) {
    script(lab, "Readers.java", SIMULATION);
    let compiled = std::process::Command::new("javac")
        .arg("-cp")
        .arg(libraries.join("*"))
        .args(["-d", ".", "Readers.java"])
        .current_dir(lab.path())
        .status();
    assert!(compiled.is_ok_and(|status| status.success()));
}

fn the_tools_in_path_make_the_load() -> Outcome {
    let lab = Lab::new();
    script(&lab, "targets", TARGETS);
    script(&lab, "locustfile.py", LOCUSTFILE);
    script(&lab, "plan.jmx", PLAN);
    for (name, install, words, format) in TOOLS {
        let Some(program) = installed_tool(name) else {
            println!("SKIP load tool {name}: not in PATH ({install})");
            continue;
        };
        if name == "gatling" {
            compile_simulation(&lab, &project().join("build/load-tools/gatling"));
        }
        let words = words.replacen(name, &program.display().to_string(), 1);
        let more = ["--rate", "100/s", "--slo", "p99<20s"];
        let ended = run_with_load(&lab, &words, "4s", &more).expect_code(0);
        let measure = &lab.trial()["evidence"]["load"][1];
        let seen = measure["scheduled"].as_u64().unwrap_or(0);
        assert!(seen > 40, "{name}: {measure} {ended}");
        assert_eq!(
            measure["by_request"][0]["name"], "GET /",
            "{name}: {measure}"
        );
        let reported = &measure["load_from"]["command"]["reported"];
        assert_eq!(reported["format"], format, "{name}: {measure} {ended}");
        if reported["scope"] == "rows" {
            let told = reported["all"]["requests"].as_u64().unwrap_or(0);
            assert!(told.abs_diff(seen) <= seen / 10, "{name}: {measure}");
        }
    }
    None
}
