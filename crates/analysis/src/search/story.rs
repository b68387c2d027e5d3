//! Whole searches in worlds with a known answer, trial by trial.
//!
//! Owns the player: it answers one ask at a time, as one slot does, and writes down each ask, the
//! parallel asks and the guesses. Snapshots pin the stories: any change in the order of trials
//! shows, even if the answer is the same. Crate simulated measures how often answers are right.

mod prices;
mod sizes;
mod verifies;

use std::fmt::Write;
use std::time::Duration;

use loadline_sizing::Bytes;

use super::{SeenTrials, TrialAsk, TrialSearch};
use crate::fixture;
use crate::record::{InvalidReason, TrialPurpose, TrialRecord, TrialVerdict};

const PASS: TrialVerdict = TrialVerdict::Pass;
const MISS: TrialVerdict = TrialVerdict::SloMiss;
const NOISE: TrialVerdict = TrialVerdict::Invalid(InvalidReason::Noise);
const SPENT: Duration = Duration::from_secs(70);
const MOST: usize = 400;

fn play<S: TrialSearch>(
    search: &S,
    mut world: impl FnMut(&TrialAsk) -> TrialRecord,
) -> (String, S::Answer) {
    let mut seen = SeenTrials::default();
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
        let told = describe_ask(ask);
        write!(text, "{told} in {deadline}s: {}", record.verdict).expect("a text");
        for (word, asks) in [("also", &open.wanted[1..]), ("perhaps", &open.guesses)] {
            if !asks.is_empty() {
                write!(text, " | {word} {}", list_asks(asks)).expect("a text");
            }
        }
        text.push('\n');
        seen.add_record(ask, record, SPENT);
    }
    panic!("it does not end:\n{text}");
}

/// Trials in a few words; trials that differ only in their ordinals share an entry: `prove 1Gi
/// #2-5`.
fn list_asks(asks: &[TrialAsk]) -> String {
    let follows =
        |a: &TrialAsk, b: &TrialAsk| b.repeat == a.repeat + 1 && name_ask(a) == name_ask(b);
    let runs = asks.chunk_by(follows).map(|run| match run {
        [.., last] if run.len() > 1 => format!("{}-{}", describe_ask(&run[0]), last.repeat),
        _ => describe_ask(&run[0]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

fn describe_ask(ask: &TrialAsk) -> String {
    format!("{} #{}", name_ask(ask), ask.repeat)
}

fn name_ask(ask: &TrialAsk) -> String {
    let purpose = match ask.purpose {
        TrialPurpose::Search => "",
        TrialPurpose::Confirm => "confirm ",
        TrialPurpose::Neighbour => "neighbour ",
        TrialPurpose::Prove => "prove ",
        TrialPurpose::Compare => "compare ",
        TrialPurpose::Room => "room ",
        TrialPurpose::Squeeze => "squeeze ",
        _ => "another ",
    };
    let rate = ask.configuration.rate.map(|rate| format!(" {rate:.2}/s"));
    let pair = ask.pair.map(|pair| format!(" of pair {pair}"));
    let (rate, pair) = (rate.unwrap_or_default(), pair.unwrap_or_default());
    let label = &ask.configuration.label;
    format!("{purpose}{label}{rate}{pair}")
}

/// The record of an ask: a start in 3 s with this memory use.
fn record_of_ask(ask: &TrialAsk, verdict: TrialVerdict, needs: Bytes) -> TrialRecord {
    let mut record = fixture::trial_record("", ask.purpose, 1, verdict);
    record.configuration = ask.configuration.clone();
    record.repeat = ask.repeat;
    let share = |percent| Some(needs.mul_ratio(percent, 100));
    record.evidence.cgroup.peak_anon = share(85);
    // A miss here is one of too little memory.
    record.evidence.cgroup.file_refaults = (verdict == MISS).then_some(1_000_000);
    record.evidence.cgroup.peak_working_set = share(115);
    record
}

fn ids<'a>(trials: impl IntoIterator<Item = &'a std::sync::Arc<TrialRecord>>) -> String {
    let ids: Vec<&str> = trials.into_iter().map(|t| t.id.as_str()).collect();
    ids.join(" ")
}
