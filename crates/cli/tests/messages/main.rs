//! What people get wrong, and what they are told: arguments and files given, the exit code, and
//! what stderr must say, with what to do next.
//!
//! A table over all commands. No row needs a JVM, root or a network, and none is about time.

mod experiments;
mod files;
mod flags;
mod loads;
mod manifests;
mod results;
mod tools;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Wrong arguments or a wrong file.
const USAGE: i32 = 2;
/// This machine cannot.
const ENVIRONMENT: i32 = 3;

/// Arguments in words (`'` around those with spaces), the exit code, what stderr contains.
type Row = (&'static str, i32, &'static [&'static str]);

/// Files that the rows name, with what is in them.
const FILES: [(&str, &str); 9] = [
    ("empty.toml", ""),
    ("empty.yaml", ""),
    ("text", "no format\n"),
    ("brace.json", "{}"),
    ("helm.yaml", "a: {{ .Values.b }}\n"),
    ("words.toml", "app.command = \"java -jar x\"\n"),
    ("open.toml", "x = [\n"),
    ("typo.toml", "sloo = 1\n"),
    ("service.yaml", "kind: Service\n"),
];

/// The state directory does not follow these: they have none.
const STATELESS: [&str; 12] = [
    "doctor",
    "footprint",
    "gc",
    "help",
    "init",
    "load",
    "lod",
    "merge",
    "nosuch",
    "predict",
    "profile",
    "schema",
];

/// The words of a row; `'` keeps those with spaces together.
fn words(row: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for c in row.chars() {
        match (c, words.last_mut()) {
            ('\'', _) => is_quoted = !is_quoted,
            (' ', _) if !is_quoted => words.push(String::new()),
            (_, Some(word)) => word.push(c),
            (_, None) => {}
        }
    }
    words
}

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in FILES {
        fs::write(place.path().join(name), text).expect("writable");
    }
    fs::create_dir(place.path().join("directory")).expect("a directory");
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    fs::copy(record, place.path().join("result.json.gz")).expect("the record is there");
    place
}

fn loadline(place: &Path, row: &str) -> Output {
    let mut words = words(row);
    if words[0].starts_with('-') {
        // It names no command.
    } else if !STATELESS.contains(&words[0].as_str()) {
        let state = place.join("state").display().to_string();
        words.splice(1..1, ["--state".to_owned(), state]);
    }
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(words)
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .expect("it starts")
}

/// What of a row does not hold: the exit code, the words, a next step, or that no part of loadline
/// that people do not start is named.
fn check(input: &str, ended: &Output, code: i32, wanted: &[&str]) -> Option<String> {
    let said = String::from_utf8_lossy(&ended.stderr);
    let missing: Vec<_> = wanted.iter().filter(|w| !said.contains(**w)).collect();
    let is_told = said.contains("loadline: error: ") && said.contains("\nhint: ");
    let names_a_part = said.contains("-part'");
    let holds = ended.status.code() == Some(code) && missing.is_empty() && is_told && !names_a_part;
    let ended = ended.status;
    (!holds).then(|| format!("{input}: {ended}, without {missing:?}:\n{said}"))
}

/// Runs every row, and names all that do not hold.
fn holds(rows: &[Row]) {
    let place = place();
    let row = |(row, code, wanted): &Row| check(row, &loadline(place.path(), row), *code, wanted);
    let wrong: Vec<String> = rows.iter().filter_map(row).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_are_many() {
    let tables = [
        results::RESULTS,
        experiments::EXPERIMENTS,
        manifests::MANIFESTS,
        loads::LOADS,
        tools::TOOLS,
    ];
    let rows: usize = tables.iter().map(|rows| rows.len()).sum();
    let all = rows + files::COUNT + flags::COUNT;
    assert!(all >= 150, "{all}");
}

#[test]
fn of_results() {
    holds(results::RESULTS);
}

#[test]
fn of_experiments() {
    holds(experiments::EXPERIMENTS);
}

#[test]
fn of_manifests() {
    holds(manifests::MANIFESTS);
}

#[test]
fn of_loads() {
    holds(loads::LOADS);
}

#[test]
fn of_tools() {
    holds(tools::TOOLS);
}

/// What a file may stand for: no row of the table, because it succeeds.
#[test]
fn an_exported_file_is_explained_and_packed_again() {
    let place = place();
    let watched = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-22-class-cache/result.json.gz");
    fs::copy(watched, place.path().join("watched.json.gz")).expect("the record is there");
    let explained = loadline(place.path(), "explain watched.json.gz");
    let said = String::from_utf8_lossy(&explained.stderr);
    assert_eq!(explained.status.code(), Some(0), "{said}");
    assert!(said.contains("the trial that paused most"), "{said}");
    let written = loadline(place.path(), "export result.json.gz -o again.json.gz");
    assert_eq!(written.status.code(), Some(0));
    let packed = fs::read(place.path().join("again.json.gz")).expect("it is written");
    assert!(packed.starts_with(&[0x1f, 0x8b]), "it is gzip");
    let shown = loadline(place.path(), "show again.json.gz");
    assert_eq!(shown.status.code(), Some(0), "it is read again");
    assert!(!place.path().join("state").exists(), "no store is needed");
}

/// `--measured` reads the same files.
#[test]
fn a_manifest_is_held_against_an_exported_file() {
    let place = place();
    let manifest = "kind: Pod\nspec: {containers: [{name: a, image: x, command: [java, -jar, a.jar], \
                    resources: {limits: {memory: 64Mi}}}]}\n";
    fs::write(place.path().join("pod.yaml"), manifest).expect("writable");
    let row = "judge --manifest pod.yaml --measured result.json.gz";
    let ended = loadline(place.path(), row);
    let said = String::from_utf8_lossy(&ended.stderr);
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(!said.contains("there is no result"), "{said}");
    assert!(out.contains("measured"), "{out}{said}");
}

/// A file or a directory of the name `last` is not meant by it.
#[test]
fn last_is_the_newest_result() {
    let place = place();
    let row = "show last";
    let told = |place: &Path| String::from_utf8_lossy(&loadline(place, row).stderr).into_owned();
    fs::create_dir(place.path().join("last")).expect("a directory");
    assert!(
        told(place.path()).contains("there are no results in"),
        "{}",
        told(place.path())
    );
    fs::remove_dir(place.path().join("last")).expect("it goes");
    fs::copy(
        place.path().join("result.json.gz"),
        place.path().join("last"),
    )
    .expect("a file");
    assert!(
        told(place.path()).contains("there are no results in"),
        "{}",
        told(place.path())
    );
    let by_path = loadline(place.path(), "show ./last");
    assert_eq!(by_path.status.code(), Some(0));
}
