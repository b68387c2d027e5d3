//! Stubs, which replace dependencies: checked, and in the form that a trial gets.
//!
//! Owns the keys of a stub, their defaults and ranges, and how its file is embedded.
//! `loadline-proxy` answers the requests.

use std::io::Read;
use std::path::Path;

use loadline_protocol::RunRefusal;
use loadline_proxy::Toxic;
use loadline_proxy::stub::{LARGEST_BODY, StubAnswer, StubBody};

use super::checked::Checked;
use super::error::ExperimentSource;
use super::toxic::{self, DelayKeys};
use super::wire::{AnswerTable, DependencyTable, ExperimentFile, StubFile};
use super::{Experiment, ExperimentError};
use crate::error::SurroundingsError;

#[derive(Debug, Clone)]
pub struct ExperimentStub {
    pub name: String,
    pub port: u16,
    pub answers: Vec<StubAnswer>,
    /// The toxics on its connection, in the order in which bytes meet them.
    pub toxics: Vec<Toxic>,
}

impl ExperimentFile {
    /// Embeds the files of stubs; they are relative to `base`. Errors: [`ExperimentError`] with the
    /// line of the file and a hint.
    pub fn settle_stubs(&mut self, base: &Path) -> Result<(), ExperimentError> {
        for dependency in &mut self.dependency {
            if let Some(file) = dependency
                .stub
                .as_ref()
                .filter(|_| dependency.answer.is_empty())
            {
                dependency.answer = read(&base.join(file.as_str()))?;
            }
            let path = Path::new("");
            for answer in &mut dependency.answer {
                settle_answer(answer, base).map_err(|why| {
                    ExperimentSource::from_file("", path).experiment_error(why, HISTOGRAM)
                })?;
            }
        }
        Ok(())
    }
}

const LARGEST: usize = ExperimentFile::LARGEST / 2;

const HISTOGRAM: &str =
    "recorded = \"prices.hlog\", an interval log as `loadline load --hlog` writes it";

fn read(path: &Path) -> Result<Vec<AnswerTable>, ExperimentError> {
    let mut text = String::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| {
        let most = LARGEST as u64 + 1;
        file.take(most).read_to_string(&mut text)
    });
    let source = ExperimentSource::from_file(&text, path);
    let hint =
        "stub names a file next to the experiment file; `loadline profile --stub LOG` writes one";
    read.map_err(|error| ExperimentSource::from_file("", path).experiment_error(error, hint))?;
    if text.len() > LARGEST {
        let hint = "keep the requests that count; put large bodies into separate files: body-file";
        return Err(source.experiment_error("the file is larger than 512 KiB", hint));
    }
    let file: StubFile = toml::from_str(&text).map_err(|error| source.syntax_error(&error))?;
    if file.answer.is_empty() {
        let hint = "[[answer]] with match = \"GET /prices/*\", body = \"...\", latency = \"20ms\"";
        return Err(source.experiment_error("it has no [[answer]]", hint));
    }
    let mut tables = file.answer;
    let beside = path.parent().unwrap_or(Path::new(""));
    for table in &mut tables {
        settle_answer(table, beside)
            .map_err(|why| source.error_at(&table.r#match, why, HISTOGRAM))?;
        check_answer(table, &source)?;
    }
    Ok(tables)
}

fn settle_answer(table: &mut AnswerTable, base: &Path) -> Result<(), String> {
    if let Some(file) = &mut table.body_file {
        *file = file.with_same_origin(base.join(&**file));
    }
    let read = toxic::settle_recorded(table.recorded.as_ref(), &mut table.histogram, base);
    read.map_err(|error| error.to_string())
}

/// Keys of a dependency that is started.
const STARTED: &str = "command image engine ready seed scope reset env volumes directory directories user \
    start-deadline cpu cpuset memory shm";

/// A dependency that is a stub; `None` where it is none.
pub(super) fn check_stub(
    table: &DependencyTable,
    source: &ExperimentSource<'_>,
) -> Checked<Option<ExperimentStub>> {
    if table.stub.is_none() && table.answer.is_empty() {
        return Ok(None);
    }
    let name = &table.name;
    let at = |problem: String, hint: &str| source.error_at(name, problem, hint);
    let said = serde_json::to_value(table).unwrap_or_default();
    let is_said = |key: &&str| said.get(*key).is_some_and(|value| !value.is_null());
    if let Some(key) = STARTED.split(' ').find(is_said) {
        let problem = format!("`{name}` is a stub, which has no {key}");
        let hint = "loadline itself answers in its place: it has name, stub (or [[dependency.answer]]), port and toxics";
        return Err(at(problem, hint));
    }
    let Some(port) = table.port.as_deref().copied().filter(|port| *port > 0) else {
        let problem = format!("`{name}` has no port");
        return Err(at(problem, "name it: port = 8081"));
    };
    let answers = table.answer.iter().map(|table| check_answer(table, source));
    Ok(Some(ExperimentStub {
        name: name.to_string(),
        port,
        answers: answers.collect::<Checked<_>>()?,
        toxics: toxic::check_toxics(&table.toxic, source)?,
    }))
}

fn check_answer(table: &AnswerTable, source: &ExperimentSource<'_>) -> Checked<StubAnswer> {
    let hint = "a method and a path: match = \"GET /prices/*\"";
    let pattern = source.parse_text(&table.r#match, hint)?;
    let weight = match &table.weight {
        None => 1.0,
        Some(weight) if **weight > 0.0 && weight.is_finite() => **weight,
        Some(weight) => {
            let problem = format!("weight = {weight} is not a weight");
            return Err(source.error_at(weight, problem, "a number above 0"));
        }
    };
    let status = match &table.status {
        None => 200,
        Some(status) if (200..600).contains(&**status) => **status,
        Some(status) => {
            let problem = format!("{status} is not a status of an answer");
            return Err(source.error_at(status, problem, "from 200 to 599: status = 200"));
        }
    };
    check_headers(table, source)?;
    let headers = table.headers.iter();
    Ok(StubAnswer {
        pattern,
        weight,
        status,
        headers: headers
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
        body: check_body(table, source)?,
        delay: toxic::check_delay(&DelayKeys::of_answer(table), source)?,
    })
}

fn check_headers(table: &AnswerTable, source: &ExperimentSource<'_>) -> Checked<()> {
    let framing = ["content-length", "transfer-encoding", "connection"];
    let is_token = |name: &str| {
        let is_one = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        !name.is_empty() && name.chars().all(is_one)
    };
    for (name, value) in &table.headers {
        let at = |problem: String, hint: &str| Err(source.error_at(value, problem, hint));
        if framing.contains(&name.to_ascii_lowercase().as_str()) {
            let problem = format!("the stub sets `{name}` itself");
            return at(problem, "leave it out: it follows from the body");
        }
        if !is_token(name) || value.contains(|c: char| c.is_control() && c != '\t') {
            let problem = format!("`{name}` is not a header");
            return at(problem, "headers = { content-type = \"application/json\" }");
        }
    }
    Ok(())
}

fn check_body(table: &AnswerTable, source: &ExperimentSource<'_>) -> Checked<StubBody> {
    match (&table.body, &table.body_file, &table.body_bytes) {
        (None, None, None) => Ok(StubBody::Text(String::new())),
        (Some(text), None, None) => Ok(StubBody::Text(text.clone())),
        (None, Some(file), None) => Ok(StubBody::File(file.to_path_buf())),
        (None, None, Some(bytes)) => {
            let length = source.in_range(Some(bytes), 0, 0..LARGEST_BODY + 1, "body-bytes")?;
            Ok(StubBody::Filler(length))
        }
        _ => {
            let problem = format!("`{}` gives its body twice", table.r#match);
            let hint = "one of body, body-file and body-bytes";
            Err(source.error_at(&table.r#match, problem, hint))
        }
    }
}

impl Experiment {
    /// The stubs of a trial; each trial has a different seed. Errors: [`SurroundingsError`] names a missing
    /// body file.
    pub fn ordered_stubs(&self) -> Result<Vec<loadline_protocol::StubSpec>, SurroundingsError> {
        let ordered = |stub: &ExperimentStub| {
            stub.answers
                .iter()
                .try_for_each(|answer| is_there(stub, answer))?;
            Ok(loadline_protocol::StubSpec {
                name: stub.name.clone(),
                port: stub.port,
                answers: stub.answers.clone(),
                toxics: stub.toxics.clone(),
                seed: 0,
            })
        };
        self.stubs.iter().map(ordered).collect()
    }
}

fn is_there(stub: &ExperimentStub, answer: &StubAnswer) -> Result<(), RunRefusal> {
    let StubBody::File(path) = &answer.body else {
        return Ok(());
    };
    let refused = |why: String| {
        let hint = "body-file is relative to the file that names it";
        RunRefusal::new(
            format!("the stub {}", stub.name),
            format!("{}: {why}", path.display()),
            hint,
        )
    };
    match std::fs::metadata(path) {
        Err(error) => Err(refused(error.to_string())),
        Ok(file) if !file.is_file() => Err(refused("it is not a file".to_owned())),
        Ok(file) if file.len() > LARGEST_BODY => {
            Err(refused("a body is at most 16 MiB".to_owned()))
        }
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment with a stub table that continues with `more`; else the error and its hint.
    fn parse(more: &str) -> Result<Experiment, String> {
        let text = format!(
            r#"
slo = "p99<50ms"
[app]
command = ["java", "-jar", "app.jar"]
[load]
url = "http://localhost:8080/"
rate = "100/s"
duration = "60s"
[[dependency]]
name = "prices"
{more}
"#
        );
        let parsed = Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x"));
        parsed.map_err(|error| {
            let hint = error.hint.clone().unwrap_or_default();
            format!("{error} | {hint}").replace('\n', " ")
        })
    }

    const ANSWER: &str = "[[dependency.answer]]\nmatch = \"GET /prices/*\"\n";

    #[test]
    fn an_answer_has_its_defaults_and_the_keys_of_a_latency() {
        let more = "latency = '5ms'\njitter = '2ms'\ndistribution = 'normal'\nbody = 'x'";
        let stub = parse(&format!(
            "port = 81\n{ANSWER}{more}\n{ANSWER}status = 503\nweight = 0.01"
        ));
        let stub = stub.expect("it is good").stubs.remove(0);
        let said: Vec<_> = stub
            .answers
            .iter()
            .map(|answer| {
                let delay = answer.delay.as_ref().map(ToString::to_string);
                (answer.status, answer.weight, delay, answer.body.clone())
            })
            .collect();
        let normal = Some("5ms ± 2ms (normal)".to_owned());
        assert_eq!(
            said,
            [
                (200, 1.0, normal, StubBody::Text("x".to_owned())),
                (503, 0.01, None, StubBody::Text(String::new())),
            ]
        );
        assert_eq!((stub.port, stub.name.as_str()), (81, "prices"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_write() {
        let refused: Vec<String> = [
            ANSWER.to_owned(),
            format!("port = 8080\n{ANSWER}"),
            format!("port = 81\ncpu = '1'\n{ANSWER}"),
            format!("port = 81\n{ANSWER}status = 99"),
            format!("port = 81\n{ANSWER}weight = 0"),
            format!("port = 81\n{ANSWER}body = 'x'\nbody-bytes = 3"),
            format!("port = 81\n{ANSWER}headers = {{ Connection = 'close' }}"),
            format!("port = 81\n{ANSWER}jitter = '2ms'"),
            format!("port = 81\n{ANSWER}latency = '2ms'\ndistribution = 'gamma'"),
            "port = 81\n[[dependency.answer]]\nmatch = '/prices'".to_owned(),
            "port = 81\nstub = 'nowhere.toml'".to_owned(),
        ]
        .iter()
        .map(|more| parse(more).expect_err("it is wrong"))
        .collect();
        insta::assert_snapshot!(refused.join("\n"), @r#"
        exp.toml:10:8: `prices` has no port     name = "prices" | name it: port = 8081
        exp.toml:10:8: `prices` listens on the port of the application     name = "prices" | they share one network: change one of the ports
        exp.toml:10:8: `prices` is a stub, which has no cpu     name = "prices" | loadline itself answers in its place: it has name, stub (or [[dependency.answer]]), port and toxics
        exp.toml:14:10: 99 is not a status of an answer     status = 99 | from 200 to 599: status = 200
        exp.toml:14:10: weight = 0 is not a weight     weight = 0 | a number above 0
        exp.toml:13:9: `GET /prices/*` gives its body twice     match = "GET /prices/*" | one of body, body-file and body-bytes
        exp.toml:14:26: the stub sets `Connection` itself     headers = { Connection = 'close' } | leave it out: it follows from the body
        exp.toml:14:10: it gives the variation of the latency, but not the latency     jitter = '2ms' | latency = "20ms"
        exp.toml:15:16: `gamma` is not a distribution of latencies     distribution = 'gamma' | uniform, normal or pareto; as recorded: recorded = "database.hlog"
        exp.toml:13:9: match = "/prices" is not a method and path, such as "POST /orders/*"     match = '/prices' | a method and a path: match = "GET /prices/*"
        /x/nowhere.toml: No such file or directory (os error 2) | stub names a file next to the experiment file; `loadline profile --stub LOG` writes one
        "#);
    }

    #[test]
    fn a_file_becomes_a_part_of_the_experiment() {
        let folder = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(folder.path().join("stubs")).expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("it can be written");
        };
        write(
            "stubs/prices.toml",
            "[[answer]]\nmatch = \"GET /p\"\nbody-file = \"p.json\"\n",
        );
        let text = "slo = \"p99<50ms\"\n[load]\nurl = \"http://localhost:8080/\"\n[[dependency]]\nname = \"prices\"\nport = 81\nstub = \"stubs/prices.toml\"";
        let mut file = ExperimentFile::from_toml(text, Path::new("e.toml")).expect("it is good");
        file.settle_stubs(folder.path()).expect("it is read");
        let stored = file.to_toml().expect("it can be written");
        let mut again =
            ExperimentFile::from_toml(&stored, Path::new("e.toml")).expect("it is good");
        let before = again.clone();
        again
            .settle_stubs(Path::new("/elsewhere"))
            .expect("nothing is read");
        assert!(again == before, "{stored}");
        let source = ExperimentSource::from_file(&stored, Path::new("e.toml"));
        let stub = check_stub(&again.dependency[0], &source)
            .expect("it is good")
            .expect("it is one");
        let body = folder.path().join("stubs/p.json");
        assert_eq!(stub.answers[0].body, StubBody::File(body));
        write(
            "stubs/prices.toml",
            "[[answer]]\nmatch = \"GET /p\"\nstatus = 7\n",
        );
        let mut wrong = ExperimentFile::from_toml(text, Path::new("e.toml")).expect("it is good");
        let refused = wrong
            .settle_stubs(folder.path())
            .expect_err("7 is not a status")
            .to_string();
        assert!(
            refused.contains("prices.toml:3:10: 7 is not a status"),
            "{refused}"
        );
    }
}
