//! "Which JDK needs how much?": the proven size of each JDK, or application, that was asked about.
//!
//! Owns the table; every size comes from the recommendation.

use loadline_analysis::recommend::LevelSize;

use super::groups;
use super::section::{Block, Section};
use crate::format;
use crate::table::{Cell, Table, Tone};
use crate::text;
use crate::view::ResultView;

/// The section; `None` where one was asked about.
pub fn section(view: &ResultView) -> Option<Section> {
    let all = &view.recommendation.as_ref()?.by_level;
    let first = all.first()?;
    let (what, title) = match first.application {
        None => ("JDK", "Which JDK needs how much?"),
        Some(_) => ("Application", "Which application needs how much?"),
    };
    let mut table = Table::new()
        .left(what)
        .left("Size")
        .right("Confirmed")
        .left("Proof");
    for of in all {
        table.row(row(of));
    }
    let hint = match first.application {
        None => "; the first tells the others where to begin, not what to show",
        Some(_) => "",
    };
    let words = format!(
        "Each by its own search and its own fresh starts{hint}. The recommended one is the cheapest of those that are proven."
    );
    Some(
        Section::new("jdks", title)
            .with(Block::Paragraph(words))
            .with(Block::Table(table)),
    )
}

/// The level in a sentence: `JDK 25`, `native`, `shop, JDK 25`.
pub(super) fn name(of: &LevelSize) -> String {
    match (&of.application, &of.jdk) {
        (None, Some(jdk)) => text::label(&format!("JDK {jdk}")),
        _ => in_table(of),
    }
}

fn in_table(of: &LevelSize) -> String {
    match (&of.application, &of.jdk) {
        (None, None) => "as given".to_owned(),
        (None, Some(jdk)) => text::label(jdk),
        (Some(application), None) => text::label(application),
        (Some(application), Some(jdk)) => text::label(&format!("{application}, JDK {jdk}")),
    }
}

fn row(of: &LevelSize) -> [Cell; 4] {
    let name = in_table(of);
    let (Some(configuration), Some(proof)) = (&of.configuration, &of.proof) else {
        let why = of.why_none.as_deref().unwrap_or("no size");
        let why = Cell::new(text::one_line(why), Tone::Bad);
        return [name.into(), "none".into(), "–".into(), why];
    };
    let tone = match of.is_proven() {
        true => Tone::Good,
        false => Tone::Bad,
    };
    let kept = format!(
        "{} of {} kept the SLO",
        proof.passes,
        format::count(proof.starts as usize, "start")
    );
    let confirmed = of
        .confirmed
        .map_or_else(|| "–".to_owned(), |m| m.to_string());
    [
        name.into(),
        groups::size(configuration).into(),
        confirmed.into(),
        Cell::new(kept, tone),
    ]
}
