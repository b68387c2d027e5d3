//! The JSON form of a log's summary: `loadline gc --json`.
//!
//! Owns the schema (documented in docs/guides/gc-logs.md): times in seconds, sizes in bytes, the
//! unit in the name; `null` is what the log does not say. Fields are added, never changed, within
//! one `schema`.

use schemars::JsonSchema;
use serde::Serialize;

use super::event::GcCpuTimes;
use super::findings::{self, GcFinding};
use super::header::JvmMachine;
use super::log::{GcLog, GcLogInput};
use super::names::PauseName;
use super::summary::ByName;
use super::tally::DurationTally;

const SCHEMA: u32 = 1;

/// The summary of one log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GcReport {
    pub schema: u32,
    pub files: Vec<String>,
    pub collector: Option<&'static str>,
    pub generational: bool,
    pub jdk: Option<String>,
    pub jvm_starts: u64,
    pub logged_seconds: f64,
    pub stw: StopTheWorld,
    pub heap_before_max_bytes: Option<u64>,
    pub heap_after_max_bytes: Option<u64>,
    pub heap_after_full_max_bytes: Option<u64>,
    pub heap_committed_max_bytes: Option<u64>,
    pub heap_max_bytes: Option<u64>,
    pub allocated_bytes: u64,
    pub allocation_bytes_per_second: Option<f64>,
    pub gc_cpu: Option<GcCpu>,
    pub safepoints: SafepointSummary,
    pub stalls: Vec<NamedDurations>,
    pub phases: Vec<NamedDurations>,
    pub concurrent: Vec<NamedDurations>,
    pub machine: JvmMachine,
    pub findings: Vec<GcFinding>,
    pub input: InputReport,
}

/// Stop-the-world pauses of the collector.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StopTheWorld {
    pub count: u64,
    pub full_count: u64,
    pub total_seconds: f64,
    pub max_seconds: f64,
    pub p50_seconds: f64,
    pub p90_seconds: f64,
    pub p99_seconds: f64,
    pub share_of_time: Option<f64>,
    pub by_kind: Vec<NamedDurations>,
}

/// Durations of one name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NamedDurations {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    pub count: u64,
    pub total_seconds: f64,
    pub p50_seconds: f64,
    pub p90_seconds: f64,
    pub p99_seconds: f64,
    pub max_seconds: f64,
}

/// CPU time of collections, where the log has it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GcCpu {
    pub collections: u64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub real_seconds: f64,
}

/// Safepoints of all operations, collections among them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SafepointSummary {
    pub count: u64,
    pub total_seconds: f64,
    pub max_seconds: f64,
    pub reaching_total_seconds: f64,
    pub reaching_max_seconds: f64,
    pub by_operation: Vec<NamedDurations>,
}

/// Lines read and data missing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InputReport {
    pub complete: bool,
    pub bytes: u64,
    pub lines: u64,
    pub gc_lines: u64,
    pub other_lines: u64,
    pub unknown_lines: u64,
    pub too_long_lines: u64,
    pub dropped_lines: u64,
    pub missing_collections: u64,
    pub first_collection: Option<u64>,
    pub unfinished_pauses: u64,
    pub last_line_cut: bool,
    pub stopped: Option<String>,
}

impl GcReport {
    pub fn for_log(log: &GcLog, files: &[std::path::PathBuf]) -> Self {
        let summary = &log.summary;
        let header = &log.header;
        let files = files.iter().map(|file| file.display().to_string());
        Self {
            schema: SCHEMA,
            files: files.collect(),
            collector: header.collector.map(|kind| kind.collector_name()),
            generational: header.is_generational,
            jdk: header.jvm_description(),
            jvm_starts: summary.jvm_starts,
            logged_seconds: summary.logged.as_secs_f64(),
            stw: stop_the_world(log),
            heap_before_max_bytes: summary.heap_before_max,
            heap_after_max_bytes: summary.heap_after_max,
            heap_after_full_max_bytes: summary.heap_after_full_max,
            heap_committed_max_bytes: summary.heap_committed_max,
            heap_max_bytes: header.heap_max_bytes,
            allocated_bytes: summary.allocated,
            allocation_bytes_per_second: summary.allocation_rate(),
            gc_cpu: (summary.cpu_count > 0).then(|| gc_cpu(summary.cpu_count, summary.cpu)),
            safepoints: safepoints(log),
            stalls: entries(&summary.stalls),
            phases: entries(&summary.phases),
            concurrent: entries(&summary.concurrent),
            machine: header.machine.clone(),
            findings: findings::all_findings(log),
            input: input(&log.input),
        }
    }
}

fn stop_the_world(log: &GcLog) -> StopTheWorld {
    let summary = &log.summary;
    let all = NamedDurations::from_tally("", None, &summary.stw);
    let kind = |name: &PauseName, tally| {
        NamedDurations::from_tally(&name.kind, name.cause.as_deref(), tally)
    };
    let by_name = summary.by_name.iter();
    StopTheWorld {
        count: all.count,
        full_count: summary.full,
        total_seconds: all.total_seconds,
        max_seconds: all.max_seconds,
        p50_seconds: all.p50_seconds,
        p90_seconds: all.p90_seconds,
        p99_seconds: all.p99_seconds,
        share_of_time: summary.paused_share(),
        by_kind: by_name.map(|(name, tally)| kind(name, tally)).collect(),
    }
}

impl NamedDurations {
    fn from_tally(kind: &str, cause: Option<&str>, tally: &DurationTally) -> Self {
        Self {
            kind: kind.to_owned(),
            cause: cause.map(str::to_owned),
            count: tally.count,
            total_seconds: tally.total.as_secs_f64(),
            p50_seconds: tally.quantile(0.50).as_secs_f64(),
            p90_seconds: tally.quantile(0.90).as_secs_f64(),
            p99_seconds: tally.quantile(0.99).as_secs_f64(),
            max_seconds: tally.max.as_secs_f64(),
        }
    }
}

fn entries(by_name: &ByName) -> Vec<NamedDurations> {
    let entries = by_name.iter();
    entries
        .map(|(name, tally)| NamedDurations::from_tally(name, None, tally))
        .collect()
}

fn gc_cpu(collections: u64, cpu: GcCpuTimes) -> GcCpu {
    GcCpu {
        collections,
        user_seconds: cpu.user.as_secs_f64(),
        system_seconds: cpu.system.as_secs_f64(),
        real_seconds: cpu.real.as_secs_f64(),
    }
}

fn safepoints(log: &GcLog) -> SafepointSummary {
    let all = log.summary.safepoints.merged_tally();
    let reaching = &log.summary.reaching;
    SafepointSummary {
        count: all.count,
        total_seconds: all.total.as_secs_f64(),
        max_seconds: all.max.as_secs_f64(),
        reaching_total_seconds: reaching.total.as_secs_f64(),
        reaching_max_seconds: reaching.max.as_secs_f64(),
        by_operation: entries(&log.summary.safepoints),
    }
}

fn input(input: &GcLogInput) -> InputReport {
    InputReport {
        complete: input.is_complete(),
        bytes: input.counts.bytes,
        lines: input.counts.lines,
        gc_lines: input.gc_lines,
        other_lines: input.other_lines,
        unknown_lines: input.unknown_lines,
        too_long_lines: input.counts.too_long,
        dropped_lines: input.dropped_lines,
        missing_collections: input.missing_collections,
        first_collection: input.first_collection,
        unfinished_pauses: input.unfinished_pauses,
        last_line_cut: input.counts.is_cut,
        stopped: input.stopped.clone(),
    }
}
