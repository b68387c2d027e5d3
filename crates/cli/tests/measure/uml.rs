//! A real JVM measured on real cgroup v2, from the command line to the verdict: in user-mode Linux,
//! with and without root, and as the action does it, by sudo and in a scope of systemd.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::runner::{Case, Outcome};

pub const CASES: [Case; 3] = [
    ("uml::a_jvm_on_cgroup_v2", a_jvm_on_cgroup_v2),
    ("uml::a_jvm_without_root", a_jvm_without_root),
    ("uml::the_action_under_systemd", the_action_under_systemd),
];

/// Two sizes, one no larger than the application's memory. The guest is slow: no figure means
/// anything there, so the SLO is very weak.
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
    // Copied, because a plain user may have no access to the checkout. Shown by the account that
    // measured: root refuses records that another account can change. Standard input is read last;
    // the guest has one console for both.
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
    // This kernel lists no cpuset: JDKs before 25 see no limit, and the trial reports it.
    let jdk = result["machine"]["jdks"][0].as_str().expect("a JDK");
    let feature = jdk.split(|c: char| !c.is_ascii_digit()).next();
    let is_blind = feature.and_then(|number| number.parse().ok()) < Some(25);
    assert_eq!(text.contains("did not see its limits"), is_blind, "{text}");
    None
}

/// The step of `action.yml` that verifies, as it stands: by sudo, in a scope of the systemd that is init.
fn the_action_under_systemd() -> Outcome {
    for needed in [
        "/lib/systemd/systemd",
        "/usr/bin/systemd-run",
        "/usr/bin/sudo",
    ] {
        if !Path::new(needed).exists() {
            return Some(format!(
                "{needed} is not installed: apt-get install systemd sudo"
            ));
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = std::fs::canonicalize(root).expect("the checkout");
    let ping = root.join("build/workloads/ping.jar");
    if !ping.is_file() {
        return Some("build/workloads/ping.jar is not built: cargo xtask workloads".to_owned());
    }
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("it is kept");
    let (action, guide) = (read("action.yml"), read("docs/guides/ci-gate.md"));
    // Commands for other runners use the same scope.
    let scope = "systemd-run --scope --quiet --collect -p Delegate=yes -p TasksMax=infinity env";
    assert_eq!(guide.matches(scope).count(), 2, "{guide}");
    let script = r#"set -e; mkdir -p /run/tmp/runner/loadline/bin /run/tmp/service; cd /run/tmp/service
        ln -s "$1" /run/tmp/runner/loadline/bin/loadline
        cp "$2" ping.jar; printf %s "$3" > loadline.toml; printf %s "$4" > /run/tmp/step
        echo 'www-data ALL=(ALL) NOPASSWD: ALL' > /run/sudoers; chmod 440 /run/sudoers
        mount --bind /run/sudoers /etc/sudoers; mount -t tmpfs lib /var/lib
        chown -R www-data /run/tmp/runner /run/tmp/service; chmod -R a+rX /run/tmp
        export RUNNER_TEMP=/run/tmp/runner EXPERIMENT=loadline.toml BASELINE= ARGUMENTS=--accept-noise
        export GITHUB_STEP_SUMMARY=/run/tmp/runner/summary GITHUB_OUTPUT=/run/tmp/runner/output
        code=0; setpriv --reuid=www-data --regid=www-data --clear-groups bash /run/tmp/step || code=$?
        echo "exit $code"; cat $GITHUB_OUTPUT; cat /run/tmp/runner/loadline-out/comment.md
        ls -l /run/tmp/runner/loadline-out
        echo "scopes: $(find /sys/fs/cgroup -path '*loadline*' -name cgroup.procs | xargs cat | wc -l)""#;
    let output = Command::new(root.join("tests/uml/run.sh"))
        .args(["/bin/bash", "-c", script, "bash"])
        .args([Path::new(env!("CARGO_BIN_EXE_loadline")), &ping])
        .args([SHIPPED, &step(&action, "Verify")])
        .env("LOADLINE_UML_SYSTEMD", "yes")
        .env("LOADLINE_UML_TIMEOUT", "900")
        .current_dir(&root)
        .output()
        .expect("the script is there");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        return Some(said.trim().replace('\n', " "));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    for part in [
        "exit 0",
        "answer=holds",
        "report.html",
        "loadline.xml",
        "scopes: 0",
    ] {
        assert!(text.contains(part), "{part}: {text}\n{said}");
    }
    None
}

/// What a service ships; the guest is slow, so that its SLO asks for next to nothing.
const SHIPPED: &str = r#"
slo = "errors<99%"
[app]
command = ["java", "-Xmx128m", "-jar", "ping.jar", "--port=8080", "--live-mb=16"]
start-deadline = "120s"
[load]
url = "http://localhost:8080/"
rate = "4/s"
warm-up = "0s"
measure = "5s"
[limits]
memory = "192Mi"
"#;

/// The shell text of a step of the action.
fn step(action: &str, name: &str) -> String {
    let named = format!("- name: {name}\n");
    let (_, rest) = action.split_once(&named).expect("the step");
    let (_, text) = rest.split_once("run: |\n").expect("its script");
    let lines = text
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("        "));
    lines
        .map(|line| line.trim_start_matches("        ").to_owned() + "\n")
        .collect()
}
