//! The program's Rust code is checked for the systems where it only reads: macOS and FreeBSD.
//!
//! Packages with C (ring, SQLite, zstd) would need these systems' headers: `true` stands in for
//! their compilers. It writes no object, so nothing can be linked, and nothing is.

use std::path::Path;
use std::process::Command;

use super::audit::judge;
use super::output::Counts;
use crate::error::Error;
use crate::process::output_of;

const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-unknown-freebsd"];

pub fn check_targets(root: &Path) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    for target in TARGETS {
        counts.add(check_target(root, target)?);
    }
    Ok(counts)
}

fn check_target(root: &Path, target: &str) -> Result<Counts, Error> {
    let mut add = Command::new("rustup");
    add.args(["target", "add", target]).current_dir(root);
    if !output_of(&mut add).is_ok_and(|added| added.status.success()) {
        let reason = "rustup cannot install this target";
        return Ok(Counts::one_skipped(target, reason));
    }
    let tool = |name: &str| format!("{name}_{}", target.replace('-', "_"));
    let mut check = Command::new("cargo");
    check
        .args(["check", "--locked", "-p", "loadline-cli"])
        .args(["--target", target])
        .envs([(tool("CC"), "true"), (tool("AR"), "true")])
        // cc asks Apple's tools for it otherwise.
        .env("SDKROOT", "/")
        .current_dir(root);
    Ok(judge(target, &output_of(&mut check)?))
}
