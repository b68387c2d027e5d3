//! "How long until it is fast": the first seconds of load against the judged phase.
//!
//! Owns which series is asked whether it is steady: CPU time per request, which a noisy machine
//! moves least. The judgement is [`loadline_analysis::steady`].

use std::time::Duration;

use loadline_analysis::record::{Phase, SecondEvidence, TrialRecord};
use loadline_analysis::steady::{self, Rule};

use super::groups::{self, Group, Names};
use super::{Block, Section};
use crate::figures::spread;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

/// Most configurations that are shown.
const MOST: usize = 12;

/// Seconds of load of one trial.
struct Loaded<'a> {
    warm_up: Vec<&'a SecondEvidence>,
    measured: Vec<&'a SecondEvidence>,
}

impl<'a> Loaded<'a> {
    fn of(trial: &'a TrialRecord) -> Option<Self> {
        let within = |phase: Phase| -> Option<Vec<&'a SecondEvidence>> {
            let span = trial.evidence.phases.iter().find(|p| p.phase == phase)?;
            let seconds = trial.evidence.seconds.iter();
            // A second belongs to the phase in which it ended.
            let is_in = |s: &&SecondEvidence| s.at_ns > span.start && s.at_ns <= span.end;
            Some(seconds.filter(is_in).filter(|s| s.p50.is_some()).collect())
        };
        let loaded = Self {
            warm_up: within(Phase::WarmUp)?,
            measured: within(Phase::Measure)?,
        };
        let has_both = !loaded.warm_up.is_empty() && !loaded.measured.is_empty();
        has_both.then_some(loaded)
    }

    /// Seconds of load until it was steady, in words.
    fn steady(&self) -> Steady {
        let all = self.warm_up.iter().chain(&self.measured);
        let cost = |s: &&&SecondEvidence| {
            let good = s.achieved.filter(|n| *n > 0)?;
            Some(s.cpu?.as_secs_f64() / good as f64)
        };
        let costs: Option<Vec<f64>> = all.map(|s| cost(&s)).collect();
        let rule = Rule::default();
        let seconds = self.warm_up.len() + self.measured.len();
        if seconds < rule.fewest_steady {
            return Steady::TooShort;
        }
        match costs.and_then(|costs| steady::judge(&costs, &rule)) {
            Some(judged) if judged.is_steady => Steady::From(judged.from),
            Some(_) => Steady::Never(seconds),
            None => Steady::TooShort,
        }
    }
}

/// What a series says.
#[derive(Clone, Copy)]
enum Steady {
    From(usize),
    Never(usize),
    TooShort,
}

/// The section; `None` when no trial had a warm-up under load.
pub fn section(view: &ResultView) -> Option<Section> {
    let names = Names::of(view);
    let chosen = view.recommendation.as_ref().map(|r| &r.configuration);
    let is_chosen = |g: &Group<'_>| chosen.is_some_and(|c| groups::is_same(c, g.configuration));
    let mut groups = groups::groups(view);
    groups.sort_by_key(|g| (!is_chosen(g), std::cmp::Reverse(g.configuration.memory)));
    let mut table = Table::new()
        .left("Configuration")
        .right("Ready after")
        .right("p50, first second")
        .right("p50, last of warm-up")
        .right("p50, judged")
        .left("Steady");
    for group in groups.iter().take(MOST) {
        let loaded: Vec<Loaded<'_>> = group.evidence().filter_map(Loaded::of).collect();
        if loaded.is_empty() {
            continue;
        }
        let median = |read: &dyn Fn(&Loaded<'_>) -> Option<Duration>| {
            format::time_or(spread(loaded.iter().filter_map(read)).map(|s| s.median))
        };
        let starts = group.evidence().filter_map(|t| t.evidence.start.ready);
        let judged =
            |l: &Loaded<'_>| spread(l.measured.iter().filter_map(|s| s.p50)).map(|s| s.median);
        table.row([
            names.name(group.configuration).into(),
            format::time_or(spread(starts).map(|s| s.median)).into(),
            median(&|l| l.warm_up.first()?.p50).into(),
            median(&|l| l.warm_up.last()?.p50).into(),
            median(&judged).into(),
            steadiness(&loaded).into(),
        ]);
    }
    if table.is_empty() {
        return None;
    }
    let words = "Medians over the trials. A JVM that has just started interprets its code and compiles it while it serves: the first seconds are the slowest. The warm-up is sent and recorded but not judged. Steady means that CPU time per request stays within 5 %; it takes at least 30 s of load to say so.";
    Some(
        Section::new("warm-up", "How long until it is fast")
            .in_depth()
            .with(Block::Paragraph(words.to_owned()))
            .with(Block::Table(table)),
    )
}

fn steadiness(loaded: &[Loaded<'_>]) -> String {
    let all: Vec<Steady> = loaded.iter().map(Loaded::steady).collect();
    let from = all.iter().filter_map(|s| match s {
        Steady::From(second) => Some(*second),
        Steady::Never(_) | Steady::TooShort => None,
    });
    let never = all.iter().find_map(|s| match s {
        Steady::Never(seconds) => Some(*seconds),
        Steady::From(_) | Steady::TooShort => None,
    });
    match (spread(from), never) {
        (Some(seen), None) => {
            if seen.high == 0 {
                "from the first second".to_owned()
            } else {
                format!("after {} of load", seen.show(|s| format!("{s} s")))
            }
        }
        (_, Some(seconds)) => format!("not within {seconds} s of load"),
        (None, None) => "too short to tell".to_owned(),
    }
}
