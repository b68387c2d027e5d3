//! From texts to types: every value of an experiment file checked, each refusal with its place.
//!
//! Owns the defaults and the ranges; they stand in the constants below.

mod application;
mod burst;
mod cache;
mod client;
pub(super) mod image;
mod instances;
mod sampling;

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::record::{CPU_PERIOD, Configuration, CpuSets};
use loadline_analysis::slo::{Slo, parse_duration};
use loadline_sizing::{Bytes, Cpus};

use super::dependency;
use super::enough;
use super::error::Source;
use super::level::Change;
use super::load::{Load, load};
use super::outage;
use super::said::{Said, Text};
use super::search::search;
use super::wire::{
    AppTable, ExperimentFile, FactorTable, LevelEntry, LevelTable, LimitsTable, ReadyTable,
};
use super::{App, Cluster, Experiment, ExperimentError, Factor, Level};
use loadline_trial::{Account, Network, Readiness};

const START_DEADLINE: Duration = Duration::from_secs(60);
/// An orderly end takes a tenth of a second. What takes longer thrashes, and nothing of it is
/// measured any more: in a search with ten such trials a grace of 10 s was a minute and a half.
const STOP_GRACE: Duration = Duration::from_secs(3);
const PIDS: u64 = 4096;
const DAY: Duration = Duration::from_secs(86_400);
/// The kernel takes quotas of 1 ms and periods of 1 ms to 1 s (Documentation/scheduler/sched-bwc.rst).
const PERIOD_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

pub(super) type Checked<T> = Result<T, ExperimentError>;

impl Experiment {
    /// Checks a file's texts.
    pub(super) fn resolve(file: &ExperimentFile, source: &Source<'_>) -> Checked<Self> {
        let slo = source.parse::<Slo>(&file.slo, "for example p99<50ms,errors<0.1%")?;
        let load = load(&file.load, source)?;
        named_requests(&slo, &load, file, source)?;
        let app = app(&file.app, &load, source)?;
        let base = base(&file.limits, source)?;
        let factors = file
            .factor
            .iter()
            .map(|f| factor(f, source))
            .collect::<Checked<Vec<_>>>()?;
        let load = enough::lengthened(load, &slo, file, &factors, source)?;
        if !(file.configuration.is_empty() || factors.is_empty()) {
            let problem = "configurations are listed, and factors say what is varied";
            let hint = "leave out one of them: [[configuration]] or [[factor]]";
            return Err(source.whole(problem, hint));
        }
        let repeats = file.run.repeats.as_ref();
        let search = search(&file.search, &file.limits, &load.model, &factors, source)?;
        let (mut dependencies, mut stubs) = dependency::dependencies(file, source)?;
        outage::add(file, &mut dependencies, &mut stubs, source)?;
        let experiment = Self {
            question: file.question.clone(),
            analysis: file.analysis.clone(),
            version: application::version(&file.app, source)?,
            app,
            cluster: file.kubernetes.as_ref().map(Cluster::from),
            dependencies,
            stubs,
            load,
            slo,
            base,
            level_images: Vec::new(),
            factors,
            listed: file.configuration.clone(),
            repeats: source.in_range(repeats, 1, 1..1001, "repeats")?,
            slots: slots(file, source)?,
            seed: file.run.seed.unwrap_or(1),
            accept_noise: file.run.accept_noise.unwrap_or(false),
            sampling: sampling::sampling(file.run.samples.as_ref(), source)?,
            search,
            training: cache::training(&file.cache, source)?,
        };
        let experiment = experiment.with_level_images();
        instances::check(&experiment, source)?;
        burst::check(&experiment, source)?;
        dependency::check(&experiment, source)?;
        image::check(&experiment, source)?;
        outage::check(&experiment, source)?;
        Ok(experiment)
    }
}

/// Trials at once on this machine.
fn slots(file: &ExperimentFile, source: &Source<'_>) -> Checked<u32> {
    let said = file.run.slots.as_ref();
    if let (Some(slots), Some(_)) = (said, &file.kubernetes) {
        let problem = "trials at once on this machine, and the experiment runs in a cluster";
        let hint = "write kubernetes.slots in place of run.slots";
        return Err(source.at(slots.origin(), problem, hint));
    }
    if let (Some(slots), Some(_)) = (said, &file.search.prices) {
        let problem = "trials at once, and prices are compared by the rate that one trial carries";
        let hint = "leave slots out: with prices one trial runs after the other";
        return Err(source.at(slots.origin(), problem, hint));
    }
    source.in_range(said, 1, 1..65, "slots")
}

fn rate(text: &Text, source: &Source<'_>) -> Checked<f64> {
    loadline_load::spec::text::rate(text.get())
        .map_err(|problem| source.at(text.origin(), problem, "a level of the rate is one rate"))
}

/// Refuses an objective about a request that the load does not have.
fn named_requests(
    slo: &Slo,
    load: &Load,
    file: &ExperimentFile,
    source: &Source<'_>,
) -> Checked<()> {
    let names = load.spec.request_names();
    let mut named = slo.by_request.iter().map(|objective| &objective.request);
    let Some(unknown) = named.find(|name| !names.contains(name)) else {
        return Ok(());
    };
    let hint = match names.is_empty() {
        true => "this load has one request, that of its URL: write the objective without a name, or give the load a mix ([[load.request]], --profile)".to_owned(),
        false => format!("its requests are {}", names.join(", ")),
    };
    let problem = format!("the SLO names `{unknown}`, which is no request of the load");
    Err(source.at(file.slo.origin(), problem, hint))
}

fn app(table: &AppTable, load: &Load, source: &Source<'_>) -> Checked<App> {
    let image = image::image((table.image.as_ref(), table.engine.as_ref()), source)?;
    if image.is_none() {
        if table.command.first().is_none_or(|c| c.is_empty()) {
            return Err(source.whole("the application's command is empty", "app.command = [\"java\", \"-jar\", \"app.jar\"], or on the command line: -- java -jar app.jar; an image: app.image = \"registry/name:tag\", or --image"));
        }
        client::check(&table.command, source)?;
    }
    Ok(App {
        command: table.command.clone(),
        volumes: dependency::volumes(&table.volumes, image.is_some(), "the application", source)?,
        image,
        directory: table.directory.clone().unwrap_or_default(),
        env: table.env.clone(),
        readiness: readiness(table, load, source)?,
        start_deadline: source.time(
            table.start_deadline.as_ref(),
            START_DEADLINE,
            "start-deadline",
        )?,
        stop_grace: source.time(table.stop_grace.as_ref(), STOP_GRACE, "stop-grace")?,
        network: network(table.network.as_ref(), source)?,
        account: table
            .user
            .as_ref()
            .map(|u| account(u, source))
            .transpose()?,
        log_line: table.log_line.clone().filter(|text| !text.is_empty()),
    })
}

fn readiness(table: &AppTable, load: &Load, source: &Source<'_>) -> Checked<Readiness> {
    match &table.ready {
        None => Ok(load.readiness()),
        Some(table) if !table.command.is_empty() => Err(source.whole(
            "ready of app is a command, and those are for dependencies",
            "say it as a client sees it: http = \"/health\", tcp = 8080, or log = \"Started\"",
        )),
        Some(table) => ready(table, Some(load.spec.port()), "app", source),
    }
}

/// When a program is ready; `whose` names it, `port` is that of `http` where none is given.
pub(super) fn ready(
    ready: &ReadyTable,
    port: Option<u16>,
    whose: &str,
    source: &Source<'_>,
) -> Checked<Readiness> {
    if !ready.command.is_empty() {
        return match (&ready.http, ready.tcp, &ready.log) {
            (None, None, None) => Ok(Readiness::Command {
                command: ready.command.clone(),
            }),
            _ => Err(not_one(whose, source)),
        };
    }
    match (&ready.http, ready.tcp, &ready.log) {
        (Some(path), None, None) if path.get().starts_with('/') => {
            let Some(port) = ready.port.or(port) else {
                let problem = format!("ready of {whose} names no port");
                let hint = "write ready = { http = \"/health\", port = 9200 }";
                return Err(source.at(path.origin(), problem, hint));
            };
            Ok(Readiness::Http {
                port,
                path: path.get().clone(),
            })
        }
        (Some(path), None, None) => Err(source.at(
            path.origin(),
            "the readiness path does not start with a slash",
            "write ready = { http = \"/health\" }",
        )),
        (None, Some(port), None) => Ok(Readiness::Tcp { port }),
        (None, None, Some(text)) if !text.is_empty() => Ok(Readiness::LogLine {
            contains: text.clone(),
        }),
        _ => Err(not_one(whose, source)),
    }
}

fn not_one(whose: &str, source: &Source<'_>) -> ExperimentError {
    source.whole(
        format!("ready of {whose} does not say one thing"),
        "give exactly one of http = \"/health\", tcp = 8080, log = \"Started\"",
    )
}

fn network(text: Option<&Text>, source: &Source<'_>) -> Checked<Network> {
    match text.map(|t| (t.get().as_str(), t.origin())) {
        None | Some(("own", _)) => Ok(Network::Own),
        Some(("host", _)) => Ok(Network::Host),
        Some((other, origin)) => Err(source.at(
            origin,
            format!("`{other}` is not a network"),
            "write own (loopback only) or host (the machine's)",
        )),
    }
}

pub(super) fn account(text: &Text, source: &Source<'_>) -> Checked<Account> {
    let refuse = || {
        source.at(
            text.origin(),
            format!("`{}` is not an account", text.get()),
            "write numbers: user = \"1000\" or \"1000:1000\"",
        )
    };
    let (uid, gid) = text
        .get()
        .split_once(':')
        .unwrap_or((text.get(), text.get()));
    let uid = uid.parse().map_err(|_| refuse())?;
    let gid = gid.parse().map_err(|_| refuse())?;
    if uid == 0 || gid == 0 {
        return Err(source.at(
            text.origin(),
            "it may not run as root",
            "choose a user id above 0",
        ));
    }
    Ok(Account { uid, gid })
}

fn base(limits: &LimitsTable, source: &Source<'_>) -> Checked<Configuration> {
    let change = Change {
        instances: limits
            .instances
            .as_ref()
            .map(|n| instances::count(n, source))
            .transpose()?,
        cpu: limits.cpu.as_ref().map(|t| cpu(t, source)).transpose()?,
        cpu_period: limits
            .cpu_period
            .as_ref()
            .map(|t| period(t, source))
            .transpose()?,
        cpu_shares: limits
            .cpu_shares
            .as_ref()
            .map(|s| source.in_range(Some(s), 1024, 2..262_145, "cpu-shares"))
            .transpose()?,
        cpuset: limits
            .cpuset
            .as_ref()
            .map(|t| cpuset(t, source))
            .transpose()?,
        memory: limits
            .memory
            .as_ref()
            .map(|t| memory(t, source))
            .transpose()?,
        ..Change::default()
    };
    let empty = Configuration {
        pids: Some(source.in_range(limits.pids.as_ref(), PIDS, 16..4_194_305, "pids")?),
        shm: limits.shm.as_ref().map(|t| memory(t, source)).transpose()?,
        ..Configuration::default()
    };
    Ok(Level {
        label: String::new(),
        change,
    }
    .apply(&empty))
}

fn factor(table: &FactorTable, source: &Source<'_>) -> Checked<Factor> {
    if table.levels.is_empty() {
        return Err(source.at(
            table.name.origin(),
            format!("factor `{}` has no levels", table.name.get()),
            "levels = [\"512Mi\", \"256Mi\"]",
        ));
    }
    let levels = table
        .levels
        .iter()
        .map(|l| level(table.name.get(), l, source))
        .collect::<Checked<Vec<_>>>()?;
    for (i, one) in levels.iter().enumerate() {
        if levels[..i].iter().any(|other| other.label == one.label) {
            let entry = &table.levels[i];
            let is_same = |other: &Said<LevelEntry>| match (other.get(), entry.get()) {
                (LevelEntry::Plain(other), LevelEntry::Plain(text)) => other == text,
                _ => false,
            };
            let (what, hint) = match entry.get() {
                LevelEntry::Plain(text) if table.levels[..i].iter().any(is_same) => {
                    (format!("`{text}` is there twice"), "give it once")
                }
                _ => (
                    format!("two levels are called `{}`", one.label),
                    "give each level of a factor its own label",
                ),
            };
            return Err(source.at(entry.origin(), what, hint));
        }
    }
    Ok(Factor {
        name: table.name.get().clone(),
        levels,
        descend: table.descend == Some(true),
    })
}

fn level(factor: &str, entry: &Said<LevelEntry>, source: &Source<'_>) -> Checked<Level> {
    match entry.get() {
        LevelEntry::Plain(text) => plain_level(factor, &entry.here(text.clone()), source),
        LevelEntry::Changes(table) => {
            let change = table_change(table, entry, source)?;
            Ok(Level {
                label: table.label.clone(),
                change,
            })
        }
    }
}

fn plain_level(factor: &str, text: &Text, source: &Source<'_>) -> Checked<Level> {
    let mut change = Change::default();
    match factor {
        "cpu" => change.cpu = Some(cpu(text, source)?),
        "memory" => change.memory = Some(memory(text, source)?),
        "cpu-period" => change.cpu_period = Some(period(text, source)?),
        "cpu-shares" => {
            change.cpu_shares =
                Some(source.parse(text, "a whole number, 1024 is the default weight")?)
        }
        "cpuset" => change.cpuset = Some(cpuset(text, source)?),
        "rate" => change.rate = Some(rate(text, source)?),
        "instances" => change.instances = Some(instances::plain(text, source)?),
        "jdk" => change.jdk = Some(text.get().clone()),
        "cache" => change.cache = Some(cache::level(text, None, source)?),
        _ => {
            let problem =
                format!("loadline does not know what a plain level of `{factor}` changes");
            return Err(source.at(text.origin(), problem, "write { label = \"...\", jvm = [...] } (also command, image, env, args, cpu, memory, jdk), or name the factor cpu, memory, instances, rate, cpu-period, cpu-shares, cpuset, jdk or cache"));
        }
    }
    let label = match factor {
        // A bare number would not say what it is of; `openj9-25` does.
        "jdk" if text.get().starts_with(|c: char| c.is_ascii_digit()) => {
            format!("jdk{}", text.get())
        }
        "jdk" => text.get().clone(),
        "cpu" => change
            .cpu
            .map(|c| format!("{}cpu", c.as_f64()))
            .unwrap_or_default(),
        "memory" | "rate" | "cache" => text.get().clone(),
        _ => format!("{factor}={}", text.get()),
    };
    Ok(Level { label, change })
}

fn table_change<T>(table: &LevelTable, entry: &Said<T>, source: &Source<'_>) -> Checked<Change> {
    let text = |t: &String| entry.here(t.clone());
    Ok(Change {
        instances: table
            .instances
            .map(|n| instances::count(&entry.here(n), source))
            .transpose()?,
        cpu: table
            .cpu
            .as_ref()
            .map(|t| cpu(&text(t), source))
            .transpose()?,
        cpu_period: table
            .cpu_period
            .as_ref()
            .map(|t| period(&text(t), source))
            .transpose()?,
        cpu_burst: table
            .cpu_burst
            .as_ref()
            .map(|t| source.time(Some(&text(t)), CPU_PERIOD, "cpu-burst"))
            .transpose()?,
        neighbour_threads: table.neighbour_threads.map(u32::from),
        cpu_shares: table.cpu_shares,
        cpuset: table
            .cpuset
            .as_ref()
            .map(|t| cpuset(&text(t), source))
            .transpose()?,
        memory: table
            .memory
            .as_ref()
            .map(|t| memory(&text(t), source))
            .transpose()?,
        jdk: table.jdk.clone(),
        jvm: table.jvm.clone(),
        args: table.args.clone(),
        env: table.env.clone(),
        rate: table
            .rate
            .as_ref()
            .map(|t| rate(&text(t), source))
            .transpose()?,
        application: application::of_level(table, entry, source)?,
        cache: match &table.cache {
            Some(kind) => Some(cache::level(&text(kind), table.cache_requests, source)?),
            None => None,
        },
    })
}

pub(super) fn cpu(text: &Text, source: &Source<'_>) -> Checked<Cpus> {
    let cpus: Cpus = source.parse(text, "CPUs as 1.5 or 250m")?;
    // 1 ms of quota in a period of 100 ms is the least the kernel takes.
    if cpus.as_millis() < 10 {
        return Err(source.at(
            text.origin(),
            format!(
                "`{}` is too little CPU: the kernel takes no quota below 10m",
                text.get()
            ),
            "give at least 50m",
        ));
    }
    Ok(cpus)
}

pub(super) fn memory(text: &Text, source: &Source<'_>) -> Checked<Bytes> {
    let bytes: Bytes = source.parse(text, "memory with a unit, as 512Mi")?;
    if bytes < Bytes::from_mib(1) {
        return Err(source.at(
            text.origin(),
            format!("`{}` is less than 1 MiB of memory", text.get()),
            "is the unit missing? write 512Mi",
        ));
    }
    Ok(bytes)
}

fn period(text: &Text, source: &Source<'_>) -> Checked<Duration> {
    let period = source.time(Some(text), CPU_PERIOD, "cpu-period")?;
    if period < PERIOD_RANGE.0 || period > PERIOD_RANGE.1 {
        return Err(source.at(
            text.origin(),
            format!("`{}` is not a CFS period", text.get()),
            "the kernel takes 1ms to 1s",
        ));
    }
    Ok(period)
}

pub(super) fn cpuset(text: &Text, source: &Source<'_>) -> Checked<CpuSets> {
    let value = text.get();
    value.parse().map_err(|_| {
        source.at(
            text.origin(),
            format!("`{value}` is not a list of CPUs"),
            "write 0 or 0-3 or 0,2; for two instances 0-1;2-3",
        )
    })
}

impl Source<'_> {
    pub(super) fn parse<T: FromStr<Err: std::fmt::Display>>(
        &self,
        text: &Text,
        hint: &str,
    ) -> Checked<T> {
        text.get()
            .parse()
            .map_err(|e| self.at(text.origin(), e, hint))
    }

    pub(super) fn time_or_zero(
        &self,
        text: Option<&Text>,
        default: Duration,
        name: &str,
    ) -> Checked<Duration> {
        let Some(text) = text else { return Ok(default) };
        parse_duration(text.get())
            .filter(|d| *d <= DAY)
            .ok_or_else(|| {
                self.at(
                    text.origin(),
                    format!("`{}` is not a length of time for {name}", text.get()),
                    "write 500ms, 10s or 2m, at most a day",
                )
            })
    }

    pub(super) fn time(
        &self,
        text: Option<&Text>,
        default: Duration,
        name: &str,
    ) -> Checked<Duration> {
        let time = self.time_or_zero(text, default, name)?;
        match text {
            Some(text) if time.is_zero() => Err(self.at(
                text.origin(),
                format!("{name} is zero"),
                "write 500ms, 10s or 2m",
            )),
            _ => Ok(time),
        }
    }

    pub(super) fn in_range<T: Copy + PartialOrd + std::fmt::Display>(
        &self,
        value: Option<&Said<T>>,
        default: T,
        range: Range<T>,
        name: &str,
    ) -> Checked<T> {
        match value {
            None => Ok(default),
            Some(value) if range.contains(value.get()) => Ok(*value.get()),
            Some(value) => {
                let problem = format!("{name} = {} is out of range", value.get());
                Err(self.at(
                    value.origin(),
                    problem,
                    format!("from {} and below {}", range.start, range.end),
                ))
            }
        }
    }
}
