//! Judges a trial's configuration: evidence in, verdict and one sentence out.
//!
//! Owns the order of the questions: first failures of the measurement, then deaths of the
//! application (kills and exits count even on a noisy machine), then whether the trial counts at
//! all, then failures found by waiting, then the SLO. A failure does not count if a dependency was
//! at its limit. Pure: a stored record gets the same verdict on every machine. The reason carries
//! the numbers, so that no further look-up is needed.

mod disturbed;
mod loads;
mod metric;
mod run;
mod words;

use std::time::Duration;

use crate::latency::{Latency, LatencyError};
use crate::noise::{self, NoiseThresholds};
use crate::record::{
    AppKo, Configuration, Evidence, InvalidReason, ObjectiveResult, TrialPurpose, TrialRecord,
    TrialVerdict, VerdictReason,
};
use crate::sli::{self, MeasuredLoad};
use crate::slo::{DEFAULT_ERROR_BOUND, Objective, Quantile, RequestObjective, Slo};
use crate::text;
use crate::{app_ko, dependency, outage, proxy};
pub use disturbed::{ACCEPTED, judge_for, was_disturbed};
use loads::JudgedLoads;
use words::{broken_sentence, met_sentence};

/// Requests that may be under way at the end of the load, however fast answers are.
const UNDER_WAY: f64 = 2.0;
/// Requests under way at the end, at most, as a share of the phase. A larger median comes from a
/// growing queue.
const UNDER_WAY_SHARE: f64 = 0.1;
const PORT_EXHAUSTED: &str = "port_exhausted";

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictThresholds {
    pub noise: NoiseThresholds,
    /// Least share of the offered rate that must be answered well, in [0, 1]. An SLO that allows
    /// more errors than the rest lowers it.
    pub achieved_share: f64,
    /// Largest share of the application's CPU time for the collector, in [0, 1]: more is thrash,
    /// and the next request mix tips it over. Wall time is not used, noise lengthens it.
    pub gc_cpu_share: f64,
    pub hang_after: Duration,
    /// Send lag p99 that is always allowed.
    pub send_lag: Duration,
    /// Send lag p99 allowed as a share of the tightest latency objective, in [0, 1].
    pub send_lag_share: f64,
    /// File pages read again per second that count as thrash: 1000 pages are 4 MiB/s.
    pub refaults_per_second: f64,
    /// Share of CPU time for the collector from which a miss mentions it, in [0, 1].
    pub gc_share_worth_a_word: f64,
    /// Whether a trial counts although its load generator found itself too slow.
    pub accept_saturated: bool,
    /// Share of throttled periods from which a miss mentions it, in [0, 1].
    pub throttled_share_worth_a_word: f64,
}

impl Default for VerdictThresholds {
    fn default() -> Self {
        Self {
            noise: NoiseThresholds::default(),
            achieved_share: 0.99,
            gc_cpu_share: 0.5,
            hang_after: Duration::from_secs(5),
            send_lag: Duration::from_millis(1),
            send_lag_share: 0.1,
            refaults_per_second: 1000.0,
            gc_share_worth_a_word: 0.2,
            accept_saturated: false,
            throttled_share_worth_a_word: 0.1,
        }
    }
}

impl VerdictThresholds {
    /// The same, but other programs on the machine may disturb the trial as they like: for
    /// trying things out. What they cost is then counted against the application.
    pub fn accepting_neighbours(self) -> Self {
        Self {
            noise: NoiseThresholds::accepting_neighbours(),
            accept_saturated: true,
            ..self
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub verdict: TrialVerdict,
    pub reason: VerdictReason,
    /// Each objective with its measured value; empty when nothing was measured.
    pub objectives: Vec<ObjectiveResult>,
}

/// A trial to be judged, and by what.
#[derive(Clone, Copy)]
struct TrialCase<'a> {
    configuration: &'a Configuration,
    slo: &'a Slo,
    evidence: &'a Evidence,
    thresholds: &'a VerdictThresholds,
}

impl TrialCase<'_> {
    fn why_too_noisy(&self) -> CannotCount {
        noise::why_too_noisy(&self.evidence.noise, &self.thresholds.noise)
    }
}

/// Why a trial does not count.
type CannotCount = Option<(InvalidReason, String)>;

pub fn judge_trial(
    configuration: &Configuration,
    slo: &Slo,
    evidence: &Evidence,
    thresholds: &VerdictThresholds,
) -> Judgement {
    let case = TrialCase {
        configuration,
        slo,
        evidence,
        thresholds,
    };
    let course = match outage::OutageCourse::from_evidence(evidence, slo) {
        Ok(Some(course)) => course,
        // A histogram that cannot be read is found again, and told, below.
        Ok(None) | Err(_) => return judge_calm(case),
    };
    let calm = outage::without_outage(evidence, &course);
    let evidence = calm.as_ref().unwrap_or(evidence);
    let judgement = judge_calm(TrialCase { evidence, ..case });
    let returned = outage::find_returns(case.evidence, &course);
    around_outage(judgement, (&course, &returned), slo)
}

fn around_outage(
    mut judgement: Judgement,
    (course, returned): (&outage::OutageCourse, &[outage::StateReturn]),
    slo: &Slo,
) -> Judgement {
    let (kept, broken) = outage::judge_objectives(course, slo);
    match judgement.verdict {
        TrialVerdict::Pass if !broken.is_empty() => {
            judgement.verdict = TrialVerdict::SloMiss;
            judgement.reason = broken.into_iter().collect();
        }
        TrialVerdict::Pass => judgement.reason.extend(kept),
        TrialVerdict::SloMiss => judgement.reason.extend(broken),
        TrialVerdict::AppKo(_) | TrialVerdict::Invalid(_) => return judgement,
    }
    // No objective covers these; the report shows them next to the verdict.
    let changed = returned.iter().filter(|returned| returned.changed);
    judgement.reason.extend(changed.map(ToString::to_string));
    judgement
}

fn judge_calm(case: TrialCase<'_>) -> Judgement {
    let evidence = case.evidence;
    let loads = JudgedLoads::from_evidence(evidence);
    let objectives = match (&evidence.run, &loads) {
        (Some(of), _) => run::objective_results(case, of),
        (None, Ok(loads)) if is_measured(loads.base.as_ref(), evidence) => {
            objective_results(case, loads)
        }
        _ => Vec::new(),
    };
    let (verdict, reason) = match &evidence.run {
        Some(of) => run::decide_verdict(case, &objectives, of),
        None => decide_verdict(case, &objectives, loads),
    };
    let (verdict, reason) = beside_dependencies(verdict, reason, evidence);
    Judgement {
        verdict,
        reason,
        objectives,
    }
}

/// The same verdict, unless a dependency that was at its limit explains what speaks against the
/// application. A PASS stands: a slow dependency never makes an application look better.
fn beside_dependencies(
    verdict: TrialVerdict,
    mut reason: VerdictReason,
    evidence: &Evidence,
) -> (TrialVerdict, VerdictReason) {
    let limits = dependency::find_bottlenecks(evidence);
    match verdict {
        TrialVerdict::Invalid(_) | TrialVerdict::AppKo(AppKo::BadFlags) => (verdict, reason),
        _ if limits.is_empty() => (verdict, reason),
        TrialVerdict::Pass => {
            reason.extend(limits);
            (verdict, reason)
        }
        TrialVerdict::SloMiss | TrialVerdict::AppKo(_) => {
            let mut all: VerdictReason = limits.into_iter().collect();
            all.push(&format!(
                "so it is not known whose fault it was that {reason}"
            ));
            (TrialVerdict::Invalid(InvalidReason::Dependency), all)
        }
    }
}

fn decide_verdict(
    case: TrialCase<'_>,
    objectives: &[ObjectiveResult],
    loads: Result<JudgedLoads, LatencyError>,
) -> (TrialVerdict, VerdictReason) {
    let evidence = case.evidence;
    let invalid = |cause, reason: String| (TrialVerdict::Invalid(cause), reason.into());
    if let Some(failure) = &evidence.failure {
        return invalid(failure.cause, failure.detail.clone());
    }
    let hang_after = case.thresholds.hang_after;
    let ko = app_ko::classify_failure(case.configuration, evidence, hang_after);
    if let Some(ko) = ko.as_ref().filter(|ko| !ko.timed) {
        return (TrialVerdict::AppKo(ko.cause), ko.reason.clone());
    }
    let loads = match loads {
        Ok(loads) => loads,
        Err(error) => return invalid(InvalidReason::ToolError, error.to_string()),
    };
    if let Some((cause, reason)) = cannot_count(case, &loads) {
        return invalid(cause, reason);
    }
    let behind = causes_behind(evidence, case.thresholds);
    if let Some(mut ko) = ko {
        ko.reason.extend(behind);
        return (TrialVerdict::AppKo(ko.cause), ko.reason);
    }
    if let Some((cause, reason)) = why_unjudged(case, loads.base.as_ref()) {
        return invalid(cause, reason);
    }
    let early = evidence.ended_early.as_ref();
    let early = early.map(|early| format!("it was ended early: {}", early.reason));
    match misses(case, objectives, &loads) {
        misses if misses.is_empty() && early.is_none() => {
            let passed = pass_reason(objectives, loads.base.as_ref());
            let sentences = [passed].into_iter().chain(loads.peak_sentence());
            (TrialVerdict::Pass, sentences.collect())
        }
        misses => {
            // Of a trial that was cut the sums are those of the cut: what it had broken by then
            // says all.
            let said = early.map_or(misses, |early| vec![early]).into_iter();
            (TrialVerdict::SloMiss, said.chain(behind).collect())
        }
    }
}

fn cannot_count(case: TrialCase<'_>, loads: &JudgedLoads) -> CannotCount {
    let mut loads = loads.base.iter().chain(&loads.peak);
    loads
        .find_map(|load| generator_limit(case, load))
        .or_else(|| drive_limit(case))
        .or_else(|| proxy_limit(case))
        .or_else(|| case.why_too_noisy())
        .or_else(|| noisy_start(case))
}

/// What else the machine did while the application started, where that may be why the start took
/// longer than the SLO allows: others make a start later, never sooner.
fn noisy_start(case: TrialCase<'_>) -> CannotCount {
    let ready = case.evidence.start.ready?;
    let is_late =
        |objective: &Objective| matches!(objective, Objective::Start { bound } if ready > *bound);
    case.slo.objectives.iter().any(is_late).then_some(())?;
    let noise = case.evidence.start_noise.as_ref()?;
    let (cause, reason) = noise::why_too_noisy(noise, &case.thresholds.noise)?;
    Some((cause, format!("while it started, {reason}")))
}

fn generator_limit(case: TrialCase<'_>, measured: &MeasuredLoad) -> CannotCount {
    let exhausted = measured.errors.get(PORT_EXHAUSTED);
    if let Some(count) = exhausted.filter(|count| **count > 0) {
        let count = text::short_count(*count);
        let reason = format!(
            "the generator ran out of ports or descriptors: {PORT_EXHAUSTED} {count} times"
        );
        return Some((InvalidReason::PortExhausted, reason));
    }
    let saturated = measured.saturated.as_ref();
    if let Some(why) = saturated.filter(|_| !case.thresholds.accept_saturated) {
        let reason = format!("the load generator was the bottleneck: {why}");
        return Some((InvalidReason::GeneratorSaturated, reason));
    }
    let allowed = allowed_lag(case)?;
    let lag = measured.send_lag_p99.filter(|lag| *lag > allowed)?;
    measured.offered_rate.is_some().then(|| {
        let lag = text::duration_beside(lag, allowed);
        let allowed = text::exact_duration(allowed);
        let reason = format!(
            "the load generator was late: send lag p99 {lag}, at most {allowed} for this SLO"
        );
        (InvalidReason::GeneratorSaturated, reason)
    })
}

fn drive_limit(case: TrialCase<'_>) -> CannotCount {
    let why = case.evidence.drive.as_ref()?.saturated.as_ref();
    let why = why.filter(|_| !case.thresholds.accept_saturated)?;
    Some((InvalidReason::GeneratorSaturated, why.clone()))
}

/// How late the generator, or the proxy, may be; `None` where no objective is about latency.
fn allowed_lag(case: TrialCase<'_>) -> Option<Duration> {
    let share = case.thresholds.send_lag_share;
    let share = case.slo.tightest_latency()?.mul_f64(share);
    Some(case.thresholds.send_lag.max(share))
}

fn proxy_limit(case: TrialCase<'_>) -> CannotCount {
    let proxy = case.evidence.proxy.as_ref();
    let proxy = proxy.filter(|_| !case.thresholds.accept_saturated)?;
    let allowed = allowed_lag(case).unwrap_or(Duration::MAX);
    let reason = proxy::proxy_bottleneck(proxy, allowed)?;
    Some((InvalidReason::ProxySaturated, reason))
}

fn objective_results(case: TrialCase<'_>, loads: &JudgedLoads) -> Vec<ObjectiveResult> {
    let TrialCase { slo, evidence, .. } = case;
    let seconds = |value: Option<Duration>| value.map(|v| v.as_secs_f64());
    let measured = loads.base.as_ref();
    let in_load = |objective: Objective, load: Option<&MeasuredLoad>| {
        let value = match objective {
            Objective::Errors { .. } => load.and_then(MeasuredLoad::error_share),
            Objective::Start { .. } => seconds(evidence.start.ready),
            Objective::Jvm(jvm) => sli::jvm_share(jvm, evidence),
            Objective::LoadPasses { .. } => evidence.load_exit.map(f64::from),
            _ => load.and_then(|load| seconds(judged_latency(objective, &load.latency))),
        };
        objective_result(None, objective, value)
    };
    let of_all = |objective: &Objective| in_load(*objective, measured);
    let of_peak = |objective: &Objective| ObjectiveResult {
        is_peak: true,
        ..in_load(*objective, loads.peak.as_ref())
    };
    let of_one = |named: &RequestObjective| {
        let name = &named.request;
        let request = measured.and_then(|measured| measured.request_named(name));
        let value = match (named.objective, request) {
            (Objective::Metric(metric), _) => metric::measured_value(name, metric, slo, evidence),
            (Objective::Errors { .. }, Some(request)) => request.error_share(),
            (of, Some(request)) => seconds(judged_latency(of, &request.latency)),
            (_, None) => None,
        };
        objective_result(Some(name.clone()), named.objective, value)
    };
    let all = slo.objectives.iter().map(of_all);
    let all = all.chain(slo.by_request.iter().map(of_one));
    // Neither a soak nor the load behind a squeeze has one.
    let peaks = slo.peak.iter().filter(|_| loads.peak.is_some());
    all.chain(peaks.map(of_peak)).collect()
}

/// Whether a load misses an objective about all its requests, whatever its trial shows later.
pub fn load_misses(slo: &Slo, load: &MeasuredLoad) -> bool {
    let is_missed = |objective: &Objective| match objective {
        Objective::Errors { .. } => !objective.is_met(load.error_share()),
        Objective::Latency { .. } | Objective::MaxLatency { .. } => {
            let latency = judged_latency(*objective, &load.latency);
            !objective.is_met(latency.map(|latency| latency.as_secs_f64()))
        }
        _ => false,
    };
    slo.objectives.iter().any(is_missed)
}

/// What a latency objective is held against; `None` for the others, and for a latency that lies in
/// requests that failed.
pub(crate) fn judged_latency(objective: Objective, latency: &Latency) -> Option<Duration> {
    match objective {
        Objective::Latency { quantile, .. } => latency.quantile(quantile),
        Objective::MaxLatency { .. } => latency.max(),
        _ => None,
    }
}

fn objective_result(
    request: Option<String>,
    objective: Objective,
    measured: Option<f64>,
) -> ObjectiveResult {
    ObjectiveResult {
        request,
        is_peak: false,
        objective,
        measured,
        met: objective.is_met(measured),
    }
}

fn misses(case: TrialCase<'_>, objectives: &[ObjectiveResult], loads: &JudgedLoads) -> Vec<String> {
    let (evidence, thresholds) = (case.evidence, case.thresholds);
    let measured = loads.base.as_ref();
    let broken = objectives.iter().filter(|objective| !objective.met);
    let sentence = |miss| broken_sentence(miss, loads.load_of(miss), evidence);
    let mut sentences: Vec<String> = broken.map(sentence).collect();
    sentences.extend(metric::growth_sentences(case.slo, evidence));
    let allowed = error_bound(case.slo).max(1.0 - thresholds.achieved_share);
    let asked = measured.and_then(|measured| Some((measured, measured.asked_rate()?)));
    if let Some((measured, asked)) = asked.filter(|(measured, asked)| {
        measured.achieved_rate + under_way(measured, *asked) < asked * (1.0 - allowed)
    }) {
        sentences.push(format!(
            "it answered {} of the {} offered ({})",
            text::short_rate(measured.achieved_rate),
            text::short_rate(asked),
            text::short_percent(measured.achieved_rate / asked),
        ));
    }
    if sli::gc_cpu_share(evidence).is_some_and(|share| share > thresholds.gc_cpu_share) {
        let sound = text::short_percent(thresholds.gc_cpu_share);
        sentences.push(format!("thrash: GC needed more than {sound} of the CPU"));
    }
    sentences
}

/// Requests a second that an application which keeps up answers only after the load has ended:
/// rate times latency are under way at any time (Little 1961).
fn under_way(measured: &MeasuredLoad, asked: f64) -> f64 {
    let seconds = measured.duration.as_secs_f64().max(f64::MIN_POSITIVE);
    let median = Quantile::from_fraction(0.5)
        .and_then(|half| measured.latency.quantile_of_successes(half))
        .unwrap_or_default();
    let share = (median.as_secs_f64() / seconds).min(UNDER_WAY_SHARE);
    asked * share + UNDER_WAY / seconds
}

fn error_bound(slo: &Slo) -> f64 {
    let bound = |objective: &Objective| match objective {
        Objective::Errors { bound } => Some(*bound),
        _ => None,
    };
    let bounds = slo.objectives.iter().filter_map(bound);
    bounds.reduce(f64::min).unwrap_or(DEFAULT_ERROR_BOUND)
}

fn pass_reason(objectives: &[ObjectiveResult], measured: Option<&MeasuredLoad>) -> String {
    let mut parts: Vec<String> = objectives.iter().map(met_sentence).collect();
    let Some(measured) = measured else {
        return parts.join(", ");
    };
    let rate = text::short_rate(measured.achieved_rate);
    parts.push(match measured.offered_rate {
        Some(offered) => format!("{rate} of {} offered", text::short_rate(offered)),
        None if measured.is_observed => rate,
        None => format!("{rate} closed loop"),
    });
    parts.join(", ")
}

pub fn is_thrash(evidence: &Evidence, thresholds: &VerdictThresholds) -> bool {
    let refaults = evidence.cgroup.file_refaults.unwrap_or(0);
    refaults as f64 > thresholds.refaults_per_second * trial_seconds(evidence)
}

/// Whether counters show that a start missed its SLO for lack of memory. More memory does not cure a miss
/// without page re-reads and with a quiet collector.
pub fn lacked_memory(trial: &TrialRecord) -> bool {
    match trial.verdict {
        TrialVerdict::Pass | TrialVerdict::Invalid(_) => false,
        TrialVerdict::AppKo(_) => true,
        TrialVerdict::SloMiss => shows_lack_of_memory(&trial.objectives, &trial.evidence),
    }
}

/// Whether a larger size may cure a failed start. A squeezed start had room. A run that takes too long may
/// lack CPU: its counters tell.
pub fn may_need_memory(trial: &TrialRecord) -> bool {
    match trial.verdict {
        TrialVerdict::SloMiss if trial.purpose == TrialPurpose::Squeeze => false,
        TrialVerdict::SloMiss => trial.evidence.run.is_none() || lacked_memory(trial),
        TrialVerdict::AppKo(how) => matches!(how, AppKo::CgroupOom | AppKo::JavaOom),
        TrialVerdict::Pass | TrialVerdict::Invalid(_) => false,
    }
}

/// Why not even the largest size works, with the last lines of an application that failed.
pub fn why_infeasible(trial: &TrialRecord) -> String {
    let has_room = matches!(trial.purpose, TrialPurpose::Room | TrialPurpose::Squeeze);
    let cure = (has_room && !may_need_memory(trial))
        .then(|| "it had room, so more memory does not cure it".to_owned());
    let said = match trial.verdict {
        TrialVerdict::AppKo(_) => app_ko::last_words(&trial.evidence.last_output),
        _ => None,
    };
    let reason = Some(trial.reason.to_string());
    let all: Vec<String> = [reason, cure, said].into_iter().flatten().collect();
    all.join("; ")
}

fn shows_lack_of_memory(objectives: &[ObjectiveResult], evidence: &Evidence) -> bool {
    let thresholds = VerdictThresholds::default();
    let gc = sli::gc_cpu_share(evidence);
    let is_jvm = |o: &ObjectiveResult| !o.met && matches!(o.objective, Objective::Jvm(_));
    is_thrash(evidence, &thresholds)
        || objectives.iter().any(is_jvm)
        || gc.is_some_and(|share| share > thresholds.gc_share_worth_a_word)
}

/// What lies behind a miss, from counters: thrash, collections, throttling.
fn causes_behind(evidence: &Evidence, thresholds: &VerdictThresholds) -> Vec<String> {
    let mut causes = Vec::new();
    if is_thrash(evidence, thresholds) {
        let refaults = text::short_count(evidence.cgroup.file_refaults.unwrap_or(0));
        causes.push(format!(
            "thrash: the kernel kept dropping its code, {refaults} pages were read again"
        ));
    }
    let gc = sli::gc_cpu_share(evidence);
    if let Some(share) = gc.filter(|share| *share > thresholds.gc_share_worth_a_word) {
        causes.push(format!("GC took {} of the CPU", text::short_percent(share)));
    }
    let cgroup = &evidence.cgroup;
    if let (Some(throttled), Some(periods)) =
        (cgroup.measure_nr_throttled, cgroup.measure_nr_periods)
        && throttled as f64 > thresholds.throttled_share_worth_a_word * periods as f64
    {
        causes.push(format!("throttled in {throttled} of {periods} periods"));
    }
    causes
}

fn trial_seconds(evidence: &Evidence) -> f64 {
    let until = evidence.judged_until();
    let seconds = evidence.seconds.iter().filter(|s| s.at_ns <= until);
    let of_phases = evidence.counted_length().as_secs_f64();
    of_phases.max(seconds.count() as f64).max(1.0)
}

/// Whether a trial left anything to judge: requests, metrics, or the exit code of its load command.
fn is_measured(measured: Option<&MeasuredLoad>, evidence: &Evidence) -> bool {
    measured.is_some() || !evidence.metrics.is_empty() || evidence.load_exit.is_some()
}

fn why_unjudged(case: TrialCase<'_>, measured: Option<&MeasuredLoad>) -> CannotCount {
    let evidence = case.evidence;
    let is_cut = evidence.ended_early.is_some();
    if case.slo.failing_exit().is_some() && evidence.load_exit.is_none() && !is_cut {
        let reason = "the load command did not end after the judged part, so its exit code is unknown; it must end after {duration_s} seconds, as its command can say";
        return Some((InvalidReason::LoadCommand, reason.to_owned()));
    }
    (!is_measured(measured, evidence)).then(|| {
        let reason = "the application was ready, but no load was measured";
        (InvalidReason::ToolError, reason.to_owned())
    })
}

#[cfg(test)]
mod tests;
