//! Values for a Helm chart that is there.
//!
//! Owns where a value goes: at the path that the user says the chart reads it from, in the form that
//! the chart's own values have there. Helm merges maps of values and replaces everything else, so
//! what stands in a text or list of the chart's values is said again. Sources: Helm, "Values Files";
//! `helm create` for the names that most charts have.

use serde_json::{Map, Value, json};

use super::application::Pinned;
use super::change::{Change, Set, change, kept_limits, probes};
use super::error::EmitError;
use super::facts::Facts;
use super::jvm_options::TOOL_OPTIONS;
use super::kubernetes::resources;
use super::patch::{ANNOTATION, Patched, comments};
use super::yaml::{Entry, Yaml, entry, list, map};
use super::{Application, Artefact, Purpose};
use crate::redact;
use crate::text;
use crate::view::ResultView;

/// What a chart can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// Requests and limits, as in a container.
    Resources,
    /// The JVM options, as the value of `JAVA_TOOL_OPTIONS`.
    JavaOptions,
    /// Variables: a list of names and values, or a map.
    Env,
    /// The image: a text, or a map with `repository` and `tag` or `digest`.
    Image,
    /// The startup probe, as in a container.
    StartupProbe,
    /// The readiness probe, as in a container.
    ReadinessProbe,
    /// Annotations, of which one gets the id of the result.
    Annotations,
}

impl What {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Resources,
        Self::JavaOptions,
        Self::Env,
        Self::Image,
        Self::StartupProbe,
        Self::ReadinessProbe,
        Self::Annotations,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
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

/// Where a chart reads a value from: keys from the outermost on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What goes there.
    pub what: What,
    /// The keys; at least one.
    pub path: Vec<String>,
}

impl Place {
    /// Reads `resources=app.resources`; a dot of a key itself is written `\.`, as for `helm --set`.
    ///
    /// # Errors
    /// With what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = || What::ALL.map(What::name).join(", ");
        let (name, path) = text.split_once('=').ok_or_else(|| {
            format!(
                "write WHAT=PATH, such as resources=app.resources; WHAT is one of {}",
                names()
            )
        })?;
        let what = What::ALL.into_iter().find(|what| what.name() == name);
        let what = what.ok_or_else(|| format!("`{name}` is none of {}", names()))?;
        let mut path_of: Vec<String> = vec![String::new()];
        let mut letters = path.chars();
        while let Some(c) = letters.next() {
            match c {
                '.' => path_of.push(String::new()),
                '\\' => path_of.extend_last(letters.next()),
                c => path_of.extend_last(Some(c)),
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

    fn text(&self) -> String {
        self.path.join(".")
    }

    /// What the chart's values have there.
    fn look<'a>(&self, values: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(values, |at, key| at.get(key))
    }
}

/// Adds a letter to the last text.
trait ExtendLast {
    fn extend_last(&mut self, letter: Option<char>);
}

impl ExtendLast for Vec<String> {
    fn extend_last(&mut self, letter: Option<char>) {
        if let Some(last) = self.last_mut() {
            last.extend(letter);
        }
    }
}

/// The values of a recommendation at these places, over `values` of the chart.
///
/// # Errors
/// [`EmitError`] when the result has no recommendation, when a measured option has no place or would
/// not arrive, or when a place holds something else.
pub fn values(
    view: &ResultView,
    application: &Application,
    values: &Value,
    places: &[Place],
) -> Result<Patched, EmitError> {
    let facts = Facts::of(view, application, &[Purpose::Kubernetes])?;
    apart(places)?;
    let chart = Chart { values, places };
    let container = chart.container()?;
    let Change { variables, notes } = change(view, &facts, &container)?;
    let mut notes: Vec<String> = facts.left_out.iter().cloned().chain(notes).collect();
    notes.extend(kept_limits(&facts, &container["resources"]));
    notes.extend(chart.unknown());
    let mut out = Vec::new();
    let mut put = |place: &Place, value: Yaml, why: Option<&str>| {
        insert(&mut out, &place.path, value, why);
    };
    let (options, others): (Vec<Set>, Vec<Set>) = variables
        .into_iter()
        .partition(|set| set.name == TOOL_OPTIONS && chart.place(What::JavaOptions).is_some());
    if let (Some(place), Some(set)) = (chart.place(What::JavaOptions), options.first()) {
        put(place, set.value.clone().into(), Some(&set.because));
    }
    match chart.place(What::Env) {
        Some(place) if !others.is_empty() => put(place, chart.env(place, &others)?, None),
        Some(_) => {}
        None => notes.extend(nowhere(&others)?),
    }
    if let Some(place) = chart.place(What::Resources) {
        put(place, resources(&facts), None);
    }
    for (what, probe) in [
        (What::StartupProbe, "startupProbe"),
        (What::ReadinessProbe, "readinessProbe"),
    ] {
        let changed = probes(&facts, &container, true);
        let changed = changed.into_iter().find(|entry| entry.key() == probe);
        if let (Some(place), Some(changed)) = (chart.place(what), changed) {
            put(place, changed.into_value(), None);
        }
    }
    if let (Some(place), Some(pinned)) = (chart.place(What::Image), application.measured_image) {
        match pinned {
            Pinned::Yes => put(
                place,
                chart.image(place, &application.image)?,
                Some("the image that was measured, by its digest"),
            ),
            Pinned::No => notes.push(format!(
                "the image stays: {} was measured, which no cluster can pull by its digest before it is pushed.",
                text::label(&application.image)
            )),
        }
    }
    if let Some(place) = chart.place(What::Annotations) {
        let id = entry(ANNOTATION, text::one_line(&view.id));
        put(place, map([id]), None);
    }
    let text = comments(&facts, &notes) + &map(out).document();
    let artefacts = vec![Artefact {
        name: "values.yaml",
        text,
    }];
    Ok(Patched { artefacts, notes })
}

/// A chart's own values and where it reads what.
struct Chart<'a> {
    values: &'a Value,
    places: &'a [Place],
}

impl Chart<'_> {
    fn place(&self, what: What) -> Option<&Place> {
        self.places.iter().find(|place| place.what == what)
    }

    fn own(&self, what: What) -> &Value {
        let found = self.place(what).and_then(|place| place.look(self.values));
        found.unwrap_or(&Value::Null)
    }

    /// The container, as far as the chart's values tell it.
    fn container(&self) -> Result<Value, EmitError> {
        let mut env = match self.own(What::Env) {
            Value::Array(list) => list.clone(),
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| json!({"name": name, "value": value}))
                .collect(),
            Value::Null => Vec::new(),
            _ => return Err(self.other(What::Env, "a list or a map of variables")),
        };
        match self.own(What::JavaOptions) {
            Value::String(options) => {
                env.insert(0, json!({"name": TOOL_OPTIONS, "value": options}))
            }
            Value::Null => {}
            _ => return Err(self.other(What::JavaOptions, "a text")),
        }
        let mut container = Map::new();
        container.insert("env".to_owned(), env.into());
        for (what, field) in [
            (What::Resources, "resources"),
            (What::StartupProbe, "startupProbe"),
            (What::ReadinessProbe, "readinessProbe"),
        ] {
            match self.own(what) {
                Value::Null => {}
                own @ Value::Object(fields) => {
                    // `{}` in a chart's values stands for nothing.
                    if !fields.is_empty() {
                        container.insert(field.to_owned(), own.clone());
                    }
                }
                _ => return Err(self.other(what, "a map")),
            }
        }
        Ok(container.into())
    }

    fn other(&self, what: What, wanted: &str) -> EmitError {
        let place = self.place(what).map(Place::text).unwrap_or_default();
        EmitError::Manifest {
            why: format!("{} of the values is not {wanted}", text::label(&place)),
            hint: format!(
                "give the path that the chart reads it from: --values-path {}=PATH",
                what.name()
            ),
        }
    }

    /// Places that the chart's values do not have: Helm passes over what a chart does not read.
    fn unknown(&self) -> Vec<String> {
        let missing = self.places.iter().filter(|p| p.look(self.values).is_none());
        let note = |place: &Place| {
            format!(
                "the chart's values have no {}: make sure that the chart reads it; Helm says nothing about a value that none does.",
                text::label(&place.text())
            )
        };
        missing.map(note).collect()
    }

    /// The variables in the form that the chart has them in.
    fn env(&self, place: &Place, set: &[Set]) -> Result<Yaml, EmitError> {
        if let Some(Value::Object(_)) = place.look(self.values) {
            let all = set.iter();
            return Ok(map(all.map(|s| {
                entry(s.name.clone(), s.value.clone()).because(&*s.because)
            })));
        }
        let own = self
            .own(What::Env)
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let name = |variable: &Value| {
            variable
                .get("name")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let stays = |variable: &&Value| {
            set.iter()
                .all(|s| name(variable).as_deref() != Some(&s.name))
        };
        let mut all = Vec::new();
        for variable in own.iter().filter(stays) {
            let value = variable
                .get("value")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let name = name(variable).unwrap_or_default();
            if redact::variable(&name, value) != format!("{name}={value}") {
                return Err(EmitError::Manifest {
                    why: format!("{} has the secret {} as it is, and Helm replaces the list whole", text::label(&place.text()), text::label(&name)),
                    hint: "refer to a Secret there (valueFrom), or give --values-path java-options=PATH".to_owned(),
                });
            }
            all.push(Yaml::from(variable));
        }
        all.extend(set.iter().map(|s| {
            let value = entry("value", s.value.clone()).because(&*s.because);
            map([entry("name", s.name.clone()), value])
        }));
        Ok(list(all))
    }

    /// `repository@sha256:...` in the form that the chart has an image in.
    fn image(&self, place: &Place, pinned: &str) -> Result<Yaml, EmitError> {
        let split = pinned
            .split_once('@')
            .ok_or_else(|| self.other(What::Image, "pinned"))?;
        let (repository, digest) = split;
        let Some(Value::Object(own)) = place.look(self.values) else {
            return match place.look(self.values) {
                None | Some(Value::String(_) | Value::Null) => Ok(pinned.into()),
                Some(_) => Err(self.other(What::Image, "a text or a map")),
            };
        };
        let mut fields: Vec<Entry> = Vec::new();
        let repository = match (own.contains_key("registry"), repository.split_once('/')) {
            (true, Some((registry, rest))) => {
                fields.push(entry("registry", registry));
                rest
            }
            _ => repository,
        };
        if own.contains_key("digest") {
            fields.extend([entry("repository", repository), entry("digest", digest)]);
        } else {
            // What `helm create` makes joins both with a colon.
            let (kind, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
            fields.push(entry("repository", format!("{repository}@{kind}")));
            fields.push(entry("tag", hex).because(
                "with its repository it is the digest: the chart joins them with a colon",
            ));
        }
        Ok(map(fields))
    }
}

/// Measured variables without a place: options are refused, others named.
fn nowhere(set: &[Set]) -> Result<Option<String>, EmitError> {
    if let Some(options) = set.iter().find(|s| s.name == TOOL_OPTIONS) {
        return Err(EmitError::Manifest {
            why: format!(
                "the measured JVM options have no place in the values: {}",
                text::label(&options.value)
            ),
            hint:
                "without them the size is another one: --values-path java-options=PATH, or env=PATH"
                    .to_owned(),
        });
    }
    let names: Vec<String> = set.iter().map(|s| text::label(&s.name)).collect();
    Ok((!names.is_empty()).then(|| {
        format!(
            "the trials had {}: give --values-path env=PATH where the chart should have them.",
            names.join(", ")
        )
    }))
}

/// Puts a value at a path.
fn insert(out: &mut Vec<Entry>, path: &[String], value: Yaml, why: Option<&str>) {
    let [key, rest @ ..] = path else { return };
    if rest.is_empty() {
        let found = entry(key.clone(), value);
        out.push(match why {
            Some(why) => found.because(why),
            None => found,
        });
        return;
    }
    let there = out.iter().position(|entry| entry.key() == key);
    let at = there.unwrap_or_else(|| {
        out.push(entry(key.clone(), map([])));
        out.len() - 1
    });
    // No place lies inside another, so what is there is a map.
    if let Some(inner) = out.get_mut(at).and_then(Entry::entries) {
        insert(inner, rest, value, why);
    }
}

/// Refuses places of which one lies inside another, or is the same.
fn apart(places: &[Place]) -> Result<(), EmitError> {
    for (at, one) in places.iter().enumerate() {
        for other in &places[at + 1..] {
            let is_inside = one.path.starts_with(&other.path) || other.path.starts_with(&one.path);
            if is_inside || one.what == other.what {
                return Err(EmitError::Manifest {
                    why: format!(
                        "--values-path {}={} and {}={} cannot both be",
                        one.what.name(),
                        text::label(&one.text()),
                        other.what.name(),
                        text::label(&other.text())
                    ),
                    hint: "give each a path of its own, once".to_owned(),
                });
            }
        }
    }
    Ok(())
}
