//! A comparison as text for a terminal, Markdown, and JSON.

use serde::Serialize;

use super::{Change, Comparison, Figure, Shared};
use crate::content::{Block, Section};
use crate::format;
use crate::table::{Cell, Table, Tone};
use crate::{markdown, terminal, text};

/// For a terminal of this width.
pub fn comparison_terminal(comparison: &Comparison, width: usize) -> String {
    terminal::page(
        &comparison.sentence,
        &details(comparison),
        &sections(comparison),
        width,
    )
}

/// For a pull request.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    markdown::page(
        &comparison.sentence,
        &details(comparison),
        &sections(comparison),
    )
}

fn details(comparison: &Comparison) -> Vec<String> {
    let [first, second] = &comparison.names;
    let mut details = vec![format!("First: {first}. Second: {second}.")];
    details.extend(comparison.differences.iter().cloned());
    details
}

fn sections(comparison: &Comparison) -> Vec<Section> {
    let mut sections = Vec::new();
    if !comparison.recommended.is_empty() {
        let names = comparison
            .sizes
            .map(|size| size.map_or_else(|| format::NONE.to_owned(), |s| s.to_string()));
        sections.push(
            Section::new("recommended", "At the recommended sizes")
                .with(Block::Paragraph(EXPLANATION.to_owned()))
                .with(Block::Table(figures(&comparison.recommended, &names))),
        );
    }
    if !comparison.shared.is_empty() {
        let section = Section::new("shared", "Configurations that both ran");
        sections.push(section.with(Block::Table(shared(&comparison.shared))));
    }
    sections
}

const EXPLANATION: &str = "Medians of the trials. The ratio is the second over the first, with its 95 % interval (bootstrap over trials); a change counts when the whole interval lies beyond 2 %.";

fn figures(figures: &[Figure], names: &[String; 2]) -> Table {
    let mut table = Table::new()
        .left("Figure")
        .right(format!("First, {}", names[0]))
        .right(format!("Second, {}", names[1]))
        .left("Ratio")
        .left("Change");
    for figure in figures {
        table.row([
            figure.name.into(),
            figure.shown[0].clone().into(),
            figure.shown[1].clone().into(),
            ratio(figure).into(),
            Cell::from(word(figure)),
        ]);
    }
    table
}

/// `1.04 (0.98 to 1.11)`.
fn ratio(figure: &Figure) -> String {
    let Some(ratio) = figure.ratio else {
        return format::NONE.to_owned();
    };
    let number = format::number;
    format!(
        "{} ({} to {})",
        number(ratio.estimate),
        number(ratio.low),
        number(ratio.high)
    )
}

fn word(figure: &Figure) -> String {
    match figure.change {
        Change::More => "more".to_owned(),
        Change::Less => "less".to_owned(),
        Change::NotShown => "none shown".to_owned(),
        Change::TooFew => format!(
            "too few trials ({} and {})",
            figure.trials[0], figure.trials[1]
        ),
    }
}

fn shared(shared: &[Shared]) -> Table {
    let mut table = Table::new()
        .left("Configuration")
        .left("Kept the SLO, first")
        .left("second")
        .right("Latency, first")
        .right("second")
        .left("Ratio");
    for one in shared {
        let kept = |(kept, of): (usize, usize)| {
            let tone = match (kept, of) {
                (_, 0) => Tone::Muted,
                (kept, of) if kept == of => Tone::Good,
                _ => Tone::Bad,
            };
            Cell::new(format!("{kept} of {of}"), tone)
        };
        let latency = one.figures.iter().find(|f| f.key == "latency_s");
        let [first, second] = latency.map_or_else(
            || [format::NONE.to_owned(), format::NONE.to_owned()],
            |f| f.shown.clone(),
        );
        table.row([
            one.name.clone().into(),
            kept(one.passes[0]),
            kept(one.passes[1]),
            first.into(),
            second.into(),
            latency
                .map_or_else(|| format::NONE.to_owned(), ratio)
                .into(),
        ]);
    }
    table
}

#[derive(Serialize)]
struct Exported {
    schema: u32,
    first: String,
    second: String,
    sentence: String,
    is_worse: bool,
    differences: Vec<String>,
    memory_bytes: [Option<u64>; 2],
    recommended: Vec<ExportedFigure>,
    shared: Vec<ExportedShared>,
}

#[derive(Serialize)]
struct ExportedFigure {
    figure: &'static str,
    medians: [Option<f64>; 2],
    trials: [usize; 2],
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    change: &'static str,
}

#[derive(Serialize)]
struct ExportedShared {
    configuration: String,
    kept: [usize; 2],
    of: [usize; 2],
    figures: Vec<ExportedFigure>,
}

/// For other programs.
pub fn comparison_json(comparison: &Comparison) -> String {
    let [first, second] = comparison.names.clone();
    let exported = Exported {
        schema: 1,
        first,
        second,
        sentence: text::one_line(&comparison.sentence),
        is_worse: comparison.is_worse,
        differences: comparison.differences.clone(),
        memory_bytes: comparison.sizes.map(|s| s.map(|s| s.as_bytes())),
        recommended: comparison.recommended.iter().map(exported_figure).collect(),
        shared: comparison.shared.iter().map(exported_shared).collect(),
    };
    let text = serde_json::to_string_pretty(&exported);
    text.expect("text keys and numbers; a number that is none becomes null")
}

fn exported_shared(shared: &Shared) -> ExportedShared {
    ExportedShared {
        configuration: shared.name.clone(),
        kept: shared.passes.map(|p| p.0),
        of: shared.passes.map(|p| p.1),
        figures: shared.figures.iter().map(exported_figure).collect(),
    }
}

fn exported_figure(figure: &Figure) -> ExportedFigure {
    ExportedFigure {
        figure: figure.key,
        medians: figure.medians,
        trials: figure.trials,
        ratio: figure.ratio.map(|r| r.estimate),
        ratio_low: figure.ratio.map(|r| r.low),
        ratio_high: figure.ratio.map(|r| r.high),
        change: match figure.change {
            Change::More => "more",
            Change::Less => "less",
            Change::NotShown => "none_shown",
            Change::TooFew => "too_few_trials",
        },
    }
}
