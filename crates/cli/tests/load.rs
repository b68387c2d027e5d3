//! `loadline load` as a user runs it: its refusals, its end, its result.

mod server;

use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use loadline_load::histogram::decode_histogram;
use rustix::process::{Pid, Signal, kill_process};
use server::server;

/// Something that does not happen within this hangs.
const LONGEST: Duration = Duration::from_secs(60);
const USAGE: i32 = 2;
const ENVIRONMENT: i32 = 3;

fn command(arguments: &[&str]) -> Command {
    from("exec env --default-signal=HUP", arguments)
}

/// `loadline load`, started from a shell by `exec` in these words.
fn from(exec: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{exec} \"$@\""), "sh"]);
    command.args([env!("CARGO_BIN_EXE_loadline"), "load"]);
    command.args(arguments).stdin(Stdio::null());
    command
}

fn load(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts the exit code, and that stderr holds all of the words.
#[track_caller]
fn assert_ends(output: &Output, code: i32, words: &[&str]) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn an_option_that_would_do_nothing_is_refused() {
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["--max-rate", "--warm-up", "1s"],
            "--max-rate",
            "--warm-up",
        ),
        (&["--max-rate", "--out", "x"], "--max-rate", "--out"),
        (&["--max-rate", "--hgrm", "x"], "--max-rate", "--hgrm"),
        (&["--max-rate", "--hlog", "x"], "--max-rate", "--hlog"),
        (&["--max-rate", "--csv", "x"], "--max-rate", "--csv"),
        (
            &["--max-rate", "--profile", "p", "--scale", "2"],
            "--max-rate",
            "--scale",
        ),
        (
            &["--max-rate", "--profile", "p", "--speed", "2"],
            "--max-rate",
            "--speed",
        ),
        (
            &["--rate", "1/s", "--profile", "p", "--scale", "2"],
            "--rate",
            "--scale",
        ),
        (
            &["--rate", "1/s", "--profile", "p", "--speed", "2"],
            "--rate",
            "--speed",
        ),
        (
            &["--closed", "--profile", "p", "--scale", "2"],
            "--closed",
            "--scale",
        ),
        (
            &["--closed", "--profile", "p", "--speed", "2"],
            "--closed",
            "--speed",
        ),
        (
            &["--rate", "1/s", "--poisson", "-n", "5"],
            "--poisson",
            "--requests",
        ),
    ];
    for (arguments, one, other) in cases {
        let output = load(&[&["http://localhost/"], *arguments].concat());
        assert_ends(&output, USAGE, &[one, other]);
    }
}

#[test]
fn a_number_of_requests_is_made_or_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let profile = directory.path().join("p.toml");
    std::fs::write(&profile, "rates = [5.0]\n").expect("it can be written");
    let profile = profile.display().to_string();
    let url = server();
    let with_profile = load(&[&url, "--profile", &profile, "-n", "5"]);
    assert_ends(&with_profile, USAGE, &["requests: ", "--rate"]);
    let endless = load(&[&url, "--rate", "1/h", "-n", "100000000000"]);
    assert_ends(&endless, USAGE, &["requests: ", "--rate"]);
    let some = load(&[&url, "--rate", "700/s", "-n", "100", "-c", "2", "--json"]);
    let summary: serde_json::Value = serde_json::from_slice(&some.stdout).expect("JSON");
    assert_eq!(summary["requests"], 100, "{}", said(&some));
}

#[test]
fn what_cannot_be_had_is_refused_before_the_load() {
    let url = server();
    let missing = "/nowhere/file";
    for flag in ["--hgrm", "--hlog", "--csv", "--out"] {
        let output = load(&[&url, "--rate", "10/s", "-d", "1s", flag, missing]);
        assert_ends(&output, ENVIRONMENT, &[missing, "hint: "]);
        assert!(output.stdout.is_empty());
    }
    let directory = tempfile::tempdir().expect("a directory");
    let kept = directory.path().join("kept.csv");
    std::fs::write(&kept, "the last run").expect("it can be written");
    let path = kept.display().to_string();
    let output = load(&[
        &url, "--rate", "10/s", "-d", "1s", "-c", "0", "--csv", &path,
    ]);
    assert_ends(&output, USAGE, &["connections"]);
    let left = std::fs::read_to_string(&kept).expect("it is there");
    assert_eq!(left, "the last run");
    let output = load(&[&url, "--rate", "10/s", "-d", "1s", "--cpus", "0,1023"]);
    assert_ends(&output, USAGE, &["CPU 1023", "--cpus may name"]);
    assert!(output.stdout.is_empty());
}

#[test]
fn a_file_that_cannot_be_written_costs_no_summary() {
    let full = "/dev/full";
    if !Path::new(full).exists() {
        println!("SKIP a_file_that_cannot_be_written_costs_no_summary: no {full}");
        return;
    }
    let url = server();
    for flag in ["--hgrm", "--hlog", "--csv", "--out"] {
        let words = [&url, "--rate", "50/s", "-d", "200ms", "-c", "2", "--json"];
        let output = load(&[&words[..], &[flag, full]].concat());
        assert_ends(&output, ENVIRONMENT, &[full, "No space left", "hint: "]);
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["requests"], 10, "{flag}");
    }
}

/// The untagged rows of an interval log are the measured part, to the request; so are the rows of
/// the CSV that are no warm-up. The warm-up ends within a second here.
#[test]
fn files_keep_the_warm_up_apart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (hlog, csv) = (path("run.hlog"), path("run.csv"));
    let url = server();
    let load_for = [
        "--rate", "100/s", "-d", "1s", "--warmup", "1500ms", "-c", "4",
    ];
    let into = ["--hlog", &hlog, "--csv", &csv, "--json"];
    let output = load(&[&[url.as_str()], &load_for[..], &into].concat());
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let (ok, warm_up) = (&summary["ok"], &summary["warmup_requests"]);
    assert_eq!((ok.as_u64(), warm_up.as_u64()), (Some(100), Some(150)));
    let log = std::fs::read_to_string(&hlog).expect("it was written");
    let rows = log.lines().filter(|line| !line.starts_with(['#', '"']));
    let (tagged, measured): (Vec<_>, Vec<_>) = rows.partition(|r| r.starts_with("Tag=warmup,"));
    let requests = |rows: &[&str]| {
        let encoded = rows.iter().filter_map(|row| row.rsplit(',').next());
        let histograms = encoded.map(|text| decode_histogram(text).expect("a histogram"));
        histograms.map(|h| h.len()).sum::<u64>()
    };
    assert_eq!(
        (requests(&measured), requests(&tagged)),
        (100, 150),
        "{log}"
    );
    let csv = std::fs::read_to_string(&csv).expect("it was written");
    let good = |is_warmup: &str| {
        let rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let rows = rows.filter(|fields| fields[2] == is_warmup);
        rows.map(|fields| fields[4].parse::<u64>().expect("a count"))
            .sum::<u64>()
    };
    assert_eq!((good("false"), good("true")), (100, 150), "{csv}");
}

#[test]
fn the_interval_log_begins_with_the_load() {
    let directory = tempfile::tempdir().expect("a directory");
    let hlog = directory.path().join("run.hlog").display().to_string();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // Until then a busy machine has started the program.
    let start = now.expect("it is later than 1970").as_secs_f64() + 6.0;
    let (url, at) = (server(), format!("{start:.3}"));
    let words = ["--rate", "20/s", "-d", "500ms", "-c", "1", "--hlog", &hlog];
    load(&[&[url.as_str()], &words[..], &["--start-at", &at]].concat());
    let log = std::fs::read_to_string(&hlog).expect("it was written");
    let base = log.lines().find_map(|l| l.strip_prefix("#[BaseTime: "));
    let base = base.and_then(|rest| rest.split(' ').next());
    let base: f64 = base.expect("the head").parse().expect("a number");
    assert!(base > start - 0.5, "{base}, the load began at {start}");
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONGEST, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

fn signal(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("an id"), signal).expect("it still runs");
}

#[test]
fn a_signal_ends_the_load_with_its_result_and_its_code() {
    let url = server();
    let directory = tempfile::tempdir().expect("a directory");
    let csv = directory.path().join("seconds.csv");
    let csv = csv.display().to_string();
    for (number, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let _ = std::fs::remove_file(&csv);
        let child = start(command(&[
            &url, "--rate", "50/s", "-d", "1h", "--json", "--csv", &csv,
        ]));
        let rows = || std::fs::read_to_string(&csv).map_or(0, |text| text.lines().count());
        until("a second has passed", || rows() > 1);
        signal(&child, number);
        let output = child.wait_with_output().expect("it ends");
        assert_ends(&output, code, &["interrupted", "hint: "]);
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(summary["stopped"], true);
        assert!(summary["ok"].as_u64() > Some(0), "{summary}");
    }
}

#[test]
fn nohup_keeps_the_load_running() {
    let url = server();
    let directory = tempfile::tempdir().expect("a directory");
    let csv = directory.path().join("seconds.csv");
    let csv = csv.display().to_string();
    let arguments = [&url, "--rate", "50/s", "-d", "1h", "--csv", &csv];
    let child = start(from("trap '' HUP; exec", &arguments));
    let rows = || std::fs::read_to_string(&csv).map_or(0, |text| text.lines().count());
    until("a second has passed", || rows() > 1);
    signal(&child, Signal::HUP);
    let before = rows();
    until("two more seconds have passed", || rows() > before + 1);
    signal(&child, Signal::TERM);
    let output = child.wait_with_output().expect("it ends");
    assert_ends(&output, 143, &["interrupted"]);
}

/// It takes connections and answers nothing: without the signal the probe would blame it.
#[test]
fn a_signal_during_the_probe_of_a_search_is_no_fault_of_the_server() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let mut child = start(command(&[&url, "--max-rate", "-c", "2"]));
    // The head of the trials' table comes right before the probe.
    let mut stderr = child.stderr.take().expect("a pipe");
    let mut head = [0; 8];
    stderr.read_exact(&mut head).expect("it says something");
    signal(&child, Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).expect("text");
    assert_eq!(output.status.code(), Some(130), "{rest}");
    assert!(
        rest.contains("interrupted") && !rest.contains("is the server running"),
        "{rest}"
    );
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("it was stopped"), "{stdout}");
}
