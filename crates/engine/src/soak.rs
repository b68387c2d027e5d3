//! Soaks: how their time is divided, what runs in them, and what a killed one had written.
//!
//! Owns the lengths of cycles and rest, and the record that is made of an event log without an end.
//! A soak's points are judged from whatever there is of them, so a kill after hours loses minutes.

use std::fs::File;
use std::time::Duration;

use loadline_analysis::record::{
    Configuration, Evidence, Failure, Invalid, JvmOption, MOST_POINTS, Provenance, Purpose, SCHEMA,
    SoakEvidence, TrialRecord,
};
use loadline_analysis::search::soak::Soaked;
use loadline_analysis::slo::Slo;
use loadline_analysis::verdict::{Thresholds, judge};
use loadline_host::soaking::fold_collections;
use loadline_jvm::detect::{Found, Places};
use loadline_sizing::Vm;
use loadline_trial::log::{Content, Reader, Record};
use loadline_trial::{Event, Soak};

use crate::command::{CommandError, assemble};
use crate::experiment::Experiment;
use crate::store::{Store, StoreError, Unfinished};

/// Shorter soaks have too few points to say anything.
pub const SHORTEST: Duration = Duration::from_secs(40);

/// What makes the JVM keep the account that a look asks for.
const TRACKING: &str = "-XX:NativeMemoryTracking=detail";

/// Distance of points that costs nothing.
const EVERY: Duration = Duration::from_millis(500);

/// Rest between the cycles, of the whole; at least and at most so long.
const REST: (f64, Duration, Duration) = (0.05, Duration::from_secs(3), Duration::from_secs(300));

/// How a soak of this length is watched, and the length of each of its two cycles.
pub fn divide(length: Duration) -> (Soak, Duration) {
    let rest = length.mul_f64(REST.0).clamp(REST.1, REST.2);
    let every = (length / MOST_POINTS).max(EVERY);
    let cycle = length.saturating_sub(rest) / 2;
    (Soak { every, rest }, cycle)
}

/// The soak of a configuration. A HotSpot JVM is told to keep an account of its native memory, which
/// takes some MiB and a little time of its own.
///
/// # Errors
/// [`CommandError`] when it cannot be run.
pub fn soaked(
    experiment: &Experiment,
    configuration: &Configuration,
    jdks: &Found,
    places: &Places,
) -> Result<Soaked, CommandError> {
    let mut configuration = configuration.clone();
    let jdk = assemble(&experiment.app, &configuration, jdks, places)?.jdk;
    let is_tracked = configuration.jvm_options.iter().any(|o| o.text == TRACKING);
    if jdk.is_some_and(|jdk| jdk.kind == Vm::HotSpot) && !is_tracked {
        configuration.jvm_options.push(JvmOption {
            text: TRACKING.to_owned(),
            provenance: Provenance::Default,
        });
    }
    Ok(Soaked {
        configuration,
        start_deadline: experiment.app.start_deadline,
    })
}

/// Makes records of the soaks of a result that were killed, from what their logs hold; how many.
///
/// # Errors
/// [`StoreError`].
pub fn salvage(store: &Store, result: &str, slo: &Slo) -> Result<usize, StoreError> {
    let mut saved = 0;
    for trial in store.unfinished(result, Purpose::Soak)? {
        if let Some(record) = record(store, result, &trial, slo) {
            store.finish_trial(&record)?;
            saved += 1;
        }
    }
    Ok(saved)
}

/// The record of a killed soak; `None` where it had seen nothing.
fn record(store: &Store, result: &str, trial: &Unfinished, slo: &Slo) -> Option<TrialRecord> {
    let open = || File::open(store.log(&trial.id)).map(Reader::new).ok();
    let mut soak = seen(open()?);
    if soak.points.is_empty() {
        return None;
    }
    fold_collections(&mut soak.points, open()?.join(Content::GcLog, 0));
    let detail = "loadline was killed; what its log holds is kept".to_owned();
    soak.cut = Some("it was killed".to_owned());
    let evidence = Evidence {
        soak: Some(soak),
        failure: Some(Failure {
            cause: Invalid::RuntimeLost,
            detail,
        }),
        ..Evidence::default()
    };
    let judgement = judge(&trial.configuration, slo, &evidence, &Thresholds::default());
    Some(TrialRecord {
        schema: SCHEMA,
        id: trial.id.clone(),
        result: result.to_owned(),
        purpose: Purpose::Soak,
        configuration: trial.configuration.clone(),
        repeat: trial.repeat,
        started_at_unix_ms: trial.started_at_unix_ms,
        slo: slo.clone(),
        verdict: judgement.verdict,
        reason: judgement.reason,
        objectives: judgement.objectives,
        evidence,
    })
}

/// The points and looks in an event log, as far as it can be read.
fn seen(mut log: Reader<File>) -> SoakEvidence {
    let mut soak = SoakEvidence::default();
    while let Ok(Some(record)) = log.next_record() {
        match record {
            Record::Event(Event::Soak(point)) => soak.points.push(*point),
            Record::Event(Event::Look(look)) => soak.looks.push(*look),
            Record::Event(_) | Record::Piece(_) => {}
        }
    }
    soak
}
