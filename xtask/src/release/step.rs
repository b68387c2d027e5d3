//! The step `release` of a test run: what the tests have built, with a launcher that is static, is
//! packed twice, with the same bytes, and tried as a release is. The launcher is built as it is shipped,
//! here and elsewhere, and compared. The programs of a release are `cargo xtask release`'s.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::programs::Architecture;
use super::{Release, check, programs, reproduce};
use crate::error::Error;
use crate::process::{output_of, stdout_of};
use crate::test::output::Counts;

const TOOLS: [(&str, &str); 3] = [
    ("dpkg-deb", "dpkg"),
    ("rpmbuild", "rpm"),
    ("podman", "podman"),
];

pub fn run(root: &Path) -> Result<Counts, Error> {
    for (tool, package) in TOOLS {
        if output_of(Command::new(tool).arg("--version")).is_err() {
            let reason = format!("no {tool} in PATH (Debian package {package})");
            return Ok(Counts::one_skipped("release", &reason));
        }
    }
    let target = Architecture::here()?.target();
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "list", "--installed"]);
    let installed = stdout_of(rustup.current_dir(root))?;
    if !installed.lines().any(|line| line == target) {
        let reason = format!("Rust's libraries for {target} are not installed (make setup)");
        return Ok(Counts::one_skipped("release", &reason));
    }
    let release = Release::new(root, &root.join("build/test/release"), None)?;
    let all = [programs::tested(&release)?];
    release.make(&all)?;
    let first = sums(&release)?;
    release.make(&all)?;
    let again = sums(&release)?;
    let other: Vec<&str> = again.lines().filter(|line| !first.contains(line)).collect();
    let architecture = Architecture::here()?;
    let launcher = reproduce::once(&release, architecture, "step")?;
    let mut counts = match reproduce::is_same(&release, architecture, "step", &launcher) {
        Ok(sum) => {
            println!("{sum}  loadline-launch, built here and elsewhere");
            Counts::one_passed()
        }
        Err(error) => {
            eprintln!("release: {error}");
            Counts::one_failed("release: the launcher elsewhere")
        }
    };
    counts.add(match other.as_slice() {
        [] => Counts::one_passed(),
        other => {
            let other = other.join("\n");
            eprintln!("release: other bytes when packed again:\n{other}");
            Counts::one_failed("release: the same bytes again")
        }
    });
    for (name, outcome) in check::all(&release, &all) {
        counts.add(match outcome {
            Ok(_) => Counts::one_passed(),
            Err(error) => {
                eprintln!("release {name}: {error}");
                Counts::one_failed(&format!("release: {name}"))
            }
        });
    }
    for directory in [&release.out, &release.work] {
        fs::remove_dir_all(directory).map_err(Error::file(directory))?;
    }
    Ok(counts)
}

fn sums(release: &Release) -> Result<String, Error> {
    let path = release.out.join("SHA256SUMS");
    fs::read_to_string(&path).map_err(Error::file(path))
}
