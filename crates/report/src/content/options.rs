//! JVM options and environment of the recommendation: who chose each, and the trials behind it.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::Provenance;

use super::section::{Block, Section};
use crate::redact;
use crate::table::{Cell, Table, Tone};
use crate::view::ResultView;

/// The section; `None` without a recommendation.
pub fn section(view: &ResultView) -> Option<Section> {
    let recommendation = view.recommendation.as_ref()?;
    let configuration = &recommendation.configuration;
    let section = Section::new("options", "Options, and where they come from");
    let is_plain = configuration.jvm_options.is_empty()
        && configuration.args.is_empty()
        && configuration.env.is_empty();
    if is_plain {
        let mut own = view
            .trials
            .iter()
            .filter(|trial| trial.configuration.application == configuration.application);
        let is_jvm = own.any(|trial| trial.evidence.gc.is_some());
        let none = match is_jvm {
            true => "None: the JVM chooses by itself from the limits of its container.",
            false => "None.",
        };
        return Some(section.with(Block::Paragraph(none.to_owned())));
    }
    let mut table = Table::new()
        .left("Option")
        .left("Chosen by")
        .wrapping("Evidence");
    for option in &configuration.jvm_options {
        table.row([
            Cell::new(redact::line(&option.text), Tone::Code),
            chosen_by(option.provenance).into(),
            evidence(view, recommendation, option.provenance).into(),
        ]);
    }
    let arguments = redact::command(&configuration.args).into_iter();
    let variables = configuration
        .env
        .iter()
        .map(|(name, value)| redact::variable(name, value));
    for given in arguments.chain(variables) {
        table.row([
            Cell::new(given, Tone::Code),
            chosen_by(Provenance::User).into(),
            evidence(view, recommendation, Provenance::User).into(),
        ]);
    }
    Some(section.with(Block::Table(table)))
}

/// A provenance in words.
pub fn chosen_by(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Default => "the JVM",
        Provenance::Calculated => "calculated",
        Provenance::Measured => "measured",
        Provenance::User => "the user",
    }
}

/// What stands behind a value of this provenance.
pub fn evidence(view: &ResultView, r: &Recommendation, provenance: Provenance) -> String {
    match provenance {
        Provenance::Default => "what the JVM does by itself at this size".to_owned(),
        Provenance::Calculated => "from the limits, by formula".to_owned(),
        Provenance::Measured => trial_numbers(view, &r.evidence),
        Provenance::User => "as given".to_owned(),
    }
}

/// `trials 3, 5-9`.
pub fn trial_numbers(view: &ResultView, ids: &[String]) -> String {
    let mut numbers: Vec<usize> = ids.iter().filter_map(|id| view.number(id)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown: Vec<String> = ranges
        .iter()
        .map(|(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    match shown.as_slice() {
        [] => "no trial of this result".to_owned(),
        [one] if !one.contains('-') => format!("trial {one}"),
        all => format!("trials {}", all.join(", ")),
    }
}
