//! How far the claim of an answer reaches: under which load, judged for how long, soaked or not.
//!
//! Owns the two words for it, for the headline and every emitted file: *tested* is what the seconds of
//! fresh starts can show, *proven* what a soak showed that lasted within its budget.

use std::time::Duration;

use loadline_analysis::budget::SoakOutcome;
use loadline_analysis::growth::GrowthVerdict as Growth;
use loadline_analysis::proof::Proof;
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{PhaseSpan, TrialPhase, TrialPurpose, TrialRecord};
use loadline_analysis::warming::JvmQuestion;

use super::growth::show_length;
use super::headline::slo_words;
use super::{first_second, groups, growth, runs};
use crate::format;
use crate::table::Tone;
use crate::view::ResultView;

pub(crate) struct AnswerClaim<'a> {
    view: &'a ResultView,
    pub(super) recommendation: &'a Recommendation,
    pub(super) soak: Option<(&'a TrialRecord, SoakOutcome)>,
}

impl<'a> AnswerClaim<'a> {
    pub(crate) fn new(view: &'a ResultView, recommendation: &'a Recommendation) -> Self {
        let is_it = |t: &&TrialRecord| {
            groups::is_of_answer(&t.configuration, &recommendation.configuration)
        };
        let soaks = view.trials.iter().filter(is_it).filter_map(|t| {
            let outcome = SoakOutcome::for_trial(t, recommendation.budget.as_ref());
            Some((t, outcome?))
        });
        // A later soak that shows less takes back neither a death nor hours that the size lasted.
        let soak = soaks.max_by_key(|(trial, outcome)| {
            let is_short = matches!(outcome, SoakOutcome::TooShort { .. });
            (outcome.refutes(), trial.verdict.is_evidence() && !is_short)
        });
        Self {
            view,
            recommendation,
            soak,
        }
    }

    pub(crate) fn is_proven(&self) -> bool {
        let lasted = |(trial, outcome): &(&TrialRecord, SoakOutcome)| {
            let grows = growth::growth_of(trial).is_some_and(|g| g.verdict == Growth::Growing);
            matches!(outcome, SoakOutcome::Lasted { .. }) && !grows
        };
        let is_steady = self.recommendation.live_set_trend.is_none();
        self.recommendation.is_proven() && is_steady && self.soak.as_ref().is_some_and(lasted)
    }

    pub(crate) fn is_refuted(&self) -> bool {
        self.soak
            .as_ref()
            .is_some_and(|(_, outcome)| outcome.refutes())
    }

    pub(crate) fn badge(&self) -> (Tone, &'static str) {
        match self.soak.as_ref().map(|(_, outcome)| outcome) {
            Some(SoakOutcome::Died { .. }) => (Tone::Bad, "Did not last"),
            Some(SoakOutcome::Outgrew { .. }) => (Tone::Bad, "Outgrew its budget"),
            _ if self.is_proven() => (Tone::Good, "Proven"),
            _ if self.recommendation.is_proven() => (Tone::Good, "Tested"),
            _ => (Tone::Muted, self.test_word()),
        }
    }

    /// Names starts that do not show that it works.
    fn test_word(&self) -> &'static str {
        let proof = &self.recommendation.proof;
        let is_failed = proof.passes != proof.starts || proof.broken_together().is_some();
        if is_failed {
            "Test failed"
        } else {
            "Not tested"
        }
    }

    /// `at 100 requests/s it kept p99<250ms in 3 of 3 fresh starts, judged for 15 s after 5 s of
    /// warm-up`; `who` kept it.
    pub(crate) fn describe_test(&self, who: &str) -> String {
        if runs::is_of_runs(self.view) {
            return format!("{who} kept {}", self.describe_starts());
        }
        let rate = self.recommendation.configuration.rate;
        let under = match rate.or(self.view.load.rate_per_second) {
            Some(rate) => {
                let rate = format::as_rate(rate);
                format!("at {} requests/s", rate.trim_end_matches("/s"))
            }
            None => format!("under {}", self.view.load),
        };
        format!("{under} {who} kept {}", self.describe_starts())
    }

    /// `p99<250ms in 3 of 3 fresh starts, judged for 15 s after 5 s of warm-up`
    fn describe_starts(&self) -> String {
        let Proof { passes, starts, .. } = self.recommendation.proof;
        let starts = format!(
            "{} in {passes} of {starts} fresh starts",
            slo_words(self.view)
        );
        let Some(judged) = self.length_of(TrialPhase::Measure) else {
            return runs::say_of_runs(starts, self.view);
        };
        let warm_up = self.length_of(TrialPhase::WarmUp).map(format::elapsed);
        let warm_up = warm_up.map_or_else(String::new, |time| format!(" after {time} of warm-up"));
        format!("{starts}, judged for {}{warm_up}", format::elapsed(judged))
    }

    pub(crate) fn fresh_starts(&self) -> impl Iterator<Item = &'a TrialRecord> {
        let (view, recommendation) = (self.view, self.recommendation);
        // Another JDK may have been tested at the same size.
        let is_proof = |t: &&TrialRecord| {
            t.purpose == TrialPurpose::Prove
                && groups::is_of_answer(&t.configuration, &recommendation.configuration)
        };
        view.evidence_trials().filter(is_proof)
    }

    fn length_of(&self, phase: TrialPhase) -> Option<Duration> {
        let loads = self.fresh_starts().flat_map(|t| &t.evidence.load);
        let of_phase = loads.filter(|load| load.phase == phase && !load.duration.is_zero());
        let of_load = of_phase.map(|load| load.duration).min();
        // Without requests time alone passes.
        let spans = self.fresh_starts().flat_map(|t| &t.evidence.phases);
        let of_phase = spans.filter(|span| span.phase == phase);
        of_load.or_else(|| of_phase.map(PhaseSpan::length).min())
    }

    pub(crate) fn describe_soak(&self) -> String {
        let Some((trial, outcome)) = &self.soak else {
            let is_run = runs::is_of_runs(self.view);
            return if is_run { "" } else { "Not soaked." }.to_owned();
        };
        let grows = growth::growth_of(trial).filter(|g| g.verdict == Growth::Growing);
        match outcome {
            SoakOutcome::Died { after } => format!(
                "It did not last: soaked, it ended after {}: {}.",
                show_length(*after),
                trial.reason
            ),
            SoakOutcome::Outgrew {
                after,
                most,
                allowed,
            } => format!(
                "It outgrew its budget: soaked, it took up to {} of anonymous memory, and the {} of its budget were passed after {}.",
                format::measured_bytes(*most),
                format::measured_bytes(*allowed),
                show_length(*after),
            ),
            SoakOutcome::Missed { length } => format!(
                "Soaked for {}, and that was {}: {}.",
                show_length(*length),
                trial.verdict,
                trial.reason
            ),
            SoakOutcome::TooShort { length } | SoakOutcome::Lasted { length }
                if grows.is_some() =>
            {
                let parts = grows.iter().flat_map(|growth| growth.growing());
                let parts: Vec<&str> = parts.map(|p| p.part.part_name()).collect();
                format!(
                    "Soaked for {}, and it grows: {}.",
                    show_length(*length),
                    parts.join(", ")
                )
            }
            SoakOutcome::TooShort { length } => format!(
                "Soaked for {}, too short to prove it.",
                show_length(*length)
            ),
            SoakOutcome::Lasted { length } => {
                let within = match self.recommendation.budget {
                    Some(_) => " within its budget",
                    None => "",
                };
                format!("Soaked for {}{within}.", show_length(*length))
            }
        }
    }

    pub(crate) fn describe_trend(&self) -> Option<String> {
        let trend = self.recommendation.live_set_trend?;
        let rate = match trend.per_minute.as_mib() {
            mib if mib >= 0.1 => format!("{mib:.1}"),
            mib => format!("{mib:.2}"),
        };
        let heap = self.recommendation.heap_words();
        let heap = heap.unwrap_or_else(|| "the heap".to_owned());
        let lasts = trend.lasts.map_or_else(String::new, |lasts| {
            format!("; {heap} will last about {}", round_length(lasts))
        });
        Some(format!(
            "The live set grows by {rate} MiB a minute{lasts}. Bound what keeps the objects (caches, sessions, queues, stores in memory) and size it again, or soak it for as long as it has to last."
        ))
    }

    /// What a search for prices leaves open.
    pub(super) fn describe_unbudgeted(&self) -> Option<String> {
        let answer = self.recommendation;
        let deployment = answer.deployment.as_ref();
        let deployment = deployment.filter(|_| answer.budget.is_none())?;
        let heap = match answer.heap_words() {
            Some(_) => "No",
            None => "No heap is fixed, and no",
        };
        let cpu = answer.configuration.cpu;
        let cpu = cpu.map_or_else(String::new, |cpu| format!(" --cpu {cpu}"));
        Some(format!(
            "{heap} budget adds up the parts of this memory. Before it ships, size one replica without prices: `loadline size{cpu} --max-memory {} --rate {}`.",
            answer.recommended_memory(),
            format::as_rate(deployment.each),
        ))
    }

    /// What the seconds of fresh starts do not show.
    pub(super) fn doubts(&self) -> Vec<String> {
        let trend = self.describe_trend().into_iter();
        trend.chain(self.describe_unbudgeted()).collect()
    }

    /// Only for an answer about fresh starts: a warm JVM is judged later.
    pub(super) fn describe_first_second(&self) -> Option<String> {
        let is_start = self.recommendation.question == JvmQuestion::Start;
        let missed = first_second::describe_miss(self.view, self.fresh_starts());
        missed.filter(|_| is_start)
    }

    /// Why fresh starts do not show that it works: `8 of 20 fresh starts missed p99<50ms`.
    pub(crate) fn describe_doubt(&self) -> String {
        let (proof, slo) = (&self.recommendation.proof, slo_words(self.view));
        if let Some(broken) = proof.broken_together() {
            return broken.percentile_sentence();
        }
        let text = match (proof.starts, proof.starts.saturating_sub(proof.passes)) {
            (0, _) => format!("no fresh start has shown that it keeps {slo}"),
            (starts, 0) => format!(
                "{} that kept {slo} show too little",
                format::count_of(starts as usize, "fresh start")
            ),
            (starts, missed) => format!("{missed} of {starts} fresh starts missed {slo}"),
        };
        runs::say_of_runs(text, self.view)
    }

    /// The lines in every emitted file: the claim with its load, its time and its soak.
    pub(crate) fn emitted_lines(&self) -> Vec<String> {
        let load = self.view.load_of(&self.recommendation.configuration);
        let under = runs::under_load(self.view, load);
        let mut lines = Vec::new();
        if self.is_refuted() {
            lines.push("DO NOT SHIP this size: its own soak refutes it.".to_owned());
        }
        let soak = self.describe_soak();
        lines.push(if self.recommendation.is_proven() {
            let word = if self.is_proven() { "Proven" } else { "Tested" };
            format!("{word}{under}: it kept {}. {soak}", self.describe_starts())
        } else {
            format!(
                "{}{under}: {}. {soak}",
                self.test_word(),
                self.describe_doubt()
            )
        });
        lines.extend(self.doubts());
        lines.extend(self.describe_first_second());
        lines
    }
}

/// `40 min`, `2 h`, `3 days`: an extrapolation has one unit.
fn round_length(length: Duration) -> String {
    match length.as_secs_f64() / 60.0 {
        m if m < 90.0 => format!("{m:.0} min"),
        m if m < 48.0 * 60.0 => format!("{:.0} h", m / 60.0),
        m => format!("{:.0} days", m / 1440.0),
    }
}

pub fn answer_doubts(view: &ResultView) -> Vec<String> {
    let Some(recommendation) = &view.recommendation else {
        return Vec::new();
    };
    let claim = AnswerClaim::new(view, recommendation);
    let untested = (!recommendation.is_proven()).then(|| {
        let proof = recommendation.proof.proof_sentence();
        format!("the size is not shown to keep the SLO: {proof}")
    });
    let refuted = claim.is_refuted().then(|| claim.describe_soak());
    let said = untested.into_iter().chain(refuted);
    said.chain(claim.doubts()).collect()
}
