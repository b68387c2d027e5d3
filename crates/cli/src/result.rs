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
use loadline_analysis::record::Machine;
use loadline_engine::experiment::Experiment;
use loadline_engine::store::{ResultRow, Status, Store};
use loadline_load::Model;
use loadline_report::{Load, Node, ResultView, format, redact};
use loadline_sizing::hotspot::node::ARENAS;
use loadline_sizing::options::words;
use loadline_sizing::{Options, Origin};

use crate::error::{Error, ErrorKind};
use crate::experiment::refused;
use crate::files;
use crate::measuring::{experiment_of, open_store_to_read, store_refused};
use crate::ui::next::command as next;
use crate::ui::text::short;

/// The newest result, also where a file has this name: that is `./last`.
const LAST: &str = "last";

/// Largest file of records that is read, unpacked. A thousand trials are some tens of MiB.
const LARGEST: u64 = 1 << 30;

/// Which result.
#[derive(Args, Debug, Clone)]
pub struct ResultFlags {
    /// Id of the result (or the start of it); `last` is the newest; or a file that `export`
    /// wrote, - for one on standard input
    #[arg(default_value = "last", value_name = "RESULT")]
    pub id: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

impl ResultFlags {
    /// Reads it.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn view(&self) -> Result<ResultView, Error> {
        result(&self.id, self.state.as_deref())
    }

    /// Reads it with the experiment that it was measured with, whose paths begin where it was
    /// measured; for a file that `export` wrote, where this command is called.
    ///
    /// # Errors
    /// As [`Self::view`], and when the experiment's text is not understood (an older or newer
    /// loadline wrote it).
    pub fn view_and_experiment(&self) -> Result<(ResultView, Experiment), Error> {
        let (view, row) = found(&self.id, self.state.as_deref())?;
        let experiment = match row {
            Some(row) => experiment_of(&row)?,
            None => experiment(&view)?,
        };
        Ok((view, experiment))
    }
}

/// A result by id or file.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn result(id: &str, state: Option<&Path>) -> Result<ResultView, Error> {
    found(id, state).map(|(view, _)| view)
}

/// What is named is a file, there or not, and no id of the store.
pub fn is_file(id: &str) -> bool {
    let path = Path::new(id);
    id != LAST && path.is_file() || path.extension().is_some_and(|e| e == "json" || e == "gz")
}

/// Refuses a file where a command goes on with a result, for which the store is needed.
///
/// # Errors
/// When `id` is a file.
pub fn of_store(id: &str) -> Result<(), Error> {
    if !is_file(id) {
        return Ok(());
    }
    let what = format!("{id} is a file, and trials are added only to results of this machine");
    Err(Error::new(ErrorKind::Usage, what)
        .hint("give an id that `loadline list` shows; `loadline show FILE` reads a file"))
}

/// The same with its row, where it is one of the store.
fn found(id: &str, state: Option<&Path>) -> Result<(ResultView, Option<ResultRow>), Error> {
    let path = Path::new(id);
    let is_last = id == LAST;
    if !is_last && path.is_file() || files::is_standard(path) {
        return Ok((exported(path)?, None));
    }
    if !is_last && path.is_dir() {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("{} is a directory, not a result", path.display()),
        )
        .hint("name a file that `loadline export` wrote; a directory of results is named with --state DIR"));
    }
    if is_file(id) {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("there is no file {}", path.display()),
        )
        .hint("`loadline export RESULT -o result.json` writes one"));
    }
    let store = open_store_to_read(state)?;
    let row = store.result(id).map_err(|e| store_refused(&e))?;
    Ok((view(&store, &row)?, Some(row)))
}

/// A file that `export` wrote, also packed with gzip.
fn exported(path: &Path) -> Result<ResultView, Error> {
    let unreadable = |e: std::io::Error| {
        Error::new(
            ErrorKind::Environment,
            format!("cannot read {}: {e}", files::name(path)),
        )
    };
    let input: Box<dyn Read> = match files::is_standard(path) {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(path).map_err(unreadable)?),
    };
    let mut file = BufReader::new(input);
    let begin = std::io::BufRead::fill_buf(&mut file).map_err(unreadable)?;
    let mut text = String::new();
    let read = if begin.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(file)
            .take(LARGEST)
            .read_to_string(&mut text)
    } else {
        file.take(LARGEST).read_to_string(&mut text)
    };
    read.map_err(unreadable)?;
    let mut view = loadline_report::read(&text).map_err(|e| {
        Error::new(ErrorKind::Usage, format!("{}: {e}", files::name(path))).hint_if(e.hint())
    })?;
    // Older versions wrote the load in words only; the experiment beside it has the rate.
    if view.load.rate_per_second.is_none()
        && let Ok(experiment) = experiment(&view)
    {
        view.load = redact::load(&load(&experiment));
    }
    // Without reading the experiment a second time for all the others.
    if view.experiment.contains("node")
        && let Ok(experiment) = experiment(&view)
    {
        view.node = node(&experiment, &view.machine, experiment.search.node);
    }
    Ok(view)
}

/// The experiment that a view was measured with, without what it varied: an export has taken the
/// secrets out of the labels, and then two levels may have one label.
///
/// # Errors
/// When its text is not understood (an older or newer loadline wrote it).
fn experiment(view: &ResultView) -> Result<Experiment, Error> {
    let name = Path::new("the experiment of the result");
    let text = match view.experiment.parse::<toml::Table>() {
        Ok(mut table) => {
            table.remove("factor");
            table.to_string()
        }
        // It is refused below, with the place of what is wrong.
        Err(_) => view.experiment.clone(),
    };
    Experiment::parse(&text, name, Path::new(".")).map_err(|e| refused(&e))
}

/// A stored result as reports read it: what names a secret, in configurations and in what trials
/// quote, is gone already. The experiment and the command stay whole, to be run again.
///
/// # Errors
/// When the store cannot be read.
pub fn view(store: &Store, row: &ResultRow) -> Result<ResultView, Error> {
    let experiment = experiment_of(row)?;
    let trials = store.trials(&row.id).map_err(|e| store_refused(&e))?;
    let (recommendation, without) = concluded(row)?;
    let node = node(&experiment, &row.machine, experiment.search.node);
    Ok(ResultView {
        node,
        today: None,
        id: row.id.clone(),
        title: row.title.clone(),
        question: experiment.question.clone(),
        command: row.command.clone(),
        experiment: row.experiment.clone(),
        load: redact::load(&load(&experiment)),
        machine: row.machine.clone(),
        slo: redact::slo(&experiment.slo),
        recommendation: recommendation.as_ref().map(redact::recommendation),
        incomplete: away(store, row)?.or_else(|| incomplete(row, without.undecided)),
        warnings: without.left_out,
        trials: trials.iter().map(redact::record).collect(),
    })
}

/// The answer of a search, or what it left where it found none.
pub fn concluded(row: &ResultRow) -> Result<(Option<Recommendation>, NoAnswer), Error> {
    let stored = row.outcome.as_deref();
    let read = stored.map(serde_json::from_str::<Conclusion>).transpose();
    let read = read.map_err(|e| {
        Error::new(
            ErrorKind::Environment,
            format!("the stored recommendation cannot be read: {e}"),
        )
    })?;
    Ok(match read {
        Some(Conclusion::Answer(answer)) => (Some(*answer), NoAnswer::default()),
        Some(Conclusion::NoAnswer(without)) => (None, without),
        None => (None, NoAnswer::default()),
    })
}

/// What is said of a result that loadline measures in a cluster.
fn away(store: &Store, row: &ResultRow) -> Result<Option<String>, Error> {
    let place = store.away(&row.id).map_err(|e| store_refused(&e))?;
    Ok(place.map(|place| {
        format!(
            "measured in the namespace {} ({}); {} fetched; fetch its end, or take over: {}",
            place.namespace,
            place.context,
            format::count(usize::try_from(row.trials).unwrap_or_default(), "trial"),
            next(&format!("resume {}", short(&row.id)))
        )
    }))
}

fn incomplete(row: &ResultRow, undecided: Option<String>) -> Option<String> {
    match row.status {
        Status::Done => None,
        Status::Failed if undecided.is_some() => undecided,
        Status::Running => Some(format!("still running: {} trials so far", row.trials)),
        Status::Interrupted => Some(format!(
            "interrupted after {} trials; go on with: {}",
            row.trials,
            next(&format!("resume {}", short(&row.id)))
        )),
        Status::Failed => Some(format!(
            "ended by an error after {} trials; go on with: {}",
            row.trials,
            next(&format!("resume {}", short(&row.id)))
        )),
    }
}

/// The host that is asked for, with what the application itself says to its JVM.
pub fn node(experiment: &Experiment, machine: &Machine, cpus: Option<u32>) -> Option<Node> {
    let app = &experiment.app;
    let command = app.command.iter().take_while(|word| *word != "-jar");
    let command = command.map(|word| (word.clone(), Origin::CommandLine));
    let image = machine.image.as_ref();
    let of_image = image.and_then(|image| image.tool_options.as_ref());
    let variables = [
        ("JAVA_TOOL_OPTIONS", Origin::ToolOptions),
        ("JDK_JAVA_OPTIONS", Origin::JdkJavaOptions),
        ("_JAVA_OPTIONS", Origin::UnderscoreJavaOptions),
    ];
    let variables = variables.into_iter().flat_map(|(name, origin)| {
        let own = app.env.get(name);
        let text = own.or(of_image.filter(|_| origin == Origin::ToolOptions));
        let words = text.map(|text| words::environment(text).unwrap_or_default());
        let words = words.unwrap_or_default().into_iter();
        words.map(move |word| (word, origin))
    });
    Some(Node {
        cpus: cpus?,
        options: Options::merge(command.chain(variables)),
        has_arenas: app.env.contains_key(ARENAS),
    })
}

/// The load of an experiment in words, without secrets.
pub fn load_words(experiment: &Experiment) -> String {
    redact::load(&load(experiment)).to_string()
}

fn load(experiment: &Experiment) -> Load {
    let (load, model) = (&experiment.load.spec, &experiment.load.model);
    // Parts of a profile are whole ns long: what they add up to is not always round.
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let seconds = |d: std::time::Duration| format!("{} s", round(d.as_secs_f64()));
    let path = load.url.as_ref().map_or("/", |url| url.path.as_str());
    let requests = match load.mix().len() {
        0 => format!("{} {path}", load.method.as_deref().unwrap_or("GET")),
        1 => load.request_names().concat(),
        requests => format!("a mix of {requests} requests"),
    };
    let sessions = load.session();
    let sessions = sessions.map(|requests| format!(", sessions of {} requests", round(requests)));
    let rest = format!(
        "{}, {} connections{}{}, warm-up {}",
        sessions.unwrap_or_default(),
        load.connections(model),
        load.http2()
            .map_or_else(String::new, |h| format!(" of {} HTTP/2 streams", h.streams)),
        match load.url.as_ref().is_some_and(|url| url.is_tls) {
            true => " over TLS",
            false => "",
        },
        seconds(load.warm_up())
    );
    let closed = |how: String| Load::without_rate(format!("{requests}, closed model{how}{rest}"));
    match model {
        Model::Open { .. } => Load {
            before: format!("{requests}, open model, "),
            rate_per_second: model.rate().map(round),
            after: format!(
                " for {}{rest}",
                seconds(model.duration().unwrap_or_default())
            ),
        },
        Model::ClosedFor { duration } => closed(format!(" for {}", seconds(*duration))),
        Model::ClosedRequests { requests } => closed(format!(", {requests} requests")),
    }
}

#[cfg(test)]
mod tests {
    use loadline_engine::store::{NewResult, ResultKind};

    use super::*;

    #[test]
    fn a_stored_result_knows_the_directory_it_was_measured_in() {
        let place = tempfile::tempdir().expect("a directory");
        let store = Store::open(place.path()).expect("a store");
        let new = NewResult {
            kind: ResultKind::Size,
            title: "a".to_owned(),
            experiment: EXPERIMENT.to_owned(),
            directory: PathBuf::from("/srv/elsewhere"),
            command: Vec::new(),
            machine: loadline_analysis::record::Machine::default(),
        };
        let id = store.create_result(&new).expect("a result");
        let flags = ResultFlags {
            id,
            state: Some(place.path().to_owned()),
        };
        let (_, experiment) = flags.view_and_experiment().expect("it is read");
        assert_eq!(experiment.app.directory, Path::new("/srv/elsewhere"));
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
