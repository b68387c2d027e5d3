//! Whole searches in worlds whose truth is known, told trial by trial.
//!
//! Owns the player: it answers one ask at a time, as one slot does, and writes down what was asked,
//! what would have been asked at once and what was guessed. The stories are kept as snapshots: a search
//! that asks for another trial than before says so, whether its answer is the same or not. How often
//! answers are right is crate simulated's.

mod prices;
mod sizes;
mod verifies;

use std::fmt::Write;
use std::time::Duration;

use loadline_sizing::Bytes;

use super::{Ask, Search, Seen};
use crate::fixture;
use crate::record::{Invalid, Purpose, TrialRecord, Verdict};

const PASS: Verdict = Verdict::Pass;
const MISS: Verdict = Verdict::SloMiss;
const NOISE: Verdict = Verdict::Invalid(Invalid::Noise);

/// Each trial takes so long with all its attempts.
const SPENT: Duration = Duration::from_secs(70);

/// A search that takes more does not end.
const MOST: usize = 400;

/// Plays a search to its end: the story, and the answer.
fn play<S: Search>(search: &S, mut world: impl FnMut(&Ask) -> TrialRecord) -> (String, S::Answer) {
    let mut seen = Seen::default();
    let mut text = String::new();
    for number in 1..=MOST {
        let open = match search.next(&seen) {
            Ok(answer) => return (text, answer),
            Err(open) => open,
        };
        let ask = &open.wanted[0];
        let mut record = world(ask);
        record.id = format!("t{number}");
        let deadline = ask.start_deadline.as_secs();
        let told = said(ask);
        write!(text, "{told} in {deadline}s: {}", record.verdict).expect("a text");
        for (word, asks) in [("also", &open.wanted[1..]), ("perhaps", &open.guesses)] {
            if !asks.is_empty() {
                write!(text, " | {word} {}", all(asks)).expect("a text");
            }
        }
        text.push('\n');
        seen.add(ask, record, SPENT);
    }
    panic!("it does not end:\n{text}");
}

/// Trials in a few words, those that differ in their ordinals alone together: `prove 1Gi #2-5`.
fn all(asks: &[Ask]) -> String {
    let follows = |a: &Ask, b: &Ask| b.repeat == a.repeat + 1 && named(a) == named(b);
    let runs = asks.chunk_by(follows).map(|run| match run {
        [.., last] if run.len() > 1 => format!("{}-{}", said(&run[0]), last.repeat),
        _ => said(&run[0]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn said(ask: &Ask) -> String {
    format!("{} #{}", named(ask), ask.repeat)
}

/// A trial in a few words, without its ordinal.
fn named(ask: &Ask) -> String {
    let purpose = match ask.purpose {
        Purpose::Search => "",
        Purpose::Confirm => "confirm ",
        Purpose::Neighbour => "neighbour ",
        Purpose::Prove => "prove ",
        Purpose::Compare => "compare ",
        _ => "another ",
    };
    let rate = ask.configuration.rate.map(|rate| format!(" {rate:.2}/s"));
    let pair = ask.pair.map(|pair| format!(" of pair {pair}"));
    let (rate, pair) = (rate.unwrap_or_default(), pair.unwrap_or_default());
    let label = &ask.configuration.label;
    format!("{purpose}{label}{rate}{pair}")
}

/// The record of an ask: a start in 3 s that needs so much memory.
fn record(ask: &Ask, verdict: Verdict, needs: Bytes) -> TrialRecord {
    let mut record = fixture::trial("", ask.purpose, 1, verdict);
    record.configuration = ask.configuration.clone();
    record.repeat = ask.repeat;
    let share = |percent| Some(needs.mul_ratio(percent, 100));
    record.evidence.cgroup.peak_anon = share(85);
    record.evidence.cgroup.peak_working_set = share(115);
    record
}

/// The ids of trials, in order.
fn ids<'a>(trials: impl IntoIterator<Item = &'a std::sync::Arc<TrialRecord>>) -> String {
    let ids: Vec<&str> = trials.into_iter().map(|t| t.id.as_str()).collect();
    ids.join(" ")
}
