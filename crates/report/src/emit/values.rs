//! Values for an existing Helm chart.
//!
//! Owns where a value goes: to the path that the user names, in the form of the chart's own values.
//! Helm merges maps of values and replaces everything else, so texts and lists of the chart's
//! values are repeated. Sources: Helm, "Values Files"; `helm create` for the names that most charts
//! have.

use loadline_analysis::text::join_words;
use serde_json::{Map, Value, json};

use super::application::ImagePinning;
use super::change::{VariableChange, changed_container, container_change, kept_limits, probes};
use super::error::EmitError;
use super::facts::EmitFacts;
use super::jvm_options::TOOL_OPTIONS;
use super::kubernetes::resources;
use super::patch::{PatchFiles, annotations, comments};
use super::purpose::{Artefact, EmitPurpose};
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use super::{ProductionApplication, start_cpu};
use crate::view::ResultView;
use crate::{redact, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChartField {
    Resources,
    JavaOptions,
    Env,
    Image,
    StartupProbe,
    ReadinessProbe,
    Annotations,
}

impl ChartField {
    pub const ALL: [Self; 7] = [
        Self::Resources,
        Self::JavaOptions,
        Self::Env,
        Self::Image,
        Self::StartupProbe,
        Self::ReadinessProbe,
        Self::Annotations,
    ];

    pub fn flag_name(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::JavaOptions => "java-options",
            Self::Env => "env",
            Self::Image => "image",
            Self::StartupProbe => "startup-probe",
            Self::ReadinessProbe => "readiness-probe",
            Self::Annotations => "annotations",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuePath {
    pub what: ChartField,
    pub path: Vec<String>,
}

impl ValuePath {
    /// Reads `resources=app.resources`; a dot of a key itself is written `\.`, as for `helm --set`.
    /// Errors: With what would be right.
    pub fn from_assignment(text: &str) -> Result<Self, String> {
        let names = ChartField::ALL.map(ChartField::flag_name).join(", ");
        let (name, path) = text.split_once('=').ok_or_else(|| {
            format!("write WHAT=PATH, such as resources=app.resources; WHAT is one of {names}")
        })?;
        let mut fields = ChartField::ALL.into_iter();
        let what = fields.find(|what| what.flag_name() == name);
        let what = what.ok_or_else(|| format!("`{name}` is not one of {names}"))?;
        let mut path_of = vec![String::new()];
        let mut letters = path.chars();
        while let Some(c) = letters.next() {
            let letter = if c == '\\' { letters.next() } else { Some(c) };
            match (c, path_of.last_mut()) {
                ('.', _) | (_, None) => path_of.push(String::new()),
                (_, Some(last)) => last.extend(letter),
            }
        }
        if path_of.iter().any(String::is_empty) {
            return Err(format!("`{path}` has an empty key"));
        }
        Ok(Self {
            what,
            path: path_of,
        })
    }

    fn path_text(&self) -> String {
        self.path.join(".")
    }

    fn value_in<'a>(&self, values: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(values, |at, key| at.get(key))
    }
}

/// The values of a recommendation at these places, over `values` of the chart.
/// Errors: [`EmitError`] when the result has no recommendation, when a measured option has no place
/// or would not arrive, or when a place holds something else.
pub fn values(
    view: &ResultView,
    application: &ProductionApplication,
    values: &Value,
    places: &[ValuePath],
) -> Result<PatchFiles, EmitError> {
    let facts = EmitFacts::from_result(view, application, &[EmitPurpose::Kubernetes])?;
    refuse_overlaps(places)?;
    let chart = ChartValues { values, places };
    let container = chart.own_container()?;
    let change = container_change(view, &facts, &container)?;
    let changed = changed_container(&facts, &container, &change);
    let mut notes = facts.left_out.clone();
    notes.extend(change.notes);
    notes.extend(kept_limits(&facts, &container["resources"]));
    notes.extend(chart.unknown_paths());
    let place = "no value of the chart says it, so its pod template needs a resizePolicy for cpu";
    notes.extend(start_cpu::left_to_do(&facts, place));
    let mut out = Vec::new();
    let mut put = |place: &ValuePath, value: Yaml, why: Option<&str>| {
        insert(&mut out, &place.path, value, why);
    };
    let has_options = chart.path_for(ChartField::JavaOptions).is_some();
    let is_option = |set: &VariableChange| set.name == TOOL_OPTIONS && has_options;
    let (options, others): (Vec<_>, Vec<_>) = change.variables.into_iter().partition(is_option);
    if let (Some(place), Some(set)) = (chart.path_for(ChartField::JavaOptions), options.first()) {
        put(place, set.value.clone().into(), Some(&set.because));
    }
    match chart.path_for(ChartField::Env) {
        Some(place) if !others.is_empty() => put(place, chart.env_in_form(place, &others)?, None),
        Some(_) => {}
        None => notes.extend(variables_without_path(&others)?),
    }
    if let Some(place) = chart.path_for(ChartField::Resources) {
        put(place, resources(&facts, &container["resources"]), None);
    }
    for (what, probe) in [
        (ChartField::StartupProbe, "startupProbe"),
        (ChartField::ReadinessProbe, "readinessProbe"),
    ] {
        let changed = probes(&facts, &container, true);
        let changed = changed.into_iter().find(|entry| entry.key_name() == probe);
        if let (Some(place), Some(changed)) = (chart.path_for(what), changed) {
            put(place, changed.value, None);
        }
    }
    let place = chart.path_for(ChartField::Image);
    if let (Some(place), Some(pinned)) = (place, application.measured_image) {
        match pinned {
            ImagePinning::Yes => put(
                place,
                chart.image_in_form(place, &application.image)?,
                Some("the image that was measured, by its digest"),
            ),
            ImagePinning::No => notes.push(format!(
                "the image stays: {} was measured, which no cluster can pull by its digest before it is pushed.",
                text::label(&application.image)
            )),
        }
    }
    if let Some(place) = chart.path_for(ChartField::Annotations) {
        put(place, annotations(&view.id, &facts), None);
    }
    let text = comments(&facts, &notes) + &yaml_map(out).to_document();
    let name = "values.yaml";
    let artefacts = vec![Artefact { name, text }];
    Ok(PatchFiles {
        artefacts,
        notes,
        container: changed,
        rest: facts.outside_heap(),
    })
}

struct ChartValues<'a> {
    values: &'a Value,
    places: &'a [ValuePath],
}

impl ChartValues<'_> {
    fn path_for(&self, what: ChartField) -> Option<&ValuePath> {
        self.places.iter().find(|place| place.what == what)
    }

    fn own_value(&self, what: ChartField) -> &Value {
        let place = self.path_for(what);
        let found = place.and_then(|place| place.value_in(self.values));
        found.unwrap_or(&Value::Null)
    }

    fn own_container(&self) -> Result<Value, EmitError> {
        let variable = |(name, value): (&String, &Value)| json!({"name": name, "value": value});
        let mut env = match self.own_value(ChartField::Env) {
            Value::Array(list) => list.clone(),
            Value::Object(all) => all.iter().map(variable).collect(),
            Value::Null => Vec::new(),
            _ => return Err(self.wrong_form_error(ChartField::Env, "a list or a map of variables")),
        };
        match self.own_value(ChartField::JavaOptions) {
            Value::String(options) => {
                env.insert(0, json!({"name": TOOL_OPTIONS, "value": options}))
            }
            Value::Null => {}
            _ => return Err(self.wrong_form_error(ChartField::JavaOptions, "a text")),
        }
        let mut container = Map::new();
        container.insert("env".to_owned(), env.into());
        for (what, field) in [
            (ChartField::Resources, "resources"),
            (ChartField::StartupProbe, "startupProbe"),
            (ChartField::ReadinessProbe, "readinessProbe"),
        ] {
            match self.own_value(what) {
                Value::Null => {}
                // `{}` in a chart's values stands for nothing.
                Value::Object(fields) if fields.is_empty() => {}
                own @ Value::Object(_) => {
                    container.insert(field.to_owned(), own.clone());
                }
                _ => return Err(self.wrong_form_error(what, "a map")),
            }
        }
        Ok(container.into())
    }

    fn wrong_form_error(&self, what: ChartField, wanted: &str) -> EmitError {
        let place = self.path_for(what).map(ValuePath::path_text);
        let place = text::label(&place.unwrap_or_default());
        let flag = what.flag_name();
        EmitError::Manifest {
            why: format!("{place} of the values is not {wanted}"),
            hint: format!("give the path that the chart reads it from: --values-path {flag}=PATH"),
        }
    }

    /// Places that the chart's values do not have: Helm passes over what a chart does not read.
    fn unknown_paths(&self) -> Vec<String> {
        let missing = self.places.iter();
        let missing = missing.filter(|p| p.value_in(self.values).is_none());
        let note = |place: &ValuePath| {
            format!(
                "the chart's values have no {}: make sure that the chart reads it; Helm says nothing about a value that none does.",
                text::label(&place.path_text())
            )
        };
        missing.map(note).collect()
    }

    fn env_in_form(&self, place: &ValuePath, set: &[VariableChange]) -> Result<Yaml, EmitError> {
        let entry =
            |key: &str, s: &VariableChange| yaml_entry(key, s.value.clone()).because(&*s.because);
        if let Some(Value::Object(_)) = place.value_in(self.values) {
            return Ok(yaml_map(set.iter().map(|s| entry(&s.name, s))));
        }
        let own = self.own_value(ChartField::Env).as_array();
        let field = |variable: &Value, key: &str| {
            let text = variable.get(key).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let stays = |variable: &&Value| {
            let name = field(variable, "name");
            set.iter().all(|s| name.as_ref() != Some(&s.name))
        };
        let mut all = Vec::new();
        for variable in own.into_iter().flatten().filter(stays) {
            let value = field(variable, "value").unwrap_or_default();
            let name = field(variable, "name").unwrap_or_default();
            if redact::redact_variable(&name, &value) != format!("{name}={value}") {
                return Err(EmitError::Manifest {
                    why: format!("{} has the secret {} as it is, and Helm replaces the list whole", text::label(&place.path_text()), text::label(&name)),
                    hint: "refer to a Secret there (valueFrom), or give --values-path java-options=PATH".to_owned(),
                });
            }
            all.push(Yaml::from(variable));
        }
        let name = |s: &VariableChange| yaml_entry("name", s.name.clone());
        all.extend(set.iter().map(|s| yaml_map([name(s), entry("value", s)])));
        Ok(yaml_list(all))
    }

    /// `repository@sha256:...` in the form that the chart has an image in.
    fn image_in_form(&self, place: &ValuePath, pinned: &str) -> Result<Yaml, EmitError> {
        let split = pinned.split_once('@');
        let (repository, digest) =
            split.ok_or_else(|| self.wrong_form_error(ChartField::Image, "pinned"))?;
        let Some(Value::Object(own)) = place.value_in(self.values) else {
            return match place.value_in(self.values) {
                None | Some(Value::String(_) | Value::Null) => Ok(pinned.into()),
                Some(_) => Err(self.wrong_form_error(ChartField::Image, "a text or a map")),
            };
        };
        let mut fields: Vec<YamlEntry> = Vec::new();
        let repository = match (own.contains_key("registry"), repository.split_once('/')) {
            (true, Some((registry, rest))) => {
                fields.push(yaml_entry("registry", registry));
                rest
            }
            _ => repository,
        };
        if own.contains_key("digest") {
            fields.push(yaml_entry("repository", repository));
            fields.push(yaml_entry("digest", digest));
        } else {
            // What `helm create` makes joins both with a colon.
            let (kind, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
            let why = "with its repository it is the digest: the chart joins them with a colon";
            fields.push(yaml_entry("repository", format!("{repository}@{kind}")));
            fields.push(yaml_entry("tag", hex).because(why));
        }
        Ok(yaml_map(fields))
    }
}

fn variables_without_path(set: &[VariableChange]) -> Result<Option<String>, EmitError> {
    if let Some(options) = set.iter().find(|s| s.name == TOOL_OPTIONS) {
        let options = text::label(&options.value);
        let hint =
            "without them the size is another one: --values-path java-options=PATH, or env=PATH";
        return Err(EmitError::Manifest {
            why: format!("the measured JVM options have no place in the values: {options}"),
            hint: hint.to_owned(),
        });
    }
    let names = join_words(set.iter().map(|s| text::label(&s.name)), ", ");
    Ok((!set.is_empty()).then(|| {
        format!(
            "the trials had {names}: give --values-path env=PATH where the chart should have them."
        )
    }))
}

fn insert(out: &mut Vec<YamlEntry>, path: &[String], value: Yaml, why: Option<&str>) {
    let [key, rest @ ..] = path else { return };
    if rest.is_empty() {
        let found = yaml_entry(key.clone(), value);
        out.push(match why {
            Some(why) => found.because(why),
            None => found,
        });
        return;
    }
    let there = out.iter().position(|entry| entry.key_name() == key);
    let at = there.unwrap_or_else(|| {
        out.push(yaml_entry(key.clone(), yaml_map([])));
        out.len() - 1
    });
    // No place lies inside another, so an existing entry is a map.
    if let Some(inner) = out.get_mut(at).and_then(YamlEntry::entries) {
        insert(inner, rest, value, why);
    }
}

fn refuse_overlaps(places: &[ValuePath]) -> Result<(), EmitError> {
    let words = |place: &ValuePath| {
        format!(
            "{}={}",
            place.what.flag_name(),
            text::label(&place.path_text())
        )
    };
    for (at, one) in places.iter().enumerate() {
        for other in &places[at + 1..] {
            let is_inside = one.path.starts_with(&other.path) || other.path.starts_with(&one.path);
            if is_inside || one.what == other.what {
                let (one, other) = (words(one), words(other));
                return Err(EmitError::Manifest {
                    why: format!("--values-path {one} and {other} cannot both be"),
                    hint: "give each its own path, once".to_owned(),
                });
            }
        }
    }
    Ok(())
}
