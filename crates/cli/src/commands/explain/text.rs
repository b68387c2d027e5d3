//! The explanation as people read it.

use std::fmt::Write as _;
use std::time::Duration;

use loadline_analysis::advice::TrialAdvice;
use loadline_analysis::attribution::{Attribution, PauseClass};
use loadline_analysis::effect::{ChangeEffect, EffectSide};
use loadline_analysis::explain::class_words;
use loadline_analysis::pauses::SamplerEvidence;
use loadline_analysis::text::join_words;
use loadline_analysis::timeline::{self, TimelineStep};
use loadline_runner::logs;

use super::TrialExplanation;
use crate::ui::text::short;

/// Lines of the log shown for one pause; a pause of two collections has about so many.
const LOG_LINES: usize = 4;

pub fn explanation_text(told: &TrialExplanation) -> String {
    let (record, explanation) = (&told.record, &told.explanation);
    let trial = short(&record.id);
    let mut out = vec![
        format!("trial {trial}  {}", record.configuration.label),
        explanation.pause_sentence(),
        describe_observer(told),
    ];
    let longest = explanation.longest();
    if !longest.is_empty() {
        out.push("\nThe longest".to_owned());
    }
    for (number, pause) in longest.iter().enumerate() {
        out.push(pause_line(number + 1, pause, explanation.window.start));
        let steps = told.timelines.get(number).map_or(&[][..], Vec::as_slice);
        out.extend(usage_bars(steps).map(|line| format!("      {line}")));
        let lines = lines(told, pause).into_iter();
        out.extend(lines.map(|line| format!("      {line}")));
    }
    if !told.advice.is_empty() {
        out.push("\nWhat would help (a model's estimate; --try measures it)".to_owned());
    }
    out.extend(told.advice.iter().map(advice_line));
    out.join("\n").trim_end().to_owned()
}

fn describe_observer(told: &TrialExplanation) -> String {
    let explanation = &told.explanation;
    let by = match &explanation.seen_by {
        Some(name) => format!("Seen by the application ({name})"),
        None => {
            "From the GC log and the cgroup alone; the agent `hiccup` shows other pauses".to_owned()
        }
    };
    let sampler = told.record.evidence.pauses.as_ref().map(|p| &p.sampler);
    let explained = match explanation.pauses.len() {
        0 => String::new(),
        all => format!("; {} of {all} explained to 90 %", explanation.explained),
    };
    format!(
        "{by}{explained}. {}",
        sampler.map(describe_sampling).unwrap_or_default()
    )
}

fn describe_sampling(sampler: &SamplerEvidence) -> String {
    let how = match sampler.estimator.as_str() {
        "phase-locked" => "once a CFS period".to_owned(),
        _ => format!("every {:?}", sampler.interval),
    };
    let cost = sampler.cpu_share().unwrap_or(0.0) * 100.0;
    let gaps = match sampler.gaps {
        0 => "no gaps".to_owned(),
        n => format!("{n} gaps, the longest {}", format_ms(sampler.longest_gap)),
    };
    match sampler.estimator.as_str() {
        "none" => format!("Counters were read {how}: too rarely to place throttling."),
        name => {
            format!("Throttling by {name}: counters read {how} for {cost:.2} % of a CPU, {gaps}.")
        }
    }
}

fn pause_line(number: usize, pause: &Attribution, start: u64) -> String {
    let at = pause.pause.start.saturating_sub(start) as f64 / 1e9;
    let parts = PauseClass::ALL.map(|class| (class, pause.class_ns(class)));
    let parts = parts.into_iter().filter(|(_, ns)| *ns >= 500_000);
    let parts = parts.map(|(class, ns)| format!("{} {}", format_ns(ns), class_words(class)));
    format!(
        "{number:>3}. at {at:.3} s, {}: {} (± {})",
        format_ns(pause.pause.length_ns()),
        join_words(parts, ", "),
        format_ns(pause.error_ns),
    )
}

const FEW: usize = 8;

/// `CPU ▇▇▁▁▇▇`: what the cgroup used, from a quarter of the pause before it to a quarter after.
fn usage_bars(steps: &[TimelineStep]) -> Option<String> {
    if steps.len() < FEW {
        return None;
    }
    let (first, last) = (steps.first()?, steps.last()?);
    let most = steps.iter().map(|step| step.cpus).fold(0.0, f64::max);
    let throttled: Duration = steps.iter().map(|step| step.throttled).sum();
    Some(format!(
        "CPU {} up to {most:.1} CPUs, {} in all, throttled for {} over its CPUs",
        timeline::bars(steps),
        format_ns(last.to_ns - first.from_ns),
        format_ms(throttled),
    ))
}

fn lines<'a>(told: &'a TrialExplanation, pause: &Attribution) -> Vec<&'a str> {
    let log = told.log.as_deref().unwrap_or_default();
    let mut lines = logs::lines_within(log, pause.pause, told.recorded_pauses());
    lines.truncate(LOG_LINES);
    lines
}

fn advice_line(advice: &TrialAdvice) -> String {
    let removes = match advice.removes {
        Some(share) => format!(", up to {:.0} % of this time", 100.0 * share),
        None => String::new(),
    };
    let try_it = match advice.configuration {
        Some(_) => format!(" (--try={})", advice.kind.kind_name()),
        None => String::new(),
    };
    format!("- {}{try_it}{removes}: {}.", advice.text, advice.expected)
}

pub fn effect(advice: &TrialAdvice, effect: &ChangeEffect) -> String {
    let mut out = format!("\nTried: {}\n", advice.text);
    for (name, side) in [("before", &effect.before), ("after", &effect.after)] {
        let _ = writeln!(out, "  {name:<7} {}", side_text(side));
    }
    match effect.ratio {
        Some(ratio) => {
            let _ = write!(
                out,
                "pauses after / before: {:.2} [{:.2}, {:.2}] with 95 % confidence",
                ratio.estimate, ratio.low, ratio.high
            );
        }
        None => out.push_str("no pauses before, so there is no ratio"),
    }
    out
}

fn side_text(side: &EffectSide) -> String {
    let rate = side
        .rate
        .map_or(String::new(), |rate| format!(", {rate:.0} operations/s"));
    format!(
        "{} pauses over 50 ms in {} trials, {:.1} a minute, the longest {}{rate}",
        side.pauses,
        side.trials,
        side.pauses_per_minute,
        format_ns(side.longest_ns)
    )
}

fn format_ms(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

fn format_ns(nanos: u64) -> String {
    format_ms(Duration::from_nanos(nanos))
}
