//! The same answer however the container is laid out: v1, v2, namespaces, ancestors, kernels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const LAUNCHER: &str = env!("CARGO_BIN_EXE_loadline-launch");
const LAYOUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layouts.sh");

/// The output of a command in every layout, by layout. `None` when layouts cannot be made here.
fn in_every_layout(words: &[&str]) -> Option<BTreeMap<String, String>> {
    let controller = Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    let unified = Path::new("/sys/fs/cgroup/unified");
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    if !is_root || !controller.exists() || !unified.exists() {
        return None;
    }
    let output = Command::new("sh")
        .arg(LAYOUTS)
        .args(words)
        .output()
        .expect("sh exists");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        line.split_once(':')
            .map(|(l, o)| (l.to_owned(), o.trim().to_owned()))
    };
    let lines: BTreeMap<String, String> = text.lines().filter_map(line).collect();
    assert_eq!(lines.len(), 8, "{text} {errors}");
    Some(lines)
}

/// JDKs on this machine, with HotSpot: its flags are compared.
fn javas() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/jvm")
        .into_iter()
        .flatten()
        .flatten();
    let homes = entries
        .map(|entry| entry.path())
        .filter(|path| !path.is_symlink() && !path.join("lib/j9vm").exists());
    homes
        .map(|home| home.join("bin/java"))
        .filter(|java| java.exists())
        .collect()
}

fn javas_or_skip(name: &str) -> Vec<PathBuf> {
    let javas = javas();
    if javas.is_empty() {
        println!("SKIP {name}: no JDK in /usr/lib/jvm");
    }
    javas
}

#[test]
fn options_are_the_same_in_every_layout() {
    let name = "options_are_the_same_in_every_layout";
    for java in javas_or_skip(name) {
        let java = java.display().to_string();
        let Some(lines) = in_every_layout(&[LAUNCHER, "options", "--", &java]) else {
            println!("SKIP {name}: needs root and v1 controllers as well as a cgroup2 mount");
            return;
        };
        for (layout, options) in &lines {
            // What a JVM sees differs; where it is blind, its processor count is passed.
            let own: Vec<&str> = options
                .split(' ')
                .filter(|o| !o.starts_with("-XX:ActiveProcessorCount"))
                .collect();
            let first: Vec<&str> = lines["v1-leaf"].split(' ').collect();
            assert_eq!(own, first, "{java} {layout}");
            assert!(options.contains("-Xmx"), "{java} {layout}: {options}");
        }
        println!("{name}: {java}: {} layouts agree", lines.len());
    }
}

/// The JVM's view, with and without the launcher.
const SHOW: &str = "public class Show { public static void main(String[] a) { \
    System.out.println(Runtime.getRuntime().maxMemory() / 1048576 + \" \" + Runtime.getRuntime().availableProcessors()); } }";

#[test]
fn every_jvm_ends_up_with_the_same_heap_and_processors() {
    let name = "every_jvm_ends_up_with_the_same_heap_and_processors";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let source = directory.path().join("Show.java");
    std::fs::write(&source, SHOW).expect("a fresh file");
    for java in javas_or_skip(name) {
        let javac = java.with_file_name("javac");
        let compiled = Command::new(&javac)
            .arg("-d")
            .arg(directory.path())
            .arg(&source)
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            println!("SKIP {name}: no javac next to {}", java.display());
            continue;
        }
        let (java, classes) = (
            java.display().to_string(),
            directory.path().display().to_string(),
        );
        let command = [
            "env",
            "LOADLINE_LOG=quiet",
            LAUNCHER,
            "--",
            &java,
            "-cp",
            &classes,
            "Show",
        ];
        let Some(launched) = in_every_layout(&command) else {
            println!("SKIP {name}: needs root and v1 controllers as well as a cgroup2 mount");
            return;
        };
        let plain = in_every_layout(&command[4..]).expect("as before");
        for (layout, seen) in &launched {
            println!(
                "{name}: {java} {layout}: plain {}, launched {seen}",
                plain[layout]
            );
            assert_eq!(*seen, launched["v1-leaf"], "{java} {layout}");
        }
    }
}

mod uml {
    use super::*;

    /// On real hierarchies of a separate kernel: v1 alone, v2 without cpusets in /proc/cgroups, and
    /// v2 with them; limits on the own group or above it, with and without a cgroup namespace.
    #[test]
    fn the_same_in_user_mode_linux() {
        let name = "uml::the_same_in_user_mode_linux";
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let javas = javas();
        // Not below /tmp, which the guest covers.
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let Some(javac) = javas
            .iter()
            .map(|java| java.with_file_name("javac"))
            .find(|j| j.exists())
        else {
            println!("SKIP {name}: no JDK in /usr/lib/jvm");
            return;
        };
        let source = directory.path().join("Show.java");
        std::fs::write(&source, SHOW).expect("a fresh file");
        let compiled = Command::new(javac)
            .args(["--release", "11", "-d"])
            .args([directory.path(), &source])
            .status();
        assert!(compiled.is_ok_and(|status| status.success()));
        let output = Command::new(root.join("tests/uml/run.sh"))
            .arg("/bin/bash")
            .arg(root.join("crates/launcher/tests/layouts_uml.sh"))
            .args([Path::new(LAUNCHER), directory.path()])
            .args(&javas)
            .env("LOADLINE_UML_TIMEOUT", "900")
            .output()
            .expect("the script is there");
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) {
            println!("SKIP {name}: {}", errors.trim().replace('\n', " "));
            return;
        }
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}\n{errors}");
        let said = |what: &str| -> Vec<(String, String)> {
            let line = |line: &str| {
                let (place, answer) = line.strip_prefix(what)?.split_once(": ")?;
                Some((place.to_owned(), answer.trim().to_owned()))
            };
            text.lines().filter_map(line).collect()
        };
        let (options, heaps) = (said("options "), said("heap "));
        assert_eq!(options.len(), 12 * javas.len(), "{text}\n{errors}");
        assert_eq!(heaps.len(), 5 * javas.len(), "{text}\n{errors}");
        for java in &javas {
            let of = |all: &[(String, String)]| -> Vec<(String, String)> {
                let java = java.display().to_string();
                let own = all.iter().filter(|(place, _)| place.starts_with(&java));
                own.cloned().collect()
            };
            let options = of(&options);
            assert!(options[0].1.contains("-Xmx"), "{text}");
            for (place, answer) in &options {
                assert_eq!(answer, &options[0].1, "{place}");
            }
            let heaps = of(&heaps);
            for (place, answer) in &heaps {
                println!("{name}: {place}: {answer}");
                assert_eq!(answer, &heaps[0].1, "{place}");
            }
        }
    }
}
