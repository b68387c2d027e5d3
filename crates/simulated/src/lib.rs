//! A host with a known truth, for tests: services of a [`World`] in virtual time, from a seed.
//!
//! Owns the slots and the clock between them, and the outcome of a trial. An outcome depends on the
//! seed, the trial's configuration and the seed of its load (purpose, repeat and attempt) alone,
//! never on other trials: so every number of slots sees the same world. Never sleeps, touches no
//! file, starts no process. Only tests depend on it.

mod fleet;
mod queue;
mod service;
mod trial;
pub mod world;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use loadline_analysis::record::MachineDescription;
use loadline_protocol::{RunRefusal, TrialEnding, TrialEvent, TrialOrder};
use loadline_runner::host::{Delivery, TrialHandle, TrialHost};
use loadline_sizing::Bytes;

pub use service::{WarmingCost, World};
pub use trial::carry_out;

const BEGIN: u64 = 1_000_000_000;

#[derive(Debug)]
pub struct SimulatedHost {
    world: World,
    seed: u64,
    slots: usize,
    clock: Rc<VirtualClock>,
}

#[derive(Debug)]
struct VirtualClock {
    now_ns: Cell<u64>,
    coming: RefCell<Vec<(usize, u64)>>,
}

impl SimulatedHost {
    pub fn new(world: World, seed: u64, slots: usize) -> Self {
        Self {
            world,
            seed,
            slots,
            clock: Rc::new(VirtualClock {
                now_ns: Cell::new(BEGIN),
                coming: RefCell::default(),
            }),
        }
    }

    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.host_clock_ns() - BEGIN)
    }
}

impl TrialHost for SimulatedHost {
    fn host_machine(&self) -> MachineDescription {
        MachineDescription {
            kernel: "none (simulated)".to_owned(),
            cpu_model: "simulated".to_owned(),
            cpus: 64,
            memory: Some(Bytes::from_gib(256)),
            cgroup: "simulated".to_owned(),
            jdks: vec!["simulated".to_owned()],
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            ..MachineDescription::default()
        }
    }

    fn slot_count(&self) -> usize {
        self.slots
    }

    fn order_refusal(&self, _: &TrialOrder) -> Option<RunRefusal> {
        None
    }

    fn launch_trial(
        &mut self,
        slot: usize,
        order: &TrialOrder,
        _: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal> {
        let is_taken = self.clock.coming.borrow().iter().any(|(s, _)| *s == slot);
        if is_taken || slot >= self.slots {
            let why = format!("slot {slot} of {} is not free", self.slots);
            return Err(RunRefusal::new("starting a trial", why, "wait for its end"));
        }
        let begin = self.clock.now_ns.get();
        let events = carry_out(&self.world, self.seed, order, begin).into();
        let trial = PlayingTrial {
            slot,
            events,
            clock: Rc::clone(&self.clock),
        };
        trial.announce();
        Ok(Box::new(trial))
    }

    fn wait_for_events(&mut self, patience: Duration) {
        let now = self.clock.now_ns.get();
        let latest = now + patience.as_nanos() as u64;
        let coming = self.clock.coming.borrow();
        let next = coming.iter().map(|(_, at)| *at).min().unwrap_or(latest);
        self.clock.now_ns.set(next.clamp(now, latest));
    }

    fn host_clock_ns(&self) -> u64 {
        self.clock.now_ns.get()
    }
}

struct PlayingTrial {
    slot: usize,
    events: VecDeque<(u64, TrialEvent)>,
    clock: Rc<VirtualClock>,
}

impl PlayingTrial {
    fn announce(&self) {
        let mut coming = self.clock.coming.borrow_mut();
        coming.retain(|(slot, _)| *slot != self.slot);
        coming.extend(self.events.front().map(|(at, _)| (self.slot, *at)));
    }
}

impl TrialHandle for PlayingTrial {
    fn next(&mut self) -> Option<TrialEvent> {
        let (at, _) = self.events.front()?;
        if *at > self.clock.now_ns.get() {
            return None;
        }
        let event = self.events.pop_front().map(|(_, event)| event);
        self.announce();
        event
    }

    fn stop_trial(&mut self) {
        // What has ended has ended.
        let now = self.clock.now_ns.get();
        if self.events.back().is_some_and(|(at, _)| *at > now) {
            self.events = [(now, TrialEvent::Ended(TrialEnding::Stopped))].into();
        }
        self.announce();
    }
}

impl Drop for PlayingTrial {
    fn drop(&mut self) {
        self.events.clear();
        self.announce();
    }
}
