//! The last start of a proof: a pod that is made as the application ships.

use std::path::Path;
use std::sync::Arc;

use loadline_analysis::record::{AppKo, TrialPurpose, TrialRecord, TrialVerdict};
use loadline_analysis::search::{Next, SeenTrials, TrialAsk, TrialSearch, WantedTrials};
use loadline_experiment::Experiment;

use super::control::ShippedEnd;
use super::server::ApiServer;
use super::{host_on_server, run_search, simulated_nodes, slot_number, wait_for_leftovers};

struct FreshStarts {
    experiment: Experiment,
    number: u32,
}

impl TrialSearch for FreshStarts {
    type Answer = Vec<Arc<TrialRecord>>;

    fn next(&self, seen: &SeenTrials) -> Next<Self::Answer> {
        let configuration = self.experiment.configurations().remove(0);
        let ask = |repeat| TrialAsk {
            configuration: configuration.clone(),
            purpose: TrialPurpose::Prove,
            repeat,
            start_deadline: self.experiment.app.start_deadline,
            pair: None,
        };
        let asks: Vec<TrialAsk> = (1..=self.number).map(ask).collect();
        let found = asks.iter().filter_map(|ask| seen.record_for(ask).cloned());
        let found: Vec<_> = found.collect();
        if found.len() == asks.len() {
            Ok(found)
        } else {
            Err(WantedTrials {
                wanted: asks
                    .into_iter()
                    .filter(|ask| seen.record_for(ask).is_none())
                    .collect(),
                guesses: Vec::new(),
            })
        }
    }
}

/// Six starts where a proof has three, on two nodes, of an application that ends so where it ships.
fn run_starts(ends: ShippedEnd) -> (ApiServer, Vec<Arc<TrialRecord>>) {
    let text = "slo = \"p99<50ms,errors<1%\"\n[kubernetes]\ntrial-image = \"loadline:1\"\n\
         [search]\nprove = 3\n[app]\nimage = \"orders:1\"\n[limits]\ncpu = \"500m\"\nmemory = \"1Gi\"\n\
         [load]\nurl = \"http://localhost:8080/\"\nrate = \"20/s\"\nwarm-up = \"1s\"\nmeasure = \"5s\"\n";
    let experiment = Experiment::from_file_text(text, Path::new("test.toml"), Path::new("/"));
    let experiment = experiment.unwrap_or_else(|e| panic!("{e}"));
    let server = ApiServer::start_server(simulated_nodes(2, "n", "Xeon"), 0);
    server.state().shipped = ends;
    server.state().lingers = 100;
    let starts = FreshStarts {
        experiment: experiment.clone(),
        number: 6,
    };
    let mut host = host_on_server(&server, slot_number(2), None).unwrap();
    let (answer, _) = run_search(&mut host, experiment, &starts, u32::MAX);
    drop(host);
    let mut records = answer.unwrap();
    records.sort_by_key(|record| record.repeat);
    (server, records)
}

fn as_shipped(records: &[Arc<TrialRecord>]) -> Vec<u32> {
    let all = records.iter().filter(|r| r.evidence.as_shipped);
    all.map(|record| record.repeat).collect()
}

#[test]
fn the_last_start_of_a_proof_shares_no_processes_and_has_no_counters() {
    let (server, records) = run_starts(ShippedEnd::Told);
    assert_eq!(as_shipped(&records), [3, 6]);
    let is_pass = |record: &Arc<TrialRecord>| record.verdict == TrialVerdict::Pass;
    assert!(records.iter().all(is_pass), "{records:?}");
    for record in &records {
        let has_ended = (record.evidence.exit.code, record.evidence.exit.before_stop);
        assert_eq!(has_ended, (Some(143), false), "start {}", record.repeat);
        let is_counted = record.evidence.cgroup.peak_memory.is_some();
        assert_eq!(is_counted, !record.evidence.as_shipped);
    }
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
    let state = server.state();
    let ids = records.iter().filter(|r| r.evidence.as_shipped);
    let jobs: Vec<String> = ids.map(|r| format!("loadline-{}", r.id)).collect();
    let mut made: Vec<&String> = state.as_shipped.iter().collect();
    made.retain(|job| jobs.contains(job));
    assert_eq!(made.len(), 2, "{jobs:?} {:?}", state.as_shipped);
    assert_eq!(state.as_shipped.len(), 2, "others share their processes");
    assert!(
        state.behind_their_own.is_empty(),
        "the scheduler put one back"
    );
    // What it left in the node's page cache goes with a look before the next trial there.
    for job in &jobs {
        let at = state.placed.iter().position(|(of, _)| of == job).unwrap();
        let mut after = state.placed[at + 1..].iter();
        let next = after.find(|(_, node)| *node == state.placed[at].1);
        assert!(next.is_none_or(|(job, _)| super::ApiServerState::is_look(job)));
    }
}

#[test]
fn how_it_ends_as_shipped_is_the_kubelets_word() {
    let (_, records) = run_starts(ShippedEnd::Oom);
    let of = |repeat: usize| records[repeat - 1].verdict;
    assert_eq!(of(2), TrialVerdict::Pass);
    assert_eq!(of(3), TrialVerdict::AppKo(AppKo::CgroupOom));
    let exit = &records[2].evidence.exit;
    assert_eq!((exit.signal, exit.before_stop), (Some(9), true));

    let (_, records) = run_starts(ShippedEnd::Killed);
    let exit = &records[2].evidence.exit;
    let ended = (exit.signal, exit.before_stop, exit.unclean_stop);
    assert_eq!(ended, (Some(9), false, true));
}
