//! The launcher built once more, from a copy of the sources in another directory, with nothing built
//! before: whoever has the sources can see that the program that is shipped is theirs.
//!
//! Owns the copy and the comparison. loadline itself has C code of others and is not compared.

use std::fs;
use std::path::{Path, PathBuf};

use super::Release;
use super::programs::{Architecture, cargo};
use crate::error::Error;
use crate::process::stdout_of;

const SOURCES: [&str; 9] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "crates",
    "docs/reference/launcher.md",
    "fuzz",
    "rust-toolchain.toml",
    "tests/zoo",
    "xtask",
];

pub fn once(release: &Release, architecture: Architecture, commit: &str) -> Result<PathBuf, Error> {
    let target = release.empty("once")?;
    build(release, &release.root, architecture, commit, &target)
}

pub fn is_same(
    release: &Release,
    architecture: Architecture,
    commit: &str,
    first: &Path,
) -> Result<String, Error> {
    let tree = release.empty("elsewhere/as-another/would")?;
    for name in SOURCES {
        let to = tree.join(name);
        let above = to.parent().unwrap_or(&tree);
        fs::create_dir_all(above).map_err(Error::file(above))?;
        let mut copy = release.command("cp");
        stdout_of(copy.arg("-r").arg(release.root.join(name)).arg(&to))?;
    }
    let again = build(release, &tree, architecture, commit, &tree.join("target"))?;
    let sums = [sum(release, first)?, sum(release, &again)?];
    match sums {
        [one, other] if one == other => Ok(one),
        [one, other] => Err(Error::output(
            format!("a second build of {}, elsewhere", first.display()),
            format!("other bytes than the first: {one} and {other}"),
        )),
    }
}

fn build(
    release: &Release,
    tree: &Path,
    architecture: Architecture,
    commit: &str,
    target: &Path,
) -> Result<PathBuf, Error> {
    let mut cargo = cargo(release, tree, architecture);
    cargo
        .args(["build", "--quiet", "--locked", "--profile=launcher"])
        .args(["-p", "loadline-launcher", "--target"])
        .args([&architecture.target(), "--target-dir"])
        .arg(target)
        .current_dir(tree)
        .env("LOADLINE_COMMIT", commit);
    stdout_of(&mut cargo)?;
    let built = target.join(architecture.target());
    Ok(built.join("launcher/loadline-launch"))
}

pub fn sum(release: &Release, path: &Path) -> Result<String, Error> {
    let said = stdout_of(release.command("sha256sum").arg(path))?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}
