//! What people get wrong, and what they are told: arguments and files given, the exit code, and
//! what stderr must say, with what to do next.
//!
//! A table over all commands. No row needs a JVM, root or a network, and none is about time.

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
const STATELESS: [&str; 11] = [
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
];

const RESULTS: &[Row] = &[
    (
        "show none.json",
        USAGE,
        &["there is no file none.json", "hint: `loadline export"],
    ),
    (
        "show text",
        USAGE,
        &["text: this is no exported result", "hint: `loadline export"],
    ),
    (
        "show brace.json",
        USAGE,
        &["missing field `schema`", "hint: `loadline export"],
    ),
    (
        "show empty.toml",
        USAGE,
        &["empty.toml: this is no exported result", "hint: "],
    ),
    (
        "show directory",
        USAGE,
        &[
            "directory is a directory, not a result",
            "hint: name a file",
            "--state DIR",
        ],
    ),
    (
        "show",
        USAGE,
        &[
            "there are no results in",
            "hint: `loadline size` and `loadline run` make one",
        ],
    ),
    (
        "show 0199",
        USAGE,
        &["there is no result `0199`", "hint: loadline list"],
    ),
    (
        "report none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "report directory",
        USAGE,
        &["is a directory, not a result", "hint: "],
    ),
    (
        "report result.json.gz -o /none/x",
        ENVIRONMENT,
        &[
            "cannot write /none/x",
            "/none: No such file",
            "hint: give a path",
        ],
    ),
    (
        "report result.json.gz -o directory",
        ENVIRONMENT,
        &["directory: Is a directory", "hint: give a path"],
    ),
    (
        "export none.json.gz",
        USAGE,
        &["there is no file none.json.gz", "hint: "],
    ),
    (
        "export result.json.gz --format xml",
        USAGE,
        &["invalid value 'xml'", "json, csv, junit, markdown"],
    ),
    (
        "export result.json.gz --section sizes",
        USAGE,
        &[
            "--section is for Markdown only",
            "hint: add --format markdown",
        ],
    ),
    (
        "export result.json.gz --format markdown --section x",
        USAGE,
        &["no section `x`", "hint: it has slo, sizes"],
    ),
    (
        "export result.json.gz -o /none/x.json.gz",
        ENVIRONMENT,
        &["cannot write /none/x.json.gz", "hint: "],
    ),
    (
        "emit none.json --to deploy",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "emit text --to deploy",
        USAGE,
        &["text: this is no exported result", "hint: "],
    ),
    (
        "emit result.json.gz --to text",
        ENVIRONMENT,
        &["Not a directory", "hint: give a path"],
    ),
    (
        "emit result.json.gz --to deploy --format x",
        USAGE,
        &["unexpected argument '--format'", "'--for'"],
    ),
    (
        "compare result.json.gz",
        USAGE,
        &["<SECOND>", "Usage: loadline compare"],
    ),
    (
        "compare result.json.gz none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "compare text text",
        USAGE,
        &["text: this is no exported result", "hint: "],
    ),
    (
        "explain none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "explain text",
        USAGE,
        &["text: this is no exported result", "hint: "],
    ),
    (
        "explain result.json.gz",
        USAGE,
        &[
            "has nothing to explain",
            "hint: trials of several instances and of older versions",
        ],
    ),
    (
        "explain nosuch",
        USAGE,
        &["there is no result `nosuch`", "hint: loadline list"],
    ),
    (
        "explain result.json.gz --try",
        USAGE,
        &[
            "result.json.gz is a file",
            "only to results of this machine",
            "hint: give an id",
        ],
    ),
    (
        "soak result.json.gz",
        USAGE,
        &[
            "result.json.gz is a file",
            "hint: give an id that `loadline list` shows",
        ],
    ),
    (
        "resume result.json.gz",
        USAGE,
        &[
            "result.json.gz is a file",
            "hint: give an id that `loadline list` shows",
        ],
    ),
    (
        "resume nosuch",
        USAGE,
        &["there is no result `nosuch`", "hint: loadline list"],
    ),
    (
        "list x",
        USAGE,
        &["unexpected argument 'x'", "Usage: loadline list"],
    ),
    (
        "clean x",
        USAGE,
        &["unexpected argument 'x'", "Usage: loadline clean"],
    ),
];

const EXPERIMENTS: &[Row] = &[
    (
        "run none.toml",
        USAGE,
        &[
            "cannot read the experiment none.toml: No such file",
            "hint: ",
        ],
    ),
    (
        "run directory",
        USAGE,
        &[
            "cannot read the experiment directory: Is a directory",
            "hint: ",
        ],
    ),
    (
        "run empty.toml",
        USAGE,
        &[
            "empty.toml:1:1: missing field `slo`",
            "hint: an experiment says what must hold: slo = \"p99<50ms",
            "loadline init",
        ],
    ),
    (
        "plan empty.toml",
        USAGE,
        &["empty.toml:1:1: missing field `slo`", "hint: "],
    ),
    (
        "drill empty.toml",
        USAGE,
        &["empty.toml:1:1: missing field `slo`", "hint: "],
    ),
    (
        "run words.toml",
        USAGE,
        &[
            "words.toml:1:15: invalid type",
            "hint: write a list, word by word: [\"java\", \"-jar\", \"x\"]",
        ],
    ),
    (
        "run open.toml",
        USAGE,
        &["open.toml:1:6: unclosed array", "expected `]`"],
    ),
    (
        "run typo.toml",
        USAGE,
        &[
            "typo.toml:1:1: unknown field `sloo`",
            "hint: did you mean `slo`?",
        ],
    ),
    (
        "verify",
        USAGE,
        &[
            "there is no loadline.toml",
            "hint: in the service's directory `loadline init`",
        ],
    ),
    (
        "verify none.toml",
        USAGE,
        &["there is no none.toml", "hint: "],
    ),
    (
        "drill",
        USAGE,
        &[
            "the application's command is missing",
            "hint: put it last, after --",
        ],
    ),
    (
        "size --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["--slo is missing", "hint: for example: --slo 'p99<50ms"],
    ),
    (
        "size --slo p99<5ms --rate 1/s -- java -jar x",
        USAGE,
        &["--url is missing", "hint: for example: --url http"],
    ),
    (
        "size --slo p99<5ms --url http://localhost:1/ -- java -jar x",
        USAGE,
        &[
            "the load is not clear",
            "--rate 300/s",
            "closed",
            "requests",
        ],
    ),
    (
        "size --slo p99<5ms --url http://localhost:1/ --rate 1/s",
        USAGE,
        &[
            "the application's command is missing",
            "hint: or name an image",
        ],
    ),
    (
        "run --slo p95<250ms;errors<1% --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["commas separate objectives: `p95<250ms,errors<1%`"],
    ),
    (
        "run --slo 'p95<250ms errors<1%' --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["commas separate objectives: `p95<250ms,errors<1%`"],
    ),
    (
        "run --slo p99<250 --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["it has no unit; did you mean `p99<250ms`?", "hint: "],
    ),
    (
        "run --slo p99=5ms --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["there is no `<`", "hint: for example p99<50ms"],
    ),
    (
        "run --slo q99<5ms --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["the name is none of p50..p99.999", "hint: "],
    ),
    (
        "run --slo errors<1 --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["the bound is no percentage (0.1%)", "hint: "],
    ),
    (
        "run --image 'Bad Image' --slo p99<5ms --rate 1/s --url http://localhost:1/",
        USAGE,
        &[
            "the image `Bad Image`: that is no name of an image",
            "hint: write it as the engine lists it",
        ],
    ),
    ("cache", USAGE, &["<COMMAND>...", "Usage: loadline cache"]),
    (
        "init none",
        USAGE,
        &[
            "there is no directory none",
            "hint: give the service's own directory",
        ],
    ),
    (
        "init directory",
        USAGE,
        &[
            "no jar, image, manifest or build file",
            "hint: go to the service's own directory",
        ],
    ),
];

const MANIFESTS: &[Row] = &[
    (
        "judge",
        USAGE,
        &[
            "there is nothing to judge",
            "hint: loadline judge --manifest deploy.yaml",
        ],
    ),
    (
        "judge --advice percent=75",
        USAGE,
        &["the application's command is missing", "hint: put it last"],
    ),
    (
        "judge --manifest none.yaml",
        USAGE,
        &["cannot read none.yaml: No such file", "hint: give a file"],
    ),
    (
        "judge --manifest helm.yaml",
        USAGE,
        &[
            "a template of a Helm chart",
            "hint: ",
            "helm template CHART",
        ],
    ),
    (
        "judge --manifest empty.yaml",
        USAGE,
        &[
            "empty.yaml: no document has spec.template.spec.containers",
            "hint: give manifests",
        ],
    ),
    (
        "judge --manifest service.yaml",
        USAGE,
        &["no document has spec.template.spec.containers", "hint: "],
    ),
    (
        "judge --manifest text",
        USAGE,
        &["text: no document has", "hint: "],
    ),
    (
        "judge --manifest service.yaml --measured none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "judge --manifest service.yaml --measured text",
        USAGE,
        &["text: this is no exported result", "hint: "],
    ),
];

const LOADS: &[Row] = &[
    ("load", USAGE, &["<URL>...", "Usage: loadline load"]),
    (
        "load ftp://localhost --rate 5/s",
        USAGE,
        &[
            "`ftp://localhost` is no http URL",
            "write for example http://",
        ],
    ),
    (
        "load http://no-such-host.invalid/ --rate 1/s",
        ENVIRONMENT,
        &[
            "no-such-host.invalid: the name of the host is not known here",
            "hint: check the spelling",
        ],
    ),
    (
        "load http://localhost:1/ --rate 1/s",
        ENVIRONMENT,
        &[
            "localhost:1: Connection refused",
            "hint: is the server running",
        ],
    ),
    (
        "load http://localhost:1/ --rate 5/q",
        USAGE,
        &["`5/q` is not a rate", "300/s"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --duration 1x",
        USAGE,
        &["`1x` is not a length of time", "500ms, 10s or 2m"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --warm-up x",
        USAGE,
        &["`x` is not a length of time", "500ms"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --closed",
        USAGE,
        &["'--rate <RATE>' cannot be used with '--closed'"],
    ),
    (
        "load http://localhost:1/ --closed --pacing fast",
        USAGE,
        &["`fast` is none of auto, exact, spin"],
    ),
    (
        "load http://localhost:1/ --closed -H nocolon",
        USAGE,
        &["there is no colon", "'Accept: text/html'"],
    ),
    (
        "load http://localhost:1/ --closed --body a --body-file b",
        USAGE,
        &["'--body <BODY>' cannot be used with '--body-file"],
    ),
    (
        "load http://localhost:1/ -n 0",
        USAGE,
        &["invalid value '0' for '--requests <N>'"],
    ),
    (
        "load http://localhost:1/ --durration 5s",
        USAGE,
        &["unexpected argument '--durration'", "'--duration'"],
    ),
    (
        "merge none",
        ENVIRONMENT,
        &[
            "cannot read none: No such file",
            "hint: give the files that `loadline load --part",
        ],
    ),
    (
        "merge directory",
        ENVIRONMENT,
        &[
            "cannot read directory: Is a directory",
            "hint: give the files",
        ],
    ),
    (
        "merge text",
        USAGE,
        &[
            "text: part: ",
            "hint: only files that `loadline load --out` wrote",
        ],
    ),
    ("merge", USAGE, &["<FILES>...", "Usage: loadline merge"]),
    (
        "profile none.log",
        ENVIRONMENT,
        &[
            "cannot read none.log: No such file",
            "hint: give the access logs",
        ],
    ),
    (
        "profile directory",
        ENVIRONMENT,
        &[
            "cannot read directory: Is a directory",
            "hint: give the access logs",
        ],
    ),
    (
        "profile text",
        USAGE,
        &[
            "no line of its begin is of a format that is known",
            "hint: say how the server writes its log",
        ],
    ),
];

const TOOLS: &[Row] = &[
    (
        "nosuch",
        USAGE,
        &["unrecognized subcommand 'nosuch'", "Usage: loadline"],
    ),
    (
        "lod",
        USAGE,
        &[
            "unrecognized subcommand 'lod'",
            "similar subcommand exists: 'load'",
        ],
    ),
    ("help nosuch", USAGE, &["unrecognized subcommand 'nosuch'"]),
    (
        "doctor --nosuch",
        USAGE,
        &["unexpected argument '--nosuch'", "Usage: loadline doctor"],
    ),
    (
        "gc none",
        USAGE,
        &[
            "cannot read the GC log none: No such file",
            "hint: the JVM writes it with -Xlog:gc*",
        ],
    ),
    (
        "gc text",
        USAGE,
        &["no GC log of HotSpot", "hint: the JVM writes one"],
    ),
    ("gc empty.toml", USAGE, &["empty.toml is empty", "hint: "]),
    (
        "gc directory",
        USAGE,
        &["directory is a directory", "hint: name the files"],
    ),
    (
        "footprint 999999999",
        ENVIRONMENT,
        &["process 999999999", "hint: it has ended"],
    ),
    (
        "predict",
        USAGE,
        &["--memory <SIZE>", "--jdk <VERSION>", "--cpu <CPUS>"],
    ),
    (
        "predict --memory 2XB --cpu 1 --jdk 17",
        USAGE,
        &["`2XB` is not an amount of memory", "such as 512Mi"],
    ),
    (
        "predict --memory 2Gi --cpu x --jdk 17",
        USAGE,
        &["`x` is not an amount of CPU", "1.5 or 250m"],
    ),
    (
        "predict --memory 2Gi --cpu 1 --jdk seven",
        USAGE,
        &["`seven` is not a JDK version", "such as 17"],
    ),
    (
        "predict --memory 0 --cpu 1 --jdk 17",
        USAGE,
        &["the JVM would not start", "hint: java exits with 1"],
    ),
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
    if !STATELESS.contains(&words[0].as_str()) {
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

/// Runs every row, and names all that do not hold.
fn holds(rows: &[Row]) {
    let place = place();
    let mut wrong = Vec::new();
    for (row, code, wanted) in rows {
        let ended = loadline(place.path(), row);
        let said = String::from_utf8_lossy(&ended.stderr);
        let missing: Vec<_> = wanted.iter().filter(|w| !said.contains(**w)).collect();
        let names_a_part = said.contains("-part'");
        if ended.status.code() != Some(*code) || !missing.is_empty() || names_a_part {
            let ended = ended.status;
            wrong.push(format!(
                "loadline {row}: {ended}, without {missing:?}:\n{said}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_results() {
    holds(RESULTS);
}

#[test]
fn of_experiments() {
    holds(EXPERIMENTS);
}

#[test]
fn of_manifests() {
    holds(MANIFESTS);
}

#[test]
fn of_loads() {
    holds(LOADS);
}

#[test]
fn of_tools() {
    holds(TOOLS);
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
