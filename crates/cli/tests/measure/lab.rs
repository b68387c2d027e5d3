//! A place for one test: a separate state directory, and a loadline that can be distinguished from
//! any other on this machine.
//!
//! loadline runs from a link inside the lab's directory. So does everything that it starts, and the
//! applications name the directory in their command line: leftovers of a trial are found by that
//! name ([`crate::traces`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Call;

/// Directory, store and program of one test.
pub struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    pub fn new() -> Self {
        // Beside the program, so that it can be linked instead of copied.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let lab = Self { directory };
        fs::hard_link(env!("CARGO_BIN_EXE_loadline"), lab.program()).expect("a link");
        lab
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn program(&self) -> PathBuf {
        self.path().join("loadline")
    }

    /// Where results are kept.
    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    /// loadline with exactly these arguments, called in the lab's directory.
    pub fn bare(&self, arguments: &[&str]) -> Call {
        // Where the tests run under nohup, loadline would ignore SIGHUP too.
        let mut command = Command::new("env");
        command
            .arg("--default-signal=HUP")
            .arg(self.program())
            .args(arguments)
            .current_dir(self.path())
            .env_remove("LOADLINE_STATE");
        Call::new(command)
    }

    /// The same with a variable of loadline's environment, `NAME=VALUE`.
    pub fn with_variable(&self, subcommand: &str, variable: &str) -> Call {
        let mut command = Command::new("env");
        command
            .arg(variable)
            .arg(self.program())
            .arg(subcommand)
            .current_dir(self.path())
            .env_remove("LOADLINE_STATE");
        Call::new(command).arg("--state").arg(self.state())
    }

    /// The same where the machine's cgroups cannot be seen.
    pub fn without_cgroups(&self, subcommand: &str) -> Call {
        let call = self.without_cgroups_bare(subcommand);
        call.arg("--state").arg(self.state()).args(&QUICK)
    }

    /// The same without a flag.
    pub fn without_cgroups_bare(&self, subcommand: &str) -> Call {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c"])
            .arg("mount -t tmpfs none /sys/fs/cgroup && exec \"$0\" \"$@\"")
            .arg(self.program())
            .arg(subcommand)
            .current_dir(self.path())
            .env_remove("LOADLINE_STATE");
        Call::new(command)
    }

    /// All files of its store.
    pub fn files(&self) -> Vec<PathBuf> {
        files(&self.state())
    }

    /// A subcommand on this lab's store.
    pub fn call(&self, subcommand: &str) -> Call {
        self.bare(&[subcommand]).arg("--state").arg(self.state())
    }

    /// A subcommand that measures: trials of a fraction of a second that judge next to nothing.
    /// The application's command comes last ([`Call::zoo`]). A search finds the memory alone.
    pub fn measure(&self, subcommand: &str) -> Call {
        let flags: &[&str] = if subcommand == "size" {
            &["--cpu=none"]
        } else {
            &[]
        };
        self.call(subcommand).args(&QUICK).args(flags)
    }

    /// A search for the memory of an application that needs 34 MiB: the answer is 48 MiB, the 40
    /// that suffice and the margin, in steps of 8.
    pub fn size(&self) -> Call {
        self.size_with(&[])
    }

    /// The same with more flags.
    pub fn size_with(&self, flags: &[&str]) -> Call {
        let search = ["--min-memory=8Mi", "--max-memory=96Mi", "--step=16Mi"];
        let counts = ["--confirm=3", "--prove=2"];
        self.measure("size")
            .args(&search)
            .args(&counts)
            .args(flags)
            .zoo(self, &["serve", "heap_mib=34"])
    }

    /// The command of an application of the zoo: mode and settings, and this lab's name.
    pub fn application(&self, arguments: &[&str]) -> Vec<String> {
        let own = std::env::current_exe().expect("this program");
        let mark = format!("mark={}", self.path().display());
        let command = [own.display().to_string(), "zoo".to_owned()];
        let arguments = arguments.iter().map(|a| (*a).to_owned());
        command.into_iter().chain(arguments).chain([mark]).collect()
    }

    /// What `list --json` says, newest first.
    pub fn results(&self) -> Vec<serde_json::Value> {
        let listed = self.call("list").arg("--json").into_end().expect_code(0);
        let results = listed.json()["results"].take();
        serde_json::from_value(results).expect("an array")
    }

    /// A result as `show --json` has it.
    pub fn result(&self, id: &str) -> serde_json::Value {
        let call = self.call("show").arg(id).arg("--json");
        call.into_end().expect_code(0).json()
    }

    /// The trial that counts of the newest result: on a busy machine others may stand before it.
    pub fn trial(&self) -> serde_json::Value {
        let mut result = self.result("last");
        let trials = result["trials"].as_array_mut().expect("trials");
        trials.pop().expect("a trial")
    }
}

/// Whether this is a right answer of a search in [`Lab::size`]. The service holds 37 MiB that no reclaim
/// takes away. Its program is a file of up to 23 MiB in use, which counts unless another process has
/// already paid for its pages.
pub fn is_answer(size: Option<u64>) -> bool {
    size.is_some_and(|size| (40 << 20..=64 << 20).contains(&size))
}

/// Short trials with an SLO that a busy machine keeps too: these tests are about what loadline
/// does, not about how fast the machine is. An SLO without a latency does not ask whether the
/// application kept up, and one stall of the machine may outlast a whole load.
pub const QUICK: [&str; 8] = [
    "--wait",
    "--accept-noise",
    "--slo=errors<99%",
    "--rate=50/s",
    "--warm-up=0s",
    "--measure=300ms",
    "--start-deadline=20s",
    "--url=http://localhost:8080/",
];

/// The recommended memory in a result, if there is one.
pub fn recommended(result: &serde_json::Value) -> Option<u64> {
    result["recommendation"]["configuration"]["memory_bytes"].as_u64()
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    let below = entries.map(|entry| entry.path()).flat_map(|path| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    below.filter(|path| path.is_file()).collect()
}
