//! User mistakes and their messages: given arguments and files, the exit code, and the expected
//! stderr, with the next step.
//!
//! A table over all commands. No row needs a JVM, root or a network, and none is about time.

mod experiments;
mod files;
mod flags;
mod guesses;
mod loads;
mod manifests;
mod newcomers;
mod results;
mod strangers;
mod tools;
mod words;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::words::words;

/// Wrong arguments or a wrong file.
const USAGE: i32 = 2;
/// This machine cannot.
const ENVIRONMENT: i32 = 3;

/// Arguments in words (`'` around those with spaces), the exit code, what stderr contains.
type Row = (&'static str, i32, &'static [&'static str]);

/// Files that the rows name, with their content.
const FILES: [(&str, &str); 71] = [
    (
        "image.toml",
        "slo = 'p99<1s'\n[app]\nimage = 'Foo/Bar:1'\n[load]\nurl = 'http://localhost:1/'\nrate = '5/s'\n",
    ),
    (
        "underscore.toml",
        "slo = 'p99<1s'\n[search]\nmax_memory = '1Gi'\n",
    ),
    ("cpus.yaml", "services: {a: {image: a, cpus: many}}\n"),
    ("empty.toml", ""),
    ("empty.yaml", ""),
    ("text", "no format\n"),
    ("gradle.properties", "org.gradle.jvmargs=-Xmx2g\n"),
    ("brace.json", "{}"),
    ("helm.yaml", "a: {{ .Values.b }}\n"),
    ("words.toml", "app.command = \"java -jar x\"\n"),
    ("open.toml", "x = [\n"),
    ("typo.toml", "sloo = 1\n"),
    (
        "quoted.toml",
        "slo = 'p99<1s'\n[load]\nexpect-status = '404'\n",
    ),
    (
        "listed.toml",
        "slo = 'p99<1s'\n[load]\nexpect-status = ['404']\n",
    ),
    ("bare.toml", "slo = 'p99<1s'\n[load]\nexpect-status = 404\n"),
    ("test.js", "import http from 'k6/http';\n"),
    ("plan.jmx", "<jmeterTestPlan version=\"1.2\">\n"),
    ("service.yaml", "kind: Service\n"),
    ("deploy.yaml", "apiVersion: apps/v1\nkind: Deployment\n"),
    ("compose.yaml", "services: {a: {image: a}, b: {image: b}}\n"),
    ("cut.json", "{\"schema\": \"x"),
    ("trials.csv", "trial,verdict\n1,PASS\n"),
    ("page.html", "<!DOCTYPE html>\n<html></html>\n"),
    ("junit.xml", "<?xml version=\"1.0\"?>\n<testsuites/>\n"),
    (
        "crs.yaml",
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: k}\n",
    ),
    ("twice.yaml", "a: 1\na: 2\n"),
    ("pom.xml", "<?xml version=\"1.0\"?>\n<project></project>\n"),
    ("Dockerfile", "# built by hand\nFROM eclipse-temurin:21\n"),
    ("gc.log", "[0.004s][info][gc] Using Serial\n"),
    ("colon.toml", "slo: p99<50ms\n"),
    ("shop.jar", "PK\u{3}\u{4}"),
    (
        "access.log",
        "::1 - - [10/Oct/2023:13:55:31 +0000] \"GET /a HTTP/1.1\" 200 1\n",
    ),
    ("ci.yaml", "name: CI\non: push\njobs: {}\n"),
    ("values.yaml", "replicaCount: 1\n"),
    ("Chart.yaml", "apiVersion: v2\nname: shop\n"),
    ("application.yaml", "spring:\n  application: {name: x}\n"),
    ("build.gradle", "plugins { id 'java' }\n"),
    ("program", "\u{7f}ELF\u{2}\0"),
    ("comments.yaml", "# nothing\n---\n# nothing\n"),
    (
        "vpa.yaml",
        "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata: {name: a}\n",
    ),
    ("run.sh", "#!/bin/sh\nexec java -jar a.jar\n"),
    ("x.har", "{\"log\": {\"entries\": []}}"),
    ("rates.toml", "schema = 1\nrates = [1.0]\n"),
    ("vary.toml", "slo = 'p99<1s'\n[vary]\nmemory = ['1Gi']\n"),
    (
        "aplication.toml",
        "slo = 'p99<1s'\n[aplication]\ncommand = ['x']\n",
    ),
    ("old.yaml", "a:\n  image: x\n"),
    ("listed.yaml", "services:\n  a: [x]\n"),
    (
        "extended.yaml",
        "services:\n  a: {image: x, extends: {service: b}}\n  b: {image: x}\n",
    ),
    (
        "others.yaml",
        "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'redis:7'}]}\n",
    ),
    (
        "cassandra.yaml",
        "kind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: o, env: [{name: MAX_HEAP_SIZE, value: 1G}]}]}}}\n",
    ),
    (
        "mounted.yaml",
        "kind: ConfigMap\nmetadata: {name: c}\ndata: {jvm.config: -Xmx8G}\n---\nkind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: 'trinodb/trino:450', volumeMounts: [{name: v, mountPath: /etc/trino}]}, {name: p, image: 'envoy:1'}], volumes: [{name: v, configMap: {name: c}}]}}}\n",
    ),
    (
        "cronjob.yaml",
        "kind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: o, image: o, command: [java, -jar, a.jar]}]}}}}}\n",
    ),
    (
        "kustomization.yaml",
        "kind: Kustomization\nresources: [deploy.yaml]\n",
    ),
    (
        "postman.json",
        "{\"info\": {\"schema\": \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}}",
    ),
    ("list.json", "[]\n"),
    (
        "backslash.toml",
        "slo = 'p99<1s'\n[app]\ncommand = [\"C:\\java\"]\n",
    ),
    ("openapi.json", "{\"openapi\": \"3.0.1\", \"paths\": {}}"),
    (
        "collectors.yaml",
        "kind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: o, env: [{name: JAVA_OPTS, value: '-XX:+UseG1GC -XX:+UseZGC'}]}]}}}\n",
    ),
    (
        "command.yaml",
        "kind: Deployment\nmetadata: {name: o}\nspec: {template: {spec: {containers: [{name: o, image: o, command: ['java -Xmx1g -jar a.jar']}]}}}\n",
    ),
    (
        "misplaced.toml",
        "slo = 'p99<1s'\n[load]\nheadroom = '20%'\n",
    ),
    ("jvm.toml", "slo = 'p99<1s'\n[app]\njvm = ['-Xmx1g']\n"),
    ("ready.toml", "slo = 'p99<1s'\n[app]\nready = '/health'\n"),
    (
        "variable.toml",
        "slo = 'p99<1s'\n[app]\ncommand = ['sh']\nenv = { 'A B' = 'x' }\n[load]\nurl = 'http://localhost:1/'\nrate = '5/s'\n",
    ),
    (
        "bracket.toml",
        "slo = 'p99<1s'\n[dependency]\nname = 'db'\n",
    ),
    ("late.toml", "slo = 'p99<1s'\nwarm_up = '5s'\n"),
    (
        "one-word.toml",
        "slo = 'p99<1s'\n[app]\ncommand = ['java -jar app.jar']\n[load]\nurl = 'http://localhost:1/'\nrate = '5/s'\n",
    ),
    ("rats.toml", "rats = [1]\n"),
    ("interval.toml", "rates = [1]\ninterval-seconds = '60'\n"),
    (
        "unplaced.har",
        "{\"log\": {\"entries\": [{\"request\": 5}]}}\n",
    ),
    ("negative.toml", "slo = 'p99<1s'\n[run]\nrepeats = -1\n"),
    (
        "words-in-one.toml",
        "slo = 'p99<1s'\n[app]\ncommand = ['sh']\n[load]\nurl = 'http://localhost:1/'\nrate = '5/s'\n[[factor]]\nname = 'heap'\nlevels = [{ label = 'a', jvm = ['-Xmx1g -Xms1g'] }]\n",
    ),
];

/// The state directory does not follow these: they have none.
const STATELESS: [&str; 14] = [
    "completion",
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
    "version",
];

fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    for (name, text) in FILES {
        fs::write(place.path().join(name), text).expect("writable");
    }
    fs::create_dir(place.path().join("directory")).expect("a directory");
    fs::write(place.path().join("utf16.toml"), b"\xff\xfes\0l\0o\0").expect("writable");
    let record = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-20-spring-web-size/result.json.gz");
    fs::copy(record, place.path().join("result.json.gz")).expect("the record is there");
    let other = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../records/2026-11-22-class-cache/result.json.gz");
    fs::copy(other, place.path().join("other.json.gz")).expect("the record is there");
    let consumer =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/2026-11-28-kafka/result.json.gz");
    fs::copy(consumer, place.path().join("consumer.json.gz")).expect("the record is there");
    let whole = fs::read(place.path().join("result.json.gz")).expect("it is there");
    fs::write(place.path().join("cut.json.gz"), &whole[..whole.len() / 2]).expect("writable");
    let flipped = [&whole[..5000], &[!whole[5000]], &whole[5001..]].concat();
    fs::write(place.path().join("flipped.json.gz"), flipped).expect("writable");
    let many = "---\na: 1\n".repeat(20_001);
    fs::write(place.path().join("many.yaml"), many).expect("writable");
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
        newcomers::NEWCOMERS,
        guesses::GUESSES,
        strangers::STRANGERS,
    ];
    let rows: usize = tables.iter().map(|rows| rows.len()).sum();
    let all = rows + files::COUNT + flags::COUNT;
    assert!(all >= 360, "{all}");
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
fn of_newcomers() {
    holds(newcomers::NEWCOMERS);
}

#[test]
fn of_guesses() {
    holds(guesses::GUESSES);
}

#[test]
fn of_strangers() {
    holds(strangers::STRANGERS);
}

#[test]
fn a_plan_says_what_this_machine_lacks() {
    let place = place();
    let row = "plan --slo p95<1s --rate 100/s --url http://localhost:1/ --cpu 9000 --max-memory 900Ti -- sleep 9";
    let ended = loadline(place.path(), row);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    for wanted in ["CPU limit of 9000 is more", "900Ti is more than"] {
        assert!(said.contains(wanted), "{said}");
    }
}

#[test]
fn a_plan_says_which_cpu_is_searched() {
    let place = place();
    let cases = [
        ("--cpu auto", "the smallest CPU limit, and there"),
        (
            "--cpu auto --cpu-policy request",
            "the smallest CPU request, and there",
        ),
        (
            "--cpu-policy both",
            "the smallest CPU request, the limit above it, and there",
        ),
        (
            "--cpu 1 --cpu-policy both",
            "the smallest CPU request, and there",
        ),
    ];
    for (flags, wanted) in cases {
        let row =
            format!("plan {flags} --slo p95<1s --rate 100/s --url http://localhost:1/ -- sleep 9");
        let ended = loadline(place.path(), &row);
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(said.contains(wanted), "{flags}: {said}");
    }
}

#[test]
fn a_plan_that_cannot_run_prints_no_plan() {
    let place = place();
    let row = "plan --slo p99<1s --rate 5/s --url http://localhost:1/ -- java -jar none.jar";
    let ended = loadline(place.path(), row);
    assert_ne!(ended.status.code(), Some(0));
    assert!(
        ended.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&ended.stdout)
    );
}

#[test]
fn a_file_is_written_in_the_form_of_its_name_and_shells_are_completed() {
    let place = place();
    let ended = loadline(place.path(), "export result.json.gz -o x.csv");
    assert_eq!(ended.status.code(), Some(0));
    let text = fs::read_to_string(place.path().join("x.csv")).expect("it is written");
    assert!(
        text.lines()
            .next()
            .is_some_and(|head| head.contains("verdict")),
        "{text}"
    );
    for shell in ["bash", "zsh", "fish"] {
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["completion", shell])
            .output()
            .expect("it starts");
        assert!(
            String::from_utf8_lossy(&ended.stdout).contains("loadline"),
            "{shell}"
        );
    }
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
    assert!(said.contains("that paused most"), "{said}");
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
