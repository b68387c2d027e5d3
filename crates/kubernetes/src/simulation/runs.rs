//! Trials of a run that ends: its exit code and its output come from the kubelet.

use std::path::Path;

use loadline_analysis::record::{AppKo, TrialRecord, TrialVerdict};
use loadline_experiment::Experiment;

use super::control::RunEnd;
use super::server::ApiServer;
use super::{host_on_server, run, simulated_nodes, slot_number, wait_for_leftovers};

/// The one trial of a run that ends so; it must print `rows`.
fn run_trial(end: RunEnd) -> TrialRecord {
    let text = "slo = \"exit=0,time<600s\"\n[kubernetes]\ntrial-image = \"loadline:1\"\n\
         [app]\nimage = \"orders:1\"\nends = true\nexpect = { output = \"rows\" }\n\
         [limits]\ncpu = \"500m\"\nmemory = \"768Mi\"\n";
    let experiment = Experiment::from_file_text(text, Path::new("test.toml"), Path::new("/"));
    let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    server.state().run_end = end;
    let mut host = host_on_server(&server, slot_number(1), None).unwrap();
    let (_, mut records) = run(&mut host, experiment, u32::MAX);
    drop(host);
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
    assert_eq!(records.len(), 1, "{records:?}");
    records.remove(0)
}

#[test]
fn a_run_is_judged_by_the_code_and_the_output_that_the_kubelet_has() {
    let end = |code, output| RunEnd {
        code,
        is_oom: false,
        output,
    };
    let good = run_trial(end(0, "reading\n42 rows"));
    assert_eq!(good.verdict, TrialVerdict::Pass, "{}", good.reason);
    assert_eq!(good.evidence.exit.code, Some(0));
    assert!(good.evidence.load.is_empty() && !good.evidence.as_shipped);

    let crash = TrialVerdict::AppKo(AppKo::Crash);
    let silent = run_trial(end(0, "reading\n"));
    assert_eq!(silent.verdict, crash);
    let why = silent.reason.to_string();
    assert!(
        why.contains("no line of its output contains `rows`"),
        "{why}"
    );
    let failed = run_trial(end(3, "42 rows\n"));
    assert_eq!(failed.verdict, crash);
    let why = failed.reason.to_string();
    assert!(why.contains("exit code 3"), "{why}");

    let hungry = "java.lang.OutOfMemoryError: Java heap space\nbye\n";
    let hungry = run_trial(end(1, hungry));
    assert_eq!(hungry.verdict, TrialVerdict::AppKo(AppKo::JavaOom));
    let killed = run_trial(RunEnd {
        is_oom: true,
        ..RunEnd::default()
    });
    assert_eq!(killed.verdict, TrialVerdict::AppKo(AppKo::CgroupOom));
}
