//! The tutorial as a reader works through it: every command, in its order, in one shell's directory.
//! What its `console` blocks print is compared by the test `documents`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::applications::ping;
use crate::engines::Engine;
use crate::lab::Lab;
use crate::process::Call;
use crate::runner::{Case, Outcome};

pub const TIMED: [Case; 1] = [("the_tutorial_is_walked", the_tutorial_is_walked)];

/// A reader has done these before: the tests run in a checkout that is built.
const DONE: [&str; 3] = ["git clone ", "make ", "export PATH="];

fn the_tutorial_is_walked() -> Outcome {
    let engine = match Engine::podman().and_then(|engine| Ok((engine, ping()?))) {
        Ok((engine, _)) => engine,
        Err(reason) => return Some(reason),
    };
    let checkout = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tutorial = fs::read_to_string(checkout.join("docs/tutorial.md")).expect("the tutorial");
    let lab = Lab::new();
    for name in ["records", "experiments", "tests"] {
        symlink(checkout.join(name), lab.path().join(name)).expect("a link");
    }
    let build = lab.path().join("build");
    fs::create_dir(&build).expect("a directory");
    symlink(checkout.join("build/workloads"), build.join("workloads")).expect("a link");
    let all = commands(&tutorial);
    assert!(all.len() >= 10, "{all:?}");
    for command in all {
        let ended = engine
            .environment(shell(&lab, &checkout, &command))
            .into_end();
        println!("{}: {}", ended.code.unwrap_or(-1), command.join(" "));
        ended.expect_code(0);
    }
    None
}

/// The commands of all fenced blocks, each with its lines.
fn commands(document: &str) -> Vec<Vec<String>> {
    let blocks = document.split("\n```").skip(1).step_by(2);
    let mut all: Vec<Vec<String>> = Vec::new();
    for block in blocks {
        let (info, body) = block.split_once('\n').unwrap_or_default();
        let is_transcript = info == "console";
        let mut goes_on = false;
        for line in body.lines() {
            let begun = if is_transcript {
                line.strip_prefix("$ ")
            } else {
                Some(line)
            };
            match (goes_on, begun) {
                (true, _) => all.last_mut().expect("a command").push(line.to_owned()),
                (false, Some(line)) => all.push(vec![line.to_owned()]),
                (false, None) => continue,
            }
            goes_on = line.ends_with('\\');
        }
    }
    all.retain(|command| !DONE.iter().any(|done| command[0].starts_with(done)));
    all
}

fn shell(lab: &Lab, checkout: &Path, command: &[String]) -> Call {
    let programs = Path::new(env!("CARGO_BIN_EXE_loadline")).parent();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!(
        "{}:{}:{path}",
        lab.path().display(),
        programs.unwrap_or(checkout).display()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &command.join("\n")])
        .current_dir(lab.path())
        .env("PATH", path)
        .env("LOADLINE_STATE", lab.state());
    Call::new(bash)
}
