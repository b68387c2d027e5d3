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
    AppTable, ComposeTable, ExperimentFile, FactorTable, LevelEntry, LevelTable, LimitsTable,
    SearchTable,
};
use loadline_experiment::{AUTO_CPU, Experiment, NO_CPU_LIMIT, ValueWithOrigin};
use loadline_load::LoadTarget;
use loadline_runner::command::is_java;
use loadline_sizing::options::words::{TOO_LATE, find_bare_jar, find_late_options};

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

/// The flags that some commands have besides those of the experiment.
#[derive(Clone, Copy, Default)]
pub struct ExtraFlags<'a> {
    pub search: Option<&'a SearchFlags>,
    pub matrix: Option<&'a MatrixFlags>,
}

pub fn load_experiment(
    flags: &ExperimentFlags,
    more: ExtraFlags<'_>,
) -> Result<LoadedExperiment, Error> {
    let is_auto = flags.cpu == [AUTO_CPU] || flags.start_cpu.as_deref() == Some(AUTO_CPU);
    if is_auto && more.search.is_none() {
        let problem = "--cpu auto and --start-cpu auto choose the CPU, and only `size` does that";
        return Err(Error::usage(problem)
            .with_hint("give a CPU limit, e.g. --cpu 500m, or several: --cpu 500m,1"));
    }
    let here = called::working_directory()?;
    let named = flags.experiment_file();
    let Some(path) = named.as_deref() else {
        let mut file = from_flags(flags)?;
        overlay(&mut file, flags, more)?;
        settle_named(&mut file, &here)?;
        let title = title(&file, None);
        return check_file(file, None, &here, title);
    };
    let text = read_experiment(path)?;
    let experiment = Experiment::from_file_text(&text, path, &here)?;
    let written = ExperimentFile::from_toml(&text, path)?;
    let title = title(&written, Some(path));
    let absolute = here.join(path);
    let beside = absolute.parent().unwrap_or(&here);
    let mut file = written.clone();
    file.settle_files(beside)?;
    file.settle_stubs(beside)?;
    settle_named(&mut file, beside)?;
    overlay(&mut file, flags, more)?;
    settle_named(&mut file, &here)?;
    if file == written {
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
fn settle_named(file: &mut ExperimentFile, base: &Path) -> Result<(), Error> {
    let composed = file.settle_compose(base);
    composed.map_err(Error::from_wrong_input)?;
    let left_out = file.settle_manifest(base);
    for what in left_out.map_err(Error::from_wrong_input)? {
        say!("not taken from the manifest: {what}");
    }
    Ok(())
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
    if !flags.is_job() && !is_consumer {
        let url = flags.url.as_ref().map(LoadTarget::to_string);
        need(&url, "--url", "http://localhost:8080/").map_err(|error| {
            error
                .with_hint("a program that ends does not need it: --job")
                .with_hint("nor does one judged by metrics: --metric 'lag=records_lag', or --probe 'lag=./lag.sh'")
        })?;
    }
    let of_job = || flags.is_job().then(|| JOB_SLO.to_owned());
    let slo = flags.slo.clone().or_else(of_job);
    let slo = need(&slo, "--slo", "'p99<50ms,errors<0.1%'")?;
    let slo = ValueWithOrigin::from_flag("--slo", slo);
    Ok(plain_file(slo, flags.command.clone()))
}

/// An experiment that says no more than its SLO and its command.
pub fn plain_file(slo: ValueWithOrigin<String>, command: Vec<String>) -> ExperimentFile {
    ExperimentFile {
        slo,
        app: AppTable {
            command,
            ..AppTable::default()
        },
        ..ExperimentFile::default()
    }
}

fn overlay(
    file: &mut ExperimentFile,
    flags: &ExperimentFlags,
    more: ExtraFlags<'_>,
) -> Result<(), Error> {
    if let Some(search) = more.search {
        overlay_prices(file, search)?;
    }
    overlay_load(file, flags)?;
    let here = called::working_directory()?;
    let env = environment::read_environment(flags, &here)?;
    file.app.env.extend(env);
    if let Some(matrix) = more.matrix {
        overlay_matrix(file, matrix);
    }
    flags::overlay_run(&mut file.app, flags);
    flags::overlay_metrics(file, flags);
    let app = &mut file.app;
    let deadline = &flags.start_deadline;
    set_from_flag(&mut app.start_deadline, "--start-deadline", deadline);
    set_from_flag(&mut file.limits.start_cpu, "--start-cpu", &flags.start_cpu);
    set_from_flag(&mut app.user, "--user", &flags.user);
    set_from_flag(&mut app.network, "--network", &flags.network);
    set_from_flag(&mut app.image, "--image", &flags.image);
    set_from_flag(&mut app.version, "--app-version", &flags.app_version);
    set_from_flag(&mut app.engine, "--engine", &flags.engine);
    set_if_given(&mut app.ready, &flags.ready);
    if flags.accept_noise {
        file.run.accept_noise = Some(true);
    }
    if flags.image.is_some() || flags.compose.is_some() {
        // The file's command belongs to another application.
        app.command.clear();
    }
    if let Some(search) = more.search {
        overlay_search(&mut file.search, search);
    }
    flags.cluster.overlay(file)?;
    overlay_compose(file, flags);
    if let Some(slo) = &flags.slo {
        file.slo = ValueWithOrigin::from_flag("--slo", slo.clone());
    }
    if !flags.command.is_empty() {
        file.app.command.clone_from(&flags.command);
    }
    overlay_factors(file, flags);
    check_command(&flags.command, flags.is_job())?;
    flags.cluster.overlay_running(file)
}

fn set_from_flag<T: Clone>(
    key: &mut Option<ValueWithOrigin<T>>,
    name: &'static str,
    flag: &Option<T>,
) {
    if let Some(value) = flag {
        *key = Some(ValueWithOrigin::from_flag(name, value.clone()));
    }
}

fn overlay_search(table: &mut SearchTable, flags: &SearchFlags) {
    set_from_flag(&mut table.min_memory, "--min-memory", &flags.min_memory);
    set_from_flag(&mut table.max_memory, "--max-memory", &flags.max_memory);
    set_from_flag(&mut table.question, "--question", &flags.question);
    set_from_flag(&mut table.soak, "--soak", &flags.soak);
    set_from_flag(&mut table.step, "--step", &flags.step);
    set_from_flag(&mut table.margin, "--margin", &flags.margin);
    set_from_flag(&mut table.heap, "--heap", &flags.heap);
    set_from_flag(&mut table.cpu_policy, "--cpu-policy", &flags.cpu_policy);
    set_from_flag(&mut table.region, "--region", &flags.region);
    set_from_flag(&mut table.headroom, "--headroom", &flags.headroom);
    set_from_flag(&mut table.replicas, "--replicas", &flags.replicas);
    set_from_flag(&mut table.budget, "--budget", &flags.budget);
    let confirm = flags.confirm.or(flags.fast.then_some(1));
    set_from_flag(&mut table.confirm, "--confirm", &confirm);
    set_from_flag(&mut table.compare, "--compare", &flags.compare);
    set_from_flag(&mut table.node, "--node", &flags.node);
    set_if_given(&mut table.prove, &flags.prove);
    set_if_given(&mut table.spare, &flags.spare);
    if !flags.sizes.is_empty() {
        let size = |size: &String| ValueWithOrigin::from_flag("--sizes", size.clone());
        table.sizes = flags.sizes.iter().map(size).collect();
    }
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
    let arguments = &command[1..];
    if is_java(program) {
        if let Some(jar) = find_bare_jar(arguments) {
            let refusal = format!("{program} takes {jar} for the name of a class");
            return Err(Error::usage(refusal).with_hint(format!("-- {program} -jar {jar}")));
        }
        for option in find_late_options(arguments) {
            say!("warning: {option} has no effect: {TOO_LATE}");
        }
    }
    if !is_job && build_tool(command).is_some() {
        say!(
            "warning: {program} runs inside the limit too: build the jar, then -- java -jar target/APP.jar; or size the build itself: --job"
        );
    }
    Ok(())
}

/// Lays the load's flags over it; files that they name are relative to where loadline is called.
fn overlay_load(file: &mut ExperimentFile, flags: &ExperimentFlags) -> Result<(), Error> {
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
    flags.load_flags.overlay(load);
    load.resolve_files(&called::working_directory()?)?;
    grpc::encode_calls(load)?;
    Ok(())
}

fn overlay_matrix(file: &mut ExperimentFile, matrix: &MatrixFlags) {
    set_from_flag(&mut file.run.repeats, "--repeats", &matrix.repeats);
    if let [one] = matrix.memory.as_slice() {
        file.factor.retain(|f| f.name.inner_value() != "memory");
        file.limits.memory = Some(ValueWithOrigin::from_flag("--memory", one.clone()));
    } else if !matrix.memory.is_empty() {
        let levels = matrix.memory.iter().cloned().map(LevelEntry::Plain);
        file.factor.retain(|f| f.name.inner_value() != "memory");
        file.factor
            .push(factor("memory", "--memory", levels.collect()));
    }
}

fn overlay_compose(file: &mut ExperimentFile, flags: &ExperimentFlags) {
    if let Some((path, service)) = flags.compose.as_ref().zip(flags.service.as_ref()) {
        file.app.image = None;
        file.compose = Some(ComposeTable {
            file: path.clone(),
            service: Some(service.clone()),
            ..ComposeTable::default()
        });
    }
}

/// The built-in prices by name, or the text of the user's own list: the experiment stores the
/// prices used.
fn overlay_prices(file: &mut ExperimentFile, search: &SearchFlags) -> Result<(), Error> {
    let Some(prices) = &search.prices else {
        return Ok(());
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
    Ok(())
}

/// One CPU limit is a limit, several are a factor; so are JDKs and option sets.
fn overlay_factors(file: &mut ExperimentFile, flags: &ExperimentFlags) {
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
