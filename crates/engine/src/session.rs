//! A result in the making: trials run one after the other, each recorded before the next begins.
//!
//! Owns the rule that makes everything resumable: a trial that has a record is not run again, its
//! record is used. A run or search is therefore resumed by starting it again with the same
//! experiment; it is deterministic given the records. Trials that could not be measured are tried
//! again, then reported as such.

use std::time::Duration;

use loadline_analysis::record::{
    Configuration, Evidence, Failure, Invalid, Phase, Purpose, SCHEMA, TrialRecord, Verdict,
};
use loadline_analysis::verdict::{Judgement, Thresholds, judge};
use loadline_jvm::detect::{Found, Places};
use loadline_load::Model;
use loadline_trial::Refusal;

use crate::backend::{Account, Backend, BackendError, InstanceSpec, LoadPhase, Observer};
use crate::cache::{Built, CacheError, with_options};
use crate::command::{CommandError, assemble};
use crate::experiment::Experiment;
use crate::logs;
use crate::store::{Store, StoreError, TrialKey, unix_ms};
use crate::trial::{self, TrialPlan};

/// Attempts at a trial before it counts as not measurable.
pub const ATTEMPTS: u32 = 3;

/// Wait before the second attempt; doubled before the third. A disturbance needs time to pass.
const BACK_OFF: Duration = Duration::from_secs(2);

/// Told about trials as they come and go.
pub trait Watcher: Observer {
    /// A trial begins.
    fn trial_begins(
        &mut self,
        configuration: &Configuration,
        purpose: Purpose,
        repeat: u32,
        attempt: u32,
    );

    /// A start-up cache is trained: a run that gives no record. Most watchers have nothing to add.
    fn training_begins(&mut self, _configuration: &Configuration) {}

    /// A trial has its record; `reused` when it was there from before.
    fn trial_ends(&mut self, record: &TrialRecord, reused: bool);
}

/// What ends a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This machine cannot.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A start-up cache cannot be made.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Ctrl-C or a signal.
    #[error("interrupted")]
    Interrupted,
}

/// One result being measured.
pub struct Session<'a> {
    /// Where records go.
    pub store: &'a Store,
    /// Where trials run.
    pub backend: &'a mut dyn Backend,
    /// What is measured.
    pub experiment: &'a Experiment,
    /// Id of the result.
    pub result: String,
    /// JDKs of this machine.
    pub jdks: &'a Found,
    /// Where programs are looked for.
    pub places: &'a Places,
    /// Who the application runs as.
    pub account: Account,
    /// When a measurement is not valid.
    pub thresholds: Thresholds,
    /// Told about progress.
    pub watcher: &'a mut dyn Watcher,
    /// Longest start; a search shortens it once it has seen a start.
    pub start_deadline: Duration,
    /// Length of all trials so far, also of those that were there from before.
    pub spent: Duration,
    /// Fingerprint of the ground whose trials in earlier results are used again; `None` is never.
    pub reuse: Option<String>,
}

impl Session<'_> {
    /// The record of this trial: from the store, or measured now. What could not be measured is
    /// tried again, and again when the result is resumed; the last attempt's record is given even
    /// when it is INVALID.
    ///
    /// # Errors
    /// [`SessionError`]; records finished before stay.
    pub fn trial(
        &mut self,
        configuration: &Configuration,
        purpose: Purpose,
        repeat: u32,
    ) -> Result<TrialRecord, SessionError> {
        let (mut attempt, mut tried) = (0, 0);
        loop {
            attempt += 1;
            let key = TrialKey {
                result: self.result.clone(),
                purpose,
                configuration: configuration.clone(),
                repeat,
                attempt,
            };
            let record = match self.store.find_trial(&key)? {
                Some(record) => {
                    self.spent += record.length();
                    self.watcher.trial_ends(&record, true);
                    if record.verdict.is_evidence() {
                        return Ok(record);
                    }
                    continue;
                }
                None => match self.reused(&key)? {
                    Some(record) => record,
                    None => self.measure(&key)?,
                },
            };
            self.spent += record.length();
            tried += 1;
            if record.verdict.is_evidence() || tried == ATTEMPTS {
                return Ok(record);
            }
            if let Verdict::Invalid(Invalid::DiskFull) = record.verdict {
                return Err(StoreError::Full {
                    path: self.store.directory().to_owned(),
                }
                .into());
            }
            self.pause(BACK_OFF * tried)?;
        }
    }

    /// The same trial of an earlier result, as a record of this one that says where it is from.
    /// Fresh starts and pairs are always run: what they show is that they are.
    fn reused(&mut self, key: &TrialKey) -> Result<Option<TrialRecord>, SessionError> {
        let is_fresh = matches!(key.purpose, Purpose::Prove | Purpose::Compare);
        let Some(ground) = self.reuse.as_ref().filter(|_| !is_fresh) else {
            return Ok(None);
        };
        let Some(mut record) = self.store.find_alike(ground, key)? else {
            return Ok(None);
        };
        let warning = format!(
            "not measured again: nothing that matters changed since trial {} of result {}",
            record.id, record.result
        );
        // A copy of a copy names the trial that was measured.
        let has_source = |w: &String| w.starts_with("not measured again: ");
        if !record.evidence.warnings.iter().any(has_source) {
            record.evidence.warnings.push(warning);
        }
        record.id = self.store.begin_trial(key)?;
        record.result.clone_from(&self.result);
        record.configuration = key.configuration.clone();
        self.store.finish_trial(&record)?;
        self.watcher.trial_ends(&record, true);
        Ok(Some(record))
    }

    fn measure(&mut self, key: &TrialKey) -> Result<TrialRecord, SessionError> {
        if self.watcher.interrupted() {
            return Err(SessionError::Interrupted);
        }
        let cache = self.cache(&key.configuration)?;
        let id = self.store.begin_trial(key)?;
        self.watcher
            .trial_begins(&key.configuration, key.purpose, key.repeat, key.attempt);
        let outcome = self.run(&id, key, cache.as_ref());
        let scratch = self.store.scratch(&id);
        let instances = key.configuration.instances;
        let kept = logs::keep_all(&scratch, &self.store.logs(&id), instances);
        let mut record = match outcome {
            Ok(record) => record,
            Err(error) => {
                self.store.interrupt_trial(&id)?;
                return Err(error);
            }
        };
        if let Err(error) = kept {
            record.evidence.warnings.push(error.to_string());
        }
        self.store.finish_trial(&record)?;
        self.watcher.trial_ends(&record, false);
        Ok(record)
    }

    fn run(
        &mut self,
        id: &str,
        key: &TrialKey,
        cache: Option<&Built>,
    ) -> Result<TrialRecord, SessionError> {
        let started_at_unix_ms = unix_ms();
        let plan = self.plan(id, &key.configuration, cache)?;
        let mut evidence = match trial::run(self.backend, &plan, &mut *self.watcher) {
            Ok(evidence) => evidence,
            Err(BackendError::Interrupted) => return Err(SessionError::Interrupted),
            Err(BackendError::Refused(refusal)) => return Err(refusal.into()),
            Err(BackendError::Invalid { cause, detail }) => Evidence {
                failure: Some(Failure { cause, detail }),
                ..Default::default()
            },
        };
        evidence.cache = cache.map(|built| built.evidence.clone());
        let judgement = self.judge(&key.configuration, &mut evidence);
        Ok(TrialRecord {
            schema: SCHEMA,
            id: id.to_owned(),
            result: self.result.clone(),
            purpose: key.purpose,
            configuration: key.configuration.clone(),
            repeat: key.repeat,
            started_at_unix_ms,
            slo: self.experiment.slo.clone(),
            verdict: judgement.verdict,
            reason: judgement.reason,
            objectives: judgement.objectives,
            evidence,
        })
    }

    /// Judges strictly; a disturbed trial again without regard to the disturbance, where the
    /// experiment accepts it.
    fn judge(&self, configuration: &Configuration, evidence: &mut Evidence) -> Judgement {
        let slo = &self.experiment.slo;
        let strict = judge(configuration, slo, evidence, &self.thresholds);
        let is_disturbed = matches!(
            strict.verdict,
            Verdict::Invalid(Invalid::Noise | Invalid::GeneratorSaturated)
        );
        if !is_disturbed || !self.experiment.accept_noise {
            return strict;
        }
        let warning =
            "other programs disturbed it; judged all the same, as the experiment accepts noise";
        evidence.warnings.push(warning.to_owned());
        let lenient = self.thresholds.accepting_neighbours();
        judge(configuration, slo, evidence, &lenient)
    }

    fn plan(
        &self,
        id: &str,
        configuration: &Configuration,
        cache: Option<&Built>,
    ) -> Result<TrialPlan, SessionError> {
        let app = &self.experiment.app;
        let with = cache.map(|built| with_options(configuration, built));
        let with = with.as_ref().unwrap_or(configuration);
        let assembled = assemble(app, with, self.jdks, self.places)?;
        let scratch = self.store.scratch(id);
        Ok(TrialPlan {
            instance: InstanceSpec {
                trial: id.to_owned(),
                configuration: configuration.clone(),
                command: assembled.command,
                env: assembled.env,
                directory: app.directory.clone(),
                readiness: app.readiness.clone(),
                network: app.network,
                account: self.account,
                scratch,
                samples: self.store.samples(id),
                gc_log: assembled.gc_log,
                log_line: app.log_line.clone(),
                keep: None,
                sampling: self.experiment.sampling,
            },
            start_deadline: self.start_deadline,
            load: self.load(configuration.rate),
            stop_grace: app.stop_grace,
        })
    }

    /// The load phases; `rate` replaces the rate of an open model.
    fn load(&self, rate: Option<f64>) -> Vec<LoadPhase> {
        let load = &self.experiment.load;
        let model = match rate {
            Some(rate) => load.model.clone().at_rate(rate),
            None => load.model.clone(),
        };
        let phase = |phase, model| {
            let mut phase = load.phase(phase, model);
            phase.plan.slo = self.experiment.slo.tightest_latency();
            phase
        };
        let warm_up = match model.rate() {
            Some(rate) => Model::constant(rate, load.warm_up),
            None => Model::ClosedFor {
                duration: load.warm_up,
            },
        };
        let mut phases = Vec::new();
        if !load.warm_up.is_zero() {
            phases.push(phase(Phase::WarmUp, warm_up));
        }
        phases.push(phase(Phase::Measure, model));
        phases
    }

    fn pause(&self, time: Duration) -> Result<(), SessionError> {
        const SLICE: Duration = Duration::from_millis(50);
        let mut left = time;
        while !left.is_zero() {
            if self.watcher.interrupted() {
                return Err(SessionError::Interrupted);
            }
            let slice = left.min(SLICE);
            std::thread::sleep(slice);
            left -= slice;
        }
        Ok(())
    }
}
