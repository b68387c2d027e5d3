//! Commands that read results, on the recorded run of the checkout: no root, no trials.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz")
}

fn loadline(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(arguments)
        .arg("--state")
        .arg(place.join("state"))
        .current_dir(place)
        .output()
        .expect("it starts")
}

/// `loadline emit` of the recorded run into `deploy`.
fn emit(place: &Path, more: &[&str]) -> Output {
    let record = recorded().display().to_string();
    let words = ["emit", &record, "--to", "deploy"];
    loadline(place, &[&words[..], more].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory").flatten();
    let mut names: Vec<_> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn emit_writes_its_files_and_overwrites_none() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let first = emit(place.path(), &[]);
    assert!(first.status.success(), "{}", said(&first));
    let deploy = place.path().join("deploy");
    let all = files(&deploy);
    assert_eq!(
        all,
        [
            "Dockerfile",
            "compose.yaml",
            "java-tool-options.env",
            "jvm.options",
            "kubernetes.yaml",
            "loadline.profile"
        ]
    );
    fs::write(deploy.join("Dockerfile"), "mine").expect("writable");
    fs::remove_file(deploy.join("jvm.options")).expect("it is there");

    let again = emit(place.path(), &["--for", "docker,options"]);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert!(
        said(&again).contains("files are already there: deploy/"),
        "{}",
        said(&again)
    );
    assert!(said(&again).contains("hint: "));
    assert_eq!(
        fs::read_to_string(deploy.join("Dockerfile")).expect("a file"),
        "mine"
    );
    assert!(
        !deploy.join("jvm.options").exists(),
        "nothing is written when something is in the way"
    );

    let forced = emit(place.path(), &["--force"]);
    assert!(forced.status.success(), "{}", said(&forced));
    assert!(
        fs::read_to_string(deploy.join("Dockerfile"))
            .expect("a file")
            .contains("ENTRYPOINT")
    );
    assert_eq!(files(&deploy), all);
}

#[test]
fn emit_that_cannot_place_a_file_leaves_no_half_written_ones() {
    let place = tempfile::tempdir().expect("a temporary directory");
    // A directory where a file has to go: nothing can be placed there, not even by root.
    fs::create_dir_all(place.path().join("deploy/kubernetes.yaml")).expect("writable");
    let refused = emit(place.path(), &["--force"]);
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    assert!(said(&refused).contains("deploy/kubernetes.yaml is a directory"));
    assert_eq!(files(&place.path().join("deploy")), ["kubernetes.yaml"]);
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("other.json"), "{}").expect("writable");
    for (arguments, code, wanted) in [
        (
            &["show", "other.json"][..],
            2,
            "other.json: this is no exported result",
        ),
        (
            &["report", "missing.json"][..],
            2,
            "there is no file missing.json",
        ),
        (
            &["emit", "nothing", "--to", "x"][..],
            2,
            "there is no result `nothing`",
        ),
        (
            &["compare", "other.json", "other.json"][..],
            2,
            "other.json: this is no",
        ),
    ] {
        let output = loadline(place.path(), arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(wanted),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains("hint: "),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_section_that_is_not_there_is_answered_with_those_that_are() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let record = recorded().display().to_string();
    let words = [
        "export",
        &record,
        "--format",
        "markdown",
        "--section",
        "nope",
    ];
    let output = loadline(place.path(), &words);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("it has slo, sizes, latency"),
        "{}",
        said(&output)
    );
}

#[test]
fn a_result_compared_with_itself_did_not_change() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let record = recorded().display().to_string();
    let output = loadline(place.path(), &["compare", &record, &record]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("No change that counts: 232Mi and 232Mi"),
        "{text}"
    );
}

/// The files in `records/.../deploy` are an example for readers, and the whole output of `emit` for a
/// real run. `LOADLINE_UPDATE=1` writes them.
#[test]
fn the_files_beside_the_record_are_what_emit_writes() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let record = recorded().display().to_string();
    let folder = recorded().with_file_name("deploy");
    let to = if std::env::var_os("LOADLINE_UPDATE").is_some() {
        folder.clone()
    } else {
        place.path().join("deploy")
    };
    let to_text = to.display().to_string();
    let words = [
        "emit",
        &record,
        "--to",
        &to_text,
        "--replicas",
        "2",
        "--force",
    ];
    let output = loadline(place.path(), &words);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(files(&folder), files(&to));
    for name in files(&folder) {
        let read = |folder: &Path| fs::read_to_string(folder.join(&name)).expect("a text");
        assert!(
            read(&folder) == read(&to),
            "{name} differs; LOADLINE_UPDATE=1 writes it anew"
        );
    }
}
