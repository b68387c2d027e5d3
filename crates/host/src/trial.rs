//! One trial: an instance taken through its phases, and what was measured on the way.
//!
//! Owns the order of the phases and their times. Knows no cgroup and no verdict: the backend
//! does the one, `loadline-analysis` the other.

use std::time::Duration;

use loadline_analysis::record::{
    Evidence, Failure, LoadEvidence, Phase, PhaseSpan, SecondEvidence, StartEvidence,
};

use loadline_load::Model;

use crate::backend::{Backend, BackendError, Driven, Instance, InstanceSpec, LoadPhase, Observer};

/// Grace for an application that never got ready, or whose trial is interrupted.
const SHORT_GRACE: Duration = Duration::from_secs(1);

/// Everything one trial needs.
#[derive(Debug, Clone)]
pub struct TrialPlan {
    /// The instance.
    pub instance: InstanceSpec,
    /// How long the start may take.
    pub start_deadline: Duration,
    /// Load phases in order.
    pub load: Vec<LoadPhase>,
    /// Time between SIGTERM and kill.
    pub stop_grace: Duration,
}

/// What the phases give before the instance hands over its own part.
#[derive(Default)]
struct Course {
    phases: Vec<PhaseSpan>,
    load: Vec<LoadEvidence>,
    seconds: Vec<SecondEvidence>,
    failure: Option<Failure>,
    /// What ends the run and not only this trial.
    refusal: Option<BackendError>,
}

/// Runs one trial. A failing application is evidence, not an error.
///
/// # Errors
/// [`BackendError::Refused`] when this machine cannot, whichever phase finds it out;
/// [`BackendError::Interrupted`] when the observer said stop. Nothing is left running in either
/// case.
pub fn run(
    backend: &mut dyn Backend,
    plan: &TrialPlan,
    observer: &mut dyn Observer,
) -> Result<Evidence, BackendError> {
    let mut course = Course::default();
    let began = backend.now_ns();
    let mut instance = match backend.prepare(&plan.instance) {
        Ok(instance) => instance,
        Err(BackendError::Invalid { cause, detail }) => {
            return Ok(Evidence {
                failure: Some(Failure { cause, detail }),
                ..Evidence::default()
            });
        }
        Err(other) => return Err(other),
    };
    let prepared = backend.now_ns();
    course.phase(Phase::Prepare, began, prepared);
    let start = course.start(instance.as_mut(), plan, observer);
    let started = backend.now_ns();
    course.phase(Phase::Start, prepared, started);
    if course.may_go_on() && start.as_ref().is_some_and(|s| s.ready.is_some()) {
        course.drive(instance.as_mut(), &plan.load, observer);
    }
    let stopping = backend.now_ns();
    // Nothing is learned from a slow end of what never started, or of what the user stops.
    let was_ready = start.as_ref().is_some_and(|s| s.ready.is_some());
    let grace = if was_ready && course.refusal.is_none() {
        plan.stop_grace
    } else {
        plan.stop_grace.min(SHORT_GRACE)
    };
    let mut evidence = instance.stop(grace, observer);
    drop(instance);
    course.phase(Phase::Stop, stopping, backend.now_ns());
    if let Some(refusal) = course.refusal {
        return Err(refusal);
    }
    if let Some(start) = start {
        // The line may come after ready, so only the end of the trial knows.
        let log_line = evidence.start.log_line;
        evidence.start = StartEvidence { log_line, ..start };
    }
    evidence.phases = course.phases;
    evidence.load = course.load;
    evidence.failure = course.failure.or(evidence.failure);
    merge_seconds(&mut evidence.seconds, course.seconds);
    Ok(evidence)
}

impl Course {
    fn phase(&mut self, phase: Phase, start: u64, end: u64) {
        self.phases.push(PhaseSpan { phase, start, end });
    }

    fn may_go_on(&self) -> bool {
        self.refusal.is_none() && self.failure.is_none()
    }

    fn start(
        &mut self,
        instance: &mut dyn Instance,
        plan: &TrialPlan,
        observer: &mut dyn Observer,
    ) -> Option<StartEvidence> {
        match instance.start(plan.start_deadline, observer) {
            Ok(start) => Some(start),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    fn drive(
        &mut self,
        instance: &mut dyn Instance,
        load: &[LoadPhase],
        observer: &mut dyn Observer,
    ) {
        for phase in load {
            match instance.drive(phase, observer) {
                Ok(driven) => {
                    let ended = driven.application_ended;
                    self.take(phase.phase, driven);
                    if ended {
                        return;
                    }
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    fn take(&mut self, phase: Phase, driven: Driven) {
        self.phase(phase, driven.start_ns, driven.end_ns);
        self.load.extend(driven.load);
        self.seconds.extend(driven.seconds);
    }

    fn fail(&mut self, error: BackendError) {
        match error {
            BackendError::Invalid { cause, detail } => {
                self.failure = Some(Failure { cause, detail });
            }
            // Another attempt would come to the same; its hint is for the user.
            BackendError::Interrupted | BackendError::Refused(_) => self.refusal = Some(error),
        }
    }
}

/// Puts the load's figures into the second of the instance's series that ends nearest to theirs.
fn merge_seconds(series: &mut Vec<SecondEvidence>, load: Vec<SecondEvidence>) {
    const HALF: u64 = 500_000_000;
    for second in load {
        let at = series.partition_point(|s| s.at_ns + HALF < second.at_ns);
        match series.get_mut(at) {
            Some(slot) if slot.at_ns.abs_diff(second.at_ns) <= HALF && slot.achieved.is_none() => {
                slot.offered = second.offered;
                slot.achieved = second.achieved;
                slot.errors = second.errors;
                slot.p50 = second.p50;
                slot.p99 = second.p99;
                slot.max = second.max;
            }
            _ => series.insert(at, second),
        }
    }
}

/// The length of a load phase, for estimates; a closed phase of requests is guessed at 10 s.
pub fn expected_length(model: &Model) -> Duration {
    model.duration().unwrap_or(Duration::from_secs(10))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use loadline_trial::Refusal;

    use super::*;

    /// Refuses to start, as a machine does that cannot execute the program; counts stops.
    struct Refusing(Rc<Cell<u32>>);

    impl Backend for Refusing {
        fn machine(&self) -> loadline_analysis::record::Machine {
            unreachable!("a trial does not ask")
        }

        fn prepare(&mut self, _: &InstanceSpec) -> Result<Box<dyn Instance>, BackendError> {
            Ok(Box::new(Refusing(Rc::clone(&self.0))))
        }
    }

    impl Instance for Refusing {
        fn start(
            &mut self,
            _: Duration,
            _: &mut dyn Observer,
        ) -> Result<loadline_analysis::record::StartEvidence, BackendError> {
            let hint = "choose another user";
            Err(Refusal::new("starting the application", "permission denied", hint).into())
        }

        fn addresses(&self) -> Vec<std::net::SocketAddr> {
            Vec::new()
        }

        fn drive(&mut self, _: &LoadPhase, _: &mut dyn Observer) -> Result<Driven, BackendError> {
            unreachable!("it never started")
        }

        fn stop(&mut self, _: Duration, _: &mut dyn Observer) -> Evidence {
            self.0.set(self.0.get() + 1);
            Evidence::default()
        }
    }

    struct Nobody;

    impl Observer for Nobody {
        fn progress(&mut self, _: crate::backend::Progress) {}

        fn interrupted(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_refusal_in_the_middle_ends_the_run_and_keeps_its_hint() {
        let stops = Rc::new(Cell::new(0));
        let plan = TrialPlan {
            instance: crate::test_spec(),
            start_deadline: Duration::from_secs(1),
            load: Vec::new(),
            stop_grace: Duration::ZERO,
        };
        let refused = run(&mut Refusing(Rc::clone(&stops)), &plan, &mut Nobody);
        let Err(BackendError::Refused(refusal)) = refused else {
            panic!("it is refused: {refused:?}");
        };
        let text = refusal.to_string();
        assert_eq!(text, "starting the application: permission denied");
        assert_eq!(refusal.hint, "choose another user");
        assert_eq!(stops.get(), 1, "it is stopped all the same");
    }

    fn at(ns: u64) -> SecondEvidence {
        SecondEvidence {
            at_ns: ns,
            ..SecondEvidence::default()
        }
    }

    #[test]
    fn load_seconds_join_the_nearest_sampled_second() {
        let mut series = vec![at(1_000_000_000), at(2_000_000_000), at(3_000_000_000)];
        let load = |ns| SecondEvidence {
            achieved: Some(7),
            ..at(ns)
        };
        merge_seconds(
            &mut series,
            vec![
                load(2_100_000_000),
                load(3_100_000_000),
                load(4_100_000_000),
            ],
        );
        let joined: Vec<_> = series.iter().map(|s| (s.at_ns, s.achieved)).collect();
        assert_eq!(
            joined,
            [
                (1_000_000_000, None),
                (2_000_000_000, Some(7)),
                (3_000_000_000, Some(7)),
                (4_100_000_000, Some(7))
            ]
        );
    }
}
