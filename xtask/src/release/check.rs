//! A release tried as its users would: sums, programs, packages put in and taken out, images run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::programs::{Architecture, Programs};
use super::{Release, image};
use crate::error::Error;
use crate::process::{output_of, stdout_of, text};

pub type Outcome = (String, Result<String, Error>);

type Check = fn(&Release, &Programs) -> Result<String, Error>;

const CHECKS: [(&str, Check); 7] = [
    ("programs", programs),
    ("install.sh", script),
    ("pages", pages),
    ("sbom", sbom),
    (".deb", deb),
    (".rpm", rpm),
    ("images", images),
];

pub fn all(release: &Release, all: &[Programs]) -> Vec<Outcome> {
    let mut outcomes = vec![("SHA256SUMS".to_owned(), sums(release))];
    for programs in all {
        for (name, check) in CHECKS {
            let name = format!("{} {name}", programs.architecture.name());
            outcomes.push((name, check(release, programs)));
        }
    }
    outcomes
}

fn wrong<T>(what: impl Into<String>, detail: impl ToString) -> Result<T, Error> {
    Err(Error::output(what, detail))
}

fn sums(release: &Release) -> Result<String, Error> {
    let mut check = release.command("sha256sum");
    check
        .args(["--strict", "--check", "SHA256SUMS"])
        .current_dir(&release.out);
    let files = stdout_of(&mut check)?.lines().count();
    Ok(format!("{files} files"))
}

/// Both programs do what needs no container, on their own processor or an emulated one.
fn programs(release: &Release, programs: &Programs) -> Result<String, Error> {
    let run = |program: &Path, arguments: &[&str], expected: &str| {
        let mut command = programs.architecture.runs(program)?;
        let said = stdout_of(command.args(arguments))?;
        match said.contains(expected) {
            true => Ok(said),
            false => wrong(text(&command), format!("no `{expected}` in: {said}")),
        }
    };
    let archive = format!("{}.tar.gz", release.name(programs.architecture));
    let mut tar = release.command("tar");
    tar.arg("-xzf").arg(release.out.join(archive)).arg("-C");
    stdout_of(tar.arg(release.empty("unpacked")?))?;
    let tree = unpacked(release, programs);
    let (loadline, launcher) = (tree.join("loadline"), tree.join("loadline-launch"));
    let own = format!("loadline {}", release.version);
    let version = run(&loadline, &["--version"], &own)?;
    let own = version.replace("loadline", "loadline-launch");
    run(&launcher, &["--version"], &own)?;
    let predict = ["predict", "--memory=512Mi", "--cpu=1", "--jdk=17"];
    run(&loadline, &predict, "heap")?;
    let calculate = ["calc", "--memory=1Gi", "--cpus=2", "--jdk=17"];
    run(&launcher, &calculate, "-Xmx")?;
    let mut doctor = programs.architecture.runs(&loadline)?;
    let doctor = output_of(doctor.arg("doctor"))?;
    // 3: a machine that cannot measure, which it says.
    if !matches!(doctor.status.code(), Some(0 | 3)) || doctor.stdout.is_empty() {
        return wrong("loadline doctor", String::from_utf8_lossy(&doctor.stderr));
    }
    if programs.is_released {
        for program in [&loadline, &launcher] {
            is_bare(release, program)?;
        }
    }
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len() >> 10);
    let (version, sizes) = (version.trim(), [size(&loadline), size(&launcher)]);
    Ok(format!("{version}, {} KiB and {} KiB", sizes[0], sizes[1]))
}

/// Where [`programs`] has unpacked the archive.
fn unpacked(release: &Release, programs: &Programs) -> PathBuf {
    let name = release.name(programs.architecture);
    release.work.join("unpacked").join(name)
}

fn is_bare(release: &Release, program: &Path) -> Result<(), Error> {
    let headers = stdout_of(release.command("readelf").arg("-lW").arg(program))?;
    let name = program.display().to_string();
    if headers.contains("INTERP") {
        return wrong(name, "it needs a loader: it is not static");
    }
    let bytes = fs::read(program).map_err(Error::file(program))?;
    let root = release.root.display().to_string();
    let mut windows = bytes.windows(root.len());
    match windows.any(|window| window == root.as_bytes()) {
        true => wrong(name, format!("it names {root}")),
        false => Ok(()),
    }
}

/// It installs into a prefix, removes all files again, and refuses an archive with other bytes.
fn script(release: &Release, programs: &Programs) -> Result<String, Error> {
    let prefix = release.empty("prefix")?;
    let machine = programs.architecture.name();
    let script = |from: &Path, more: &[&str]| {
        let mut script = release.command("sh");
        script.arg(release.out.join("install.sh")).arg("--to");
        script.arg(&prefix).args(["--machine", machine, "--from"]);
        script.arg(from).args(more);
        script
    };
    stdout_of(&mut script(&release.out, &[]))?;
    let installed = files(&prefix)?.len();
    let mut own = programs.architecture.runs(&prefix.join("bin/loadline"))?;
    stdout_of(own.arg("--version"))?;
    stdout_of(&mut script(&release.out, &["--remove"]))?;
    nothing_left("install.sh --remove", &files(&prefix)?)?;

    let spoilt = release.empty("spoilt")?;
    let archive = format!("{}.tar.gz", release.name(programs.architecture));
    let mut bytes = fs::read(release.out.join(&archive)).map_err(Error::file(&archive))?;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(spoilt.join(&archive), bytes).map_err(Error::file(&archive))?;
    super::pack::copy(&release.out.join("SHA256SUMS"), &spoilt.join("SHA256SUMS"))?;
    let refused = output_of(&mut script(&spoilt, &[]))?;
    let said = String::from_utf8_lossy(&refused.stderr);
    if refused.status.code() != Some(1) || !said.contains("is not what SHA256SUMS names") {
        return wrong("install.sh of a spoilt archive", said);
    }
    nothing_left("install.sh of a spoilt archive", &files(&prefix)?)?;
    Ok(format!(
        "{installed} files in, none left; a spoilt archive is refused"
    ))
}

fn pages(release: &Release, programs: &Programs) -> Result<String, Error> {
    let tree = unpacked(release, programs);
    let mut help = programs.architecture.runs(&programs.loadline)?;
    let help = stdout_of(help.arg("--help"))?;
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.ends_with(':'))
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let completions = tree.join("completions");
    let pages = commands.iter().map(|name| format!("loadline-{name}.1"));
    let mut wanted: BTreeSet<String> = pages.collect();
    wanted.extend(["loadline.1".to_owned(), "loadline-launch.1".to_owned()]);
    let there: BTreeSet<String> = files(&tree.join("man"))?.into_iter().collect();
    if commands.len() < 20 || there != wanted {
        let detail = format!("{there:?} are not those of {commands:?}");
        return wrong("man pages", detail);
    }
    for name in ["loadline.bash", "_loadline", "loadline.fish"] {
        let path = completions.join(name);
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        if let Some(lost) = commands.iter().find(|command| !text.contains(**command)) {
            return wrong(name, format!("it does not know {lost}"));
        }
        if text.contains("trial-part") {
            return wrong(name, "it offers what loadline starts itself");
        }
    }
    let mut bash = release.command("bash");
    let complete = "source \"$1\"; COMP_WORDS=(loadline pre); COMP_CWORD=1; _loadline loadline pre loadline; echo \"${COMPREPLY[@]}\"";
    bash.args(["-c", complete, "bash"])
        .arg(completions.join("loadline.bash"));
    match stdout_of(&mut bash)?.trim() {
        "predict" => Ok(format!("{} man pages, bash completes", there.len())),
        other => wrong("bash completion of `loadline pre`", other),
    }
}

fn sbom(release: &Release, programs: &Programs) -> Result<String, Error> {
    let path = unpacked(release, programs).join("sbom.cdx.json");
    let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
    let list: Value = serde_json::from_str(&text).unwrap_or_default();
    let components = list["components"].as_array().cloned().unwrap_or_default();
    let of = |name: &str| components.iter().find(|one| one["name"] == name);
    for name in ["clap", "ring", "libc", "zstd-sys"] {
        if of(name).is_none_or(|one| one["hashes"][0]["content"].as_str().map(str::len) != Some(64))
        {
            return wrong("sbom.cdx.json", format!("{name} is not there with its sum"));
        }
    }
    let foreign = ["proptest", "cc", "loadline-simulated"];
    match foreign.iter().find(|name| of(name).is_some()) {
        Some(name) => wrong("sbom.cdx.json", format!("{name} is not in the programs")),
        None => Ok(format!("{} crates", components.len())),
    }
}

/// Debian's own tool puts it into an empty system and takes it out.
fn deb(release: &Release, programs: &Programs) -> Result<String, Error> {
    let root = release.empty("root")?;
    let database = root.join("var/lib/dpkg");
    for directory in ["updates", "info", "triggers"] {
        let directory = database.join(directory);
        fs::create_dir_all(&directory).map_err(Error::file(directory))?;
    }
    for file in ["status", "available"] {
        fs::write(database.join(file), "").map_err(Error::file(file))?;
    }
    let before = files(&root)?;
    let architecture = programs.architecture.short();
    let name = format!("loadline_{}_{architecture}.deb", release.version);
    let dpkg = |word: &str, last: &Path| {
        let mut dpkg = release.command("dpkg");
        dpkg.arg(format!("--root={}", root.display()));
        dpkg.args(["--force-not-root", "--force-bad-path"]);
        stdout_of(dpkg.args(["--force-architecture", word]).arg(last))
    };
    dpkg("--install", &release.out.join(name))?;
    let zsh = "usr/share/zsh/vendor-completions/_loadline";
    let seen = arrived(programs, &root, zsh)?;
    dpkg("--purge", Path::new("loadline"))?;
    gone(&root, &before)?;
    Ok(seen)
}

fn rpm(release: &Release, programs: &Programs) -> Result<String, Error> {
    let root = release.empty("root")?;
    let before = files(&root)?;
    let architecture = programs.architecture.name();
    let name = format!("loadline-{}-1.{architecture}.rpm", release.version);
    let rpm = |words: &[&str], last: &Path| {
        let mut rpm = release.command("rpm");
        // Where Fedora keeps it; Debian's rpm would keep it in root's home.
        rpm.arg("--root").arg(&root).arg("--dbpath=/var/lib/rpm");
        stdout_of(rpm.args(words).arg(last))
    };
    let install = ["--install", "--ignorearch", "--ignoreos"];
    rpm(&install, &release.out.join(name))?;
    let seen = arrived(programs, &root, "usr/share/zsh/site-functions/_loadline")?;
    rpm(&["--erase"], Path::new("loadline"))?;
    gone(&root, &before)?;
    Ok(seen)
}

/// Programs that start, man pages and completions lie in the system.
fn arrived(programs: &Programs, root: &Path, zsh: &str) -> Result<String, Error> {
    for program in ["loadline", "loadline-launch"] {
        let program = root.join("usr/bin").join(program);
        stdout_of(programs.architecture.runs(&program)?.arg("--version"))?;
    }
    let all = files(root)?;
    let wanted = [
        zsh,
        "usr/share/man/man1/loadline-size.1",
        "usr/share/man/man1/loadline-launch.1",
        "usr/share/bash-completion/completions/loadline",
        "usr/share/fish/vendor_completions.d/loadline.fish",
        "usr/share/doc/loadline/LICENSE",
    ];
    let is_lost = |name: &&&str| !all.iter().any(|file| file == **name);
    match wanted.iter().find(is_lost) {
        Some(lost) => wrong("the installed package", format!("no {lost}")),
        None => {
            let ours = all.iter().filter(|file| file.starts_with("usr/")).count();
            Ok(format!("{ours} files in, none left"))
        }
    }
}

/// Nothing but the tool's own records is left, and nothing that was there is gone.
fn gone(root: &Path, before: &[String]) -> Result<(), Error> {
    let after = files(root)?;
    if let Some(lost) = before.iter().find(|file| !after.contains(file)) {
        return wrong("the removed package", format!("{lost} is gone too"));
    }
    let own = |file: &&String| !file.starts_with("var/lib/") && !file.starts_with("var/log/");
    let left: Vec<String> = after.iter().filter(own).cloned().collect();
    nothing_left("the removed package", &left)
}

fn nothing_left(what: &str, files: &[String]) -> Result<(), Error> {
    match files {
        [] => Ok(()),
        some => wrong(what, format!("left: {some:?}")),
    }
}

fn images(release: &Release, programs: &Programs) -> Result<String, Error> {
    for one in image::IMAGES {
        let file = one.file(release, programs);
        if programs.architecture != Architecture::here()? {
            continue;
        }
        // A test's loadline needs libraries that its image lacks.
        if one.name == "loadline" && !programs.is_released {
            continue;
        }
        let said = image::run(release, &one, &file, &["--version"])?;
        if !said.starts_with(&format!("{} {}", one.name, release.version)) {
            return wrong(file.display().to_string(), said);
        }
    }
    Ok("they start".to_owned())
}

fn files(directory: &Path) -> Result<Vec<String>, Error> {
    let mut find = Command::new("find");
    find.arg(directory)
        .args(["!", "-type", "d", "-printf", "%P\\n"]);
    let mut files: Vec<String> = stdout_of(&mut find)?.lines().map(str::to_owned).collect();
    files.sort();
    Ok(files)
}
