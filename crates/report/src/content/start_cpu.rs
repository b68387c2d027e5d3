//! More CPU until ready, where the search was to choose it: what each amount gave.

use loadline_analysis::interval::median;
use loadline_analysis::record::Configuration;
use loadline_analysis::startup::ready_seconds;
use loadline_sizing::Cpus;

use super::groups::{self, ConfigurationGroup};
use crate::format;
use crate::view::ResultView;

/// `With 1 CPU until ready it starts in 6.1 s instead of 12.9 s (3 starts, 3 kept the SLO): shipped.`
/// `None` where nothing was tried, or the start without it was not measured.
pub fn start_cpu_sentence(view: &ResultView, answer: &Configuration) -> Option<String> {
    let groups = groups::group_trials(view);
    let boosts = |plain: &Configuration, boosted: &Configuration| {
        let start = boosted.start_cpu.filter(|_| plain.start_cpu.is_none());
        start.is_some_and(|start| groups::is_same(&plain.with_start_cpu(start), boosted))
    };
    let is_plain = |group: &&ConfigurationGroup<'_>| {
        let own = group.configuration;
        boosts(own, answer) || groups::is_same(own, answer) && own.start_cpu.is_none()
    };
    let plain = groups.iter().find(is_plain)?;
    let before = start_seconds(plain)?;
    let tried = groups.iter().filter_map(|group| {
        let start = group.configuration.start_cpu?;
        let time = start_seconds(group)?;
        let (kept, of) = group.passes();
        boosts(plain.configuration, group.configuration).then(|| tried_words(start, time, kept, of))
    });
    let tried: Vec<String> = tried.collect();
    let end = match answer.start_cpu {
        Some(start) => format!("{start} CPU is the least that halves the start, and is shipped"),
        None => "none halves the start, so none is shipped".to_owned(),
    };
    let (before, tried) = (format::measured_seconds(before), tried.join(", "));
    let sentence = || format!("It starts in {before}; {tried}: {end}.");
    (!tried.is_empty()).then(sentence)
}

fn tried_words(start: Cpus, time: f64, kept: usize, of: usize) -> String {
    format!(
        "with {start} CPU until ready in {} ({kept} of {} kept the SLO)",
        format::measured_seconds(time),
        format::count_of(of, "start"),
    )
}

fn start_seconds(group: &ConfigurationGroup<'_>) -> Option<f64> {
    let times: Vec<f64> = group.evidence_trials().filter_map(ready_seconds).collect();
    median(&times)
}
