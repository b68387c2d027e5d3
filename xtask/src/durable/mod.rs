//! Recovery from faults: chores that break a system call, or the power, under the real program.
//!
//! Owns their common parts: the programs that they need, calls of loadline in a separate place, and
//! the requirements on a store after a fault. [`failpoints`] breaks calls, [`power`] the disk.

pub mod failpoints;
pub mod power;
mod random;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::error::Error;
use crate::process::{OWN_LOCK, output_of, stdout_of, text};

/// A call that takes longer than this hangs. Seconds.
const LONGEST: &str = "120";

/// Trials of a fraction of a second that judge next to nothing.
const QUICK: [&str; 8] = [
    "--wait",
    "--accept-noise",
    "--slo=errors<99%",
    "--rate=50/s",
    "--warm-up=0s",
    "--measure=200ms",
    "--start-deadline=20s",
    "--url=http://localhost:8080/",
];

pub struct Programs {
    loadline: PathBuf,
    zoo: PathBuf,
    whole_store: PathBuf,
}

#[derive(Debug)]
pub struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Programs {
    pub fn built() -> Result<Self, Error> {
        let own = std::env::current_exe().map_err(Error::file("xtask"))?;
        let directory = own.parent().unwrap_or(Path::new("."));
        let programs = Self {
            loadline: directory.join("loadline"),
            zoo: directory.join("loadline-zoo"),
            whole_store: directory.join("examples/whole_store"),
        };
        for path in [&programs.loadline, &programs.zoo, &programs.whole_store] {
            fs::metadata(path).map_err(Error::file(path))?;
        }
        Ok(programs)
    }

    pub fn build(root: &Path) -> Result<Self, Error> {
        let mut cargo = Command::new("cargo");
        let profile = match cfg!(debug_assertions) {
            true => "dev",
            false => "release",
        };
        cargo.args(["build", "--locked", "--bins", "--examples"]);
        cargo.args(["-ploadline-cli", "-ploadline-zoo", "-ploadline-runner"]);
        cargo.args(["--profile", profile]).current_dir(root);
        stdout_of(&mut cargo)?;
        Self::built()
    }

    /// `run` of an application that answers, with this many repeats.
    fn run(&self, repeats: &str) -> Vec<String> {
        let zoo = self.zoo.display().to_string();
        let words = ["run", "--memory=64Mi", "--repeats", repeats];
        let command = ["--", zoo.as_str(), "serve", "heap_mib=8"];
        let all = words.iter().chain(&QUICK).chain(&command);
        all.map(|word| (*word).to_owned()).collect()
    }

    /// Why trials cannot run on this machine, if they cannot: no cgroups, as a rule.
    fn refused(&self) -> Result<Option<String>, Error> {
        let mut command = Command::new(&self.loadline);
        let cleaned = output_of(command.args(["clean", "--state", "/nonexistent"]))?;
        let said = String::from_utf8_lossy(&cleaned.stderr);
        let is_refused = cleaned.status.code() == Some(3);
        Ok(is_refused.then(|| said.trim().replace('\n', "; ")))
    }

    /// The finished trials in a state directory, and its problems. Opens it as commands do.
    fn look_at(&self, state: &Path) -> Result<Whole, Error> {
        let mut command = Command::new(&self.whole_store);
        let text = stdout_of(command.arg(state))?;
        let said: Value =
            serde_json::from_str(&text).map_err(|error| Error::output("whole_store", error))?;
        let texts = |name: &str| -> Vec<String> {
            let all = said[name].as_array().into_iter().flatten();
            all.filter_map(|v| v.as_str().map(str::to_owned)).collect()
        };
        Ok(Whole {
            finished: texts("finished").into_iter().collect(),
            wrong: texts("wrong"),
        })
    }
}

#[derive(Debug, Default)]
struct Whole {
    finished: BTreeSet<String>,
    wrong: Vec<String>,
}

/// Runs a command with a separate machine lock, so that several may run at once: durations do not
/// matter here.
fn call(directory: &Path, words: &[String]) -> Result<Ended, Error> {
    let mut command = Command::new(OWN_LOCK[0]);
    command
        .args(&OWN_LOCK[1..])
        .args(["timeout", "--kill-after=5", LONGEST])
        .args(words)
        .env_remove("LOADLINE_STATE")
        .current_dir(directory);
    let output = output_of(&mut command)?;
    let code = output.status.code();
    let code = code.ok_or_else(|| Error::output(text(&command), output.status))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ended {
        code,
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

pub fn missing() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("not on x86-64".to_owned());
    }
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    if !is_root {
        return Some("not root".to_owned());
    }
    let has_cc = output_of(Command::new("cc").arg("--version")).is_ok();
    (!has_cc).then(|| "no C compiler".to_owned())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let mut command = Command::new("cp");
    stdout_of(command.arg("-a").arg(from).arg(to)).map(drop)
}

/// `[COUNT [SEED]]` behind a chore.
fn count_and_seed(chore: &str, arguments: &[String]) -> Result<(Option<usize>, u64), Error> {
    let number = |place: usize| -> Result<Option<u64>, Error> {
        let usage = format!("cargo xtask {chore} [COUNT [SEED]]");
        let refuse = |text: &String| Error::Usage(format!("`{text}` is no number\nhint: {usage}"));
        let parse = |text: &String| text.parse().map_err(|_| refuse(text));
        arguments.get(place).map(parse).transpose()
    };
    let count = number(0)?.and_then(|count| usize::try_from(count).ok());
    Ok((count, number(1)?.unwrap_or(0)))
}

/// Gives the items to so many threads; a thread ends at its first error.
fn share_among<T: Send>(
    workers: usize,
    items: Vec<T>,
    task: impl Fn(usize, T) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (queue, failed) = (Mutex::new(items), Mutex::new(None));
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (queue, failed, task) = (&queue, &failed, &task);
            scope.spawn(move || {
                // A `while let` would hold the lock until the item has been looked at.
                loop {
                    let Some(item) = locked(queue).pop() else {
                        return;
                    };
                    if let Err(error) = task(worker, item) {
                        locked(failed).get_or_insert(error);
                        return;
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_default().map_or(Ok(()), Err)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
