//! The data behind the charts, as JSON: what `assets/report.js` draws.
//!
//! Owns which trials and configurations get a chart and how fine. Times are seconds from the
//! trial's begin, latencies ms, memory Mi; four digits. Names are cleaned here, and the script
//! only ever sets them as text.

use loadline_analysis::latency::Latency;
use loadline_analysis::record::{Evidence, OutageEvidence, TrialPhase, TrialRecord};
use loadline_analysis::slo::Objective;
use loadline_analysis::text::join_words;
use serde::Serialize;

use crate::content::groups::{self, ConfigurationGroup, ConfigurationNames};
use crate::series::{ChartSeries, Column, round, thin};
use crate::view::ResultView;
use crate::{figures, format, text};

/// Most trials with embedded time charts; readers would not look at more.
const MOST_TRIALS: usize = 40;
/// Lines in the percentile chart; more cannot be told apart.
const MOST_LINES: usize = 8;
/// Points of a percentile line per decade of 1/(1-q).
const PER_DECADE: i32 = 10;
/// Decades of 1/(1-q): to 99.999 %.
const DECADES: i32 = 5;

#[derive(Serialize)]
pub struct Charts {
    slo: Vec<BoundLine>,
    percentile: PercentileChart,
    trials: Vec<TrialChart>,
}

#[derive(Serialize)]
struct BoundLine {
    label: String,
    ms: f64,
    x: Option<f64>,
}

#[derive(Serialize)]
struct PercentileChart {
    x: Vec<f64>,
    lines: Vec<PercentileLine>,
}

#[derive(Serialize)]
struct PercentileLine {
    name: String,
    y: Column,
}

#[derive(Serialize)]
struct TrialChart {
    name: String,
    #[serde(skip)]
    words: String,
    memory_limit: Option<f64>,
    cpu_limit: Option<f64>,
    phases: Vec<(String, f64, f64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outages: Vec<(String, f64, f64)>,
    series: ChartSeries,
}

pub fn charts(view: &ResultView) -> Charts {
    Charts {
        slo: bounds(view),
        percentile: percentile_chart(view),
        trials: courses(view),
    }
}

impl Charts {
    pub fn has_percentiles(&self) -> bool {
        !self.percentile.lines.is_empty()
    }

    pub fn has_outages(&self) -> bool {
        self.trials.iter().any(|trial| !trial.outages.is_empty())
    }

    /// What the charts of each trial show, in a sentence, in the same order.
    pub fn course_words(&self) -> impl Iterator<Item = (&str, &str)> {
        let charts = self.trials.iter();
        charts.map(|t| (t.name.as_str(), t.words.as_str()))
    }
}

fn bounds(view: &ResultView) -> Vec<BoundLine> {
    let bound = |objective: &Objective| match objective {
        Objective::Latency { quantile, bound } => Some(BoundLine {
            label: objective.to_string(),
            ms: bound.as_secs_f64() * 1e3,
            x: round(1.0 / (1.0 - quantile.as_fraction())),
        }),
        Objective::MaxLatency { bound } => Some(BoundLine {
            label: objective.to_string(),
            ms: bound.as_secs_f64() * 1e3,
            x: None,
        }),
        Objective::Errors { .. }
        | Objective::Start { .. }
        | Objective::Jvm(_)
        | Objective::Run(_)
        | Objective::Metric(_)
        | Objective::LoadPasses { .. } => None,
    };
    view.slo.objectives.iter().filter_map(bound).collect()
}

fn percentile_chart(view: &ResultView) -> PercentileChart {
    let x = (0..=DECADES * PER_DECADE).map(|i| f64::from(i) / f64::from(PER_DECADE));
    let x: Vec<f64> = x.map(|decades| 10f64.powf(decades)).collect();
    let mut groups: Vec<ConfigurationGroup<'_>> = groups::group_trials(view);
    // The recommended size, then the next smaller one, then the others as they ran.
    groups.sort_by_key(|g| rank(view, g));
    let names = ConfigurationNames::for_result(view);
    let lines = groups.iter().filter_map(|g| percentile_line(g, &x, &names));
    PercentileChart {
        lines: lines.take(MOST_LINES).collect(),
        x: x.into_iter().filter_map(round).collect(),
    }
}

fn percentile_line(
    group: &ConfigurationGroup<'_>,
    x: &[f64],
    names: &ConfigurationNames,
) -> Option<PercentileLine> {
    let trials = group.evidence_trials();
    let latencies: Vec<Latency> = trials.filter_map(figures::judged_latency).collect();
    // A quantile beyond the last request would repeat the maximum as if it had been measured.
    let finest = latencies.iter().map(Latency::scheduled).max()? as f64;
    let at = |x: f64| {
        let seen = latencies.iter();
        let seen = seen.filter_map(|l| figures::latency_at(l, 1.0 - 1.0 / x));
        // A line ends where the requests begin that failed.
        let median = figures::spread(seen)?.median.known_time()?;
        round(median.as_secs_f64() * 1e3)
    };
    let known = |x: &f64| Some(*x).filter(|x| *x <= finest).and_then(at);
    Some(PercentileLine {
        name: text::label(&names.cell_name(group.configuration)),
        y: x.iter().map(known).collect(),
    })
}

/// 0 for the recommended configuration, 1 for the next smaller one, 2 for the others.
fn rank(view: &ResultView, group: &ConfigurationGroup<'_>) -> u8 {
    if groups::is_chosen(view, group.configuration) {
        return 0;
    }
    let answer = view.recommendation.as_ref();
    let next = answer.and_then(|answer| answer.next_smaller.as_ref());
    let is_next = next.is_some_and(|n| group.trials.iter().any(|t| t.id == n.trial));
    if is_next { 1 } else { 2 }
}

fn courses(view: &ResultView) -> Vec<TrialChart> {
    let mut trials: Vec<(u8, usize, &TrialRecord)> = Vec::new();
    for group in groups::group_trials(view) {
        let rank = rank(view, &group);
        for trial in &group.trials {
            if trial.evidence.seconds.len() > 1 {
                trials.push((rank, view.trial_number(&trial.id).unwrap_or(0), trial));
            }
        }
    }
    // One trial of the recommended size, the failure of the next smaller one, then all in order.
    trials.sort_by_key(|(rank, number, _)| (*rank, *number));
    let first_of = |wanted: u8| trials.iter().position(|(rank, ..)| *rank == wanted);
    let mut order: Vec<usize> = [first_of(0), first_of(1)].into_iter().flatten().collect();
    let mut rest: Vec<usize> = (0..trials.len()).filter(|i| !order.contains(i)).collect();
    rest.sort_by_key(|&i| trials[i].1);
    order.extend(rest);
    let names = ConfigurationNames::for_result(view);
    let shown = order.into_iter().take(MOST_TRIALS).map(|i| trials[i]);
    shown
        .map(|(_, number, trial)| course(number, trial, &names))
        .collect()
}

fn outages(
    evidence: &Evidence,
    since: impl Fn(u64) -> f64,
) -> impl Iterator<Item = (String, f64, f64)> {
    let mut phases = evidence.phases.iter();
    let measured = phases.find(|p| p.phase == TrialPhase::Measure);
    let begin = measured.map(|phase| since(phase.start));
    let of = move |outage: &OutageEvidence| {
        let at = |time: std::time::Duration| Some(begin? + time.as_secs_f64());
        let name = text::label(&format!("{} {}", outage.dependency, outage.what));
        Some((name, at(outage.from)?, at(outage.to)?))
    };
    evidence.outages.iter().filter_map(of)
}

fn course(number: usize, trial: &TrialRecord, names: &ConfigurationNames) -> TrialChart {
    let evidence = &trial.evidence;
    let first_phase = evidence.phases.iter().map(|p| p.start).min();
    let first_second = evidence.seconds.first().map(|s| s.at_ns);
    let origin = first_phase.or(first_second).unwrap_or(0);
    let since = |ns: u64| ns.saturating_sub(origin) as f64 / 1e9;
    let phases = evidence.phases.iter();
    let phases = phases.map(|p| (p.phase.to_string(), since(p.start), since(p.end)));
    let configuration = &trial.configuration;
    // The series are sums over the instances, and so are the limits.
    let instances = f64::from(configuration.instances);
    let memory_limit = configuration.memory.map(|m| m.as_mib() * instances);
    let cpu_limit = configuration.cpu.map(|c| c.as_f64() * instances);
    let series = series(trial, since);
    let name = names.cell_name(configuration);
    let verdict = figures::verdict_words(trial.verdict);
    TrialChart {
        words: course_extremes(&series, memory_limit, cpu_limit),
        name: text::label(&format!("Trial {number}, {name}: {verdict}")),
        memory_limit: memory_limit.and_then(round),
        cpu_limit,
        phases: phases.collect(),
        outages: outages(evidence, since).collect(),
        series: thin(series),
    }
}

fn course_extremes(
    series: &ChartSeries,
    memory_limit: Option<f64>,
    cpu_limit: Option<f64>,
) -> String {
    let largest = |column: usize, what: &str, unit: &str, limit: Option<f64>| {
        let values = series.columns.get(column)?.iter().zip(&series.t);
        let values = values.filter_map(|(value, at)| Some(((*value)?, *at)));
        let (value, at) = values.max_by(|a, b| a.0.total_cmp(&b.0))?;
        let number = format::three_digits;
        let limit = limit.map_or_else(String::new, |l| format!(" of {}{unit}", number(l)));
        // Nothing happened at no time.
        let at = if value > 0.0 {
            format!(" at {at:.0} s")
        } else {
            String::new()
        };
        Some(format!("{what} {}{unit}{limit}{at}", number(value)))
    };
    let parts = [
        largest(1, "p99 of a second at most", " ms", None),
        largest(2, "largest latency", " ms", None),
        largest(3, "GC pauses at most", " ms in a second", None),
        largest(4, "throttled at most", " ms in a second", None),
        largest(5, "CPU at most", " CPUs", cpu_limit),
        largest(6, "memory at most", "Mi", memory_limit),
        largest(9, "threads at most", "", None),
        largest(10, "sockets at most", "", None),
    ];
    let parts = join_words(parts.into_iter().flatten(), "; ");
    if parts.is_empty() {
        "nothing was measured over time".to_owned()
    } else {
        parts
    }
}

/// Columns: p50, p99, max (ms); GC, throttled (ms in a second); CPUs; memory, working set, anon (Mi);
/// threads, sockets; heap committed, heap after collections (Mi); errors (requests in a second).
fn series(trial: &TrialRecord, since: impl Fn(u64) -> f64) -> ChartSeries {
    let seconds = &trial.evidence.seconds;
    let mut previous = None;
    let lengths = seconds.iter().map(|s| {
        let at = since(s.at_ns);
        let length = previous.map_or(1.0, |p: f64| at - p);
        previous = Some(at);
        if length > 0.0 { length } else { 1.0 }
    });
    let lengths: Vec<f64> = lengths.collect();
    let ms = |d: Option<std::time::Duration>| d.and_then(|d| round(d.as_secs_f64() * 1e3));
    let per_second = |d: Option<std::time::Duration>, i: usize| {
        d.and_then(|d| round(d.as_secs_f64() / lengths[i]))
    };
    let mib = |b: Option<loadline_sizing::Bytes>| b.and_then(|b| round(b.as_mib()));
    let count = |number: Option<u64>| number.map(|number| number as f64);
    let column = |read: &dyn Fn(usize) -> Option<f64>| (0..seconds.len()).map(read).collect();
    let times = seconds
        .iter()
        .map(|s| (since(s.at_ns) * 100.0).round() / 100.0);
    ChartSeries {
        t: times.collect(),
        columns: vec![
            column(&|i| ms(seconds[i].p50)),
            column(&|i| ms(seconds[i].p99)),
            column(&|i| ms(seconds[i].max)),
            column(&|i| per_second(seconds[i].gc_pause, i).and_then(|s| round(s * 1e3))),
            column(&|i| per_second(seconds[i].throttled, i).and_then(|s| round(s * 1e3))),
            column(&|i| per_second(seconds[i].cpu, i)),
            column(&|i| mib(seconds[i].memory)),
            column(&|i| mib(seconds[i].working_set)),
            column(&|i| mib(seconds[i].anon)),
            column(&|i| count(seconds[i].threads)),
            column(&|i| count(seconds[i].sockets)),
            column(&|i| mib(seconds[i].heap_committed)),
            column(&|i| mib(seconds[i].heap_after)),
            column(&|i| count(seconds[i].errors)),
        ],
    }
}
