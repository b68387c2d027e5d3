//! `loadline fleet`: which workloads of a cluster to measure first, and what became of promises.

mod declared;
mod promise;
mod text;

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::offer::Offer;
use loadline_client::Trust;
use loadline_fleet::advice::{WorkloadAdvice, advise};
use loadline_fleet::promised::PromiseCheck;
use loadline_fleet::workload::{FleetView, FleetWorkload};
use loadline_fleet::{Prometheus, PrometheusAccess, QueryWindow, ask_everything, experiment_toml};
use loadline_load::spec::{authorization, text::PositiveTime};
use loadline_report::format;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{CommandOutcome, Error};
use crate::files;
use crate::say::{one_line_json, print_text, width};

#[derive(Args)]
pub struct FleetArguments {
    /// Base URL of Prometheus, such as http://localhost:9090
    #[arg(long, value_name = "URL")]
    prometheus: String,

    /// Also read the workloads' manifests from the cluster of the kubeconfig, for requests and
    /// limits that Prometheus does not know and for the findings of `loadline lint`; only lists
    /// objects
    #[arg(long)]
    kubernetes: bool,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    context: Option<String>,

    /// How far back to look
    #[arg(long, value_name = "TIME", default_value = "7d")]
    window: String,

    /// Interval between the points searched for peaks
    #[arg(long, value_name = "TIME", default_value = "15m")]
    step: String,

    /// Time at which the window ends: 2026-11-23T12:00:00Z or seconds since 1970 [default: now]
    #[arg(long, value_name = "TIME")]
    at: Option<String>,

    /// Only this namespace; repeat the flag for more
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,

    /// Offer that sets the prices
    #[arg(long, value_name = "OFFER", default_value = "own-nodes")]
    prices: String,

    /// Number of workloads to show; --json has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,

    /// Print the experiment file (loadline.toml) for this workload: NAMESPACE/NAME
    #[arg(long, value_name = "WORKLOAD", conflicts_with_all = ["json", "measured"])]
    toml: Option<String>,

    /// Write experiment files for the --top workloads into this directory, as NAMESPACE-NAME.toml;
    /// existing files are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["toml", "json", "measured"])]
    toml_dir: Option<PathBuf>,

    /// Compare what a result promised with what production used: NAMESPACE/NAME=RESULT, where
    /// RESULT is an id or a file written by `export`; repeat the flag for more
    #[arg(long, value_name = "WORKLOAD=RESULT")]
    measured: Vec<String>,

    /// Write the output to this file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// User name and password: {env:NAME} or @FILE containing NAME:PASSWORD
    #[arg(long, value_name = "USER", conflicts_with = "bearer", help_heading = ACCESS)]
    basic: Option<String>,

    /// Token: {env:NAME} or @FILE containing it
    #[arg(long, value_name = "TOKEN", help_heading = ACCESS)]
    bearer: Option<String>,

    /// PEM file with the authorities to check an https address against
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    cacert: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long, help_heading = ACCESS)]
    insecure: bool,

    /// Longest time to wait for one answer
    #[arg(long, value_name = "TIME", default_value = "60s", help_heading = ACCESS)]
    timeout: PositiveTime,

    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

const ACCESS: &str = "Access";

/// A workload with what to do about it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RankedWorkload {
    /// What Prometheus knows.
    #[serde(flatten)]
    workload: FleetWorkload,
    /// What to do.
    advice: WorkloadAdvice,
}

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FleetDocument {
    /// Workloads, highest stakes first.
    Ranked {
        /// How far back.
        window: String,
        /// Prices: offer and their date.
        prices: String,
        /// The workloads.
        workloads: Vec<RankedWorkload>,
        /// Pods of jobs and nodes that were left out.
        left_out_pods: usize,
        /// Requests a second in series without a pod name.
        unattributed_requests_per_second: f64,
    },
    /// Promises held against production (--measured).
    Held {
        /// How far back.
        window: String,
        /// The workloads.
        workloads: Vec<PromiseCheck>,
    },
}

pub fn run(arguments: &FleetArguments) -> Result<CommandOutcome, Error> {
    let offer = Offer::built_in(&arguments.prices, None).map_err(Error::usage)?;
    let window = QueryWindow::new(&arguments.window, &arguments.step, &arguments.namespace)
        .map_err(Error::from_wrong_input)?;
    let promises = promise::read(&arguments.measured, arguments.state.as_deref())?;
    let prometheus = Prometheus::new(access(arguments)?).map_err(Error::from_wrong_input)?;
    let asked = ask_everything(&prometheus, &window)
        .map_err(|refusal| Error::environment(&refusal).with_hint(&refusal.hint))?;
    let mut fleet = asked.to_fleet();
    if fleet.workloads.is_empty() {
        return Err(no_container_error(arguments, &window));
    }
    if arguments.kubernetes {
        let declared = declared::read(arguments.context.as_deref(), &window.namespaces)?;
        let unknown = fleet.add_declared(declared);
        if unknown > 0 {
            talk!(
                "{} of the cluster unknown to Prometheus: no series in {}",
                format::count_of(unknown, "container"),
                window.length
            );
        }
    }
    if let Some(meant) = &arguments.toml {
        let workload = promise::find_workload(&fleet, meant)?;
        write_output(arguments, &experiment_toml(workload, &window))?;
        return Ok(CommandOutcome::Done);
    }
    if promises.is_empty() {
        return rank_workloads(arguments, fleet, &offer, &window);
    }
    let held = promise::hold_promises(&fleet, &promises)?;
    let drifts = held.iter().any(|h| h.drifts);
    let text = if arguments.json {
        one_line_json(&FleetDocument::Held {
            window: window.length,
            workloads: held,
        })?
    } else {
        text::promises_table(&held, width())
    };
    write_output(arguments, &text)?;
    Ok(CommandOutcome::for_slo(!drifts))
}

fn rank_workloads(
    arguments: &FleetArguments,
    fleet: FleetView,
    offer: &Offer,
    window: &QueryWindow,
) -> Result<CommandOutcome, Error> {
    let FleetView {
        workloads,
        left_out,
        unattributed,
    } = fleet;
    let mut workloads: Vec<RankedWorkload> = workloads
        .into_iter()
        .map(|workload| RankedWorkload {
            advice: advise(&workload, offer),
            workload,
        })
        .collect();
    let stake = |r: &RankedWorkload| r.advice.at_stake_per_month;
    workloads.sort_by(|a, b| stake(b).total_cmp(&stake(a)));
    if let Some(directory) = &arguments.toml_dir {
        let top = workloads.iter().take(arguments.top);
        let written = write_experiments(directory, top.map(|ranked| &ranked.workload), window)?;
        write_output(arguments, &written.join("\n"))?;
        talk!(
            "next: edit each URL and start command, then: loadline size {}",
            written.join(" ")
        );
        return Ok(CommandOutcome::Done);
    }
    let document = FleetDocument::Ranked {
        window: window.length.clone(),
        prices: format!("{} of {}", offer.name, offer.price.date),
        workloads,
        left_out_pods: left_out,
        unattributed_requests_per_second: unattributed,
    };
    let text = if arguments.json {
        one_line_json(&document)?
    } else {
        text::ranked_table(&document, arguments.top, width())
    };
    write_output(arguments, &text)?;
    Ok(CommandOutcome::Done)
}

/// The experiment files of these workloads; gives their paths.
fn write_experiments<'a>(
    directory: &Path,
    workloads: impl Iterator<Item = &'a FleetWorkload>,
    window: &QueryWindow,
) -> Result<Vec<String>, Error> {
    std::fs::create_dir_all(directory).map_err(|e| {
        let what = format!("--toml-dir: cannot make {}: {e}", directory.display());
        Error::environment(what).with_hint("name a writable directory")
    })?;
    let mut written = Vec::new();
    for workload in workloads {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = workload.name.to_string().replace(|c| !is_plain(c), "-");
        let path = directory.join(format!("{name}.toml"));
        if path.exists() {
            say!(
                "warning: {} already exists and stays unchanged",
                path.display()
            );
        } else {
            files::write(&path, &experiment_toml(workload, window))?;
        }
        written.push(path.display().to_string());
    }
    Ok(written)
}

fn access(arguments: &FleetArguments) -> Result<PrometheusAccess, Error> {
    let authorization = authorization(arguments.basic.as_deref(), arguments.bearer.as_deref())?;
    Ok(PrometheusAccess {
        url: arguments.prometheus.clone(),
        authorization,
        trust: Trust {
            cacert: arguments.cacert.clone(),
            insecure: arguments.insecure,
        },
        timeout: arguments.timeout.0,
        at: arguments.at.clone(),
    })
}

fn no_container_error(arguments: &FleetArguments, window: &QueryWindow) -> Error {
    let place = match window.namespaces.as_slice() {
        [] => String::new(),
        names => format!(" in {}", names.join(", ")),
    };
    let what = format!(
        "{} knows no running container{place}: it has no series container_memory_working_set_bytes",
        arguments.prometheus
    );
    Error::environment(what)
        .with_hint("it must scrape the kubelet's cAdvisor (/metrics/cadvisor); for a time in the past use --at")
}

fn write_output(arguments: &FleetArguments, text: &str) -> Result<(), Error> {
    match &arguments.output {
        Some(path) if !files::is_standard(path) => files::write(path, text),
        _ => print_text(text),
    }
}
