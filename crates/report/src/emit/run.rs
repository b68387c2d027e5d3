//! Shipping a run: a Kubernetes Job, and the measured JVM options.
//!
//! Owns the Job's rules: a size that is too small fails again, so a kill for memory is not
//! repeated, and a hanging run is ended.

use std::time::Duration;

use loadline_analysis::record::{Configuration, ValueProvenance};
use loadline_analysis::slo::RunObjective;

use super::error::EmitError;
use super::names::{labels, slug};
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use super::{Artefact, jvm_options::TOOL_OPTIONS};
use crate::format;
use crate::text;
use crate::view::ResultView;

/// A run without a time bound is ended after this many times its measured time.
const PATIENCE: u32 = 3;

/// Exit code of a process that was killed for memory: 128 and SIGKILL.
const KILLED: u64 = 137;

pub struct RunShape<'a> {
    pub name: &'a str,
    pub image: &'a str,
    pub command: &'a [String],
}

/// The Job, and `jvm.options` where options were measured.
/// Errors: [`EmitError::NoRecommendation`].
pub fn emit_run(view: &ResultView, shape: &RunShape<'_>) -> Result<Vec<Artefact>, EmitError> {
    let Some(recommendation) = &view.recommendation else {
        return Err(EmitError::NoRecommendation {
            result: text::one_line(&view.id),
        });
    };
    let configuration = &recommendation.configuration;
    let options: Vec<&str> = configuration
        .jvm_options
        .iter()
        .filter(|option| option.provenance == ValueProvenance::Measured)
        .map(|option| option.text.as_str())
        .collect();
    let lines = crate::content::claim::AnswerClaim::new(view, recommendation).emitted_lines();
    let header: String = lines.iter().map(|line| format!("# {line}\n")).collect();
    let job = job(view, configuration, shape, &options).to_document();
    let mut artefacts = vec![Artefact {
        name: "job.yaml",
        text: format!("{header}{job}"),
    }];
    if !options.is_empty() {
        artefacts.push(Artefact {
            name: "jvm.options",
            text: format!("{header}{}\n", options.join("\n")),
        });
    }
    Ok(artefacts)
}

fn job(
    view: &ResultView,
    configuration: &Configuration,
    shape: &RunShape<'_>,
    options: &[&str],
) -> Yaml {
    let slug = slug(shape.name);
    let (deadline, why) = deadline(view, configuration);
    let killed = yaml_map([
        yaml_entry("operator", "In"),
        yaml_entry("values", yaml_list([Yaml::Number(KILLED)])),
    ]);
    let rule = yaml_map([
        yaml_entry("action", "FailJob"),
        yaml_entry("onExitCodes", killed),
    ]);
    let template = yaml_map([
        yaml_entry("metadata", yaml_map([yaml_entry("labels", labels(&slug))])),
        yaml_entry("spec", pod(configuration, shape, &slug, options)),
    ]);
    yaml_map([
        yaml_entry("apiVersion", "batch/v1"),
        yaml_entry("kind", "Job"),
        yaml_entry(
            "metadata",
            yaml_map([
                yaml_entry("name", slug.as_str()),
                yaml_entry("labels", labels(&slug)),
            ]),
        ),
        yaml_entry(
            "spec",
            yaml_map([
                yaml_entry("backoffLimit", 1_u64),
                yaml_entry("activeDeadlineSeconds", deadline.as_secs().max(1)).because(why),
                yaml_entry(
                    "podFailurePolicy",
                    yaml_map([yaml_entry("rules", yaml_list([rule]))
                        .because("killed for memory: the same size fails again")]),
                ),
                yaml_entry("template", template),
            ]),
        ),
    ])
}

fn pod(configuration: &Configuration, shape: &RunShape<'_>, slug: &str, options: &[&str]) -> Yaml {
    let words = shape.command.iter().map(|word| Yaml::from(word.as_str()));
    let mut container = vec![
        yaml_entry("name", slug),
        yaml_entry("image", shape.image),
        yaml_entry("command", yaml_list(words)),
        yaml_entry("resources", resources(configuration)),
    ];
    if !options.is_empty() {
        let value = yaml_map([
            yaml_entry("name", TOOL_OPTIONS),
            yaml_entry("value", options.join(" ")),
        ]);
        container.push(yaml_entry("env", yaml_list([value])));
    }
    yaml_map([
        yaml_entry("restartPolicy", "Never"),
        yaml_entry("automountServiceAccountToken", false),
        yaml_entry("containers", yaml_list([yaml_map(container)])),
    ])
}

fn resources(configuration: &Configuration) -> Yaml {
    let mut all: Vec<YamlEntry> = Vec::new();
    all.extend(
        configuration
            .memory
            .map(|memory| yaml_entry("memory", memory.to_string())),
    );
    all.extend(
        configuration
            .cpu
            .map(|cpu| yaml_entry("cpu", cpu.to_string())),
    );
    yaml_map([
        yaml_entry("requests", yaml_map(all.clone())),
        yaml_entry("limits", yaml_map(all)),
    ])
}

fn deadline(view: &ResultView, configuration: &Configuration) -> (Duration, String) {
    let bound = view
        .slo
        .run_objectives()
        .find_map(|objective| match objective {
            RunObjective::Time { bound } => Some(bound),
            _ => None,
        });
    let runs = view
        .evidence_trials()
        .filter(|t| t.configuration.memory == configuration.memory);
    let longest = runs
        .filter_map(|t| t.evidence.start.ready)
        .max()
        .unwrap_or_default();
    match bound {
        Some(bound) => (bound, "the bound of its SLO".to_owned()),
        None => (
            longest * PATIENCE,
            format!(
                "{PATIENCE} times its longest run, {}",
                format::measured_time(longest)
            ),
        ),
    }
}
