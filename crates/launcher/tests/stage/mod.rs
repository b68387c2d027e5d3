//! A JDK that is none: `bin/java` is the probe of `examples`, `release` says 17.

// Each test program uses only some parts.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The launcher under test.
pub const LAUNCHER: &str = env!("CARGO_BIN_EXE_loadline-launch");

/// A directory with the fake JDK.
pub struct Stage {
    directory: tempfile::TempDir,
}

impl Stage {
    /// Sets it up.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path();
        std::fs::create_dir(home.join("bin")).expect("a fresh directory");
        // By another process: a program that this one has open for writing is busy, and stays so in
        // every child that another test forks meanwhile.
        let copied = Command::new("cp")
            .args([probe(), home.join("bin/java")])
            .status();
        assert!(
            copied.is_ok_and(|status| status.success()),
            "the probe is built with the tests"
        );
        std::fs::write(home.join("release"), "JAVA_VERSION=\"17.0.15\"\n").expect("a fresh file");
        Self { directory }
    }

    /// The fake java.
    pub fn java(&self) -> PathBuf {
        self.directory.path().join("bin/java")
    }

    /// The launcher, quiet, with the probe doing `what`; no variable of the outside is passed.
    pub fn launcher(&self, what: &str) -> Command {
        let mut command = Command::new(LAUNCHER);
        command
            .env_clear()
            .env("PROBE", what)
            .env("LOADLINE_LOG", "quiet")
            .env("PATH", "/usr/bin:/bin");
        command
    }
}

fn probe() -> PathBuf {
    let directory = Path::new(LAUNCHER)
        .parent()
        .expect("the launcher lies in a directory");
    directory.join("examples/probe")
}
