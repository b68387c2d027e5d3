//! What runs in a slot, from its begin to its record.

use loadline_analysis::record::{
    Evidence, InvalidReason, MeasurementFailure, SCHEMA, TrialRecord, TrialVerdict,
};
use loadline_analysis::search::TrialAsk;
use loadline_analysis::verdict::{ACCEPTED, Judgement, judge_for, judge_trial};
use loadline_jvm::cache::CacheKind;
use loadline_protocol::TrialEnding;

use super::attempts::AskAttempts;
use super::{Measurement, RunError, SearchRunner};
use crate::cache::{CacheRoom, CacheTraining, InstalledCache};
use crate::host::{Delivery, TrialHandle};
use crate::order;
use crate::store::{TrialKey, unix_ms};

pub(super) struct SlotJob {
    pub work: SlotWork,
    pub running: Box<dyn TrialHandle>,
    is_stopped: bool,
}

pub(super) enum SlotWork {
    Trial(Box<SlotTrial>),
    Training(Box<CacheTraining>),
}

pub(super) struct SlotTrial {
    pub ask: TrialAsk,
    id: String,
    key: TrialKey,
    cache: Option<InstalledCache>,
    started_at_unix_ms: u64,
}

impl SlotJob {
    pub fn stop_once(&mut self) {
        if !self.is_stopped {
            self.running.stop_trial();
        }
        self.is_stopped = true;
    }
}

impl SearchRunner<'_> {
    /// Begins an ask in a free slot, or first the training of its cache; returns whether an earlier
    /// result already has the record.
    pub(super) fn begin_ask(
        &mut self,
        slot: usize,
        ask: &TrialAsk,
        tried: AskAttempts,
    ) -> Result<bool, RunError> {
        let key = self.trial_key(ask, tried.attempts + 1);
        if let Some(record) = self.reuse_record(&key)? {
            return self.add_attempt(ask, record);
        }
        let cache = match ask.configuration.cache {
            None => None,
            Some(wanted) => match self.cache_in_place(&ask.configuration, wanted) {
                Some(built) => Some(built),
                None if wanted.kind == CacheKind::Scc => {
                    // Several starts, each of which needs the one before: rare enough to wait for.
                    Some(self.build_shared_cache(slot, &ask.configuration, wanted)?)
                }
                None => {
                    let (with, room) = (&ask.configuration, CacheRoom::ANY);
                    let training = CacheTraining::prepare_training(&self.of, with, wanted, room)?;
                    return self.train(slot, training).map(|()| false);
                }
            },
        };
        let id = self.of.store.begin_trial(&key)?;
        let trial = SlotTrial {
            ask: ask.clone(),
            id,
            key,
            cache,
            started_at_unix_ms: unix_ms(),
        };
        let running = match self.launch_in_slot(slot, &trial) {
            Ok(running) => running,
            Err(error) => {
                self.forget_trial(&trial)?;
                return Err(error);
            }
        };
        self.pairs.extend(ask.pair.map(|pair| (pair, slot)));
        self.watcher.trial_begins(slot, ask, trial.key.attempt);
        self.occupy_slot(slot, SlotWork::Trial(Box::new(trial)), running);
        Ok(false)
    }

    fn launch_in_slot(
        &mut self,
        slot: usize,
        trial: &SlotTrial,
    ) -> Result<Box<dyn TrialHandle>, RunError> {
        let deadline = trial.ask.start_deadline;
        let cache = trial.cache.as_ref();
        let order = order::trial_order(&self.of, &trial.id, &trial.key, deadline, cache)?;
        let delivery = Delivery {
            log: self.of.store.trial_log_path(&trial.id),
            files: Vec::new(),
        };
        self.launch_order(slot, &order, &delivery)
    }

    fn train(&mut self, slot: usize, training: CacheTraining) -> Result<(), RunError> {
        let is_it =
            |job: &SlotJob| matches!(&job.work, SlotWork::Training(t) if t.place == training.place);
        if self.slots.iter().flatten().any(is_it) {
            return Ok(());
        }
        let running = self.launch_errand(slot, &training.errand)?;
        self.occupy_slot(slot, SlotWork::Training(Box::new(training)), running);
        Ok(())
    }

    fn occupy_slot(&mut self, slot: usize, work: SlotWork, running: Box<dyn TrialHandle>) {
        self.slots[slot] = Some(SlotJob {
            work,
            running,
            is_stopped: false,
        });
    }

    /// Takes the end of the job in a slot; returns whether there is a new record.
    pub(super) fn end_job(&mut self, slot: usize, ending: TrialEnding) -> Result<bool, RunError> {
        let Some(job) = self.slots[slot].take() else {
            return Ok(false);
        };
        // What the host keeps for it goes before anything else may fail.
        drop(job.running);
        match job.work {
            SlotWork::Trial(trial) if job.is_stopped && !has_soaked(&ending) => {
                self.watcher.slot_ends(slot);
                self.forget_trial(&trial).map(|()| false)
            }
            SlotWork::Trial(trial) => self.end_trial(slot, &trial, ending),
            SlotWork::Training(training) => {
                self.watcher.slot_ends(slot);
                if job.is_stopped {
                    training.discard();
                    return Ok(false);
                }
                let place = training.place.clone();
                let built = training.install(&measured_evidence(ending)?)?;
                self.caches.insert(place, built);
                Ok(false)
            }
        }
    }

    fn end_trial(
        &mut self,
        slot: usize,
        trial: &SlotTrial,
        ending: TrialEnding,
    ) -> Result<bool, RunError> {
        let mut evidence = match measured_evidence(ending) {
            Ok(evidence) => evidence,
            Err(refused) => {
                self.watcher.slot_ends(slot);
                self.forget_trial(trial)?;
                return Err(refused);
            }
        };
        evidence.cache = trial.cache.as_ref().map(|built| built.evidence.clone());
        let record = record_of_trial(&self.of, trial, evidence);
        self.of.store.finish_trial(&record)?;
        self.watcher.trial_ends(Some(slot), &record);
        self.add_attempt(&trial.ask, record)
    }

    fn forget_trial(&self, trial: &SlotTrial) -> Result<(), RunError> {
        // What stays is removed when the store is opened again.
        let _ = std::fs::remove_file(self.of.store.trial_log_path(&trial.id));
        Ok(self.of.store.interrupt_trial(&trial.id)?)
    }
}

fn has_soaked(ending: &TrialEnding) -> bool {
    matches!(ending, TrialEnding::Measured(evidence) if evidence.soak.is_some())
}

/// The evidence of an ended job. A job that stopped without a request was lost.
pub(super) fn measured_evidence(ending: TrialEnding) -> Result<Evidence, RunError> {
    match ending {
        TrialEnding::Measured(evidence) => Ok(*evidence),
        TrialEnding::Refused(refusal) => Err(refusal.into()),
        TrialEnding::Stopped => {
            let why = "it was stopped from outside";
            let failure = MeasurementFailure::new(InvalidReason::RuntimeLost, why);
            Ok(Evidence::failed(failure))
        }
    }
}

fn record_of_trial(of: &Measurement<'_>, trial: &SlotTrial, mut evidence: Evidence) -> TrialRecord {
    let judgement = judge_evidence(of, trial, &mut evidence);
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

/// Judges a disturbed trial without regard to the disturbance if the experiment accepts that.
fn judge_evidence(of: &Measurement<'_>, trial: &SlotTrial, evidence: &mut Evidence) -> Judgement {
    let (configuration, slo) = (&trial.key.configuration, &of.experiment.slo);
    if !of.experiment.accept_noise {
        let purpose = trial.key.purpose;
        return judge_for(purpose, configuration, slo, evidence, &of.thresholds);
    }
    let strict = judge_trial(configuration, slo, evidence, &of.thresholds);
    use InvalidReason::{GeneratorSaturated, Noise, ProxySaturated};
    let disturbed = [Noise, GeneratorSaturated, ProxySaturated].map(TrialVerdict::Invalid);
    if !disturbed.contains(&strict.verdict) {
        return strict;
    }
    evidence.warnings.push(ACCEPTED.to_owned());
    let lenient = of.thresholds.accepting_neighbours();
    judge_trial(configuration, slo, evidence, &lenient)
}
