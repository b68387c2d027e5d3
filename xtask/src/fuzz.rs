//! `cargo xtask fuzz`: every parser against inputs that look for its branches.
//!
//! Owns how the targets of `fuzz/` are built ([`Build`]; with the pinned toolchain: libFuzzer's
//! counters are ordinary options of code generation), their seeds (captured files of the tests, and
//! inputs of earlier runs with unique coverage, in fuzz/corpus), and what counts as failed. New
//! inputs of a target are kept in build/fuzz/TARGET, from where `cargo xtask fuzz keep` copies the
//! smallest set with the same coverage to fuzz/corpus. A failing input is left in
//! build/fuzz/failed/.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::error::Error;
use crate::process;
use crate::test::output::Counts;

const SECONDS: u64 = 10;
const AT_ONCE: usize = 3;

/// Most inputs per run: the promised number, or two hours.
const MOST: &str = "-runs=100000000";

/// A target and the files that show it the form, relative to the project.
struct Target {
    name: &'static str,
    seeds: &'static [&'static str],
}

const fn target(name: &'static str, seeds: &'static [&'static str]) -> Target {
    Target { name, seeds }
}

const TARGETS: &[Target] = &[
    target("access_log", &["crates/load/tests/data"]),
    target("compose", &["fuzz/seeds/compose"]),
    target("event_log", &["fuzz/seeds/event_log"]),
    target("experiment", &["experiments"]),
    target("foreign", &["fuzz/seeds/foreign"]),
    target("front", &["fuzz/seeds/front"]),
    target("gclog_classic", &["crates/jvm/tests/data/gclog"]),
    target("gclog_openj9", &["crates/jvm/tests/data/gclog"]),
    target("gclog_unified", &["crates/jvm/tests/data/gclog"]),
    target("generator", &["fuzz/seeds/generator"]),
    target("har", &["crates/load/tests/har"]),
    target("hpack", &[]),
    target("hsperf", &["crates/jvm/tests/data/hsperf"]),
    target("http2", &[]),
    target("image", &["fuzz/seeds/image"]),
    target("jar", &[]),
    target(
        "jvm_texts",
        &[
            "crates/jvm/tests/data/nmt",
            "crates/jvm/tests/data/footprint",
            "crates/jvm/tests/data/release",
        ],
    ),
    target("kernel", &["crates/cgroup/tests/data"]),
    target("manifest", &["records/2026-11-30-spring-web-size/deploy"]),
    target("metric_text", &[]),
    target("pod_log", &["fuzz/seeds/pod_log"]),
    target("profile", &["fuzz/seeds/profile"]),
    target("prometheus", &["fuzz/seeds/prometheus"]),
    target("record", &["fuzz/seeds/record"]),
    target(
        "reported",
        &["crates/load/tests/reported", "crates/load/tests/data"],
    ),
    target("response", &[]),
    target("words", &["crates/sizing/tests/data"]),
];

/// Options of code generation that libFuzzer needs, for this workspace's crates. As cargo-fuzz has
/// them, without a sanitizer, which would need a nightly toolchain and finds little in safe Rust;
/// and without a trace of comparisons, which takes a third of the time and is missed only where a
/// form begins with a number of several bytes: that needs a seed (records/2026-11-26-fuzz).
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table";

/// What the names of the targets begin with for cargo, where other crates' tests are called the same.
const PREFIX: &str = "fuzz_";

#[derive(Debug, Clone, Copy)]
enum Build {
    Optimised,
    OnTests,
}

type Programs = BTreeMap<String, PathBuf>;

/// An input that takes longer counts as failed, like a panic. Seconds.
const SLOWEST: &str = "-timeout=10";

/// Longest input, in bytes. Kept inputs have the same coverage when cut there, and longer inputs
/// take longer to read.
const LONGEST: usize = 4096;
const MOST_SEEDS: usize = 200;

/// Builds the targets and runs all, or the named ones, [`AT_ONCE`] at a time, each for this many
/// seconds; with `keep` instead of seconds, keeps their findings. Returns whether none failed.
/// Errors: When they cannot be built or started.
pub fn run(root: &Path, arguments: &[String]) -> Result<bool, Error> {
    let keeps = arguments.first().is_some_and(|word| word == "keep");
    let seconds = arguments.first().and_then(|word| word.parse().ok());
    let names = &arguments[usize::from(keeps || seconds.is_some())..];
    let targets: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| names.is_empty() || names.iter().any(|name| name == target.name))
        .collect();
    if targets.len() < names.len() {
        let all: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("xtask: error: the targets are: {}", all.join(", "));
        return Ok(false);
    }
    let programs = build(root, Build::Optimised)?;
    if keeps {
        for target in targets {
            keep(root, &programs, target)?;
        }
        return Ok(true);
    }
    let counts = all(root, &programs, targets.into(), seconds.unwrap_or(SECONDS))?;
    Ok(counts.failed == 0)
}

pub fn step(root: &Path) -> Result<Counts, Error> {
    let programs = build(root, Build::OnTests)?;
    all(root, &programs, TARGETS.iter().collect(), SECONDS)
}

fn all(
    root: &Path,
    programs: &Programs,
    mut waiting: VecDeque<&Target>,
    seconds: u64,
) -> Result<Counts, Error> {
    let (mut running, mut counts) = (Vec::new(), Counts::default());
    while !(waiting.is_empty() && running.is_empty()) {
        while running.len() < AT_ONCE
            && let Some(target) = waiting.pop_front()
        {
            running.push(Run::start(root, programs, target, seconds)?);
        }
        sleep(Duration::from_millis(200));
        let mut still = Vec::new();
        for mut run in running {
            match run.child.try_wait().map_err(Error::file(&run.log))? {
                Some(status) => counts.add(run.tell(status.success())),
                None => still.push(run),
            }
        }
        running = still;
    }
    Ok(counts)
}

fn build(root: &Path, build: Build) -> Result<Programs, Error> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--no-run", "--locked"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.arg("--test").arg(format!("{PREFIX}*"));
    cargo.env("RUSTC_WORKSPACE_WRAPPER", root.join("fuzz/rustc.sh"));
    cargo.env("LOADLINE_FUZZ_FLAGS", FLAGS);
    match build {
        Build::Optimised => cargo.args(["--package", "loadline-fuzz", "--profile", "fuzz"]),
        // The whole workspace, so that libraries have the features that its tests give them.
        Build::OnTests => cargo.arg("--workspace"),
    };
    let said = process::stdout_of(cargo.current_dir(root))?;
    Ok(said.lines().filter_map(program).collect())
}

/// A target's name and program, from a line of what cargo says in JSON.
fn program(line: &str) -> Option<(String, PathBuf)> {
    let said: serde_json::Value = serde_json::from_str(line).ok()?;
    let name = said["target"]["name"].as_str()?.strip_prefix(PREFIX)?;
    let program = said["executable"].as_str()?;
    Some((name.to_owned(), program.into()))
}

fn of<'a>(programs: &'a Programs, target: &Target) -> Result<&'a Path, Error> {
    let found = programs.get(target.name).map(PathBuf::as_path);
    let why = || format!("no program of {PREFIX}{}", target.name);
    found.ok_or_else(|| Error::output("cargo test --no-run", why()))
}

struct Run {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Run {
    fn start(
        root: &Path,
        programs: &Programs,
        target: &Target,
        seconds: u64,
    ) -> Result<Self, Error> {
        let place = root.join("build/fuzz");
        let (corpus, failed) = (place.join(target.name), place.join("failed"));
        for directory in [&corpus, &failed] {
            fs::create_dir_all(directory).map_err(Error::file(directory))?;
        }
        sow(root, target, &corpus)?;
        let log = place.join(format!("{}.log", target.name));
        let output = fs::File::create(&log).map_err(Error::file(&log))?;
        let artifacts = failed.join(format!("{}-", target.name));
        let mut command = Command::new(of(programs, target)?);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}", artifacts.display()))
            .args([SLOWEST, &longest(), MOST, "-print_final_stats=1"])
            .arg(&corpus)
            .stdout(Stdio::null())
            .stderr(output);
        let child = command.spawn().map_err(Error::start(&command))?;
        Ok(Self {
            name: target.name,
            child,
            log,
        })
    }

    fn tell(&self, is_success: bool) -> Counts {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let executed = executed(&text);
        if is_success && executed > 0 {
            println!("{:<14} {executed} executions, nothing found", self.name);
            return Counts::one_passed();
        }
        println!("{:<14} FAILED, see {}", self.name, self.log.display());
        Counts::one_failed(&format!("fuzz: {}", self.name))
    }
}

fn longest() -> String {
    format!("-max_len={LONGEST}")
}

fn executed(text: &str) -> u64 {
    let name = "stat::number_of_executed_units:";
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

fn kept(root: &Path, target: &Target) -> PathBuf {
    root.join("fuzz/corpus")
        .join(format!("{}.tar.gz", target.name))
}

fn keep(root: &Path, programs: &Programs, target: &Target) -> Result<(), Error> {
    let place = root.join("build/fuzz");
    let (found, least) = (place.join(target.name), place.join("least"));
    let _ = fs::remove_dir_all(&least);
    for directory in [&found, &least] {
        fs::create_dir_all(directory).map_err(Error::file(directory))?;
    }
    sow(root, target, &found)?;
    let mut merge = Command::new(of(programs, target)?);
    merge.args(["-merge=1", SLOWEST, &longest()]);
    process::stdout_of(merge.arg(&least).arg(&found))?;
    let mut pack = Command::new("tar");
    pack.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=0644", "--mtime=@0", "--format=ustar"])
        .args(["--use-compress-program=gzip -n -9", "--create"])
        .arg("--file")
        .arg(kept(root, target))
        .arg("--directory")
        .arg(&least);
    let inputs = process::entries(&least)?;
    let inputs: Vec<_> = inputs.iter().filter_map(|path| path.file_name()).collect();
    process::stdout_of(pack.args(&inputs))?;
    println!("{:<14} {} inputs are kept", target.name, inputs.len());
    Ok(())
}

/// Copies the seeds, and kept inputs of earlier runs, into a target's inputs.
fn sow(root: &Path, target: &Target, corpus: &Path) -> Result<(), Error> {
    let kept = kept(root, target);
    if kept.exists() {
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--file").arg(kept);
        process::stdout_of(unpack.arg("--directory").arg(corpus))?;
    }
    let mut directories: Vec<PathBuf> = target.seeds.iter().map(|seed| root.join(seed)).collect();
    let mut number = 0;
    while let Some(directory) = directories.pop() {
        for path in process::entries(&directory)? {
            if path.is_dir() {
                directories.push(path);
            } else if number < MOST_SEEDS {
                let bytes = fs::read(&path).map_err(Error::file(&path))?;
                let seed = corpus.join(format!("seed-{number}"));
                // A longer input still shows its beginning.
                let begin = &bytes[..bytes.len().min(LONGEST)];
                fs::write(&seed, begin).map_err(Error::file(&seed))?;
                number += 1;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_were_read_are_told() {
        let end = "Done 17 runs in 1 second(s)\nstat::number_of_executed_units: 17\nstat::average_exec_per_sec:     17\n";
        assert_eq!(executed(end), 17);
        assert_eq!(executed("INFO: Running with entropic power schedule"), 0);
    }

    #[test]
    fn a_target_is_told_by_its_program() {
        let built =
            r#"{"reason":"compiler-artifact","target":{"name":"fuzz_jar"},"executable":"/t/jar"}"#;
        assert_eq!(program(built), Some(("jar".to_owned(), "/t/jar".into())));
        let library =
            r#"{"reason":"compiler-artifact","target":{"name":"loadline_fuzz"},"executable":null}"#;
        assert_eq!(program(library), None);
        assert_eq!(program(""), None);
    }

    #[test]
    fn every_target_is_run_and_its_seeds_are_there() {
        let root = crate::root();
        let entries = fs::read_dir(root.join("fuzz/fuzz_targets")).expect("a directory");
        let mut there: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().trim_end_matches(".rs").to_owned())
            .collect();
        there.sort();
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names, there);
        let kept = fs::read_dir(root.join("fuzz/corpus")).expect("a directory");
        for entry in kept {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            assert!(
                names
                    .iter()
                    .any(|target| name == format!("{target}.tar.gz")),
                "{name}"
            );
        }
        let seeds = TARGETS.iter().flat_map(|target| target.seeds);
        for seed in seeds {
            assert!(root.join(seed).is_dir(), "{seed}");
        }
    }
}
