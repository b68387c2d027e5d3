//! The steps of a test run, in order, and their lanes: two while programs build, then four in parallel,
//! and at the end the timing tests, which have the machine to themselves.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::process::setpriority_process;

use super::groups::Group;
use super::output::{self, Counts};
use super::{answers, audit, elsewhere, joined, site};
use crate::durable::failpoints;
use crate::error::Error;
use crate::fuzz;
use crate::process::{OWN_LOCK, can_have_own_lock, stdout_of};
use crate::release::step;
use crate::workloads;

/// A step that takes longer than this hangs; it is ended and counts as failed. Seconds.
const LONGEST: &str = "3600";

/// Module documentation leads readers to private items; every crate here is read by its developers.
const RUSTDOC: &str = "-D warnings -A rustdoc::private_intra_doc_links";

pub struct Step {
    pub name: &'static str,
    pub what: &'static str,
    pub lane: Lane,
    /// How far it steps back for what else runs, in steps of `nice`: an application that has no CPU is
    /// never ready, a compiler is only later.
    nice: i32,
    run: Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Main,
    /// Next to the build of the tests; these steps mostly wait for downloads.
    Workloads,
    /// Next to the main lane: separate machines, which have one slow CPU each, and then trials and
    /// steps that neither disturb other trials nor are disturbed.
    Guests,
    /// Beside both: trials, one at a time, under a machine lock of this lane.
    Trials,
    /// Next to these lanes: trials of images, also one at a time, under another machine lock.
    Engines,
    Alone,
}

impl Lane {
    /// Whether it begins only when another one has ended.
    pub fn waits_for(self, before: Self) -> bool {
        self == Self::Alone || self != Self::Main && before == Self::Workloads
    }
}

enum Run {
    /// cargo with these words.
    Check(&'static str),
    Tests(Group),
    Own(fn(&Path) -> Result<Counts, Error>),
}

/// In the main lane, with nothing to run yet.
const fn step(name: &'static str, what: &'static str) -> Step {
    Step {
        name,
        what,
        lane: Lane::Main,
        nice: 10,
        run: Run::Check(""),
    }
}

pub const STEPS: &[Step] = &[
    step("format", "sources are formatted")
        .runs(Run::Check("fmt --all --check -- --color never -l")),
    step("invariants", "the rules of ARCHITECTURE.md hold").runs(Run::Check("xtask check")),
    step("workloads", "the Java workloads build")
        .at(Lane::Workloads, 10)
        // Not by cargo, which would wait for the build to end.
        .runs(Run::Own(|root| {
            workloads::build(root).map(|()| Counts::one_passed())
        })),
    step("tools", "load tools and mdBook are fetched, in a new clone")
        .at(Lane::Workloads, 10)
        .runs(Run::Own(install_tools)),
    step("build", "programs and tests build")
        .runs(Run::Check("test --workspace --locked --no-run")),
    step(
        "guests",
        "the tests that boot a machine of their own (user-mode Linux)",
    )
    .at(Lane::Guests, 5)
    .runs(Run::Tests(Group::Guests)),
    step(
        "contained",
        "trials with hostile applications, judged by what happens and what is left",
    )
    .at(Lane::Guests, 5)
    .runs(Run::Tests(Group::Contained)),
    step(
        "databases",
        "trials with PostgreSQL, which judge no time of theirs",
    )
    .at(Lane::Guests, 0)
    .runs(Run::Tests(Group::Databases)),
    step(
        "trials",
        "tests that run real trials and judge no time of theirs",
    )
    .at(Lane::Trials, 0)
    .runs(Run::Tests(Group::Trials)),
    step(
        "failpoints",
        "some system calls of what the tests built are broken, and nothing is lost",
    )
    .at(Lane::Trials, 0)
    .runs(Run::Own(failpoints::step)),
    step("engines", "the same with images, by podman and docker")
        .at(Lane::Engines, 0)
        .runs(Run::Tests(Group::Engines)),
    step(
        "fuzz",
        "every parser against inputs that look for its branches, 10 s each",
    )
    .at(Lane::Engines, 10)
    .runs(Run::Own(fuzz::step)),
    step(
        "elsewhere",
        "the program is checked for macOS and FreeBSD, where it only reads",
    )
    .at(Lane::Engines, 10)
    .runs(Run::Own(elsewhere::check_targets)),
    step(
        "answers",
        "the workloads start and answer as their READMEs say",
    )
    .at(Lane::Engines, 5)
    .runs(Run::Own(answers::run)),
    step(
        "release",
        "packages and images of what the tests built go in, work and go out",
    )
    .at(Lane::Engines, 5)
    .runs(Run::Own(step::run)),
    step("lints", "clippy has nothing to say").runs(Run::Check(
        "clippy --workspace --all-targets --locked -- -D warnings",
    )),
    step("documents", "API documentation builds without a warning").runs(Run::Check(
        "doc --workspace --no-deps --document-private-items --locked",
    )),
    step("audit", "cargo deny: bans, licences, sources, advisories").runs(Run::Own(audit::run)),
    step(
        "tests",
        "unit, property and integration tests that measure no time",
    )
    .runs(Run::Tests(Group::Untimed)),
    step(
        "site",
        "the documents build as a site, and its links lead somewhere",
    )
    .runs(Run::Own(site::run)),
    step(
        "measured",
        "tests that measure, with real JVMs and cgroups where they are, and nothing next to them",
    )
    .at(Lane::Alone, 0)
    .runs(Run::Tests(Group::Timed)),
];

/// Counts nothing: tests are skipped by name where their tool is missing.
fn install_tools(root: &Path) -> Result<Counts, Error> {
    let mut setup = Command::new(root.join("scripts/setup.sh"));
    print!("{}", stdout_of(setup.arg("clone").current_dir(root))?);
    Ok(Counts::default())
}

impl Step {
    const fn at(self, lane: Lane, nice: i32) -> Self {
        Self { lane, nice, ..self }
    }

    const fn runs(self, run: Run) -> Self {
        Self { run, ..self }
    }

    /// Runs it; its output goes to the log file. It has a separate thread with its niceness: a
    /// program inherits it from the thread that starts it.
    pub fn run(&self, root: &Path, log: &Path) -> Result<Counts, Error> {
        let stepped_back = || {
            // On Linux the calling thread's. It cannot go below the user's own value.
            let _ = setpriority_process(None, self.nice);
            self.carry_out(root, log)
        };
        thread::scope(|scope| joined(scope.spawn(stepped_back)))
    }

    fn carry_out(&self, root: &Path, log: &Path) -> Result<Counts, Error> {
        match self.run {
            Run::Check(arguments) => {
                let arguments: Vec<&str> = arguments.split(' ').collect();
                let (is_success, text) = logged(root, &[], &arguments, log)?;
                Ok(self.verdict(is_success, Counts::one_passed(), &text))
            }
            Run::Tests(group) => {
                let has_own_lock = matches!(group, Group::Trials | Group::Databases);
                let before = if has_own_lock && can_have_own_lock() {
                    &OWN_LOCK[..]
                } else {
                    &[]
                };
                let (is_success, text) = logged(root, before, &group.arguments(root)?, log)?;
                Ok(self.verdict(is_success, output::count(&text), &text))
            }
            Run::Own(function) => {
                // What it could not do is its failure; the other steps run.
                let counts = function(root)
                    .unwrap_or_else(|error| Counts::one_failed(&format!("{}: {error}", self.name)));
                fs::write(log, format!("{counts:#?}\n")).map_err(Error::file(log))?;
                Ok(counts)
            }
        }
    }

    /// The counts after its failed tests ran again, when no other step runs any more.
    pub fn run_failures_again(
        &self,
        counts: Counts,
        root: &Path,
        log: &Path,
    ) -> Result<Counts, Error> {
        let Run::Tests(group) = self.run else {
            return Ok(counts);
        };
        match have_passed_alone(root, &group.arguments(root)?, &counts, log)? {
            true => Ok(counts.passed_alone()),
            false => Ok(counts),
        }
    }

    /// What the step counts for. A command that failed counts a failure even when none was
    /// printed: it did not compile, crashed, or hung.
    fn verdict(&self, is_success: bool, mut counts: Counts, text: &str) -> Counts {
        if is_success {
            return counts;
        }
        eprintln!("{}", output::explain(text));
        if !matches!(self.run, Run::Tests(_)) {
            return Counts::one_failed(self.name);
        }
        if counts.failed == 0 {
            counts.add(Counts::one_failed(&format!("{}: ended early", self.name)));
        }
        counts
    }
}

/// More failures than this are a defect, not a busy machine.
const MOST_AGAIN: usize = 3;

/// Runs the failed tests once more, each alone: many measure here, and a machine that is busy for a
/// second fails correct tests. Returns whether all passed.
fn have_passed_alone(
    root: &Path,
    arguments: &[String],
    counts: &Counts,
    log: &Path,
) -> Result<bool, Error> {
    if !counts.are_all_named() || counts.failed > MOST_AGAIN {
        return Ok(false);
    }
    for (number, name) in counts.failures.iter().enumerate() {
        println!("{:<12} again, alone: {name}", "");
        // The name right after `--`: the project's own runners take their filter there.
        let split = arguments.iter().position(|word| *word == "--");
        let (cargo, own) = arguments.split_at(split.map_or(arguments.len(), |at| at + 1));
        let only = [name.clone(), "--exact".to_owned()];
        let words = [cargo, &only, own].concat();
        let log = log.with_extension(format!("again-{number}.log"));
        let (is_success, text) = logged(root, &[], &words, &log)?;
        let again = output::count(&text);
        if !is_success || again.passed == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs cargo with a time limit, behind other words; stdout and stderr go, in order, to the log, and results of test
/// binaries to the terminal as they come. Gives whether it succeeded, and the text.
fn logged(
    root: &Path,
    before: &[&str],
    arguments: &[impl AsRef<OsStr>],
    log: &Path,
) -> Result<(bool, String), Error> {
    let (reader, writer) = std::io::pipe().map_err(Error::file("pipe"))?;
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=10", LONGEST])
        .args(before)
        .arg("cargo")
        .args(arguments)
        .current_dir(root)
        .env("CARGO_TERM_COLOR", "never")
        .env("RUSTDOCFLAGS", RUSTDOC)
        // The same cases each time: a run must not fail for what it did not change. Plain
        // `cargo test` draws others.
        .env("PROPTEST_RNG_SEED", "1")
        .stdout(writer.try_clone().map_err(Error::file("pipe"))?)
        .stderr(writer);
    let mut child = command.spawn().map_err(Error::start(&command))?;
    // The command holds the pipe's other end: without this the reader would never see the end.
    drop(command);

    let mut file = File::create(log).map_err(Error::file(log))?;
    let mut text = String::new();
    let mut line = Vec::new();
    let mut reader = BufReader::new(reader);
    let mut next = |line: &mut Vec<u8>| reader.read_until(b'\n', line).map_err(Error::file(log));
    while next(&mut line)? > 0 {
        file.write_all(&line).map_err(Error::file(log))?;
        let read = String::from_utf8_lossy(&line);
        let word = read.trim();
        if word.starts_with("Running ") || word.starts_with("test result:") {
            println!("{:<12} {word}", "");
        }
        text.push_str(&read);
        line.clear();
    }
    let status = child.wait().map_err(Error::file("timeout"))?;
    if status.code() == Some(124) {
        text.push_str(&format!("\nerror: ended after {LONGEST} s\n"));
    }
    Ok((status.success(), text))
}
