//! `loadline load`: the load generator alone, against a URL the user names.

mod files;
mod max_rate;
mod texts;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use loadline_analysis::slo::Slo;
use loadline_load::spec::text::{PositiveTime, TimeOrNone};
use loadline_load::summary::{LoadSummary, live_line};
use loadline_load::warmup::WarmUpStudy;
use loadline_load::{LoadError, LoadPart, LoadPlan, LoadSpec, LoadTarget, clock_ns, run};

use self::files::LoadFiles;
use self::texts::{CpuList, parse_cpus};
use crate::error::{CommandOutcome, Error};
use crate::grpc;
use crate::load_flags::{LoadFlags, report_bodiless};
use crate::output::AnswerPrinter;
use crate::say::{columns, write_stderr};
use crate::signals::Signals;

/// Arguments of `loadline load`.
#[derive(Args)]
pub struct LoadArguments {
    /// Where to send requests, such as http://localhost:8080/owners. Several instances of one
    /// service get equal shares of the connections; path and host name come from the first
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Search for the highest rate that keeps the SLO
    #[arg(long, conflicts_with_all = ["rate", "closed", "requests", "part", "scale", "speed",
          "warm_up", "out", "hgrm", "hlog", "csv"])]
    max_rate: bool,
    /// SLO of the search, such as p99<20ms; repeat the flag to find a rate for each [default: p99
    /// below 10, 25, 50, 75 and 100 ms]
    #[arg(long, requires = "max_rate")]
    slo: Vec<Slo>,
    /// Decide each rate of the search by a majority of five trials
    #[arg(long, requires = "max_rate")]
    strict: bool,
    /// After the search, measure latencies at this many equal steps up to the rate found: 100 is a
    /// step for each 1 %
    #[arg(long, requires = "max_rate", value_parser = clap::value_parser!(u32).range(1..=100))]
    curve: Option<u32>,
    #[command(flatten)]
    load: LoadFlags,
    /// CPUs for the generator, one thread on each, such as 1 or 2-3,6
    #[arg(long, value_parser = parse_cpus)]
    cpus: Option<CpuList>,
    /// Seed for everything random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Send only this part of the load, such as 0/4; `loadline merge` combines the results of all
    /// parts
    #[arg(long, value_parser = texts::parse_part, default_value = "0/1")]
    part: LoadPart,
    /// Time to begin (seconds since 1970), so that all parts begin together
    #[arg(long)]
    start_at: Option<f64>,
    /// Write the whole result, histograms included, to this file
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the latency distribution to this file (.hgrm, ms)
    #[arg(long)]
    hgrm: Option<PathBuf>,
    /// Write a latency histogram for each second to this file (.hlog, ns; the warm-up is tagged)
    #[arg(long)]
    hlog: Option<PathBuf>,
    /// Write the figures for each second to this file
    #[arg(long)]
    csv: Option<PathBuf>,
}

pub fn run_load(
    arguments: &LoadArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let plan = plan_load(arguments)?;
    let signals = Signals::watch_signals()?;
    if arguments.max_rate {
        return max_rate::run(arguments, &plan, &signals, out);
    }
    // A plan that cannot be run leaves the files of the last one alone.
    plan.check_plan()?;
    let mut files = LoadFiles::create_all(arguments)?;
    let is_watched = std::io::stderr().is_terminal() && !crate::say::is_quiet();
    let mut study = WarmUpStudy::new(&plan);
    let outcome = run(&plan, signals.flag(), &mut |second| {
        study.add_second(second);
        if is_watched {
            let line = live_line(second.index, &second.totals);
            write_stderr(format_args!("\r\x1b[K{}", in_one_line(&line)));
        }
        files.write_second(second);
    })?;
    if is_watched {
        write_stderr(format_args!("\r\x1b[K"));
    }
    let url = arguments.urls.join(" ");
    let written = files.write_end(&plan, &outcome, &url);
    let mut summary = LoadSummary::new(&plan, &outcome, &url);
    summary.warm_up = study.judge_warm_up();
    let judged = print_summary(arguments.json, &summary, out);
    written?;
    if signals.has_come() {
        return Err(interrupted_error(&signals));
    }
    judged
}

/// Cut to the terminal's width: of a wrapped line only the last part would be erased.
fn in_one_line(line: &str) -> &str {
    let columns = columns(std::io::stderr()).unwrap_or(80);
    // The last column stays free: some terminals wrap as soon as it is written.
    let end = line.char_indices().nth(columns.saturating_sub(1));
    end.map_or(line, |(end, _)| &line[..end])
}

fn interrupted_error(signals: &Signals) -> Error {
    Error::new(signals.interrupt_kind(), "interrupted")
        .with_hint("the result covers the time until then")
}

pub(super) fn print_summary(
    as_json: bool,
    summary: &LoadSummary,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    out.print_answer(&if as_json {
        pretty_json(summary)?
    } else {
        summary.to_string()
    })?;
    match &summary.saturated {
        // A closed model asks how fast it goes: the generator's limit is an answer too, and the
        // summary shows it.
        Some(reason) if summary.offered_rate.is_some() => Err(Error::invalid(format!(
            "the generator was itself the bottleneck: {reason}"
        ))
        .with_hint("reserve CPUs for it with --cpus, or lower the rate")),
        _ => Ok(CommandOutcome::Done),
    }
}

fn pretty_json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Error::internal(format!("the result as JSON: {e}")))
}

fn targets(urls: &[String]) -> Result<Vec<LoadTarget>, LoadError> {
    let targets = urls.iter().map(|url| url.parse());
    let targets = targets.collect::<Result<Vec<LoadTarget>, _>>()?;
    let first = &targets[0];
    for (target, url) in targets.iter().zip(urls) {
        let is_same_path = target.path == first.path || target.path == "/";
        if target.is_tls != first.is_tls || !is_same_path {
            return Err(LoadError::Plan {
                field: "URL",
                why: format!(
                    "`{url}` is not another instance of `{}`: scheme and path must match; for \
                     several paths use --profile",
                    urls[0]
                ),
            });
        }
    }
    Ok(targets)
}

fn plan_load(arguments: &LoadArguments) -> Result<LoadPlan, Error> {
    let targets = targets(&arguments.urls)?;
    let load = spec(arguments, targets[0].clone())?;
    // Wrong flags are reported before any address is resolved.
    let addresses = targets.iter().map(LoadTarget::resolve_address);
    let addresses = addresses.collect::<Result<Vec<SocketAddr>, _>>();
    let plan = load.to_plan(addresses?)?;
    Ok(LoadPlan {
        cpus: arguments.cpus.clone().unwrap_or_default().0,
        seed: arguments.seed,
        part: arguments.part,
        start_ns: arguments.start_at.map(monotonic),
        ..plan
    }
    .after_warm_up(load.warm_up()))
}

/// The load from the flags; a running target needs no warm-up.
fn spec(arguments: &LoadArguments, target: LoadTarget) -> Result<LoadSpec, Error> {
    let mut load = LoadSpec {
        url: Some(target),
        ..LoadSpec::default()
    };
    arguments.load.overlay(&mut load);
    load.resolve_files(Path::new(""))?;
    grpc::encode_calls(&mut load)?;
    if arguments.max_rate {
        // The search makes its own models; the closed one is its probe.
        load.closed = Some(true);
        load.poisson = None;
    }
    if load.replayed_profile().is_none() && load.requests.is_none() {
        load.duration.get_or_insert(DURATION);
    }
    load.warm_up.get_or_insert(TimeOrNone(Duration::ZERO));
    load.check_spec()?;
    load.loaded_profile().into_iter().for_each(report_bodiless);
    Ok(load)
}

fn monotonic(unix_seconds: f64) -> u64 {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ahead = unix_seconds - wall.unwrap_or_default().as_secs_f64();
    clock_ns() + (ahead.max(0.0) * 1e9) as u64
}

const DURATION: PositiveTime = PositiveTime(Duration::from_secs(30));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_instances_have_the_same_scheme_and_path() {
        for other in ["https://b/x", "http://b/y"] {
            let urls = ["http://a/x".to_owned(), other.to_owned()];
            let refused = targets(&urls).expect_err(other).to_string();
            assert!(refused.contains(other), "{refused}");
        }
    }
}
