//! The result a command is about: one of the store by its id, or a file that `export` wrote.
//!
//! Owns the way from either to a [`ResultView`], so that every command that reads results works on
//! another machine too.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::read::MultiGzDecoder;
use loadline_analysis::recommend::{Conclusion, NoAnswer, Recommendation};
use loadline_analysis::record::MachineDescription;
use loadline_experiment::Experiment;
use loadline_files::FileKind;
use loadline_load::LoadModel;
use loadline_report::{LoadWords, ResultView, TargetNode, format, redact};
use loadline_runner::store::{ResultRow, ResultStatus, Store};
use loadline_sizing::hotspot::node::ARENAS;
use loadline_sizing::options::words;
use loadline_sizing::{JvmOptionSet, OptionOrigin};

use crate::error::Error;
use crate::files;
use crate::measuring::{experiment_of, open_store_to_read};
use crate::ui::next::next_command as next;
use crate::ui::text::short;

/// The newest result, also where a file has this name: that is `./last`.
const LAST: &str = "last";

/// Largest file of records that is read, unpacked. A thousand trials are some tens of MiB.
const LARGEST: u64 = 256 << 20;

/// Which result.
#[derive(Args, Debug, Clone, Default)]
pub struct ResultFlags {
    /// Id of the result, or a unique prefix; `last` for the newest; or a file written by `export`
    /// (- is standard input)
    #[arg(default_value = "last", value_name = "RESULT")]
    pub id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl ResultFlags {
    pub fn read_view(&self) -> Result<ResultView, Error> {
        view_by_id(&self.id, self.state.as_deref())
    }

    pub fn is_from_elsewhere(&self) -> bool {
        is_file_name(&self.id) || files::is_standard(Path::new(&self.id))
    }

    /// Reads it together with its experiment, with paths relative to where it was measured; for a
    /// file that `export` wrote, relative to the working directory. Errors: As [`Self::read_view`],
    /// and when the experiment's text is not understood (an older or newer loadline wrote it).
    pub fn view_and_experiment(&self) -> Result<(ResultView, Experiment), Error> {
        let (view, row) = find_view(&self.id, self.state.as_deref())?;
        let experiment = match row {
            Some(row) => experiment_of(&row)?,
            None => experiment_of_view(&view)?,
        };
        Ok((view, experiment))
    }
}

pub fn view_by_id(id: &str, state: Option<&Path>) -> Result<ResultView, Error> {
    find_view(id, state).map(|(view, _)| view)
}

pub fn is_file_name(id: &str) -> bool {
    let path = Path::new(id);
    id != LAST && path.is_file() || path.extension().is_some_and(|e| e == "json" || e == "gz")
}

pub fn of_store(id: &str) -> Result<(), Error> {
    if !is_file_name(id) {
        return Ok(());
    }
    let what = format!("{id} is a file; trials can only be added to results of this machine");
    Err(Error::usage(what)
        .with_hint("give an id from `loadline list`; `loadline show FILE` reads a file"))
}

fn find_view(id: &str, state: Option<&Path>) -> Result<(ResultView, Option<ResultRow>), Error> {
    let path = Path::new(id);
    let is_last = id == LAST;
    if !is_last && path.is_file() || files::is_standard(path) {
        return Ok((read_export(path)?, None));
    }
    if !is_last && path.is_dir() {
        return Err(Error::usage(format!("{} is a directory, not a result", path.display()),
        )
        .with_hint(
            "name a file written by `loadline export`, or a directory of results with --state DIR",
        ));
    }
    if is_file_name(id) {
        return Err(Error::usage(format!("there is no file {}", path.display()))
            .with_hint("`loadline export RESULT -o result.json` writes one"));
    }
    let store = open_store_to_read(state)?;
    let row = store.result_by_prefix(id)?;
    Ok((stored_view(&store, &row)?, Some(row)))
}

fn damaged(path: &Path, how: &str) -> Error {
    let what = format!("{} is {how}", files::display_name(path));
    Error::usage(what).with_hint("export it again: loadline export RESULT -o result.json.gz")
}

fn read_export(path: &Path) -> Result<ResultView, Error> {
    let name = files::display_name(path);
    let unreadable = |e: std::io::Error| Error::environment(format!("cannot read {name}: {e}"));
    let input: Box<dyn Read> = if files::is_standard(path) {
        Box::new(std::io::stdin())
    } else {
        Box::new(File::open(path).map_err(unreadable)?)
    };
    let mut file = BufReader::new(input);
    let begin = std::io::BufRead::fill_buf(&mut file).map_err(unreadable)?;
    let is_packed = begin.starts_with(&[0x1f, 0x8b]);
    let mut text = String::new();
    let read = if is_packed {
        MultiGzDecoder::new(file)
            .take(LARGEST)
            .read_to_string(&mut text)
    } else {
        file.take(LARGEST).read_to_string(&mut text)
    };
    if let Err(error) = read {
        return Err(match error.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged(path, "cut off: its end is missing"),
            _ if is_packed => damaged(path, "damaged: it cannot be unpacked"),
            _ => files::other_kind(path, "a result").unwrap_or_else(|| unreadable(error)),
        });
    }
    let mut view = loadline_report::read(&text).map_err(|e| {
        // JSON may be a result that is cut, or of another version.
        let other = FileKind::other_than(path, "a result");
        let other = other.filter(|kind| !["JSON", "a packed file"].contains(&kind.name));
        if let Some(kind) = other {
            return files::refuse_kind(path, kind, "a result");
        }
        let what = e.to_string();
        if what.contains("EOF while parsing") && !text.trim().is_empty() {
            return damaged(path, "cut off: its end is missing");
        }
        Error::usage(format!("{name}: {what}")).with_hint_if(e.read_hint())
    })?;
    // Older versions wrote the load in words only; the experiment has the rate.
    if view.load.rate_per_second.is_none()
        && let Ok(experiment) = experiment_of_view(&view)
    {
        view.load = redact::redact_load(&describe_load(&experiment));
    }
    // Without reading the experiment a second time for all the others.
    if view.experiment.contains("node")
        && let Ok(experiment) = experiment_of_view(&view)
    {
        view.node = target_node(&experiment, &view.machine, experiment.search.node);
    }
    Ok(view)
}

/// The experiment that a view was measured with, without what it varied: an export has taken the
/// secrets out of the labels, and then two levels may have one label.
/// Errors: When its text is not understood (an older or newer loadline wrote it).
fn experiment_of_view(view: &ResultView) -> Result<Experiment, Error> {
    let name = Path::new("the experiment of the result");
    let text = match view.experiment.parse::<toml::Table>() {
        Ok(mut table) => {
            table.remove("factor");
            table.to_string()
        }
        // It is refused below, with the position of the error.
        Err(_) => view.experiment.clone(),
    };
    Experiment::from_record_text(&text, name, Path::new(".")).map_err(Error::from)
}

/// A stored result as reports read it: what names a secret, in configurations and in what trials
/// quote, is gone already. The experiment and the command stay whole, to be run again. Separate soaks
/// of its answer are among the trials.
/// Errors: When the store cannot be read.
pub fn stored_view(store: &Store, row: &ResultRow) -> Result<ResultView, Error> {
    let experiment = experiment_of(row)?;
    let mut trials = store.finished_trials(&row.id)?;
    trials.extend(store.soaks_of(&row.id)?);
    let (recommendation, without) = stored_conclusion(row)?;
    let node = target_node(&experiment, &row.machine, experiment.search.node);
    Ok(ResultView {
        node,
        today: None,
        id: row.id.clone(),
        title: row.title.clone(),
        question: experiment.question.clone(),
        command: row.command.clone(),
        experiment: row.experiment.clone(),
        load: redact::redact_load(&describe_load(&experiment)),
        machine: row.machine.clone(),
        slo: redact::redact_slo(&experiment.slo),
        recommendation: recommendation.as_ref().map(redact::redact_recommendation),
        incomplete: away_notice(store, row)?
            .or_else(|| incomplete(row, recommendation.is_some(), without.undecided)),
        warnings: without.left_out,
        trials: trials.iter().map(redact::redact_record).collect(),
    })
}

pub fn stored_conclusion(row: &ResultRow) -> Result<(Option<Recommendation>, NoAnswer), Error> {
    let stored = row.outcome.as_deref();
    let read = stored.map(serde_json::from_str::<Conclusion>).transpose();
    let unreadable = |e| format!("the stored recommendation cannot be read: {e}");
    let read = read.map_err(|e| Error::environment(unreadable(e)))?;
    Ok(match read {
        Some(Conclusion::Answer(answer)) => (Some(*answer), NoAnswer::default()),
        Some(Conclusion::NoAnswer(without)) => (None, without),
        None => (None, NoAnswer::default()),
    })
}

fn count_trials(row: &ResultRow) -> String {
    format::count_of(usize::try_from(row.trials).unwrap_or_default(), "trial")
}

fn away_notice(store: &Store, row: &ResultRow) -> Result<Option<String>, Error> {
    let place = store.away_location(&row.id)?;
    Ok(place.map(|place| {
        let (namespace, context) = (place.namespace, place.context);
        let (trials, resume) = (count_trials(row), resume_words(row));
        format!(
            "measured in the namespace {namespace} ({context}); {trials} fetched; fetch the rest, or take over: {resume}"
        )
    }))
}

fn resume_words(row: &ResultRow) -> String {
    next(&format!("resume {}", short(&row.id)))
}

fn incomplete(row: &ResultRow, is_answered: bool, undecided: Option<String>) -> Option<String> {
    let trials = count_trials(row);
    let go_on = format!("continue with: {}", resume_words(row));
    match row.status {
        ResultStatus::Done => None,
        ResultStatus::Failed if undecided.is_some() => undecided,
        ResultStatus::Running => Some(format!("still running: {trials} so far")),
        ResultStatus::Interrupted => Some(format!("interrupted after {trials}; {go_on}")),
        ResultStatus::Failed if is_answered => Some(format!(
            "ended after {trials}, before the size was tested; {go_on}"
        )),
        ResultStatus::Failed => Some(format!("ended by an error after {trials}; {go_on}")),
    }
}

pub fn target_node(
    experiment: &Experiment,
    machine: &MachineDescription,
    cpus: Option<u32>,
) -> Option<TargetNode> {
    let app = &experiment.app;
    let command = app.command.iter().take_while(|word| *word != "-jar");
    let command = command.map(|word| (word.clone(), OptionOrigin::CommandLine));
    let image = machine.image.as_ref();
    let of_image = image.and_then(|image| image.tool_options.as_ref());
    let variables = [
        ("JAVA_TOOL_OPTIONS", OptionOrigin::ToolOptions),
        ("JDK_JAVA_OPTIONS", OptionOrigin::JdkJavaOptions),
        ("_JAVA_OPTIONS", OptionOrigin::UnderscoreJavaOptions),
    ];
    let variables = variables.into_iter().flat_map(|(name, origin)| {
        let own = app.env.get(name);
        let text = own.or(of_image.filter(|_| origin == OptionOrigin::ToolOptions));
        let words = text.map(|text| words::split_environment(text).unwrap_or_default());
        let words = words.unwrap_or_default().into_iter();
        words.map(move |word| (word, origin))
    });
    Some(TargetNode {
        cpus: cpus?,
        options: JvmOptionSet::merge(command.chain(variables)),
        has_arenas: app.env.contains_key(ARENAS),
    })
}

pub fn load_words(experiment: &Experiment) -> String {
    redact::redact_load(&describe_load(experiment)).to_string()
}

fn describe_load(experiment: &Experiment) -> LoadWords {
    let (load, model) = (&experiment.load.spec, &experiment.load.model);
    // Parts of a profile are whole ns long: what they add up to is not always round.
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let seconds = |d: std::time::Duration| format!("{} s", round(d.as_secs_f64()));
    let length = seconds(model.scheduled_duration().unwrap_or_default());
    let warm_up = seconds(load.warm_up());
    let command = |words: &[String]| redact::redact_command(words).join(" ");
    if experiment.load.is_absent() {
        return LoadWords::without_rate("a run that ends by itself".to_owned());
    }
    if experiment.load.is_timed() {
        let work = if load.drive.is_empty() {
            "its own work".to_owned()
        } else {
            format!("the work of `{}`", command(&load.drive))
        };
        let words = format!("{work}, {length} after a warm-up of {warm_up}");
        return LoadWords::without_rate(words);
    }
    if !load.command.is_empty() {
        let asked = model.mean_rate();
        let asked = asked.map(|rate| format!(", asked for {}/s", round(rate)));
        let (command, asked) = (command(&load.command), asked.unwrap_or_default());
        return LoadWords::without_rate(format!(
            "the command `{command}`{asked}, {length} from its first request after a warm-up of {warm_up}"
        ));
    }
    let path = load.url.as_ref().map_or("/", |url| url.path.as_str());
    let requests = match load.mix().len() {
        0 => format!("{} {path}", load.method.as_deref().unwrap_or("GET")),
        1 => load.request_names().concat(),
        requests => format!("a mix of {requests} requests"),
    };
    let sessions = load.session_requests();
    let sessions = sessions.map(|requests| format!(", sessions of {} requests", round(requests)));
    let peak = load.peak.map(|peak| format!(", then a peak of {peak}"));
    let (sessions, peak) = (sessions.unwrap_or_default(), peak.unwrap_or_default());
    let connections = load.connection_count(model);
    let streams = load.http2();
    let streams = streams.map_or_else(String::new, |h| format!(" of {} HTTP/2 streams", h.streams));
    let tls = if load.url.as_ref().is_some_and(|url| url.is_tls) {
        " over TLS"
    } else {
        ""
    };
    let rest =
        format!("{peak}{sessions}, {connections} connections{streams}{tls}, warm-up {warm_up}");
    let closed =
        |how: String| LoadWords::without_rate(format!("{requests}, closed model{how}{rest}"));
    match model {
        LoadModel::Open { .. } => LoadWords {
            before: format!("{requests}, open model, "),
            rate_per_second: model.mean_rate().map(round),
            after: format!(" for {length}{rest}"),
        },
        LoadModel::ClosedFor { duration } => closed(format!(" for {}", seconds(*duration))),
        LoadModel::ClosedRequests { requests } => closed(format!(", {requests} requests")),
    }
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::{
        AppKo, JvmOption, SoakEvidence, TrialPurpose, TrialVerdict, ValueProvenance,
    };
    use loadline_report::content::headline;
    use loadline_runner::store::{NewResult, ResultKind, TrialKey};

    use super::*;

    #[test]
    fn a_stored_result_knows_the_directory_it_was_measured_in() {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open_or_create(place.path()).expect("a store");
        let new = NewResult {
            kind: ResultKind::Size,
            title: "a".to_owned(),
            experiment: EXPERIMENT.to_owned(),
            directory: PathBuf::from("/srv/elsewhere"),
            command: Vec::new(),
            machine: loadline_analysis::record::MachineDescription::default(),
        };
        let id = store.create_result(&new).expect("a result");
        let flags = ResultFlags {
            id,
            state: Some(place.path().to_owned()),
        };
        let (_, experiment) = flags.view_and_experiment().expect("it is read");
        assert_eq!(experiment.app.directory, Path::new("/srv/elsewhere"));
    }

    #[test]
    fn a_search_that_a_budget_ended_before_its_proof_is_no_error() {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open_or_create(place.path()).expect("a store");
        let new = NewResult {
            kind: ResultKind::Size,
            title: "a".to_owned(),
            experiment: EXPERIMENT.to_owned(),
            directory: PathBuf::from("/srv"),
            command: Vec::new(),
            machine: loadline_analysis::record::MachineDescription::default(),
        };
        let id = store.create_result(&new).expect("a result");
        let ended = store.set_status(&id, ResultStatus::Failed, None);
        ended.expect("it ends");
        let mut row = store.result_by_prefix(&id).expect("a row");
        row.trials = 1;
        let said = |is_answered| incomplete(&row, is_answered, None).expect("it is not complete");
        let untested = "ended after 1 trial, before the size was tested; continue with: ";
        assert!(said(true).starts_with(untested), "{}", said(true));
        assert!(said(false).starts_with("ended by an error after 1 trial; "));
    }

    #[test]
    fn a_separate_soak_that_died_withdraws_the_claim_of_its_own_answer_only() {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open_or_create(place.path()).expect("a store");
        let record = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../records/2026-11-20-spring-web-size/result.json.gz");
        let recorded = read_export(&record).expect("it is read");
        let answer = recorded.recommendation.expect("an answer");
        let new = |kind| NewResult {
            kind,
            title: "a".to_owned(),
            experiment: EXPERIMENT.to_owned(),
            directory: PathBuf::from("/srv"),
            command: Vec::new(),
            machine: recorded.machine.clone(),
        };
        let size = || {
            let id = store.create_result(&new(ResultKind::Size));
            let id = id.expect("a result");
            let text = serde_json::to_string(&answer).expect("JSON");
            let ended = store.set_status(&id, ResultStatus::Done, Some(&text));
            ended.expect("it ends");
            id
        };
        let (sized, other) = (size(), size());
        let soak = |add: Option<&str>| {
            let result = store.create_result(&new(ResultKind::Soak));
            let result = result.expect("a result");
            store.set_soaked(&result, &sized).expect("it is noted");
            let mut configuration = answer.configuration.clone();
            let provenance = ValueProvenance::User;
            let text = add.map(str::to_owned);
            let added = text.map(|text| JvmOption { text, provenance });
            configuration.jvm_options.extend(added);
            let key = TrialKey {
                result: result.clone(),
                purpose: TrialPurpose::Soak,
                configuration,
                repeat: 1,
                attempt: 1,
            };
            let mut trial = recorded.trials[0].clone();
            trial.id = store.begin_trial(&key).expect("it begins");
            (trial.result, trial.purpose) = (result, key.purpose);
            trial.configuration = key.configuration;
            trial.verdict = TrialVerdict::AppKo(AppKo::CgroupOom);
            trial.evidence.soak = Some(SoakEvidence::default());
            store.finish_trial(&trial).expect("it is stored");
        };
        let badge = |id: &str| {
            let row = store.result_by_prefix(id).expect("a row");
            let view = stored_view(&store, &row).expect("it is read");
            let again = loadline_report::read(&loadline_report::render_json(&view));
            let badge = headline(&view).badge;
            assert_eq!(headline(&again.expect("an export")).badge, badge);
            badge
        };
        let before = badge(&sized);
        soak(Some("-Dother=true"));
        assert_eq!(badge(&sized), before, "it had other options");
        soak(None);
        assert_eq!((badge(&sized), badge(&other)), ("Did not last", before));
    }

    const EXPERIMENT: &str = r#"
        slo = "p99<250ms"
        [app]
        command = ["java", "-jar", "a.jar"]
        [app.ready]
        http = "/health"
        [load]
        url = "http://localhost:8080/"
        rate = "100/s"
        warm-up = "2s"
        measure = "4s"
        [search]
        min-memory = "128Mi"
        max-memory = "512Mi"
    "#;
}
