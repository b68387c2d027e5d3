//! `loadline fleet` as text.

use loadline_analysis::text::join_words;
use loadline_fleet::advice::AdviceStep;
use loadline_fleet::promised::PromiseCheck;
use loadline_fleet::workload::InstanceResources;
use loadline_report::format;
use loadline_report::table::{Table, TableCell, Tone};
use loadline_sizing::Cpus;

use super::{FleetDocument, RankedWorkload};

pub fn ranked_table(document: &FleetDocument, top: usize, width: usize) -> String {
    let FleetDocument::Ranked {
        window,
        prices,
        workloads,
        left_out_pods,
        unattributed_requests_per_second: unattributed,
    } = document
    else {
        return String::new();
    };
    let step = |step: AdviceStep| workloads.iter().filter(|r| r.advice.step == step).count();
    let stake: f64 = workloads.iter().map(|r| r.advice.at_stake_per_month).sum();
    let total: f64 = workloads.iter().map(|r| r.advice.per_month).sum();
    let mut text = format!(
        "{} in {window}: {} to fix, {} to measure, {} to leave; {} of {} a month at stake ({prices})\n\n",
        format::count_of(workloads.len(), "workload"),
        step(AdviceStep::Fix),
        step(AdviceStep::Measure),
        step(AdviceStep::Leave),
        dollars(stake),
        dollars(total),
    );
    let mut table = Table::new()
        .left("workload | first")
        .right("at stake | pods | memory used / asked | CPU used / asked")
        .wrapping("why");
    for ranked in workloads.iter().take(top) {
        table.add_row(workload_row(ranked));
    }
    text += &table.to_terminal(width);
    if workloads.len() > top {
        text += &format!("\n{} more: --top {0} or --json\n", workloads.len() - top);
    }
    if *left_out_pods > 0 {
        text += &format!(
            "\nleft out: {} of jobs and nodes\n",
            format::count_of(*left_out_pods, "pod")
        );
    }
    if *unattributed > 0.0 {
        text += &format!(
            "\n{}/s of requests belong to no pod: their series have no pod label; add the labels namespace and pod where Prometheus scrapes them\n",
            format::three_digits(*unattributed)
        );
    }
    let mut ranked = workloads.iter();
    let first = ranked.find(|r| r.advice.step == AdviceStep::Measure);
    if let Some(RankedWorkload { workload, .. }) = first {
        let name = &workload.name;
        text += &format!(
            "\nnext: loadline fleet ... --toml {}/{} -o loadline.toml, then loadline size loadline.toml\n",
            name.namespace, name.name
        );
    }
    text
}

fn workload_row(ranked: &RankedWorkload) -> [TableCell; 7] {
    let RankedWorkload { workload, advice } = ranked;
    let tone = match advice.step {
        AdviceStep::Fix => Tone::Bad,
        AdviceStep::Measure => Tone::Plain,
        AdviceStep::Leave => Tone::Good,
    };
    let bound = InstanceResources {
        cpu: workload.request.cpu.or(workload.limit.cpu),
        memory: workload.request.memory.or(workload.limit.memory),
    };
    let of = |used: Option<String>, bound: Option<String>| {
        let or = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        format!("{} / {}", or(used), or(bound))
    };
    let memory = of(
        workload.peak.memory.map(format::measured_bytes),
        bound.memory.map(format::measured_bytes),
    );
    let cpus = |cpu: Option<Cpus>| cpu.map(|cpu| cpu.to_string());
    [
        workload.name.to_string().into(),
        TableCell::new(advice.step.step_name(), tone),
        dollars(advice.at_stake_per_month).into(),
        workload.replicas.to_string().into(),
        memory.into(),
        of(cpus(workload.peak.cpu), cpus(bound.cpu)).into(),
        join_words(&advice.why, "; ").into(),
    ]
}

fn dollars(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("${v:.0}"),
        v => format!("${v:.2}"),
    }
}

pub fn promises_table(all: &[PromiseCheck], width: usize) -> String {
    let mut table = Table::new()
        .left("workload | figure")
        .right("promised | production")
        .left("");
    for held in all {
        for figure in &held.figures {
            let (word, tone) = if figure.drifts {
                ("drifts", Tone::Bad)
            } else {
                ("holds", Tone::Good)
            };
            table.add_row([
                held.name.to_string().into(),
                figure.what.into(),
                format::three_digits(figure.promised).into(),
                format::three_digits(figure.used).into(),
                TableCell::new(word, tone),
            ]);
        }
    }
    let drifting = all.iter().filter(|h| h.drifts).count();
    let workloads = format::count_of(all.len(), "workload");
    let mut text = match drifting {
        0 => format!("{workloads} as promised\n\n"),
        n => format!("{n} of {workloads} not as promised\n\n"),
    };
    text += &table.to_terminal(width);
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
