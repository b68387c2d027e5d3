//! Result files of load tools: what is read from each, and what is refused.
//!
//! Samples of the project have known rows. Recorded files of real tools are read where they exist.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use loadline_analysis::record::{ReportedEvidence, ReportedFigures};
use loadline_load::reported::{ReportedWindow, read_reported};

/// The third to the seventh of ten requests.
const MIDDLE: ReportedWindow = ReportedWindow {
    begin: 1_795_738_500.15,
    since_first: 0.15,
    length: 0.5,
};

/// All that anything recorded in 2026 and 2027 can lie in.
const ALWAYS: ReportedWindow = ReportedWindow {
    begin: 1_767_225_600.0,
    since_first: 0.0,
    length: 63_072_000.0,
};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reported")
}

fn figures(figures: &ReportedFigures) -> String {
    let ms = |time: Option<std::time::Duration>| {
        time.map_or("-".to_owned(), |t| format!("{:.2}", t.as_secs_f64() * 1e3))
    };
    format!(
        "{} with {} failed, ms {} {} {}",
        figures.requests,
        figures.failed,
        ms(figures.p50),
        ms(figures.p90),
        ms(figures.p99)
    )
}

fn told(read: &ReportedEvidence) -> String {
    let named = read.by_request.iter();
    let named: String = named
        .map(|(name, of)| format!("; {name:?}: {}", figures(of)))
        .collect();
    format!(
        "{} {:?}: {}{named}",
        read.format,
        read.scope,
        figures(&read.all)
    )
}

fn read_all(directory: &Path, names: &[&str], window: ReportedWindow) -> String {
    let lines = names.iter().map(|name| {
        let file = File::open(directory.join(name)).expect("a sample");
        match read_reported(file, window) {
            Ok(read) => format!("{name} = {}", told(&read)),
            Err(error) => format!("{name}: {error}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_of_the_judged_part_become_percentiles_with_failures_as_slowest() {
    let names = [
        "jmeter.csv",
        "jmeter.xml",
        "vegeta.gob",
        "vegeta.json",
        "vegeta.csv",
        "gatling.log",
        "hey.csv",
        "oha.csv",
        "ghz.json",
        "requests.jsonl",
    ];
    insta::assert_snapshot!(read_all(&samples(), &names, MIDDLE), @r#"
    jmeter.csv = JMeter CSV Rows: 5 with 1 failed, ms 60.03 - -; "find, \"all\"": 5 with 1 failed, ms 60.03 - -
    jmeter.xml = JMeter XML Rows: 6 with 1 failed, ms 40.01 - -; "find": 6 with 1 failed, ms 40.01 - -
    vegeta.gob = vegeta Rows: 5 with 1 failed, ms 60.03 - -; "GET /owners/{id}": 5 with 1 failed, ms 60.03 - -
    vegeta.json = vegeta JSON Rows: 5 with 1 failed, ms 60.03 - -; "GET /owners/{id}": 5 with 1 failed, ms 60.03 - -
    vegeta.csv = vegeta CSV Rows: 5 with 1 failed, ms 60.03 - -; "GET /owners/{id}": 5 with 1 failed, ms 60.03 - -
    gatling.log = Gatling Rows: 5 with 1 failed, ms 60.03 - -; "find": 5 with 1 failed, ms 60.03 - -
    hey.csv = hey Rows: 5 with 1 failed, ms 60.03 - -
    oha.csv = oha CSV Rows: 5 with 1 failed, ms 60.03 - -
    ghz.json = ghz JSON Rows: 5 with 1 failed, ms 60.03 - -; "grpc.health.v1.Health.Check": 5 with 1 failed, ms 60.03 - -
    requests.jsonl = JSON lines Rows: 5 with 1 failed, ms 60.03 - -; "GET /owners/{id}": 5 with 1 failed, ms 60.03 - -
    "#);
}

#[test]
fn what_has_no_rows_with_times_counts_for_the_whole_run() {
    let names = [
        "ghz.csv",
        "oha.json",
        "locust_stats.csv",
        "wrk.txt",
        "wrk_errors.txt",
        "../data/run.hlog",
    ];
    insta::assert_snapshot!(read_all(&samples(), &names, ALWAYS), @r#"
    ghz.csv = ghz CSV WholeRun: 10 with 1 failed, ms 60.03 100.01 -
    oha.json = oha JSON ToolSummary: 10 with 0 failed, ms 50.00 90.00 100.00
    locust_stats.csv = Locust ToolSummary: 82 with 4 failed, ms - - -; "GET /": 78 with 0 failed, ms 11.00 32.00 80.00; "GET /bad": 4 with 4 failed, ms - - -
    wrk.txt = wrk ToolSummary: 46929 with 0 failed, ms 0.02 4.91 16.18
    wrk_errors.txt = wrk ToolSummary: 28906 with 20 failed, ms - - -
    ../data/run.hlog = HdrHistogram Intervals: 1117 with 0 failed, ms 1.18 210.63 772.28
    "#);
}

#[test]
fn the_percentiles_of_wrk2_have_more_digits() {
    let text = "Running 2s test @ http://x/\n 50.000%    1.20ms\n 90.000%    2.00ms\n 99.000%    3.00ms\n 99.900%    9.00ms\n  10 requests in 2.00s, 1KB read\n";
    let read = read_reported(text.as_bytes(), ALWAYS).expect("a text of wrk2");
    let ms = [read.all.p50, read.all.p90, read.all.p99].map(|at| at.map(|at| at.as_micros()));
    assert_eq!(ms, [Some(1200), Some(2000), Some(3000)]);
}

#[test]
fn sums_with_endless_names_are_neither_kept_nor_read() {
    let header = "Type,Name,Request Count,Failure Count,50%,90%,99%\n";
    let table = format!("{header}GET,/{},3,0,1,2,3\n", "x".repeat(1 << 20));
    let read = read_reported(table.as_bytes(), ALWAYS).expect("a table of Locust");
    let names: Vec<usize> = read.by_request.keys().map(String::len).collect();
    assert_eq!(names, [200]);
    let sample = fs::read_to_string(samples().join("oha.json")).expect("a sample");
    let key = "\"statusCodeDistribution\": {";
    assert!(sample.contains(key), "{sample}");
    let statuses: String = (0..400_000).map(|n| format!("\"{n}\":1,")).collect();
    let endless = sample.replace(key, &format!("{key}{statuses}"));
    let refusal = read_reported(endless.as_bytes(), ALWAYS).unwrap_err();
    assert!(
        refusal.to_string().contains("not a complete JSON"),
        "{refusal}"
    );
}

#[test]
fn what_is_not_read_is_refused_with_a_way_out() {
    let mut gatling = fs::read(samples().join("gatling.log")).expect("a sample");
    gatling[7..9].copy_from_slice(b"15");
    let long = [
        b"{\"time\": 1, \"latency\": 1, \"ok\": true}\n{\"".as_slice(),
        &[b'x'; 5 << 20],
    ]
    .concat();
    let cases: [&[u8]; 12] = [
        b"",
        b"\n\n",
        &gatling,
        b"RUN\tSim\tsim\t1795738500000\t \t3.9.5\n",
        b"\nSummary:\n  Total:\t1.0 secs\n",
        b"{\"latencies\":{\"total\":1}}",
        b"{\"metric\":\"http_reqs\",\"type\":\"Point\"}\n",
        b"{\"time\": 1, \"latency\": 1, \"ok\": true}\nping\n",
        b"timeStamp,elapsed,label\n1795738500000,1,a\n",
        b"<testResults>\n<httpSample ts=\"2026/11/27 00:15:00\" t=\"1\"/>\n",
        b"{\"date\":\"2026-11-27T00:15:00Z\",\"endReason\":\"normal\",\"options\":",
        &long,
    ];
    let why = cases.map(|case| match read_reported(case, ALWAYS) {
        Ok(read) => told(&read),
        Err(error) => error.to_string(),
    });
    insta::assert_snapshot!(why.join("\n"), @r#"
    results: it is empty; the command must write it before it ends, by {duration_s}
    results: it is empty; the command must write it before it ends, by {duration_s}
    results: it is a log of Gatling "3.15.3", loadline reads 3.14; let the simulation write lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    results: it is a log of Gatling before 3.12; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    results: it is hey's text, which has no counts; use hey -o csv; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    results: it is vegeta's report, which has no rows; use vegeta attack -output={results}; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    results: its format is unknown, it starts with "{\"metric\":\"http_reqs\",\"type\":\"Point\"}"; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    results: line 2 is not a row of its format; did something else write there?
    results: line 1 is not a row of its format; did something else write there?
    results: a sample of JMeter's XML has no ts and t; jmeter.save.saveservice.time and timestamp_format=ms write them
    results: it is not a complete JSON document (EOF while parsing a value at line 1 column 62); the command must have ended by {duration_s}
    results: line 2 is longer than 4 MiB; leave answers out (vegeta: -max-body=0)
    "#);
}

/// Cuts of a sample are read or refused, and never give more than the whole.
#[test]
fn a_file_that_is_cut_anywhere_gives_no_more_than_the_whole() {
    for entry in fs::read_dir(samples()).expect("samples") {
        let path = entry.expect("a file").path();
        let bytes = fs::read(&path).expect("a sample");
        let most = read_reported(&bytes[..], ALWAYS).map_or(0, |read| read.all.requests);
        for length in (0..bytes.len()).step_by(5) {
            let cut = read_reported(&bytes[..length], ALWAYS);
            let requests = cut.map_or(0, |read| read.all.requests);
            assert!(requests <= most, "{}: {length}", path.display());
        }
    }
}

#[test]
fn recorded_files_of_real_tools_are_read() {
    let shared = std::env::var_os("LOADLINE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let recorded = shared.join("loadtools");
    if !recorded.is_dir() {
        println!("SKIP recorded_files_of_real_tools_are_read: no shared/loadtools");
        return;
    }
    let names = [
        "jmeter/open.jtl",
        "jmeter/refused.jtl",
        "jmeter/open.xml",
        "vegeta/results.gob",
        "vegeta/results.json",
        "vegeta/results.csv",
        "vegeta/report.json",
        "gatling/results/sim-20261127002211554/simulation.log",
        "gatling/refused/sim-20261127004527784/simulation.log",
        "hey/out.csv",
        "hey/refused.csv",
        "hey/out.txt",
        "oha/out.csv",
        "oha/out.json",
        "oha/bad.json",
        "oha/refused.json",
        "ghz/out.csv",
        "ghz/out.json",
        "ghz/notfound.json",
        "wrk/latency.txt",
        "wrk/lua.txt",
        "locust/out_stats.csv",
        "locust/stdout.json",
        "loadline/seconds.hlog",
        "artillery/out.json",
        "autocannon/out.json",
    ];
    insta::assert_snapshot!(read_all(&recorded, &names, ALWAYS), @r#"
    jmeter/open.jtl = JMeter CSV Rows: 100 with 0 failed, ms 18.01 72.02 84.02; "root": 100 with 0 failed, ms 18.01 72.02 84.02
    jmeter/refused.jtl = JMeter CSV Rows: 20 with 20 failed, ms - - -; "root": 20 with 20 failed, ms - - -
    jmeter/open.xml = JMeter XML Rows: 100 with 100 failed, ms - - -; "root": 100 with 100 failed, ms - - -
    vegeta/results.gob = vegeta Rows: 100 with 66 failed, ms - - -; "GET /": 67 with 33 failed, ms 16.13 - -; "GET /bad": 33 with 33 failed, ms - - -
    vegeta/results.json = vegeta JSON Rows: 100 with 66 failed, ms - - -; "GET /": 67 with 33 failed, ms 16.13 - -; "GET /bad": 33 with 33 failed, ms - - -
    vegeta/results.csv = vegeta CSV Rows: 100 with 66 failed, ms - - -; "GET /": 67 with 33 failed, ms 16.13 - -; "GET /bad": 33 with 33 failed, ms - - -
    vegeta/report.json: results: it is vegeta's report, which has no rows; use vegeta attack -output={results}; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    gatling/results/sim-20261127002211554/simulation.log = Gatling Rows: 100 with 0 failed, ms 14.00 240.12 682.10; "root": 100 with 0 failed, ms 14.00 240.12 682.10
    gatling/refused/sim-20261127004527784/simulation.log = Gatling Rows: 10 with 10 failed, ms - - -; "root": 10 with 10 failed, ms - - -
    hey/out.csv = hey Rows: 100 with 0 failed, ms 0.30 3.40 11.21
    hey/refused.csv = hey Rows: 0 with 0 failed, ms - - -
    hey/out.txt: results: it is hey's text, which has no counts; use hey -o csv; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    oha/out.csv = oha CSV Rows: 20 with 0 failed, ms 0.06 12.20 41.62
    oha/out.json = oha JSON ToolSummary: 100 with 0 failed, ms 1.20 21.75 32.20
    oha/bad.json = oha JSON ToolSummary: 20 with 20 failed, ms - - -
    oha/refused.json = oha JSON ToolSummary: 20 with 20 failed, ms - - -
    ghz/out.csv = ghz CSV WholeRun: 100 with 0 failed, ms 3.48 12.03 37.88
    ghz/out.json = ghz JSON Rows: 100 with 0 failed, ms 3.53 8.33 123.80; "grpc.health.v1.Health.Check": 100 with 0 failed, ms 3.53 8.33 123.80
    ghz/notfound.json = ghz JSON Rows: 20 with 20 failed, ms - - -; "grpc.health.v1.Health.Check": 20 with 20 failed, ms - - -
    wrk/latency.txt = wrk ToolSummary: 46929 with 0 failed, ms 0.02 4.91 16.18
    wrk/lua.txt = wrk ToolSummary: 16531 with 16531 failed, ms - - -
    locust/out_stats.csv = Locust ToolSummary: 82 with 4 failed, ms - - -; "GET /": 78 with 0 failed, ms 11.00 32.00 80.00; "GET /bad": 4 with 4 failed, ms - - -
    locust/stdout.json: results: its format is unknown, it starts with "["; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    loadline/seconds.hlog = HdrHistogram Intervals: 100 with 0 failed, ms 1.56 16.29 62.39
    artillery/out.json: results: its format is unknown, it starts with "{"; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    autocannon/out.json: results: its format is unknown, it starts with "{\"url\":\"http://127.0.0.1:18080/\",\"connections\":2,\"sampleInt\""; loadline reads JMeter's JTL, Gatling 3.14, vegeta, hey, oha, ghz, wrk, Locust, HdrHistogram logs, and lines such as {"time": 1795738504.25, "latency": 0.0123, "ok": true}
    "#);
}
