//! Options, arguments and environment of the application: which may be written to a file.
//!
//! Owns the refusals: secrets, and texts that no line can hold unchanged (control characters, more
//! than 2000 characters). Every omission is reported; nothing is altered, because half an option is
//! another option.

use std::collections::BTreeMap;

use loadline_analysis::recommend::Recommendation;
use loadline_sizing::hotspot::node::ARENAS;

use super::application::ProductionApplication;
use super::names::{secret_name, slug};
use crate::content::node;
use crate::content::options::{chosen_by, provenance_evidence};
use crate::view::ResultView;
use crate::{redact, text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackedValue<T> {
    pub value: T,
    pub because: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentVariable {
    pub name: String,
    /// Its value; `None` if the name indicates a secret.
    pub value: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextFit {
    Fits,
    Secret,
    NoLine,
    /// An option without its value, the next word.
    WithoutValue,
}

impl TextFit {
    fn for_text(text: &str) -> Self {
        // A secret that an export took out before is one too.
        if redact::redact_line(text) != text || text.contains(redact::REDACTED) {
            Self::Secret
        } else if text::one_line(text) != text {
            Self::NoLine
        } else {
            Self::Fits
        }
    }

    /// `Left out, give it at run time: ...`; `None` for what fits.
    fn left_out(self, what: &str, shown: &str) -> Option<String> {
        let why = match self {
            Self::Fits => return None,
            Self::Secret => "it holds a secret",
            Self::WithoutValue => "its value is left out",
            Self::NoLine => "it has control characters or more than 2000 characters",
        };
        let shown = text::label(shown);
        let words = format!("Left out, give it at run time: {what} {shown}, because {why}.");
        Some(text::one_line(&words))
    }
}

/// JVM options: those of the configuration, then those of the command, as in the trials: for the
/// same option the last wins.
pub fn backed_options(
    view: &ResultView,
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> Vec<BackedValue<String>> {
    let chosen = recommendation.configuration.jvm_options.iter();
    let chosen = chosen.map(|o| {
        let why = provenance_evidence(view, recommendation, o.provenance);
        (&o.text, format!("{}: {why}", chosen_by(o.provenance)))
    });
    let own = "the user: part of the command that was measured";
    let given = application.command.options.iter();
    let given = given.map(|o| (o, own.to_owned()));
    let pins = node::pins(view);
    let pinned = pins.options.iter();
    let pinned = pinned.map(|o| (o, format!("calculated: {}", pins.because)));
    let all = chosen.chain(given).chain(pinned);
    let all = all.filter(|(text, _)| TextFit::for_text(text) == TextFit::Fits);
    let backed = all.map(|(text, because)| BackedValue {
        value: text.clone(),
        because,
    });
    backed.collect()
}

struct CommandArgument {
    given: String,
    shown: String,
    fit: TextFit,
}

/// Arguments of the command, then of the configuration. The value of `--password` is a separate
/// argument: if it is left out, so is the option, or it would take the next word.
fn all_arguments(
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> Vec<CommandArgument> {
    let own = application.command.arguments.iter();
    let configured = recommendation.configuration.args.iter();
    let given: Vec<String> = own.chain(configured).cloned().collect();
    let shown = redact::redact_command(&given);
    let pairs = given.into_iter().zip(shown);
    let mut all: Vec<CommandArgument> = pairs
        .map(|(given, shown)| CommandArgument {
            fit: if given == shown {
                TextFit::for_text(&given)
            } else {
                TextFit::Secret
            },
            given,
            shown,
        })
        .collect();
    for i in 1..all.len() {
        let is_value = all[i].fit != TextFit::Fits && !all[i].given.starts_with('-');
        let before = &mut all[i - 1];
        let takes_value = before.given.starts_with('-') && !before.given.contains('=');
        if is_value && takes_value && before.fit == TextFit::Fits {
            before.fit = TextFit::WithoutValue;
        }
    }
    all
}

pub fn arguments(
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> Vec<String> {
    let all = all_arguments(recommendation, application).into_iter();
    let fit = all.filter(|argument| argument.fit == TextFit::Fits);
    fit.map(|argument| argument.given).collect()
}

fn merged_environment(
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> BTreeMap<String, String> {
    let mut all = application.env.clone();
    all.extend(recommendation.configuration.env.clone());
    all
}

pub fn variables(
    view: &ResultView,
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> Vec<EnvironmentVariable> {
    let mut all = merged_environment(recommendation, application);
    if let Some(arenas) = node::pins(view).arenas {
        all.entry(ARENAS.to_owned()).or_insert(arenas.to_string());
    }
    let all = all.into_iter().filter(|(name, _)| is_variable_name(name));
    let variable = |(name, value): (String, String)| {
        let is_open = !redact::is_secret_name(&name) && TextFit::for_text(&value) == TextFit::Fits;
        EnvironmentVariable {
            value: is_open.then_some(value),
            name,
        }
    };
    all.map(variable).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    pub name: String,
    pub keys: Vec<String>,
}

pub fn secret(view: &ResultView, application: &ProductionApplication) -> Option<Secret> {
    let variables = variables(view, view.recommendation.as_ref()?, application);
    let hidden = variables.into_iter().filter(|v| v.value.is_none());
    let keys: Vec<String> = hidden.map(|v| v.name).collect();
    (!keys.is_empty()).then(|| Secret {
        name: secret_name(&slug(&application.name)),
        keys,
    })
}

fn is_variable_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty()
        && name.len() <= 256
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(is_part)
}

pub fn left_out(
    recommendation: &Recommendation,
    application: &ProductionApplication,
) -> Vec<String> {
    let configuration = &recommendation.configuration;
    let options = configuration.jvm_options.iter().map(|o| &o.text);
    let options = options.chain(&application.command.options);
    let options = options
        .filter_map(|o| TextFit::for_text(o).left_out("the option", &redact::redact_line(o)));
    let arguments = all_arguments(recommendation, application);
    let arguments = arguments.iter();
    let arguments = arguments.filter_map(|a| a.fit.left_out("the argument", &a.shown));
    let environment = merged_environment(recommendation, application);
    let names = environment.keys().filter(|name| !is_variable_name(name));
    let names = names.map(|name| {
        let name = text::label(name);
        format!("Left out: {name:?} is no name of a variable.")
    });
    let cache = cache_left_out(application);
    options.chain(arguments).chain(names).chain(cache).collect()
}

/// A start-up cache that no image build here makes: Open Liberty's start script has its own.
fn cache_left_out(application: &ProductionApplication) -> Option<String> {
    let is_liberty = application.command.liberty.is_some();
    let cache = application.cache.filter(|_| is_liberty)?;
    Some(format!(
        "Left out: the start-up cache ({}) that the trials started with; without it starts take longer than was measured.",
        cache.kind
    ))
}
