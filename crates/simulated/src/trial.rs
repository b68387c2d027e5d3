//! One trial from its order to its events, all known at once.

use std::hash::{DefaultHasher, Hash, Hasher};

use loadline_analysis::random::RandomStream;
use loadline_analysis::record::{Configuration, PhaseSpan, StartEvidence, TrialPhase};
use loadline_protocol::{LoadPhase, TrialEnding, TrialEvent, TrialOrder, TrialProgress};

use crate::fleet::InstanceFleet;
use crate::service::{SimulatedService, World};

pub fn carry_out(
    world: &World,
    seed: u64,
    order: &TrialOrder,
    begin_ns: u64,
) -> Vec<(u64, TrialEvent)> {
    let random = RandomStream::from_seed(seed).derive(of_order(order));
    let alone = Configuration {
        instances: 1,
        ..order.configuration.clone()
    };
    let instances = 0..u64::from(order.configuration.instances);
    let service =
        |index| SimulatedService::new(world, alone.clone(), random.derive(index), begin_ns);
    let mut trial = SimulatedTrial {
        fleet: InstanceFleet::new(instances.map(service).collect()),
        events: Vec::new(),
        phases: Vec::new(),
    };
    let (mut start, mut load) = (StartEvidence::default(), Vec::new());
    trial.run_phase(TrialPhase::Start, |fleet| {
        start = fleet.start_instances(order.start_deadline)
    });
    if start.ready.is_some() {
        trial.drive_phases(&order.load, &mut load);
    }
    trial.run_phase(TrialPhase::Stop, |_| {});
    let end_ns = trial.fleet.virtual_now_ns();
    let mut evidence = trial.fleet.stop_instances();
    evidence.start = start;
    evidence.phases = trial.phases;
    evidence.load = load;
    let ended = TrialEvent::Ended(TrialEnding::Measured(Box::new(evidence)));
    trial.events.push((end_ns, ended));
    trial.events
}

/// What tells a trial from others: its configuration, and purpose, repeat and attempt by the seed of
/// its load.
fn of_order(order: &TrialOrder) -> u64 {
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

struct SimulatedTrial {
    fleet: InstanceFleet,
    events: Vec<(u64, TrialEvent)>,
    phases: Vec<PhaseSpan>,
}

impl SimulatedTrial {
    fn run_phase(&mut self, phase: TrialPhase, work: impl FnOnce(&mut InstanceFleet)) {
        let start = self.fleet.virtual_now_ns();
        self.events.push((
            start,
            TrialEvent::Phase {
                phase,
                at_ns: start,
            },
        ));
        work(&mut self.fleet);
        let end = self.fleet.virtual_now_ns();
        self.phases.push(PhaseSpan { phase, start, end });
        let progress = TrialProgress {
            phase,
            elapsed: std::time::Duration::from_nanos(end - start),
            p99: None,
            rate: None,
        };
        self.events.push((end, TrialEvent::Progress(progress)));
    }

    fn drive_phases(
        &mut self,
        phases: &[LoadPhase],
        load: &mut Vec<loadline_analysis::record::LoadEvidence>,
    ) {
        for phase in phases {
            let mut has_died = false;
            self.run_phase(phase.phase, |fleet| {
                let (parts, died) = fleet.drive_instances(phase);
                load.extend(parts);
                has_died = died;
            });
            if has_died {
                return;
            }
        }
    }
}
