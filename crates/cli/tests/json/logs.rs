//! `loadline gc --json`, on good logs and on files that are none.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Output};

use crate::{assert_follows, data, loadline};

/// Address space of loadline on files that are far larger, KiB.
const ADDRESS_SPACE: u32 = 400 << 10;

#[test]
fn a_summary_follows_its_schema() {
    let logs: Vec<String> = fs::read_dir(data(""))
        .expect("test data")
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .filter(|path| path.ends_with(".log") || path.ends_with(".log.gz"))
        .collect();
    assert!(logs.len() > 5, "{logs:?}");
    let mut arguments = vec!["gc", "--json"];
    arguments.extend(logs.iter().map(String::as_str));
    assert_follows(&loadline(&arguments), "gc.schema.json");
}

#[test]
fn what_is_no_log_ends_with_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("it is written");
        path.display().to_string()
    };
    let binary: Vec<u8> = (0..100_000_u32)
        .map(|n| (n.wrapping_mul(31) >> 3) as u8)
        .collect();
    let bad = [
        at("binary", &binary),
        at("empty", b""),
        at("text", b"hello\n"),
        directory.path().display().to_string(),
        directory.path().join("none").display().to_string(),
    ];
    for path in bad {
        let output = loadline(&["gc", "--json", &path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{path}: {said}");
        assert!(said.contains(&path), "{said}");
        assert!(said.lines().any(|l| l.starts_with("hint: ")), "{said}");
        assert!(output.stdout.is_empty(), "{path}");
    }
}

/// Runs `loadline gc --json` with little memory: what it reads is far larger.
fn with_little_memory(path: &std::path::Path) -> Output {
    let script = format!("ulimit -v {ADDRESS_SPACE} && exec \"$0\" gc --json \"$1\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_loadline")])
        .arg(path)
        .output()
        .expect("sh is there")
}

/// The report of a log with two gigabytes behind it that have no line end.
fn before_a_hole(text: &[u8]) -> serde_json::Value {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gc.log");
    let mut file = File::create(&path).expect("a file");
    file.write_all(text).expect("it is written");
    // A hole: zeros that take no room on the disk.
    file.set_len(text.len() as u64 + (2 << 30)).expect("a hole");
    let output = with_little_memory(&path);
    assert_follows(&output, "gc.schema.json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["input"]["too_long_lines"], 1);
    assert_eq!(report["input"]["complete"], false);
    report
}

#[test]
fn a_line_of_two_gigabytes_takes_no_memory() {
    let text = fs::read(data("17-Serial.log")).expect("test data");
    assert_eq!(before_a_hole(&text)["stw"]["count"], 7);
}

#[test]
fn a_line_of_two_gigabytes_in_the_log_of_an_openj9_takes_no_memory() {
    let kept = File::open(data("openj9-25-gencon.log.gz")).expect("test data");
    let mut text = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(kept);
    reader.read_to_end(&mut text).expect("gzip");
    assert_eq!(before_a_hole(&text)["stw"]["count"], 117);
}

#[test]
fn a_gzip_bomb_of_sixteen_gigabytes_is_given_up_early() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("gc.log.gz");
    let gzip = |bytes: &[u8]| {
        let fast = flate2::Compression::new(6);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), fast);
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    };
    let mut bomb = gzip(&fs::read(data("17-Serial.log")).expect("test data"));
    let part = gzip(&vec![b'0'; 16 << 20]);
    for _ in 0..1024 {
        bomb.extend_from_slice(&part);
    }
    fs::write(&path, bomb).expect("it is written");
    let output = with_little_memory(&path);
    assert_follows(&output, "gc.schema.json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["stw"]["count"], 7);
    let why = report["input"]["stopped"].as_str().unwrap_or_default();
    assert!(why.contains("grows"), "{why}");
}
