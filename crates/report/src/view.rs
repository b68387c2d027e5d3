//! What a report is made from: the records of one result and what the search concluded.
//!
//! Owns [`ResultView`], the only input of this crate. Plain data; whoever holds the records fills
//! it, on any machine, also from a run that was killed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{
    Configuration, LoadFrom, MachineDescription, TrialPurpose, TrialRecord,
};
use loadline_analysis::slo::{Objective, Slo};
use loadline_sizing::{Bytes, Cpus, JvmOptionSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;

/// The host that an answer is to run on.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetNode {
    pub cpus: u32,
    /// The JVM options of the application's command and environment; the records have those of
    /// configurations.
    pub options: JvmOptionSet,
    pub has_arenas: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ResultView {
    pub id: String,
    pub title: String,
    pub question: Option<String>,
    pub command: Vec<String>,
    /// The experiment file verbatim, or its equivalent for flags (TOML).
    pub experiment: String,
    pub load: LoadWords,
    pub machine: MachineDescription,
    pub slo: Slo,
    pub recommendation: Option<Recommendation>,
    pub trials: Vec<TrialRecord>,
    /// Why the result is not complete (`interrupted after 12 trials`); `None` when it is.
    pub incomplete: Option<String>,
    pub node: Option<TargetNode>,
    pub today: Option<CurrentLimits>,
    /// Remarks on the whole run: preflight findings, omissions.
    pub warnings: Vec<String>,
}

impl ResultView {
    /// The name of the answer's size in tables: without a test it is no recommendation.
    pub(crate) fn chosen_as(&self) -> &'static str {
        let is_proven = |recommendation: &Recommendation| recommendation.is_proven();
        if self.recommendation.as_ref().is_none_or(is_proven) {
            "recommended"
        } else {
            "not tested"
        }
    }

    pub fn trial_by_id(&self, id: &str) -> Option<&TrialRecord> {
        self.trials.iter().find(|t| t.id == id)
    }

    pub fn trial_number(&self, id: &str) -> Option<usize> {
        self.trials.iter().position(|t| t.id == id).map(|i| i + 1)
    }

    /// ` (trial 12)`; empty for a trial of another result.
    pub fn trial_words(&self, id: &str) -> String {
        let number = self.trial_number(id);
        number.map_or_else(String::new, |number| format!(" (trial {number})"))
    }

    pub fn evidence_trials(&self) -> impl Iterator<Item = &TrialRecord> {
        self.trials.iter().filter(|t| t.verdict.is_evidence())
    }

    /// Whether its trials send requests; a run that ends and a consumer get none.
    pub fn sends_requests(&self) -> bool {
        self.slo.request_objective().is_some()
    }

    /// Whether its SLO bounds starts and no latency.
    pub(crate) fn is_of_starts(&self) -> bool {
        let all = &self.slo.objectives;
        let is_start = |o: &Objective| matches!(o, Objective::Start { .. });
        let is_latency = |o: &Objective| matches!(o, Objective::Latency { .. });
        all.iter().any(is_start) && !all.iter().any(is_latency)
    }

    /// From when latencies count. A command of the user's does not say when it meant to send.
    pub(crate) fn latency_origin(&self) -> &'static str {
        let loads = || self.trials.iter().flat_map(|trial| &trial.evidence.load);
        let is_command = |from: &LoadFrom| matches!(from, LoadFrom::Command { .. });
        if loads().any(|load| load.load_from.as_ref().is_some_and(is_command)) {
            "from its arrival before the service"
        } else {
            "from the intended send time"
        }
    }

    pub fn load_of(&self, configuration: &Configuration) -> String {
        let load = match configuration.rate {
            Some(rate) => self.load.at_rate(&format::as_rate(rate)),
            None => self.load.to_string(),
        };
        match configuration.warm_up {
            Some(longer) => format!("{load}, lengthened to {}", format::elapsed(longer)),
            None => load,
        }
    }

    pub fn load_of_all(&self) -> String {
        let mut rates = self.trials.iter().map(|t| t.configuration.rate);
        match rates.next().flatten() {
            Some(first) if rates.all(|rate| rate == Some(first)) => {
                self.load.at_rate(&format::as_rate(first))
            }
            None if rates.all(|rate| rate.is_none()) => self.load.to_string(),
            _ => self.load.at_rate("each at its own rate"),
        }
    }

    pub fn elapsed(&self) -> Duration {
        // A separate soak of the answer may have run days later.
        let result = self.trials.first().map(|t| &t.result);
        let is_own =
            |t: &&TrialRecord| t.purpose != TrialPurpose::Soak || Some(&t.result) == result;
        let own = || self.trials.iter().filter(is_own);
        let first = own().map(|t| t.started_at_unix_ms).min();
        let last = own().map(end_unix_ms).max();
        Duration::from_millis(last.unwrap_or(0).saturating_sub(first.unwrap_or(0)))
    }
}

fn end_unix_ms(trial: &TrialRecord) -> u64 {
    let phases = &trial.evidence.phases;
    let start = phases.iter().map(|p| p.start).min().unwrap_or(0);
    let end = phases.iter().map(|p| p.end).max().unwrap_or(0);
    trial
        .started_at_unix_ms
        .saturating_add(end.saturating_sub(start) / 1_000_000)
}

/// A load in words: `GET /owners, open model, 300/s for 20 s`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadWords {
    /// The words before the rate: `GET /owners, open model, `; the whole text without a rate.
    pub before: String,
    /// Requests a second; null for a closed model, which has none.
    pub rate_per_second: Option<f64>,
    /// What stands after the rate: ` for 20 s`.
    pub after: String,
}

impl LoadWords {
    pub fn without_rate(words: String) -> Self {
        Self {
            before: words,
            rate_per_second: None,
            after: String::new(),
        }
    }

    pub fn at_rate(&self, rate: &str) -> String {
        let Self { before, after, .. } = self;
        match self.rate_per_second {
            Some(_) => format!("{before}{rate}{after}"),
            None => format!("{before} ({rate})"),
        }
    }
}

impl fmt::Display for LoadWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate_per_second {
            Some(rate) => f.write_str(&self.at_rate(&format::as_rate(rate))),
            None => f.write_str(&self.before),
        }
    }
}

/// The size that ships today, as its owner tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentLimits {
    pub cpu: Option<Cpus>,
    pub memory: Bytes,
}

impl FromStr for CurrentLimits {
    type Err = String;

    /// `2/4Gi`, or `4Gi` alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let (cpu, memory) = match text.split_once('/') {
            Some((cpu, memory)) => (Some(cpu), memory),
            None => (None, text),
        };
        let cpu: Option<Cpus> = cpu
            .map(|cpu| cpu.parse().map_err(limits_error))
            .transpose()?;
        let memory: Bytes = memory.parse().map_err(limits_error)?;
        if memory < Bytes::from_mib(1) || cpu.is_some_and(|cpu| cpu.as_millis() == 0) {
            Err(limits_error("it is less than 1 MiB of memory, or no CPU"))
        } else {
            Ok(Self { cpu, memory })
        }
    }
}

fn limits_error(why: impl std::fmt::Display) -> String {
    format!("{why}; write CPUs and memory, 2/4Gi, or memory alone, 4Gi")
}
