//! What starts that kept the SLO showed at most: the bounds of alerts.
//!
//! Owns which starts count: with the CPU limit of the answer, at its size and below, and not the one
//! whose limit was lowered under load.

use loadline_analysis::budget::{Budget, BudgetLine, MemoryPart};
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{TrialPurpose, TrialRecord, TrialVerdict};
use loadline_sizing::Bytes;

use crate::figures::{self, TrialFigures};
use crate::view::ResultView;

/// A working set from this share of its limit on has filled it with file pages, and says nothing more.
const FILLED: f64 = 0.95;

/// What starts that kept the SLO showed at most; `None` where it was not measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AlertBounds {
    pub starts: usize,
    pub faults: Option<f64>,
    pub throttled: Option<f64>,
    pub working_set: Option<Bytes>,
    pub anon: Option<Bytes>,
    /// Anonymous memory that the answer's budget allows, growth included: starts of seconds show less
    /// than a pod of hours.
    pub budgeted_anon: Option<Bytes>,
    pub heap: Option<Bytes>,
}

impl AlertBounds {
    pub fn for_answer(view: &ResultView, recommendation: &Recommendation) -> Self {
        let answer = &recommendation.configuration;
        let kept: Vec<&TrialRecord> = view
            .evidence_trials()
            .filter(|t| t.verdict == TrialVerdict::Pass && t.purpose != TrialPurpose::Squeeze)
            .filter(|t| t.configuration.cpu == answer.cpu)
            .filter(|t| t.configuration.memory <= answer.memory)
            .collect();
        let quantile = figures::headline_quantile(&view.slo.objectives);
        let figures = |trial: &&TrialRecord| TrialFigures::for_trial(trial, quantile);
        let seen: Vec<TrialFigures> = kept.iter().map(figures).collect();
        let faults = kept.iter().filter_map(|t| {
            let seconds = t.evidence.counted_length().as_secs_f64();
            (seconds > 0.0).then_some(t.evidence.cgroup.major_faults? as f64 / seconds)
        });
        let throttled = seen.iter().filter_map(|f| f.sli.throttled_periods_share);
        let filled = recommendation.recommended_memory().as_bytes() as f64 * FILLED;
        let working_set = seen.iter().filter_map(|f| f.sli.peak_working_set).max();
        Self {
            starts: kept.len(),
            faults: faults.reduce(f64::max),
            throttled: throttled.reduce(f64::max),
            working_set: working_set.filter(|set| (set.as_bytes() as f64) < filled),
            budgeted_anon: recommendation.budget.as_ref().map(anonymous_need),
            anon: seen.iter().filter_map(|f| f.anon).max(),
            heap: seen.iter().filter_map(|f| f.heap_after).max(),
        }
    }
}

fn anonymous_need(budget: &Budget) -> Bytes {
    let is_anonymous =
        |line: &&BudgetLine| !matches!(line.part, MemoryPart::Kernel | MemoryPart::Files);
    let lines = budget.lines().iter().filter(is_anonymous);
    let needs = lines.map(BudgetLine::need);
    needs.fold(Bytes::default(), Bytes::saturating_add)
}
