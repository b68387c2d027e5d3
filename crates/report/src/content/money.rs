//! What it costs, and why not less: the deployment, its next cheaper neighbours, the other choices.

use loadline_analysis::deployment::{Deployment, Priced, WhyNot};

use super::{Block, Section};
use crate::format;
use crate::table::{Cell, Table};
use crate::view::ResultView;

/// The section; `None` where no prices were given.
pub fn section(view: &ResultView) -> Option<Section> {
    let deployment = view.recommendation.as_ref()?.deployment.as_ref()?;
    let why_not = deployment.why_not.iter().map(|w| why_not(view, w));
    let mut section = Section::new("money", "What it costs, and why not less")
        .with(Block::Paragraph(source(deployment)))
        .with(Block::Table(cells(deployment)))
        .with(Block::Paragraph(
            "The next cheaper deployment in each direction, and what it breaks:".to_owned(),
        ))
        .with(Block::List(why_not.collect()));
    if deployment.why_not.is_empty() {
        section.blocks.truncate(2);
        section = section.with(Block::Paragraph(
            "Nothing cheaper is on offer: it is the smallest size with the fewest replicas."
                .to_owned(),
        ));
    }
    if deployment.front.len() > 1 {
        section = section
            .with(Block::Paragraph(
                "Nothing measured is better than these in price, p99 and start time at once:"
                    .to_owned(),
            ))
            .with(Block::Table(front(deployment)));
    }
    if !deployment.left_out.is_empty() {
        section = section
            .with(Block::Paragraph("Not looked at:".to_owned()))
            .with(Block::List(deployment.left_out.clone()));
    }
    Some(section)
}

/// `3 x 1 CPU and 2Gi at $86.51 a month, $0.1098 per million requests`.
pub fn price_words(priced: &Priced) -> String {
    let million = priced.cost.per_million_requests;
    let million = million.map_or_else(String::new, |m| format!(", ${m:.4} per million requests"));
    format!("${:.2} a month{million}", priced.cost.per_month)
}

fn source(deployment: &Deployment) -> String {
    let offer = &deployment.offer;
    let warning = offer.warning.as_ref();
    let warning = warning.map_or_else(String::new, |w| format!(" Warning: {w}."));
    format!(
        "Prices: {} {} {}, of {} ({}; {}).{warning}",
        offer.name, offer.region, offer.arch, offer.date, offer.source, offer.licence
    )
}

fn cells(deployment: &Deployment) -> Table {
    let has_variants = deployment.cells.iter().any(|c| !c.variant.is_empty());
    let mut table = Table::new();
    if has_variants {
        table = table.left("variant");
    }
    let mut table = table
        .right("CPU")
        .right("memory")
        .right("carried")
        .right("too high")
        .right("replicas")
        .right("$/month")
        .right("$/M requests");
    let or_dash = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), format::rate);
    for cell in &deployment.cells {
        let priced = cell.priced.as_ref();
        let text = |of: &dyn Fn(&Priced) -> String| priced.map_or_else(|| "-".to_owned(), of);
        let mut row = Vec::new();
        if has_variants {
            row.push(cell.variant.clone());
        }
        row.push(cell.limits.cpu.to_string());
        row.push(cell.limits.memory.to_string());
        row.push(if cell.could_not_measure {
            "not measurable".to_owned()
        } else {
            or_dash(cell.carried)
        });
        row.push(or_dash(cell.too_high));
        row.push(text(&|p| p.replicas.to_string()));
        row.push(text(&|p| format!("{:.2}", p.cost.per_month)));
        row.push(text(&|p| {
            let million = p.cost.per_million_requests;
            million.map_or_else(|| "-".to_owned(), |m| format!("{m:.4}"))
        }));
        table.row(row.into_iter().map(Cell::from));
    }
    table
}

fn why_not(view: &ResultView, why: &WhyNot) -> String {
    let trial = why.trial.as_ref().and_then(|id| view.number(id));
    let trial = trial.map_or_else(String::new, |n| format!(" (trial {n})"));
    format!("{}{trial}", why.sentence())
}

fn front(deployment: &Deployment) -> Table {
    let mut table = Table::new()
        .left("deployment")
        .right("$/month")
        .right("p99")
        .right("start");
    for point in &deployment.front {
        let p = &point.priced;
        let variant = if p.variant.is_empty() {
            String::new()
        } else {
            format!(" {}", p.variant)
        };
        table.row(
            [
                format!("{} x {}{variant}", p.replicas, p.limits),
                format!("{:.2}", p.cost.per_month),
                format::time_or(point.p99),
                format::time_or(point.start),
            ]
            .map(Cell::from),
        );
    }
    table
}
