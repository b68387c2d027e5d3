//! "How long until it is fast": the first seconds of load against the judged phase.
//!
//! Owns which series is asked whether it is steady: CPU time per request, which a noisy machine
//! moves least. The judgement is [`loadline_analysis::steady`].

use std::time::Duration;

use loadline_analysis::record::{SecondEvidence, TrialPhase, TrialRecord};
use loadline_analysis::steady::{self, SteadinessRule};

use super::groups::{self, ConfigurationGroup, ConfigurationNames};
use super::section::Section;
use crate::figures::{SeenLatency, spread};
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

const MOST: usize = 12;

struct LoadSeconds<'a> {
    warm_up: Vec<&'a SecondEvidence>,
    measured: Vec<&'a SecondEvidence>,
}

impl<'a> LoadSeconds<'a> {
    fn from_trial(trial: &'a TrialRecord) -> Option<Self> {
        let within = |phase: TrialPhase| -> Option<Vec<&'a SecondEvidence>> {
            let span = trial.evidence.phases.iter().find(|p| p.phase == phase)?;
            let seconds = trial.evidence.seconds.iter();
            // A second belongs to the phase in which it ended.
            let is_in = |s: &&SecondEvidence| s.at_ns > span.start && s.at_ns <= span.end;
            // One without a good answer is a second of load too: the slowest there is.
            let is_loaded = |s: &&SecondEvidence| s.offered.is_some() || s.p50.is_some();
            Some(seconds.filter(is_in).filter(is_loaded).collect())
        };
        let loaded = Self {
            warm_up: within(TrialPhase::WarmUp)?,
            measured: within(TrialPhase::Measure)?,
        };
        let has_both = !loaded.warm_up.is_empty() && !loaded.measured.is_empty();
        has_both.then_some(loaded)
    }

    fn steady_state(&self) -> SteadyState {
        let all = [self.warm_up.as_slice(), self.measured.as_slice()].concat();
        let rule = SteadinessRule::default();
        if all.len() < rule.fewest_steady {
            return SteadyState::TooShort;
        }
        // It is not steady before the last second in which nothing was answered.
        let stalled = all.iter().rposition(|s| s.p50.is_none());
        let begin = stalled.map_or(0, |last| last + 1);
        if all.len() - begin < rule.fewest_steady {
            return SteadyState::Never(all.len());
        }
        let cost = |s: &&SecondEvidence| {
            let good = s.achieved.filter(|n| *n > 0)?;
            Some(s.cpu?.as_secs_f64() / good as f64)
        };
        let costs: Option<Vec<f64>> = all[begin..].iter().map(cost).collect();
        match costs.and_then(|costs| steady::judge_steadiness(&costs, &rule)) {
            Some(judged) if judged.is_steady => SteadyState::From(begin + judged.from),
            Some(_) => SteadyState::Never(all.len()),
            None => SteadyState::TooShort,
        }
    }
}

#[derive(Clone, Copy)]
enum SteadyState {
    From(usize),
    Never(usize),
    TooShort,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WarmUpCurve {
    pub name: String,
    /// p50 of each second since the load began, the median over the trials; `None` where nothing
    /// was answered.
    pub p50: Vec<Option<Duration>>,
    pub warm_up: usize,
}

/// The curves of the warm-up chart: at most `most` configurations, the recommended one first, then
/// the largest.
pub fn curves(view: &ResultView, most: usize) -> Vec<WarmUpCurve> {
    let names = ConfigurationNames::for_result(view);
    let curve = |(group, loaded): (ConfigurationGroup<'_>, Vec<LoadSeconds<'_>>)| {
        let loads = loaded.iter();
        let seconds = loads.map(|l| [l.warm_up.as_slice(), l.measured.as_slice()].concat());
        let seconds: Vec<Vec<&SecondEvidence>> = seconds.collect();
        // As long as every trial lasted: the end of one alone would be a step.
        let length = seconds.iter().map(Vec::len).min().unwrap_or(0);
        let at = |i: usize| median(seconds.iter().map(|s| s[i]));
        WarmUpCurve {
            name: names.cell_name(group.configuration),
            p50: (0..length).map(at).collect(),
            warm_up: loaded.iter().map(|l| l.warm_up.len()).min().unwrap_or(0),
        }
    };
    groups_with_load(view).take(most).map(curve).collect()
}

/// Configurations and the load of their trials, the recommended one first, then by size.
fn groups_with_load(
    view: &ResultView,
) -> impl Iterator<Item = (ConfigurationGroup<'_>, Vec<LoadSeconds<'_>>)> {
    let is_chosen = |g: &ConfigurationGroup<'_>| groups::is_chosen(view, g.configuration);
    let mut groups = groups::group_trials(view);
    groups.sort_by_key(|g| (!is_chosen(g), std::cmp::Reverse(g.configuration.memory)));
    groups.into_iter().take(MOST).filter_map(|group| {
        let evidence = group.trials.iter().copied();
        let evidence = evidence.filter(|t| t.verdict.is_evidence());
        let loaded: Vec<LoadSeconds<'_>> = evidence.filter_map(LoadSeconds::from_trial).collect();
        (!loaded.is_empty()).then_some((group, loaded))
    })
}

pub fn warm_up_section(view: &ResultView) -> Option<Section> {
    let names = ConfigurationNames::for_result(view);
    let mut table = Table::new()
        .left("Configuration")
        .right("Ready after | p50, first second | p50, last of warm-up | p50, judged")
        .left("Steady");
    for (group, loaded) in groups_with_load(view) {
        let first = loaded.iter().filter_map(|l| l.warm_up.first().copied());
        let last = loaded.iter().filter_map(|l| l.warm_up.last().copied());
        let starts = group.evidence_trials();
        let starts = starts.filter_map(|t| t.evidence.start.ready);
        let judged = loaded.iter().map(|l| median(l.measured.iter().copied()));
        let judged = judged.map(SeenLatency::from_quantile);
        let judged = spread(judged).and_then(|s| s.median.known_time());
        table.add_row([
            names.cell_name(group.configuration).into(),
            format::time_or(spread(starts).map(|s| s.median)).into(),
            format::time_or(median(first)).into(),
            format::time_or(median(last)).into(),
            format::time_or(judged).into(),
            steadiness(&loaded).into(),
        ]);
    }
    if table.has_no_rows() {
        return None;
    }
    let words = "Medians over the trials. A JVM that has just started interprets its code and compiles it while it serves: the first seconds are the slowest. The warm-up is sent and recorded but not judged. Steady means that CPU time per request stays within 5 %; it takes at least 30 s of load to say so.";
    let section = Section::new("warm-up", "How long until it is fast").in_depth();
    Some(section.with_paragraph(words).with_table(table))
}

/// The median p50 of some seconds of load; `None` when it lies where nothing was answered.
fn median<'a>(seconds: impl Iterator<Item = &'a SecondEvidence>) -> Option<Duration> {
    let seen = spread(seconds.map(|s| SeenLatency::from_quantile(s.p50)))?;
    seen.median.known_time()
}

fn steadiness(loaded: &[LoadSeconds<'_>]) -> String {
    let all: Vec<SteadyState> = loaded.iter().map(LoadSeconds::steady_state).collect();
    let from = all.iter().filter_map(|s| match s {
        SteadyState::From(second) => Some(*second),
        SteadyState::Never(_) | SteadyState::TooShort => None,
    });
    let never = all.iter().find_map(|s| match s {
        SteadyState::Never(seconds) => Some(*seconds),
        SteadyState::From(_) | SteadyState::TooShort => None,
    });
    match (spread(from), never) {
        (Some(seen), None) if seen.high == 0 => "from the first second".to_owned(),
        (Some(seen), None) => format!("after {} of load", seen.show(|s| format!("{s} s"))),
        (_, Some(seconds)) => format!("not within {seconds} s of load"),
        (None, None) => "too short to tell".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of steady answers but for those in `stalled`.
    fn seconds(n: usize, stalled: std::ops::Range<usize>) -> Vec<SecondEvidence> {
        let second = |i: usize| {
            let answers = !stalled.contains(&i);
            SecondEvidence {
                at_ns: i as u64 * 1_000_000_000,
                offered: Some(100),
                achieved: Some(if answers { 100 } else { 0 }),
                p50: answers.then_some(Duration::from_millis(5)),
                cpu: Some(Duration::from_millis(300)),
                ..SecondEvidence::default()
            }
        };
        (0..n).map(second).collect()
    }

    fn steady(all: &[SecondEvidence]) -> String {
        let (warm_up, measured) = all.split_at(10);
        steadiness(&[LoadSeconds {
            warm_up: warm_up.iter().collect(),
            measured: measured.iter().collect(),
        }])
    }

    #[test]
    fn a_second_without_an_answer_is_one_of_load_and_not_steady() {
        assert_eq!(steady(&seconds(60, 0..0)), "from the first second");
        assert_eq!(steady(&seconds(60, 8..12)), "after 12 s of load");
        assert_eq!(steady(&seconds(60, 50..51)), "not within 60 s of load");
        let stalled = seconds(4, 1..4);
        assert_eq!(median(stalled.iter()), None);
    }
}
