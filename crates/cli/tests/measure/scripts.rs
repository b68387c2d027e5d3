//! Applications with a start script: the JVM behind it is found, gets its options, writes its GC
//! log and hears SIGTERM; a script that prevents this is reported.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_sizing::Vm;

use crate::applications::ping;
use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 5] = [
    ("open_liberty_by_its_start_script", open_liberty),
    ("open_liberty_on_openj9", open_liberty_on_openj9),
    ("tomcat_by_its_start_script", tomcat),
    ("a_script_that_keeps_its_jvm_from_sigterm", without_exec),
    ("a_script_that_ends_or_sets_other_options", other_scripts),
];

/// A server of `make workloads` by its start script, or why it is not here.
fn server(script: &str) -> Result<PathBuf, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads");
    let path = path.join(script);
    path.canonicalize()
        .map_err(|_| format!("build/workloads/{script} is not there; `make workloads` builds it"))
}

/// One trial of a command, with what else belongs to its application, a path that it serves, and an
/// option with which its JVM starts soon.
fn run(lab: &Lab, command: &[&str], app: &str, (path, soon): (&str, &str)) -> Ended {
    let text = format!(
        "slo = 'errors<99%'\n[app]\ncommand = {command:?}\n{app}\n[load]\nurl = 'http://localhost:8080{path}'\nrate = '20/s'\nmeasure = '300ms'\nwarm-up = '0s'\n[[factor]]\nname = 'options'\nlevels = [{{ label = 'small', jvm = ['-Xmx160m', '{soon}'] }}]\n"
    );
    std::fs::write(lab.path().join("script.toml"), text).expect("a file");
    lab.call("run")
        .args(&["--wait", "--accept-noise", "script.toml"])
        .into_end()
}

fn evidence(lab: &Lab) -> serde_json::Value {
    lab.trial()["evidence"].clone()
}

/// The JVM behind a script is the application: its log, its options, its end.
fn assert_is_its_jvm(evidence: &serde_json::Value) {
    let gc = &evidence["gc"];
    assert_eq!(gc["heap_max_bytes"], 160 << 20, "{gc}");
    let exit = &evidence["exit"];
    assert_eq!(exit["code"], 143, "SIGTERM arrived: {exit}");
    assert_eq!(exit["unclean_stop"], false, "{exit}");
    assert_eq!(exit["leftover_processes"], 0, "{exit}");
}

const C1: &str = "-XX:TieredStopAtLevel=1";

const LIBERTY: &str = "env = { WLP_OUTPUT_DIR = '/tmp/liberty' }\nready = { http = '/health/ready' }\nstart-deadline = '2m'\nstop-grace = '20s'\n";

fn open_liberty() -> Outcome {
    let script = match server("liberty/bin/server") {
        Ok(script) => script,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let script = script.display().to_string();
    run(&lab, &[&script, "run", "loadline"], LIBERTY, ("/ping", C1)).expect_code(0);
    let evidence = evidence(&lab);
    assert_is_its_jvm(&evidence);
    let classes = evidence["start"]["classes"].as_u64();
    assert!(classes > Some(8000), "the JVM's counters: {classes:?}");
    None
}

/// The script sets a GC log for OpenJ9, which supports only one.
fn open_liberty_on_openj9() -> Outcome {
    let script = match server("liberty/bin/server") {
        Ok(script) => script,
        Err(reason) => return Some(reason),
    };
    let jdks = DetectedJdks::scan_places(&JdkPlaces::of_process()).jdks;
    let Some(jdk) = jdks.into_iter().find(|jdk| jdk.kind == Vm::OpenJ9) else {
        return Some("no OpenJ9 here".to_owned());
    };
    let (lab, home) = (Lab::new(), jdk.home.display().to_string());
    let script = script.display().to_string();
    let app = LIBERTY.replace("env = {", &format!("env = {{ JAVA_HOME = '{home}',"));
    run(
        &lab,
        &[&script, "run", "loadline"],
        &app,
        ("/ping", "-Xshareclasses:none"),
    )
    .expect_code(0);
    let evidence = evidence(&lab);
    assert_is_its_jvm(&evidence);
    assert_eq!(evidence["gc"]["collector"], "gencon");
    None
}

fn tomcat() -> Outcome {
    let script = match server("tomcat-installed/bin/catalina.sh") {
        Ok(script) => script,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let script = script.display().to_string();
    let app = "env = { CATALINA_TMPDIR = '/tmp', CATALINA_OPTS = '-Xss512k' }\nready = { http = '/' }\nstart-deadline = '1m'\nstop-grace = '20s'\n";
    run(&lab, &[&script, "run"], app, ("/", C1)).expect_code(0);
    assert_is_its_jvm(&evidence(&lab));
    None
}

/// Writes a start script into the lab.
fn script(lab: &Lab, text: &str) -> String {
    let path = lab.path().join("start.sh");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its own file");
    path.display().to_string()
}

const READY: &str = "ready = { http = '/health' }\nstart-deadline = '20s'\nstop-grace = '5s'\n";

/// It runs one JVM for its version first, as many scripts do, and waits for the serving JVM.
fn without_exec() -> Outcome {
    let jar = match ping() {
        Ok(jar) => jar.display().to_string(),
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let text = format!("java -version\njava -XX:+UseSerialGC -jar {jar}\necho ended");
    run(&lab, &[&script(&lab, &text)], READY, ("/", C1)).expect_code(0);
    let evidence = evidence(&lab);
    assert_eq!(
        evidence["gc"]["collector"], "Serial",
        "the second JVM's log"
    );
    assert_eq!(evidence["gc"]["heap_max_bytes"], 160 << 20);
    let warnings = evidence["warnings"].to_string();
    assert!(warnings.contains("must `exec` its JVM"), "{warnings}");
    None
}

fn other_scripts() -> Outcome {
    let jar = match ping() {
        Ok(jar) => jar.display().to_string(),
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let daemon = format!("java -jar {jar} &\nsleep 0.2");
    run(&lab, &[&script(&lab, &daemon)], READY, ("/", C1))
        .expect_code(1)
        .says(&["APP_KO crash", "exit code 0", "stay in the foreground"]);
    let lab = Lab::new();
    let own = format!("exec java -Xmx64m -jar {jar}");
    run(&lab, &[&script(&lab, &own)], READY, ("/", C1))
        .expect_code(4)
        .says(&[
            "-Xmx64m, not with -Xmx160m",
            "the start script sets it itself",
        ]);
    let own = script(&lab, &own);
    let flags = "--wait --accept-noise --cpu 1 --slo errors<99% --rate 20/s --warm-up 0s --duration 300ms --max-memory 512Mi --ready /health --url http://localhost:8080/ --";
    let flags: Vec<&str> = flags.split(' ').chain([own.as_str()]).collect();
    let sized = lab.call("size").args(&flags).into_end();
    sized.expect_code(4).says(&[
        "INVALID other_options",
        "hint: set the script's own variable",
        "--heap keep",
    ]);
    None
}
