//! Earlier results of an application: how long it takes apart from its load.
//!
//! Owns which results belong to the same application. For estimates only: no judgement depends on
//! it.

use std::path::Path;
use std::time::Duration;

use loadline_analysis::interval::median;
use loadline_analysis::record::{TrialPhase, TrialRecord};
use loadline_experiment::Experiment;

use crate::store::{ResultRow, Store};

const LATEST: usize = 20;

/// How long the application takes to start and stop, from the trials of its newest result; `None`
/// if it never became ready here.
pub fn around_the_load(store: &Store, experiment: &Experiment) -> Option<Duration> {
    // Whoever needs the store reports that it cannot be read.
    let rows = store.all_results().ok()?;
    let latest = rows.iter().take(LATEST);
    let mut own = latest.filter(|row| is_of(row, experiment));
    own.find_map(|row| {
        let trials = store.finished_trials(&row.id).ok()?;
        let lengths = trials.iter().filter(|t| t.evidence.start.ready.is_some());
        let lengths: Vec<f64> = lengths.map(|t| besides_load(t).as_secs_f64()).collect();
        Duration::try_from_secs_f64(median(&lengths)?).ok()
    })
}

fn is_of(row: &ResultRow, experiment: &Experiment) -> bool {
    let stored = Experiment::from_record_text(&row.experiment, Path::new("stored"), &row.directory);
    let reference = |e: &Experiment| e.app.image.as_ref().map(|i| i.reference.clone());
    stored.is_ok_and(|stored| {
        stored.app.command == experiment.app.command
            && reference(&stored) == reference(experiment)
            && row.directory == experiment.app.directory
    })
}

fn is_load(phase: TrialPhase) -> bool {
    use TrialPhase::{Again, Age, Squeeze, WarmUp};
    phase.is_judged() || matches!(phase, WarmUp | Age | Squeeze | Again)
}

fn besides_load(trial: &TrialRecord) -> Duration {
    let load = trial.evidence.phases.iter().filter(|p| is_load(p.phase));
    let load: u64 = load.map(|p| p.end.saturating_sub(p.start)).sum();
    let total = trial.total_length();
    total.saturating_sub(Duration::from_nanos(load))
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::{Evidence, PhaseSpan, SCHEMA, TrialPurpose, TrialVerdict};

    use super::*;
    use crate::store::{NewResult, ResultKind, TrialKey, unix_ms};

    fn text(command: &str) -> String {
        format!(
            "slo = \"p99<50ms\"\napp.command = [\"{command}\"]\n[load]\nurl = \"http://localhost/\"\nrate = \"10/s\"\n"
        )
    }

    fn experiment(command: &str) -> Experiment {
        Experiment::from_file_text(&text(command), Path::new("e.toml"), Path::new("/app")).unwrap()
    }

    /// A trial in a new result: ten seconds of load, `besides` seconds of everything else.
    fn keep(store: &Store, command: &str, besides: u64, ready: bool) {
        let new = NewResult {
            kind: ResultKind::Size,
            title: "app".to_owned(),
            experiment: text(command),
            directory: "/app".into(),
            command: Vec::new(),
            machine: Default::default(),
        };
        let experiment = experiment(command);
        let key = TrialKey {
            result: store.create_result(&new).unwrap(),
            purpose: TrialPurpose::Matrix,
            configuration: experiment.base.clone(),
            repeat: 1,
            attempt: 1,
        };
        let id = store.begin_trial(&key).unwrap();
        let second = 1_000_000_000;
        let span = |phase, start, end| PhaseSpan {
            phase,
            start: start * second,
            end: end * second,
        };
        let mut evidence = Evidence {
            phases: vec![
                span(TrialPhase::Start, 0, besides),
                span(TrialPhase::WarmUp, besides, besides + 4),
                span(TrialPhase::Measure, besides + 4, besides + 10),
                span(TrialPhase::Age, besides + 10, besides + 25),
                span(TrialPhase::Again, besides + 25, besides + 29),
            ],
            ..Evidence::default()
        };
        evidence.start.ready = ready.then(|| Duration::from_secs(1));
        let record = TrialRecord {
            schema: SCHEMA,
            id,
            result: key.result,
            purpose: key.purpose,
            configuration: key.configuration,
            repeat: 1,
            started_at_unix_ms: unix_ms(),
            slo: experiment.slo,
            verdict: TrialVerdict::Pass,
            reason: String::new().into(),
            objectives: Vec::new(),
            evidence,
        };
        store.finish_trial(&record).unwrap();
    }

    #[test]
    fn starts_of_the_same_application_tell_how_long_the_next_takes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(directory.path()).unwrap();
        let seen = |command| around_the_load(&store, &experiment(command));
        assert_eq!(seen("one"), None);
        keep(&store, "one", 7, true);
        keep(&store, "two", 30, true);
        assert_eq!(seen("one"), Some(Duration::from_secs(7)));
        keep(&store, "one", 60, false);
        assert_eq!(
            seen("one"),
            Some(Duration::from_secs(7)),
            "it never got ready"
        );
        keep(&store, "one", 9, true);
        assert_eq!(seen("one"), Some(Duration::from_secs(9)), "the newest");
    }
}
