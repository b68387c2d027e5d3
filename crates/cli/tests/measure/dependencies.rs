//! Dependencies of an application, with programs of the zoo: reached on localhost, watched, never
//! the application's fault, and gone with the trial. With a real database: [`crate::postgresql`].

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::applications::workload;
use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_killed_whole, assert_nothing_left, processes};

pub const CASES: [Case; 10] = [
    ("a_dependency_is_on_localhost_and_in_the_record", reached),
    ("a_trial_has_its_own_redis", redis),
    ("a_dependency_that_never_gets_ready_is_quoted", never_ready),
    ("a_dependency_that_ends_makes_the_trial_invalid", ends),
    ("a_dependency_at_its_memory_limit_is_named", full),
    ("a_seed_that_fails_is_shown", seed_fails),
    ("a_credential_that_is_printed_is_kept_nowhere", printed),
    ("a_killed_loadline_leaves_no_dependency", killed),
    ("a_stub_answers_late_and_names_what_it_cannot", stubbed),
    (
        "wrong_dependencies_are_refused_before_anything_starts",
        refused,
    ),
];

/// They judge times.
pub const TIMED: [Case; 2] = [
    ("what_retries_add_in_an_outage_is_told", retried),
    (
        "what_spring_asks_again_in_an_outage_is_told",
        spring_retried,
    ),
];

pub fn experiment(lab: &Lab, tables: &str) -> String {
    let command = lab.application(&["serve"]);
    format!(
        r#"
slo = "errors<99%"
{tables}
[app]
command = {command:?}
[load]
url = "http://localhost:8080/"
rate = "50/s"
warm-up = "0s"
duration = "1s"
[run]
accept-noise = true
"#
    )
}

pub fn dependency(lab: &Lab, application: &[&str], more: &str) -> String {
    let command = lab.application(application);
    format!("[[dependency]]\nname = \"db\"\ncommand = {command:?}\n{more}\n")
}

pub fn run(lab: &Lab, text: &str) -> Ended {
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
    lab.call("run")
        .args(&["--wait", "--full", "exp.toml"])
        .into_end()
}

/// Its latencies have a least value, which no machine makes smaller.
fn stubbed() -> Outcome {
    let lab = Lab::new();
    let answers = "[[answer]]\nmatch = \"GET /prices/{id}\"\nbody = \"7\"\nlatency = \"20ms\"\n";
    fs::write(lab.path().join("prices.toml"), answers).expect("a file");
    let stub = |name: &str, port: u16, more: &str| {
        format!("[[dependency]]\nname = \"{name}\"\nport = {port}\n{more}\n")
    };
    let toxic = "[[dependency.toxic]]\ntype = \"latency\"\nlatency = \"10ms\"";
    let none = "[[dependency.answer]]\nmatch = \"PUT /x\"";
    let tables = stub("prices", 9001, &format!("stub = \"prices.toml\"\n{toxic}"))
        + &stub("stock", 9002, none);
    let text = experiment(&lab, &tables).replace("[app]", "[app]\nready = { tcp = 8080 }");
    let call = |text: &str, port: &str| {
        let command = lab.application(&["serve"]);
        let calls = lab.application(&["serve", port, "tries=3"]);
        text.replace(&format!("{command:?}"), &format!("{calls:?}"))
    };
    run(&lab, &call(&text, "calls=9001"))
        .expect_code(0)
        .prints(&["On the way to prices (latency 10ms downstream)"]);
    let evidence = lab.trial()["evidence"].clone();
    let prices = &evidence["dependencies"][0];
    assert!(prices["stub"]["requests"].as_u64() >= Some(50), "{prices}");
    assert!(
        prices["link"]["total"]["exchanges"].as_u64() >= Some(50),
        "{prices}"
    );
    assert_eq!(prices["stub"]["unanswered"], Value::Null, "{prices}");
    assert!(evidence["proxy"]["cpu_ns"].as_u64() > Some(0));
    let fastest = evidence["seconds"].as_array().expect("seconds").iter();
    let fastest = fastest.filter_map(|second| second["p50_ns"].as_u64()).min();
    assert!(fastest.is_some_and(|ns| ns >= 30_000_000), "{fastest:?}");
    run(&lab, &call(&text, "calls=9002"))
        .prints(&["had no answer, and got a 404: GET /prices/{id}"]);
    let evidence = lab.trial()["evidence"].clone();
    let stock = &evidence["dependencies"][1]["stub"];
    assert_eq!(
        stock["unanswered"]["GET /prices/{id}"], stock["requests"],
        "{stock}"
    );
    // Every request is tried three times, and fails.
    assert!(stock["requests"].as_u64() >= Some(150), "{stock}");
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

/// An application that tries three times asks three times as much while its stub is away.
fn retried() -> Outcome {
    let lab = Lab::new();
    let stub = "[[dependency]]\nname = \"prices\"\nport = 9001\n[[dependency.answer]]\nmatch = \"GET /**\"\n\
                [[outage]]\ndependency = \"prices\"\nat = \"3s\"\nfor = \"3s\"";
    let serve = lab.application(&["serve"]);
    let calls = lab.application(&["serve", "calls=9001", "tries=3"]);
    let text = experiment(&lab, stub)
        .replace(&format!("{serve:?}"), &format!("{calls:?}"))
        .replace("errors<99%", "errors<1%,recovers<3s")
        .replace("duration = \"1s\"", "duration = \"9s\"");
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
    let told = lab.call("drill").args(&["--wait", "exp.toml"]).into_end();
    let told = told.prints(&["before", "during", "threads"]);
    let times = told.stdout.split_whitespace();
    let mut times = times.filter_map(|word| word.strip_suffix('x')?.parse::<f64>().ok());
    assert!(times.any(|times| (2.7..3.3).contains(&times)), "{told}");
    let trial = lab.trial();
    let link = &trial["evidence"]["dependencies"][0]["link"];
    let asked = |from: usize, to: usize| -> u64 {
        let seconds = &link["seconds"].as_array().expect("seconds")[from..to];
        let of =
            |s: &Value| s["exchanges"].as_u64().unwrap_or(0) + s["refused"].as_u64().unwrap_or(0);
        seconds.iter().map(of).sum()
    };
    let (before, during) = (asked(0, 2) as f64 / 100.0, asked(3, 6) as f64 / 150.0);
    assert!((0.9..1.1).contains(&before), "{before}");
    assert!((2.7..3.3).contains(&during), "{during}");
    let seconds = trial["evidence"]["seconds"].as_array().expect("seconds");
    let seen = seconds
        .iter()
        .filter(|s| s["threads"].is_u64() && s["sockets"].is_u64());
    assert!(seen.count() >= 7, "{trial}");
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

/// A real client of a black hole: it asks three times as much, its threads wait, and they come back.
fn spring_retried() -> Outcome {
    let jar = match workload("spring-web") {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let stub = "[[dependency]]\nname = \"prices\"\nport = 9001\n[[dependency.answer]]\nmatch = \"GET /prices/*\"\nbody = \"12\"\n\
                [[outage]]\ndependency = \"prices\"\ntype = \"timeout\"\nat = \"3s\"\nfor = \"3s\"";
    let serve = lab.application(&["serve"]);
    let jar = jar.display().to_string();
    let spring = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-jar",
        &jar,
        "--workload.owners=50",
        "--workload.prices=http://localhost:9001",
        "--spring.http.client.read-timeout=200ms",
    ];
    let text = experiment(&lab, stub)
        .replace(
            &format!("command = {serve:?}"),
            &format!(
                "command = {spring:?}\nready = {{ http = \"/health\" }}\nstart-deadline = \"150s\""
            ),
        )
        .replace("errors<99%", "recovers<20s")
        .replace("8080/", "8080/offers?lastName=Da")
        .replace("warm-up = \"0s\"", "warm-up = \"2s\"")
        .replace("50/s", "20/s")
        .replace("duration = \"1s\"", "duration = \"11s\"");
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
    let told = lab.call("drill").args(&["--wait", "exp.toml"]).into_end();
    let told = told.expect_code(0);
    let told = told.prints(&["before", "during", "threads", "sockets"]);
    let times = told.stdout.split_whitespace();
    let mut times = times.filter_map(|word| word.strip_suffix('x')?.parse::<f64>().ok());
    assert!(times.any(|times| (2.5..3.5).contains(&times)), "{told}");
    let trial = lab.trial();
    let stub = &trial["evidence"]["dependencies"][0]["stub"];
    assert_eq!(stub["unanswered"], Value::Null, "{stub}");
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn reached() -> Outcome {
    let lab = Lab::new();
    // The seed shares the network and its names.
    let seed =
        r#"seed = ["/bin/bash", "-c", "exec 3<>/dev/tcp/db/9000 && test -z $(ls -A /etc/skel)"]"#;
    let more = format!(
        "ready = {{ tcp = 9000 }}\nmemory = \"64Mi\"\ndirectories = [\"/etc/skel\"]\n{seed}"
    );
    let tables = dependency(&lab, &["serve", "port=9000"], &more);
    run(&lab, &experiment(&lab, &tables))
        .expect_code(0)
        .prints(&["What it depended on", "db"]);
    let trial = lab.trial();
    let db = &trial["evidence"]["dependencies"][0];
    assert_eq!(db["name"], "db", "{trial}");
    assert!(db["cpu_ns"].is_u64(), "{db}");
    for figure in ["ready_ns", "seed_ns", "window_ns"] {
        assert!(db[figure].as_u64().is_some_and(|n| n > 0), "{figure}: {db}");
    }
    assert_eq!(db["memory_limit_bytes"], 64 << 20, "{db}");
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

/// Debian's own, filled by its own client, fresh for each trial.
fn redis() -> Outcome {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|place| place.join("redis-server").is_file()) {
        return Some("no redis-server in PATH (Debian package redis-server)".to_owned());
    }
    let lab = Lab::new();
    // A second trial that found the first one's key would fail its seed.
    let seed = "test $(redis-cli -h cache incr starts) = 1";
    let tables = format!(
        "[[dependency]]\nname = \"cache\"\ncommand = [\"redis-server\", \"--save\", \"\", \"--dir\", \"/tmp\"]\nready = {{ log = \"Ready to accept connections\" }}\nseed = [\"/bin/sh\", \"-c\", {seed:?}]\nmemory = \"64Mi\""
    );
    let text = experiment(&lab, &tables)
        .replace("\"serve\"", "\"serve\", \"needs=cache:6379\"")
        .replace("accept-noise = true", "accept-noise = true\nrepeats = 2");
    run(&lab, &text).expect_code(0).prints(&["cache"]);
    let trials = lab.result("last")["trials"].clone();
    let trials = trials.as_array().expect("an array");
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let cache = &trial["evidence"]["dependencies"][0];
        assert!(cache["seed_ns"].as_u64() > Some(0), "{cache}");
        assert!(cache["ended"].is_null(), "{cache}");
    }
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn never_ready() -> Outcome {
    let lab = Lab::new();
    let say = ["say", "text=waiting-for-a-disk-that-never-comes"];
    let more = "ready = { tcp = 9000 }\nstart-deadline = \"1s\"";
    let tables = dependency(&lab, &say, more);
    run(&lab, &experiment(&lab, &tables)).says(&[
        "INVALID dependency",
        "the dependency db: it was not ready within 1 s (connection refused)",
        "it said: waiting-for-a-disk-that-never-comes",
    ]);
    let trial = lab.trial();
    let db = &trial["evidence"]["dependencies"][0];
    assert!(db["ready_ns"].is_null(), "{db}");
    assert_eq!(db["last_output"][0], "waiting-for-a-disk-that-never-comes");
    None
}

fn ends() -> Outcome {
    let lab = Lab::new();
    let exits = ["exit", "code=3", "after_ms=2000", "port=9000"];
    let tables = dependency(&lab, &exits, "ready = { tcp = 9000 }");
    let text = experiment(&lab, &tables).replace("\"1s\"", "\"20s\"");
    run(&lab, &text).says(&[
        "INVALID dependency",
        "the dependency db: it ended during the trial (exit code 3)",
    ]);
    let trial = lab.trial();
    let db = &trial["evidence"]["dependencies"][0];
    assert_eq!(db["ended"], "exit code 3", "{db}");
    None
}

fn full() -> Outcome {
    let lab = Lab::new();
    let grows = ["oom-child", "port=9000"];
    let tables = dependency(&lab, &grows, "ready = { tcp = 9000 }\nmemory = \"48Mi\"");
    // An objective that nothing can keep: without the dependency it would be an SLO miss.
    let text = experiment(&lab, &tables).replace("errors<99%", "start<1ms,errors<99%");
    run(&lab, &text).says(&[
        "INVALID dependency",
        "the dependency db was at its limit: the kernel killed in it for memory (limit 48Mi)",
    ]);
    None
}

fn seed_fails() -> Outcome {
    let lab = Lab::new();
    let seed = r#"seed = ["/bin/sh", "-c", "echo no such table; exit 7"]"#;
    let more = format!("ready = {{ tcp = 9000 }}\n{seed}");
    let tables = dependency(&lab, &["serve", "port=9000"], &more);
    let ended = run(&lab, &experiment(&lab, &tables));
    assert_ne!(ended.code, Some(0), "{ended}");
    ended.says(&[
        "the dependency db: its seed: exit code 7, it said: no such table",
        "hint: run it by hand",
    ]);
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

const SECRET: &str = "hunter22-of-this-test";

fn printed() -> Outcome {
    let lab = Lab::new();
    fs::write(lab.path().join("password"), SECRET).expect("a file");
    let prints = r#"command = ["/bin/sh", "-c", "echo it is $DB_PASSWORD; sleep 1; exit 1"]"#;
    let env = r#"env = { DB_PASSWORD = "{file:password}" }"#;
    let app = lab.application(&["serve"]).join(" ");
    let app = format!("[\"/bin/sh\", \"-c\", \"echo it is $DB_PASSWORD; exec {app}\"]\n{env}");
    let with = |tables: &str| {
        let text = experiment(&lab, tables);
        let from = text.find("command = [\"/").expect("the application");
        let from = text[from..].find("[load]").map(|to| (from, from + to));
        let (from, to) = from.expect("a load");
        format!("{}command = {app}\n{}", &text[..from], &text[to..])
    };
    run(&lab, &with("")).expect_code(0);
    let fails = format!("[[dependency]]\nname = \"db\"\n{prints}\n{env}\nready = {{ tcp = 9000 }}");
    let text = experiment(&lab, &fails);
    let ended = run(&lab, &text).says(&["INVALID dependency", "it said: it is [redacted]"]);
    assert!(!ended.stderr.contains(SECRET), "{ended}");
    for file in lab.files() {
        let bytes = fs::read(&file).expect("a file of the store");
        let holds = bytes.windows(SECRET.len()).any(|p| p == SECRET.as_bytes());
        assert!(!holds, "{} holds the credential", file.display());
    }
    None
}

fn killed() -> Outcome {
    let lab = Lab::new();
    let tables = dependency(
        &lab,
        &["daemons", "count=3", "port=9000"],
        "ready = { tcp = 9000 }",
    );
    let text = experiment(&lab, &tables).replace("\"1s\"", "\"60s\"");
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
    let mut victim = lab.call("run").args(&["--wait", "exp.toml"]).start();
    victim.until_it_measures();
    until_it_runs(&lab, "port=9000");
    assert_killed_whole(&lab, victim);
    None
}

/// Waits for a process of a trial that has this in its command.
pub fn until_it_runs(lab: &Lab, word: &str) {
    let has_started = || {
        let is_it = |process: &std::path::PathBuf| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0)
                .any(|part| part == word.as_bytes())
        };
        processes(lab).iter().any(is_it)
    };
    let begin = std::time::Instant::now();
    while !has_started() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never starts");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn refused() -> Outcome {
    let lab = Lab::new();
    let one = dependency(&lab, &["serve", "port=9000"], "ready = { tcp = 9000 }");
    let with = |more: &str| dependency(&lab, &["serve", "port=9000"], more);
    let cases = [
        (one.clone() + &one, "two dependencies are called `db`"),
        (
            one.clone() + &one.replace("\"db\"", "\"cache\""),
            "`db` and `cache` listen on port 9000",
        ),
        (
            one.replace("9000 }", "8080 }"),
            "`db` listens on the port of the application",
        ),
        (
            "[[dependency]]\nname = \"db\"\ncommand = [\"no-such-server\"]\nready = { tcp = 1 }"
                .to_owned(),
            "cannot find the program `no-such-server`",
        ),
        (
            with("ready = { tcp = 9000 }\nimagine = 1"),
            "there is no key `imagine` here",
        ),
        (
            with("ready = { http = \"/health\" }"),
            "ready of `db` names no port",
        ),
        (
            with("ready = { port = 9000 }"),
            "ready of `db` needs exactly one check",
        ),
        (with(""), "`db` does not say when it is ready"),
        (
            with("ready = { tcp = 9000 }\nvolumes = [\"a:/b\"]"),
            "`db` is a program of this machine and already sees its files",
        ),
        (
            with("ready = { tcp = 9000 }\nengine = \"podman\""),
            "an engine is named, and no image for it to start",
        ),
        (
            with("ready = { tcp = 9000 }\nimage = \"a:1\"\nvolumes = [\"schema.sql\"]"),
            "`schema.sql` is not a volume",
        ),
        (
            with("ready = { tcp = 9000 }\nimage = \"a:1\"\ndirectories = [\"/var/lib/a\"]"),
            "`db` is an image, which has its own files",
        ),
        (
            one.replace("\"db\"", "\"a b\""),
            "`a b` is not a dependency name",
        ),
        (
            with("ready = { tcp = 9000 }\nuser = \"0\""),
            "it may not run as root",
        ),
        (
            with("ready = { tcp = 9000 }\ncpuset = \"777\""),
            "the cpuset `777`: loadline may use CPUs",
        ),
        (
            with("ready = { tcp = 9000 }\ndirectories = [\"data\"]"),
            "`data` is not an absolute path",
        ),
        (
            with("ready = { tcp = 9000 }\nenv = { DB_PASSWORD = \"hunter22\" }"),
            "DB_PASSWORD of `db` holds a credential",
        ),
        (
            with("ready = { tcp = 9000 }\nenv = { DB_PASSWORD = \"{env:LOADLINE_NO_SUCH}\" }"),
            "the variable `LOADLINE_NO_SUCH`, which is not set",
        ),
        (
            with("ready = { tcp = 9000 }\nscope = \"forever\""),
            "`forever` is not a scope of a dependency",
        ),
        (
            with("ready = { tcp = 9000 }\nreset = [\"true\"]"),
            "`db` has a reset, and each trial has a fresh one",
        ),
        (
            format!("{one}[limits]\ninstances = 2\n"),
            "several instances cannot share dependencies",
        ),
    ];
    for (tables, problem) in cases {
        let ended = run(&lab, &experiment(&lab, &tables));
        assert!(
            ended.code.is_some_and(|code| code > 1),
            "{problem}: {ended}"
        );
        let ended = ended.says(&[problem, "hint: "]);
        assert!(!ended.stderr.contains("hunter22"), "{ended}");
    }
    None
}
