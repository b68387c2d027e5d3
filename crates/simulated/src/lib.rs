//! A host whose truth is known, for tests: services of a [`World`] in virtual time, from a seed.
//!
//! Owns the slots and the clock between them, and what a trial there leads to. What a trial gives
//! depends on the seed, its configuration and the seed of its load (purpose, repeat and attempt)
//! alone, never on what else runs or ran: so every number of slots sees the same world. Never
//! sleeps, touches no file, starts no process. Only tests depend on it.

mod fleet;
mod queue;
mod service;
mod trial;
pub mod world;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use loadline_analysis::record::Machine;
use loadline_engine::host::{Delivery, Host, Running};
use loadline_sizing::Bytes;
use loadline_trial::{Ending, Event, Order, Refusal};

pub use service::{Cold, World};
pub use trial::carry_out;

/// When the virtual clock begins, ns.
const BEGIN: u64 = 1_000_000_000;

/// The host.
#[derive(Debug)]
pub struct Simulated {
    world: World,
    seed: u64,
    slots: usize,
    /// Shared with what runs.
    clock: Rc<Clock>,
}

/// The virtual CLOCK_MONOTONIC, and when something will happen.
#[derive(Debug)]
struct Clock {
    now_ns: Cell<u64>,
    /// Of each running trial, its next event.
    coming: RefCell<Vec<(usize, u64)>>,
}

impl Simulated {
    /// A host with this truth. The seed determines everything that happens.
    pub fn new(world: World, seed: u64, slots: usize) -> Self {
        Self {
            world,
            seed,
            slots,
            clock: Rc::new(Clock {
                now_ns: Cell::new(BEGIN),
                coming: RefCell::default(),
            }),
        }
    }

    /// Virtual time since the host was made.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.now_ns() - BEGIN)
    }
}

impl Host for Simulated {
    fn machine(&self) -> Machine {
        Machine {
            version: None,
            image: None,
            level_images: Vec::new(),
            cluster: None,
            apart: None,
            kernel: "none (simulated)".to_owned(),
            cpu_model: "simulated".to_owned(),
            cpus: 64,
            memory: Some(Bytes::from_gib(256)),
            cgroup: "simulated".to_owned(),
            architecture: String::new(),
            jdks: vec!["simulated".to_owned()],
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn refuses(&self, _: &Order) -> Option<Refusal> {
        None
    }

    fn launch(
        &mut self,
        slot: usize,
        order: &Order,
        _: &Delivery,
    ) -> Result<Box<dyn Running>, Refusal> {
        let is_taken = self.clock.coming.borrow().iter().any(|(s, _)| *s == slot);
        if is_taken || slot >= self.slots {
            let why = format!("slot {slot} of {} is not free", self.slots);
            return Err(Refusal::new("starting a trial", why, "wait for its end"));
        }
        let begin = self.clock.now_ns.get();
        let events = carry_out(&self.world, self.seed, order, begin).into();
        let trial = Playing {
            slot,
            events,
            clock: Rc::clone(&self.clock),
        };
        trial.announce();
        Ok(Box::new(trial))
    }

    fn wait(&mut self, patience: Duration) {
        let now = self.clock.now_ns.get();
        let latest = now + patience.as_nanos() as u64;
        let coming = self.clock.coming.borrow();
        let next = coming.iter().map(|(_, at)| *at).min().unwrap_or(latest);
        self.clock.now_ns.set(next.clamp(now, latest));
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns.get()
    }
}

/// A trial whose events are known and wait for their time.
struct Playing {
    slot: usize,
    events: VecDeque<(u64, Event)>,
    clock: Rc<Clock>,
}

impl Playing {
    fn announce(&self) {
        let mut coming = self.clock.coming.borrow_mut();
        coming.retain(|(slot, _)| *slot != self.slot);
        coming.extend(self.events.front().map(|(at, _)| (self.slot, *at)));
    }
}

impl Running for Playing {
    fn next(&mut self) -> Option<Event> {
        let (at, _) = self.events.front()?;
        if *at > self.clock.now_ns.get() {
            return None;
        }
        let event = self.events.pop_front().map(|(_, event)| event);
        self.announce();
        event
    }

    fn stop(&mut self) {
        // What has ended has ended.
        let now = self.clock.now_ns.get();
        if self.events.back().is_some_and(|(at, _)| *at > now) {
            self.events = [(now, Event::Ended(Ending::Stopped))].into();
        }
        self.announce();
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.events.clear();
        self.announce();
    }
}
