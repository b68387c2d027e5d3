//! `loadline fleet` as text.

use loadline_fleet::advice::Step;
use loadline_fleet::promised::Held;
use loadline_fleet::workload::Resources;
use loadline_report::format;
use loadline_report::table::{Cell, Table, Tone};

use super::{Document, Ranked};

/// The workloads, what is most at stake first.
pub fn ranked(document: &Document, top: usize, width: usize) -> String {
    let Document::Ranked {
        window,
        prices,
        workloads,
        left_out_pods,
        nobodys_requests_per_second: nobodys,
    } = document
    else {
        return String::new();
    };
    let step = |step: Step| workloads.iter().filter(|r| r.advice.step == step).count();
    let stake: f64 = workloads.iter().map(|r| r.advice.at_stake_per_month).sum();
    let total: f64 = workloads.iter().map(|r| r.advice.per_month).sum();
    let mut text = format!(
        "{} in {window}: {} to fix, {} to measure, {} to leave; {} of {} a month at stake ({prices})\n\n",
        format::count(workloads.len(), "workload"),
        step(Step::Fix),
        step(Step::Measure),
        step(Step::Leave),
        dollars(stake),
        dollars(total),
    );
    let mut table = Table::new()
        .left("workload")
        .left("first")
        .right("at stake")
        .right("pods")
        .right("memory used / asked")
        .right("CPU used / asked")
        .wrapping("why");
    for ranked in workloads.iter().take(top) {
        table.row(row(ranked));
    }
    text += &table.terminal(width);
    if workloads.len() > top {
        text += &format!("\n{} more: --top {0} or --json\n", workloads.len() - top);
    }
    if *left_out_pods > 0 {
        text += &format!(
            "\nleft out: {} of jobs and nodes\n",
            format::count(*left_out_pods, "pod")
        );
    }
    if *nobodys > 0.0 {
        text += &format!(
            "\n{}/s of requests are nobody's: their series name no pod; add the labels namespace and pod where Prometheus scrapes them\n",
            format::number(*nobodys)
        );
    }
    let first = workloads.iter().find(|r| r.advice.step == Step::Measure);
    if let Some(Ranked { workload, .. }) = first {
        let name = &workload.name;
        text += &format!(
            "\nnext: loadline fleet ... --toml {}/{} -o loadline.toml, then loadline size loadline.toml\n",
            name.namespace, name.name
        );
    }
    text
}

fn row(ranked: &Ranked) -> [Cell; 7] {
    let Ranked { workload, advice } = ranked;
    let tone = match advice.step {
        Step::Fix => Tone::Bad,
        Step::Measure => Tone::Plain,
        Step::Leave => Tone::Good,
    };
    let bound = Resources {
        cpu: workload.request.cpu.or(workload.limit.cpu),
        memory: workload.request.memory.or(workload.limit.memory),
    };
    let of = |used: Option<String>, bound: Option<String>| {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!("{} / {}", or(used), or(bound))
    };
    let why: Vec<String> = advice.why.iter().map(ToString::to_string).collect();
    [
        Cell::new(workload.name.to_string(), Tone::Plain),
        Cell::new(advice.step.name(), tone),
        Cell::new(dollars(advice.at_stake_per_month), Tone::Plain),
        Cell::new(workload.replicas.to_string(), Tone::Plain),
        Cell::new(
            of(
                workload.peak.memory.map(format::bytes),
                bound.memory.map(format::bytes),
            ),
            Tone::Plain,
        ),
        Cell::new(
            of(
                workload.peak.cpu.map(|c| c.to_string()),
                bound.cpu.map(|c| c.to_string()),
            ),
            Tone::Plain,
        ),
        Cell::new(why.join("; "), Tone::Plain),
    ]
}

fn dollars(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("${v:.0}"),
        v => format!("${v:.2}"),
    }
}

/// Promises held against production.
pub fn held(all: &[Held], width: usize) -> String {
    let mut table = Table::new()
        .left("workload")
        .left("figure")
        .right("promised")
        .right("production")
        .left("");
    for held in all {
        for figure in &held.figures {
            let (word, tone) = match figure.drifts {
                true => ("drifts", Tone::Bad),
                false => ("holds", Tone::Good),
            };
            table.row([
                Cell::new(held.name.to_string(), Tone::Plain),
                Cell::new(figure.what, Tone::Plain),
                Cell::new(format::number(figure.promised), Tone::Plain),
                Cell::new(format::number(figure.used), Tone::Plain),
                Cell::new(word, tone),
            ]);
        }
    }
    let drifting = all.iter().filter(|h| h.drifts).count();
    let mut text = match drifting {
        0 => format!("{} as promised\n\n", format::count(all.len(), "workload")),
        n => format!(
            "{n} of {} not as promised\n\n",
            format::count(all.len(), "workload")
        ),
    };
    text += &table.terminal(width);
    for held in all.iter().filter(|h| h.figures.is_empty()) {
        text += &format!(
            "{}: production and result have no figure in common\n",
            held.name
        );
    }
    if drifting > 0 {
        text += "\nnext: loadline verify with the rate and the requests of today (loadline fleet --toml)\n";
    }
    text
}
