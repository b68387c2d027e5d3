//! `loadline judge`: runs foreign numbers under the same SLO, and checks a manifest on paper.
//!
//! Every advice becomes a level of one factor, so its trials run and are stored like those of
//! `loadline run`. Without a command the manifest is only checked.

pub mod paper;
mod table;

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_analysis::behaviour::read_longest_soak;
use loadline_analysis::budget::Budget;
use loadline_analysis::lint::{
    ContainerResources, LintedContainer, MeasuredNeeds, over_commitment,
};
use loadline_analysis::offer::Offer;
use loadline_analysis::record::{Configuration, JvmOption, TrialVerdict, ValueProvenance};
use loadline_experiment::advice::{self, AdviceError, ContainerAdvice};
use loadline_experiment::{Experiment, ValueWithOrigin};
use loadline_jvm::cache::application::JavaApplication;
use loadline_jvm::cache::jar;
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_load::split_refusal;
use loadline_report::ResultView;
use loadline_runner::agenda::Agenda;
use loadline_runner::command::assemble;
use loadline_runner::store::ResultKind;
use loadline_sizing::compat::rightsize;
use loadline_sizing::{Bytes, JavaVersion};

use self::paper::PaperCheck;
use crate::error::{CommandOutcome, Error};
use crate::experiment::{
    ExperimentFlags, ExtraFlags, InClusterFlags, LoadedExperiment, experiment_over, load_experiment,
};
use crate::measuring::{MeasureFlags, MeasuringSession};
use crate::output::{AnswerPrinter, OutputFlags};
use crate::result::view_by_id;
use crate::say::one_line_json;
use crate::{away, files};

const STARTS: u32 = 3;

const USUAL_JDK: u32 = 17;

#[derive(Args)]
pub struct JudgeArguments {
    /// Kubernetes manifest with the sizes to run: a file, a directory, or - for standard input;
    /// repeat the flag for more. Manifests are checked on paper first, as by `lint`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    manifest: Vec<PathBuf>,

    /// Advice to run: defaults, percent=75, paketo, boot-ui, fabric8, rightsize (Argus; from the
    /// soak in --measured), or a file (a manifest, or JSON from the Vertical Pod Autoscaler or
    /// KRR); repeat the flag for more
    #[arg(long, value_name = "ADVICE")]
    advice: Vec<String>,

    /// Memory limit for rules to start from, and for advice that names none
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,

    /// A result of this application, or a file written by `export`: its start time and memory are
    /// compared with the manifest, its recommendation's price with the advice's
    #[arg(long, value_name = "RESULT")]
    measured: Option<String>,

    /// Offer that sets the prices
    #[arg(long, value_name = "OFFER", default_value = "fargate")]
    prices: String,

    /// Fresh starts for each piece of advice [default: 3]
    #[arg(long, value_name = "N")]
    starts: Option<u32>,

    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    in_cluster: InClusterFlags,
    #[command(flatten)]
    measure: MeasureFlags,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(arguments: JudgeArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let flags = &arguments.flags;
    let is_named = flags.image.is_some() || flags.cluster.from.is_some();
    let has_command = !flags.command.is_empty() || is_named || flags.experiment_file().is_some();
    if arguments.manifest.is_empty() && arguments.advice.is_empty() {
        let other = flags.experiment_file();
        if let Some(other) = other.and_then(|file| files::other_kind(&file, "an experiment")) {
            return Err(
                other.with_hint("name the file to judge with --manifest FILE or --advice FILE")
            );
        }
        return Err(
            Error::usage("there is nothing to judge: neither --manifest nor --advice is given")
                .with_hint("on paper: loadline lint deploy.yaml")
                .with_hint("loadline judge --manifest deploy.yaml --slo 'p99<50ms' --rate 300/s --url http://localhost:8080/ -- java -jar app.jar")
                .with_hint("loadline judge --advice percent=75 --memory 512Mi --slo 'p99<50ms' --rate 300/s --url http://localhost:8080/ -- java -jar app.jar"),
        );
    }
    if let Some(memory) = arguments
        .memory
        .filter(|memory| *memory < Bytes::from_mib(1))
    {
        let problem = format!("--memory: `{memory}` is less than 1 MiB of memory");
        return Err(Error::usage(problem).with_hint("is the unit missing? write 512Mi"));
    }
    let state = arguments.measure.state.as_deref();
    let measured = measured_view(arguments.measured.as_deref(), state)?;
    let mut paper = None;
    if !arguments.manifest.is_empty() {
        let offer = offer(&arguments.prices)?;
        let given = (measured_figures(measured.as_ref()), None);
        let checked = PaperCheck::check_manifests(&arguments.manifest, given, offer)?;
        paper = Some(checked);
    }
    // With a command, stdout is the result's where JSON is asked for.
    match &paper {
        Some(paper) if arguments.output.json && has_command => say!("{}", paper.to_text()),
        Some(paper) if arguments.output.json => {
            out.print_answer(&one_line_json(&paper.to_document())?)?
        }
        Some(paper) => out.print_answer(&paper.to_text())?,
        None => {}
    }
    if has_command {
        let manifests = paper.map_or_else(Vec::new, |paper| paper.advice());
        return run_trials(&arguments, manifests, measured, out);
    }
    if !arguments.advice.is_empty() {
        return Err(Error::usage(
            "advice is judged by running it, but the application's command is missing",
        )
        .with_hint("put it last, after --, as you would start it: -- java -jar app.jar"));
    }
    Ok(paper.map_or(CommandOutcome::Done, |paper| paper.outcome()))
}

pub fn offer(prices: &str) -> Result<Offer, Error> {
    Offer::built_in(prices, None).map_err(|e| {
        let hint = e.offer_hint();
        // Price lists of users are for searches.
        Error::usage(e).with_hint(split_refusal(&hint).0)
    })
}

/// The longest start and the highest memory use of the passing trials of a result, and the budget of its
/// answer.
pub fn measured_figures(view: Option<&ResultView>) -> MeasuredNeeds {
    let Some(view) = view else {
        return MeasuredNeeds::default();
    };
    let budget = view.recommendation.as_ref().and_then(|r| r.budget.as_ref());
    let passed = view.trials.iter();
    let passed = passed.filter(|t| t.verdict == TrialVerdict::Pass);
    let starts = passed.clone().filter_map(|t| t.evidence.start.ready);
    let memory = passed.filter_map(|t| t.evidence.cgroup.peak_working_set);
    MeasuredNeeds {
        start: starts.max(),
        memory: memory.max(),
        rest: budget.map(Budget::rest_need),
    }
}

pub fn measured_view(id: Option<&str>, state: Option<&Path>) -> Result<Option<ResultView>, Error> {
    id.map(|id| view_by_id(id, state)).transpose()
}

fn warn_of_heaps(rules: &[ContainerAdvice], memory: Option<Bytes>, measured: MeasuredNeeds) {
    for advice in rules {
        let limits = ContainerResources {
            cpu: advice.cpu,
            memory: advice.memory.or(memory),
        };
        let container = LintedContainer {
            limits,
            jvm: advice.jvm.clone(),
            ..LintedContainer::default()
        };
        if let Some(finding) = over_commitment(&container, measured) {
            say!(
                "error: {}: {}\nhint: {}",
                advice.label,
                finding.problem,
                finding.hint
            );
        }
    }
}

fn run_trials(
    arguments: &JudgeArguments,
    manifests: Vec<ContainerAdvice>,
    measured: Option<ResultView>,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let offer = offer(&arguments.prices)?;
    let plain = load_experiment(&arguments.flags, ExtraFlags::default())?;
    let places = JdkPlaces::of_process();
    let found = DetectedJdks::scan_places(&places);
    let trials = measured.as_ref().map_or(&[][..], |view| &view.trials);
    let behaviour = read_longest_soak(trials);
    let start = rule_inputs(
        &plain.experiment,
        arguments.memory,
        behaviour,
        &found,
        &places,
    );
    let checked = manifests.len();
    let advices = advices(arguments, &start, manifests)?;
    let rules = &advices[..advices.len() - checked];
    warn_of_heaps(rules, start.memory, measured_figures(measured.as_ref()));
    let given = judged_experiment(plain, &advices, arguments)?;
    if arguments.in_cluster.in_cluster {
        let flags = (&arguments.measure, &arguments.output);
        return away::send_result(given, ResultKind::Run, flags);
    }
    let mut measuring = MeasuringSession::begin_result(given, ResultKind::Run, &arguments.measure)?;
    let agenda = Agenda::new(&measuring.experiment);
    let records = measuring.run_agenda(&agenda)?;
    if !arguments.output.json {
        let reference = measured.and_then(|view| view.recommendation);
        let reference = reference.and_then(|r| table::limited_size(&r.configuration));
        let table = table::advice_table(&agenda.matrix, &records, &offer, reference);
        out.print_answer(&table)?;
    }
    super::show::print_result(&measuring.store, &measuring.result, &arguments.output, out)?;
    super::run::outcome(&records)
}

fn judged_experiment(
    plain: LoadedExperiment,
    advices: &[ContainerAdvice],
    arguments: &JudgeArguments,
) -> Result<LoadedExperiment, Error> {
    let bases = plain.experiment.configurations().into_iter();
    let advised = bases.flat_map(|base| {
        let of = move |advice| advised_configuration(&base, advice, arguments.memory);
        advices.iter().map(of)
    });
    let advised = advised.collect();
    let starts = ValueWithOrigin::from_flag("--starts", arguments.starts.unwrap_or(STARTS));
    experiment_over(plain.file, plain.experiment, advised, starts, plain.title)
}

fn advised_configuration(
    base: &Configuration,
    advice: &ContainerAdvice,
    memory: Option<Bytes>,
) -> Configuration {
    let label = match base.label.as_str() {
        "" | "as given" => advice.label.clone(),
        label => format!("{label} {}", advice.label),
    };
    let mut configuration = Configuration {
        label,
        cpu: advice.cpu.or(base.cpu),
        // A limit is whole KiB: decimal units of a manifest are rounded down.
        memory: advice
            .memory
            .map(|memory| Bytes::from_bytes(memory.as_bytes() / 1024 * 1024))
            .or(memory)
            .or(base.memory),
        ..base.clone()
    };
    let option = |text: &String| JvmOption {
        text: text.clone(),
        provenance: ValueProvenance::User,
    };
    let options = advice.jvm.iter().map(option);
    configuration.jvm_options.extend(options);
    configuration
}

fn advices(
    arguments: &JudgeArguments,
    given: &advice::RuleInput,
    manifests: Vec<ContainerAdvice>,
) -> Result<Vec<ContainerAdvice>, Error> {
    let mut advices = Vec::new();
    let mut without = Vec::new();
    for name in &arguments.advice {
        match advice::read(name, given) {
            Ok(advice) => advices.push(advice),
            // That a rule refuses says something about the rule; the others still run.
            Err(error @ AdviceError::NoAnswer { .. }) => without.push(error),
            Err(error) => return Err(advice_refused(&error)),
        }
    }
    advices.extend(manifests);
    if let (true, Some(error)) = (advices.is_empty(), without.first()) {
        return Err(advice_refused(error));
    }
    for error in without {
        say!("left out: {error}");
        error
            .advice_hint()
            .iter()
            .for_each(|hint| say!("hint: {hint}"));
    }
    Ok(advices)
}

fn rule_inputs(
    experiment: &Experiment,
    memory: Option<Bytes>,
    behaviour: Result<rightsize::RightsizeInput, String>,
    found: &DetectedJdks,
    places: &JdkPlaces,
) -> advice::RuleInput {
    let first = experiment.configurations().into_iter().next();
    let first = first.unwrap_or_else(|| experiment.base.clone());
    let assembled = assemble(experiment, &first, found, places);
    let jdk = assembled.ok().and_then(|a| a.jdk);
    let version = |jdk: &InstalledJdk| {
        let exact = jdk.version.full.parse();
        exact.unwrap_or(JavaVersion::from_feature(jdk.version.feature))
    };
    // A script may start any JVM: the machine's is the likeliest.
    let jdk = jdk.as_ref().or(found.jdks.first()).map(version);
    advice::RuleInput {
        cpu: first.cpu,
        memory: memory.or(first.memory),
        jdk: jdk.unwrap_or(JavaVersion::from_feature(USUAL_JDK)),
        classes: count_classes(
            &experiment.app_of(&first).command,
            &experiment.app.directory,
        ),
        behaviour,
    }
}

/// Classes in the jars of the command's class path, and in the jars inside them.
fn count_classes(command: &[String], directory: &Path) -> Option<u64> {
    let application = JavaApplication::from_arguments(command.get(1..)?, directory);
    let files = application.ok()?.files;
    files.iter().map(|file| jar::count_classes(file).ok()).sum()
}

fn advice_refused(error: &AdviceError) -> Error {
    Error::usage(error).with_hint_if(error.advice_hint())
}

#[cfg(test)]
mod tests {
    use loadline_experiment::ExperimentFile;

    use super::*;

    const JAR: &[u8] = include_bytes!("../../../jvm/tests/data/cache/class-path.jar");

    #[test]
    fn advice_is_run_and_stored_as_it_is() {
        let text = "slo = \"p99<50ms\"\napp.command = [\"java\", \"-jar\", \"app.jar\"]\n\
                    [limits]\ncpu = \"1500m\"\nmemory = \"1Gi\"\n\
                    [load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n";
        let here = Path::new("/app");
        let experiment = Experiment::from_file_text(text, Path::new("exp.toml"), here);
        let experiment = experiment.expect("it is valid");
        let base = experiment.configurations().remove(0);
        let advice = ContainerAdvice {
            label: "percent=75".to_owned(),
            memory: Some(Bytes::from_bytes(500_000_000)),
            jvm: vec!["-XX:MaxRAMPercentage=75".to_owned()],
            ..ContainerAdvice::default()
        };
        let all = vec![
            advised_configuration(&base, &advice, None),
            advised_configuration(
                &base,
                &ContainerAdvice::default(),
                Some(Bytes::from_mib(512)),
            ),
        ];
        assert_eq!(all[0].label, "percent=75");
        assert_eq!(all[0].memory, Some(Bytes::from_bytes(499_999_744)));
        assert_eq!(all[0].cpu, base.cpu);
        assert_eq!(all[1].memory, Some(Bytes::from_mib(512)));
        let file = ExperimentFile::from_toml(text, Path::new("exp.toml")).expect("it is valid");
        let given = experiment_over(
            file,
            experiment,
            all.clone(),
            ValueWithOrigin::from_flag("--starts", 3),
            String::new(),
        )
        .expect("it is stored");
        assert_eq!(given.experiment.configurations(), all);
        let stored = Experiment::from_file_text(&given.text, Path::new("stored"), Path::new("/"));
        let stored = stored.expect("the stored text is read again");
        assert_eq!(stored.configurations(), all);
        assert_eq!((stored.repeats, stored.app.directory.as_path()), (3, here));
    }

    #[test]
    fn rules_start_from_the_file_as_from_flags() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("app.jar"), JAR).expect("a file");
        let text = "slo = \"p99<50ms\"\napp.command = [\"/opt/none/bin/java\", \"-jar\", \"app.jar\"]\n\
                    [limits]\ncpu = \"1500m\"\nmemory = \"1Gi\"\n\
                    [load]\nurl = \"http://localhost:8080/\"\nrate = \"10/s\"\n";
        let parsed = Experiment::from_file_text(text, Path::new("exp.toml"), directory.path());
        let experiment = parsed.expect("it is valid");
        let found = DetectedJdks {
            jdks: Vec::new(),
            unusable: Vec::new(),
        };
        let unknown = || Err(String::new());
        let of = |memory| {
            rule_inputs(
                &experiment,
                memory,
                unknown(),
                &found,
                &JdkPlaces::of_process(),
            )
        };
        let from_file = of(None);
        assert_eq!(from_file.cpu, "1500m".parse().ok());
        assert_eq!(from_file.memory, Some(Bytes::from_gib(1)));
        assert_eq!(from_file.jdk, JavaVersion::from_feature(17));
        let counted = from_file.classes;
        assert!(
            counted.is_some(),
            "the jar comes from the application's directory"
        );
        let flag = Bytes::from_mib(512);
        assert_eq!(of(Some(flag)).memory, Some(flag));
    }
}
