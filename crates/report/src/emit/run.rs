//! Shipping a run: a Kubernetes Job or CronJob, and the JVM options.
//!
//! Owns the Job's rules: a size that is too small fails again, so a kill for memory is not
//! repeated, and a hanging run is ended.

use std::time::Duration;

use loadline_analysis::budget::named_heap;
use loadline_analysis::lint::OUTSIDE_HEAP;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_analysis::slo::RunObjective;
use loadline_sizing::Bytes;

use super::builds::{self, RunShape, ShippedRun};
use super::error::EmitError;
use super::names::{labels, slug};
use super::purpose::Artefact;
use super::yaml::{Yaml, YamlEntry, yaml_entry, yaml_list, yaml_map};
use crate::content::groups;
use crate::view::ResultView;
use crate::{format, redact, text};

/// A run without a time bound is ended after this many times its measured time.
const PATIENCE: u32 = 3;

/// A page of 512-byte cards, as in `loadline_sizing::hotspot::heap`.
const HEAP_ALIGNMENT: Bytes = Bytes::from_mib(2);

/// Exit code of a process that was killed for memory: 128 and SIGKILL.
const KILLED: u64 = 137;

/// The Job, its tool's files, and for `java` with options `jvm.options`.
/// Errors: [`EmitError::NoRecommendation`].
pub fn emit_run(view: &ResultView, shape: &RunShape<'_>) -> Result<Vec<Artefact>, EmitError> {
    let Some(recommendation) = &view.recommendation else {
        let result = text::one_line(&view.id);
        return Err(EmitError::NoRecommendation { result });
    };
    let configuration = &recommendation.configuration;
    let options = configuration.jvm_options.iter().map(|o| o.text.as_str());
    let lines = crate::content::claim::AnswerClaim::new(view, recommendation).emitted_lines();
    let lines = lines
        .iter()
        .map(|line| format!("# {}\n", text::one_line(line)));
    let runs = trials_of_answer(view, configuration).filter_map(|t| t.evidence.run.as_ref());
    let run = ShippedRun {
        shape,
        slug: slug(shape.name),
        header: lines.collect(),
        configuration,
        options: options.filter(|option| fits_line(option)).collect(),
        jvms: runs.flat_map(|run| &run.jvms).collect(),
        prices: &recommendation.run_prices,
        deadline: deadline(view, configuration),
    };
    let mut artefacts = vec![Artefact {
        name: "job.yaml",
        text: format!("{}{}", run.header, job(&run).to_document()),
    }];
    let files = builds::tool_files(&run).into_iter();
    artefacts.extend(files.map(|(name, text)| Artefact { name, text }));
    if !run.options.is_empty() && configuration.options_variable.is_none() {
        artefacts.push(Artefact {
            name: "jvm.options",
            text: format!("{}{}\n", run.header, run.options.join("\n")),
        });
    }
    Ok(artefacts)
}

/// Files have an option a line: a line break in a foreign record would begin a setting of its maker's.
fn fits_line(option: &str) -> bool {
    !option.contains(redact::REDACTED) && text::one_line(option) == option
}

impl ShippedRun<'_> {
    /// What its tested runs had next to the largest heap: `lint` adds both up.
    fn outside_heap(&self) -> Option<Bytes> {
        let allowed = self.jvms.iter().filter_map(|jvm| jvm.heap_max).max();
        // The JVM rounds a heap up as it aligns it, and `lint` does so too.
        let named = named_heap(self.configuration).map(|heap| heap.round_up(HEAP_ALIGNMENT));
        let heap = named.or(allowed)?;
        let rest = self.configuration.memory?.saturating_sub(heap);
        Some(rest).filter(|rest| rest.as_bytes() > 0)
    }
}

fn job(run: &ShippedRun<'_>) -> Yaml {
    let killed = yaml_map([
        yaml_entry("operator", "In"),
        yaml_entry("values", yaml_list([KILLED])),
    ]);
    let rule = yaml_map([
        yaml_entry("action", "FailJob"),
        yaml_entry("onExitCodes", killed),
    ]);
    let labelled = || yaml_entry("metadata", [yaml_entry("labels", labels(&run.slug))]);
    let template = yaml_map([labelled(), yaml_entry("spec", pod(run))]);
    let rules = yaml_entry("rules", yaml_list([rule]));
    let rules = rules.because("killed for memory: the same size fails again");
    let (deadline, why) = &run.deadline;
    let spec = yaml_map([
        yaml_entry("backoffLimit", 1_u64),
        yaml_entry("activeDeadlineSeconds", deadline.as_secs().max(1)).because(why),
        yaml_entry("podFailurePolicy", [rules]),
        yaml_entry("template", template),
    ]);
    let (kind, spec) = match run.shape.schedule {
        None => ("Job", spec),
        Some(schedule) => {
            let jobs = yaml_map([labelled(), yaml_entry("spec", spec)]);
            let spec = yaml_map([
                yaml_entry("schedule", schedule),
                yaml_entry("concurrencyPolicy", "Forbid")
                    .because("two runs at once were not measured"),
                yaml_entry("jobTemplate", jobs),
            ]);
            ("CronJob", spec)
        }
    };
    let mut named = vec![
        yaml_entry("name", run.slug.as_str()),
        yaml_entry("labels", labels(&run.slug)),
    ];
    named.extend(run.outside_heap().map(|rest| {
        let rest = yaml_entry(OUTSIDE_HEAP, rest.to_string());
        yaml_entry("annotations", [rest])
    }));
    yaml_map([
        yaml_entry("apiVersion", "batch/v1"),
        yaml_entry("kind", kind),
        yaml_entry("metadata", yaml_map(named)),
        yaml_entry("spec", spec),
    ])
}

fn pod(run: &ShippedRun<'_>) -> Yaml {
    let mut container = vec![
        yaml_entry("name", run.slug.as_str()),
        yaml_entry("image", run.shape.image),
    ];
    if !run.shape.command.is_empty() {
        // An image that was measured started by its own entry point.
        let key = if run.shape.is_image {
            "args"
        } else {
            "command"
        };
        let words = run.shape.command.iter();
        let words = words.map(|word| Yaml::from(word.as_str()));
        container.push(yaml_entry(key, yaml_list(words)));
    }
    container.push(yaml_entry("resources", resources(run.configuration)));
    if let Some((name, value)) = run.variable() {
        let variable = yaml_map([yaml_entry("name", name), yaml_entry("value", value)]);
        container.push(yaml_entry("env", yaml_list([variable])));
    }
    yaml_map([
        yaml_entry("restartPolicy", "Never"),
        yaml_entry("automountServiceAccountToken", false),
        yaml_entry("containers", yaml_list([yaml_map(container)])),
    ])
}

fn resources(configuration: &Configuration) -> Yaml {
    let memory = configuration.memory.iter();
    let memory = memory.map(|memory| yaml_entry("memory", memory.to_string()));
    let cpu = configuration.cpu.iter();
    let cpu = cpu.map(|cpu| yaml_entry("cpu", cpu.to_string()));
    let all: Vec<YamlEntry> = memory.chain(cpu).collect();
    yaml_map([
        yaml_entry("requests", yaml_map(all.clone())),
        yaml_entry("limits", yaml_map(all)),
    ])
}

fn trials_of_answer<'a>(
    view: &'a ResultView,
    answer: &'a Configuration,
) -> impl Iterator<Item = &'a TrialRecord> {
    let trials = view.evidence_trials();
    trials.filter(move |trial| groups::is_of_answer(&trial.configuration, answer))
}

fn deadline(view: &ResultView, configuration: &Configuration) -> (Duration, String) {
    let mut objectives = view.slo.run_objectives();
    let bound = objectives.find_map(|objective| match objective {
        RunObjective::Time { bound } => Some(bound),
        _ => None,
    });
    if let Some(bound) = bound {
        return (bound, "the bound of its SLO".to_owned());
    }
    let times = trials_of_answer(view, configuration);
    let times = times.filter_map(|t| t.evidence.start.ready);
    let longest = times.max().unwrap_or_default();
    let why = format::measured_time(longest);
    let why = format!("{PATIENCE} times its longest run, {why}");
    (longest * PATIENCE, why)
}
