//! `loadline judge`: somebody else's numbers under the same SLO, and a manifest checked on paper.
//!
//! Every advice becomes a level of one factor, so its trials run and are stored like those of
//! `loadline run`. Without a command the manifest is only checked.

use std::path::PathBuf;

use clap::Args;
use loadline_analysis::lint::{Measured, Severity, lint};
use loadline_analysis::offer::Offer;
use loadline_analysis::price::{Size, cost};
use loadline_analysis::record::{TrialRecord, Verdict};
use loadline_analysis::sli::Sli;
use loadline_engine::advice::{self, Advice, AdviceError};
use loadline_engine::experiment::wire::LevelTable;
use loadline_engine::matrix;
use loadline_engine::plan::Plan;
use loadline_engine::store::Kind as ResultKind;
use loadline_report::format;
use loadline_report::table::{Cell, Table};
use loadline_sizing::{Bytes, Version};

use super::{OutputFlags, print, width};
use crate::error::{Error, Kind, Outcome};
use crate::experiment::{ExperimentFlags, judged};
use crate::measuring::{MeasureFlags, Measuring, open_store, store_refused};

/// Fresh starts of each advice.
const STARTS: u32 = 3;

/// Run somebody else's numbers under the same SLO
#[derive(Args)]
pub struct JudgeArguments {
    /// Kubernetes manifest to check; with a command after -- its numbers are run too
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,

    /// Advice to run: defaults, percent=75, paketo, fabric8, or a file (manifest, JSON of the
    /// Vertical Pod Autoscaler or of KRR); may be given several times
    #[arg(long, value_name = "ADVICE")]
    advice: Vec<String>,

    /// Memory limit that rules start from, and of advice that names none
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,

    /// A result of this application: its start time and memory are held against the manifest
    #[arg(long, value_name = "RESULT")]
    measured: Option<String>,

    /// Offer whose prices are shown
    #[arg(long, value_name = "OFFER", default_value = "fargate")]
    prices: String,

    /// Fresh starts of each advice [default: 3]
    #[arg(long, value_name = "N")]
    starts: Option<u32>,

    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Checks, and runs what can be run.
pub fn run(arguments: JudgeArguments) -> Result<Outcome, Error> {
    let has_command = !arguments.flags.command.is_empty() || arguments.flags.file.is_some();
    if arguments.manifest.is_none() && arguments.advice.is_empty() {
        return Err(
            Error::new(Kind::Usage, "there is nothing to judge: neither --manifest nor --advice is given")
                .hint("loadline judge --manifest deploy.yaml")
                .hint("loadline judge --advice percent=75 --memory 512Mi --slo 'p99<50ms' --rate 300/s --url http://localhost:8080/ -- java -jar app.jar"),
        );
    }
    let sound = match &arguments.manifest {
        Some(_) => check(&arguments)?,
        None => true,
    };
    if has_command {
        return trials(&arguments);
    }
    if !arguments.advice.is_empty() {
        return Err(Error::new(
            Kind::Usage,
            "advice is judged by running it, and the application's command is missing",
        )
        .hint("put it last, after --, as you would start it: -- java -jar app.jar"));
    }
    Ok(if sound {
        Outcome::Done
    } else {
        Outcome::SloMissed
    })
}

/// Prints the findings about a manifest; whether none of them is an error.
fn check(arguments: &JudgeArguments) -> Result<bool, Error> {
    let Some(path) = &arguments.manifest else {
        return Ok(true);
    };
    let containers = advice::manifest::containers(path).map_err(|e| refused(&e))?;
    let measured = measured(arguments)?;
    let mut sound = true;
    let mut lines = Vec::new();
    for container in &containers {
        let findings = lint(container, measured);
        sound &= findings.iter().all(|f| f.severity != Severity::Error);
        if findings.is_empty() {
            lines.push(format!("{}: nothing to object to", container.name));
        }
        for finding in findings {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            lines.push(format!(
                "{}: {severity}: {}\n  hint: {}",
                container.name, finding.problem, finding.hint
            ));
        }
    }
    print(&lines.join("\n"))?;
    Ok(sound)
}

/// The longest start and the highest memory use of the passing trials of a result.
fn measured(arguments: &JudgeArguments) -> Result<Measured, Error> {
    let Some(id) = &arguments.measured else {
        return Ok(Measured::default());
    };
    let store = open_store(arguments.measure.state.as_deref())?;
    let row = store.result(id).map_err(|e| store_refused(&e))?;
    let trials = store.trials(&row.id).map_err(|e| store_refused(&e))?;
    let passed = trials.iter().filter(|t| t.verdict == Verdict::Pass);
    let starts = passed.clone().filter_map(|t| t.evidence.start.ready);
    let memory = passed.filter_map(|t| t.evidence.cgroup.peak_working_set);
    Ok(Measured {
        start: starts.max(),
        memory: memory.max(),
    })
}

/// Runs every advice and prints how it did.
fn trials(arguments: &JudgeArguments) -> Result<Outcome, Error> {
    let offer = Offer::built_in(&arguments.prices, None).map_err(|e| Error::new(Kind::Usage, e))?;
    let levels = advices(arguments)?.iter().map(level).collect();
    let starts = arguments.starts.unwrap_or(STARTS);
    let given = judged(&arguments.flags, arguments.memory, levels, starts)?;
    let mut measuring = Measuring::begin(given, ResultKind::Run, &arguments.measure)?;
    let plan = Plan::new(&measuring.experiment);
    let mut progress = measuring.progress(u32::try_from(plan.trials.len()).ok());
    let records = measuring.run(&mut progress, |session| matrix::run(session, &plan))?;
    measuring.done(None)?;
    if !arguments.output.json {
        print(&table(&plan, &records, &offer))?;
    }
    super::show::print_result(&measuring.store, &measuring.result, &arguments.output)?;
    super::run::outcome(&records)
}

fn advices(arguments: &JudgeArguments) -> Result<Vec<Advice>, Error> {
    let given = advice::Given {
        cpu: arguments
            .flags
            .cpu
            .first()
            .and_then(|text| text.parse().ok()),
        memory: arguments.memory,
        jdk: jdk(),
    };
    let manifest = arguments
        .manifest
        .iter()
        .map(|path| path.display().to_string());
    let named = arguments.advice.iter().cloned().chain(manifest);
    named
        .map(|name| advice::read(&name, &given).map_err(|e| refused(&e)))
        .collect()
}

/// The JDK behind a bare `java`; rules differ by its version.
fn jdk() -> Version {
    let places = loadline_jvm::detect::Places::of_process();
    let found = loadline_jvm::detect::Found::look(&places);
    let feature = found.jdks.first().map_or(17, |jdk| jdk.version.feature);
    Version::feature(feature)
}

fn level(advice: &Advice) -> LevelTable {
    LevelTable {
        label: advice.label.clone(),
        jvm: advice.jvm.clone(),
        cpu: advice.cpu.map(|cpu| cpu.to_string()),
        memory: advice.memory.map(whole),
        ..LevelTable::default()
    }
}

/// A limit as it is written; decimal units of a manifest become whole KiB.
fn whole(memory: Bytes) -> String {
    format!("{}Ki", memory.as_bytes() / 1024)
}

/// Each advice: its verdict, what it costs, and the difference to the cheapest that passes.
fn table(plan: &Plan, records: &[TrialRecord], offer: &Offer) -> String {
    let mut table = Table::new()
        .left("advice")
        .right("CPU")
        .right("memory")
        .left("passes")
        .right("p99")
        .right("start")
        .right("$/month")
        .right("$/M requests")
        .wrapping("why it fails");
    let firsts = plan.trials.iter().filter(|t| t.repeat == 1);
    for planned in firsts {
        let own: Vec<&TrialRecord> = records
            .iter()
            .filter(|r| r.configuration == planned.configuration && r.verdict.is_evidence())
            .collect();
        let passes = own.iter().filter(|r| r.verdict == Verdict::Pass).count();
        let slis: Vec<Sli> = own.iter().filter_map(|r| Sli::of(r).ok()).collect();
        let worst_p99 = slis.iter().filter_map(|s| s.p99).max();
        let worst_start = slis.iter().filter_map(|s| s.start).max();
        let rate = slis.iter().find_map(|s| s.achieved_rate).unwrap_or(0.0);
        let c = &planned.configuration;
        let priced = c.cpu.zip(c.memory).map(|(cpu, memory)| {
            let billed = offer.next_billed(Size { cpu, memory });
            cost(&offer.price, billed, 1, rate)
        });
        let money = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
        };
        let failure = own.iter().find(|r| r.verdict != Verdict::Pass);
        table.row(
            [
                c.label.clone(),
                c.cpu.map_or_else(|| "-".to_owned(), |c| c.to_string()),
                c.memory.map_or_else(|| "-".to_owned(), |m| m.to_string()),
                format!("{passes} of {}", own.len()),
                format::time_or(worst_p99),
                format::time_or(worst_start),
                money(priced.map(|p| p.per_month), 2),
                money(priced.and_then(|p| p.per_million_requests), 4),
                failure.map_or_else(String::new, |r| r.reason.clone()),
            ]
            .map(Cell::from),
        );
    }
    format!(
        "{}\nOne instance at {} {} prices of {}, in the smallest size billed that holds it; p99 and start are the worst seen.",
        table.terminal(width()),
        offer.name,
        offer.price.region,
        offer.price.date
    )
}

fn refused(error: &AdviceError) -> Error {
    Error::new(Kind::Usage, error)
}
