//! `cargo xtask release`: the installable files, built, packed and tried.
//!
//! Programs come from [`programs`], everything else is made from a [`Release`]'s programs: an
//! archive, packages, images and a list of their contents ([`pack`], [`image`], [`sbom`]), and
//! tried as its user would ([`check`]). The same sources give the same bytes: times are the
//! commit's.

mod check;
mod image;
mod pack;
mod programs;
mod reproduce;
mod sbom;
pub mod step;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process::{empty, stdout_of};
use programs::{Architecture, Programs};

pub struct Release {
    root: PathBuf,
    out: PathBuf,
    work: PathBuf,
    version: String,
    epoch: String,
    address: String,
}

impl Release {
    fn new(root: &Path, out: &Path, address: Option<String>) -> Result<Self, Error> {
        let manifest = root.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(Error::file(&manifest))?;
        let version = text
            .lines()
            .find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'))
            .unwrap_or_default();
        let address = address.unwrap_or_else(|| format!("file://{}", out.display()));
        let release = Self {
            root: root.to_owned(),
            out: out.to_owned(),
            work: root.join("build/release.work"),
            version: version.to_owned(),
            epoch: epoch(root),
            address,
        };
        may_be_emptied(out, &root.join("build"))?;
        empty(&release.out)?;
        empty(&release.work)?;
        Ok(release)
    }

    fn name(&self, architecture: Architecture) -> String {
        format!("loadline-{}-{}", self.version, architecture.name())
    }

    fn empty(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.work.join(name);
        empty(&directory).map(|()| directory)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("SOURCE_DATE_EPOCH", &self.epoch)
            .env("LC_ALL", "C");
        command
    }

    fn make(&self, all: &[Programs]) -> Result<(), Error> {
        for programs in all {
            pack::archive(self, programs)?;
            pack::sums(self)?;
            let tree = pack::tree(self, programs)?;
            pack::deb(self, programs, &tree)?;
            pack::rpm(self, programs, &tree)?;
            image::save(self, programs)?;
        }
        pack::formula(self, all)?;
        pack::sums(self)
    }
}

/// The commit's time; `SOURCE_DATE_EPOCH` where it is set; outside git the first second of all.
fn epoch(root: &Path) -> String {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root);
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let seconds = given.or_else(|| stdout_of(&mut git).ok());
    seconds.map_or_else(|| "0".to_owned(), |seconds| seconds.trim().to_owned())
}

/// A directory is emptied for a release only where it is one, or nothing, or below `build`.
fn may_be_emptied(out: &Path, build: &Path) -> Result<(), Error> {
    let is_empty = fs::read_dir(out).map_or(true, |mut entries| entries.next().is_none());
    if is_empty || out.starts_with(build) || out.join("SHA256SUMS").is_file() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{} holds something else than a release\nhint: --out takes a directory that is empty, new, or of an earlier release",
        out.display()
    )))
}

pub fn run(root: &Path, arguments: &[String]) -> Result<bool, Error> {
    let mut architectures = Vec::new();
    let mut out = root.join("build/release");
    let mut address = None;
    for pair in arguments.chunks(2) {
        match pair {
            [flag, value] if flag == "--target" => architectures.push(Architecture::read(value)?),
            [flag, value] if flag == "--out" => {
                out = std::path::absolute(value).map_err(Error::file(value))?
            }
            [flag, value] if flag == "--address" => address = Some(value.clone()),
            _ => {
                let arguments = arguments.join(" ");
                return Err(Error::Usage(format!(
                    "release {arguments}\nhint: cargo xtask release [--target x86_64] [--target aarch64] [--out DIRECTORY] [--address URL]"
                )));
            }
        }
    }
    if architectures.is_empty() {
        architectures = Architecture::ALL.to_vec();
    }
    let release = Release::new(root, &out, address)?;
    let mut all = Vec::new();
    for architecture in architectures {
        println!("{}: programs", architecture.name());
        all.push(programs::released(&release, architecture)?);
    }
    println!("archives, packages, images");
    release.make(&all)?;
    let mut is_right = true;
    for (name, outcome) in check::all(&release, &all) {
        is_right &= outcome.is_ok();
        match outcome {
            Ok(said) => println!("ok   {name}: {said}"),
            Err(error) => println!("FAIL {name}: {error}"),
        }
    }
    fs::remove_dir_all(&release.work).map_err(Error::file(&release.work))?;
    println!("{}", out.display());
    Ok(is_right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_something_else_is_not_emptied() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path();
        let build = Path::new("/checkout/build");
        let may_be_emptied = |out: &Path| may_be_emptied(out, build);
        assert!(may_be_emptied(&out.join("new")).is_ok());
        assert!(may_be_emptied(out).is_ok());
        fs::write(out.join("thesis.txt"), "").unwrap();
        let refused = may_be_emptied(out).unwrap_err().to_string();
        assert!(
            refused.contains("something else than a release"),
            "{refused}"
        );
        fs::write(out.join("SHA256SUMS"), "").unwrap();
        assert!(may_be_emptied(out).is_ok());
    }
}
