//! The verdict about a run.
//!
//! Owns the differences from a service: there are no requests, the exit is expected, and other
//! programs on the machine excuse a miss of wall time, but never a miss of CPU time. A run that
//! passed next to other programs has passed: they make it longer, never shorter. Slowdown is then
//! compared by CPU time alone.

use std::time::Duration;

use crate::app_ko;
use crate::record::{Evidence, ObjectiveResult, RunEvidence, TrialVerdict, VerdictReason};
use crate::slo::{Objective, RunObjective};
use crate::{sli, text};

use super::words::{bound_text, met_sentence, objective_name};
use super::{TrialCase, causes_behind, is_thrash, objective_result};

pub(super) fn objective_results(case: TrialCase<'_>, run: &RunEvidence) -> Vec<ObjectiveResult> {
    let TrialCase { slo, evidence, .. } = case;
    let is_noisy = case.why_too_noisy().is_some();
    let measured = |objective| measured_value(objective, run, evidence, is_noisy);
    let of_run = slo.run_objectives();
    let of_run = of_run.map(|of| objective_result(None, Objective::Run(of), measured(of)));
    let of_jvm = slo.jvm_objectives();
    let of_jvm =
        of_jvm.map(|of| objective_result(None, Objective::Jvm(of), sli::jvm_share(of, evidence)));
    of_run.chain(of_jvm).collect()
}

/// `None` if the run did not end as expected, unless it used too much CPU time before.
fn measured_value(
    objective: RunObjective,
    run: &RunEvidence,
    evidence: &Evidence,
    is_noisy: bool,
) -> Option<f64> {
    let start = &evidence.start;
    let Some(time) = start.ready else {
        return cpu_exceeded(objective, run, start.cpu?);
    };
    match objective {
        RunObjective::Time { .. } => Some(time.as_secs_f64()),
        RunObjective::Cpu { .. } => start.cpu.map(|cpu| cpu.as_secs_f64()),
        // The run at the largest memory is compared with itself.
        RunObjective::Slower { .. } => Some(run.reference.map_or(0.0, |reference| {
            let cpu = start.cpu.zip(reference.cpu);
            let cpu = cpu.map(|(cpu, than)| longer(cpu, than));
            let wall = Some(longer(time, reference.time)).filter(|_| !is_noisy || cpu.is_none());
            wall.into_iter().chain(cpu).fold(0.0, f64::max)
        })),
        RunObjective::Exit { .. } => evidence.exit.code.map(f64::from),
    }
}

fn longer(time: Duration, than: Duration) -> f64 {
    time.as_secs_f64() / than.as_secs_f64().max(f64::MIN_POSITIVE) - 1.0
}

/// What the objective measures so far, if it is beyond its bound already.
fn cpu_exceeded(objective: RunObjective, run: &RunEvidence, cpu: Duration) -> Option<f64> {
    match objective {
        RunObjective::Cpu { bound } => Some(cpu.as_secs_f64()).filter(|_| cpu >= bound),
        RunObjective::Slower { bound } => {
            let than = run.reference.and_then(|reference| reference.cpu)?;
            Some(longer(cpu, than)).filter(|more| *more >= bound)
        }
        RunObjective::Time { .. } | RunObjective::Exit { .. } => None,
    }
}

pub(super) fn decide_verdict(
    case: TrialCase<'_>,
    objectives: &[ObjectiveResult],
    run: &RunEvidence,
) -> (TrialVerdict, VerdictReason) {
    let (evidence, thresholds) = (case.evidence, case.thresholds);
    if let Some(failure) = &evidence.failure {
        let reason = failure.detail.clone().into();
        return (TrialVerdict::Invalid(failure.cause), reason);
    }
    let behind = causes_behind(evidence, thresholds);
    // The hang of a service has no meaning here: that threshold is never reached.
    if let Some(mut ko) =
        app_ko::classify_failure(case.configuration, evidence, thresholds.hang_after)
    {
        if let Some((cause, noise)) = case.why_too_noisy().filter(|_| ko.timed) {
            let reason = format!("{noise}, so it does not count that {}", ko.reason);
            return (TrialVerdict::Invalid(cause), reason.into());
        }
        ko.reason.extend(behind);
        return (TrialVerdict::AppKo(ko.cause), ko.reason);
    }
    let misses: Vec<&ObjectiveResult> = objectives.iter().filter(|o| !o.met).collect();
    if misses.is_empty() && evidence.ended_early.is_none() {
        return (TrialVerdict::Pass, pass_reason(objectives, run, evidence));
    }
    // CPU-time objectives count even with other programs running.
    let is_excused = |miss: &&ObjectiveResult| is_wall_time(miss) || miss.measured.is_none();
    // Re-reads come from the memory limit, whatever else runs.
    let excused = misses.iter().all(is_excused) && !is_thrash(evidence, thresholds);
    if let Some((cause, noise)) = case.why_too_noisy().filter(|_| excused) {
        return (TrialVerdict::Invalid(cause), noise.into());
    }
    let is_endless =
        misses.iter().all(|miss| miss.measured.is_none()) && !objectives.iter().any(is_wall_time);
    let longer =
        "a longer run needs a longer --start-deadline, and a service is measured without --job";
    let said: Vec<String> = match &evidence.ended_early {
        Some(early) if is_endless => vec![early.reason.clone(), longer.to_owned()],
        Some(early) => vec![early.reason.clone()],
        None => misses.into_iter().map(broken_sentence).collect(),
    };
    let said = said.into_iter().chain(behind);
    (TrialVerdict::SloMiss, said.collect())
}

fn is_wall_time(result: &ObjectiveResult) -> bool {
    matches!(result.objective, Objective::Run(RunObjective::Time { .. }))
}

fn broken_sentence(miss: &ObjectiveResult) -> String {
    let name = objective_name(miss);
    match miss.measured {
        Some(value) => {
            let was = miss.objective.show_measured(value);
            let bound = bound_text(miss.objective);
            format!("{name} was {was}, the SLO allows {bound}")
        }
        None => format!("{name} could not be measured"),
    }
}

fn pass_reason(
    objectives: &[ObjectiveResult],
    run: &RunEvidence,
    evidence: &Evidence,
) -> VerdictReason {
    let time = text::short_duration(evidence.start.ready.unwrap_or_default());
    let exit = run.expected_exit;
    let mut reason = VerdictReason::from(format!("it ended with exit code {exit} after {time}"));
    let is_exit =
        |o: &&ObjectiveResult| matches!(o.objective, Objective::Run(RunObjective::Exit { .. }));
    reason.extend(objectives.iter().filter(|o| !is_exit(o)).map(met_sentence));
    if let Some(line) = &run.out_of_memory {
        reason.push(&format!("although its output says `{line}`"));
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::{
        AppKo, EarlyEnd, ExitEvidence, NoiseEvidence, RunReference, StartEvidence, TrialPhase,
    };
    use crate::slo::Slo;
    use crate::verdict::{VerdictThresholds, judge_trial};

    const QUIET: f64 = 0.0;
    const BUSY: f64 = 0.2;

    /// A run that ended with this code after this many seconds and had the CPU for half of the
    /// time.
    fn run(code: i32, seconds: f64, foreign: f64) -> Evidence {
        let time = Duration::from_secs_f64(seconds);
        Evidence {
            start: StartEvidence {
                ready: (code == 0).then_some(time),
                cpu: Some(time / 2),
                deadline: Duration::from_secs(600),
                ..StartEvidence::default()
            },
            exit: ExitEvidence {
                before_stop: true,
                code: Some(code),
                ..ExitEvidence::default()
            },
            run: Some(RunEvidence {
                reference: Some(RunReference {
                    time: Duration::from_secs(10),
                    cpu: Some(Duration::from_secs(5)),
                }),
                ..RunEvidence::default()
            }),
            noise: NoiseEvidence {
                foreign_cpu: Some(foreign),
                ..NoiseEvidence::default()
            },
            ..Evidence::default()
        }
    }

    /// A run that was ended before its end.
    fn cut(reason: &str, foreign: f64) -> Evidence {
        let mut cut = run(0, 10.0, foreign);
        cut.start.ready = None;
        cut.exit = ExitEvidence::default();
        cut.ended_early = Some(EarlyEnd {
            phase: TrialPhase::Start,
            reason: reason.to_owned(),
        });
        cut
    }

    fn judged(slo: &str, evidence: &Evidence) -> (TrialVerdict, String) {
        let slo: Slo = slo.parse().expect("an SLO");
        let judgement = judge_trial(
            &fixture::configuration(256),
            &slo,
            evidence,
            &VerdictThresholds::default(),
        );
        (judgement.verdict, judgement.reason.to_string())
    }

    #[test]
    fn other_programs_excuse_wall_time_and_nothing_else() {
        let verdict = |slo, evidence: &Evidence| judged(slo, evidence).0;
        assert_eq!(verdict("time<20s", &run(0, 10.0, BUSY)), TrialVerdict::Pass);
        assert_eq!(
            verdict("time<5s", &run(0, 10.0, QUIET)),
            TrialVerdict::SloMiss
        );
        assert!(matches!(
            verdict("time<5s", &run(0, 10.0, BUSY)),
            TrialVerdict::Invalid(_)
        ));
        assert_eq!(
            verdict("cpu<2s", &run(0, 10.0, BUSY)),
            TrialVerdict::SloMiss
        );
    }

    #[test]
    fn how_much_slower_it_is_beside_other_programs_is_told_by_its_cpu_time() {
        let mut slow = run(0, 20.0, BUSY);
        slow.start.cpu = Some(Duration::from_millis(5_200));
        let (verdict, reason) = judged("slower<10%", &slow);
        assert_eq!(verdict, TrialVerdict::Pass, "{reason}");
        assert!(reason.contains("4.00 % < 10 %"), "{reason}");
        slow.noise.foreign_cpu = Some(QUIET);
        assert_eq!(judged("slower<10%", &slow).0, TrialVerdict::SloMiss);
    }

    #[test]
    fn want_of_memory_is_certain_and_another_exit_may_be_the_machines() {
        let failed = run(1, 4.0, BUSY);
        assert!(matches!(
            judged("exit=0", &failed).0,
            TrialVerdict::Invalid(_)
        ));
        let failed = run(1, 4.0, QUIET);
        assert_eq!(
            judged("exit=0", &failed).0,
            TrialVerdict::AppKo(AppKo::Crash)
        );
        let mut hungry = run(1, 4.0, BUSY);
        if let Some(run) = &mut hungry.run {
            run.out_of_memory = Some("java.lang.OutOfMemoryError: Java heap space".to_owned());
        }
        let (verdict, reason) = judged("exit=0", &hungry);
        assert_eq!(verdict, TrialVerdict::AppKo(AppKo::JavaOom), "{reason}");
        assert!(reason.contains("ran out of heap"), "{reason}");
    }

    #[test]
    fn too_much_cpu_time_counts_before_the_end_and_next_to_other_programs() {
        let mut cut = cut("it had used 6s of CPU time", BUSY);
        cut.start.cpu = Some(Duration::from_secs(6));
        for slo in ["cpu<6s", "slower<10%"] {
            let (verdict, reason) = judged(slo, &cut);
            assert_eq!(verdict, TrialVerdict::SloMiss, "{slo}");
            assert!(reason.starts_with("it had used 6s of CPU time"), "{reason}");
            assert!(!reason.contains("--start-deadline"), "{reason}");
        }
        assert!(matches!(
            judged("cpu<60s", &cut).0,
            TrialVerdict::Invalid(_)
        ));
        cut.noise.foreign_cpu = Some(QUIET);
        let (_, reason) = judged("cpu<60s", &cut);
        assert!(reason.contains("--start-deadline"), "{reason}");
    }

    #[test]
    fn a_run_that_hangs_without_memory_lacked_memory() {
        let mut hung = cut("it had not ended after 10m", BUSY);
        if let Some(run) = &mut hung.run {
            run.out_of_memory = Some("java.lang.OutOfMemoryError: Java heap space".to_owned());
        }
        let (verdict, reason) = judged("exit=0", &hung);
        assert_eq!(verdict, TrialVerdict::AppKo(AppKo::JavaOom), "{reason}");
        assert!(
            reason.starts_with("a JVM of the run ran out of heap, and it had not ended after 10m"),
            "{reason}"
        );
    }

    #[test]
    fn a_run_that_was_ended_at_its_bound_has_missed_it() {
        let long = cut("it had not ended after 10s", QUIET);
        let (verdict, reason) = judged("time<10s", &long);
        assert_eq!(verdict, TrialVerdict::SloMiss);
        assert!(reason.starts_with("it had not ended after 10s"), "{reason}");
    }
}
