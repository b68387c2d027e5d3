//! From texts to types: every value of an experiment file checked, each refusal with its place.
//!
//! Owns the defaults and the ranges: the constants below.

mod application;
mod burst;
mod cache;
mod client;
mod consumer;
mod cpu;
pub(super) mod image;
mod instances;
mod load_command;
mod metrics;
mod peak;
mod run;
mod sampling;

use cpu::is_amount;
pub(super) use cpu::is_auto;
pub use cpu::{AUTO_CPU, NO_CPU_LIMIT};

use std::time::Duration;

use loadline_analysis::record::{CPU_PERIOD, Configuration};
use loadline_analysis::slo::{Objective, Slo};
use loadline_protocol::{MetricsSpec, NetworkMode, Readiness, RunSpec};
use loadline_sizing::options::words::has_word;

use super::application::check_image;
use super::checked::{
    Checked, check_account, check_cpu, check_cpu_sets, check_given, check_memory, check_period,
    check_readiness,
};
use super::error::ExperimentSource;
use super::level::LevelChange;
use super::load::{ExperimentLoad, check_load};
use super::said::{Text, ValueOrigin, ValueWithOrigin};
use super::search::{check_search, with_headroom};
use super::wire::{AppTable, ExperimentFile, FactorTable, LevelEntry, LevelTable, LimitsTable};
use super::{
    AppUnderTest, ClusterSettings, Experiment, ExperimentFactor, FactorLevel, dependency, enough,
    outage, variables,
};

const START_DEADLINE: Duration = Duration::from_secs(60);
/// An orderly end takes a tenth of a second. A slower end is thrashing, and nothing is measured any
/// more: in a search with ten such trials a grace of 10 s cost a minute and a half.
const STOP_GRACE: Duration = Duration::from_secs(3);
const PIDS: u64 = 4096;
const MOST_CONFIGURATIONS: usize = 10_000;

impl Experiment {
    pub(super) fn resolve(file: &ExperimentFile, source: &ExperimentSource<'_>) -> Checked<Self> {
        let hint = "for example p99<50ms,errors<0.1%; `loadline size --help` lists all objectives";
        let mut slo = source.parse_text::<Slo>(&file.slo, hint)?;
        load_command::name_failing_exit(&mut slo, &file.load);
        let is_judged = file.metrics.is_some() || slo.failing_exit().is_some();
        let is_consumer = is_judged && file.load.url.is_none();
        if is_consumer || file.app.ends == Some(true) {
            slo.forget_default_errors(&file.slo);
        }
        let of_run = run::check_run(file, &slo, source)?;
        let load = match of_run {
            Some(_) => ExperimentLoad::absent(),
            None => check_load(&file.load, is_consumer, source)?,
        };
        if load.is_timed() {
            consumer::refuse_request_objectives(&slo, &file.slo, source)?;
        }
        let metrics = metrics::check_metrics(file, &slo, source)?;
        named_requests(&slo, &load, file, source)?;
        let app = check_app(&file.app, (&load, &slo, of_run, metrics.as_ref()), source)?;
        let base = base_configuration(&file.limits, &file.app, source)?;
        let factors = file.factor.iter().map(|f| check_factor(f, source));
        let factors = factors.collect::<Checked<Vec<_>>>()?;
        refuse_too_many(&factors, source)?;
        let load = enough::lengthen_load(load, &slo, file, &factors, source)?;
        let load = with_headroom(load, (&file.search, &factors), source)?;
        if !(file.configuration.is_empty() || factors.is_empty()) {
            let problem = "configurations and factors cannot be combined";
            let hint = "leave one out: [[configuration]] or [[factor]]";
            return Err(source.experiment_error(problem, hint));
        }
        let repeats = file.run.repeats.as_ref();
        let mut search = check_search(&file.search, &file.limits, &load, &factors, source)?;
        if app.run.is_some() && !search.is_counted {
            // A run takes as long as it takes: few are repeated often.
            (search.prove, search.is_counted) = (run::PROVE_RUN, true);
        }
        let (mut dependencies, mut stubs) = dependency::check_dependencies(file, source)?;
        outage::add_outages(file, &mut dependencies, &mut stubs, source)?;
        let experiment = Self {
            question: file.question.clone(),
            analysis: file.analysis.clone(),
            version: application::check_version(&file.app, source)?,
            app,
            cluster: file.kubernetes.as_ref().map(ClusterSettings::from),
            dependencies,
            stubs,
            load,
            metrics,
            slo,
            base,
            level_images: Vec::new(),
            factors,
            listed: file.configuration.clone(),
            repeats: source.in_range(repeats, 1, 1..1001, "repeats")?,
            seed: file.run.seed.unwrap_or(1),
            accept_noise: file.run.accept_noise.unwrap_or(false),
            sampling: sampling::sampling(file.run.samples.as_ref(), source)?,
            search,
            training: cache::check_training(&file.cache, source)?,
        };
        let mut experiment = experiment.with_level_images();
        experiment.search.prove = experiment.enough_starts();
        instances::check_instances(&experiment, source)?;
        burst::check_bursts(&experiment, source)?;
        dependency::refuse_several_instances(&experiment, source)?;
        image::refuse_image_settings(&experiment, source)?;
        outage::check_outages(&experiment, source)?;
        load_command::check_load_command(&experiment, source)?;
        peak::check_peak(&experiment, &file.slo, source)?;
        run::refuse_beside_run(&experiment, source)?;
        metrics::refuse_beside_metrics(&experiment, source)?;
        consumer::refuse_beside_consumer(&experiment, source)?;
        cpu::refuse_auto(&experiment, source)?;
        Ok(experiment)
    }
}

fn check_rate(text: &Text, source: &ExperimentSource<'_>) -> Checked<f64> {
    let rate = loadline_load::spec::text::parse_rate(text);
    rate.map_err(|problem| source.error_at(text, problem, "a level of the rate is one rate"))
}

fn named_requests(
    slo: &Slo,
    load: &ExperimentLoad,
    file: &ExperimentFile,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    if !load.spec.command.is_empty() {
        // A command's requests are known only from observation.
        return Ok(());
    }
    let names = load.spec.request_names();
    let of_requests = slo.by_request.iter();
    let of_requests = of_requests.filter(|o| !matches!(o.objective, Objective::Metric(_)));
    let mut named = of_requests.map(|objective| &objective.request);
    let Some(unknown) = named.find(|name| !names.contains(name)) else {
        return Ok(());
    };
    let hint = if names.is_empty() {
        "this load has one request, that of its URL: write the objective without a name, or give the load a mix ([[load.request]], --profile)".to_owned()
    } else {
        format!("its requests are {}", names.join(", "))
    };
    let problem = format!("the SLO names `{unknown}`, which is not a request of the load");
    Err(source.error_at(&file.slo, problem, hint))
}

fn check_app(
    table: &AppTable,
    (load, slo, run, metrics): (&ExperimentLoad, &Slo, Option<RunSpec>, Option<&MetricsSpec>),
    source: &ExperimentSource<'_>,
) -> Checked<AppUnderTest> {
    let image = check_image((table.image.as_ref(), table.engine.as_ref()), source)?;
    if image.is_none() {
        if table.command.first().is_none_or(|c| c.is_empty()) {
            return Err(source.experiment_error("the application's command is empty", "app.command = [\"java\", \"-jar\", \"app.jar\"], or on the command line: -- java -jar app.jar; an image: app.image = \"registry/name:tag\", or --image"));
        }
        if run.is_none() {
            client::refuse_client_command(&table.command, source)?;
        }
    }
    if let Some(name) = table.env.keys().find(|name| !variables::is_name(name)) {
        let problem = format!("`{name}` in env is not a variable name");
        return Err(source.experiment_error(problem, "write NAME = \"value\" in [app.env]"));
    }
    let given = table.start_deadline.as_ref();
    let start_deadline = source.positive_time(given, START_DEADLINE, "start-deadline")?;
    Ok(AppUnderTest {
        command: table.command.clone(),
        volumes: dependency::check_volumes(
            &table.volumes,
            image.is_some(),
            "the application",
            source,
        )?,
        image,
        directory: table.directory.clone().unwrap_or_default(),
        env: table.env.clone(),
        readiness: match run {
            Some(_) => Readiness::Exit,
            None => app_readiness(table, (load, metrics), source)?,
        },
        start_deadline: match run {
            Some(_) => run::run_deadline(slo, given, start_deadline),
            None => start_deadline,
        },
        stop_grace: source.positive_time(table.stop_grace.as_ref(), STOP_GRACE, "stop-grace")?,
        network: check_network(table.network.as_ref(), source)?,
        account: check_given(&table.user, |u| check_account(u, source))?,
        log_line: table.log_line.clone().filter(|text| !text.is_empty()),
        run,
    })
}

fn app_readiness(
    table: &AppTable,
    (load, metrics): (&ExperimentLoad, Option<&MetricsSpec>),
    source: &ExperimentSource<'_>,
) -> Checked<Readiness> {
    let port = (!load.is_timed()).then(|| load.spec.port());
    match &table.ready {
        None if load.is_timed() => consumer::first_sample(metrics, source),
        None => Ok(load.readiness()),
        Some(table) => check_readiness(table, port, "app", source),
    }
}

fn check_network(text: Option<&Text>, source: &ExperimentSource<'_>) -> Checked<NetworkMode> {
    match text.map(|text| (text.as_str(), text)) {
        None | Some(("own", _)) => Ok(NetworkMode::Own),
        Some(("host", _)) => Ok(NetworkMode::Host),
        Some((other, text)) => {
            let hint = "write own (loopback only) or host (the machine's)";
            Err(source.error_at(text, format!("`{other}` is not a network"), hint))
        }
    }
}

fn base_configuration(
    limits: &LimitsTable,
    app: &AppTable,
    source: &ExperimentSource<'_>,
) -> Checked<Configuration> {
    let limited = |amount: &Option<Text>| amount.clone().filter(is_amount);
    let change = LevelChange {
        instances: check_given(&limits.instances, |n| {
            instances::check_instance_count(n, source)
        })?,
        cpu: check_given(&limited(&limits.cpu), |t| check_cpu(t, source))?,
        cpu_period: check_given(&limits.cpu_period, |t| check_period(t, source))?,
        start_cpu: check_given(&limited(&limits.start_cpu), |t| check_cpu(t, source))?,
        cpu_shares: check_given(&limits.cpu_shares, |s| {
            source.in_range(Some(s), 1024, 2..262_145, "cpu-shares")
        })?,
        cpuset: check_given(&limits.cpuset, |t| check_cpu_sets(t, source))?,
        memory: check_given(&limits.memory, |t| check_memory(t, source))?,
        ..LevelChange::default()
    };
    let empty = Configuration {
        pids: Some(source.in_range(limits.pids.as_ref(), PIDS, 16..4_194_305, "pids")?),
        shm: check_given(&limits.shm, |t| check_memory(t, source))?,
        options_variable: run::options_variable(app, source)?,
        ..Configuration::default()
    };
    Ok(FactorLevel {
        label: String::new(),
        change,
    }
    .apply(&empty))
}

/// All combinations are made before anything runs.
fn refuse_too_many(factors: &[ExperimentFactor], source: &ExperimentSource<'_>) -> Checked<()> {
    let all = factors.iter().map(|factor| factor.levels.len());
    match all.fold(1, usize::saturating_mul) {
        ..=MOST_CONFIGURATIONS => Ok(()),
        all => Err(source.experiment_error(
            format!("the factors have {all} combinations, at most {MOST_CONFIGURATIONS} are run"),
            "leave out levels, or measure one factor after the other",
        )),
    }
}

fn check_factor(table: &FactorTable, source: &ExperimentSource<'_>) -> Checked<ExperimentFactor> {
    if table.levels.is_empty() {
        let problem = format!("factor `{}` has no levels", table.name);
        let hint = "levels = [\"512Mi\", \"256Mi\"]";
        return Err(source.error_at(&table.name, problem, hint));
    }
    let levels = table.levels.iter();
    let levels = levels.map(|level| check_level(&table.name, level, source));
    let levels = levels.collect::<Checked<Vec<_>>>()?;
    for (i, one) in levels.iter().enumerate() {
        if levels[..i].iter().any(|other| other.label == one.label) {
            let entry = &table.levels[i];
            let is_same = |other: &ValueWithOrigin<LevelEntry>| match (&**other, &**entry) {
                (LevelEntry::Plain(other), LevelEntry::Plain(text)) => other == text,
                _ => false,
            };
            let (what, hint) = match &**entry {
                LevelEntry::Plain(text) if table.levels[..i].iter().any(is_same) => {
                    (format!("`{text}` is given twice"), "give it once")
                }
                _ => (
                    format!("two levels are called `{}`", one.label),
                    "give each level of a factor its own label",
                ),
            };
            return Err(source.error_at(entry, what, hint));
        }
    }
    Ok(ExperimentFactor {
        name: table.name.to_string(),
        levels,
        descend: table.descend == Some(true),
    })
}

fn check_level(
    factor: &str,
    entry: &ValueWithOrigin<LevelEntry>,
    source: &ExperimentSource<'_>,
) -> Checked<FactorLevel> {
    match &**entry {
        LevelEntry::Plain(text) => {
            plain_level(factor, &entry.with_same_origin(text.clone()), source)
        }
        LevelEntry::Changes(table) => {
            let change = table_change(table, entry, source)?;
            Ok(FactorLevel {
                label: table.label.clone(),
                change,
            })
        }
    }
}

fn plain_level(factor: &str, text: &Text, source: &ExperimentSource<'_>) -> Checked<FactorLevel> {
    let mut change = LevelChange::default();
    match factor {
        "cpu" => change.cpu = Some(check_cpu(text, source)?),
        "memory" => change.memory = Some(check_memory(text, source)?),
        "cpu-period" => change.cpu_period = Some(check_period(text, source)?),
        "cpu-shares" => {
            change.cpu_shares =
                Some(source.parse_text(text, "a whole number, 1024 is the default weight")?)
        }
        "cpuset" => change.cpuset = Some(check_cpu_sets(text, source)?),
        "rate" => change.rate = Some(check_rate(text, source)?),
        "instances" => change.instances = Some(instances::plain_instances(text, source)?),
        "jdk" => change.jdk = Some(text.to_string()),
        "cache" => change.cache = Some(cache::check_cache_level(text, None, source)?),
        _ => {
            let problem =
                format!("loadline does not know what a plain level of `{factor}` changes");
            return Err(source.error_at(text, problem, "write { label = \"...\", jvm = [...] } (also command, image, env, args, cpu, memory, jdk), or name the factor cpu, memory, instances, rate, cpu-period, cpu-shares, cpuset, jdk or cache"));
        }
    }
    let label = match factor {
        // A bare number would not say what it is of; `openj9-25` does.
        "jdk" if text.starts_with(|c: char| c.is_ascii_digit()) => format!("jdk{text}"),
        "cpu" => change
            .cpu
            .map(|c| format!("{}cpu", c.as_f64()))
            .unwrap_or_default(),
        "jdk" | "memory" | "rate" | "cache" => text.to_string(),
        _ => format!("{factor}={text}"),
    };
    Ok(FactorLevel { label, change })
}

/// A word that is no option, and no value of the option before it, would be the main class.
fn refuse_no_option(
    options: &[String],
    at: &ValueOrigin,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let takes_value = |word: &str| word.starts_with("--") || has_word("-cp -classpath -p", word);
    let mut before = "";
    for word in options {
        if !word.starts_with(['-', '@']) && !takes_value(before) {
            let hint = "write it as java takes it: --jvm '-Xmx256m -XX:+UseSerialGC'";
            return Err(source.error_at(at, format!("`{word}` is not a JVM option"), hint));
        }
        if word.starts_with("-X") && word.contains(" -X") {
            let words: Vec<&str> = word.split(' ').collect();
            let hint = format!("write each as its own word: {words:?}");
            return Err(source.error_at(at, format!("`{word}` is several options"), hint));
        }
        before = word;
    }
    Ok(())
}

fn table_change<T>(
    table: &LevelTable,
    entry: &ValueWithOrigin<T>,
    source: &ExperimentSource<'_>,
) -> Checked<LevelChange> {
    let text = |t: &String| entry.with_same_origin(t.clone());
    refuse_no_option(&table.jvm, entry.into(), source)?;
    Ok(LevelChange {
        instances: check_given(&table.instances, |n| {
            instances::check_instance_count(&entry.with_same_origin(*n), source)
        })?,
        cpu: check_given(&table.cpu, |t| check_cpu(&text(t), source))?,
        cpu_period: check_given(&table.cpu_period, |t| check_period(&text(t), source))?,
        cpu_burst: table
            .cpu_burst
            .as_ref()
            .map(|t| source.positive_time(Some(&text(t)), CPU_PERIOD, "cpu-burst"))
            .transpose()?,
        start_cpu: check_given(&table.start_cpu, |t| check_cpu(&text(t), source))?,
        neighbour_threads: table.neighbour_threads.map(u32::from),
        cpu_shares: table.cpu_shares,
        cpuset: check_given(&table.cpuset, |t| check_cpu_sets(&text(t), source))?,
        memory: check_given(&table.memory, |t| check_memory(&text(t), source))?,
        jdk: table.jdk.clone(),
        jvm: table.jvm.clone(),
        args: table.args.clone(),
        env: table.env.clone(),
        rate: check_given(&table.rate, |t| check_rate(&text(t), source))?,
        application: application::of_level(table, entry, source)?,
        cache: check_given(&table.cache, |kind| {
            cache::check_cache_level(&text(kind), table.cache_requests, source)
        })?,
    })
}
