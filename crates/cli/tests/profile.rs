//! `loadline profile` as a user runs it: what it reads, what it says, what it refuses.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const USAGE: i32 = 2;

fn profile(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.arg("profile").args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    // A program that reads no input has closed it.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn line(hour: u32, minute: u32, request: &str) -> String {
    format!(
        "192.0.2.7 - - [20/Nov/2026:{hour:02}:{minute:02}:00 +0000] \"{request} HTTP/1.1\" 200 612 \
         \"-\" \"curl/8\" 0.250\n"
    )
}

/// Ten requests an hour, thirty at noon; one of ten is a POST.
fn day() -> String {
    let mut log = String::new();
    for hour in 8..16 {
        let count = if hour == 12 { 30 } else { 10 };
        for n in 0..count {
            let path = if hour == 12 { "/noon" } else { "/" };
            let request = match n % 10 {
                0 => "POST /orders/17".to_owned(),
                _ => format!("GET {path}"),
            };
            log += &line(hour, n * 2, &request);
        }
    }
    log
}

#[test]
fn a_log_is_read_whatever_it_is_packed_in_and_its_format_is_found() {
    let folder = tempfile::tempdir().expect("a directory");
    let zstd = zstd::encode_all(day().as_bytes(), 1).expect("it is packed");
    std::fs::write(folder.path().join("access.log"), day()).expect("it is written");
    std::fs::write(folder.path().join("packed"), &zstd).expect("the same");
    let plain = profile(folder.path(), &["access.log", "--json"], b"");
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let said = text(&plain.stderr);
    insta::assert_snapshot!(said, @r"
    format: combined and $request_time
    100 requests, 0 lines rejected, 10 left out for their method, 0 for their path
    rate: mean 0.00/s, peak 0.02/s, peak factor 4.86, in 437 intervals of 60 s, 347 of them without a request
    statuses: 200: 100
    response bytes: p50 612, p90 612, p99 612, max 612
    logged durations: p50 250.1 ms, p90 250.1 ms, p99 250.1 ms, max 250.1 ms
    think times: p50 119.8 s, p90 119.8 s, p99 119.8 s, max 119.8 s; 93 in 7 sessions, 0 requests overlap
    not replayed, because no template has their body: 10.0 % of the requests
       10.0 %  POST /orders/{id}
    ");
    let body = |output: &Output| {
        text(&output.stdout)
            .replace("packed", "access.log")
            .replace("\"-\"", "\"access.log\"")
    };
    for (name, input) in [("packed", &b""[..]), ("-", &zstd), ("-", day().as_bytes())] {
        let output = profile(folder.path(), &[name, "--json"], input);
        assert_eq!(body(&output), body(&plain), "{name}");
    }
}

#[test]
fn bodies_come_from_templates_and_what_has_none_is_named() {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("it is written");
    };
    write("access.log", &day());
    write("order.json", "{\"n\": {seq}}");
    write(
        "templates.toml",
        "[[request]]\nmatch = \"POST /orders/*\"\nbody-file = \"order.json\"\n\
         headers = { Content-Type = \"application/json\" }\n\
         [[request]]\nmatch = \"PUT /orders\"\nbody = \"x\"\n",
    );
    let words = ["access.log", "--templates", "templates.toml"];
    let output = profile(folder.path(), &words, b"");
    let said = text(&output.stderr);
    assert!(said.contains("`PUT /orders` matches no request"), "{said}");
    assert!(!said.contains("without a body"), "{said}");
    let toml = text(&output.stdout);
    assert!(toml.contains("body-file = \"order.json\""), "{toml}");

    let output = profile(folder.path(), &["access.log", "--all-methods"], b"");
    let said = text(&output.stderr);
    let expected = "sent without a body, although their method takes one: 10.0 % of the mix\n   10.0 %  POST /orders/{id}";
    assert!(said.contains(expected), "{said}");

    write(
        "templates.toml",
        "[[request]]\nmatch = \"POST /a\"\nbody-file = \"none.json\"\n",
    );
    let output = profile(folder.path(), &words, b"");
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(
        text(&output.stderr).contains("none.json"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_stub_is_what_the_log_was_answered_and_an_experiment_takes_it() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("access.log"), day()).expect("it is written");
    let output = profile(
        folder.path(),
        &["access.log", "--stub", "-o", "stub.toml"],
        b"",
    );
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let expected = "3 answers from 100 requests; 0 requests left out";
    assert!(said.contains(expected), "{said}");
    let experiment = "slo = \"p99<50ms\"\n[app]\ncommand = [\"java\"]\n[load]\n\
                      url = \"http://localhost:8080/\"\nrate = \"100/s\"\nduration = \"60s\"\n\
                      [[dependency]]\nname = \"x\"\nport = 81\nstub = \"stub.toml\"\n";
    let path = folder.path().join("experiment.toml");
    let parsed = loadline_experiment::Experiment::from_file_text(experiment, &path, folder.path());
    let stub = parsed.expect("it is good").stubs.remove(0);
    let seen = stub.answers.iter().map(|answer| {
        let delay = answer.delay.as_ref().map(ToString::to_string);
        (
            answer.pattern.to_string(),
            answer.weight,
            delay.unwrap_or_default(),
        )
    });
    let recorded = || "as recorded in access.log".to_owned();
    let expected = [
        ("GET /", 63.0),
        ("GET /noon", 27.0),
        ("POST /orders/{id}", 10.0),
    ];
    let expected = expected.map(|(class, weight)| (class.to_owned(), weight, recorded()));
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[test]
fn a_profile_names_files_of_bodies_as_seen_from_itself() {
    let folder = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("it is written");
    };
    write("access.log", &day());
    write("bodies/order.json", "{\"n\": {seq}}");
    write(
        "bodies/templates.toml",
        "[[request]]\nmatch = \"POST /orders/*\"\nbody-file = \"order.json\"\n",
    );
    write("profiles/here", "");
    let words = ["access.log", "--templates", "bodies/templates.toml"];
    let output = profile(folder.path(), &words, b"");
    let toml = text(&output.stdout);
    assert!(toml.contains("body-file = \"bodies/order.json\""), "{toml}");

    let elsewhere = [&words[..], &["-o", "profiles/day.toml"]].concat();
    let output = profile(folder.path(), &elsewhere, b"");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let path = folder.path().join("profiles/day.toml");
    let toml = std::fs::read_to_string(&path).expect("it is written");
    assert!(
        toml.contains("body-file = \"../bodies/order.json\""),
        "{toml}"
    );
    // Read from anywhere else, the profile finds it.
    let mut spec = loadline_load::LoadSpec {
        profile: Some(loadline_load::ProfileSource::File(path)),
        ..Default::default()
    };
    spec.resolve_files(Path::new("/")).expect("it is read");
    let body = folder.path().join("profiles/../bodies/order.json");
    assert_eq!(spec.content_files(), [body.as_path()]);
    assert!(body.is_file());
}

#[test]
fn the_busiest_hour_has_its_own_rates_and_requests() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("access.log"), day()).expect("it is written");
    let words = ["access.log", "--busiest", "1h", "--json"];
    let output = profile(folder.path(), &words, b"");
    let said = text(&output.stderr);
    let expected =
        "busiest stretch: 2026-11-20 11:58 UTC to 2026-11-20 12:58 UTC, 30.0 % of all requests";
    assert!(said.contains(expected), "{said}");
    let form: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&form["requests"], &form["mix"][0]["path"]),
        (&30.into(), &"/noon".into())
    );

    let output = profile(folder.path(), &["-", "--busiest", "1h"], day().as_bytes());
    assert_eq!(output.status.code(), Some(USAGE));
    let words = ["access.log", "--busiest", "90s"];
    let output = profile(folder.path(), &words, b"");
    assert!(text(&output.stderr).contains("multiple of --interval"));
}

#[test]
fn what_is_not_understood_is_shown() {
    let folder = tempfile::tempdir().expect("a directory");
    let log = "2026-11-22 10:00 Started Application\n".to_owned() + &day();
    let said = text(&profile(folder.path(), &["-"], log.as_bytes()).stderr);
    assert!(
        said.contains("not understood: -, line 1: 2026-11-22 10:00 Started"),
        "{said}"
    );

    let output = profile(folder.path(), &["-"], b"2026-11-22 10:00 Started\n");
    assert_eq!(output.status.code(), Some(USAGE));
    insta::assert_snapshot!(text(&output.stderr), @r#"
    loadline: error: -: unknown access-log format. First line:
      2026-11-22 10:00 Started
    tried: common, combined, json, ltsv, alb, elb, s3, gorouter, haproxy, istio, istio-1.8, istio-1.4, envoy, ingress-nginx, traefik, vhost_combined
    hint: give the server's own log format with --format, for example '%h %l %u %t "%r" %s %b %D' or '$remote_addr [$time_local] "$request" $status'
    "#);
    let output = profile(folder.path(), &["-", "--format", "alb"], day().as_bytes());
    assert_eq!(output.status.code(), Some(USAGE));
    let said = text(&output.stderr);
    assert!(
        said.contains("no line has this format; the first is"),
        "{said}"
    );
}

#[test]
fn a_recording_of_a_browser_becomes_a_profile_that_says_what_is_left_out() {
    let folder = tempfile::tempdir().expect("a directory");
    let har = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../load/tests/har/recorded.har"
    );
    let ended = profile(folder.path(), &[har, "-o", "shop.toml"], b"");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    insta::assert_snapshot!(text(&ended.stderr));
    let written = std::fs::read_to_string(folder.path().join("shop.toml")).expect("a profile");
    assert!(
        written.contains("user=ann&password={env:PASSWORD}"),
        "{written}"
    );
    let cut = folder.path().join("cut.har");
    std::fs::write(&cut, "{\"log\": {\"entries\": [").expect("it is written");
    for (arguments, why) in [
        (vec!["cut.har"], "Export HAR"),
        (vec![har, "--stub"], "--stub is for access logs"),
        (vec![har, har], "a HAR file cannot be combined"),
    ] {
        let ended = profile(folder.path(), &arguments, b"");
        assert_eq!(ended.status.code(), Some(USAGE));
        let said = text(&ended.stderr);
        assert!(said.contains(why) && said.contains("hint: "), "{said}");
    }
}
