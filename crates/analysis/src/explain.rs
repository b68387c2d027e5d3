//! Why a trial's application stood still: from the spans in its record to classes, shares and the
//! longest pauses.
//!
//! Owns what counts as a pause and the sentence that sums them up. Placing throttled time is
//! [`crate::estimate`]'s, the classes are [`crate::attribution`]'s, what to do about it is
//! [`crate::advice`]'s. Nothing here is stored: it follows from the record.

use crate::attribution::{Attribution, PauseClass, attribute_pause, sum_by_class};
use crate::pauses::PauseEvidence;
use crate::record::{TrialPhase, TrialRecord};
use crate::span::{TimeSpan, TimeSpans};

/// Shorter pauses are not looked at, ns: the study's limit.
pub const LONG: u64 = 50_000_000;
pub const TOLD: usize = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Who saw the pauses: the name the application gave itself; `None` where they follow from
    /// the GC log and the cgroup alone.
    pub seen_by: Option<String>,
    /// The time that is explained: the measure phase, else the whole life of the application.
    pub window: TimeSpan,
    /// Every pause over 50 ms, in order of time. Threads that stood at once count each.
    pub pauses: Vec<Attribution>,
    /// Nanoseconds of each class in them, in the order of [`PauseClass::ALL`].
    pub class_ns: [u64; 7],
    /// Pauses of which at least 90 % has a known class.
    pub explained: u64,
    pub in_gaps: u64,
}

impl Explanation {
    pub fn for_trial(record: &TrialRecord) -> Option<Self> {
        let evidence = record.evidence.pauses.as_ref()?;
        let window = explained_window(record)?;
        let sources = evidence.sources();
        let sampling = evidence.sampler.edge_error();
        let sampling = u64::try_from(sampling.as_nanos()).unwrap_or(u64::MAX);
        let (seen_by, spans) = long_pauses(evidence, window);
        let attributed = |span| attribute_pause(span, &sources, sampling);
        let pauses: Vec<Attribution> = spans.into_iter().map(attributed).collect();
        let in_gap = |a: &&Attribution| sources.gaps.within(a.pause).len_ns() > 0;
        Some(Self {
            seen_by,
            window,
            class_ns: sum_by_class(&pauses),
            explained: pauses.iter().filter(|a| a.covered_share() >= 0.9).count() as u64,
            in_gaps: pauses.iter().filter(in_gap).count() as u64,
            pauses,
        })
    }

    pub fn total_ns(&self) -> u64 {
        self.class_ns.iter().sum()
    }

    pub fn of_class(&self, class: PauseClass) -> u64 {
        self.class_ns[class as usize]
    }

    pub fn class_share(&self, class: PauseClass) -> f64 {
        self.of_class(class) as f64 / self.total_ns().max(1) as f64
    }

    pub fn longest(&self) -> Vec<&Attribution> {
        let mut longest: Vec<&Attribution> = self.pauses.iter().collect();
        longest.sort_by_key(|a| (std::cmp::Reverse(a.pause.length_ns()), a.pause.start));
        longest.truncate(TOLD);
        longest
    }

    pub fn pause_sentence(&self) -> String {
        let seconds = self.window.length_ns() as f64 / 1e9;
        if self.pauses.is_empty() {
            return format!("No pause over 50 ms in {seconds:.0} s.");
        }
        let mut classes = PauseClass::ALL;
        classes.sort_by_key(|class| std::cmp::Reverse(self.of_class(*class)));
        let mut told = classes.to_vec();
        told.retain(|class| self.class_share(*class) >= 0.005);
        let shares = told.iter().map(|class| {
            let percent = 100.0 * self.class_share(*class);
            format!("{percent:.0} % {}", class_words(*class))
        });
        let shares = shares.collect::<Vec<_>>().join(", ");
        let all = self.total_ns() as f64 / 1e9;
        let noun = match self.pauses.len() {
            1 => "1 pause".to_owned(),
            n => format!("{n} pauses"),
        };
        format!("{noun} over 50 ms in {seconds:.0} s, {all:.2} s in all: {shares}.")
    }
}

pub fn class_words(class: PauseClass) -> &'static str {
    match class {
        PauseClass::Gc => "collection running",
        PauseClass::GcThrottled => "collection standing throttled",
        PauseClass::MutatorThrottled => "the application's own threads standing throttled",
        PauseClass::AllocationStall => "waiting for the collector to free memory",
        PauseClass::SafepointSync => "waiting for all threads to stop",
        PauseClass::CpuContention => "waiting for a CPU that others had",
        PauseClass::Other => "not explained",
    }
}

fn explained_window(record: &TrialRecord) -> Option<TimeSpan> {
    let evidence = &record.evidence;
    if let Some(measure) = evidence.span_of(TrialPhase::Measure) {
        return Some(TimeSpan::new(measure.start, measure.end));
    }
    let start = evidence.span_of(TrialPhase::Start)?;
    let end = evidence.phases.iter().map(|p| p.end).max()?;
    Some(TimeSpan::new(start.start, end))
}

fn long_pauses(evidence: &PauseEvidence, window: TimeSpan) -> (Option<String>, Vec<TimeSpan>) {
    let is_told = |span: &TimeSpan| {
        span.length_ns() > LONG && window.start <= span.start && span.start < window.end
    };
    if let Some(application) = &evidence.application {
        let spans = application.pauses_ns.iter();
        let spans = spans.map(|(a, b)| TimeSpan::new(*a, *b)).filter(is_told);
        return (Some(application.source.clone()), spans.collect());
    }
    let sources = evidence.sources();
    let stood: TimeSpans = sources.safepoints.union(&sources.throttled);
    let spans = stood.as_slice().iter().copied().filter(is_told);
    (None, spans.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::pauses::ApplicationPauses;
    use crate::record::{PhaseSpan, TrialPurpose, TrialVerdict};

    const MS: u64 = 1_000_000;

    fn record(application: Option<Vec<(u64, u64)>>) -> TrialRecord {
        let ms = |pairs: &[(u64, u64)]| pairs.iter().map(|(a, b)| (a * MS, b * MS)).collect();
        let mut record = fixture::trial_record("t", TrialPurpose::Matrix, 64, TrialVerdict::Pass);
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 2000 * MS,
        }];
        record.evidence.pauses = Some(PauseEvidence {
            throttled_ns: ms(&[(60, 100), (150, 200), (900, 905)]),
            safepoints_ns: vec![(30 * MS, 100 * MS, 5 * MS)],
            application: application.map(|pauses_ns| ApplicationPauses {
                source: "allocation".to_owned(),
                pauses_ns,
                ..ApplicationPauses::default()
            }),
            ..PauseEvidence::default()
        });
        record
    }

    #[test]
    fn pauses_of_the_application_are_explained() {
        let seen = vec![
            (25 * MS, 100 * MS),
            (140 * MS, 200 * MS),
            (300 * MS, 349 * MS),
        ];
        let got = Explanation::for_trial(&record(Some(seen))).unwrap();
        assert_eq!(got.seen_by.as_deref(), Some("allocation"));
        insta::assert_snapshot!(got.pause_sentence(), @"2 pauses over 50 ms in 2 s, 0.14 s in all: 37 % the application's own threads standing throttled, 30 % collection standing throttled, 19 % collection running, 11 % not explained, 4 % waiting for all threads to stop.");
        assert_eq!(got.explained, 1);
        assert_eq!(got.longest()[0].pause, TimeSpan::new(25 * MS, 100 * MS));
        assert_eq!(got.longest()[0].dominant(), PauseClass::GcThrottled);
    }

    #[test]
    fn without_the_application_the_log_and_the_cgroup_tell() {
        let got = Explanation::for_trial(&record(None)).unwrap();
        assert_eq!(got.seen_by, None);
        assert_eq!(got.pauses.len(), 1);
        assert_eq!(got.pauses[0].pause, TimeSpan::new(30 * MS, 100 * MS));
        assert_eq!(got.explained, 1);
    }

    #[test]
    fn a_quiet_trial_says_so() {
        let mut quiet = record(Some(Vec::new()));
        let got = Explanation::for_trial(&quiet).unwrap();
        assert_eq!(got.pause_sentence(), "No pause over 50 ms in 2 s.");
        quiet.evidence.pauses = None;
        assert_eq!(Explanation::for_trial(&quiet), None);
    }
}
