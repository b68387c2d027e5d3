//! What a file is that was given in the place of another.
//!
//! Owns the recognition by name and first bytes, and the command that takes such a file. Never
//! decides whether it fits: callers ask when it does not.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of a file is looked at, bytes.
const PEEK: u64 = 64 << 10;

/// The words for it with their article, and what to do with it; `FILE` stands for its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKind {
    pub name: &'static str,
    next: &'static str,
}

/// What to do with each kind, behind its name.
const NEXT: &str = "\
a jar: put the application's command last, after --: -- java -jar FILE
a packed file: show a result with loadline show FILE; read a log with loadline gc or loadline profile
a program: put the application's command last, after --: -- FILE
non-UTF-8 text: save it as UTF-8
the head of a Helm chart: let Helm write the manifests: helm template CHART | loadline lint -
values of a Helm chart: let Helm write the manifests: helm template CHART -f FILE | loadline lint -
a Gradle project: start in its directory: loadline init
a Maven project: start in its directory: loadline init
a configuration of Spring Boot: start in its project's directory: loadline init
source code: build it, and start in its project's directory: loadline init
a CSV: export a result as JSON: loadline export RESULT -o result.json
a HAR file: make a load profile: loadline profile FILE
an access log: make a load profile: loadline profile FILE
a load profile: replay it: loadline load --profile FILE URL
advice of an autoscaler: judge it: loadline judge --advice FILE
a Kubernetes manifest: check it: loadline lint FILE; or start from it: loadline init --manifest FILE
a kustomization: let kubectl write the manifests: kubectl kustomize DIR | loadline lint -
a compose file: name it with the service to measure: loadline size --compose FILE --service NAME
a workflow of a CI system: loadline runs as a step in it: docs/guides/ci-gate.md
a Dockerfile: build its image and name it: --image NAME
a result: show it: loadline show FILE
an experiment: measure it: loadline size FILE
JSON: show a result with: loadline show FILE
XML: loadline reads the JSON of a result: loadline export RESULT -o result.json
an HTML report: open it in a browser; loadline reads the JSON of a result: loadline export RESULT -o result.json
a GC log: read it: loadline gc FILE
a script: put the application's command last, after --: -- ./FILE
a script of JMeter: let it generate the load of each trial: loadline size --load 'jmeter -n -t FILE'
a script of k6: let it generate the load of each trial: loadline size --load 'k6 run FILE'
a script of Gatling: let it generate the load of each trial: loadline size --load 'gatling.sh -s SIMULATION'
a script of Locust: let it generate the load of each trial: loadline size --load 'locust --headless -f FILE'";
/// What has requests, and does not say how often each is sent.
const NO_LOAD: &str = "it has no rates: pass a HAR file or an access log to loadline profile, or write a load profile with its requests";
const SEVERAL_ADVISED: &str = "judge what it advises: kubectl get vpa NAME -o json > vpa.json; loadline judge --advice vpa.json";

fn kind(name: &'static str) -> FileKind {
    let next = |line: &'static str| line.strip_prefix(name)?.strip_prefix(": ");
    let next = NEXT.lines().find_map(next).unwrap_or(NO_LOAD);
    FileKind { name, next }
}

const JAR: &str = "a jar";
const ADVICE: &str = "advice of an autoscaler";
const MANIFEST: &str = "a Kubernetes manifest";
const OPENAPI: &str = "an OpenAPI description";
const GC_LOG: &str = "a GC log";

/// Files that are known by their names: an ending, or the whole name.
const NAMED: [(&str, &str); 13] = [
    (".jar", JAR),
    (".war", JAR),
    ("Chart.yaml", "the head of a Helm chart"),
    ("values.yaml", "values of a Helm chart"),
    ("values.yml", "values of a Helm chart"),
    ("build.gradle", "a Gradle project"),
    ("build.gradle.kts", "a Gradle project"),
    ("application.yaml", "a configuration of Spring Boot"),
    ("application.yml", "a configuration of Spring Boot"),
    ("application.properties", "a configuration of Spring Boot"),
    (".java", "source code"),
    (".kt", "source code"),
    (".csv", "a CSV"),
];

impl FileKind {
    /// Reads the begin of a file. `None` for a kind that is not known, and for what cannot be read.
    pub fn of_file(path: &Path) -> Option<Self> {
        let mut begin = Vec::new();
        if !path.exists() {
            // A jar that is not built yet is one to who names it.
            return Self::of_bytes(path, &[]).filter(|kind| kind.name == JAR);
        }
        // To open a pipe waits for its other end.
        let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
        file.take(PEEK).read_to_end(&mut begin).ok()?;
        Self::of_bytes(path, &begin)
    }

    /// The kind of a file that is another than `wanted`, a name of a kind: `an experiment`.
    pub fn other_than(path: &Path, wanted: &str) -> Option<Self> {
        Self::of_file(path).filter(|kind| kind.name != wanted)
    }

    /// From the name and the begin of the content.
    pub fn of_bytes(path: &Path, begin: &[u8]) -> Option<Self> {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let name = name.unwrap_or_default();
        let is_named = |known: &str| {
            if known.starts_with('.') {
                name.ends_with(known)
            } else {
                name == known
            }
        };
        let named = NAMED.iter().find(|(known, _)| is_named(known));
        let named = named.map(|(_, name)| kind(name));
        let text = match std::str::from_utf8(begin) {
            Ok(text) => Some(text),
            // The last letter may be cut.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&begin[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        if named.is_some_and(|kind| kind.name == JAR) {
            return named;
        }
        let text = text.filter(|text| !text.contains('\0'));
        match (of_magic(begin), text) {
            (Some(kind), _) => Some(kind),
            (None, Some(text)) => of_text(text).or(named),
            (None, None) => Some(kind("non-UTF-8 text")),
        }
    }

    /// What to do with it.
    pub fn next_step(self, path: &Path) -> String {
        self.next.replace("FILE", &path.display().to_string())
    }
}

fn of_magic(begin: &[u8]) -> Option<FileKind> {
    let magics: [(&[u8], &str); 4] = [
        (b"PK\x03\x04", JAR),
        (b"\x1f\x8b", "a packed file"),
        (b"\x28\xb5\x2f\xfd", "a packed file"),
        (b"\x7fELF", "a program"),
    ];
    let found = magics.iter().find(|(magic, _)| begin.starts_with(magic));
    found.map(|(_, name)| kind(name))
}

fn of_text(text: &str) -> Option<FileKind> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    match start.as_bytes().first()? {
        b'{' => Some(of_json(start)),
        b'<' if start[1..].starts_with(|c: char| c.is_ascii_alphabetic() || "?!".contains(c)) => {
            Some(of_markup(start))
        }
        _ => of_lines(start),
    }
}

fn of_json(text: &str) -> FileKind {
    let has = |name: &str| text.contains(&format!("\"{name}\""));
    let kinds = [
        (has("log") && has("entries"), "a HAR file"),
        (has("containerRecommendations") || has("scans"), ADVICE),
        (has("apiVersion") && has("kind"), MANIFEST),
        (has("schema") && has("result"), "a result"),
        (
            text.contains("schema.getpostman.com"),
            "a Postman collection",
        ),
        (has("openapi") || has("swagger"), OPENAPI),
    ];
    first_kind(&kinds).unwrap_or(kind("JSON"))
}

fn first_kind(kinds: &[(bool, &'static str)]) -> Option<FileKind> {
    let found = kinds.iter().find(|(is_kind, _)| *is_kind);
    found.map(|(_, name)| kind(name))
}

fn of_markup(text: &str) -> FileKind {
    let lower = text.get(..text.len().min(15)).unwrap_or(text);
    let is_page = lower.eq_ignore_ascii_case("<!doctype html>") || text.contains("<html");
    let kinds = [
        (text.contains("<project"), "a Maven project"),
        (text.contains("<jmeterTestPlan"), "a script of JMeter"),
        (text.contains("<verbosegc"), GC_LOG),
        (is_page, "an HTML report"),
    ];
    first_kind(&kinds).unwrap_or(kind("XML"))
}

fn of_lines(text: &str) -> Option<FileKind> {
    let has_line = |begin: &str| text.lines().any(|line| line.starts_with(begin));
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = lines.find(|line| !line.starts_with('#'));
    let first = first.unwrap_or_default();
    let is_request = |line: &str| {
        let methods = ["\"GET /", "\"POST /", "\"HEAD /", "\"PUT /", "\"DELETE /"];
        methods.iter().any(|method| line.contains(method)) && !line.contains(" = ")
    };
    let mut object_kinds = text.lines().filter(|line| line.starts_with("kind:"));
    let is_advice = object_kinds.all(|line| line.contains("VerticalPodAutoscaler"));
    let is_experiment = |line: &str| line.starts_with("slo ") || line.starts_with("slo=");
    let has_any = |begins: &[&str]| begins.iter().any(|begin| has_line(begin));
    let is_kustomized = has_any(&["kind: Kustomization", "apiVersion: kustomize.config.k8s.io"]);
    let is_of_k6 = ["from 'k6", "from \"k6"]
        .iter()
        .any(|name| text.contains(name));
    let mut starts = text.lines();
    // First, because an SLO may name requests as an access log does.
    if starts.any(|line| is_experiment(line) || line.trim_end() == "[app]") {
        return Some(kind("an experiment"));
    }
    if has_line("kind:") && is_advice {
        return Some(FileKind {
            name: ADVICE,
            next: SEVERAL_ADVISED,
        });
    }
    first_kind(&[
        (is_kustomized, "a kustomization"),
        (has_any(&["openapi:", "swagger:"]), OPENAPI),
        (has_line("kind:") && has_line("apiVersion:"), MANIFEST),
        (has_line("services:"), "a compose file"),
        (
            has_line("jobs:") && has_line("on:"),
            "a workflow of a CI system",
        ),
        (
            first.starts_with("FROM ") || first.starts_with("ARG "),
            "a Dockerfile",
        ),
        (first.starts_with('[') && first.contains("]["), GC_LOG),
        (is_request(first), "an access log"),
        (has_any(&["[[request]]", "rates ="]), "a load profile"),
        (text.starts_with("#!"), "a script"),
        (is_of_k6, "a script of k6"),
        (text.contains("io.gatling"), "a script of Gatling"),
        (
            has_any(&["import locust", "from locust"]),
            "a script of Locust",
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told_by_its_name_or_its_begin() {
        for (name, begin, expected) in [
            ("app.jar", &b"x"[..], "a jar"),
            ("app", b"PK\x03\x04\x14\x00", "a jar"),
            ("r.json.gz", b"\x1f\x8b\x08\x00", "a packed file"),
            ("orders", b"\x7fELF\x02\x01", "a program"),
            ("a.toml", b"\xff\xfes\0l\0o\0", "non-UTF-8 text"),
            ("a.toml", b"s\0l\0o\0", "non-UTF-8 text"),
            (
                "d.yaml",
                b"apiVersion: v1\nkind: Pod\n",
                "a Kubernetes manifest",
            ),
            // Dapr's, next to a Deployment.
            (
                "d.yaml",
                b"apiVersion: dapr.io/v1alpha1\nkind: Component\n",
                "a Kubernetes manifest",
            ),
            ("c.yaml", b"# x\nservices:\n  a: {}\n", "a compose file"),
            (
                "ci.yml",
                b"name: CI\non: push\njobs: {}\n",
                "a workflow of a CI system",
            ),
            (
                "values.yaml",
                b"replicaCount: 1\n",
                "values of a Helm chart",
            ),
            (
                "Chart.yaml",
                b"apiVersion: v2\nname: x\n",
                "the head of a Helm chart",
            ),
            (
                "application.yml",
                b"server:\n  port: 1\n",
                "a configuration of Spring Boot",
            ),
            ("build.gradle", b"plugins { }\n", "a Gradle project"),
            ("A.java", b"class A {}\n", "source code"),
            ("Dockerfile", b"# x\nFROM a\n", "a Dockerfile"),
            ("gc.log", b"[0.004s][info][gc] Using G1\n", "a GC log"),
            (
                "vgc.xml",
                b"<?xml?>\n<verbosegc version=\"1\">\n",
                "a GC log",
            ),
            (
                "a.log",
                b"::1 - - [x] \"GET /a HTTP/1.1\" 200 1\n",
                "an access log",
            ),
            ("x.har", b"{\"log\":{\"entries\":[]}}", "a HAR file"),
            ("r.json", b"{\"schema\":1,\"result\":\"x\"}", "a result"),
            ("v.json", b"{\"scans\":[]}", "advice of an autoscaler"),
            ("x.json", b"{}", "JSON"),
            ("pom.xml", b"<?xml?>\n<project/>", "a Maven project"),
            ("j.xml", b"<testsuites/>", "XML"),
            ("r.html", b"<!DOCTYPE html>\n", "an HTML report"),
            ("p.jmx", b"<jmeterTestPlan>", "a script of JMeter"),
            ("t.js", b"import http from 'k6/http';\n", "a script of k6"),
            ("l.toml", b"slo = 'p99<1s'\n", "an experiment"),
            ("l.toml", b"slo=\"GET /a: p99<1s\"\n", "an experiment"),
            ("p.toml", b"schema = 1\nrates = [1.0]\n", "a load profile"),
            ("run.sh", b"#!/bin/sh\njava\n", "a script"),
            ("t.csv", b"a,b\n", "a CSV"),
        ] {
            let found = FileKind::of_bytes(Path::new(name), begin);
            assert_eq!(found.map(|kind| kind.name), Some(expected), "{name}");
        }
        for begin in [&b""[..], b"hello\n", b"x = [\n", "h\u{e9}".as_bytes()] {
            assert_eq!(FileKind::of_bytes(Path::new("x"), begin), None);
        }
        let cut = &"é".as_bytes()[..1];
        assert_eq!(FileKind::of_bytes(Path::new("x"), cut), None);
    }
}
