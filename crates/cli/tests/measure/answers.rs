//! What a user asks for and gets: the size, the matrix, and every form a result can be had in.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::lab::{Lab, QUICK, is_answer, recommended};
use crate::runner::{Case, Outcome};
use crate::screen;

pub const CASES: [Case; 7] = [
    ("a_search_finds_the_size", a_search_finds_the_size),
    ("an_slo_that_cannot_be_met", an_slo_that_cannot_be_met),
    (
        "what_cannot_pass_any_more_ends_early",
        what_cannot_pass_any_more_ends_early,
    ),
    ("a_matrix_says_what_breaks", a_matrix_says_what_breaks),
    ("a_closed_output_is_no_error", a_closed_output_is_no_error),
    (
        "nothing_of_the_progress_is_left_on_a_terminal",
        nothing_of_the_progress_is_left_on_a_terminal,
    ),
    (
        "what_memory_does_not_cure_is_tried_once",
        what_memory_does_not_cure_is_tried_once,
    ),
];

fn a_search_finds_the_size() -> Outcome {
    let lab = Lab::new();
    let report = lab.path().join("first.html");
    let sized = lab.size_with(&["--json", "--report=first.html"]);
    let sized = sized
        .into_end()
        .expect_code(0)
        .says(&["report: first.html"]);
    let result = sized.json();
    assert!(is_answer(recommended(&result)), "{result:#}");
    let smaller = &result["recommendation"]["next_smaller"];
    // Where its files are others' pages, a squeeze ends without a size that breaks.
    let is_smaller = smaller["memory_bytes"].as_u64() < Some(64 << 20);
    assert!(smaller.is_null() || is_smaller, "{result:#}");
    assert!(is_page(&report), "{}", report.display());
    let shown = lab.call("show").into_end().expect_code(0);
    shown.prints(&["and ", "fresh starts"]);
    lab.call("list").into_end().expect_code(0).prints(&[
        "result begun kind title status trials answer",
        "size",
        "done",
    ]);
    let trials = result["trials"].as_array().map_or(0, Vec::len);
    let listed = lab.results();
    assert_eq!(listed[0]["trials"], trials, "{listed:?}");
    assert_eq!(listed[0]["status"], "done", "{listed:?}");
    every_form(&lab, trials);
    // A trial by its id, and the experiment as it can be run again.
    let id = result["trials"][0]["id"].as_str().expect("an id");
    let shown = lab.call("show").arg(id).into_end().expect_code(0).json();
    assert_eq!(shown["verdict"], result["trials"][0]["verdict"]);
    let again = lab
        .call("show")
        .arg("--experiment")
        .into_end()
        .expect_code(0);
    let file = lab.path().join("again.toml");
    std::fs::write(&file, &again.stdout).expect("a file");
    let plan = lab.call("plan").arg("again.toml").into_end().expect_code(0);
    plan.prints(&["a search takes about", "application's took here before"]);
    None
}

fn every_form(lab: &Lab, trials: usize) {
    let export = |format: &str| {
        let exported = lab.call("export").args(&["--format", format]).into_end();
        exported.expect_code(0)
    };
    assert!(is_answer(recommended(&export("json").json())));
    let csv = export("csv").stdout;
    assert_eq!(csv.lines().count(), trials + 1, "a row a trial:\n{csv}");
    let junit = export("junit").stdout;
    let cases = junit.matches("<testcase").count();
    let result = lab.result("last");
    let sizes = result["trials"].as_array().into_iter().flatten();
    let sizes = sizes.map(|t| t["configuration"]["memory_bytes"].as_u64());
    let sizes: std::collections::BTreeSet<_> = sizes.collect();
    assert_eq!(cases, sizes.len(), "a test case a configuration:\n{junit}");
    export("markdown").prints(&["recommended", "| Memory |"]);
    let file = lab.path().join("second.html");
    let call = lab.call("report").arg("-o").arg(&file);
    call.into_end().expect_code(0).says(&["report: "]);
    assert!(is_page(&file), "{}", file.display());
}

fn is_page(file: &std::path::Path) -> bool {
    let page = std::fs::read_to_string(file).unwrap_or_default();
    page.contains("Mi") && page.trim_end().ends_with("</html>")
}

fn an_slo_that_cannot_be_met() -> Outcome {
    let lab = Lab::new();
    // A second an answer, and half of them may take half a second.
    let call = lab
        .call("size")
        .args(&["--wait", "--accept-noise", "--slo=p50<500ms", "--rate=20/s"])
        .args(&["--warm-up=0s", "--measure=300ms"])
        .args(&["--url=http://localhost:8080/", "--max-memory=96Mi"])
        .zoo(&lab, &["serve", "slow_ms=1000"]);
    call.into_end()
        .expect_code(1)
        .says(&["SLO_MISS", "p50 was"])
        .prints(&["96Mi", "the SLO allows 500ms"]);
    assert_eq!(lab.results()[0]["status"], "done");
    None
}

fn what_cannot_pass_any_more_ends_early() -> Outcome {
    let lab = Lab::new();
    let call = lab
        .call("size")
        .args(&["--wait", "--accept-noise", "--slo=p95<500ms", "--rate=20/s"])
        .args(&["--warm-up=0s", "--measure=60s"])
        .args(&[
            "--url=http://localhost:8080/",
            "--max-memory=96Mi",
            "--prove=3",
        ])
        .zoo(&lab, &["serve", "slow_ms=1000"]);
    call.into_end()
        .expect_code(1)
        .says(&["SLO_MISS", "it was ended early: "]);
    let result = lab.result("last");
    let trials = result["trials"].as_array().into_iter().flatten();
    for trial in trials {
        let evidence = &trial["evidence"];
        assert_eq!(evidence["ended_early"]["phase"], "measure", "{trial:#}");
        let load = evidence["load"][0]["duration_ns"].as_u64();
        assert!(load.is_some_and(|ns| ns < 30_000_000_000), "{trial:#}");
    }
    None
}

/// Every third start of it needs more CPU than its limit: no size keeps the SLO, twice the CPU does.
fn what_memory_does_not_cure_is_tried_once() -> Outcome {
    let lab = Lab::new();
    let shared = lab.path().join("shared");
    std::fs::create_dir(&shared).expect("a directory");
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&shared, everybody).expect("its mode");
    let count = format!("count={}", shared.join("starts").display());
    let ended = lab
        .call("size")
        .args(&["--wait", "--accept-noise", "--slo=p50<100ms", "--rate=50/s"])
        .args(&["--warm-up=0s", "--measure=1s", "--cpu=200m", "--prove=3"])
        .args(&["--min-memory=32Mi", "--max-memory=64Mi", "--try"])
        .arg("--url=http://localhost:8080/")
        .zoo(&lab, &["serve", "work_ms=6", &count])
        .into_end();
    ended.expect_code(1).prints(&[
        "Behind the misses: a CPU limit that was all used",
        "SLO MISS, not tested",
        "Tried: a CPU limit of 400m. At 64Mi 3 of 3 starts kept the SLO with it",
    ]);
    None
}

fn a_matrix_says_what_breaks() -> Outcome {
    let lab = Lab::new();
    let command = lab.application(&["serve", "heap_mib=34"]);
    let file = format!(
        r#"
question = "Which of two sizes?"
slo = "errors<99%"
[app]
command = {command:?}
[load]
url = "http://localhost:8080/"
rate = "50/s"
warm-up = "0s"
measure = "300ms"
[run]
accept-noise = true
repeats = 2
[[factor]]
name = "memory"
levels = ["64Mi", "16Mi"]
"#
    );
    std::fs::write(lab.path().join("two.toml"), file).expect("a file");
    lab.bare(&["plan", "two.toml"])
        .into_end()
        .expect_code(0)
        .prints(&["64Mi", "16Mi", "4 trials"]);
    let call = lab.call("run").args(&["--wait", "two.toml"]);
    call.into_end()
        .expect_code(0)
        .says(&["64Mi #2", "16Mi #2", "cgroup_oom"])
        .prints(&["2 of 2", "0 of 2", "KO cgroup oom"]);
    let result = lab.result("last");
    let passes = |memory: u64| {
        let trials = result["trials"].as_array().into_iter().flatten();
        let of_size = trials.filter(|t| t["configuration"]["memory_bytes"] == memory);
        of_size.filter(|t| t["verdict"]["class"] == "pass").count()
    };
    assert_eq!((passes(64 << 20), passes(16 << 20)), (2, 0), "{result:#}");
    None
}

fn a_closed_output_is_no_error() -> Outcome {
    let lab = Lab::new();
    let call = lab.measure("run").zoo(&lab, &["serve"]);
    call.into_end().expect_code(0);
    let reading: [&[&str]; 7] = [
        &["list"],
        &["list", "--json"],
        &["show"],
        &["show", "--json"],
        &["export"],
        &["export", "--format=markdown"],
        &["clean"],
    ];
    for arguments in reading {
        let call = lab.call(arguments[0]).args(&arguments[1..]);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        call.start_with(Stdio::from(writer)).end().expect_code(0);
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let help = lab.bare(&["--help"]).start_with(Stdio::from(writer)).end();
    assert!(!help.stderr.contains("panicked"), "{help}");
    None
}

fn nothing_of_the_progress_is_left_on_a_terminal() -> Outcome {
    let lab = Lab::new();
    let state = lab.state().display().to_string();
    let application = lab.application(&["serve"]);
    let mut words = vec!["run", "-v", "--state", &state];
    words.extend(QUICK);
    words.push("--");
    words.extend(application.iter().map(String::as_str));
    let is_spinner = |c: char| ('\u{2800}'..='\u{28ff}').contains(&c);
    for columns in [60, 200] {
        let written = screen::run(columns, &lab.program(), &words, &[]);
        assert_eq!(written.code, Some(0), "{}", written.raw);
        assert!(written.raw.contains(is_spinner), "drawn: {}", written.raw);
        assert!(!written.has_style(), "{}", written.raw);
        let left = written.left().join("\n");
        assert!(!left.contains(is_spinner), "{left}");
        let told = left.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "raw events of each trial",
            "starts as given",
            "PASS",
            "measure",
        ] {
            assert!(told.contains(part), "{part}: {left}");
        }
    }
    None
}
