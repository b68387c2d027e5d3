//! "How many instances?": one application cut into more and smaller ones, or more of the same.
//!
//! Owns the words and the table of `loadline_analysis::instances`, which owns every figure. There is
//! nothing to say about results that do not vary the number.

use loadline_analysis::instances::{InstanceStudy, KNEE, MemoryLine, ThroughputScaling};
use loadline_analysis::record::Configuration;
use loadline_sizing::Bytes;

use super::groups;
use super::section::Section;
use crate::table::Table;
use crate::view::ResultView;
use crate::{format, text};

const SEED: u64 = 1;

pub fn instances_section(view: &ResultView) -> Option<Section> {
    let mut section = Section::new("instances", "How many instances?");
    for (configuration, study) in studies(view) {
        section = section
            .with_paragraph(configuration_words(&configuration))
            .with_table(instances_table(&study))
            .with_list(sentences(&study));
    }
    (!section.blocks.is_empty()).then_some(section)
}

pub(crate) fn studies(view: &ResultView) -> Vec<(Configuration, InstanceStudy)> {
    let is_varied = view.trials.iter().any(|t| t.configuration.instances > 1);
    if is_varied {
        InstanceStudy::all_studies(&view.trials, SEED)
    } else {
        Vec::new()
    }
}

fn configuration_words(configuration: &Configuration) -> String {
    let rate = configuration.rate.map(format::as_rate);
    let rate = rate.map_or_else(String::new, |rate| format!(", {rate} in all"));
    // Each of several studies is labelled with the level of the other factor.
    let label = match configuration.label.as_str() {
        "" => String::new(),
        label => format!(" ({})", text::label(label)),
    };
    format!(
        "Instances next to each other, the load spread evenly over them{rate}; one of {}{label} has {} and {}. Throughput and memory are those of all together, medians of the trials; PSS counts a page that n of them share as 1/n in each.",
        configuration.instances,
        groups::cpu_words(configuration),
        groups::memory_words(configuration),
    )
}

fn instances_table(study: &InstanceStudy) -> Table {
    let mut table = Table::new()
        .right("Instances | Kept the SLO | Requests | Against the first | RSS | PSS")
        .right("RSS of each");
    let first = study.counts.first().map_or(0.0, |c| c.throughput);
    for count in &study.counts {
        table.add_row([
            count.instances.to_string().into(),
            format!("{} of {}", count.kept, count.trials).into(),
            format::as_rate(count.throughput).into(),
            format!("{:+.0} %", (count.throughput / first - 1.0) * 100.0).into(),
            mebibytes(count.rss).into(),
            mebibytes(count.pss).into(),
            mebibytes(count.rss.map(|r| r / f64::from(count.instances))).into(),
        ]);
    }
    table
}

fn mebibytes(bytes: Option<f64>) -> String {
    format::bytes_or(bytes.map(|b| Bytes::from_mib((b / f64::from(1 << 20)).round() as u64)))
}

fn sentences(study: &InstanceStudy) -> Vec<String> {
    let mut lines = Vec::new();
    match &study.scaling {
        Some(scaling) => lines.extend(scaling_sentences(study, scaling)),
        None if study.is_closed => lines.push(
            "A scaling law needs six instance counts; the table shows these."
                .to_owned(),
        ),
        None => lines.push(
            "The load was open: the rate was given, so it does not show what they could have carried."
                .to_owned(),
        ),
    }
    lines.extend(study.rss.map(|line| memory_sentence("RSS", line)));
    lines.extend(study.pss.map(|line| memory_sentence("PSS", line)));
    lines
}

fn scaling_sentences(study: &InstanceStudy, scaling: &ThroughputScaling) -> Vec<String> {
    let most = study.counts.last().map_or(1, |c| c.instances);
    let counts = study.counts.iter();
    let best = counts.max_by(|a, b| a.throughput.total_cmp(&b.throughput));
    let measured = best.map_or(1, |c| c.instances);
    let peak = match scaling.peak {
        Some(peak) => format!(
            "Throughput peaks at {:.1} instances (95 % interval {:.1} to {:.1}); the most was measured with {measured}.",
            peak.estimate, peak.low, peak.high
        ),
        None if scaling.model.throughput(f64::from(most)) > scaling.model.throughput(1.0) => {
            format!("Throughput still grows at {most} instances, the most that were measured.")
        }
        None => "More instances carry less: one has the most throughput.".to_owned(),
    };
    let m = &scaling.model;
    let check = scaling.inner_error().map_or_else(String::new, |error| {
        format!(
            " Left out of the fit, a count between others is predicted within {}.",
            format::as_percent(error)
        )
    });
    vec![
        peak,
        format!(
            "The knee is at {}: the fewest whose throughput is at least {} of the most.",
            format::count_of(scaling.knee as usize, "instance"),
            format::as_percent(KNEE)
        ),
        format!(
            "Universal Scalability Law: contention {:.4}, coherency {:.5}, {} of one instance.{check}",
            m.sigma,
            m.kappa,
            format::as_rate(m.lambda)
        ),
    ]
}

fn memory_sentence(name: &str, line: MemoryLine) -> String {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    format!(
        "{name} of all: {:.0} MiB and {:.0} MiB for each instance (R² {:.3}).",
        mib(line.fixed),
        mib(line.each),
        line.r_squared
    )
}
