//! The same with a real JVM: what it sees of its limits, its log, its threads when it hangs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_engine::backend::{InstanceSpec, Readiness};
use loadline_sizing::{Bytes, Cpus};

use crate::lab::{Lab, PORT};
use crate::runner::Case;

pub const CASES: [Case; 3] = [
    ("jvm_sees_its_limits", jvm_sees_its_limits),
    ("jvm_log_is_collected", jvm_log_is_collected),
    ("jvm_that_hangs_is_dumped", jvm_that_hangs_is_dumped),
];

/// Says what it sees; with an argument it listens and never answers.
const PROGRAM: &str = r#"
public class Probe {
    public static void main(String[] arguments) throws Exception {
        Runtime runtime = Runtime.getRuntime();
        System.out.println("cpus " + runtime.availableProcessors());
        System.out.println("heap " + (runtime.maxMemory() >> 20));
        System.gc();
        System.out.println("ready");
        if (arguments.length > 0) {
            var server = new java.net.ServerSocket(Integer.parseInt(arguments[0]));
            while (true) {
                server.accept();
                Thread.sleep(3600_000);
            }
        }
        Thread.sleep(3600_000);
    }
}
"#;

/// The `java` of this machine's path, if there is one that can compile.
pub fn java() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path).map(|directory| directory.join("java"));
    let java = java.filter_map(|java| std::fs::canonicalize(java).ok());
    java.into_iter()
        .find(|java| java.parent().is_some_and(|bin| bin.join("javac").is_file()))
}

/// A spec for the program, compiled into the lab's directory. `None`: this machine has no JDK.
fn spec(lab: &mut Lab, arguments: &[&str]) -> InstanceSpec {
    let java = java().expect("the runner has looked");
    let classes = lab.scratch.path().join("classes");
    if !classes.join("Probe.class").is_file() {
        compile(&java, &classes);
    }
    let mut spec = lab.spec(&[]);
    spec.command = [
        &*java.display().to_string(),
        "-Xlog:gc*,safepoint:file=/tmp/gc.log:tn,u,l,tg",
        "-XX:-UsePerfData",
        "-cp",
        &classes.display().to_string(),
        "Probe",
    ]
    .iter()
    .chain(arguments)
    .map(|argument| (*argument).to_owned())
    .collect();
    spec.gc_log = Some("/tmp/gc.log".into());
    spec.configuration.memory = Some(Bytes::from_mib(256));
    spec.configuration.cpu = Some(Cpus::from_millis(900));
    spec.readiness = Readiness::LogLine {
        contains: "ready".to_owned(),
    };
    spec
}

fn compile(java: &Path, classes: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(classes).expect("a directory");
    let source = classes.join("Probe.java");
    std::fs::write(&source, PROGRAM).expect("a file");
    let javac = java.with_file_name("javac");
    let done = std::process::Command::new(javac).arg(&source).status();
    assert!(done.expect("it runs").success());
    for path in [classes.to_owned(), classes.join("Probe.class")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("own");
    }
}

fn jvm_sees_its_limits() {
    let mut lab = Lab::new();
    let spec = spec(&mut lab, &[]);
    let trial = lab.run(&spec, None);
    let lines = &trial.evidence.last_output;
    assert!(
        trial.start.expect("it starts").ready.is_some(),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line == "cpus 1"), "{lines:#?}");
    let heap = lines.iter().find_map(|line| line.strip_prefix("heap "));
    let heap: u64 = heap.and_then(|h| h.parse().ok()).expect("it says so");
    // Below 250 MiB of limit half, above a quarter: anything but the machine's.
    assert!(heap < 256, "{heap} MiB");
    assert_eq!(trial.evidence.exit.code, Some(143));
    lab.assert_clean();
}

fn jvm_log_is_collected() {
    let mut lab = Lab::new();
    let spec = spec(&mut lab, &[]);
    let evidence = lab.run(&spec, None).evidence;
    let gc = evidence.gc.expect("the log is read");
    assert_eq!((gc.collector.as_str(), gc.full_gcs), ("Serial", 1));
    assert_eq!(gc.pause_spans_ns.len(), 1, "{gc:?}");
    assert!(spec.scratch.join("gc.log").is_file(), "it is kept");
    assert_eq!(
        evidence.warnings.iter().find(|w| w.contains("GC log")),
        None
    );
    lab.assert_clean();
}

fn jvm_that_hangs_is_dumped() {
    let mut lab = Lab::new();
    let mut spec = spec(&mut lab, &[&PORT.to_string()]);
    spec.readiness = Readiness::Http {
        port: PORT,
        path: "/".to_owned(),
    };
    let mut observer = crate::lab::Quiet::default();
    let mut instance = loadline_engine::backend::Backend::prepare(&mut lab.backend, &spec)
        .expect("it can be prepared");
    let start = instance.start(Duration::from_secs(4), &mut observer);
    let start = start.expect("not being ready is no error");
    assert_eq!(start.ready, None);
    let evidence = instance.stop(Duration::from_secs(2), &mut observer);
    drop(instance);
    let dump = evidence.thread_dump.join("\n");
    assert!(
        dump.contains("Full thread dump") && dump.contains("Probe.main"),
        "{dump}"
    );
    assert!(evidence.last_output.iter().any(|line| line == "ready"));
    assert!(
        evidence
            .last_output
            .iter()
            .all(|line| !line.contains("thread dump"))
    );
    assert_eq!(evidence.exit.code, Some(143));
    lab.assert_clean();
}
