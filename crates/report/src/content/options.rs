//! JVM options and environment of the recommendation: who chose each, and the trials behind it.

use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::ValueProvenance;

use super::section::Section;
use crate::redact;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;

pub fn options_section(view: &ResultView) -> Option<Section> {
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
        let none = if is_jvm {
            "None: the JVM chooses from the limits of its container."
        } else {
            "None."
        };
        return Some(section.with_paragraph(none));
    }
    let mut table = Table::new().left("Option | Chosen by").wrapping("Evidence");
    let options = configuration.jvm_options.iter();
    let options = options.map(|o| (redact::redact_line(&o.text), o.provenance));
    let arguments = redact::redact_command(&configuration.args).into_iter();
    let variables = configuration.env.iter();
    let variables = variables.map(|(name, value)| redact::redact_variable(name, value));
    let given = arguments.chain(variables);
    let given = given.map(|given| (given, ValueProvenance::User));
    for (option, provenance) in options.chain(given) {
        table.add_row([
            TableCell::new(option, Tone::Code),
            chosen_by(provenance).into(),
            provenance_evidence(view, recommendation, provenance).into(),
        ]);
    }
    Some(section.with_table(table))
}

pub fn chosen_by(provenance: ValueProvenance) -> &'static str {
    match provenance {
        ValueProvenance::Default => "the JVM",
        ValueProvenance::Calculated => "calculated",
        ValueProvenance::Loadline => "loadline",
        ValueProvenance::Measured => "measured",
        ValueProvenance::User => "the user",
    }
}

pub fn provenance_evidence(
    view: &ResultView,
    r: &Recommendation,
    provenance: ValueProvenance,
) -> String {
    match provenance {
        ValueProvenance::Default => "the JVM's own choice at this size".to_owned(),
        ValueProvenance::Calculated => "from the limits, by formula".to_owned(),
        ValueProvenance::Loadline => {
            "a consumer without the thread that works ends, and is started again".to_owned()
        }
        ValueProvenance::Measured => trial_numbers(view, &r.evidence),
        ValueProvenance::User => "as given".to_owned(),
    }
}

/// `trials 3, 5-9`.
pub fn trial_numbers(view: &ResultView, ids: &[String]) -> String {
    let mut numbers: Vec<usize> = ids.iter().filter_map(|id| view.trial_number(id)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = ranges.iter().map(|(a, b)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    });
    let shown: Vec<String> = shown.collect();
    match shown.as_slice() {
        [] => "no trial of this result".to_owned(),
        [one] if !one.contains('-') => format!("trial {one}"),
        all => format!("trials {}", all.join(", ")),
    }
}
