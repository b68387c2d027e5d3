//! The columns of a table with a row for each trial, for CSV and Parquet.
//!
//! Owns names, types and values; units are in the names. A number that was not measured has no value.

use std::time::Duration;

use loadline_analysis::record::{CgroupEvidence, Configuration, ObjectiveResult, TrialRecord};
use loadline_analysis::sli::Sli;
use loadline_analysis::slo::Objective;
use loadline_sizing::{Bytes, JvmOptionSet};

use crate::content::{groups, trials};
use crate::figures::{self, TrialFigures};
use crate::view::ResultView;
use crate::{redact, text};
use ColumnValue::{Count, Failing, Number, Seconds, Size, Text};

/// How a column reads its value from a row.
pub enum ColumnValue {
    /// On one line; empty where there is none.
    Text(fn(&TrialRow) -> String),
    Count(fn(&TrialRow) -> Option<u64>),
    Size(fn(&TrialRow) -> Option<Bytes>),
    Number(fn(&TrialRow) -> Option<f64>),
    Seconds(fn(&TrialRow) -> Option<Duration>),
    /// A latency that lies in failures is infinite, also that of a trial that ended before it had
    /// one: no mean must leave it out.
    Failing(fn(&TrialRow) -> Option<Duration>),
}

impl ColumnValue {
    pub fn read_text(&self, row: &TrialRow) -> Option<String> {
        match self {
            Text(read) => Some(text::one_line(&read(row))).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    pub fn read_count(&self, row: &TrialRow) -> Option<u64> {
        match self {
            Count(read) => read(row),
            Size(read) => read(row).map(Bytes::as_bytes),
            _ => None,
        }
    }

    pub fn read_number(&self, row: &TrialRow) -> Option<f64> {
        match self {
            Number(read) => read(row).filter(|number| number.is_finite()),
            Seconds(read) => read(row).map(|time| time.as_secs_f64()),
            Failing(read) => read(row)
                .map(|time| time.as_secs_f64())
                .or(row.is_failing.then_some(f64::INFINITY)),
            _ => None,
        }
    }
}

/// A trial, and what its columns need from the whole result.
pub struct TrialRow<'a> {
    number: u64,
    trial: &'a TrialRecord,
    figures: TrialFigures,
    configuration: String,
    is_failing: bool,
}

pub fn trial_rows(view: &ResultView) -> Vec<TrialRow<'_>> {
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let names = groups::ConfigurationNames::for_result(view);
    let has_latencies = view.sends_requests();
    let rows = (1..).zip(&view.trials).map(|(number, trial)| TrialRow {
        number,
        trial,
        figures: TrialFigures::for_trial(trial, quantile),
        configuration: names.cell_name(&trial.configuration),
        is_failing: has_latencies && trial.verdict.is_evidence(),
    });
    rows.collect()
}

pub const COLUMNS: [(&str, ColumnValue); 47] = [
    ("trial", Count(|row| Some(row.number))),
    ("id", Text(|row| row.trial.id.clone())),
    (
        "purpose",
        Text(|row| trials::purpose(row.trial.purpose).to_owned()),
    ),
    ("configuration", Text(|row| row.configuration.clone())),
    ("repeat", Count(|row| Some(row.trial.repeat.into()))),
    (
        "cpu_millicpus",
        Count(|row| Some(row.trial.configuration.cpu?.as_millis().into())),
    ),
    ("memory_bytes", Size(|row| row.trial.configuration.memory)),
    (
        "heap_bytes",
        Size(|row| heap_size(&row.trial.configuration)),
    ),
    ("jdk", Text(|row| jdk_name(row.trial))),
    (
        "jvm_options",
        Text(|row| options_text(&row.trial.configuration)),
    ),
    (
        "started_unix_ms",
        Count(|row| Some(row.trial.started_at_unix_ms)),
    ),
    (
        "verdict",
        Text(|row| figures::verdict_and_cause(row.trial.verdict).0.to_owned()),
    ),
    (
        "cause",
        Text(|row| figures::verdict_and_cause(row.trial.verdict).1.to_owned()),
    ),
    ("offered_rate", Number(|row| row.sli().offered_rate)),
    ("achieved_rate", Number(|row| row.sli().achieved_rate)),
    ("errors_share", Number(|row| row.sli().error_share)),
    ("start_s", Seconds(|row| row.sli().start)),
    ("p50_s", Failing(|row| row.sli().p50)),
    ("p90_s", Failing(|row| row.sli().p90)),
    ("p99_s", Failing(|row| row.sli().p99)),
    ("p999_s", Failing(|row| row.sli().p99_9)),
    ("max_s", Failing(|row| row.sli().max)),
    ("peak_rate", Number(|row| row.peak()?.offered_rate)),
    ("peak_p99_s", Seconds(|row| row.peak()?.p99)),
    ("peak_errors_share", Number(|row| row.peak()?.error_share)),
    ("peak_memory_bytes", Size(|row| row.sli().peak_memory)),
    ("working_set_bytes", Size(|row| row.sli().peak_working_set)),
    ("anon_bytes", Size(|row| row.figures.anon)),
    ("oom_kills", Count(|row| row.cgroup().oom_kills)),
    ("file_refaults", Count(|row| row.cgroup().file_refaults)),
    ("major_faults", Count(|row| row.cgroup().major_faults)),
    ("cpus_used", Number(|row| row.sli().cpus_used)),
    (
        "throttled_periods_share",
        Number(|row| row.sli().throttled_periods_share),
    ),
    ("gc_pause_max_s", Seconds(|row| row.sli().gc_pause_max)),
    ("gc_share", Number(|row| row.sli().gc_pause_share)),
    ("start_cpu_s", Seconds(|row| row.sli().start_cpu)),
    (
        "start_throttled_s",
        Seconds(|row| row.sli().start_throttled),
    ),
    ("start_log_line_s", Seconds(|row| row.sli().start_log_line)),
    ("start_classes", Count(|row| row.sli().start_classes)),
    (
        "start_archived_share",
        Number(|row| row.sli().start_archived_share),
    ),
    ("start_rss_bytes", Size(|row| row.sli().start_rss)),
    ("start_pss_bytes", Size(|row| row.sli().start_pss)),
    (
        "time_to_performance_s",
        Seconds(|row| row.sli().time_to_performance),
    ),
    (
        "cache",
        Text(|row| {
            let cache = row.trial.evidence.cache.as_ref();
            cache.map_or_else(String::new, |cache| cache.kind.to_string())
        }),
    ),
    (
        "cache_bytes",
        Size(|row| Some(row.trial.evidence.cache.as_ref()?.archive)),
    ),
    ("metrics", Text(|row| metric_values(row.trial))),
    ("reason", Text(|row| row.trial.reason.to_string())),
];

impl TrialRow<'_> {
    fn sli(&self) -> &Sli {
        &self.figures.sli
    }

    fn peak(&self) -> Option<&Sli> {
        self.figures.peak.as_ref()
    }

    fn cgroup(&self) -> &CgroupEvidence {
        &self.trial.evidence.cgroup
    }
}

/// The JVM that the GC log names, else the one that was asked for.
fn jdk_name(trial: &TrialRecord) -> String {
    let logged = trial.evidence.gc.as_ref().and_then(|gc| gc.jdk.as_ref());
    let named = logged.or(trial.configuration.jdk.as_ref());
    named.cloned().unwrap_or_default()
}

/// `lag: max<1000 12; done: rate>5`: the objectives about metrics, and their values where they have one.
fn metric_values(trial: &TrialRecord) -> String {
    let of_metrics = trial.objectives.iter();
    let of_metrics = of_metrics.filter(|o| matches!(o.objective, Objective::Metric(_)));
    let cell = |result: &ObjectiveResult| {
        let value = result.measured.map(|value| format!(" {value}"));
        result.objective_text() + &value.unwrap_or_default()
    };
    of_metrics.map(cell).collect::<Vec<_>>().join("; ")
}

fn options_text(configuration: &Configuration) -> String {
    let options = configuration.jvm_options.iter();
    let options: Vec<String> = options.map(|option| option.text.clone()).collect();
    redact::redact_command(&options).join(" ")
}

fn heap_size(configuration: &Configuration) -> Option<Bytes> {
    JvmOptionSet::from_words(configuration.heap_option()).size_value("MaxHeapSize")
}
