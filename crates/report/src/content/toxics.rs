//! Toxics: deliberate faults between the application and its dependencies, and the traffic.
//!
//! Owns the words and the table; the proxy counts. Results without toxics have no such section.

use loadline_analysis::record::{LinkEvidence, TrialPhase, TrialRecord};
use loadline_analysis::text::join_words;

use super::section::Section;
use crate::figures::unique;
use crate::format;
use crate::table::Table;
use crate::view::ResultView;

type Seen<'a> = (&'a TrialRecord, &'a LinkEvidence);

pub fn toxics_section(view: &ResultView) -> Option<Section> {
    let names = link_names(view);
    names.first()?;
    let words = "loadline's own proxy stood between the application and these dependencies, at their own addresses. Counters are those of the measured phase, all trials together; a round trip is a turn of the application to the dependency, a connection that was refused counts as none.";
    let section = Section::new("toxics", "What was wrong on the way").with_paragraph(words);
    let section = section.with_table(toxics_table(view, &names));
    Some(section.with_paragraph(proxy_overhead(view)))
}

/// The headline's sentence: `Between it and db: latency 20ms downstream.`
pub(super) fn toxics_sentence(view: &ResultView) -> Option<String> {
    let names = link_names(view).into_iter();
    let each = names.filter_map(|name| {
        let (_, link) = links(view, name).next()?;
        Some(format!("{name} ({})", link.toxics.join("; ")))
    });
    let all = join_words(each, " and ");
    (!all.is_empty()).then(|| format!("On the way to {all}, as the experiment sets it."))
}

fn link_names(view: &ResultView) -> Vec<&str> {
    let all = view.trials.iter().flat_map(|t| &t.evidence.dependencies);
    unique(all.filter(|d| d.link.is_some()).map(|d| d.name.as_str()))
}

fn links<'a>(view: &'a ResultView, name: &'a str) -> impl Iterator<Item = Seen<'a>> {
    let of = move |trial: &'a TrialRecord| {
        let mine = trial.evidence.dependencies.iter();
        let mine = mine.filter(move |dependency| dependency.name == name);
        mine.filter_map(move |dependency| Some((trial, dependency.link.as_ref()?)))
    };
    view.trials.iter().flat_map(of)
}

fn toxics_table(view: &ResultView, names: &[&str]) -> Table {
    let mut table = Table::new()
        .left("Dependency | Toxics")
        .right("Connections | Refused | Reset | Round trips | a request | Sent | Received");
    for name in names {
        let all: Vec<Seen<'_>> = links(view, name).collect();
        let sum = |of: fn(&LinkEvidence) -> u64| all.iter().map(|(_, link)| of(link)).sum::<u64>();
        let exchanges = sum(|l| l.total.exchanges);
        let requests: u64 = all.iter().map(|(trial, _)| request_count(trial)).sum();
        let each = match requests {
            0 => format::time_or(None),
            requests => format!("{:.2}", exchanges as f64 / requests as f64),
        };
        let toxics = all.first().map(|(_, link)| link.toxics.join("; "));
        let bytes = |bytes: u64| loadline_sizing::Bytes::from_bytes(bytes);
        table.add_row([
            (*name).to_owned().into(),
            toxics.unwrap_or_default().into(),
            sum(|l| l.total.opened).to_string().into(),
            sum(|l| l.total.refused).to_string().into(),
            sum(|l| l.total.reset).to_string().into(),
            exchanges.to_string().into(),
            each.into(),
            format::bytes_or(Some(bytes(sum(|l| l.total.upstream_bytes)))).into(),
            format::bytes_or(Some(bytes(sum(|l| l.total.downstream_bytes)))).into(),
        ]);
    }
    table
}

fn request_count(trial: &TrialRecord) -> u64 {
    let loads = trial.evidence.load.iter();
    let measured = loads.filter(|l| l.phase == TrialPhase::Measure);
    measured.map(|load| load.scheduled).sum()
}

pub(super) fn proxy_overhead(view: &ResultView) -> String {
    let all = || {
        view.trials
            .iter()
            .filter_map(|trial| trial.evidence.proxy.as_ref())
    };
    let busy = all().filter_map(loadline_analysis::proxy::busy_share);
    let busy = busy.fold(0.0, f64::max);
    let lag = all().map(|p| p.lag_p99).max();
    format!(
        "The proxy used {} of one CPU at most, and was {} late (p99, the largest of all trials).",
        format::as_percent(busy),
        format::time_or(lag)
    )
}
