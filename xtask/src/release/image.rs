//! Images of the programs, from the Dockerfile, as archives that podman and docker load.

use std::path::{Path, PathBuf};

use super::Release;
use super::pack::{copy, tar};
use super::programs::Programs;
use crate::error::Error;
use crate::process::stdout_of;

/// An image: its name, and the stage of the Dockerfile that makes it (the last without a name).
pub struct Image {
    pub name: &'static str,
    stage: Option<&'static str>,
    flags: &'static [&'static str],
}

pub const IMAGES: [Image; 2] = [
    Image {
        name: "loadline",
        stage: None,
        // It steps out of its container before anything else.
        flags: &[
            "--privileged",
            "--pid=host",
            "--network=host",
            "--cgroupns=host",
            "--pids-limit=-1",
        ],
    },
    Image {
        name: "loadline-launch",
        stage: Some("launcher"),
        flags: &["--network=none"],
    },
];

impl Image {
    pub fn file(&self, release: &Release, programs: &Programs) -> PathBuf {
        let (version, architecture) = (&release.version, programs.architecture.name());
        let name = format!("{}-{version}-{architecture}.oci.tar", self.name);
        release.out.join(name)
    }

    pub fn tagged(&self, release: &Release) -> String {
        format!("localhost/{}:{}", self.name, release.version)
    }
}

pub fn save(release: &Release, programs: &Programs) -> Result<(), Error> {
    let context = release.empty("context")?;
    copy(&programs.loadline, &context.join("loadline"))?;
    copy(&programs.launcher, &context.join("loadline-launch"))?;
    for image in IMAGES {
        let mut build = release.command("podman");
        let architecture = programs.architecture.short();
        build
            .args(["build", "--quiet", "--file=Dockerfile"])
            .arg(format!("--timestamp={}", release.epoch))
            .arg(format!("--platform=linux/{architecture}"))
            .arg(format!("--tag={}", image.tagged(release)))
            .args(image.stage.map(|stage| format!("--target={stage}")));
        stdout_of(build.arg(&context))?;
        // As a directory, packed here: the engine's own archive has the time of packing in it.
        let layout = release.empty("layout")?;
        let mut save = release.command("podman");
        save.args(["save", "--quiet", "--format=oci-dir", "--output"]);
        stdout_of(save.arg(&layout).arg(image.tagged(release)))?;
        let names = ["oci-layout", "index.json", "blobs"];
        let mut pack = tar(release, &image.file(release, programs));
        stdout_of(pack.arg("-C").arg(&layout).args(names))?;
        remove(release, &image)?;
    }
    Ok(())
}

pub fn remove(release: &Release, image: &Image) -> Result<(), Error> {
    let mut remove = release.command("podman");
    stdout_of(remove.args(["rmi", "--force", &image.tagged(release)])).map(drop)
}

pub fn run(
    release: &Release,
    image: &Image,
    file: &Path,
    arguments: &[&str],
) -> Result<String, Error> {
    let mut load = release.command("podman");
    stdout_of(load.args(["load", "--quiet", "--input"]).arg(file))?;
    let mut run = release.command("podman");
    run.args(["--runtime=runc", "--cgroup-manager=cgroupfs", "run", "--rm"])
        // loadline raises its own; the engine's own defaults may be above what this machine allows.
        .args(["--ulimit=nofile=20000:20000", "--ulimit=nproc=32768:32768"])
        .args(image.flags)
        .arg(image.tagged(release))
        .args(arguments);
    let said = stdout_of(&mut run);
    remove(release, image)?;
    said
}
