//! `loadline list`, `export`, `report`: the store and its output formats.

pub mod clean;
mod filter;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use loadline_analysis::recommend::Conclusion;
use loadline_report::ResultView;
use loadline_report::format::count_of;
use loadline_report::table::Table;
use loadline_runner::store::{AwayLocation, ResultKind, ResultRow, ResultStatus, unix_ms};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{CommandOutcome, Error};
use crate::files;
use crate::measuring::open_store_to_read;
use crate::output::AnswerPrinter;
use crate::result::ResultFlags;
use crate::say::{one_line_json, print_data, width};
use crate::today::TodayFlags;
use crate::ui::text::short;

#[derive(Args)]
pub struct ListArguments {
    #[command(flatten)]
    filter: filter::ResultFilter,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The results, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultList {
    /// Version of this form.
    schema: u32,
    /// Every result that fits the flags, in the order of the text.
    results: Vec<ListedRow>,
}

/// One result.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedRow {
    /// UUIDv7.
    id: String,
    /// Which command made it.
    kind: ResultKind,
    /// Short name people gave it.
    title: String,
    /// Where it stands here.
    status: ResultStatus,
    /// Where loadline measures it, when that is in a cluster: `status` is then the fetched one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<AwayLocation>,
    /// Trials it has.
    trials: u64,
    /// When it was begun, milliseconds since 1970-01-01 UTC.
    created_unix_ms: u64,
    /// What a search found; left out where it found nothing, or has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<ListedAnswer>,
}

/// The answer of a search.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedAnswer {
    /// As the text list has it.
    words: String,
    /// The memory limit.
    memory_bytes: u64,
    /// The CPU limit; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_millicpus: Option<u32>,
    /// The CPU request; left out where it is the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_request_millicpus: Option<u32>,
    /// Fresh starts at this size.
    starts: u64,
    /// Of them, those that kept the SLO.
    passes: u64,
    /// Whether they are enough.
    is_proven: bool,
}

impl ListedAnswer {
    fn from_row(row: &ResultRow) -> Option<Self> {
        let Some(Conclusion::Answer(answer)) = conclusion(row) else {
            return None;
        };
        Some(Self {
            words: answer_words(row),
            memory_bytes: answer.recommended_memory().as_bytes(),
            cpu_millicpus: answer.configuration.cpu.map(|cpu| cpu.as_millis()),
            cpu_request_millicpus: answer.configuration.cpu_request.map(|cpu| cpu.as_millis()),
            starts: answer.proof.starts,
            passes: answer.proof.passes,
            is_proven: answer.is_proven(),
        })
    }
}

impl ResultList {
    fn from_rows(rows: Vec<(ResultRow, Option<AwayLocation>)>) -> Self {
        let row = |(r, cluster): (ResultRow, _)| ListedRow {
            answer: ListedAnswer::from_row(&r),
            id: r.id,
            kind: r.kind,
            title: r.title,
            status: r.status,
            cluster,
            trials: r.trials,
            created_unix_ms: r.created_unix_ms,
        };
        Self {
            schema: 1,
            results: rows.into_iter().map(row).collect(),
        }
    }
}

pub fn list_results(
    arguments: ListArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let store = open_store_to_read(arguments.state.as_deref())?;
    let mut rows = store.all_results()?;
    let left_out = store.unreadable_results()?;
    if left_out > 0 {
        let results = count_of(left_out, "result");
        say!("left out: {results} from another version of loadline");
    }
    let (all, now) = (rows.len(), unix_ms());
    rows.retain(|row| arguments.filter.fits(row, now));
    if rows.is_empty() && all > 0 {
        let place = store.state_directory().display();
        talk!("no result in {place} matches these flags; without them there are {all}");
    }
    let rows = rows.into_iter().map(|row| {
        let away = store.away_location(&row.id)?;
        Ok((row, away))
    });
    let rows: Vec<_> = rows.collect::<Result<_, Error>>()?;
    if arguments.json {
        out.print_answer(&one_line_json(&ResultList::from_rows(rows))?)?;
        return Ok(CommandOutcome::Done);
    }
    if all == 0 {
        talk!("no results in {}", store.state_directory().display());
    }
    if rows.is_empty() {
        return Ok(CommandOutcome::Done);
    }
    let mut table = Table::new()
        .left("result | begun | kind | title | status")
        .right("trials")
        .wrapping("answer");
    for (row, away) in &rows {
        table.add_texts([
            short(&row.id),
            &loadline_report::format::date(row.created_unix_ms),
            row.kind.command_name(),
            &row.title,
            away.as_ref()
                .map_or(row.status.status_word(), |_| "in a cluster"),
            &row.trials.to_string(),
            &answer_words(row),
        ]);
    }
    out.print_answer(&table.to_terminal(width()))?;
    Ok(CommandOutcome::Done)
}

pub fn answer_words(row: &ResultRow) -> String {
    match conclusion(row) {
        Some(Conclusion::Answer(r)) => {
            let heap = r.heap_words();
            let heap = heap.map_or_else(String::new, |heap| format!(" with {heap}"));
            let trend = r.live_set_trend.map_or("", |_| ", its live set grows");
            let (size, proof) = (r.recommended_memory(), &r.proof);
            let (passes, starts) = (proof.passes, proof.starts);
            format!("{size}{heap}, {passes} of {starts} starts{trend}")
        }
        Some(Conclusion::NoAnswer(_)) | None => String::new(),
    }
}

fn conclusion(row: &ResultRow) -> Option<Conclusion> {
    // A recommendation that cannot be read is an error where it is shown, not in a list.
    serde_json::from_str(row.outcome.as_deref()?).ok()
}

/// What `export` writes.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ExportFormat {
    /// Everything: the records as they are
    Json,
    /// One row per trial
    Csv,
    /// CSV with one row per second of each trial
    Seconds,
    /// One trial per line
    Jsonl,
    /// For continuous integration: one test case per configuration
    Junit,
    /// For a pull request
    Markdown,
    /// Gauges, for a textfile collector or a push gateway
    Openmetrics,
    /// One row per trial, with types: for data frames
    Parquet,
}

#[derive(Args)]
pub struct ExportArguments {
    #[command(flatten)]
    result: ResultFlags,
    /// Output format [default: by the file's name (.csv, .jsonl, .md, .xml, .prom, .parquet), else json]
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// Only this section of the Markdown, such as `sizes`
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    /// File to write, compressed with gzip if its name ends in .gz [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn export(arguments: ExportArguments) -> Result<CommandOutcome, Error> {
    if let Some(path) = &arguments.output {
        let known = "write CSV, which a spreadsheet opens: -o FILE.csv";
        refuse_ending(path, &FOREIGN, known)?;
        let html = "loadline report RESULT -o FILE.html writes one";
        refuse_ending(path, &["htm", "html"], html)?;
    }
    let view = arguments.result.read_view()?;
    let by_name = || form_by_name(arguments.output.as_deref());
    let format = arguments.format.unwrap_or_else(by_name);
    let text = match format {
        ExportFormat::Markdown if arguments.section.is_some() => {
            report_section(&view, arguments.section.as_deref().unwrap_or_default())?
        }
        _ if arguments.section.is_some() => {
            let refusal = "--section is for Markdown only";
            return Err(Error::usage(refusal).with_hint("add --format markdown"));
        }
        ExportFormat::Json => loadline_report::render_json(&view),
        ExportFormat::Csv => loadline_report::render_csv(&view),
        ExportFormat::Seconds => loadline_report::render_seconds(&view),
        ExportFormat::Jsonl => loadline_report::render_json_lines(&view),
        ExportFormat::Junit => loadline_report::render_junit(&view),
        ExportFormat::Markdown => loadline_report::render_markdown(&view),
        ExportFormat::Openmetrics => {
            loadline_report::render_openmetrics(std::slice::from_ref(&view))
        }
        ExportFormat::Parquet => return export_table(&view, arguments.output.as_deref()),
    };
    match &arguments.output {
        Some(path) => files::write(path, &text)?,
        None => print_data(&text)?,
    }
    Ok(CommandOutcome::Done)
}

/// Readers of Parquet seek, and a terminal shows none of its bytes: it goes to a file.
fn export_table(view: &ResultView, path: Option<&Path>) -> Result<CommandOutcome, Error> {
    let Some(path) = path.filter(|path| !files::is_standard(path)) else {
        let what = "--format parquet cannot go to standard output";
        return Err(Error::usage(what).with_hint("name a file: -o trials.parquet"));
    };
    let table = loadline_report::render_parquet(view).map_err(Error::internal)?;
    files::write_bytes(path, &table)?;
    Ok(CommandOutcome::Done)
}

/// Forms that no command writes.
const FOREIGN: [&str; 6] = ["doc", "docx", "odt", "pdf", "xls", "xlsx"];

/// Endings of what `export` writes, and the report does not.
const EXPORTED: [&str; 7] = ["csv", "json", "jsonl", "md", "parquet", "prom", "xml"];

fn refuse_ending(path: &Path, endings: &[&str], hint: &str) -> Result<(), Error> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let found = endings.iter().find(|known| ending == Some(**known));
    let Some(ending) = found else {
        return Ok(());
    };
    let path = path.display();
    let problem = format!("--output {path}: this command writes no .{ending}");
    Err(Error::usage(problem).with_hint(hint))
}

/// `x.csv` and `x.csv.gz` are CSV.
fn form_by_name(path: Option<&Path>) -> ExportFormat {
    let name = path.and_then(Path::file_name);
    let name = name.map_or_else(String::new, |name| name.to_string_lossy().to_lowercase());
    match name.trim_end_matches(".gz").rsplit('.').next() {
        Some("csv") => ExportFormat::Csv,
        Some("jsonl" | "ndjson") => ExportFormat::Jsonl,
        Some("md" | "markdown") => ExportFormat::Markdown,
        Some("xml") => ExportFormat::Junit,
        Some("prom") => ExportFormat::Openmetrics,
        Some("parquet") => ExportFormat::Parquet,
        _ => ExportFormat::Json,
    }
}

fn report_section(view: &ResultView, name: &str) -> Result<String, Error> {
    loadline_report::markdown_section(view, name).map_err(|there| {
        Error::usage(format!("the report has no section `{name}`"))
            .with_hint(format!("it has {}", there.join(", ")))
    })
}

#[derive(Args)]
pub struct ReportArguments {
    #[command(flatten)]
    result: ResultFlags,
    #[command(flatten)]
    today: TodayFlags,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// For e-mail: no script, no records, every section open
    #[arg(long)]
    mail: bool,
}

pub fn write_report(arguments: ReportArguments) -> Result<CommandOutcome, Error> {
    let foreign = "it writes one HTML file, which a browser prints as PDF: -o report.html";
    refuse_ending(&arguments.output, &FOREIGN, foreign)?;
    let exported = "loadline export RESULT -o FILE writes CSV, JSON, Markdown, Parquet, OpenMetrics and JUnit XML";
    refuse_ending(&arguments.output, &EXPORTED, exported)?;
    let mut view = arguments.result.read_view()?;
    arguments.today.tell_today(&mut view)?;
    let html = if arguments.mail {
        loadline_report::render_mail(&view)
    } else {
        loadline_report::render_html(&view)
    };
    files::write(&arguments.output, &html)?;
    if !files::is_standard(&arguments.output) {
        talk!("report: {}", arguments.output.display());
    }
    Ok(CommandOutcome::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_a_cluster_measures_is_listed_with_its_place() {
        let row = ResultRow {
            id: "01".to_owned(),
            kind: ResultKind::Size,
            title: "orders".to_owned(),
            created_unix_ms: 1,
            experiment: String::new(),
            directory: PathBuf::new(),
            command: Vec::new(),
            machine: Default::default(),
            status: ResultStatus::Interrupted,
            outcome: None,
            trials: 3,
        };
        let away = AwayLocation {
            context: "prod".to_owned(),
            namespace: "sizing".to_owned(),
        };
        let listed = ResultList::from_rows(vec![(row.clone(), Some(away)), (row, None)]);
        let listed = serde_json::to_value(listed).expect("it is JSON");
        let place = serde_json::json!({"context": "prod", "namespace": "sizing"});
        assert_eq!(listed["results"][0]["cluster"], place);
        assert!(listed["results"][1].get("cluster").is_none());
    }
}
