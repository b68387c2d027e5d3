//! Build script of both programs: the text that `--version` adds, as `LOADLINE_VERSION`.
//!
//! Commit and date come from `LOADLINE_COMMIT` and `SOURCE_DATE_EPOCH` if they are set (a build
//! outside git), else from git; the same sources give the same words whenever they are built. A
//! debug build uses neither: otherwise each commit would rebuild both programs.

use std::env;
use std::process::Command;

fn main() {
    for name in ["LOADLINE_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    println!("cargo:rerun-if-changed=../version.rs");
    let optimised = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let git = |words: &[&str]| git(words).filter(|_| optimised);
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = env::var("LOADLINE_COMMIT").ok().or_else(|| {
        let form = ["--always", "--dirty", "--abbrev=10", "--exclude=*"];
        git(&[&["describe"], &form[..]].concat())
    });
    let epoch = env::var("SOURCE_DATE_EPOCH")
        .ok()
        .or_else(|| git(&["log", "-1", "--format=%ct"]));
    let date = epoch.and_then(|seconds| seconds.parse().ok()).map(date);
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let mut beside = Vec::from_iter(commit.filter(|commit| !commit.is_empty()));
    beside.extend(date);
    if !optimised {
        beside.push("debug build".to_owned());
    }
    let said = if beside.is_empty() {
        version
    } else {
        format!("{version} ({})", beside.join(", "))
    };
    println!("cargo:rustc-env=LOADLINE_VERSION={said}");
}

/// git's output for this checkout; `None` without git or a checkout of loadline (a source tree
/// unpacked inside another repository must not use that repository's commit).
fn git(words: &[&str]) -> Option<String> {
    let run = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    run(&["ls-files", "--error-unmatch", "../version.rs"])?;
    run(words)
}

/// The day of a time in seconds since 1970, UTC, as 2026-11-23.
///
/// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
