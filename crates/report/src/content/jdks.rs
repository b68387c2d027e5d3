//! "Which JDK needs how much?": the proven size of each JDK that was asked about.
//!
//! Owns the table; every size comes from the recommendation.

use loadline_analysis::recommend::JdkSize;

use super::groups;
use super::section::{Block, Section};
use crate::format;
use crate::table::{Cell, Table, Tone};
use crate::text;
use crate::view::ResultView;

/// The section; `None` where one JDK was asked about.
pub fn section(view: &ResultView) -> Option<Section> {
    let all = &view.recommendation.as_ref()?.by_jdk;
    all.first()?;
    let mut table = Table::new()
        .left("JDK")
        .left("Size")
        .right("Confirmed")
        .left("Proof");
    for of in all {
        table.row(row(of));
    }
    let words = "Each by its own search and its own fresh starts; the first tells the others where to begin, not what to show. The recommended one is the cheapest of those that are proven.";
    Some(
        Section::new("jdks", "Which JDK needs how much?")
            .with(Block::Paragraph(words.to_owned()))
            .with(Block::Table(table)),
    )
}

fn row(of: &JdkSize) -> [Cell; 4] {
    let name = of
        .jdk
        .as_deref()
        .map_or_else(|| "as given".to_owned(), text::label);
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
