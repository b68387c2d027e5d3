//! Attempts at a trial: those in the store, when the next may begin, and when to give up.

use std::time::Duration;

use loadline_analysis::record::{
    Evidence, InvalidReason, MeasurementFailure, SCHEMA, TrialPurpose, TrialRecord, TrialVerdict,
    VerdictReason,
};
use loadline_analysis::search::{TrialAsk, WantedTrials};
use loadline_analysis::text;
use loadline_cgroup::{BusyProgram, CpuUse};

use super::{RunError, SearchRunner};
use crate::host::MachineUse;
use crate::store::{StoreError, TrialKey};

pub const ATTEMPTS: u32 = 3;

/// Wait before the second attempt; doubled before the third.
const BACK_OFF: Duration = Duration::from_secs(2);

/// Longest wait for a quiet machine before the second attempt; four times as long before the third.
/// Chosen: a build often takes minutes.
const QUIET_WAIT: Duration = Duration::from_secs(60);

/// How often the machine is looked at meanwhile.
const QUIET_LOOK: Duration = Duration::from_millis(500);

const OVER: &str = "the time of the search was over before it ran";

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AskAttempts {
    pub attempts: u32,
    pub spent: Duration,
    /// When the next may begin, by the host's clock, ns.
    pub not_before: u64,
    /// Until when it waits for a quiet machine, where others disturbed the last.
    pub quiet_until: u64,
}

impl AskAttempts {
    fn count_record(&mut self, record: &TrialRecord) {
        self.attempts += 1;
        self.spent += record.total_length();
    }

    /// Whether to give up, `last` being the latest record.
    fn is_enough(&self, last: &TrialRecord) -> bool {
        self.attempts > 0 && self.attempts.is_multiple_of(attempts_worth(last.verdict))
    }
}

/// Whether it is final after one attempt: hours of a soak are not repeated, its data are judged as
/// they are.
fn is_enough_alone(record: &TrialRecord) -> bool {
    let soak = record.evidence.soak.as_ref();
    let has_soaked = soak.is_some_and(|soak| !soak.points.is_empty());
    record.verdict.is_evidence() || has_soaked
}

/// A disturbance passes. What an image makes of its options stays; a load command that fails twice
/// fails again.
fn attempts_worth(verdict: TrialVerdict) -> u32 {
    match verdict {
        TrialVerdict::Invalid(InvalidReason::OtherOptions) => 1,
        TrialVerdict::Invalid(InvalidReason::LoadCommand) => 2,
        _ => ATTEMPTS,
    }
}

fn is_disturbed(verdict: TrialVerdict) -> bool {
    matches!(verdict, TrialVerdict::Invalid(reason) if reason.is_disturbance())
}

/// What keeps the machine from being quiet.
fn culprit(used: &CpuUse) -> String {
    match &used.busiest {
        Some(BusyProgram { name, pid, share }) => {
            let share = text::short_percent(*share);
            format!("{name} (pid {pid}) uses {share} of the CPUs")
        }
        None => {
            let share = text::short_percent(used.share);
            format!("other programs use {share} of the CPUs")
        }
    }
}

/// Whether it needs time to pass, as a disturbance does. An evicted pod, a load command that failed, a
/// metric that never appeared and a dependency that ended do not.
fn is_passing(record: &TrialRecord) -> bool {
    use InvalidReason::{Dependency, LoadCommand, Metrics, RuntimeLost};
    let at_once = [Dependency, LoadCommand, Metrics, RuntimeLost];
    !at_once.map(TrialVerdict::Invalid).contains(&record.verdict)
}

impl SearchRunner<'_> {
    /// Whether another attempt waits for a quiet machine; the watcher hears who keeps it busy.
    pub(super) fn must_wait(
        &mut self,
        slot: usize,
        ask: &TrialAsk,
        mut tried: AskAttempts,
    ) -> bool {
        let now = self.host.host_clock_ns();
        if now >= tried.quiet_until {
            return false;
        }
        match self.host.machine_use() {
            MachineUse::Unknown => return false,
            MachineUse::NotYet => {}
            MachineUse::Seen(used) if used.share <= self.of.thresholds.noise.foreign_cpu => {
                return false;
            }
            MachineUse::Seen(used) => self.watcher.slot_waits(slot, &culprit(&used)),
        }
        tried.not_before = now + QUIET_LOOK.as_nanos() as u64;
        // A search that has a budget waits from it.
        tried.spent += QUIET_LOOK;
        self.tried.set_value(ask, tried);
        true
    }

    pub(super) fn trial_key(&self, ask: &TrialAsk, attempt: u32) -> TrialKey {
        TrialKey {
            result: self.of.result.clone(),
            purpose: ask.purpose,
            configuration: ask.configuration.clone(),
            repeat: ask.repeat,
            attempt,
        }
    }

    /// Looks up new asks; returns whether the store had a record.
    pub(super) fn recall(&mut self, open: &WantedTrials) -> Result<bool, RunError> {
        let mut is_new = false;
        for ask in open.wanted.iter().chain(&open.guesses) {
            if self.tried.value_for(ask).is_none() {
                is_new |= self.recall_one(ask)?;
            }
        }
        Ok(is_new)
    }

    fn recall_one(&mut self, ask: &TrialAsk) -> Result<bool, RunError> {
        let (mut tried, mut last) = (AskAttempts::default(), None);
        while let Some(record) = self
            .of
            .store
            .find_trial(&self.trial_key(ask, tried.attempts + 1))?
        {
            tried.count_record(&record);
            self.watcher.trial_ends(None, &record);
            let is_evidence = is_enough_alone(&record);
            last = Some(record);
            if is_evidence {
                break;
            }
        }
        self.tried.set_value(ask, tried);
        let is_over = |record: &TrialRecord| {
            is_enough_alone(record) || (tried.is_enough(record) && !self.of.retries)
        };
        let Some(record) = last.filter(is_over) else {
            return Ok(false);
        };
        self.seen.add_record(ask, record, tried.spent);
        Ok(true)
    }

    pub(super) fn add_attempt(
        &mut self,
        ask: &TrialAsk,
        record: TrialRecord,
    ) -> Result<bool, RunError> {
        let mut tried = self.tried.value_for(ask).copied().unwrap_or_default();
        tried.count_record(&record);
        let longest = self.longest.entry(record.purpose).or_default();
        *longest = record.total_length().max(*longest);
        let is_over = is_enough_alone(&record) || tried.is_enough(&record);
        if !is_over {
            if record.verdict == TrialVerdict::Invalid(InvalidReason::DiskFull) {
                let path = self.of.store.state_directory().to_owned();
                return Err(StoreError::Full { path }.into());
            }
            let steps = tried.attempts % ATTEMPTS;
            let wait = BACK_OFF * steps * u32::from(is_passing(&record));
            let now = self.host.host_clock_ns();
            tried.not_before = now + wait.as_nanos() as u64;
            tried.quiet_until = if is_disturbed(record.verdict) {
                now + (QUIET_WAIT * 4_u32.pow(steps.saturating_sub(1))).as_nanos() as u64
            } else {
                0
            };
        }
        self.tried.set_value(ask, tried);
        if is_over {
            self.seen.add_record(ask, record, tried.spent);
        }
        Ok(is_over)
    }

    /// Whether the next trial would end too late; a trial that runs may use the rest.
    pub(super) fn is_out_of_time(&self, open: &WantedTrials) -> bool {
        let Some(ends_at) = self.ends_at else {
            return false;
        };
        let is_idle = self.slots.iter().all(Option::is_none);
        let mut asks = open.wanted.iter().filter(|_| is_idle);
        let next = asks.find(|ask| self.seen.record_for(ask).is_none());
        let length = next.and_then(|ask| self.longest.get(&ask.purpose));
        let length = length.map_or(0, |length| length.as_nanos() as u64);
        self.host.host_clock_ns() + length > ends_at
    }

    /// Answers the asks still open with records of trials that never ran, so that the search ends.
    pub(super) fn leave_out(&mut self, open: &WantedTrials) {
        for ask in &open.wanted {
            if self.seen.record_for(ask).is_none() {
                let record = self.left_out(ask);
                self.seen.add_record(ask, record, Duration::ZERO);
            }
        }
    }

    fn left_out(&self, ask: &TrialAsk) -> TrialRecord {
        let reason = InvalidReason::OutOfTime;
        TrialRecord {
            schema: SCHEMA,
            id: String::new(),
            result: self.of.result.clone(),
            purpose: ask.purpose,
            configuration: ask.configuration.clone(),
            repeat: ask.repeat,
            started_at_unix_ms: 0,
            slo: self.of.experiment.slo.clone(),
            verdict: TrialVerdict::Invalid(reason),
            reason: VerdictReason::from(OVER.to_owned()),
            objectives: Vec::new(),
            evidence: Evidence::failed(MeasurementFailure::new(reason, OVER)),
        }
    }

    /// The same trial of an earlier result, as a record of this result that names its source. Fresh
    /// starts and pairs always run: only new trials prove anything.
    pub(super) fn reuse_record(&mut self, key: &TrialKey) -> Result<Option<TrialRecord>, RunError> {
        use TrialPurpose::{Compare, Prove, Soak, Squeeze};
        let is_fresh = [Prove, Compare, Soak, Squeeze].contains(&key.purpose);
        let Some(ground) = self.of.reuse.as_ref().filter(|_| !is_fresh) else {
            return Ok(None);
        };
        let store = self.of.store;
        let Some(mut record) = store.find_alike(ground, key)? else {
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
        record.id = store.begin_trial(key)?;
        record.result.clone_from(&self.of.result);
        record.configuration = key.configuration.clone();
        store.finish_trial(&record)?;
        self.watcher.trial_ends(None, &record);
        Ok(Some(record))
    }
}
