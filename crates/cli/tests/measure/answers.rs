//! What a user asks for and gets: the size, the matrix, and every form a result can be had in.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::lab::{Lab, QUICK, is_answer, recommended};
use crate::runner::{Case, Outcome};
use crate::screen;

pub const CASES: [Case; 6] = [
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
];

/// They judge by latency, so other programs would disturb them.
pub const TIMED: [Case; 4] = [
    (
        "what_memory_does_not_cure_is_tried_once",
        what_memory_does_not_cure_is_tried_once,
    ),
    ("the_smallest_cpu_is_found", the_smallest_cpu_is_found),
    ("a_request_needs_no_limit", a_request_needs_no_limit),
    ("a_request_has_a_limit_above", a_request_has_a_limit_above),
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
    let answer = recommended(&result);
    assert!(is_answer(answer), "{result:#}");
    let size = format!("{}Mi", answer.unwrap_or_default() >> 20);
    let smaller = result["recommendation"]["next_smaller"]["memory_bytes"].as_u64();
    match smaller {
        Some(smaller) => assert!(Some(smaller) < answer, "{result:#}"),
        // Another program had paid for its file pages: the squeeze found no room, and no size that breaks.
        None => assert_eq!(end_of_squeeze(&result), "no_room", "{result:#}"),
    }
    assert!(is_page(&report, &size), "{}", report.display());
    // Fresh starts are compared with the wall, their bursts among them.
    let has_budget = !result["recommendation"]["budget"].is_null();
    assert_eq!(has_burst(&result), has_budget, "{result:#}");
    let proof = &result["recommendation"]["proof"];
    // Where the distances of the starts decide, nobody counts misses.
    let starts = match proof["distances"].as_array() {
        Some(distances) if !distances.is_empty() => {
            format!("{} fresh starts kept it", proof["starts"])
        }
        _ => format!("0 of {} fresh starts", proof["starts"]),
    };
    let shown = lab.call("show").into_end().expect_code(0);
    let shown = shown.prints(&[&format!("and {size}"), &starts]);
    if let Some(smaller) = smaller {
        shown.prints(&[&format!("{}Mi is too small", smaller >> 20)]);
    }
    lab.call("list").into_end().expect_code(0).prints(&[
        "result begun kind title status trials answer",
        "size",
        "done",
    ]);
    let trials = result["trials"].as_array().map_or(0, Vec::len);
    let listed = lab.results();
    assert_eq!(listed[0]["trials"], trials, "{listed:?}");
    assert_eq!(listed[0]["status"], "done", "{listed:?}");
    every_form(&lab, trials, &size);
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

/// How the squeeze of a search ended.
fn end_of_squeeze(result: &serde_json::Value) -> String {
    let trials = result["trials"].as_array().into_iter().flatten();
    let mut ends = trials.map(|trial| &trial["evidence"]["squeeze"]["end"]["kind"]);
    let end = ends.find_map(serde_json::Value::as_str);
    end.unwrap_or_default().to_owned()
}

fn has_burst(result: &serde_json::Value) -> bool {
    let trials = result["trials"].as_array().into_iter().flatten();
    let fresh = trials.filter(|trial| trial["purpose"] == "prove");
    let mut phases = fresh.filter_map(|trial| trial["evidence"]["phases"].as_array());
    phases.any(|phases| phases.iter().any(|span| span["phase"] == "age"))
}

fn every_form(lab: &Lab, trials: usize, size: &str) {
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
    export("markdown").prints(&[size, "| Memory |"]);
    let file = lab.path().join("second.html");
    let call = lab.call("report").arg("-o").arg(&file);
    call.into_end().expect_code(0).says(&["report: "]);
    assert!(is_page(&file, size), "{}", file.display());
}

fn is_page(file: &std::path::Path, size: &str) -> bool {
    let page = std::fs::read_to_string(file).unwrap_or_default();
    page.contains(size) && page.trim_end().ends_with("</html>")
}

fn an_slo_that_cannot_be_met() -> Outcome {
    let lab = Lab::new();
    // A second per answer, for half of the answers half a second may do.
    let call = lab
        .call("size")
        .args(&["--wait", "--accept-noise", "--slo=p50<500ms", "--rate=20/s"])
        .args(&["--warm-up=0s", "--measure=300ms", "--cpu=none"])
        .args(&["--url=http://localhost:8080/", "--max-memory=96Mi"])
        .zoo(&lab, &["serve", "slow_ms=1000"]);
    call.into_end()
        .expect_code(1)
        .says(&["SLO_MISS", "p50 was"])
        .prints(&["96Mi", "the SLO allows 500ms"]);
    assert_eq!(lab.results()[0]["status"], "done");
    let result = lab.result("last");
    let trials = result["trials"].as_array().expect("trials");
    assert_eq!(trials[0]["purpose"], "room", "{result:#}");
    for trial in trials {
        let phases = trial["evidence"]["phases"].to_string();
        assert!(!phases.contains("age"), "what missed is not aged: {phases}");
    }
    None
}

fn what_cannot_pass_any_more_ends_early() -> Outcome {
    let lab = Lab::new();
    let call = lab
        .call("size")
        .args(&["--wait", "--accept-noise", "--slo=p95<500ms", "--rate=20/s"])
        .args(&["--warm-up=0s", "--measure=60s", "--cpu=none"])
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

/// Every third start needs more CPU than its limit: no size keeps the SLO, twice the CPU does.
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
        .zoo(&lab, &["serve", "work_us=6000", &count])
        .into_end();
    ended.expect_code(1).prints(&[
        "Behind the misses: a CPU limit that was all used",
        "SLO MISS, not tested",
        "Tried: a CPU limit of 400m. At 64Mi 3 of 3 starts kept the SLO with it",
    ]);
    None
}

/// A search for the CPU of a server that burns 0.4 ms, and what serving takes, for each of 600 requests
/// a second: above 240m. At such a rate its starts age within seconds.
/// Errors: Other programs held the CPUs, and the search says so.
fn size_cpu(lab: &Lab, flags: &[&str]) -> Result<serde_json::Value, String> {
    let ended = lab
        .call("size")
        .args(&["--wait", "--json", "--accept-noise", "--slo=p50<100ms"])
        .args(&["--rate=600/s", "--warm-up=0s", "--measure=2s", "--prove=1"])
        .args(&["--min-memory=32Mi", "--max-memory=64Mi", "--step=32Mi"])
        .arg("--url=http://localhost:8080/")
        .args(flags)
        .zoo(lab, &["serve", "work_us=400"])
        .into_end();
    if ended.code == Some(4) {
        return Err("others held the CPUs: the search could not measure".to_owned());
    }
    Ok(ended.expect_code(0).json())
}

fn the_smallest_cpu_is_found() -> Outcome {
    let lab = Lab::new();
    let result = match size_cpu(&lab, &[]) {
        Ok(result) => result,
        Err(reason) => return Some(reason),
    };
    let given = result["recommendation"]["configuration"]["cpu_millicpus"].as_u64();
    // Other programs may slow it down; less than it burns never suffices.
    assert!(
        given.is_some_and(|cpu| (240..1000).contains(&cpu)),
        "{result:#}"
    );
    lab.call("show")
        .into_end()
        .expect_code(0)
        .prints(&["CPU is too little (trial"]);
    None
}

fn a_request_needs_no_limit() -> Outcome {
    let lab = Lab::new();
    let result = match size_cpu(&lab, &["--cpu=800m", "--cpu-policy=request"]) {
        Ok(result) => result,
        Err(reason) => return Some(reason),
    };
    let configuration = &result["recommendation"]["configuration"];
    assert!(configuration["cpu_millicpus"].is_null(), "{result:#}");
    assert_eq!(configuration["cpu_request_millicpus"], 800, "{result:#}");
    assert_eq!(
        configuration["jvm_options"][0]["text"], "-XX:ActiveProcessorCount=1",
        "{result:#}"
    );
    None
}

fn a_request_has_a_limit_above() -> Outcome {
    let lab = Lab::new();
    let result = match size_cpu(&lab, &["--cpu-policy=both"]) {
        Ok(result) => result,
        Err(reason) => return Some(reason),
    };
    let configuration = &result["recommendation"]["configuration"];
    let millis = |key: &str| configuration[key].as_u64().unwrap_or_default();
    let (request, limit) = (millis("cpu_request_millicpus"), millis("cpu_millicpus"));
    // Less than it burns never suffices.
    assert!(request >= 168 && limit >= request, "{result:#}");
    lab.call("show")
        .into_end()
        .expect_code(0)
        .prints(&["a CPU request of "]);
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
    words.extend(["--color=never", "--"]);
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
