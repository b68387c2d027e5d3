//! "Which JDK needs how much?": the proven size of each JDK, application or CPU limit that was asked
//! about.
//!
//! Owns the table; every size comes from the recommendation.

use loadline_analysis::price::GIB_PER_CPU;
use loadline_analysis::recommend::{self, LevelSize};
use loadline_analysis::text::join_words;

use super::groups;
use super::section::Section;
use crate::table::{Table, TableCell, Tone};
use crate::view::ResultView;
use crate::{format, text};

pub fn jdks_section(view: &ResultView) -> Option<Section> {
    let all = &view.recommendation.as_ref()?.by_level;
    let first = all.first()?;
    let (what, title) = match (&first.application, &first.jdk, first.cpu) {
        (Some(_), ..) => ("Application", "Which application needs how much?"),
        (None, None, Some(_)) => ("CPU limit", "How much memory at which CPU limit?"),
        (None, ..) => ("JDK", "Which JDK needs how much?"),
    };
    let mut table = Table::new()
        .left(what)
        .left("Size")
        .right("Confirmed")
        .left("Proof");
    for of in all {
        table.add_row(level_row(of));
    }
    let hint = match what {
        "JDK" => "; the first tells the others where to begin, not what to show",
        _ => "",
    };
    let mut words = format!(
        "Each by its own search and its own fresh starts{hint}. The recommended one is the cheapest of those that passed their test."
    );
    if let Some(knee) = knee_sentence(all) {
        words.push_str(&format!(" {knee}"));
    }
    let section = Section::new("jdks", title).with_paragraph(words);
    Some(section.with_table(table))
}

pub(super) fn knee_sentence(all: &[LevelSize]) -> Option<String> {
    let of = recommend::cpu_knee(all)?;
    let limit = groups::cpu_words(of.configuration.as_ref()?);
    let knee = format!(
        "The knee is {limit}: the cheapest of these sizes, if one CPU costs as much as {GIB_PER_CPU} GiB"
    );
    let too_small = all.iter().filter(|of| of.is_infeasible);
    let too_small = join_words(too_small.filter_map(|of| of.cpu), " or ");
    Some(match too_small.as_str() {
        "" => format!("{knee}."),
        cpus => format!("{knee}; with {cpus} CPU no size that was tried keeps the SLO."),
    })
}

/// The level of the answer, if several were compared: `JDK 25`. A CPU limit is part of the size
/// already.
pub(super) fn of_level(of: &LevelSize) -> Option<String> {
    let name = match (&of.application, &of.jdk) {
        (None, None) => return None,
        (None, Some(jdk)) => format!("JDK {jdk}"),
        (Some(application), None) => application.clone(),
        (Some(application), Some(jdk)) => format!("{application}, JDK {jdk}"),
    };
    Some(text::label(&name))
}

pub(crate) fn level_name(of: &LevelSize) -> String {
    let jdk = of.jdk.as_ref().map(|jdk| match of.application {
        None => jdk.clone(),
        Some(_) => format!("JDK {jdk}"),
    });
    let cpu = of.cpu.map(|cpu| format!("{cpu} CPU"));
    let parts = of.application.iter().cloned().chain(jdk).chain(cpu);
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "as given".to_owned()
    } else {
        text::label(&parts.join(", "))
    }
}

fn level_row(of: &LevelSize) -> [TableCell; 4] {
    let name = level_name(of);
    let (Some(configuration), Some(proof)) = (&of.configuration, &of.proof) else {
        let why = of.why_none.as_deref().unwrap_or("no size");
        let why = TableCell::new(text::one_line(why), Tone::Bad);
        return [name.into(), "none".into(), "–".into(), why];
    };
    let tone = if of.is_proven() {
        Tone::Good
    } else {
        Tone::Bad
    };
    let starts = format::count_of(proof.starts as usize, "start");
    let kept = format!("{} of {starts} kept the SLO", proof.passes);
    let confirmed = format::or_none(of.confirmed.map(|m| m.to_string()));
    [
        name.into(),
        groups::size_words(configuration).into(),
        confirmed.into(),
        TableCell::new(kept, tone),
    ]
}
