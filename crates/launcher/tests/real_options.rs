//! Options that only java itself reads: where a real JVM starts without the launcher, it starts with
//! it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_loadline-launch");

fn javas() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/jvm");
    let homes = entries.into_iter().flatten().flatten().map(|e| e.path());
    let homes = homes.filter(|home| !home.is_symlink() && home.join("release").exists());
    // The words are HotSpot's.
    let homes = homes.filter(|home| !home.join("lib/j9vm").exists());
    homes.map(|home| home.join("bin/java")).collect()
}

/// Additions to the environment and the words of a start.
struct Case<'a> {
    variable: Option<(&'a str, &'a str)>,
    words: &'a [&'a str],
    memory: &'a str,
}

fn run(mut command: Command, case: &Case<'_>, directory: &Path) -> Output {
    command
        .args(case.words)
        .env_clear()
        .envs(case.variable)
        .env("LOADLINE_MEMORY", case.memory)
        // The JVM sees the host and would take G1 for two: the launcher passes its collector.
        .env("LOADLINE_CPUS", "2")
        .env("PATH", "/usr/bin:/bin")
        .current_dir(directory);
    command.output().expect("it starts")
}

#[test]
fn what_starts_plain_starts_launched() {
    let javas = javas();
    if javas.is_empty() {
        println!("SKIP what_starts_plain_starts_launched: no JDK in /usr/lib/jvm");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    std::fs::write(directory.join("args"), "-XX:+UseParallelGC\n").expect("a fresh file");
    std::fs::write(directory.join("flags"), "+UseParallelGC\n").expect("a fresh file");
    let case = |variable, words, memory| Case {
        variable,
        words,
        memory,
    };
    let cases = [
        case(
            Some(("JDK_JAVA_OPTIONS", "@args")),
            &["-version"][..],
            "512Mi",
        ),
        case(None, &["-XX:VMOptionsFile=args", "-version"], "512Mi"),
        case(
            Some(("JAVA_TOOL_OPTIONS", "-XX:VMOptionsFile=args")),
            &["-version"],
            "512Mi",
        ),
        case(None, &["-XX:Flags=flags", "-version"], "512Mi"),
        case(None, &["-XX:+AggressiveHeap", "-version"], "512Mi"),
        case(None, &["-XX:SoftMaxHeapSize=100m", "-version"], "256Mi"),
    ];
    for java in &javas {
        for case in &cases {
            let plain = run(Command::new(java), case, directory);
            let mut command = Command::new(LAUNCHER);
            command.arg("--").arg(java);
            let launched = run(command, case, directory);
            let said = String::from_utf8_lossy(&launched.stdout).into_owned()
                + &String::from_utf8_lossy(&launched.stderr);
            assert!(plain.status.success(), "{java:?} {:?}", case.words);
            assert!(
                launched.status.success(),
                "{java:?} {:?}: {said}",
                case.words
            );
        }
        // `JAVA_OPTS` is the launcher's to add; java expands the file.
        let own = case(Some(("JAVA_OPTS", "@args")), &["-version"], "512Mi");
        let mut command = Command::new(LAUNCHER);
        command.arg("--").arg(java);
        let launched = run(command, &own, directory);
        assert!(launched.status.success(), "{java:?}: {launched:?}");
        behind_jar(java, directory);
    }
}

/// java goes on reading options between `-jar` and the file.
fn behind_jar(java: &Path, directory: &Path) {
    let jar = java.with_file_name("jar");
    let javac = java.with_file_name("javac");
    let source = "public class H { public static void main(String[] a) {} }";
    std::fs::write(directory.join("H.java"), source).expect("a fresh file");
    let mut compile = Command::new(javac);
    compile
        .args(["--release", "11", "H.java"])
        .current_dir(directory);
    let mut pack = Command::new(jar);
    pack.args(["cfe", "h.jar", "H", "H.class"])
        .current_dir(directory);
    for command in [&mut compile, &mut pack] {
        if !command.status().is_ok_and(|status| status.success()) {
            println!("SKIP behind_jar: {} is no whole JDK", java.display());
            return;
        }
    }
    let words = ["-jar", "-XX:+UseParallelGC", "h.jar"];
    let case = Case {
        variable: None,
        words: &words,
        memory: "512Mi",
    };
    let mut command = Command::new(LAUNCHER);
    command.arg("--").arg(java);
    let launched = run(command, &case, directory);
    assert!(launched.status.success(), "{java:?}: {launched:?}");
}
