//! From the command line to an experiment: a file, flags, or a file with flags on top.
//!
//! Owns the flags that mean the same as keys of the experiment file. Flags win over the file.

mod cluster;
mod environment;
mod flags;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use loadline_analysis::record::Configuration;
use loadline_cgroup::{CgroupLayout, Controller};
use loadline_experiment::program::build_tool;
use loadline_experiment::project::JOB_SLO;
use loadline_experiment::wire::{
    AppTable, CacheTable, ComposeTable, ExperimentFile, FactorTable, LevelEntry, LevelTable,
    LimitsTable, RunTable, SearchTable,
};
use loadline_experiment::{AUTO_CPU, Experiment, NO_CPU_LIMIT, ValueWithOrigin};
use loadline_load::{LoadSpec, LoadTarget};

use crate::error::Error;
use crate::load_flags::{report_bodiless, set_if_given};
use crate::{called, files, grpc, images};

pub use cluster::{ClusterFlags, InClusterFlags};
pub use flags::{
    APPLICATION, ExperimentFlags, MatrixFlags, SEARCH, SearchFlags, USUAL_FILE, split_ready,
};

const FORMAT: &str = "examples are in experiments/; the format is in docs/reference/experiment.schema.json (loadline schema experiment)";

#[derive(Clone)]
pub struct LoadedExperiment {
    pub experiment: Experiment,
    pub text: String,
    pub file: ExperimentFile,
    pub title: String,
    pub lies_in: Option<PathBuf>,
}

#[derive(Clone, Copy, Default)]
pub struct ExtraFlags<'a> {
    pub search: Option<&'a SearchFlags>,
    pub matrix: Option<&'a MatrixFlags>,
}

pub fn load_experiment(
    flags: &ExperimentFlags,
    search: Option<&SearchFlags>,
) -> Result<LoadedExperiment, Error> {
    let more = ExtraFlags {
        search,
        matrix: None,
    };
    load_experiment_with(flags, more)
}

pub fn load_experiment_with(
    flags: &ExperimentFlags,
    more: ExtraFlags<'_>,
) -> Result<LoadedExperiment, Error> {
    let search = more.search;
    if search.is_none() && (flags.cpu == [AUTO_CPU] || flags.start_cpu.as_deref() == Some(AUTO_CPU))
    {
        let problem = "--cpu auto and --start-cpu auto choose the CPU, and only `size` does that";
        return Err(Error::usage(problem)
            .with_hint("give a CPU limit, e.g. --cpu 500m, or several: --cpu 500m,1"));
    }
    let here = called::working_directory()?;
    let named = flags.experiment_file();
    let Some(path) = named.as_deref() else {
        let mut file = from_flags(flags)?;
        overlay(&mut file, flags, more)?;
        search.map_or(Ok(false), |s| overlay_prices(&mut file, s))?;
        settle_named(&mut file, &here)?;
        let title = title(&file, None);
        return check_file(file, None, &here, title);
    };
    let text = read_experiment(path)?;
    let experiment = Experiment::from_file_text(&text, path, &here)?;
    let mut file = ExperimentFile::from_toml(&text, path)?;
    let title = title(&file, Some(path));
    let absolute = here.join(path);
    let beside = absolute.parent().unwrap_or(&here);
    let mut is_settled = file.settle_files(beside)?;
    is_settled |= file.settle_stubs(beside)?;
    is_settled |= settle_named(&mut file, beside)?;
    let any_prices = search.map_or(Ok(false), |s| overlay_prices(&mut file, s))?;
    let any = overlay(&mut file, flags, more)? || any_prices;
    let any = settle_named(&mut file, &here)? || any;
    if !any && !is_settled {
        return Ok(LoadedExperiment {
            experiment,
            text,
            file,
            title,
            lies_in: Some(beside.to_owned()),
        });
    }
    // Relative directories of the file start at the file, those of the flags here.
    if let Some(directory) = &file.app.directory {
        file.app.directory = Some(beside.join(directory));
    }
    check_file(file, Some((&text, path)), &here, title)
}

/// Takes what a compose file and a manifest say; what of the manifest is not taken is said.
fn settle_named(file: &mut ExperimentFile, base: &Path) -> Result<bool, Error> {
    let composed = file.settle_compose(base);
    let composed = composed.map_err(Error::from_wrong_input)?;
    let left_out = file.settle_manifest(base);
    let left_out = left_out.map_err(Error::from_wrong_input)?;
    for what in left_out.iter().flatten() {
        say!("not taken from the manifest: {what}");
    }
    Ok(composed || left_out.is_some())
}

/// An experiment over exactly these configurations, each run `repeats` times, and the text that
/// reproduces it; everything else comes from `file` and `experiment`, which agree. Errors: When the
/// text cannot be written.
pub fn experiment_over(
    mut file: ExperimentFile,
    experiment: Experiment,
    configurations: Vec<Configuration>,
    repeats: ValueWithOrigin<u32>,
    title: String,
) -> Result<LoadedExperiment, Error> {
    let number = *repeats.inner_value();
    file.limits = LimitsTable::default();
    file.factor = Vec::new();
    file.configuration.clone_from(&configurations);
    file.run.repeats = Some(repeats);
    file.app.directory = Some(experiment.app.directory.clone());
    let experiment = Experiment {
        question: file.question.clone(),
        analysis: file.analysis.clone(),
        factors: Vec::new(),
        listed: configurations,
        repeats: number,
        ..experiment
    };
    finish_loading(file, experiment, title, None)
}

pub fn check_file(
    file: ExperimentFile,
    under: Option<(&str, &Path)>,
    here: &Path,
    title: String,
) -> Result<LoadedExperiment, Error> {
    let experiment = Experiment::from_flags(&file, under, here)?;
    let lies_in = under.and_then(|(_, path)| Some(here.join(path.parent()?)));
    finish_loading(file, experiment, title, lies_in)
}

impl LoadedExperiment {
    /// The same with a search for the CPU limit, where `size` can have one and nothing was said about CPU.
    pub fn with_chosen_cpu(mut self) -> Result<Self, Error> {
        // Without root systemd may leave that controller out.
        let can_limit = || {
            let layout = CgroupLayout::of_process(Path::new("/proc"), std::process::id());
            layout.is_ok_and(|layout| layout.hierarchy_of(Controller::Cpu).is_some())
        };
        let is_free = self.file.limits.cpu.is_none() && self.experiment.may_choose_cpu();
        if is_free && can_limit() {
            talk!("no --cpu: the CPU limit is searched too; --cpu none measures without one");
            self.experiment.search.is_cpu_asked = true;
            self.file.limits.cpu = Some(ValueWithOrigin::from_flag("--cpu", AUTO_CPU.to_owned()));
            self.text = file_text(&self.file)?;
        }
        Ok(self)
    }
}

fn file_text(file: &ExperimentFile) -> Result<String, Error> {
    let problem = |e| Error::internal(format!("the experiment cannot be written: {e}"));
    file.to_toml().map_err(problem)
}

fn finish_loading(
    file: ExperimentFile,
    experiment: Experiment,
    title: String,
    lies_in: Option<PathBuf>,
) -> Result<LoadedExperiment, Error> {
    let profile = file.load.loaded_profile().into_iter();
    profile.for_each(report_bodiless);
    let text = file_text(&file)?;
    if text.len() > ExperimentFile::LARGEST {
        let problem = "the experiment with its load profile is larger than 1 MiB";
        return Err(Error::usage(problem).with_hint(
            "use a profile with fewer, longer intervals: loadline profile --interval 60",
        ));
    }
    Ok(LoadedExperiment {
        experiment,
        text,
        file,
        title,
        lies_in,
    })
}

fn from_flags(flags: &ExperimentFlags) -> Result<ExperimentFile, Error> {
    let need = |value: &Option<String>, flag: &str, example: &str| {
        value.clone().ok_or_else(|| {
            Error::usage(format!("{flag} is missing, and no experiment file was given"))
                .with_hint(format!("for example: {flag} {example}"))
                .with_hint("loadline size --slo 'p99<50ms' --rate 300/s --url http://localhost:8080/ -- java -jar app.jar")
        })
    };
    let is_named = flags.image.is_some() || flags.compose.is_some() || flags.cluster.from.is_some();
    if flags.command.is_empty() && !is_named {
        return Err(Error::usage(
            "the application's command is missing, and no experiment file was given",
        )
        .with_hint("put it last, after --, as you would start it: -- java -jar app.jar")
        .with_hint("or name an image: --image registry/name:tag")
        .with_hint("or a workload of a cluster: --kubernetes --from deployment/NAME")
        .with_hint("or name an experiment file that has it"));
    }
    let is_consumer = flags.drive.is_some() || !(flags.metric.is_empty() && flags.probe.is_empty());
    if !flags.job && !is_consumer {
        let url = flags.url.as_ref().map(LoadTarget::to_string);
        need(&url, "--url", "http://localhost:8080/").map_err(|error| {
            error
                .with_hint("a program that ends does not need it: --job")
                .with_hint("nor does one judged by metrics: --metric 'lag=records_lag', or --probe 'lag=./lag.sh'")
        })?;
    }
    let of_job = || flags.job.then(|| JOB_SLO.to_owned());
    let slo = flags.slo.clone().or_else(of_job);
    let slo = need(&slo, "--slo", "'p99<50ms,errors<0.1%'")?;
    let slo = ValueWithOrigin::from_flag("--slo", slo);
    Ok(plain_file(slo, flags.command.clone()))
}

/// An experiment that says no more than its SLO and its command.
pub fn plain_file(slo: ValueWithOrigin<String>, command: Vec<String>) -> ExperimentFile {
    ExperimentFile {
        compose: None,
        manifest: None,
        kubernetes: None,
        dependency: Vec::new(),
        outage: Vec::new(),
        question: None,
        analysis: None,
        slo,
        app: AppTable {
            command,
            ..AppTable::default()
        },
        load: LoadSpec::default(),
        metrics: None,
        limits: LimitsTable::default(),
        run: RunTable::default(),
        search: SearchTable::default(),
        cache: CacheTable::default(),
        factor: Vec::new(),
        configuration: Vec::new(),
    }
}

fn overlay(
    file: &mut ExperimentFile,
    flags: &ExperimentFlags,
    more: ExtraFlags<'_>,
) -> Result<bool, Error> {
    let search = more.search;
    let mut any = overlay_load(file, flags)?;
    any |= overlay_environment(file, flags)?;
    any |= more.matrix.is_some_and(|m| overlay_matrix(file, m));
    any |= flags::overlay_run(&mut file.app, flags);
    any |= flags::overlay_metrics(file, flags);
    let mut set = |target: &mut Option<ValueWithOrigin<String>>, name, value: &Option<String>| {
        if let Some(value) = value {
            *target = Some(ValueWithOrigin::from_flag(name, value.clone()));
            any = true;
        }
    };
    let (app, of) = (&mut file.app, &mut file.search);
    let deadline = &flags.start_deadline;
    set(&mut app.start_deadline, "--start-deadline", deadline);
    set(&mut file.limits.start_cpu, "--start-cpu", &flags.start_cpu);
    set(&mut app.user, "--user", &flags.user);
    set(&mut app.network, "--network", &flags.network);
    set(&mut app.image, "--image", &flags.image);
    set(&mut app.version, "--app-version", &flags.app_version);
    set(&mut app.engine, "--engine", &flags.engine);
    if flags.image.is_some() || flags.compose.is_some() {
        // The file's command belongs to another application.
        app.command.clear();
    }
    if let Some(search) = search {
        set(&mut of.min_memory, "--min-memory", &search.min_memory);
        set(&mut of.max_memory, "--max-memory", &search.max_memory);
        set(&mut of.question, "--question", &search.question);
        set(&mut of.soak, "--soak", &search.soak);
        set(&mut of.step, "--step", &search.step);
        set(&mut of.margin, "--margin", &search.margin);
        set(&mut of.heap, "--heap", &search.heap);
        set(&mut of.cpu_policy, "--cpu-policy", &search.cpu_policy);
        set(&mut of.region, "--region", &search.region);
        set(&mut of.headroom, "--headroom", &search.headroom);
        set(&mut of.replicas, "--replicas", &search.replicas);
        set(&mut of.budget, "--budget", &search.budget);
    }
    any |= flags.cluster.overlay(file)?;
    any |= overlay_compose(file, flags);
    any |= overlay_required(file, flags);
    any |= overlay_app(file, flags);
    any |= search.is_some_and(|s| overlay_counts(file, s));
    any |= overlay_factors(file, flags);
    check_command(&flags.command, flags.job)?;
    Ok(any | flags.cluster.overlay_running(file)?)
}

/// Refuses a jar as a program, and warns of build tools, which run inside the limit too.
fn check_command(command: &[String], is_job: bool) -> Result<(), Error> {
    let Some(program) = command.first() else {
        return Ok(());
    };
    if program.ends_with(".jar") && !program.contains(' ') {
        let refusal = format!("{program} is a jar, which cannot be executed");
        return Err(Error::usage(refusal).with_hint(format!("-- java -jar {program}")));
    }
    if !is_job && build_tool(command).is_some() {
        say!(
            "warning: {program} runs inside the limit too: build the jar, then -- java -jar target/APP.jar; or size the build itself: --job"
        );
    }
    Ok(())
}

/// Lays the load's flags over it; files that they name are relative to where loadline is called.
fn overlay_load(file: &mut ExperimentFile, flags: &ExperimentFlags) -> Result<bool, Error> {
    let before = file.load.clone();
    let load = &mut file.load;
    set_if_given(&mut load.url, &flags.url);
    set_if_given(&mut load.peak, &flags.peak);
    for (key, flag) in [
        (&mut load.command, &flags.load),
        (&mut load.drive, &flags.drive),
        (&mut load.backlog, &flags.backlog),
    ] {
        if let Some(command) = flag {
            key.clone_from(&command.0);
        }
    }
    flags.load_flags.overlay(&mut file.load);
    let here = called::working_directory()?;
    file.load.resolve_files(&here)?;
    grpc::encode_calls(&mut file.load)?;
    Ok(file.load != before)
}

fn overlay_environment(file: &mut ExperimentFile, flags: &ExperimentFlags) -> Result<bool, Error> {
    let here = called::working_directory()?;
    let env = environment::read_environment(flags, &here)?;
    let any = !env.is_empty();
    file.app.env.extend(env);
    Ok(any)
}

fn overlay_matrix(file: &mut ExperimentFile, matrix: &MatrixFlags) -> bool {
    if let Some(repeats) = matrix.repeats {
        file.run.repeats = Some(ValueWithOrigin::from_flag("--repeats", repeats));
    }
    if let [one] = matrix.memory.as_slice() {
        file.factor.retain(|f| f.name.inner_value() != "memory");
        file.limits.memory = Some(ValueWithOrigin::from_flag("--memory", one.clone()));
    } else if !matrix.memory.is_empty() {
        let levels = matrix.memory.iter().cloned().map(LevelEntry::Plain);
        file.factor.retain(|f| f.name.inner_value() != "memory");
        file.factor
            .push(factor("memory", "--memory", levels.collect()));
    }
    matrix.is_given()
}

fn overlay_compose(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    let Some((path, service)) = flags.compose.as_ref().zip(flags.service.as_ref()) else {
        return false;
    };
    file.app.image = None;
    file.compose = Some(ComposeTable {
        file: path.clone(),
        service: Some(service.clone()),
        services: Vec::new(),
        scope: None,
        seed: std::collections::BTreeMap::new(),
        reset: std::collections::BTreeMap::new(),
    });
    true
}

fn overlay_required(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    if let Some(slo) = &flags.slo {
        file.slo = ValueWithOrigin::from_flag("--slo", slo.clone());
    }
    if !flags.command.is_empty() {
        file.app.command = flags.command.clone();
    }
    flags.slo.is_some() || !flags.command.is_empty()
}

fn overlay_app(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    set_if_given(&mut file.app.ready, &flags.ready);
    if flags.accept_noise {
        file.run.accept_noise = Some(true);
    }
    flags.ready.is_some() || flags.accept_noise
}

fn overlay_counts(file: &mut ExperimentFile, search: &SearchFlags) -> bool {
    let confirm = search.confirm.or(search.fast.then_some(1));
    let mut any = !search.sizes.is_empty();
    let mut set = |key: &mut Option<ValueWithOrigin<u32>>, name, flag: Option<u32>| {
        any |= flag.is_some();
        let value = flag.map(|value| ValueWithOrigin::from_flag(name, value));
        set_if_given(key, &value);
    };
    set(&mut file.search.confirm, "--confirm", confirm);
    set(&mut file.search.compare, "--compare", search.compare);
    set(&mut file.search.node, "--node", search.node);
    set_if_given(&mut file.search.prove, &search.prove);
    set_if_given(&mut file.search.spare, &search.spare);
    if !search.sizes.is_empty() {
        let size = |size: &String| ValueWithOrigin::from_flag("--sizes", size.clone());
        file.search.sizes = search.sizes.iter().map(size).collect();
    }
    any || search.prove.is_some() || search.spare.is_some()
}

/// The built-in prices by name, or the text of the user's own list: the experiment stores the
/// prices used.
fn overlay_prices(file: &mut ExperimentFile, search: &SearchFlags) -> Result<bool, Error> {
    let Some(prices) = &search.prices else {
        return Ok(false);
    };
    let path = Path::new(prices);
    let is_file = path.extension().is_some() || prices.contains('/');
    file.search.price_list = None;
    if is_file {
        let text = fs::read_to_string(path).map_err(|e| {
            Error::usage(format!("cannot read the price list {prices}: {e}")).with_hint(format!(
                "built-in offers: {}",
                loadline_analysis::offer::offer_names()
            ))
        })?;
        file.search.price_list = Some(ValueWithOrigin::from_flag("--prices", text));
    }
    file.search.prices = Some(ValueWithOrigin::from_flag("--prices", prices.clone()));
    Ok(true)
}

/// One CPU limit is a limit, several are a factor; so are JDKs and option sets.
fn overlay_factors(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    let plain = |levels: &[String]| levels.iter().cloned().map(LevelEntry::Plain).collect();
    let mut replace = |name: &str, flag, levels: Vec<LevelEntry>| {
        if !levels.is_empty() {
            file.factor.retain(|f| f.name.inner_value() != name);
            file.factor.push(factor(name, flag, levels));
        }
    };
    let mut words = [AUTO_CPU, NO_CPU_LIMIT].into_iter();
    let word = words.find(|word| flags.cpu == [*word]);
    let limits = match word {
        Some(_) => &[],
        None => flags.cpu.as_slice(),
    };
    replace("cpu", "--cpu", plain(limits));
    replace("jdk", "--jdk", plain(&flags.jdk));
    let sets = flags.jvm.iter().map(|text| option_set(text));
    let sets = sets.map(|set| LevelEntry::Changes(Box::new(set)));
    replace("options", "--jvm", sets.collect());
    if let Some(word) = word {
        file.factor.retain(|f| f.name.inner_value() != "cpu");
        file.limits.cpu = Some(ValueWithOrigin::from_flag("--cpu", word.to_owned()));
    }
    !(flags.cpu.is_empty() && flags.jdk.is_empty() && flags.jvm.is_empty())
}

pub fn factor(name: &str, flag: &'static str, levels: Vec<LevelEntry>) -> FactorTable {
    let levels = levels.into_iter();
    let levels = levels.map(|level| ValueWithOrigin::from_flag(flag, level));
    FactorTable {
        name: ValueWithOrigin::from_flag(flag, name.to_owned()),
        levels: levels.collect(),
        descend: None,
    }
}

/// `c1: -XX:TieredStopAtLevel=1 -Xmx64m`: a label and options, or only options.
fn option_set(text: &str) -> LevelTable {
    let (label, options) = match text.split_once(':') {
        Some((label, options)) if !label.trim_start().starts_with('-') => {
            (label.trim().to_owned(), options)
        }
        _ => (text.trim().to_owned(), text),
    };
    LevelTable {
        label,
        jvm: options.split_whitespace().map(str::to_owned).collect(),
        ..LevelTable::default()
    }
}

fn title(file: &ExperimentFile, path: Option<&Path>) -> String {
    let name = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let command = &file.app.command;
    let jar = command.iter().find(|a| a.ends_with(".jar"));
    let jar = jar.map(Path::new);
    let program = command.first().map(Path::new);
    let image = file.app.image.as_ref();
    let image = image.map(|image| images::short_name(image.inner_value()));
    path.and_then(name)
        .or(image)
        .or_else(|| jar.and_then(name))
        .or_else(|| program.and_then(name))
        .unwrap_or_default()
}

fn read_experiment(path: &Path) -> Result<String, Error> {
    if let Some(other) = files::other_kind(path, "an experiment") {
        return Err(other);
    }
    let name = path.display();
    files::read(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => {
            let problem = format!("{name} is a directory, not an experiment");
            let inside = path.join("loadline.toml");
            Error::usage(problem).with_hint(format!("name the file in it: {}", inside.display()))
        }
        _ => {
            let problem = format!("cannot read the experiment {name}: {error}");
            Error::usage(problem).with_hint(FORMAT)
        }
    })
}
