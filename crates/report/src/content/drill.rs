//! Around an outage: before, during and after it, and how long until the SLO held again.
//!
//! Owns the words and the table; `loadline_analysis::outage` divides and judges. There is nothing to
//! say about results in which nothing was slow or away on a schedule.

use std::ops::Range;

use loadline_analysis::outage::{self, CourseSection, OutageCourse};
use loadline_analysis::record::{SecondEvidence, TrialPhase, TrialRecord};
use loadline_analysis::slo::Quantile;

use super::section::Section;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

const STATES: &str = "Whether values recovered from the outage: the largest before it, the value furthest from that since the outage began, and the time after its end from which it stays within 10 % of before. A pool that loses its connections shows in the sockets.";

pub fn drill_section(view: &ResultView) -> Option<Section> {
    let courses: Vec<(&TrialRecord, OutageCourse)> = (view.trials.iter())
        .filter_map(|t| Some((t, OutageCourse::from_evidence(&t.evidence, &t.slo).ok()??)))
        .collect();
    let (first, course) = courses.first()?;
    let each = first.evidence.outages.iter().map(|outage| {
        let (from, to) = (outage.from.as_secs_f64(), outage.to.as_secs_f64());
        format!(
            "{} ({}, {from} s to {to} s)",
            outage.dependency, outage.what
        )
    });
    let words = format!(
        "Away or slow: {}. A request belongs to the second in which it was due. Asked counts round trips to dependencies and refused connections per request; retries add to it. It has recovered when from then on every {} s keep the SLO. Latencies in other tables are those before the outage.",
        each.collect::<Vec<_>>().join(", "),
        course.stretch.as_secs()
    );
    let section = Section::new("drill", "Around the outage")
        .with_paragraph(words)
        .with_table(drill_table(view, &courses));
    let states = states(view, &courses);
    Some(if states.has_no_rows() {
        section
    } else {
        section.with_paragraph(STATES).with_table(states)
    })
}

/// With a space before it; empty without an outage.
pub(super) fn before_outage(view: &ResultView) -> &'static str {
    if view.trials.iter().any(|t| !t.evidence.outages.is_empty()) {
        " Latencies are those before the outage, as the verdict is."
    } else {
        ""
    }
}

fn states(view: &ResultView, courses: &[(&TrialRecord, OutageCourse)]) -> Table {
    let mut table = Table::new()
        .right("Trial")
        .left("What")
        .right("Before | Furthest | At the end")
        .left("As before");
    for (trial, course) in courses {
        for returned in outage::find_returns(&trial.evidence, course) {
            let show = |value| returned.state.show_value(value);
            let back = match (returned.changed, returned.back) {
                (false, _) => "all the time".to_owned(),
                (true, Some(time)) => format!("after {} s", time.as_secs()),
                (true, None) => "not in this time".to_owned(),
            };
            table.add_row([
                view.trial_number(&trial.id).unwrap_or(0).to_string().into(),
                returned.state.state_name().into(),
                show(returned.before).into(),
                show(returned.furthest).into(),
                show(returned.last).into(),
                back.into(),
            ]);
        }
    }
    table
}

fn drill_table(view: &ResultView, courses: &[(&TrialRecord, OutageCourse)]) -> Table {
    let mut table = Table::new()
        .right("Trial")
        .left("Part")
        .right("Requests | Errors | p50 | p99 | Asked | Against before | Memory")
        .left("Recovered");
    for (trial, course) in courses {
        let parts = [
            ("before", &course.before),
            ("during", &course.during),
            ("after", &course.after),
        ];
        for (name, part) in parts {
            let at = |fraction| part.latency.quantile(Quantile::from_fraction(fraction)?);
            let base = course.before.asked_each().filter(|base| *base > 0.0);
            let times = part.asked_each().zip(base).map(|(now, base)| now / base);
            let recovered = match (name, course.recovered) {
                ("after", Some(time)) => format!("after {} s", time.as_secs()),
                ("after", None) => "not in this time".to_owned(),
                _ => String::new(),
            };
            let number = view.trial_number(&trial.id).unwrap_or(0);
            table.add_row([
                number.to_string().into(),
                name.into(),
                part.scheduled().to_string().into(),
                format::or_none(part.error_share().map(format::as_percent)).into(),
                format::time_or(at(0.5)).into(),
                format::time_or(at(0.99)).into(),
                format::or_none(part.asked_each().map(|n| format!("{n:.2}"))).into(),
                format::or_none(times.map(|n| format!("{n:.2}x"))).into(),
                format::bytes_or(memory_seconds(trial, part).last().and_then(|s| s.anon)).into(),
                recovered.into(),
            ]);
        }
    }
    table
}

fn memory_seconds<'a>(trial: &'a TrialRecord, part: &CourseSection) -> Vec<&'a SecondEvidence> {
    let phases = &trial.evidence.phases;
    let begin = phases.iter().find(|p| p.phase == TrialPhase::Measure);
    let begin = begin.map_or(0, |phase| phase.start);
    let at = |second: usize| begin + second as u64 * 1_000_000_000;
    let span: Range<u64> = at(part.seconds.0)..at(part.seconds.1) + 1;
    let seconds = trial.evidence.seconds.iter();
    seconds
        .filter(|s| span.contains(&s.at_ns) && s.anon.is_some())
        .collect()
}
