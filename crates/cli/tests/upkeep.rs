//! The history of results: what `list` shows of a store. No root, no trials.

use std::path::Path;
use std::process::{Command, Output};

use loadline_analysis::record::Machine;
use loadline_engine::store::{NewResult, ResultKind, Status, Store};

fn loadline(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(arguments)
        .arg("--state")
        .arg(place.join("state"))
        .current_dir(place)
        .output()
        .expect("it starts")
}

/// A result with this title that ended so.
fn add(store: &Store, title: &str, status: Status, outcome: Option<&str>) -> String {
    let new = NewResult {
        kind: ResultKind::Size,
        title: title.to_owned(),
        experiment: String::new(),
        directory: "/srv".into(),
        command: Vec::new(),
        machine: Machine::default(),
    };
    let id = store.create_result(&new).expect("a result");
    store.set_status(&id, status, outcome).expect("it ends");
    id
}

/// The answer of the recorded search, as the store keeps one, proven or with a start that failed.
fn answer(is_proven: bool) -> String {
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    let file = std::fs::File::open(record).expect("the record");
    let read: serde_json::Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("JSON");
    let mut answer = read["recommendation"].clone();
    if !is_proven {
        answer["proof"]["passes"] = 0.into();
    }
    answer.to_string()
}

fn out(output: &Output) -> (String, String) {
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The titles that `list --json` has with these flags.
fn titles(place: &Path, flags: &[&str]) -> Vec<String> {
    let (text, _) = out(&loadline(place, &[&["list", "--json"], flags].concat()));
    let read: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = read["results"].as_array().expect("results");
    let title = |row: &serde_json::Value| row["title"].as_str().expect("a title").to_owned();
    rows.iter().map(title).collect()
}

#[test]
fn a_list_has_what_fits_all_flags() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open(&place.path().join("state")).expect("a store");
    add(&store, "shop.jar", Status::Done, Some(&answer(true)));
    add(&store, "cart.jar", Status::Done, Some(&answer(false)));
    add(
        &store,
        "shop:2",
        Status::Failed,
        Some(r#"{"undecided":null,"left_out":[]}"#),
    );
    add(&store, "till", Status::Interrupted, None);
    let of = |flags: &[&str]| titles(place.path(), flags);
    assert_eq!(of(&[]), ["till", "shop:2", "cart.jar", "shop.jar"]);
    assert_eq!(of(&["--service", "shop"]), ["shop:2", "shop.jar"]);
    assert_eq!(of(&["--verdict", "proven"]), ["shop.jar"]);
    assert_eq!(of(&["--verdict", "not-proven"]), ["cart.jar"]);
    assert_eq!(of(&["--verdict", "no-answer"]), ["shop:2"]);
    assert_eq!(of(&["--verdict", "interrupted"]), ["till"]);
    assert_eq!(
        of(&["--verdict", "done", "--service", "shop"]),
        ["shop.jar"]
    );
    assert_eq!(of(&["--since", "1h", "--service", "till"]), ["till"]);
    assert_eq!(of(&["--before", "30d"]), [""; 0]);
    assert_eq!(of(&["--before", "2020-01-01"]), [""; 0]);
    assert_eq!(of(&["--since", "2020-01-01"]).len(), 4);
    assert_eq!(of(&["--since", "9000-01-01"]), [""; 0]);
    assert_eq!(of(&["--before", "9000-01-01"]).len(), 4);

    let (text, _) = out(&loadline(place.path(), &["list", "--service", "cart"]));
    assert!(
        text.contains("cart.jar") && !text.contains("shop"),
        "{text}"
    );
}

#[test]
fn a_list_that_is_empty_says_how_many_there_are() {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open(&place.path().join("state")).expect("a store");
    add(&store, "shop.jar", Status::Done, None);
    for flags in [
        &["list", "--service", "x"][..],
        &["list", "--json", "--service", "x"],
    ] {
        let (_, told) = out(&loadline(place.path(), flags));
        assert!(
            told.contains("fits these flags; without them there are 1"),
            "{told}"
        );
    }
}

#[test]
fn a_wrong_word_names_all() {
    let place = tempfile::tempdir().expect("a directory");
    let ended = loadline(place.path(), &["list", "--verdict", "good"]);
    assert_eq!(ended.status.code(), Some(2));
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    for word in [
        "proven",
        "not-proven",
        "no-answer",
        "running",
        "interrupted",
        "failed",
        "done",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
}
