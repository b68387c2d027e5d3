//! A comparison as text for a terminal, Markdown, HTML, and JSON.

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{ComparedFigure, FigureChange};
use super::size::RecommendedSize;
use super::{ResultComparison, SharedConfiguration};
use crate::content::Section;
use crate::html::parts;
use crate::table::{Table, TableCell, Tone};
use crate::{escape, format, markdown, terminal, text};

pub fn comparison_terminal(comparison: &ResultComparison, width: usize) -> String {
    let (details, sections) = (details(comparison), sections(comparison));
    terminal::page(&comparison.sentence, &details, &sections, width)
}

pub fn comparison_markdown(comparison: &ResultComparison) -> String {
    let (details, sections) = (details(comparison), sections(comparison));
    markdown::page(&comparison.sentence, &details, &sections)
}

pub fn comparison_html(comparison: &ResultComparison) -> String {
    let (tone, badge) = match (&comparison.cannot_say, comparison.is_worse) {
        (Some(_), _) => (Tone::Muted, "Not comparable"),
        (None, true) => (Tone::Bad, "Worse"),
        (None, false) => (Tone::Good, "Not worse"),
    };
    let [first, second] = &comparison.names;
    let title = format!("{first} and {second}");
    let verdict = parts::VerdictBox {
        tone,
        badge,
        sentence: &comparison.sentence,
        facts: &[],
        details: &details(comparison),
    };
    let sections: String = sections(comparison)
        .iter()
        .map(|section| parts::folding(section.id, &section.title, true, &parts::blocks(section)))
        .collect();
    let body = format!(
        "<header><h1>{}</h1></header>\n<main>\n{}{sections}</main>\n",
        escape::escape_html(&title),
        verdict.to_section(true)
    );
    parts::without_script(&title, env!("CARGO_PKG_VERSION"), &body)
}

fn details(comparison: &ResultComparison) -> Vec<String> {
    let [first, second] = &comparison.names;
    let mut details = vec![format!("First: {first}. Second: {second}.")];
    details.extend(comparison.differences.iter().cloned());
    details
}

fn sections(comparison: &ResultComparison) -> Vec<Section> {
    let mut sections = Vec::new();
    if !comparison.recommended.is_empty() {
        let show = |size: &Option<RecommendedSize>, shown: fn(&RecommendedSize) -> String| {
            size.as_ref()
                .map_or_else(|| format::NONE.to_owned(), |s| text::label(&shown(s)))
        };
        let sizes = comparison.sizes.each_ref();
        let [first, second] = sizes.map(|s| show(s, |s| s.name.clone()));
        let names = sizes.map(|s| show(s, |s| s.memory.to_string()));
        let both = format!("The first recommends {first}; the second {second}.");
        sections.push(
            Section::new("recommended", "At the recommended sizes")
                .with_paragraph(both)
                .with_paragraph(EXPLANATION)
                .with_table(figures_table(&comparison.recommended, &names)),
        );
    }
    if !comparison.shared.is_empty() {
        let section = Section::new("shared", "Configurations that both ran");
        sections.push(section.with_table(shared_table(&comparison.shared)));
    }
    sections
}

const EXPLANATION: &str = "Medians of the trials. The ratio is the second over the first, with its 95 % interval (bootstrap over trials); a change counts when the whole interval lies beyond 2 %.";

fn figures_table(figures: &[ComparedFigure], names: &[String; 2]) -> Table {
    let mut table = Table::new()
        .left("Figure")
        .right(format!("First, {}", names[0]))
        .right(format!("Second, {}", names[1]))
        .right("Ratio")
        .left("Change");
    for figure in figures {
        table.add_row([
            figure.name.into(),
            figure.shown[0].clone().into(),
            figure.shown[1].clone().into(),
            ratio(figure).into(),
            TableCell::from(change_word(figure)),
        ]);
    }
    table
}

/// `1.04 (0.98 to 1.11)`.
fn ratio(figure: &ComparedFigure) -> String {
    let Some(ratio) = figure.ratio else {
        return format::NONE.to_owned();
    };
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(format::three_digits);
    format!("{estimate} ({low} to {high})")
}

fn change_word(figure: &ComparedFigure) -> String {
    match figure.change {
        FigureChange::More => "more".to_owned(),
        FigureChange::Less => "less".to_owned(),
        FigureChange::NotShown => "none shown".to_owned(),
        FigureChange::InFailures => "requests failed: no ratio".to_owned(),
        FigureChange::TooFew => format!(
            "too few trials ({} and {})",
            figure.trials[0], figure.trials[1]
        ),
    }
}

fn shared_table(shared: &[SharedConfiguration]) -> Table {
    let mut table = Table::new()
        .left("Configuration")
        .right("Kept the SLO, first | second | Latency, first | second | Ratio");
    for one in shared {
        let kept = |(kept, of): (usize, usize)| {
            let tone = match (kept, of) {
                (_, 0) => Tone::Muted,
                (kept, of) if kept == of => Tone::Good,
                _ => Tone::Bad,
            };
            TableCell::new(format!("{kept} of {of}"), tone)
        };
        let latency = one.figures.iter().find(|f| f.key == "latency_s");
        let [first, second] = latency.map_or_else(
            || [format::NONE.to_owned(), format::NONE.to_owned()],
            |f| f.shown.clone(),
        );
        table.add_row([
            one.name.clone().into(),
            kept(one.passes[0]),
            kept(one.passes[1]),
            first.into(),
            second.into(),
            format::or_none(latency.map(ratio)).into(),
        ]);
    }
    table
}

/// A comparison as JSON.
#[derive(Serialize, JsonSchema)]
pub struct ExportedComparison {
    /// Version of this form.
    schema: u32,
    /// Title and id of the first result.
    first: String,
    /// Of the second.
    second: String,
    /// The change in a sentence.
    sentence: String,
    /// Whether the second is worse: it breaks the SLO where the first kept it, needs or costs more.
    is_worse: bool,
    /// Why no comparison is possible: one result measured nothing; null if it is possible.
    cannot_say: Option<String>,
    /// What else differs between the two, so that a change may come from there.
    differences: Vec<String>,
    /// Memory limits of one instance of the recommended sizes; null without a recommendation.
    memory_bytes: [Option<u64>; 2],
    /// Their CPU limits; null also for no limit.
    cpu_millicpus: [Option<u32>; 2],
    /// Replicas; null where no prices were given.
    replicas: [Option<u32>; 2],
    /// What all replicas cost, USD a month; null where no prices were given.
    usd_per_month: [Option<f64>; 2],
    /// Figures at the recommended sizes; empty unless both recommend.
    recommended: Vec<ExportedFigure>,
    /// Every configuration that both ran.
    shared: Vec<ExportedShared>,
}

/// One figure in both results.
#[derive(Serialize, JsonSchema)]
struct ExportedFigure {
    /// Its name, with its unit at the end.
    figure: &'static str,
    /// Medians over the trials; null where none has it.
    medians: [Option<f64>; 2],
    /// Trials that have it.
    trials: [usize; 2],
    /// Second over first; null where one is missing or zero.
    ratio: Option<f64>,
    /// Low end of its 95 % interval.
    ratio_low: Option<f64>,
    /// High end.
    ratio_high: Option<f64>,
    /// `more`, `less`, `none_shown`, `in_failures` (a trial of either side has it in requests that
    /// failed: no ratio) or `too_few_trials`.
    change: &'static str,
}

/// A configuration that both results ran.
#[derive(Serialize, JsonSchema)]
struct ExportedShared {
    /// Its name.
    configuration: String,
    /// Trials that kept the SLO.
    kept: [usize; 2],
    /// Of so many that may be believed.
    of: [usize; 2],
    /// Its figures.
    figures: Vec<ExportedFigure>,
}

pub fn comparison_json(comparison: &ResultComparison) -> String {
    let [first, second] = comparison.names.clone();
    let sizes = comparison.sizes.each_ref().map(Option::as_ref);
    let exported = ExportedComparison {
        schema: 1,
        first,
        second,
        sentence: text::one_line(&comparison.sentence),
        is_worse: comparison.is_worse,
        cannot_say: comparison.cannot_say.clone(),
        differences: comparison.differences.clone(),
        memory_bytes: sizes.map(|s| s.map(|s| s.memory.as_bytes())),
        cpu_millicpus: sizes.map(|s| s.and_then(|s| Some(s.cpu?.as_millis()))),
        replicas: sizes.map(|s| s.and_then(|s| s.replicas)),
        usd_per_month: sizes.map(|s| s.and_then(|s| s.usd_per_month)),
        recommended: comparison.recommended.iter().map(exported_figure).collect(),
        shared: comparison.shared.iter().map(exported_shared).collect(),
    };
    let text = serde_json::to_string_pretty(&exported);
    text.expect("text keys and numbers; a number that is none becomes null")
}

fn exported_shared(shared: &SharedConfiguration) -> ExportedShared {
    ExportedShared {
        configuration: shared.name.clone(),
        kept: shared.passes.map(|p| p.0),
        of: shared.passes.map(|p| p.1),
        figures: shared.figures.iter().map(exported_figure).collect(),
    }
}

fn exported_figure(figure: &ComparedFigure) -> ExportedFigure {
    ExportedFigure {
        figure: figure.key,
        medians: figure.medians,
        trials: figure.trials,
        ratio: figure.ratio.map(|r| r.estimate),
        ratio_low: figure.ratio.map(|r| r.low),
        ratio_high: figure.ratio.map(|r| r.high),
        change: match figure.change {
            FigureChange::More => "more",
            FigureChange::Less => "less",
            FigureChange::NotShown => "none_shown",
            FigureChange::InFailures => "in_failures",
            FigureChange::TooFew => "too_few_trials",
        },
    }
}
