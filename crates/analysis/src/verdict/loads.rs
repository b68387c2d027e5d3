//! The two judged loads of a trial: the load itself, and the burst behind it.
//!
//! Owns which one an objective is about.

use crate::latency::LatencyError;
use crate::record::{Evidence, ObjectiveResult, TrialPhase};
use crate::sli::MeasuredLoad;
use crate::text;

pub(super) struct JudgedLoads {
    pub(super) base: Option<MeasuredLoad>,
    pub(super) peak: Option<MeasuredLoad>,
}

impl JudgedLoads {
    pub(super) fn from_evidence(evidence: &Evidence) -> Result<Self, LatencyError> {
        Ok(Self {
            base: MeasuredLoad::from_evidence(evidence)?,
            peak: MeasuredLoad::in_phase(evidence, TrialPhase::Peak)?,
        })
    }

    pub(super) fn load_of(&self, result: &ObjectiveResult) -> Option<&MeasuredLoad> {
        if result.is_peak {
            self.peak.as_ref()
        } else {
            self.base.as_ref()
        }
    }

    /// `at the peak of 200/s for 10s p99 41ms, 0 of 2000 requests failed`; `None` without a peak.
    pub(super) fn peak_sentence(&self) -> Option<String> {
        let peak = self.peak.as_ref()?;
        let p99 = crate::slo::Quantile::from_fraction(0.99);
        let p99 = p99.and_then(|quantile| peak.latency.quantile(quantile));
        let p99 = p99.map_or("in failed requests".to_owned(), text::short_duration);
        Some(format!(
            "at the peak of {} for {} p99 {p99}, {} of {} requests failed",
            text::short_rate(peak.offered_rate?),
            text::short_duration(peak.duration),
            text::short_count(peak.scheduled.saturating_sub(peak.ok)),
            text::short_count(peak.scheduled),
        ))
    }
}
