//! One trial from its order to its events, all known at once.

use std::hash::{DefaultHasher, Hash, Hasher};

use loadline_analysis::random::Random;
use loadline_analysis::record::{Configuration, Phase, PhaseSpan, StartEvidence};
use loadline_trial::{Ending, Event, LoadPhase, Order, Progress};

use crate::fleet::Fleet;
use crate::service::{Service, World};

/// Carries an order out from a moment on: every event with its time, the end last.
pub fn carry_out(world: &World, seed: u64, order: &Order, begin_ns: u64) -> Vec<(u64, Event)> {
    let random = Random::from_seed(seed).derive(of_order(order));
    let alone = Configuration {
        instances: 1,
        ..order.configuration.clone()
    };
    let instances = 0..u64::from(order.configuration.instances);
    let service = |index| Service::new(world, alone.clone(), random.derive(index), begin_ns);
    let mut trial = Trial {
        fleet: Fleet::new(instances.map(service).collect()),
        events: Vec::new(),
        phases: Vec::new(),
    };
    let (mut start, mut load) = (StartEvidence::default(), Vec::new());
    trial.phase(Phase::Start, |fleet| {
        start = fleet.start(order.start_deadline)
    });
    if start.ready.is_some() {
        trial.drive(&order.load, &mut load);
    }
    trial.phase(Phase::Stop, |_| {});
    let end_ns = trial.fleet.now_ns();
    let mut evidence = trial.fleet.stop();
    evidence.start = start;
    evidence.phases = trial.phases;
    evidence.load = load;
    let ended = Event::Ended(Ending::Measured(Box::new(evidence)));
    trial.events.push((end_ns, ended));
    trial.events
}

/// What tells a trial from others: its configuration, and purpose, repeat and attempt by the seed of
/// its load.
fn of_order(order: &Order) -> u64 {
    let plain = Configuration {
        label: String::new(),
        ..order.configuration.clone()
    };
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&plain)
        .unwrap_or_default()
        .hash(&mut hasher);
    order.load.last().map(|l| l.plan.seed).hash(&mut hasher);
    hasher.finish()
}

struct Trial {
    fleet: Fleet,
    events: Vec<(u64, Event)>,
    phases: Vec<PhaseSpan>,
}

impl Trial {
    fn phase(&mut self, phase: Phase, work: impl FnOnce(&mut Fleet)) {
        let start = self.fleet.now_ns();
        self.events.push((
            start,
            Event::Phase {
                phase,
                at_ns: start,
            },
        ));
        work(&mut self.fleet);
        let end = self.fleet.now_ns();
        self.phases.push(PhaseSpan { phase, start, end });
        let progress = Progress {
            phase,
            elapsed: std::time::Duration::from_nanos(end - start),
            p99: None,
            rate: None,
        };
        self.events.push((end, Event::Progress(progress)));
    }

    fn drive(
        &mut self,
        phases: &[LoadPhase],
        load: &mut Vec<loadline_analysis::record::LoadEvidence>,
    ) {
        for phase in phases {
            let mut has_died = false;
            self.phase(phase.phase, |fleet| {
                let (parts, died) = fleet.drive(phase);
                load.extend(parts);
                has_died = died;
            });
            if has_died {
                return;
            }
        }
    }
}
