//! The two programs, built static for a machine with musl; C code in crates by zig, linked by
//! Rust's own linker, so that every architecture is built on any.
//!
//! Paths of this machine are taken out of the programs: another checkout gives the same bytes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Release, reproduce};
use crate::error::Error;
use crate::process::{output_of, stdout_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    pub fn short(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub fn here() -> Result<Self, Error> {
        Self::read(std::env::consts::ARCH)
    }

    pub fn read(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| Error::Usage(format!("{name} is neither x86_64 nor aarch64")))
    }

    pub fn target(self) -> String {
        format!("{}-unknown-linux-musl", self.name())
    }

    pub fn runs(self, program: &Path) -> Result<Command, Error> {
        if self == Self::here()? {
            return Ok(Command::new(program));
        }
        let mut qemu = Command::new(format!("qemu-{}-static", self.name()));
        qemu.arg(program);
        Ok(qemu)
    }
}

pub struct Programs {
    pub architecture: Architecture,
    pub loadline: PathBuf,
    pub launcher: PathBuf,
    pub is_released: bool,
}

pub fn released(release: &Release, architecture: Architecture) -> Result<Programs, Error> {
    let target = target_directory(release)?;
    let mut rustup = release.command("rustup");
    stdout_of(rustup.args(["target", "add", &architecture.target()]))?;
    let zig = zig(release)?;
    let build = |arguments: &[&str]| {
        let mut cargo = cargo(release, &release.root, architecture);
        with_zig(&mut cargo, release, &zig, architecture);
        cargo.args(["build", "--locked", "--target", &architecture.target()]);
        cargo.args(arguments).arg("--target-dir").arg(&target);
        stdout_of(&mut cargo)
    };
    build(&["--release", "-p", "loadline-cli"])?;
    build(&["--profile=launcher", "-p", "loadline-launcher"])?;
    let built = target.join(architecture.target());
    let programs = Programs {
        architecture,
        loadline: built.join("release/loadline"),
        launcher: built.join("launcher/loadline-launch"),
        is_released: true,
    };
    let mut own = architecture.runs(&programs.launcher)?;
    let version = stdout_of(own.arg("--version"))?;
    let sum = reproduce::is_same(release, architecture, commit(&version), &programs.launcher)?;
    println!("{sum}  loadline-launch, twice");
    Ok(programs)
}

fn commit(version: &str) -> &str {
    let inside = version.split_once('(').map_or("", |(_, rest)| rest);
    inside.split_once(',').map_or("", |(commit, _)| commit)
}

/// What the tests have built anyway, and a debug build of the launcher with musl, which needs no
/// other compiler: enough to try packing and installing.
pub fn tested(release: &Release) -> Result<Programs, Error> {
    let target = target_directory(release)?;
    let architecture = Architecture::here()?;
    let build = |arguments: &[&str]| {
        let mut cargo = release.command("cargo");
        // As the tests build it, or both would be rebuilt each time.
        cargo.env_remove("SOURCE_DATE_EPOCH");
        cargo.args(["build", "--locked"]).args(arguments);
        cargo.arg("--target-dir").arg(&target);
        stdout_of(&mut cargo)
    };
    let musl = architecture.target();
    build(&["-p", "loadline-cli"])?;
    build(&["-p", "loadline-launcher", "--target", &musl])?;
    let bare = release.empty("bare")?;
    let strip = |built: PathBuf, name: &str| {
        let to = bare.join(name);
        let mut strip = release.command("strip");
        stdout_of(strip.arg("-o").arg(&to).arg(built)).map(|_| to)
    };
    let launcher = target.join(&musl).join("debug/loadline-launch");
    Ok(Programs {
        architecture,
        loadline: strip(target.join("debug/loadline"), "loadline")?,
        launcher: strip(launcher, "loadline-launch")?,
        is_released: false,
    })
}

/// cargo for that architecture, in a source tree with a place that the programs do not name.
pub fn cargo(release: &Release, tree: &Path, architecture: Architecture) -> Command {
    let (home, root) = (cargo_home(), tree.display());
    let of_target = format!("{}_unknown_linux_musl", architecture.name());
    let linker = format!("CARGO_TARGET_{}_LINKER", of_target.to_uppercase());
    let flags = format!("--remap-path-prefix={home}=/cargo --remap-path-prefix={root}=/loadline");
    let mut cargo = release.command("cargo");
    cargo
        .env(linker, "rust-lld")
        .env("RUSTFLAGS", flags)
        .stderr(Stdio::inherit());
    cargo
}

fn with_zig(cargo: &mut Command, release: &Release, zig: &Path, architecture: Architecture) {
    let (home, root) = (cargo_home(), release.root.display());
    let (zig, name) = (zig.display(), architecture.name());
    let of_target = format!("{name}_unknown_linux_musl");
    let compiler = format!("{root}/scripts/zig-cc.sh {zig} {name}-linux-musl");
    let mapped = format!("-g0 -ffile-prefix-map={home}=/cargo -ffile-prefix-map={root}=/loadline");
    cargo
        .env(format!("CC_{of_target}"), compiler)
        .env(format!("AR_{of_target}"), format!("{zig} ar"))
        .env(format!("CFLAGS_{of_target}"), mapped)
        .env("ZIG_GLOBAL_CACHE_DIR", release.root.join("build/zig"));
}

fn zig(release: &Release) -> Result<PathBuf, Error> {
    let zig = release.root.join("build/wheels/ziglang/ziglang/zig");
    let tried = output_of(Command::new(&zig).arg("version"))?;
    let hint = "zig does not run\nhint: scripts/setup.sh release";
    match tried.status.success() {
        true => Ok(zig),
        false => Err(Error::Usage(hint.to_owned())),
    }
}

fn cargo_home() -> String {
    std::env::var("CARGO_HOME").unwrap_or_else(|_| {
        let home = std::env::var("HOME").unwrap_or_default();
        format!("{home}/.cargo")
    })
}

fn target_directory(release: &Release) -> Result<PathBuf, Error> {
    let own = std::env::current_exe().map_err(Error::file("xtask"))?;
    let directory = own.parent().and_then(Path::parent);
    Ok(directory.map_or_else(|| release.root.join("target"), Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the build script of both programs says in that directory.
    fn version(script: &Path, at: &Path, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(script);
        command.current_dir(at).env("CARGO_PKG_VERSION", "1.2.3");
        command.env_remove("LOADLINE_COMMIT");
        command.env_remove("SOURCE_DATE_EPOCH");
        command.envs(variables.iter().copied());
        let said = stdout_of(&mut command).unwrap();
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("cargo:rustc-env="));
        line.unwrap().to_owned()
    }

    #[test]
    fn the_version_has_commit_and_date_of_git_or_of_the_environment() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("version");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2024", "-o"]).arg(&script);
        stdout_of(rustc.arg(root.join("crates/version.rs"))).unwrap();

        let released = ("PROFILE", "release");
        let outside = |variables: &[_]| version(&script, place.path(), variables);
        assert_eq!(outside(&[released]), "LOADLINE_VERSION=1.2.3");
        // A leap day.
        let given = [
            ("LOADLINE_COMMIT", "abc"),
            ("SOURCE_DATE_EPOCH", "1709251199"),
        ];
        assert_eq!(
            outside(&[released, given[0], given[1]]),
            "LOADLINE_VERSION=1.2.3 (abc, 2024-02-29)"
        );
        let debug = ("PROFILE", "debug");
        assert_eq!(outside(&[debug]), "LOADLINE_VERSION=1.2.3 (debug build)");

        let inside = version(&script, &root.join("crates/cli"), &[released]);
        let mut git = Command::new("git");
        git.args([
            "log",
            "-1",
            "--date=format-local:%Y-%m-%d",
            "--format=%h %cd",
            "--abbrev=10",
        ]);
        let Ok(of_git) = stdout_of(git.current_dir(root).env("TZ", "UTC")) else {
            // A checkout without its history: then there is nothing to say.
            assert_eq!(inside, "LOADLINE_VERSION=1.2.3");
            return;
        };
        let (commit, date) = of_git.trim().split_once(' ').unwrap();
        let clean = format!("LOADLINE_VERSION=1.2.3 ({commit}, {date})");
        let dirty = format!("LOADLINE_VERSION=1.2.3 ({commit}-dirty, {date})");
        assert!(inside == clean || inside == dirty, "{inside}, {clean}");
    }
}
