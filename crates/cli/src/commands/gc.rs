//! `loadline gc FILE...`: what GC logs say, as text or JSON.
//!
//! Files of one rotated set are one log. Owns the text; the figures and the JSON form are
//! `loadline_jvm::gclog::Report`'s.

use std::fmt::Write as _;
use std::path::PathBuf;

use loadline_jvm::gclog::report::{GcReport, NamedDurations};
use loadline_jvm::gclog::{self, files};
use loadline_report::format::count_of;
use loadline_report::table::wrap;
use loadline_sizing::Bytes;

use crate::error::{CommandOutcome, Error};
use crate::files::is_standard;
use crate::output::AnswerPrinter;
use crate::say::one_line_json;

/// Stalls and concurrent phases that the text shows; a table of 26 phases hides the rest.
const ENTRIES_SHOWN: usize = 8;

#[derive(clap::Args)]
pub struct GcArgs {
    /// GC logs; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print one line of JSON for each log (docs/guides/gc-logs.md lists the fields).
    #[arg(long)]
    json: bool,
}

const STDIN: &str = "/dev/stdin";

pub fn run(args: &GcArgs, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let mut failure = None;
    let mut is_first = true;
    let standard = |path: &PathBuf| {
        if is_standard(path) {
            PathBuf::from(STDIN)
        } else {
            path.clone()
        }
    };
    let named: Vec<PathBuf> = args.files.iter().map(standard).collect();
    for group in files::group_files(&named) {
        match files::read(&group, 0) {
            Ok(log) => {
                let report = GcReport::for_log(&log, &group);
                if !is_first && !args.json {
                    out.print_answer("")?;
                }
                is_first = false;
                print_gc_report(&report, args.json, out)?;
            }
            Err(error) => failure = report_failure(failure, &error),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(CommandOutcome::Done),
    }
}

fn report_failure(earlier: Option<Error>, error: &gclog::files::GcLogError) -> Option<Error> {
    if let Some(earlier) = earlier {
        earlier.report();
    }
    let what = error.to_string().replacen(STDIN, "standard input", 1);
    Some(Error::usage(what).with_hint(error.gc_log_hint()))
}

fn print_gc_report(report: &GcReport, json: bool, out: &mut AnswerPrinter) -> Result<(), Error> {
    let text = if json {
        one_line_json(report)?
    } else {
        gc_text(report)
    };
    out.print_answer(text.trim_end())
}

fn gc_text(report: &GcReport) -> String {
    let mut out = String::new();
    let files = report.files.join(", ");
    // Writing to a String does not fail.
    let _ = writeln!(out, "{files}\n{}\n", log_summary(report));
    let _ = writeln!(out, "{}", pauses(report));
    for (name, value) in facts(report) {
        let _ = writeln!(out, "{name:<15}{value}");
    }
    if !report.findings.is_empty() {
        let _ = writeln!(out, "\nFindings");
        for finding in &report.findings {
            let _ = writeln!(out, "{}", wrap_bullet(&finding.text));
        }
    }
    out
}

/// `G1, JDK 17.0.15+6, 2 CPUs, heap 48 MiB; 12.3 s logged`.
fn log_summary(report: &GcReport) -> String {
    let generational = if report.generational {
        "generational "
    } else {
        ""
    };
    let collector = report.collector.unwrap_or("collector not named");
    let mut parts = vec![format!("{generational}{collector}")];
    parts.extend(report.jdk.as_ref().map(|jdk| format!("JDK {jdk}")));
    let cpus = report.machine.cpus_available;
    parts.extend(cpus.map(|cpus| count_of(cpus as usize, "CPU")));
    let heap = report.heap_max_bytes.map(format_size);
    parts.extend(heap.map(|heap| format!("heap up to {heap}")));
    let mut text = parts.join(", ");
    if report.logged_seconds > 0.0 {
        let _ = write!(text, "; {} logged", format_seconds(report.logged_seconds));
    }
    if report.jvm_starts > 1 {
        let _ = write!(text, ", {} JVM starts", report.jvm_starts);
    }
    text
}

fn pauses(report: &GcReport) -> String {
    let stw = &report.stw;
    let all = NamedDurations {
        kind: "Pauses".to_owned(),
        cause: stw
            .share_of_time
            .map(|share| format!("{:.2} % of the time", share * 100.0)),
        count: stw.count,
        total_seconds: stw.total_seconds,
        p50_seconds: stw.p50_seconds,
        p90_seconds: stw.p90_seconds,
        p99_seconds: stw.p99_seconds,
        max_seconds: stw.max_seconds,
    };
    let titles = ["", "count", "total", "p50", "p90", "p99", "max", "cause"];
    let mut rows = vec![titles.map(str::to_owned)];
    rows.push(entry_row("", &all));
    let kinds = by_total(&stw.by_kind).into_iter();
    rows.extend(kinds.map(|entry| entry_row("  ", entry)));
    for (title, entries) in [
        ("Stalls (threads that waited for memory)", &report.stalls),
        ("Parts of pauses", &report.phases),
        ("Concurrent phases", &report.concurrent),
    ] {
        if entries.is_empty() {
            continue;
        }
        rows.push(heading(title));
        let entries = by_total(entries);
        let shown = entries.iter().take(ENTRIES_SHOWN);
        rows.extend(shown.map(|entry| entry_row("  ", entry)));
        if entries.len() > ENTRIES_SHOWN {
            let more = entries.len() - ENTRIES_SHOWN;
            rows.push(heading(&format!("  and {more} more (--json has all)")));
        }
    }
    aligned_table(&rows)
}

fn by_total(entries: &[NamedDurations]) -> Vec<&NamedDurations> {
    let mut sorted: Vec<&NamedDurations> = entries.iter().collect();
    sorted.sort_by(|a, b| b.total_seconds.total_cmp(&a.total_seconds));
    sorted
}

fn heading(text: &str) -> [String; 8] {
    let mut row = <[String; 8]>::default();
    row[0] = text.to_owned();
    row
}

fn entry_row(indent: &str, entry: &NamedDurations) -> [String; 8] {
    [
        format!("{indent}{}", entry.kind),
        entry.count.to_string(),
        format_seconds(entry.total_seconds),
        format_seconds(entry.p50_seconds),
        format_seconds(entry.p90_seconds),
        format_seconds(entry.p99_seconds),
        format_seconds(entry.max_seconds),
        entry.cause.clone().unwrap_or_default(),
    ]
}

/// Numbers to the right, names to the left. A heading does not widen its column.
fn aligned_table(rows: &[[String; 8]]) -> String {
    let width = |column: usize| {
        let counts = |row: &&[String; 8]| column > 0 || !row[1].is_empty() || row[0].is_empty();
        let cells = rows.iter().filter(counts);
        let lengths = cells.map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = format!("{:<w$}", row[0], w = widths[0]);
        for column in 1..7 {
            let _ = write!(line, "  {:>w$}", row[column], w = widths[column]);
        }
        let _ = write!(line, "  {}", row[7]);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Name and value of facts outside the table; missing ones are left out.
fn facts(report: &GcReport) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let heap: Vec<String> = [
        ("before", report.heap_before_max_bytes),
        ("after", report.heap_after_max_bytes),
        ("after a full one", report.heap_after_full_max_bytes),
        ("committed", report.heap_committed_max_bytes),
    ]
    .into_iter()
    .filter_map(|(name, bytes)| Some(format!("{name} {}", format_size(bytes?))))
    .collect();
    if !heap.is_empty() {
        facts.push(("Heap, highest", heap.join(", ")));
    }
    if let Some(rate) = report.allocation_bytes_per_second {
        let all = format_size(report.allocated_bytes);
        let rate = format_size(rate as u64);
        facts.push(("Allocated", format!("{all}, {rate}/s")));
    }
    if let Some(cpu) = &report.gc_cpu {
        let text = format!(
            "user {}, system {} in {} of collections",
            format_seconds(cpu.user_seconds),
            format_seconds(cpu.system_seconds),
            format_seconds(cpu.real_seconds)
        );
        facts.push(("GC CPU", text));
    }
    let safepoints = &report.safepoints;
    if safepoints.count > 0 {
        let text = format!(
            "{}, total {}, longest {}; reaching them: total {}, longest {}",
            safepoints.count,
            format_seconds(safepoints.total_seconds),
            format_seconds(safepoints.max_seconds),
            format_seconds(safepoints.reaching_total_seconds),
            format_seconds(safepoints.reaching_max_seconds)
        );
        facts.push(("Safepoints", text));
    }
    let input = &report.input;
    let mut lines = format!("{} read", input.lines);
    if input.unknown_lines > 0 {
        let _ = write!(lines, ", {} of them not of a GC log", input.unknown_lines);
    }
    facts.push(("Lines", lines));
    facts
}

fn format_seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 60.0 => return format!("{s:.0} s"),
        s if s >= 0.9995 => (s, "s"),
        s if s >= 0.000_999_5 => (s * 1e3, "ms"),
        s if s > 0.0 => (s * 1e6, "us"),
        _ => return "0 s".to_owned(),
    };
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {unit}")
}

fn format_size(bytes: u64) -> String {
    let bytes = Bytes::from_bytes(bytes);
    match bytes.as_mib() {
        mib if mib >= 1024.0 => format!("{:.2} GiB", bytes.as_gib()),
        mib if mib >= 10.0 => format!("{mib:.0} MiB"),
        mib if mib >= 0.1 => format!("{mib:.1} MiB"),
        _ => format!("{} KiB", bytes.as_bytes() / 1024),
    }
}

/// A bullet, wrapped at 98 columns.
fn wrap_bullet(text: &str) -> String {
    format!("- {}", wrap(text, 96).join("\n  "))
}

#[cfg(test)]
mod tests;
