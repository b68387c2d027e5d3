//! loadline's look on a terminal: its colours, its width, and that no part of a progress line is
//! left. Progress of trials is tested with real trials (`tests/measure/answers.rs`).

mod screen;
mod server;

use std::path::Path;
use std::process::Command;

use screen::{Written, run};

const RECORD: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../records/2026-11-20-spring-web-size/result.json.gz"
);

fn loadline(columns: usize, arguments: &[&str], variables: &[(&str, &str)]) -> Written {
    let program = Path::new(env!("CARGO_BIN_EXE_loadline"));
    run(columns, program, arguments, variables)
}

#[test]
fn colours_are_for_terminals_whose_user_wants_them() {
    for arguments in [&["--help"][..], &["size", "--help"]] {
        assert!(loadline(100, arguments, &[]).has_style(), "{arguments:?}");
        for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let plain = loadline(100, arguments, &[variable]);
            assert!(!plain.has_style(), "{variable:?}: {}", plain.raw);
        }
        let mut piped = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let piped = piped.args(arguments).output().expect("it starts");
        let all = [piped.stdout, piped.stderr].concat();
        assert!(!all.contains(&0x1b), "{}", String::from_utf8_lossy(&all));
    }
}

#[test]
fn verdicts_have_colours_where_they_are_wanted() {
    assert!(loadline(100, &["show", RECORD], &[]).has_style());
    let plain = loadline(100, &["show", RECORD], &[("NO_COLOR", "1")]);
    assert!(!plain.has_style(), "{}", plain.raw);
    let plain = loadline(100, &["show", RECORD, "--color", "never"], &[]);
    assert!(!plain.has_style(), "{}", plain.raw);
    let show = |flags: &[&str]| {
        let mut piped = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let out = piped.args(["show", RECORD]).args(flags).output();
        String::from_utf8_lossy(&out.expect("it starts").stdout).into_owned()
    };
    assert!(!show(&[]).contains('\u{1b}'));
    assert!(show(&["--color", "always"]).contains("\u{1b}[32mPASS"));
    assert!(!show(&["--color", "always", "--json"]).contains('\u{1b}'));
}

#[test]
fn a_line_is_as_long_as_the_terminal_is_wide_at_most() {
    // Commands to copy are as long as the names in them.
    let place = tempfile::tempdir().expect("a directory");
    let record = place.path().join("r.json.gz");
    std::fs::copy(RECORD, &record).expect("the record is there");
    let record = record.display().to_string();
    let shown = [80, 200].map(|columns| {
        let written = loadline(columns, &["show", &record, "--color=never"], &[]);
        assert_eq!(written.code, Some(0), "{}", written.raw);
        let longest = written.raw.lines().map(|line| line.chars().count()).max();
        let longest = longest.expect("it shows something");
        assert!(
            longest <= columns,
            "{longest} of {columns}\n{}",
            written.raw
        );
        longest
    });
    assert!(shown[1] > 120, "200 columns are used: {shown:?}");
}

#[test]
fn nothing_of_the_line_of_a_load_is_left() {
    let url = server::server();
    for columns in [50, 200] {
        let flags = ["load", "--rate=20/s", "--duration=3s", &url];
        let written = loadline(columns, &flags, &[]);
        assert!(
            written.raw.contains("\u{1b}[K   1 s "),
            "it was drawn: {}",
            written.raw
        );
        let left = written.left().join("\n");
        // Also where the machine was too busy for the load to be good.
        assert!(left.contains("achieved"), "the answer: {left}");
        assert!(!left.contains(" s        20/s"), "{left}");
        let quiet = loadline(columns, &[&["-q"], &flags[..]].concat(), &[]);
        assert!(!quiet.raw.contains('\u{1b}'), "{}", quiet.raw);
    }
}
