//! A real JVM measured on real cgroup v2, from the command line to the verdict: in user-mode Linux.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::runner::{Case, Outcome};

pub const CASES: [Case; 2] = [
    ("a_jvm_on_cgroup_v2", a_jvm_on_cgroup_v2),
    ("a_jvm_without_root", a_jvm_without_root),
];

/// Two sizes, one of them no larger than what the application keeps in memory. The guest is slow:
/// no figure means anything there, so the SLO asks for next to nothing.
const EXPERIMENT: &str = r#"
question = "Does a JVM live in it?"
slo = "errors<99%"
[app]
command = ["java", "-Xmx128m", "-jar", "/run/tmp/home/ping.jar", "--port=8080", "--live-mb=64"]
start-deadline = "120s"
[load]
url = "http://localhost:8080/"
rate = "4/s"
warm-up = "0s"
measure = "5s"
[run]
accept-noise = true
[[factor]]
name = "memory"
levels = ["192Mi", "64Mi"]
"#;

fn a_jvm_on_cgroup_v2() -> Outcome {
    measured("exec \"$@\"")
}

/// What `systemd-run --user --scope -p Delegate=yes` gives: a group that belongs to the user, with
/// loadline alone in it.
fn a_jvm_without_root() -> Outcome {
    measured(
        r#"cd /sys/fs/cgroup; echo "+cpu +memory +pids" > cgroup.subtree_control
        mkdir -p user/scope; echo "+cpu +memory +pids" > user/cgroup.subtree_control
        chown 1000:1000 /run/tmp/home user/scope user/scope/cgroup.{procs,threads,subtree_control}
        echo $BASHPID > user/scope/cgroup.procs; cd /run/tmp/home; export TMPDIR=$PWD
        exec setpriv --reuid=1000 --regid=1000 --clear-groups "$@""#,
    )
}

/// Runs the experiment in the guest through `through`, shell text that executes its arguments.
fn measured(through: &str) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = std::fs::canonicalize(root).expect("the checkout");
    let ping = root.join("build/workloads/ping.jar");
    if !ping.is_file() {
        return Some("build/workloads/ping.jar is not built: cargo xtask workloads".to_owned());
    }
    // Copied, because a plain user may not come to where the checkout lies. Shown by the account
    // that measured: root refuses records that another account can change. What is read from
    // standard output comes last; the guest has one console for both.
    let script = format!(
        r#"set -e; mkdir /run/tmp/home; cd /run/tmp/home
        cp "$1" loadline; cp "$2" ping.jar; printf %s "$3" > exp.toml; chmod -R a+rX .
        through() {{ {through}
        }}
        (through ./loadline run --state state exp.toml > text 2>&1) || echo "exit $?"
        cat text; echo; owner=$(stat -c %u state)
        setpriv --reuid=$owner --regid=$owner --clear-groups \
            ./loadline show --state state --json 2> talk || cat talk"#
    );
    let output = Command::new(root.join("tests/uml/run.sh"))
        .args(["/bin/bash", "-c", &script, "bash"])
        .args([Path::new(env!("CARGO_BIN_EXE_loadline")), &ping])
        .arg(EXPERIMENT)
        // More than all start deadlines together.
        .env("LOADLINE_UML_TIMEOUT", "900")
        .current_dir(&root)
        .output()
        .expect("the script is there");
    check(&output)
}

/// The large size passed, in the small one the application had too little memory, and a blind JVM
/// is named.
fn check(output: &Output) -> Outcome {
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return Some(said.trim().replace('\n', " "));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let json = text.find("\n{").map_or("", |at| &text[at..]);
    let result: Value =
        serde_json::from_str(json.trim()).unwrap_or_else(|e| panic!("{e}: {text}\n{said}"));
    let trials = result["trials"].as_array().expect("trials");
    let verdict = |memory: u64| {
        let mut of_size = trials
            .iter()
            .filter(|t| t["configuration"]["memory_bytes"] == memory);
        of_size.next_back().expect("a trial")["verdict"]["class"].clone()
    };
    assert_eq!(verdict(192 << 20), "pass", "{text}");
    // By the kernel's hand or the JVM's own.
    assert_eq!(verdict(64 << 20), "app_ko", "{text}");
    assert_eq!(result["machine"]["cgroup"], "v2", "{text}");
    // This kernel lists no cpuset: JDKs before 25 see no limit, and the trial says so.
    let jdk = result["machine"]["jdks"][0].as_str().expect("a JDK");
    let feature = jdk.split(|c: char| !c.is_ascii_digit()).next();
    let is_blind = feature.and_then(|number| number.parse().ok()) < Some(25);
    assert_eq!(text.contains("did not see its limits"), is_blind, "{text}");
    None
}
