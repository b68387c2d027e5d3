//! What runs in a slot, from its begin to its record.

use loadline_analysis::record::{Evidence, Failure, Invalid, SCHEMA, TrialRecord, Verdict};
use loadline_analysis::search::Ask;
use loadline_analysis::verdict::{Judgement, judge};
use loadline_jvm::cache::CacheKind;
use loadline_trial::Ending;

use super::attempts::Tried;
use super::{Measurement, RunError, Runner};
use crate::cache::{Built, Room, Training};
use crate::host::{Delivery, Running};
use crate::order;
use crate::store::{TrialKey, unix_ms};

/// What runs in a slot.
pub(super) struct Job {
    pub work: Work,
    pub running: Box<dyn Running>,
    /// It was told to stop: whatever it ends with is no record.
    is_stopped: bool,
}

pub(super) enum Work {
    /// A trial.
    Trial(Box<Trial>),
    /// The training of a start-up cache.
    Training(Box<Training>),
}

/// A trial that runs.
pub(super) struct Trial {
    pub ask: Ask,
    id: String,
    key: TrialKey,
    cache: Option<Built>,
    started_at_unix_ms: u64,
}

impl Job {
    /// Tells it to stop, once.
    pub fn stop(&mut self) {
        if !self.is_stopped {
            self.running.stop();
        }
        self.is_stopped = true;
    }
}

impl Runner<'_> {
    /// Begins what is asked for in a free slot, or first the training of its cache; whether there
    /// is a record instead, of an earlier result.
    pub(super) fn begin(&mut self, slot: usize, ask: &Ask, tried: Tried) -> Result<bool, RunError> {
        let key = self.key(ask, tried.attempts + 1);
        if let Some(record) = self.reused(&key)? {
            return self.attempted(ask, record);
        }
        let cache = match ask.configuration.cache {
            None => None,
            Some(wanted) => match self.built(&ask.configuration, wanted) {
                Some(built) => Some(built),
                None if wanted.kind == CacheKind::Scc => {
                    // Several starts, each of which needs the one before: rare enough to wait for.
                    Some(self.shared(slot, &ask.configuration, wanted)?)
                }
                None => {
                    let training =
                        Training::prepare(&self.of, &ask.configuration, wanted, Room::ANY)?;
                    return self.train(slot, training).map(|()| false);
                }
            },
        };
        let id = self.of.store.begin_trial(&key)?;
        let trial = Trial {
            ask: ask.clone(),
            id,
            key,
            cache,
            started_at_unix_ms: unix_ms(),
        };
        let running = match self.launch(slot, &trial) {
            Ok(running) => running,
            Err(error) => {
                self.forget(&trial);
                self.of.store.interrupt_trial(&trial.id)?;
                return Err(error);
            }
        };
        self.pairs.extend(ask.pair.map(|pair| (pair, slot)));
        self.watcher.trial_begins(slot, ask, trial.key.attempt);
        self.put(slot, Work::Trial(Box::new(trial)), running);
        Ok(false)
    }

    fn launch(&mut self, slot: usize, trial: &Trial) -> Result<Box<dyn Running>, RunError> {
        let deadline = trial.ask.start_deadline;
        let cache = trial.cache.as_ref();
        let order = order::trial(&self.of, &trial.id, &trial.key, deadline, cache)?;
        if let Some(refusal) = self.host.refuses(&order) {
            return Err(refusal.into());
        }
        let delivery = Delivery {
            log: self.of.store.log(&trial.id),
            files: Vec::new(),
        };
        Ok(self.host.launch(slot, &order, &delivery)?)
    }

    /// Trains a cache, unless another slot does.
    fn train(&mut self, slot: usize, training: Training) -> Result<(), RunError> {
        let is_it =
            |job: &Job| matches!(&job.work, Work::Training(t) if t.place() == training.place());
        if self.slots.iter().flatten().any(is_it) {
            return Ok(());
        }
        if let Some(refusal) = self.host.refuses(&training.order) {
            return Err(refusal.into());
        }
        let running = self
            .host
            .launch(slot, &training.order, &training.delivery)?;
        self.watcher.training_begins(slot, &training.configuration);
        self.put(slot, Work::Training(Box::new(training)), running);
        Ok(())
    }

    fn put(&mut self, slot: usize, work: Work, running: Box<dyn Running>) {
        self.slots[slot] = Some(Job {
            work,
            running,
            is_stopped: false,
        });
    }

    /// Takes the end of what ran in a slot, which is free then; whether there is a new record.
    pub(super) fn end(&mut self, slot: usize, ending: Ending) -> Result<bool, RunError> {
        let Some(job) = self.slots[slot].take() else {
            return Ok(false);
        };
        // What the host keeps for it goes before anything else may fail.
        drop(job.running);
        match job.work {
            Work::Trial(trial) if job.is_stopped && !has_soaked(&ending) => {
                self.drop_trial(slot, &trial).map(|()| false)
            }
            Work::Trial(trial) => self.end_trial(slot, &trial, ending),
            Work::Training(training) => {
                self.watcher.slot_ends(slot);
                if job.is_stopped {
                    training.discard();
                    return Ok(false);
                }
                let place = training.place().to_owned();
                let built = training.install(&measured(ending)?)?;
                self.caches.insert(place, built);
                Ok(false)
            }
        }
    }

    /// A trial that was stopped is no trial.
    fn drop_trial(&mut self, slot: usize, trial: &Trial) -> Result<(), RunError> {
        self.watcher.slot_ends(slot);
        self.forget(trial);
        Ok(self.of.store.interrupt_trial(&trial.id)?)
    }

    fn end_trial(&mut self, slot: usize, trial: &Trial, ending: Ending) -> Result<bool, RunError> {
        let mut evidence = match measured(ending) {
            Ok(evidence) => evidence,
            Err(refused) => {
                self.watcher.slot_ends(slot);
                self.forget(trial);
                self.of.store.interrupt_trial(&trial.id)?;
                return Err(refused);
            }
        };
        evidence.cache = trial.cache.as_ref().map(|built| built.evidence.clone());
        let record = record(&self.of, trial, evidence);
        self.of.store.finish_trial(&record)?;
        self.watcher.trial_ends(Some(slot), &record);
        self.attempted(&trial.ask, record)
    }

    /// Nobody reads the event log of what is no trial.
    fn forget(&self, trial: &Trial) {
        // What stays is removed when the store is opened again.
        let _ = std::fs::remove_file(self.of.store.log(&trial.id));
    }
}

/// Whether it is a soak that has seen something: that is kept, also when it is stopped.
fn has_soaked(ending: &Ending) -> bool {
    let Ending::Measured(evidence) = ending else {
        return false;
    };
    evidence.soak.is_some()
}

/// What a run was measured with. One that stopped although nobody told it to was lost.
fn measured(ending: Ending) -> Result<Evidence, RunError> {
    match ending {
        Ending::Measured(evidence) => Ok(*evidence),
        Ending::Refused(refusal) => Err(refusal.into()),
        Ending::Stopped => Ok(Evidence {
            failure: Some(Failure {
                cause: Invalid::RuntimeLost,
                detail: "it was stopped from outside".to_owned(),
            }),
            ..Evidence::default()
        }),
    }
}

fn record(of: &Measurement<'_>, trial: &Trial, mut evidence: Evidence) -> TrialRecord {
    let judgement = judged(of, trial, &mut evidence);
    TrialRecord {
        schema: SCHEMA,
        id: trial.id.clone(),
        result: of.result.clone(),
        purpose: trial.key.purpose,
        configuration: trial.key.configuration.clone(),
        repeat: trial.key.repeat,
        started_at_unix_ms: trial.started_at_unix_ms,
        slo: of.experiment.slo.clone(),
        verdict: judgement.verdict,
        reason: judgement.reason,
        objectives: judgement.objectives,
        evidence,
    }
}

/// Judges strictly; a disturbed trial again without regard to the disturbance, where the
/// experiment accepts it.
fn judged(of: &Measurement<'_>, trial: &Trial, evidence: &mut Evidence) -> Judgement {
    let (configuration, slo) = (&trial.key.configuration, &of.experiment.slo);
    let strict = judge(configuration, slo, evidence, &of.thresholds);
    let is_disturbed = matches!(
        strict.verdict,
        Verdict::Invalid(Invalid::Noise | Invalid::GeneratorSaturated | Invalid::ProxySaturated)
    );
    if !is_disturbed || !of.experiment.accept_noise {
        return strict;
    }
    let warning =
        "other programs disturbed it; judged all the same, as the experiment accepts noise";
    evidence.warnings.push(warning.to_owned());
    let lenient = of.thresholds.accepting_neighbours();
    judge(configuration, slo, evidence, &lenient)
}
