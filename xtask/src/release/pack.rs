//! Programs to files that people install: an archive, .deb and .rpm, a formula, the sums of all.
//!
//! Packages hold what `packaging/install.sh` installs from the archive, so there is one list of
//! where a file goes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::{Architecture, Programs};
use super::{Release, reproduce, sbom};
use crate::error::Error;
use crate::process::{entries, stdout_of};

pub fn archive(release: &Release, programs: &Programs) -> Result<(), Error> {
    let name = release.name(programs.architecture);
    let place = release.empty("archive")?;
    let tree = place.join(&name);
    fs::create_dir(&tree).map_err(Error::file(&tree))?;
    let mut pages = programs.architecture.runs(&programs.loadline)?;
    stdout_of(pages.arg("pages").arg(&tree))?;
    let page = tree.join("man/loadline-launch.1");
    fs::write(&page, launcher_page(programs)?).map_err(Error::file(&page))?;
    sbom::write(release, programs.architecture, &tree.join("sbom.cdx.json"))?;
    copy(&programs.loadline, &tree.join("loadline"))?;
    copy(&programs.launcher, &tree.join("loadline-launch"))?;
    copy(&release.root.join("LICENSE"), &tree.join("LICENSE"))?;
    let script = release.out.join("install.sh");
    copy(&release.root.join("packaging/install.sh"), &script)?;

    let to = release.out.join(format!("{name}.tar.gz"));
    let mut tar = tar(release, &to);
    tar.arg("--use-compress-program=gzip -6n");
    stdout_of(tar.arg("-C").arg(&place).arg(&name)).map(drop)
}

pub fn tar(release: &Release, to: &Path) -> Command {
    let mut tar = release.command("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u=rwX,go=rX", "--format=gnu"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg("-cf")
        .arg(to);
    tar
}

/// The launcher's man page: it has no argument library that would write one.
fn launcher_page(programs: &Programs) -> Result<String, Error> {
    let says = |word: &str| {
        let mut launcher = programs.architecture.runs(&programs.launcher)?;
        stdout_of(launcher.arg(word))
    };
    Ok(as_page(&says("--help")?, &says("variables")?))
}

fn as_page(help: &str, variables: &str) -> String {
    let verbatim = |text: &str| {
        let lines = text.lines().map(|line| {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            // A dot or a quote at its begin would be a request.
            match line.starts_with(['.', '\'']) {
                true => format!("\\&{line}\n"),
                false => format!("{line}\n"),
            }
        });
        format!(".nf\n{}.fi\n", lines.collect::<String>())
    };
    format!(
        ".TH loadline\\-launch 1\n.SH NAME\nloadline\\-launch \\- starts java with options that follow from the container's limits\n\
         .SH DESCRIPTION\n{}.SH ENVIRONMENT\n{}.SH SEE ALSO\nloadline(1)\n",
        verbatim(help),
        verbatim(variables)
    )
}

/// What install.sh installs from the archive, as `usr` of a directory.
pub fn tree(release: &Release, programs: &Programs) -> Result<PathBuf, Error> {
    let tree = release.empty("tree")?;
    let mut install = release.command("sh");
    let machine = programs.architecture.name();
    install.args(["packaging/install.sh", "--machine", machine, "--from"]);
    install.arg(&release.out).arg("--to").arg(tree.join("usr"));
    stdout_of(&mut install).map(|_| tree)
}

/// `loadline_VERSION_ARCHITECTURE.deb`.
pub fn deb(release: &Release, programs: &Programs, tree: &Path) -> Result<(), Error> {
    let root = release.empty("deb")?;
    let mut copy = release.command("cp");
    stdout_of(copy.arg("-a").arg(tree.join("usr")).arg(&root))?;
    // Debian's zsh looks there.
    let zsh = root.join("usr/share/zsh");
    let (from, to) = (zsh.join("site-functions"), zsh.join("vendor-completions"));
    fs::rename(&from, to).map_err(Error::file(from))?;
    let architecture = programs.architecture.short();
    let mut du = release.command("du");
    let size = stdout_of(du.args(["-sk", "--apparent-size"]).arg(&root))?;
    let size = size.split_whitespace().next().unwrap_or_default();
    let values = [("ARCHITECTURE", architecture), ("KILOBYTES", size)];
    let control = filled(release, "control", &values)?;
    let place = root.join("DEBIAN");
    fs::create_dir(&place).map_err(Error::file(&place))?;
    fs::write(place.join("control"), control).map_err(Error::file(&place))?;
    let name = format!("loadline_{}_{architecture}.deb", release.version);
    let mut deb = release.command("dpkg-deb");
    deb.args(["--root-owner-group", "-Zgzip", "-z6", "--build"]);
    stdout_of(deb.arg(&root).arg(release.out.join(name))).map(drop)
}

/// `loadline-VERSION-1.ARCHITECTURE.rpm`.
pub fn rpm(release: &Release, programs: &Programs, tree: &Path) -> Result<(), Error> {
    let architecture = programs.architecture.name();
    let top = release.empty("rpm")?;
    let mut rpm = release.command("rpmbuild");
    rpm.args(["-bb", "--quiet", "--target"]);
    rpm.arg(format!("{architecture}-linux"));
    let (top, tree) = (top.display().to_string(), tree.display().to_string());
    let defined = [
        ("_topdir", top.as_str()),
        ("_rpmdir", &top),
        ("_rpmfilename", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"),
        ("release_version", &release.version),
        ("release_tree", &tree),
        // Nothing of this machine: neither its name nor the time, nor what it would do to programs.
        ("_buildhost", "loadline"),
        ("use_source_date_epoch_as_buildtime", "1"),
        ("clamp_mtime_to_source_date_epoch", "1"),
        ("__os_install_post", "%{nil}"),
        ("debug_package", "%{nil}"),
        ("_build_id_links", "none"),
        ("_binary_payload", "w6.gzdio"),
    ];
    for (name, value) in defined {
        rpm.arg("--define").arg(format!("{name} {value}"));
    }
    stdout_of(rpm.arg("packaging/loadline.spec"))?;
    let name = format!("loadline-{}-1.{architecture}.rpm", release.version);
    copy(&Path::new(&top).join(&name), &release.out.join(&name))
}

/// Homebrew's formula, where every architecture was built: it names the sum of each archive.
pub fn formula(release: &Release, all: &[Programs]) -> Result<(), Error> {
    if all.len() < Architecture::ALL.len() {
        return Ok(());
    }
    let sum = |architecture| {
        let archive = format!("{}.tar.gz", release.name(architecture));
        reproduce::sum(release, &release.out.join(archive))
    };
    let values = [
        ("ADDRESS", release.address.as_str()),
        ("SHA256_X86_64", &sum(Architecture::X86_64)?),
        ("SHA256_AARCH64", &sum(Architecture::Aarch64)?),
    ];
    let text = filled(release, "loadline.rb", &values)?;
    let to = release.out.join("loadline.rb");
    fs::write(&to, text).map_err(Error::file(&to))
}

fn filled(release: &Release, name: &str, values: &[(&str, &str)]) -> Result<String, Error> {
    let path = release.root.join("packaging").join(name);
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let version = [("VERSION", release.version.as_str())];
    let values = version.iter().chain(values);
    Ok(values.fold(text, |text, (name, value)| {
        text.replace(&format!("@{name}@"), value)
    }))
}

pub fn sums(release: &Release) -> Result<(), Error> {
    let to = release.out.join("SHA256SUMS");
    let paths = entries(&release.out)?;
    let names = paths.iter().filter_map(|path| path.file_name());
    let names = names.filter(|name| *name != "SHA256SUMS");
    let mut sha256sum = release.command("sha256sum");
    let text = stdout_of(sha256sum.arg("--").args(names).current_dir(&release.out))?;
    fs::write(&to, text).map_err(Error::file(&to))
}

pub fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::copy(from, to).map(drop).map_err(Error::file(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_request_of_the_page_is_text() {
        let page = as_page("a --flag\n.hidden\n'quoted\n", "A\\B\n");
        assert!(
            page.contains("a \\-\\-flag\n\\&.hidden\n\\&'quoted\n"),
            "{page}"
        );
        assert!(page.contains("A\\eB\n"), "{page}");
    }
}
