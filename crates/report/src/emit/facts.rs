//! What the artefacts are made from: values of the recommendation, each with its evidence in words.
//!
//! Owns every derivation that an artefact needs, so that two files cannot disagree.

use std::time::Duration;

use loadline_analysis::budget::Budget;
use loadline_analysis::deployment::Deployment;
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{PhaseSpan, TrialPhase, TrialRecord};
use loadline_analysis::sli::Sli;
use loadline_analysis::startup::{self, ProbeSettings};
use loadline_sizing::hotspot::MachineSize;
use loadline_sizing::regions::heap::HeapOverrun;
use loadline_sizing::{Bytes, Cpus, JvmOptionSet};

use super::application::ProductionApplication;
use super::bounds::AlertBounds;
use super::command::names_no_file;
use super::error::EmitError;
use super::given::{self, BackedValue, EnvironmentVariable};
use super::names::slug;
use super::purpose::EmitPurpose;
use super::scaling::{MetricTrigger, metric_triggers};
use crate::content::claim::AnswerClaim;
use crate::content::options::trial_numbers;
use crate::content::{budget, groups};
use crate::figures::spread;
use crate::view::ResultView;
use crate::{format, text};

/// A stop may take this many times the slowest measured one.
const STOP_FACTOR: u32 = 2;
/// The slowest start where none was measured: its probe waits two minutes.
const UNKNOWN_START: Duration = Duration::from_secs(40);
const SHORTEST_GRACE: Duration = Duration::from_secs(30);

pub const SHM: &str =
    "the /dev/shm of every trial behind this size; what lies there counts towards the memory limit";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoggedFacts {
    pub jdk: Option<String>,
    pub collector: Option<String>,
    pub live_heap: Option<BackedValue<Bytes>>,
}

pub struct EmitFacts<'a> {
    pub application: &'a ProductionApplication,
    pub slug: String,
    pub result: String,
    pub origin: Vec<String>,
    pub memory: BackedValue<Bytes>,
    pub cpu: Option<BackedValue<Cpus>>,
    /// The request where it is not the limit.
    pub cpu_request: Option<BackedValue<Cpus>>,
    /// Whether a CPU request was measured without a limit: a limit would change the application.
    pub is_without_limit: bool,
    /// The CPU limit until the pod is ready.
    pub start_cpu: Option<Cpus>,
    pub shm: Option<Bytes>,
    /// JVM options in order; none with a secret in it.
    pub options: Vec<BackedValue<String>>,
    /// Arguments of the configuration, after those of the application; none with a secret in it.
    pub arguments: Vec<String>,
    pub left_out: Vec<String>,
    pub variables: Vec<EnvironmentVariable>,
    /// Everything outside the heap, growth included.
    pub rest: Option<Bytes>,
    pub seen: LoggedFacts,
    pub replicas: String,
    pub probes: BackedValue<ProbeSettings>,
    pub slowest_start: BackedValue<Duration>,
    pub deployment: Option<&'a Deployment>,
    pub grace: BackedValue<Duration>,
    pub has_image: bool,
    /// Whether KEDA scales it: then no autoscaler of Kubernetes does.
    pub has_keda: bool,
    pub alerts: AlertBounds,
    /// What scales a consumer.
    pub triggers: Vec<MetricTrigger>,
}

impl<'a> EmitFacts<'a> {
    pub fn from_result(
        view: &'a ResultView,
        application: &'a ProductionApplication,
        purposes: &[EmitPurpose],
    ) -> Result<Self, EmitError> {
        let Some(recommendation) = &view.recommendation else {
            let result = text::one_line(&view.id);
            return Err(EmitError::NoRecommendation { result });
        };
        let configuration = &recommendation.configuration;
        for option in &configuration.jvm_options {
            names_no_file(&option.text)?;
        }
        let group = groups::group_of(view, configuration);
        let trials = group.map(|g| g.trials).unwrap_or_default();
        let options = given::backed_options(view, recommendation, application);
        refuse_over_commitment(recommendation, &options, &trials)?;
        let is_built = |p: &EmitPurpose| matches!(p, EmitPurpose::Docker | EmitPurpose::Compose);
        let slowest_start = slowest_start(&trials);
        let triggers = metric_triggers(&view.slo, application, &trials, slowest_start.value);
        Ok(Self {
            application,
            slug: slug(&application.name),
            result: view.id.clone(),
            origin: origin(view, recommendation),
            memory: BackedValue {
                value: recommendation.recommended_memory(),
                because: memory_reason(view, recommendation),
            },
            cpu: configuration.cpu.map(|value| BackedValue {
                value,
                because: cpu_reason(recommendation),
            }),
            cpu_request: cpu_request(recommendation, &trials),
            is_without_limit: configuration.cpu_request.is_some() && configuration.cpu.is_none(),
            start_cpu: configuration.start_cpu,
            shm: configuration.shm,
            options,
            rest: recommendation.budget.as_ref().map(Budget::rest_need),
            arguments: given::arguments(recommendation, application),
            left_out: given::left_out(recommendation, application),
            variables: given::variables(view, recommendation, application),
            seen: logged_facts(&trials),
            replicas: replicas(recommendation, application),
            probes: probes(&slowest_start),
            slowest_start,
            deployment: recommendation.deployment.as_ref(),
            grace: grace(&trials),
            has_image: purposes.iter().any(is_built),
            has_keda: purposes.contains(&EmitPurpose::Keda),
            alerts: AlertBounds::for_answer(view, recommendation),
            triggers,
        })
    }
}

impl EmitFacts<'_> {
    /// First lines of a file: where it comes from, and what is left out of it.
    pub fn header(&self) -> String {
        let lines = self.origin.iter().chain(&self.left_out);
        lines.map(|line| format!("# {line}\n")).collect()
    }

    /// First lines of a YAML file: where it comes from, and what it is for.
    pub fn commented(&self, purpose: &str) -> String {
        let lines = self.origin.iter().map(String::as_str).chain([purpose]);
        lines.map(|line| format!("# {line}\n")).collect()
    }

    pub fn machine(&self) -> MachineSize {
        let cpu = self.cpu.as_ref().or(self.cpu_request.as_ref());
        let cpus = cpu.map_or(1, |cpu| cpu.value.ceil());
        MachineSize {
            memory: self.memory.value,
            cpus: cpus.max(1),
        }
    }

    /// Everything outside the heap: as the budget has it, else what the tested heap left.
    pub fn outside_heap(&self) -> Option<Bytes> {
        let options = JvmOptionSet::from_words(self.options.iter().map(|o| o.value.clone()));
        let heap = options.size_value("MaxHeapSize");
        let left = heap.map(|heap| self.memory.value.saturating_sub(heap));
        self.rest.or(left)
    }
}

fn refuse_over_commitment(
    recommendation: &Recommendation,
    options: &[BackedValue<String>],
    trials: &[&TrialRecord],
) -> Result<(), EmitError> {
    let Some(budget) = &recommendation.budget else {
        return Ok(());
    };
    let given = JvmOptionSet::from_words(options.iter().map(|o| o.value.clone()));
    let seen = trials.iter();
    let seen = seen.filter_map(|t| t.evidence.gc.as_ref()?.heap_max);
    let heap = given.size_value("MaxHeapSize").or(seen.max());
    let heap = heap.unwrap_or_else(|| budget.heap_need());
    let limit = recommendation.recommended_memory();
    let overrun = HeapOverrun::find_overrun(heap, budget.rest_need(), limit);
    overrun.map_or(Ok(()), |overrun| Err(EmitError::OverCommitted(overrun)))
}

/// A search for the cheapest deployment has its own number; any other is the user's.
fn replicas(recommendation: &Recommendation, application: &ProductionApplication) -> String {
    let deployment = recommendation.deployment.as_ref();
    match deployment.filter(|d| d.chosen.replicas == application.replicas) {
        Some(deployment) => format!(
            "together they carry {} as the cheapest deployment; each was measured alone at {}",
            format::as_rate(deployment.rate),
            format::as_rate(deployment.each)
        ),
        None => "as asked for; one instance was measured".to_owned(),
    }
}

fn origin(view: &ResultView, recommendation: &Recommendation) -> Vec<String> {
    let mut lines = vec![format!(
        "Written by loadline {} from result {}.",
        view.machine.loadline, view.id
    )];
    lines.extend(AnswerClaim::new(view, recommendation).emitted_lines());
    if let Some(cache) = recommendation.configuration.cache {
        lines.push(format!(
            "The trials started with a start-up cache: {}, trained with {}.",
            cache.kind,
            format::count_of(cache.requests as usize, "request")
        ));
    }
    for line in &mut lines {
        *line = text::one_line(line);
    }
    lines
}

fn memory_reason(view: &ResultView, recommendation: &Recommendation) -> String {
    if let Some(offer) = as_sold(recommendation) {
        let proof = recommendation.proof.proof_sentence();
        return format!("a size that {offer} sells; {proof}");
    }
    let filled = match budget::describe_budget(recommendation) {
        Some(budget) => budget.trim_end_matches('.').to_owned(),
        None => format!(
            "{} kept the SLO in every confirmation",
            recommendation.confirmed
        ),
    };
    let trials = trial_numbers(view, &recommendation.evidence);
    let mut because = format!("{filled}; {trials}");
    if let Some(next) = &recommendation.next_smaller {
        because.push_str(&format!("; {}", next.smaller_sentence()));
    }
    text::one_line(&because)
}

/// What is above the CPU that trials used on average, where nothing was measured at less.
const ABOVE_USE: f64 = 1.25;

/// The request if it is not the limit: measured, or derived from the use.
fn cpu_request(
    recommendation: &Recommendation,
    trials: &[&TrialRecord],
) -> Option<BackedValue<Cpus>> {
    let configuration = &recommendation.configuration;
    if let Some(value) = configuration.cpu_request {
        let proof = recommendation.proof.proof_sentence();
        let because = format!("a neighbour took all other CPU in every trial; {proof}");
        return Some(BackedValue { value, because });
    }
    if configuration.cpu.is_some() {
        return None;
    }
    let used = |trial: &&TrialRecord| Sli::from_record(trial).ok()?.cpus_used;
    let used = trials.iter().filter_map(used).max_by(f64::total_cmp)?;
    let millis = (used * ABOVE_USE * 100.0).ceil() * 10.0;
    Some(BackedValue {
        value: Cpus::from_millis(millis as u32),
        because: format!(
            "{ABOVE_USE} times the {used:.2} CPUs that a trial used on average; no trial had less to itself, so this is no measured floor: size with --cpu-policy request",
        ),
    })
}

fn cpu_reason(recommendation: &Recommendation) -> String {
    let why = match as_sold(recommendation) {
        Some(offer) => format!("a size that {offer} sells"),
        None => "the CPU limit of every trial behind this size".to_owned(),
    };
    format!("{why}; {}", recommendation.proof.proof_sentence())
}

/// The offer, if the size comes from it: no search looked for less memory.
fn as_sold(recommendation: &Recommendation) -> Option<String> {
    let deployment = recommendation.deployment.as_ref()?;
    let is_sold = deployment.found.is_none();
    is_sold.then(|| text::label(&deployment.offer.name))
}

fn logged_facts(trials: &[&TrialRecord]) -> LoggedFacts {
    let logs = || trials.iter().filter_map(|t| t.evidence.gc.as_ref());
    let heap = spread(logs().filter_map(|gc| gc.heap_after_max));
    LoggedFacts {
        jdk: logs().find_map(|gc| gc.jdk.clone()),
        collector: logs().map(|gc| gc.collector.clone()).next(),
        live_heap: heap.map(|heap| {
            let trials = format::count_of(heap.n, "trial");
            BackedValue {
                value: heap.high,
                because: format!("largest heap in use after a collection, of {trials}"),
            }
        }),
    }
}

fn slowest_start(trials: &[&TrialRecord]) -> BackedValue<Duration> {
    let slowest = spread(trials.iter().filter_map(|t| t.evidence.start.ready));
    let Some(seen) = slowest else {
        let seconds = UNKNOWN_START.as_secs();
        return BackedValue {
            value: UNKNOWN_START,
            because: format!("{seconds} s, as no start was measured at this size"),
        };
    };
    let starts = format::count_of(seen.n, "measured start");
    let slowest = format::measured_time(seen.high);
    BackedValue {
        value: seen.high,
        because: format!("the slowest of {starts} ({slowest})"),
    }
}

fn probes(start: &BackedValue<Duration>) -> BackedValue<ProbeSettings> {
    BackedValue {
        value: startup::suggest_probes(start.value.as_secs_f64()),
        because: format!("{} x {}", startup::START_MARGIN, start.because),
    }
}

fn grace(trials: &[&TrialRecord]) -> BackedValue<Duration> {
    let stop = |t: &&TrialRecord| {
        let mut phases = t.evidence.phases.iter();
        phases
            .find(|p| p.phase == TrialPhase::Stop)
            .map(PhaseSpan::length)
    };
    match spread(trials.iter().filter_map(stop)) {
        Some(seen) => BackedValue {
            value: whole_seconds(seen.high * STOP_FACTOR).max(SHORTEST_GRACE),
            because: format!(
                "{STOP_FACTOR} x the slowest of {} ({}), at least {} s",
                format::count_of(seen.n, "measured stop"),
                format::measured_time(seen.high),
                SHORTEST_GRACE.as_secs()
            ),
        },
        None => BackedValue {
            value: SHORTEST_GRACE,
            because: "no stop was measured; the default of Kubernetes".to_owned(),
        },
    }
}

fn whole_seconds(value: Duration) -> Duration {
    Duration::from_secs((value.as_secs_f64().ceil() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_dns_labels() {
        for (name, label) in [
            ("spring-web", "spring-web"),
            ("Owners Service (v2)", "owners-service-v2"),
            ("../../etc", "etc"),
            ("2048", "app-2048"),
            ("", "app"),
            ("ü", "app"),
        ] {
            assert_eq!(slug(name), label);
        }
        assert!(slug(&"a-".repeat(99)).len() <= 40);
    }
}
