//! Unusual streams and words: a stderr without a reader or on a full disk, and words that are no
//! UTF-8. No root, no trials.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const PANICKED: i32 = 101;

/// Commands that write to stderr: an error with hints, warnings, notes and what clap says.
const TALKING: [&str; 5] = [
    "show nothing-of-this-name",
    "run --slo p99<1s --rate 1/s --url http://localhost:1/ --repeats 0 -- java -jar none.jar",
    "run --no-such-flag",
    "load http://localhost:1/ --rate 10/s -d 200ms -c 1",
    "gc none.log",
];

fn loadline(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command
        .current_dir(place)
        .env("LOADLINE_STATE", place.join("state"))
        .stdin(Stdio::null());
    command
}

/// Its exit code, which no panic and no signal gave.
fn code(output: &Output) -> i32 {
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    let code = code.unwrap_or_else(|| panic!("signal {:?}", output.status.signal()));
    assert_ne!(code, PANICKED, "{said}");
    assert!(!said.contains("panicked"), "{said}");
    code
}

#[test]
fn a_stderr_that_is_full_or_that_nobody_reads_ends_nothing() {
    let place = tempfile::tempdir().expect("a directory");
    for words in TALKING {
        let read = loadline(place.path()).args(words.split(' ')).output();
        let usual = code(&read.expect("it starts"));
        for redirection in ["2>/dev/full", "2>&-"] {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
                .arg(env!("CARGO_BIN_EXE_loadline"))
                .args(words.split(' '))
                .current_dir(place.path())
                .env("LOADLINE_STATE", place.path().join("state"));
            let output = shell.output().expect("a shell");
            assert_eq!(code(&output), usual, "{words} {redirection}");
        }
        // As `2>&1 | head -1` when head is done.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = loadline(place.path());
        command
            .args(words.split(' '))
            .stdout(writer.try_clone().expect("a descriptor"))
            .stderr(writer);
        let output = command.output().expect("it starts");
        assert_eq!(code(&output), usual, "{words} 2>&1 | head -1");
    }
}

#[test]
fn words_that_are_no_text_are_refused_or_taken_as_they_are() {
    let place = tempfile::tempdir().expect("a directory");
    let odd = OsStr::from_bytes(b"x\xff");
    let path = place.path().join(odd);
    let right = "--slo p99<1s --rate 1/s --url http://localhost:1/";
    let run = |before: &[&OsStr], behind: &[&OsStr]| {
        let mut command = loadline(place.path());
        command.arg("run").args(right.split(' ')).args(before);
        command.arg("--").args(behind);
        command.output().expect("it starts")
    };
    let sleep = ["sleep", "60"].map(OsStr::new);
    let output = run(&["--state".as_ref(), path.as_os_str()], &sleep);
    assert_eq!(code(&output), 2);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the state directory is not UTF-8"), "{said}");
    assert!(
        said.contains("hint: give another one: --state DIR"),
        "{said}"
    );
    let output = run(&[], &["/bin/echo".as_ref(), odd]);
    assert_eq!(code(&output), 2);
    let output = run(&[odd], &sleep);
    assert_eq!(code(&output), 2);

    std::fs::create_dir(&path).expect("the file system takes it");
    let mut there = loadline(&path);
    there
        .arg("run")
        .args(right.split(' '))
        .arg("--")
        .args(sleep);
    let output = there.output().expect("it starts");
    assert_eq!(code(&output), 2);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the working directory is not UTF-8"),
        "{said}"
    );
}
