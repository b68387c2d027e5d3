//! Trials against an API server of a test: the real client, the real runner and store, many nodes.
//!
//! Owns what must hold at any size: nothing is lost, nothing is left, a request is worth something.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod control;
mod generators;
mod in_cluster;
mod runs;
mod server;
mod shipped;

use std::collections::BTreeSet;
use std::io::{Write as _, stdout};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kube::Config;
use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{
    Configuration, InvalidReason, MachineDescription, TrialRecord, TrialVerdict,
};
use loadline_analysis::search::{TrialAsk, TrialSearch};
use loadline_analysis::verdict::VerdictThresholds;
use loadline_experiment::{ClusterSettings as Wanted, Experiment, MOST_SLOTS, Slots};
use loadline_jvm::detect::{DetectedJdks, JdkPlaces};
use loadline_protocol::{Account, RunRefusal, TrialProgress};
use loadline_runner::agenda::Agenda;
use loadline_runner::host::TrialHost as _;
use loadline_runner::runner::{Measurement, RunError, SearchRunner, TrialWatcher};
use loadline_runner::searches;
use loadline_runner::store::{NewResult, ResultKind, Store};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::cluster::ConnectedCluster;
use crate::kubernetes::{KubernetesHost, NodeDemand};
use crate::{rights, testing};
use control::{ApiServerState, SimulatedNode};
use server::ApiServer;

const TRIALS: u32 = 400;

/// Requests to the API server that a trial may cost.
const MOST_REQUESTS: u32 = 25;

/// Memory that the client may take, KiB.
const MOST_MEMORY_KIB: u64 = 200_000;

const ACCOUNT: Account = Account {
    uid: 64_999,
    gid: 64_999,
};

struct StoppingWatcher {
    records: u32,
    stop_after: u32,
}

impl TrialWatcher for StoppingWatcher {
    fn trial_begins(&mut self, _: usize, _: &TrialAsk, _: u32) {}
    fn training_begins(&mut self, _: usize, _: &Configuration) {}
    fn slot_waits(&mut self, _: usize, _: &str) {}
    fn trial_progress(&mut self, _: usize, _: TrialProgress) {}
    fn trial_ends(&mut self, _: Option<usize>, _: &TrialRecord) {
        self.records += 1;
    }
    fn slot_ends(&mut self, _: usize) {}
    fn is_interrupted(&self) -> bool {
        self.records >= self.stop_after
    }
}

fn simulated_nodes(number: usize, prefix: &str, cpu_model: &'static str) -> Vec<SimulatedNode> {
    let host = |index| SimulatedNode {
        name: format!("{prefix}{index}"),
        cpu: 1600,
        memory: 2 << 30,
        cpu_model,
    };
    (0..number).map(host).collect()
}

fn repeated_experiment(repeats: u32) -> Experiment {
    let text = format!(
        "slo = \"p99<50ms,errors<1%\"\n[run]\nrepeats = {repeats}\n\
         [app]\nimage = \"orders:1\"\n[limits]\ncpu = \"500m\"\n\
         [load]\nurl = \"http://localhost:8080/\"\nrate = \"20/s\"\nwarm-up = \"1s\"\nmeasure = \"5s\"\n\
         [[factor]]\nname = \"memory\"\nlevels = [\"768Mi\", \"1Gi\"]\n"
    );
    Experiment::from_file_text(&text, Path::new("test.toml"), Path::new("/"))
        .unwrap_or_else(|e| panic!("{e}"))
}

fn wanted_cluster(slots: Slots) -> Wanted {
    Wanted {
        slots,
        node_selector: Default::default(),
        ..testing::test_cluster()
    }
}

fn slot_number(slots: u32) -> Slots {
    Slots::Number(NonZeroU32::new(slots).unwrap())
}

fn host_on_server(
    server: &ApiServer,
    slots: Slots,
    largest: Option<InstanceSize>,
) -> Result<KubernetesHost, RunRefusal> {
    host_at(server.address, slots, largest)
}

fn host_at(
    server: SocketAddr,
    slots: Slots,
    largest: Option<InstanceSize>,
) -> Result<KubernetesHost, RunRefusal> {
    host_of(server, &wanted_cluster(slots), largest)
}

fn host_of(
    server: SocketAddr,
    wanted: &Wanted,
    largest: Option<InstanceSize>,
) -> Result<KubernetesHost, RunRefusal> {
    let address = format!("http://{server}").parse().unwrap();
    let cluster = ConnectedCluster::at(wanted, Config::new(address))?;
    let demand = NodeDemand {
        largest,
        ..NodeDemand::default()
    };
    KubernetesHost::from_cluster(cluster, "orders:1", ACCOUNT, demand)
}

/// Runs an experiment to its end, or up to a number of records; returns its answer and all stored
/// records.
fn run(
    host: &mut KubernetesHost,
    experiment: Experiment,
    stop_after: u32,
) -> (Result<Vec<Arc<TrialRecord>>, RunError>, Vec<TrialRecord>) {
    let matrix = Agenda::new(&experiment).matrix;
    run_search(host, experiment, &matrix, stop_after)
}

fn run_search<S: TrialSearch>(
    host: &mut KubernetesHost,
    experiment: Experiment,
    search: &S,
    stop_after: u32,
) -> (Result<S::Answer, RunError>, Vec<TrialRecord>) {
    // A store waits for its disk at every record.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let directory = directory.unwrap();
    let store = Store::open_or_create(directory.path()).unwrap();
    let new = NewResult {
        kind: ResultKind::Run,
        title: "test".to_owned(),
        experiment: String::new(),
        directory: "/".into(),
        command: Vec::new(),
        machine: MachineDescription::default(),
    };
    let result = store.create_result(&new).unwrap();
    let answer = run_in(&store, &result, (host, experiment), search, stop_after);
    (answer, store.finished_trials(&result).unwrap())
}

fn run_in<S: TrialSearch>(
    store: &Store,
    result: &str,
    (host, mut experiment): (&mut KubernetesHost, Experiment),
    search: &S,
    stop_after: u32,
) -> Result<S::Answer, RunError> {
    experiment.app.image.as_mut().unwrap().found = Some(host.image_of_application());
    let jdks = DetectedJdks {
        jdks: Vec::new(),
        unusable: Vec::new(),
    };
    let of = Measurement {
        store,
        result: result.to_owned(),
        experiment: &experiment,
        jdks: &jdks,
        places: &JdkPlaces::of_process(),
        account: ACCOUNT,
        thresholds: VerdictThresholds::default(),
        reuse: None,
        retries: false,
    };
    let mut watch = StoppingWatcher {
        records: 0,
        stop_after,
    };
    SearchRunner::new(of, host, &mut watch).run(search)
}

/// Waits until loadline has no objects left in the cluster: pods take their time to go.
fn wait_for_leftovers(server: &ApiServer) -> Vec<String> {
    for _ in 0..2000 {
        if server.state().pods.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let state = server.state();
    let pods = state.pods.keys();
    pods.chain(state.jobs.keys())
        .chain(state.orders.keys())
        .cloned()
        .collect()
}

/// The variable with the address of an API server; a process with it acts as a client only.
const CLIENT: &str = "LOADLINE_POD_CLIENT";

#[derive(Debug, Serialize, Deserialize)]
struct ClientReport {
    trials: usize,
    repeated: usize,
    stored: usize,
    /// Most memory that the process ever had, KiB.
    peak_kib: u64,
    cpu: Duration,
}

/// Runs this many trials against an API server of another process.
fn run_client(server: SocketAddr, trials: u32) -> ClientReport {
    let experiment = repeated_experiment(trials / 2);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = host_at(server, slot_number(200), largest).unwrap();
    let (answer, stored) = run(&mut host, experiment, u32::MAX);
    let evidence = answer.unwrap();
    let lost = TrialVerdict::Invalid(InvalidReason::RuntimeLost);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    ClientReport {
        trials: evidence
            .iter()
            .filter(|record| record.verdict.is_evidence())
            .count(),
        repeated: stored
            .iter()
            .filter(|record| record.verdict == lost)
            .count(),
        stored: stored.len(),
        peak_kib: peak
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap(),
        cpu: Duration::from_secs_f64(cpu),
    }
}

#[test]
fn many_trials_on_200_nodes_are_all_done_and_evicted_ones_repeated() {
    let given = std::env::var("LOADLINE_POD_TRIALS").ok();
    let trials: u32 = given.map_or(TRIALS, |text| text.parse().unwrap());
    if let Ok(server) = std::env::var(CLIENT) {
        let told = run_client(server.parse().unwrap(), trials);
        writeln!(stdout(), "{}", serde_json::to_string(&told).unwrap()).unwrap();
        return;
    }
    let mut all = simulated_nodes(20, "other", "EPYC");
    // The first one is of the kind of most.
    all.insert(0, simulated_nodes(1, "first", "Xeon").remove(0));
    all.extend(simulated_nodes(199, "n", "Xeon"));
    let server = ApiServer::start_server(all, 100);
    let own = std::env::current_exe().unwrap();
    let name = std::thread::current().name().unwrap().to_owned();
    let mut client = std::process::Command::new(own);
    client.args(["--exact", &name, "--nocapture"]);
    client.env(CLIENT, server.address.to_string());
    let client = client.output().unwrap();
    let said = String::from_utf8_lossy(&client.stdout);
    // The test's name may stand before it on its line.
    let at = said.find('{').unwrap_or_else(|| panic!("{client:?}"));
    let told = said[at..].lines().next().unwrap_or_default();
    let told: ClientReport = serde_json::from_str(told).unwrap();
    let cpu = told.cpu / trials;
    // Worth seeing when it passes, too.
    writeln!(
        stdout(),
        "{} trials on 200 slots: the client had {} MiB at most, and took {:.1} ms of CPU for each",
        told.trials,
        told.peak_kib >> 10,
        cpu.as_secs_f64() * 1e3
    )
    .unwrap();
    assert_eq!(told.trials, trials as usize);
    assert!(told.peak_kib < MOST_MEMORY_KIB, "{told:?}");

    let evicted = server.state().evicted.len();
    assert!(evicted > 0, "nothing was tried");
    assert_eq!(told.repeated, evicted);
    assert_eq!(told.stored, told.trials + evicted);

    assert_eq!(wait_for_leftovers(&server), [""; 0]);
    let state = server.state();
    let is_trial = |job: &&String| !ApiServerState::is_look(job);
    // Each node was looked at before its first trial, and one of another kind has no trial.
    for (at, (job, node)) in state.placed.iter().enumerate() {
        let mut before = state.placed[..at].iter();
        let was_looked_at = before.any(|(job, n)| n == node && ApiServerState::is_look(job));
        let may = ApiServerState::is_look(job) || (was_looked_at && !node.starts_with("other"));
        assert!(may, "{job} ran on {node}");
    }
    let of_trials = state.requests.iter().filter(|(job, _)| is_trial(job));
    // On a busy machine a late trial gets more requests: ignore the last tenth.
    let mut of_trials: Vec<u32> = of_trials.map(|(_, requests)| *requests).collect();
    of_trials.sort_unstable();
    let most = of_trials.get(of_trials.len() * 9 / 10).copied();
    assert!(most.is_some_and(|most| most <= MOST_REQUESTS), "{most:?}");
    let requests: u32 = state.requests.values().sum();
    let each = f64::from(requests) / f64::from(trials);
    assert!(
        each <= f64::from(MOST_REQUESTS),
        "{each} with those of looks"
    );
}

#[test]
fn the_next_pod_is_let_go_when_the_last_one_holds_its_node_no_more() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    server.state().lingers = 100;
    let experiment = repeated_experiment(2);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = host_on_server(&server, slot_number(1), largest).unwrap();
    let (answer, _) = run(&mut host, experiment, u32::MAX);
    assert_eq!(answer.unwrap().len(), 4);
    // The scheduler would have put it back.
    assert_eq!(server.state().behind_their_own.iter().next(), None);
}

#[test]
fn slots_are_counted_as_nodes_of_one_kind_with_room() {
    let largest = searches::largest_trial_size(&repeated_experiment(1));
    let counted = |hosts: Vec<SimulatedNode>| {
        let server = ApiServer::start_server(hosts, 0);
        let host = host_on_server(&server, Slots::Auto, largest);
        let slots = host.map(|host| host.slot_count());
        let slots = slots.map_err(|refusal| refusal.to_string());
        assert_eq!(wait_for_leftovers(&server), [""; 0]);
        slots
    };
    let mut all = simulated_nodes(5, "n", "Xeon");
    all.extend(simulated_nodes(2, "other", "EPYC"));
    let busy = simulated_nodes(3, "busy", "Xeon").into_iter();
    all.extend(busy.map(|host| SimulatedNode { cpu: 1000, ..host }));
    assert_eq!(counted(all), Ok(5));
    assert_eq!(counted(simulated_nodes(1, "n", "Xeon")), Ok(1));
    assert_eq!(
        counted(simulated_nodes(MOST_SLOTS + 6, "n", "Xeon")),
        Ok(MOST_SLOTS)
    );
    let none = simulated_nodes(1, "n", "Xeon").into_iter();
    let none = none.map(|host| SimulatedNode { cpu: 1000, ..host });
    let refused = counted(none.collect());
    assert!(refused.is_err_and(|why| why.contains("finding a node")));
}

#[test]
fn a_run_that_is_stopped_leaves_nothing() {
    let server = ApiServer::start_server(simulated_nodes(8, "n", "Xeon"), 0);
    let experiment = repeated_experiment(20);
    let mut host = host_on_server(
        &server,
        slot_number(8),
        searches::largest_trial_size(&experiment),
    )
    .unwrap();
    let (answer, stored) = run(&mut host, experiment, 3);
    assert!(matches!(answer, Err(RunError::Interrupted)));
    assert!(stored.len() >= 3);
    drop(host);
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
}

#[test]
fn a_size_that_no_node_holds_keeps_no_smaller_one_from_running() {
    let server = ApiServer::start_server(simulated_nodes(2, "n", "Xeon"), 0);
    let experiment = repeated_experiment(2);
    let largest = searches::largest_trial_size(&experiment).map(|size| InstanceSize {
        memory: loadline_sizing::Bytes::from_gib(64),
        ..size
    });
    let mut host = host_on_server(&server, slot_number(2), largest).unwrap();
    let (answer, _) = run(&mut host, experiment, u32::MAX);
    assert_eq!(answer.unwrap().len(), 4);
}

#[test]
fn the_role_has_the_verbs_that_are_used() {
    let role = rights::role("sizing");
    let lines = role.lines().zip(role.lines().skip(1));
    let words = |line: &str, field: &str| {
        let list = line
            .strip_prefix(field)?
            .trim_matches(['[', ']'])
            .to_owned();
        Some(list.split(", ").map(str::to_owned).collect::<Vec<_>>())
    };
    let given: BTreeSet<(String, String)> = lines
        .filter_map(|(one, two)| Some((words(one, "  resources: ")?, words(two, "  verbs: ")?)))
        .flat_map(|(resources, verbs)| {
            let each = resources.into_iter();
            each.flat_map(move |of| {
                verbs
                    .clone()
                    .into_iter()
                    .map(move |verb| (of.clone(), verb))
            })
        })
        .collect();

    let server = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    let experiment = repeated_experiment(6);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = host_on_server(&server, Slots::Auto, largest).unwrap();
    run(&mut host, experiment, u32::MAX).0.unwrap();
    let inside = ApiServer::start_server(simulated_nodes(3, "n", "Xeon"), 0);
    in_cluster::taken_over(&inside);
    let (state, inside) = (server.state(), inside.state());
    let used: BTreeSet<(String, String)> = state
        .verbs
        .union(&inside.verbs)
        .map(|(resource, verb)| (resource.clone(), (*verb).to_owned()))
        .collect();
    let of = |resource: &str, verb: &str| (resource.to_owned(), verb.to_owned());
    // Without the right to ask for nodes it goes on.
    let more: Vec<_> = used.difference(&given).cloned().collect();
    assert_eq!(more, [of("nodes", "get")]);
    assert_eq!(state.requests_of_nodes, 1, "it asked again after a no");
    // Why a Job has no pod is asked where it has none; workloads are those of --from.
    let less: Vec<_> = given.difference(&used).cloned().collect();
    let rare = [
        of("cronjobs", "get"),
        of("deployments", "get"),
        of("events", "list"),
        of("jobs", "get"),
        of("statefulsets", "get"),
    ];
    assert_eq!(less, rare);
}
