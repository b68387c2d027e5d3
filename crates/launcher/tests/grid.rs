//! Every option set of the launcher starts a real JVM, and the JVM's choices match the prediction.
//!
//! A sample by default; `LOADLINE_GRID=full` runs 64 MiB to 16 GiB x 0.25 to 96 CPUs x collectors x
//! every JDK below /usr/lib/jvm (some minutes). Needs root and a v1 memory controller.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_sizing::hotspot::{self, MachineSize};
use loadline_sizing::{Bytes, JdkRelease, JvmOptionSet};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_loadline-launch");
const MEMORY_MIB: &[u64] = &[
    64, 96, 128, 150, 200, 256, 300, 301, 400, 512, 768, 1024, 1536, 1792, 2048, 4096, 8192, 16_384,
];
const CPUS: &[&str] = &[
    "0.25", "0.5", "1", "1.5", "1.9", "2", "3", "4", "8", "16", "32", "64", "96",
];
const COLLECTORS: &[&str] = &[
    "",
    "-XX:+UseSerialGC",
    "-XX:+UseParallelGC",
    "-XX:+UseG1GC",
    "-XX:+UseZGC",
    "-XX:+UseShenandoahGC",
];

/// A memory cgroup, removed at the end.
struct Group(PathBuf);

impl Group {
    fn new(mib: u64) -> Option<Self> {
        let name = format!("loadline-grid-{}-{mib}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/memory").join(name);
        std::fs::create_dir(&group).ok()?;
        let group = Self(group);
        std::fs::write(
            group.0.join("memory.limit_in_bytes"),
            (mib << 20).to_string(),
        )
        .ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The launcher in the group, with this much CPU.
fn launch(group: &Group, cpus: &str, words: &[&str]) -> std::process::Output {
    let script = r#"echo $$ > "$1/cgroup.procs"; shift; exec "$@""#;
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(&group.0)
        .arg(LAUNCHER)
        .args(words);
    command
        .env_clear()
        .env("LOADLINE_CPUS", cpus)
        .env("LOADLINE_LOG", "quiet")
        .env("PATH", "/usr/bin:/bin");
    command.output().expect("sh exists")
}

fn flags(text: &str) -> BTreeMap<&str, &str> {
    let flag = |line| {
        let words: Vec<&str> = str::split_whitespace(line).collect();
        (words.len() > 3 && words[2] == "=").then(|| (words[1], words[3]))
    };
    text.lines().filter_map(flag).collect()
}

fn check(group: &Group, mib: u64, cpus: &str, collector: &str, home: &Path) -> Vec<String> {
    let java = home.join("bin/java").display().to_string();
    let given: Vec<&str> = collector.split_whitespace().collect();
    let words = [&["options", "--", &java], given.as_slice()].concat();
    let options = String::from_utf8(launch(group, cpus, &words).stdout).expect("text");
    let cell = format!("{} {mib}Mi {cpus} CPUs {collector}", home.display());
    let words = [
        &["--", &java],
        given.as_slice(),
        &["-XX:+PrintFlagsFinal", "-version"],
    ]
    .concat();
    let output = launch(group, cpus, &words);
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return vec![format!(
            "{cell}: {}: did not start: {text}",
            options.replace('\n', " ")
        )];
    }
    let release = std::fs::read_to_string(home.join("release")).expect("a JDK");
    let jdk = JdkRelease::from_release(&release).expect("a JDK");
    let processors = std::thread::available_parallelism()
        .expect("Linux says")
        .get() as u32;
    let machine = MachineSize {
        memory: Bytes::from_mib(mib),
        cpus: processors,
    };
    let all = options.lines().chain(given);
    let predicted = match hotspot::predict(jdk, machine, &JvmOptionSet::from_words(all)) {
        Ok(predicted) => predicted,
        Err(refusal) => return vec![format!("{cell}: predicted {refusal}")],
    };
    let real = flags(&text);
    let differs = |flag: &hotspot::PrintedFlag| {
        let expected = flag.value.to_string();
        let got = real.get(flag.name).copied();
        (got != Some(expected.as_str()))
            .then(|| format!("{cell}: {} is {got:?}, predicted {expected}", flag.name))
    };
    predicted
        .printed_flags()
        .iter()
        .filter_map(differs)
        .collect()
}

#[test]
fn every_option_set_starts_and_does_what_was_predicted() {
    let name = "every_option_set_starts_and_does_what_was_predicted";
    let entries = std::fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten();
    let homes: Vec<PathBuf> = entries
        .map(|e| e.path())
        .filter(|p| !p.is_symlink() && p.join("release").exists())
        // The options and the prediction are HotSpot's.
        .filter(|p| !p.join("lib/j9vm").exists())
        .collect();
    if homes.is_empty() || Group::new(1).is_none() {
        println!("SKIP {name}: needs a JDK below /usr/lib/jvm, root and a v1 memory controller");
        return;
    }
    let is_full = std::env::var("LOADLINE_GRID").is_ok_and(|value| value == "full");
    let (mut number, mut starts, mut wrong) = (0, 0, Vec::new());
    for mib in MEMORY_MIB {
        let group = Group::new(*mib).expect("as before");
        for cpus in CPUS {
            for collector in COLLECTORS {
                for home in &homes {
                    number += 1;
                    // A prime step samples every row and column.
                    if is_full || number % 47 == 0 {
                        starts += 1;
                        wrong.extend(check(&group, *mib, cpus, collector, home));
                    }
                }
            }
        }
    }
    println!("{name}: {starts} starts, {} wrong", wrong.len());
    assert!(
        wrong.is_empty(),
        "{}",
        wrong[..wrong.len().min(40)].join("\n")
    );
}
