//! One service: its supported keys, the keys without effect in a trial, and the unsupported ones.
//!
//! Owns the keys. An unsupported key is refused by its name: a trial runs exactly what the file
//! says, or nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use loadline_analysis::slo::parse_duration;
use loadline_protocol::RunRefusal;
use loadline_sizing::options::words::has_word;
use loadline_sizing::{Bytes, Cpus};
use serde_json::{Map, Value};

use super::super::references;
use super::ports::ports;
use super::variables::{ComposeVariables, FilledText};
use super::words::split_words;
use crate::advice::image_jdk::is_image_name;

const TAKEN: &str = "\
    image build command environment env_file expose ports volumes user healthcheck \
    depends_on cpus cpuset mem_limit shm_size deploy networks scale";

const WITHOUT_MEANING: &str = "\
    annotations attach cap_drop container_name cpu_shares develop hostname init labels \
    logging mem_reservation mem_swappiness memswap_limit oom_score_adj platform profiles \
    pull_policy read_only restart security_opt stdin_open stop_grace_period stop_signal tty";

/// Keys with several values, whether a table may hold them, and an example.
const FORMS: [(&str, bool, &str); 5] = [
    ("expose", false, "expose: [\"5432\"]"),
    ("ports", false, "ports: [\"5432:5432\"]"),
    ("volumes", false, "volumes: [\"./data:/data:ro\"]"),
    ("environment", true, "environment: [NAME=value]"),
    ("depends_on", true, "depends_on: [db]"),
];

/// A service in loadline's terms. Texts are as in an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComposeService {
    pub name: String,
    pub image: String,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Host paths mounted read-only: `PATH:/SEEN`.
    pub volumes: Vec<String>,
    /// Volumes with a name; each is empty when a trial begins.
    pub named: BTreeSet<String>,
    pub ports: Vec<ServicePort>,
    pub ready: Option<ServiceReadiness>,
    pub start_deadline: Option<Duration>,
    pub cpu: Option<String>,
    pub cpuset: Option<String>,
    pub memory: Option<String>,
    pub shm: Option<String>,
    pub user: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    pub target: u16,
    pub published: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServiceReadiness {
    Command(Vec<String>),
    Tcp(u16),
}

pub(super) struct ServiceLocation<'a> {
    pub(super) file: &'a Path,
    pub(super) name: &'a str,
    pub(super) variables: &'a ComposeVariables,
}

pub(super) type Table = Map<String, Value>;

impl ServiceLocation<'_> {
    pub(super) fn refuse_service(
        &self,
        why: impl std::fmt::Display,
        hint: impl std::fmt::Display,
    ) -> RunRefusal {
        let what = format!(
            "`{}` of the compose file {}",
            self.name,
            self.file.display()
        );
        RunRefusal::new(what, why, hint)
    }

    fn refuse_unsupported(&self, what: impl std::fmt::Display) -> RunRefusal {
        let why = format!("it has {what}, which loadline does not support");
        self.refuse_service(why, "remove it in a copy for loadline, or write the service as a [[dependency]] of an experiment: docs/guides/dependencies.md")
    }

    fn fill_key(&self, key: &str, text: &str) -> Result<FilledText, RunRefusal> {
        self.check_filled(key, self.variables.fill_text(text))
    }

    fn check_filled(
        &self,
        key: &str,
        filled: Result<FilledText, String>,
    ) -> Result<FilledText, RunRefusal> {
        filled.map_err(|why| {
            self.refuse_service(
                format!("{key}: {why}"),
                "set it in loadline's environment, or in the file .env next to the compose file",
            )
        })
    }

    pub(super) fn optional_text(
        &self,
        key: &str,
        value: Option<&Value>,
    ) -> Result<Option<String>, RunRefusal> {
        let text = value.map(|value| self.check_plain_text(key, value));
        text.transpose()
    }

    pub(super) fn check_plain_text(&self, key: &str, value: &Value) -> Result<String, RunRefusal> {
        let text = scalar(value)
            .ok_or_else(|| self.refuse_service(format!("{key} is not a string"), "write one"))?;
        let filled = self.fill_key(key, &text)?;
        if !filled.is_secret {
            Ok(filled.text)
        } else {
            Err(self.refuse_service(
                format!("{key} holds a credential, which would be stored with the result"),
                "give it to the service as a variable: `environment`",
            ))
        }
    }
}

impl ComposeService {
    /// What cannot be read of a service is added to the problems.
    pub(super) fn read(
        table: &Table,
        at: &ServiceLocation<'_>,
        problems: &mut Vec<RunRefusal>,
    ) -> Self {
        let mut noted = RefusalCollector(problems);
        let image = table.get("image").ok_or_else(|| {
            let why = "it has no `image`, and loadline builds none";
            let hint = "build it (docker compose build) and name the result: image: NAME:TAG";
            at.refuse_service(why, hint)
        });
        noted.value(refuse_unknown(table, at));
        let ports: Vec<ServicePort> = noted.value(ports(table, at));
        let (volumes, named) = noted.value(volumes(table, at));
        let limits = table
            .get("deploy")
            .and_then(|d| d.pointer("/resources/limits"));
        let limit = |own: &str, of_deploy: &str| {
            at.optional_text(own, table.get(own).or_else(|| limits?.get(of_deploy)))
        };
        let memory = |key: &str, text: Option<String>| {
            let text = text.map(|text| memory_text(&text));
            match text.as_ref().filter(|text| text.parse::<Bytes>().is_err()) {
                Some(wrong) => {
                    let why = format!("{key}: `{wrong}` is not an amount of memory");
                    Err(at.refuse_service(why, "write 512m or 1g"))
                }
                None => Ok(text),
            }
        };
        let cpu = limit("cpus", "cpus").and_then(|text| match &text {
            Some(wrong) if wrong.parse::<Cpus>().is_err() => {
                let why = format!("cpus: `{wrong}` is not an amount of CPU");
                Err(at.refuse_service(why, "write cpus: \"0.5\""))
            }
            _ => Ok(text),
        });
        let memory_of =
            limit("mem_limit", "memory").and_then(|text| memory("its memory limit", text));
        let shm = at
            .optional_text("shm_size", table.get("shm_size"))
            .and_then(|text| memory("shm_size", text));
        let image = image.and_then(|image| at.check_plain_text("image", image));
        let image = image.and_then(|image| {
            if is_image_name(&image) {
                Ok(image)
            } else {
                Err(at.refuse_service(
                    format!("`{image}` is not an image name"),
                    "write it in small letters, such as registry.example/orders:1.4",
                ))
            }
        });
        Self {
            name: at.name.to_owned(),
            image: noted.value(image),
            command: noted.value(service_command("command", table.get("command"), at)),
            env: noted.value(references(table, at)),
            ready: noted.value(service_readiness(table, &ports, at)),
            start_deadline: noted.value(start_deadline(table, at)),
            ports,
            volumes,
            named,
            cpu: noted.value(cpu),
            cpuset: noted.value(at.optional_text("cpuset", table.get("cpuset"))),
            memory: noted.value(memory_of),
            shm: noted.value(shm),
            user: noted.value(at.optional_text("user", table.get("user"))),
        }
    }
}

pub(super) struct RefusalCollector<'a>(pub(super) &'a mut Vec<RunRefusal>);

impl RefusalCollector<'_> {
    pub(super) fn value<T: Default>(&mut self, result: Result<T, RunRefusal>) -> T {
        result.unwrap_or_else(|refusal| {
            self.0.push(refusal);
            T::default()
        })
    }
}

pub(super) fn join_refusals(file: &Path, mut all: Vec<RunRefusal>) -> Option<RunRefusal> {
    if all.len() < 2 {
        return all.pop();
    }
    let texts = all
        .iter()
        .map(|one| format!("\n  {one}\n    hint: {}", one.hint));
    let what = format!("the compose file {}", file.display());
    let why = format!("{} problems:{}", all.len(), texts.collect::<String>());
    Some(RunRefusal::new(what, why, "fix them all, then try again"))
}

fn refuse_unknown(table: &Table, at: &ServiceLocation<'_>) -> Result<(), RunRefusal> {
    let is_known =
        |key: &str| has_word(TAKEN, key) || has_word(WITHOUT_MEANING, key) || key.starts_with("x-");
    let unknown = table.keys().filter(|key| !is_known(key));
    let unknown: Vec<String> = unknown.map(|key| format!("`{key}`")).collect();
    if table.contains_key("extends") {
        let why = "`extends` takes keys of another service, which loadline does not read";
        return Err(at.refuse_service(
            why,
            "write it as one file: docker compose config > whole.yaml",
        ));
    }
    if !unknown.is_empty() {
        return Err(at.refuse_unsupported(unknown.join(", ")));
    }
    let is_of_form = |key: &str, may_be_table: bool| {
        let value = table.get(key).unwrap_or(&Value::Null);
        value.is_null() || value.is_array() || may_be_table && value.is_object()
    };
    let wrong = FORMS
        .iter()
        .filter(|(key, is_table, _)| !is_of_form(key, *is_table));
    let wrong = wrong.map(|(key, _, form)| (format!("`{key}`"), *form));
    let (keys, forms): (Vec<String>, Vec<&str>) = wrong.unzip();
    if !keys.is_empty() {
        let why = format!("its {} is only a text or a number", keys.join(", "));
        return Err(at.refuse_service(why, format!("write a list: {}", forms.join(", "))));
    }
    let deploy = table.get("deploy");
    let replicas = deploy.and_then(|deploy| deploy.get("replicas"));
    for (key, count) in [("scale", table.get("scale")), ("deploy.replicas", replicas)] {
        if count.is_some_and(|count| count.as_u64() != Some(1)) {
            return Err(
                at.refuse_unsupported(format!("`{key}`: one of each service runs in a trial"))
            );
        }
    }
    let networks = table.get("networks").and_then(Value::as_object);
    let has_alias = |network: &Value| network.get("aliases").is_some();
    if networks.is_some_and(|all| all.values().any(has_alias)) {
        return Err(at.refuse_unsupported("`networks.aliases`: services are found by their names"));
    }
    Ok(())
}

/// The services that it waits for. One that is not `required` may be missing from the file.
pub(super) fn depends_on(
    table: &Table,
    services: &Table,
    at: &ServiceLocation<'_>,
) -> Result<Vec<String>, RunRefusal> {
    match table.get("depends_on") {
        Some(Value::Array(names)) => Ok(names.iter().filter_map(scalar).collect()),
        Some(Value::Object(all)) => {
            let is_job = |how: &Value| {
                how.get("condition").and_then(Value::as_str)
                    == Some("service_completed_successfully")
            };
            if let Some((name, _)) = all.iter().find(|(_, how)| is_job(how)) {
                let why = format!("it waits for `{name}` to end");
                let hint =
                    "fill a dependency with its `seed`: [[dependency]] in an experiment file";
                return Err(at.refuse_service(why, hint));
            }
            let is_needed = |(name, how): &(&String, &Value)| {
                how.get("required") != Some(&Value::Bool(false)) || services.contains_key(*name)
            };
            let needed = all.iter().filter(is_needed);
            Ok(needed.map(|(name, _)| name.clone()).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn service_command(
    key: &str,
    value: Option<&Value>,
    at: &ServiceLocation<'_>,
) -> Result<Vec<String>, RunRefusal> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) => all
            .iter()
            .map(|word| at.check_plain_text(key, word))
            .collect(),
        Some(text) => {
            let text = at.check_plain_text(key, text)?;
            split_words(&text).ok_or_else(|| {
                at.refuse_service(format!("a quote of {key} is not closed"), "close it")
            })
        }
    }
}

pub(super) fn service_environment(
    table: &Table,
    at: &ServiceLocation<'_>,
) -> Result<Vec<(String, FilledText)>, RunRefusal> {
    let mut all: BTreeMap<String, FilledText> = BTreeMap::new();
    for path in env_files(table.get("env_file"), at)? {
        let file = at.variables.read_pairs(&path_beside_compose(at, &path));
        for (name, value) in file.map_err(|e| at.refuse_service(e.to_string(), &e.hint))? {
            all.insert(name, at.check_filled("env_file", value)?);
        }
    }
    let given: Vec<(String, Option<String>)> = match table.get("environment") {
        Some(Value::Object(map)) => map
            .iter()
            .map(|(name, v)| (name.clone(), scalar(v)))
            .collect(),
        Some(Value::Array(list)) => {
            let pair = |text: String| match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (text, None),
            };
            list.iter().filter_map(scalar).map(pair).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in given {
        // A name alone is the variable of who calls, if there is one.
        let filled = match value {
            Some(value) => Some(at.fill_key(&name, &value)?),
            None => at.variables.get_variable(&name),
        };
        if let Some(filled) = filled {
            all.insert(name, filled);
        }
    }
    Ok(all.into_iter().collect())
}

fn references(
    table: &Table,
    at: &ServiceLocation<'_>,
) -> Result<BTreeMap<String, String>, RunRefusal> {
    let all = service_environment(table, at)?;
    let stored = |(name, value): (String, FilledText)| {
        let is_secret = value.is_secret || references::is_secret_name(&name);
        let stored = if !is_secret {
            value.text
        } else {
            references::to_compose(at.file, at.name, &name)
        };
        (name, stored)
    };
    Ok(all.into_iter().map(stored).collect())
}

fn env_files(value: Option<&Value>, at: &ServiceLocation<'_>) -> Result<Vec<String>, RunRefusal> {
    let is_there = |path: &String| path_beside_compose(at, path).is_file();
    let path = |value: &Value| match value {
        Value::Object(one) => {
            let path = one.get("path").ok_or_else(|| {
                at.refuse_service(
                    "an entry of its env_file has no `path`",
                    "write env_file: [app.env]",
                )
            });
            let path = at.check_plain_text("env_file", path?)?;
            let is_required = one.get("required") != Some(&Value::Bool(false));
            Ok(Some(path).filter(|path| is_required || is_there(path)))
        }
        text => at.check_plain_text("env_file", text).map(Some),
    };
    let all: Vec<&Value> = match value {
        None => Vec::new(),
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
    };
    let all: Result<Vec<_>, RunRefusal> = all.into_iter().map(path).collect();
    Ok(all?.into_iter().flatten().collect())
}

fn path_beside_compose(at: &ServiceLocation<'_>, path: &str) -> std::path::PathBuf {
    let base = at.file.parent().unwrap_or(Path::new(""));
    base.join(path).components().collect()
}

fn volumes(
    table: &Table,
    at: &ServiceLocation<'_>,
) -> Result<(Vec<String>, BTreeSet<String>), RunRefusal> {
    let (mut files, mut named) = (Vec::new(), BTreeSet::new());
    let list = table.get("volumes").and_then(Value::as_array);
    for value in list.into_iter().flatten() {
        let Some((source, target, is_read_only)) = volume(value, at)? else {
            continue;
        };
        if !source.starts_with(['.', '/', '~']) {
            named.insert(source);
            continue;
        }
        let path = path_beside_compose(at, &source);
        if source.starts_with('~') || (path.is_dir() && !is_read_only) {
            let why = format!("it may change {source} of this machine, which a trial must not");
            let hint = "append :ro if it is only read; if it is data of the service, leave it out: each trial starts with an empty one";
            return Err(at.refuse_service(why, hint));
        }
        files.push(format!("{}:{target}", path.display()));
    }
    Ok((files, named))
}

fn volume(
    value: &Value,
    at: &ServiceLocation<'_>,
) -> Result<Option<(String, String, bool)>, RunRefusal> {
    let Value::Object(one) = value else {
        let text = at.check_plain_text("volumes", value)?;
        let parts: Vec<&str> = text.split(':').collect();
        return Ok(match parts.as_slice() {
            [source, target, modes @ ..] => {
                let is_read_only = modes.iter().any(|mode| mode.split(',').any(|m| m == "ro"));
                Some(((*source).to_owned(), (*target).to_owned(), is_read_only))
            }
            _ => None,
        });
    };
    let text = |key: &str| at.optional_text("volumes", one.get(key));
    let is_read_only = one.get("read_only") == Some(&Value::Bool(true));
    let kind = text("type")?.unwrap_or_default();
    if !["bind", "volume", "tmpfs"].contains(&kind.as_str()) {
        return Err(at.refuse_unsupported(format!("a volume of type `{kind}`")));
    }
    if kind == "tmpfs" {
        return Err(
            at.refuse_unsupported("a volume in memory (tmpfs), which its memory limit would count")
        );
    }
    Ok(text("source")?
        .zip(text("target")?)
        .map(|(source, target)| (source, target, is_read_only)))
}

/// Its health check, else its first port.
fn service_readiness(
    table: &Table,
    ports: &[ServicePort],
    at: &ServiceLocation<'_>,
) -> Result<Option<ServiceReadiness>, RunRefusal> {
    let first = ports.first().map(|port| ServiceReadiness::Tcp(port.target));
    let check = table.get("healthcheck");
    let is_off = check.and_then(|check| check.get("disable")) == Some(&Value::Bool(true));
    let Some(test) = check
        .and_then(|check| check.get("test"))
        .filter(|_| !is_off)
    else {
        return Ok(first);
    };
    let shell = |text: String| vec!["/bin/sh".to_owned(), "-c".to_owned(), text];
    let all = match test {
        Value::Array(_) => service_command("healthcheck", Some(test), at)?,
        text => shell(at.check_plain_text("healthcheck", text)?),
    };
    Ok(match all.split_first() {
        Some((word, rest)) if word == "CMD" && !rest.is_empty() => {
            Some(ServiceReadiness::Command(rest.to_vec()))
        }
        Some((word, rest)) if word == "CMD-SHELL" => {
            Some(ServiceReadiness::Command(shell(rest.join(" "))))
        }
        Some((word, _)) if word == "NONE" => first,
        _ if test.is_string() => Some(ServiceReadiness::Command(all)),
        _ => {
            return Err(at.refuse_service(
                "its health check has nothing to run",
                "test: [\"CMD\", \"pg_isready\"]",
            ));
        }
    })
}

/// The time after which compose calls it unhealthy: its start period plus the time of all retries.
/// Defaults: compose-spec, `healthcheck`.
fn start_deadline(table: &Table, at: &ServiceLocation<'_>) -> Result<Option<Duration>, RunRefusal> {
    const INTERVAL: Duration = Duration::from_secs(30);
    const RETRIES: u32 = 3;
    let Some(check) = table.get("healthcheck") else {
        return Ok(None);
    };
    let time = |key: &str| -> Result<Option<Duration>, RunRefusal> {
        let text = at.optional_text(key, check.get(key))?;
        let parse = |text: String| {
            let time = parse_chained_duration(&text);
            time.ok_or_else(|| {
                at.refuse_service(
                    format!("{key}: `{text}` is not a time"),
                    "write 90s or 1m30s",
                )
            })
        };
        text.map(parse).transpose()
    };
    let (period, interval) = (time("start_period")?, time("interval")?);
    let retries = check.get("retries").map(|value| {
        let count = scalar(value).and_then(|text| text.parse::<u32>().ok());
        count.ok_or_else(|| {
            at.refuse_service(
                format!("retries: {value} is not a whole number"),
                "write retries: 3",
            )
        })
    });
    let retries = retries.transpose()?;
    if period.is_none() && interval.is_none() && retries.is_none() {
        return Ok(None);
    }
    let retries = retries.unwrap_or(RETRIES).max(1);
    let checks = interval.unwrap_or(INTERVAL).saturating_mul(retries);
    Ok(Some(period.unwrap_or_default().saturating_add(checks)))
}

/// `1m30s`: compose writes a time as Go does, in several units.
fn parse_chained_duration(text: &str) -> Option<Duration> {
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = rest[unit..]
            .find(is_number)
            .map_or(rest.len(), |at| unit + at);
        total = total.checked_add(parse_duration(&rest[..end])?)?;
        rest = &rest[end..];
    }
    (!text.is_empty()).then_some(total)
}

/// Memory as loadline reads it: compose writes `512m` and `512mb`.
/// An amount of memory in loadline's notation; `1.5g` becomes bytes.
pub(crate) fn memory_text(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let unit = lower
        .strip_suffix('b')
        .filter(|plain| plain.ends_with(['k', 'm', 'g']));
    let text = unit.unwrap_or(&lower);
    let scales = [("k", 1 << 10), ("m", 1 << 20), ("g", 1 << 30)];
    let scaled = scales.iter().find_map(|(unit, scale)| {
        let number = text.strip_suffix(unit).filter(|n| n.contains('.'))?;
        Some(number.parse::<f64>().ok()? * f64::from(*scale))
    });
    scaled.map_or(text.to_owned(), |bytes| format!("{bytes:.0}"))
}

pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}
