//! Commands that read results, on the recorded run of the checkout: no root, no trials.

mod emitted;

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

/// What a command says to type next works on the results that it worked on itself.
#[test]
fn what_to_type_next_names_the_directory_of_results() {
    let place = tempfile::tempdir().expect("a directory");
    let state = place.path().join("my state");
    let state = state.to_str().expect("UTF-8");
    let record = recorded();
    let record = record.to_str().expect("UTF-8");
    let shown = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        said(
            &command
                .args(["show", record])
                .args(more)
                .output()
                .expect("it runs"),
        )
    };
    let with = shown(&["--state", state]);
    let expected = format!("loadline show {record} --full --state '{state}'\n");
    assert!(with.contains(&expected), "{with}");
    assert!(!shown(&[]).contains("--state"), "{}", shown(&[]));
}

/// Commands that look at results make no missing state directory.
#[test]
fn looking_makes_nothing() {
    let reading: [&[&str]; 10] = [
        &["list"],
        &["show"],
        &["show", "--experiment"],
        &["export", "--format", "json"],
        &["report"],
        &["emit", "--to", "deploy"],
        &["compare", "last", "last"],
        &["explain", "last"],
        &["soak", "last"],
        &["resume"],
    ];
    for words in reading {
        let place = tempfile::tempdir().expect("a temporary directory");
        let ended = loadline(place.path(), words);
        assert!(files(place.path()).is_empty(), "{words:?} made something");
        let is_list = words == ["list"];
        assert_eq!(ended.status.success(), is_list, "{words:?}");
        let told = said(&ended);
        assert!(is_list || told.contains("no results"), "{words:?}: {told}");
    }
}

/// What may be left over is in cgroups and engines too: `clean` looks there, with or without a store.
#[test]
fn cleaning_makes_no_state_directory() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let ended = loadline(place.path(), &["clean"]);
    assert!(files(place.path()).is_empty(), "{}", said(&ended));
    let told = said(&ended);
    assert!(!told.contains("state directory"), "{told}");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("other.json"), "{}").expect("writable");
    for (arguments, code, wanted) in [
        (
            &["show", "other.json"][..],
            2,
            "other.json: this is not an exported result",
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

/// The recorded run as JSON with a change, in a file of the place.
fn changed(place: &Path, change: impl FnOnce(&mut serde_json::Value)) -> String {
    changed_copy(place, &recorded(), change)
}

fn changed_copy(
    place: &Path,
    record: &Path,
    change: impl FnOnce(&mut serde_json::Value),
) -> String {
    let packed = fs::File::open(record).expect("the record");
    let mut json =
        serde_json::from_reader(flate2::read::MultiGzDecoder::new(packed)).expect("JSON");
    change(&mut json);
    fs::write(place.join("changed.json"), json.to_string()).expect("writable");
    "changed.json".to_owned()
}

#[test]
fn a_second_result_that_measured_nothing_is_no_verdict() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = changed(place.path(), |json| {
        json["recommendation"] = serde_json::Value::Null;
        json["trials"] = serde_json::json!([]);
    });
    let record = recorded().display().to_string();
    let output = loadline(place.path(), &["compare", &record, &file]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("Not comparable: the second has no trial."),
        "{text}"
    );
    assert!(said(&output).contains("hint: "), "{}", said(&output));
}

/// Adds lines to the `[app]` table of its experiment.
fn add_to_app(json: &mut serde_json::Value, lines: &str) {
    let experiment = json["experiment"].as_str().expect("a text");
    json["experiment"] = experiment
        .replace("[app]\n", &format!("[app]\n{lines}\n"))
        .into();
}

#[test]
fn an_export_without_its_secrets_can_be_emitted() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = changed(place.path(), |json| {
        add_to_app(
            json,
            "env = { DB_PASSWORD = \"hunter2\", PLAIN = \"x\" } # token: hunter2",
        );
    });
    let exported = loadline(place.path(), &["export", &file, "-o", "safe.json"]);
    assert!(exported.status.success(), "{}", said(&exported));
    let safe = fs::read_to_string(place.path().join("safe.json")).expect("a file");
    assert!(!safe.contains("hunter2"));
    let emitted = loadline(place.path(), &["emit", "safe.json", "--to", "deploy"]);
    assert!(emitted.status.success(), "{}", said(&emitted));
    let read = |name: &str| fs::read_to_string(place.path().join("deploy").join(name));
    let manifests = read("kubernetes.yaml").expect("a file");
    assert!(manifests.contains("key: DB_PASSWORD\n"), "{manifests}");
    assert!(manifests.contains("value: x\n"), "{manifests}");
    let dockerfile = read("Dockerfile").expect("a file");
    assert!(
        dockerfile.contains("# DB_PASSWORD is a secret"),
        "{dockerfile}"
    );
}

#[test]
fn a_secret_in_a_load_url_or_a_label_is_in_no_file() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = changed(place.path(), |json| {
        json["load"] = "GET /a?access_token=hunter2, open model, 100/s for 15 s".into();
        for trial in json["trials"].as_array_mut().expect("trials") {
            trial["configuration"]["label"] = "1cpu -Ddb.accountKey=hunter2 -Xss1m".into();
        }
        let experiment = json["experiment"].as_str().expect("a text");
        let mut experiment = experiment.replace("\"/health\"", "\"/health?token=hunter2\"");
        for stack in ["1m", "2m"] {
            let option = format!("-Dtoken.a=hunter2 -Xss{stack}");
            let level =
                format!("\n[[factor.levels]]\nlabel = \"{option}\"\njvm = [\"-Xss{stack}\"]\n");
            experiment.push_str(&level);
        }
        json["experiment"] = experiment.into();
    });
    let exported = loadline(place.path(), &["export", &file, "-o", "safe.json"]);
    assert!(exported.status.success(), "{}", said(&exported));
    for format in ["json", "csv", "junit", "markdown"] {
        let words = ["export", &file, "--format", format];
        let output = loadline(place.path(), &words);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            !text.is_empty() && !text.contains("hunter2"),
            "{format}: {text}"
        );
    }
    for source in ["safe.json", &file] {
        let words = ["emit", source, "--to", "deploy", "--force"];
        let emitted = loadline(place.path(), &words);
        assert!(emitted.status.success(), "{}", said(&emitted));
        let warning = "/health?token=[redacted] holds a secret: probes only open port 8080";
        assert!(said(&emitted).contains(warning), "{}", said(&emitted));
        for name in files(&place.path().join("deploy")) {
            let path = place.path().join("deploy").join(&name);
            let text = fs::read_to_string(path).expect("a file");
            assert!(!text.contains("hunter2"), "{name}: {text}");
            assert!(!text.contains("/health?"), "{name}: {text}");
        }
    }
}

#[test]
fn a_link_that_an_application_planted_is_not_written_through() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIP a_link_that_an_application_planted_is_not_written_through: not root");
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let (app, victim) = (place.path().join("app"), place.path().join("victim"));
    fs::create_dir(&app).expect("a directory");
    fs::write(&victim, "root's").expect("writable");
    let links = ["report.html", "trials.csv"].map(|name| app.join(name));
    for link in &links {
        std::os::unix::fs::symlink(&victim, link).expect("a link");
    }
    for path in links.iter().chain([&app]) {
        std::os::unix::fs::lchown(path, Some(64_998), Some(64_998)).expect("root may");
    }
    let record = recorded().display().to_string();
    let [report, trials] = links.map(|link| link.display().to_string());
    for (arguments, name) in [
        (["report", &record, "-o", &report], "report.html"),
        (["export", &record, "-o", &trials], "trials.csv"),
    ] {
        let refused = loadline(place.path(), &arguments);
        assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
        let said = said(&refused);
        assert!(
            said.contains(&format!("{name}: it is a link that users other")),
            "{said}"
        );
        assert!(said.contains("hint: give its target"), "{said}");
    }
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "root's");
    let printed = loadline(place.path(), &["export", &record, "-o", "/dev/stdout"]);
    assert!(printed.stdout.starts_with(b"{"), "{}", said(&printed));
    let written = loadline(place.path(), &["export", &record, "-o", "/dev/null"]);
    assert!(written.status.success(), "{}", said(&written));
    let null = fs::symlink_metadata("/dev/null").expect("it is there");
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(
        &null.file_type()
    ));
}

/// A record is data: files that its experiment names are not opened, not even a FIFO without a
/// writer.
#[test]
fn no_file_that_a_record_names_is_opened() {
    let place = tempfile::tempdir().expect("a directory");
    let fifo = place.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).expect("a FIFO");
    let fifo = fifo.display();
    let load = |more: &str| format!("[load]\nurl = \"http://localhost:8080/\"\n{more}\n");
    let app =
        "[app]\ncommand = [\"java\", \"-jar\", \"a.jar\"]\nready.http = \"/\"\n[app.env]\nA = ";
    let profile = format!("profile = \"{fifo}\"");
    let table = format!("rate = \"1/s\"\nbody = \"{{csv:{fifo}:a}}\"\nmethod = \"POST\"");
    let dependency = |more: &str| format!("[[dependency]]\nname = \"db\"\n{more}\n");
    let stub = dependency(&format!("stub = \"{fifo}\""));
    let toxic = format!(
        "ports = [5432]\nimage = \"db:1\"\nready.tcp = 5432\n[[dependency.toxic]]\ntype = \"latency\"\nrecorded = \"{fifo}\""
    );
    let reference = format!("\"{{file:{fifo}}}\"");
    let experiments = [
        format!("{app}\"b\"\n{}", load(&profile)),
        format!(
            "{}{reference}\n{}",
            app.replace("a.jar", &fifo.to_string()),
            load("rate = \"1/s\"")
        ),
        format!("{app}\"b\"\n{}", load(&table)),
        format!("{app}\"b\"\n{}{stub}", load("rate = \"1/s\"")),
        format!(
            "{app}\"b\"\n{}{}",
            load("rate = \"1/s\""),
            dependency(&toxic)
        ),
        format!(
            "{app}\"b\"\n{}[compose]\nfile = \"{fifo}\"\n",
            load("rate = \"1/s\"")
        ),
        format!(
            "{app}\"b\"\n{}[manifest]\nfile = \"{fifo}\"\n",
            load("rate = \"1/s\"")
        ),
    ];
    for experiment in experiments {
        // A comment with that word makes a reader look at the whole experiment.
        let text = format!("# node\nslo = \"p99<250ms\"\n{experiment}");
        let file = changed(place.path(), |json| {
            json["experiment"] = text.clone().into();
        });
        for words in [
            "show FILE",
            "report FILE --output r.html",
            "compare FILE FILE",
            "emit FILE --to deploy --force",
        ] {
            let words = words.replace("FILE", &file);
            let output = Command::new("timeout")
                .args(["--signal=KILL", "60", env!("CARGO_BIN_EXE_loadline")])
                .args(words.split(' '))
                .current_dir(place.path())
                .output()
                .expect("it starts");
            // Refused or not: it ends properly, unlike a killed one.
            assert!(
                output.status.code().is_some_and(|code| code < 100),
                "{words}: {text}"
            );
        }
    }
}

/// Escape sequences, also in one character, and marks that turn text around.
#[test]
fn no_record_steers_the_terminal() {
    let steering = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}2J\u{202e}";
    let place = tempfile::tempdir().expect("a directory");
    let shown = |words: &str, at: &[&str]| {
        let file = changed(place.path(), |json| {
            for pointer in at {
                let value = json.pointer_mut(pointer).expect("a value");
                *value = format!("{}{steering}", value.as_str().expect("a text")).into();
            }
        });
        let all = words.replace("FILE", &file);
        let output = loadline(place.path(), &all.split(' ').collect::<Vec<_>>());
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("a text");
        let is_steering = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!text.contains(is_steering), "{words}: {text:?}");
    };
    // A message quotes what it does not know.
    shown("show FILE", &["/trials/0/purpose"]);
    shown("compare FILE FILE", &["/slo"]);
    let labels = [
        "/trials/0/configuration/label",
        "/trials/0/reason",
        "/title",
    ];
    shown("explain FILE", &labels);
    shown("show FILE --json", &labels);
    shown("emit FILE --to deploy", &["/machine/jdks/0", "/title"]);
}
