//! The explanation as JSON: a stable form with units in the names, and its schema.

use loadline_analysis::advice::TrialAdvice;
use loadline_analysis::attribution::{Attribution, PauseClass};
use loadline_analysis::effect::{ChangeEffect, EffectSide};
use loadline_analysis::timeline::TimelineStep;
use loadline_runner::logs;
use schemars::JsonSchema;
use serde::Serialize;

use super::TrialExplanation;

/// Why a trial paused.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainDocument {
    /// Version of this form.
    schema: u32,
    /// Id of the trial.
    trial: String,
    /// Name of its configuration.
    configuration: String,
    /// The sentence that sums it up.
    sentence: String,
    /// Who saw the pauses; null where they follow from the GC log and the cgroup alone.
    seen_by: Option<String>,
    /// Length of the explained time.
    window_seconds: f64,
    /// Pauses over 50 ms.
    pauses: usize,
    /// Of them, at least 90 % explained.
    explained: u64,
    /// Of them, at least in part in a gap of the sampler.
    in_gaps: u64,
    /// All together.
    total_seconds: f64,
    /// The time of all pauses by class.
    classes: ClassSeconds,
    /// The longest ones, longest first, at most ten.
    longest: Vec<PauseForm>,
    /// How the cgroup was watched.
    sampler: Option<SamplerForm>,
    /// What would help, the most effective first.
    advice: Vec<AdviceForm>,
    /// The result of trying one; null without --try.
    tried: Option<TryForm>,
}

/// Seconds of each class.
#[derive(Debug, Serialize, JsonSchema)]
struct ClassSeconds {
    /// Collection, running.
    gc_seconds: f64,
    /// Collection, standing throttled.
    gc_throttled_seconds: f64,
    /// The application's own threads, standing throttled.
    mutator_throttled_seconds: f64,
    /// A thread waited for memory to be freed.
    allocation_stall_seconds: f64,
    /// Waiting for all threads to stop.
    safepoint_sync_seconds: f64,
    /// Others had the CPUs.
    cpu_contention_seconds: f64,
    /// None of these.
    other_seconds: f64,
}

/// One pause.
#[derive(Debug, Serialize, JsonSchema)]
struct PauseForm {
    /// Begin and end, CLOCK_MONOTONIC.
    start_ns: u64,
    /// Its end.
    end_ns: u64,
    /// The class with the largest part.
    dominant: &'static str,
    /// Share with a known class, 0 to 1.
    covered: f64,
    /// How far the seconds below may be off.
    error_seconds: f64,
    /// Its parts.
    classes: ClassSeconds,
    /// Lines of the GC log in it.
    log: Vec<String>,
    /// What the cgroup used, from a quarter of the pause before it to a quarter after; empty where
    /// the samples were not kept.
    cpu: Vec<UsageStep>,
}

/// What the cgroup used between two samples, or several.
#[derive(Debug, Serialize, JsonSchema)]
struct UsageStep {
    /// Begin and end, CLOCK_MONOTONIC.
    from_ns: u64,
    /// Its end.
    to_ns: u64,
    /// CPUs, on average.
    cpus: f64,
    /// Growth of throttled time, summed over CPUs.
    throttled_seconds: f64,
}

/// How the cgroup was watched.
#[derive(Debug, Serialize, JsonSchema)]
struct SamplerForm {
    /// How throttled time was placed: flatline-per-cpu, flatline, phase-locked or none.
    estimator: String,
    /// Distance of samples.
    interval_seconds: f64,
    /// Samples taken.
    samples: u64,
    /// CPU time it took as a share of one CPU.
    cpu_share: Option<f64>,
    /// Times at which samples that were due are missing.
    gaps: u64,
    /// The longest gap.
    longest_gap_seconds: f64,
}

/// One advice.
#[derive(Debug, Serialize, JsonSchema)]
struct AdviceForm {
    /// quota, cpuset, period, gc-threads, burst, collector or heap.
    kind: &'static str,
    /// What to change.
    text: String,
    /// What the model expects.
    expected: String,
    /// Share of the time of all pauses that should go away; null where no model says.
    removes: Option<f64>,
    /// Whether --try can try it.
    can_be_tried: bool,
}

/// The outcome of --try.
#[derive(Debug, Serialize, JsonSchema)]
struct TryForm {
    /// ErrorKind of the advice.
    kind: &'static str,
    /// As it was.
    before: TriedSide,
    /// Changed.
    after: TriedSide,
    /// Pauses after / before: estimate, low and high end with 95 % confidence; null when there
    /// were none before.
    ratio: Option<[f64; 3]>,
}

/// One side of a try.
#[derive(Debug, Serialize, JsonSchema)]
struct TriedSide {
    /// Trials that could be counted.
    trials: usize,
    /// Pauses over 50 ms in total.
    pauses: usize,
    /// The same for a minute.
    pauses_per_minute: f64,
    /// The longest.
    longest_seconds: f64,
    /// Operations a second where the application counts them.
    operations_per_second: Option<f64>,
}

pub(super) fn explain_document(
    told: &TrialExplanation,
    tried: Option<(&TrialAdvice, &ChangeEffect)>,
) -> ExplainDocument {
    let (record, explanation) = (&told.record, &told.explanation);
    let sampler = record.evidence.pauses.as_ref().map(|p| &p.sampler);
    let longest = explanation.longest();
    let longest = longest.iter().enumerate();
    ExplainDocument {
        schema: 1,
        trial: record.id.clone(),
        configuration: record.configuration.label.clone(),
        sentence: explanation.pause_sentence(),
        seen_by: explanation.seen_by.clone(),
        window_seconds: to_seconds(explanation.window.length_ns()),
        pauses: explanation.pauses.len(),
        explained: explanation.explained,
        in_gaps: explanation.in_gaps,
        total_seconds: to_seconds(explanation.total_ns()),
        classes: class_seconds(|class| explanation.of_class(class)),
        longest: longest
            .map(|(number, p)| pause_form(told, number, p))
            .collect(),
        sampler: sampler.map(|s| SamplerForm {
            estimator: s.estimator.clone(),
            interval_seconds: s.interval.as_secs_f64(),
            samples: s.samples,
            cpu_share: s.cpu_share(),
            gaps: s.gaps,
            longest_gap_seconds: s.longest_gap.as_secs_f64(),
        }),
        advice: told.advice.iter().map(advice_form).collect(),
        tried: tried.map(|(advice, effect)| TryForm {
            kind: advice.kind.kind_name(),
            before: side_form(&effect.before),
            after: side_form(&effect.after),
            ratio: effect.ratio.map(|r| [r.estimate, r.low, r.high]),
        }),
    }
}

fn to_seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn class_seconds(of: impl Fn(PauseClass) -> u64) -> ClassSeconds {
    let seconds = |class| to_seconds(of(class));
    ClassSeconds {
        gc_seconds: seconds(PauseClass::Gc),
        gc_throttled_seconds: seconds(PauseClass::GcThrottled),
        mutator_throttled_seconds: seconds(PauseClass::MutatorThrottled),
        allocation_stall_seconds: seconds(PauseClass::AllocationStall),
        safepoint_sync_seconds: seconds(PauseClass::SafepointSync),
        cpu_contention_seconds: seconds(PauseClass::CpuContention),
        other_seconds: seconds(PauseClass::Other),
    }
}

fn pause_form(told: &TrialExplanation, number: usize, pause: &Attribution) -> PauseForm {
    let steps = told.timelines.get(number).map_or(&[][..], Vec::as_slice);
    let log = told.log.as_deref().unwrap_or_default();
    let lines = logs::lines_within(log, pause.pause, told.recorded_pauses());
    PauseForm {
        start_ns: pause.pause.start,
        end_ns: pause.pause.end,
        dominant: pause.dominant().class_name(),
        covered: pause.covered_share(),
        error_seconds: to_seconds(pause.error_ns),
        classes: class_seconds(|class| pause.class_ns(class)),
        log: lines.into_iter().map(str::to_owned).collect(),
        cpu: steps.iter().map(usage_step).collect(),
    }
}

fn usage_step(step: &TimelineStep) -> UsageStep {
    UsageStep {
        from_ns: step.from_ns,
        to_ns: step.to_ns,
        cpus: step.cpus,
        throttled_seconds: step.throttled.as_secs_f64(),
    }
}

fn advice_form(advice: &TrialAdvice) -> AdviceForm {
    AdviceForm {
        kind: advice.kind.kind_name(),
        text: advice.text.clone(),
        expected: advice.expected.clone(),
        removes: advice.removes,
        can_be_tried: advice.configuration.is_some(),
    }
}

fn side_form(side: &EffectSide) -> TriedSide {
    TriedSide {
        trials: side.trials,
        pauses: side.pauses,
        pauses_per_minute: side.pauses_per_minute,
        longest_seconds: to_seconds(side.longest_ns),
        operations_per_second: side.rate,
    }
}
