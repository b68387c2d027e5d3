//! `loadline explain`, text and JSON, for a trial with known causes.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use loadline_analysis::pauses::{ApplicationPauses, PauseEvidence, SamplerEvidence};
use loadline_analysis::record::{
    CgroupEvidence, Configuration, Evidence, MachineDescription, PhaseSpan, SCHEMA, TrialPhase,
    TrialPurpose, TrialRecord, TrialVerdict,
};
use loadline_protocol::log::{ChunkContent, EventLog};
use loadline_runner::store::{NewResult, ResultKind, Store, TrialKey};

use crate::{assert_follows, loadline};

const MS: u64 = 1_000_000;

const EXPERIMENT: &str = "\
slo = \"p99<1s\"
[app]
command = [\"java\", \"-jar\", \"app.jar\"]
[load]
url = \"http://localhost:8080/\"
rate = \"10/s\"
";

fn configuration() -> Configuration {
    Configuration {
        label: "half".to_owned(),
        cpu: Some("500m".parse().expect("CPUs")),
        ..Configuration::default()
    }
}

/// Ten seconds in which two threads stand 75 of every 100 ms, once in a collection.
fn evidence() -> Evidence {
    let stops: Vec<(u64, u64)> = (0..100)
        .map(|n| ((100 * n + 25) * MS, 100 * (n + 1) * MS))
        .collect();
    Evidence {
        phases: vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 10_000 * MS,
        }],
        cgroup: CgroupEvidence {
            measure_cpu: Some(Duration::from_secs(5)),
            ..CgroupEvidence::default()
        },
        pauses: Some(PauseEvidence {
            sampler: SamplerEvidence {
                estimator: "flatline-per-cpu".to_owned(),
                interval: Duration::from_millis(1),
                samples: 10_000,
                wall: Duration::from_secs(10),
                cpu: Duration::from_millis(200),
                ..SamplerEvidence::default()
            },
            safepoints_ns: vec![(10 * MS, 110 * MS, MS)],
            application: Some(ApplicationPauses {
                source: "allocation".to_owned(),
                pauses_ns: [(10 * MS, 110 * MS)]
                    .into_iter()
                    .chain(stops[1..].to_vec())
                    .collect(),
                ..ApplicationPauses::default()
            }),
            throttled_ns: stops,
            ..PauseEvidence::default()
        }),
        ..Evidence::default()
    }
}

/// A store with one result of one trial and its GC log.
pub fn store(directory: &Path) -> String {
    let store = Store::open_or_create(directory).expect("a store");
    let new = NewResult {
        kind: ResultKind::Run,
        title: "test".to_owned(),
        experiment: EXPERIMENT.to_owned(),
        directory: directory.to_owned(),
        command: Vec::new(),
        machine: MachineDescription {
            cpus: 2,
            ..MachineDescription::default()
        },
    };
    let result = store.create_result(&new).expect("a result");
    let key = TrialKey {
        result: result.clone(),
        purpose: TrialPurpose::Matrix,
        configuration: configuration(),
        repeat: 1,
        attempt: 1,
    };
    let id = store.begin_trial(&key).expect("a trial");
    let record = TrialRecord {
        schema: SCHEMA,
        id: id.clone(),
        result,
        purpose: TrialPurpose::Matrix,
        configuration: configuration(),
        repeat: 1,
        started_at_unix_ms: 0,
        slo: "p99<1s".parse().expect("an SLO"),
        verdict: TrialVerdict::Pass,
        reason: String::new().into(),
        objectives: Vec::new(),
        evidence: evidence(),
    };
    store.finish_trial(&record).expect("a record");
    let log = "[110000000ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 99.205ms\n";
    let mut file = File::options();
    file.read(true).append(true).create(true);
    let file = file.open(store.trial_log_path(&id)).expect("a file");
    let events = EventLog::begin_log(file).expect("it is empty");
    events.append_whole_chunk(ChunkContent::GcLog, 0, log.as_bytes());
    id
}

#[test]
fn an_explanation_follows_its_schema() {
    let directory = tempfile::tempdir().expect("a directory");
    let id = store(directory.path());
    let state = directory.path().display().to_string();
    let output = loadline(&["explain", &id, "--json", "--state", &state]);
    assert_follows(&output, "explain.schema.json");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["pauses"], 100);
    assert_eq!(document["longest"][0]["dominant"], "gc_throttled");
    assert_eq!(
        document["longest"][0]["log"].as_array().map(Vec::len),
        Some(1)
    );
}

#[test]
fn an_explanation_says_what_where_and_what_to_do() {
    let directory = tempfile::tempdir().expect("a directory");
    let id = store(directory.path());
    let state = directory.path().display().to_string();
    let output = loadline(&["explain", "last", "--state", &state]);
    let text = String::from_utf8(output.stdout).expect("text");
    let text = text.replace(&id[..13], "ID");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..7],
        [
            "trial ID  half",
            "100 pauses over 50 ms in 10 s, 7.53 s in all: 99 % the application's own threads standing throttled, 1 % collection standing throttled.",
            "Seen by the application (allocation); 100 of 100 explained to 90 %. Throttling by flatline-per-cpu: counters read every 1ms for 2.00 % of a CPU, no gaps.",
            "",
            "The longest",
            "  1. at 0.010 s, 100 ms: 24 ms collection running, 75 ms collection standing throttled, 1 ms waiting for all threads to stop (± 2 ms)",
            "      [110000000ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 99.205ms",
        ]
    );
    let advice: Vec<&str> = text.lines().filter(|l| l.starts_with("- ")).collect();
    assert_eq!(
        advice,
        [
            "- raise the CPU limit from 500m to 2 (--try=quota), up to 100 % of this time: while it was not throttled it used 2.00 CPUs; a limit of that much throttles it no more.",
            "- shorten the CFS period from 100 ms to 20 ms with the same share (--try=period), up to 99 % of this time: threads stand 15 ms at a time instead of 75 ms; collections that need more than a period's quota take as long as before.",
        ]
    );
}

#[test]
fn what_cannot_be_tried_is_refused_with_what_can() {
    let directory = tempfile::tempdir().expect("a directory");
    let id = store(directory.path());
    let state = directory.path().display().to_string();
    let output = loadline(&["explain", &id, "--state", &state, "--try=magic"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).expect("text");
    let expected = "\
loadline: error: `magic` is not a kind of advice (quota, cpuset, period, gc-threads, burst, collector, heap)
hint: it can try: quota, period
";
    assert_eq!(said, expected);
    let unknown = loadline(&["explain", "nothing", "--state", &state]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_result_shows_the_table_of_pauses() {
    let directory = tempfile::tempdir().expect("a directory");
    store(directory.path());
    let state = directory.path().display().to_string();
    let output = loadline(&["show", "last", "--full", "--state", &state]);
    let text = String::from_utf8(output.stdout).expect("text");
    let section = text.split("Why did it pause?").nth(1).unwrap_or_default();
    let row = section.lines().find(|line| line.starts_with("half"));
    let row = row.unwrap_or_else(|| panic!("no row in {text}"));
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[2..4], ["100", "100ms"], "{row}");
}
