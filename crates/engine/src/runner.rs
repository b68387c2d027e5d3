//! The one loop that starts trials: slots, attempts, records.
//!
//! Owns the rule that makes everything resumable: a trial that has a record is not run again, its
//! record is used. A search asks ([`Search`]), the runner fills the host's slots with what it asks
//! for, stores each record before the search sees it, and stops what is wanted no more. What could
//! not be measured is tried again, then reported as such. Start-up caches are trained in a slot of
//! their own time, before the first trial that needs one. Judges through `loadline-analysis`; knows
//! no host but by its trait.

mod attempts;
mod job;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Evidence, StartCache, TrialRecord};
use loadline_analysis::search::{Ask, ByAsk, Open, Search, Seen};
use loadline_analysis::verdict::Thresholds;
use loadline_jvm::cache::CacheKind;
use loadline_jvm::cache::classes::Classes;
use loadline_jvm::cache::scc::{FIRST_SIZE, Limits, Statistics};
use loadline_jvm::detect::{Found, Places};
use loadline_load::LoadError;
use loadline_trial::{Account, Ending, Event, Order, Progress, Refusal};

use crate::cache::{self, Built, CacheError, Room, Training};
use crate::command::CommandError;
use crate::experiment::Experiment;
use crate::host::{Delivery, Host};
use crate::store::{Store, StoreError};
use loadline_sizing::Bytes;

use attempts::Tried;
use job::{Job, Work};

pub use attempts::ATTEMPTS;

/// A shared class cache this full, percent, may have refused something.
const FULL: u64 = 95;

/// Longest wait before the watcher is asked again whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// Told about trials as they come and go, by the slot that they run in.
pub trait Watcher {
    /// A trial begins in a slot that was free.
    fn trial_begins(&mut self, slot: usize, ask: &Ask, attempt: u32);

    /// A start-up cache is trained or tried: a run that gives no record.
    fn training_begins(&mut self, slot: usize, configuration: &Configuration);

    /// What is to run in this slot has not begun: its host has no room for it yet.
    fn waits(&mut self, slot: usize, why: &str);

    /// A live figure of what runs in this slot.
    fn progress(&mut self, slot: usize, progress: Progress);

    /// A trial has its record: from this slot, or `None` when it was there from before.
    fn trial_ends(&mut self, slot: Option<usize>, record: &TrialRecord);

    /// What ran in this slot ended without a record.
    fn slot_ends(&mut self, slot: usize);

    /// Whether to stop everything (Ctrl-C).
    fn interrupted(&self) -> bool;
}

/// What ends a run before its search has an answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The host cannot.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file or variable that the load names is not there.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A start-up cache cannot be made.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Ctrl-C or a signal.
    #[error("interrupted")]
    Interrupted,
}

/// What is measured: the same for all trials of a result.
pub struct Measurement<'a> {
    /// Where records go.
    pub store: &'a Store,
    /// Id of the result.
    pub result: String,
    /// What is measured.
    pub experiment: &'a Experiment,
    /// JDKs of this machine.
    pub jdks: &'a Found,
    /// Where programs are looked for.
    pub places: &'a Places,
    /// Who the application runs as.
    pub account: Account,
    /// When a measurement is not valid.
    pub thresholds: Thresholds,
    /// Fingerprint of the ground whose trials in earlier results are used again; `None` is never.
    pub reuse: Option<String>,
    /// Whether what could not be measured in [`ATTEMPTS`] attempts before is tried as often again:
    /// for a result that had ended. One that was cut goes on as if it had not been.
    pub retries: bool,
}

/// Runs searches over one result.
pub struct Runner<'a> {
    of: Measurement<'a>,
    host: &'a mut dyn Host,
    watcher: &'a mut dyn Watcher,
    seen: Seen,
    tried: ByAsk<Tried>,
    slots: Vec<Option<Job>>,
    /// The slot of each pair that has begun.
    pairs: HashMap<u32, usize>,
    /// Caches that are in place, by their file.
    caches: HashMap<PathBuf, Built>,
}

impl<'a> Runner<'a> {
    /// A runner with nothing in its slots.
    pub fn new(of: Measurement<'a>, host: &'a mut dyn Host, watcher: &'a mut dyn Watcher) -> Self {
        let slots = host.slots().max(1);
        Self {
            of,
            host,
            watcher,
            seen: Seen::default(),
            tried: ByAsk::default(),
            slots: (0..slots).map(|_| None).collect(),
            pairs: HashMap::new(),
            caches: HashMap::new(),
        }
    }

    /// Lets no more trials run at once than this, at least one.
    pub fn at_most(&mut self, slots: usize) {
        self.slots.truncate(slots.max(1));
    }

    /// Runs what the search asks for until it has its answer. Nothing runs afterwards, whatever
    /// came of it.
    ///
    /// # Errors
    /// [`RunError`]; what was finished is in the store and is not run again by the next call.
    pub fn run<S: Search>(&mut self, search: &S) -> Result<S::Answer, RunError> {
        let ended = self.until_answered(search);
        let stopped = self.stop_all();
        // The first error is the one to report.
        let answer = ended?;
        stopped.map(|()| answer)
    }

    /// The start-up cache that a configuration asks for, trained now where it is not in place.
    ///
    /// # Errors
    /// [`RunError::Cache`] when it cannot be made; others as for a trial.
    pub fn cache(&mut self, configuration: &Configuration) -> Result<Option<Built>, RunError> {
        let Some(wanted) = configuration.cache else {
            return Ok(None);
        };
        if let Some(built) = self.built(configuration, wanted) {
            return Ok(Some(built));
        }
        let built = match wanted.kind {
            CacheKind::Scc => self.shared(0, configuration, wanted)?,
            CacheKind::AppCds | CacheKind::Aot => {
                self.trained(0, configuration, wanted, Room::ANY)?
            }
        };
        Ok(Some(built))
    }

    /// A shared class cache: filled with room, with more where that is full, and made anew with the
    /// limits of what it holds. Waits for each start.
    fn shared(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        wanted: StartCache,
    ) -> Result<Built, RunError> {
        let mut size = FIRST_SIZE;
        loop {
            let first = Room {
                limits: Limits::first(size),
                is_final: false,
            };
            let built = self.trained(slot, configuration, wanted, first)?;
            let held = self.statistics(slot, configuration, &built)?;
            if held.full() < FULL {
                let last = Room {
                    limits: held.limits(),
                    is_final: true,
                };
                return self.trained(slot, configuration, wanted, last);
            }
            size = Bytes::from_bytes(size.as_bytes() * 2);
        }
    }

    fn trained(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        wanted: StartCache,
        room: Room,
    ) -> Result<Built, RunError> {
        let training = Training::prepare(&self.of, configuration, wanted, room)?;
        let (order, delivery) = (&training.order, &training.delivery);
        let evidence = self.alone(slot, &training.configuration, order, delivery)?;
        let place = training.place().to_owned();
        let built = training.install(&evidence)?;
        if room.is_final {
            self.caches.insert(place, built.clone());
        }
        Ok(built)
    }

    /// What a shared class cache holds, by the word of its JVM.
    fn statistics(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        built: &Built,
    ) -> Result<Statistics, RunError> {
        let (with, order, delivery) = cache::statistics(&self.of, configuration, built)?;
        self.alone(slot, &with, &order, &delivery)?;
        Ok(cache::statistics_in(&delivery)?)
    }

    /// Starts the application once more with its cache and the JVM's own log of classes; `None`
    /// when the JVM wrote no such log.
    ///
    /// # Errors
    /// As for a trial.
    pub fn witness(
        &mut self,
        configuration: &Configuration,
        built: &Built,
    ) -> Result<Option<Classes>, RunError> {
        let (with, order, delivery) = cache::witness(&self.of, configuration, built)?;
        self.alone(0, &with, &order, &delivery)?;
        Ok(cache::witnessed(&delivery))
    }

    fn until_answered<S: Search>(&mut self, search: &S) -> Result<S::Answer, RunError> {
        loop {
            let open = match search.next(&self.seen) {
                Ok(answer) => return Ok(answer),
                Err(open) => open,
            };
            if self.recall(&open)? {
                continue;
            }
            self.stop_unwanted(&open);
            while !self.turn(&open)? {}
        }
    }

    /// Fills slots, waits, takes what came; whether there is a new record.
    fn turn(&mut self, open: &Open) -> Result<bool, RunError> {
        if self.watcher.interrupted() {
            return Err(RunError::Interrupted);
        }
        if self.fill(open)? {
            return Ok(true);
        }
        self.refuse_to_wait_for_nothing(open)?;
        self.host.wait(PATIENCE);
        self.collect()
    }

    /// Puts what is asked for into free slots, in order; whether a record was found instead.
    fn fill(&mut self, open: &Open) -> Result<bool, RunError> {
        if self.is_full() {
            return Ok(false);
        }
        let reserved = self.reserved(open);
        let mut open_pairs = HashSet::new();
        // A guess may take far longer than a back-off, so each wanted trial that waits for its next
        // attempt keeps a slot from guesses; what is wanted too may have it.
        let mut kept = 0;
        let mut free = self.free_slots(&reserved).count();
        for (index, ask) in open.wanted.iter().chain(&open.guesses).enumerate() {
            let is_guess = index >= open.wanted.len();
            if is_guess && free <= kept {
                break;
            }
            if self.seen.get(ask).is_some() {
                continue;
            }
            let is_behind = ask.pair.is_some_and(|pair| !open_pairs.insert(pair));
            if is_behind || self.is_running(ask) {
                continue;
            }
            let tried = self.tried.get(ask).copied().unwrap_or_default();
            if tried.not_before > self.host.now_ns() {
                kept += usize::from(self.slot_of_pair(ask).is_none());
                continue;
            }
            let Some(slot) = self.free_slot(ask, &reserved) else {
                continue;
            };
            if self.begin(slot, ask, tried)? {
                return Ok(true);
            }
            if self.is_full() {
                break;
            }
            free = self.free_slots(&reserved).count();
        }
        Ok(false)
    }

    /// A search that is open and wants nothing would never end.
    fn refuse_to_wait_for_nothing(&self, open: &Open) -> Result<(), RunError> {
        let is_coming = open.wanted.iter().any(|ask| self.seen.get(ask).is_none());
        if is_coming || self.slots.iter().any(Option::is_some) {
            return Ok(());
        }
        let why = "it has no answer and asks for no trial";
        let hint =
            "this is a defect of loadline: please report it with `loadline show --experiment last`";
        Err(Refusal::new("searching", why, hint).into())
    }

    /// Slots of pairs that have begun and are not whole. No other trial comes between the two: each
    /// would keep its pair waiting, at the end of a matrix while other slots have nothing to do.
    fn reserved(&self, open: &Open) -> HashSet<usize> {
        let of_pairs = open
            .wanted
            .iter()
            .filter(|ask| self.seen.get(ask).is_none());
        of_pairs.filter_map(|ask| self.slot_of_pair(ask)).collect()
    }

    fn is_full(&self) -> bool {
        self.slots.iter().all(Option::is_some)
    }

    fn free_slots(&self, reserved: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        let free = slots.filter(|(slot, job)| job.is_none() && !reserved.contains(slot));
        free.map(|(slot, _)| slot)
    }

    fn slot_of_pair(&self, ask: &Ask) -> Option<usize> {
        ask.pair.and_then(|pair| self.pairs.get(&pair)).copied()
    }

    /// The slot of the ask's pair, if it is free; any free one where it has none yet.
    fn free_slot(&self, ask: &Ask, reserved: &HashSet<usize>) -> Option<usize> {
        match self.slot_of_pair(ask) {
            Some(slot) => self.slots[slot].is_none().then_some(slot),
            None => self.free_slots(reserved).next(),
        }
    }

    fn is_running(&self, ask: &Ask) -> bool {
        let is_it = |job: &Job| matches!(&job.work, Work::Trial(trial) if trial.ask.is_same(ask));
        self.slots.iter().flatten().any(is_it)
    }

    /// The cache of a configuration, if it is in place.
    fn built(&mut self, configuration: &Configuration, wanted: StartCache) -> Option<Built> {
        let place = cache::place(&self.of, configuration, wanted.kind);
        if let Some(built) = self.caches.get(&place) {
            return Some(built.clone());
        }
        let built = cache::read(&place, wanted)?;
        self.caches.insert(place, built.clone());
        Some(built)
    }

    /// Takes the events of all slots; whether there is a new record.
    fn collect(&mut self) -> Result<bool, RunError> {
        let mut is_new = false;
        for slot in 0..self.slots.len() {
            if let Some(ending) = self.events(slot) {
                is_new |= self.end(slot, ending)?;
            }
        }
        Ok(is_new)
    }

    /// The ending in this slot, if it has come; figures go to the watcher.
    fn events(&mut self, slot: usize) -> Option<Ending> {
        let job = self.slots[slot].as_mut()?;
        while let Some(event) = job.running.next() {
            match event {
                Event::Phase { .. } | Event::Soak(_) | Event::Look(_) => {}
                Event::Waits(why) => self.watcher.waits(slot, &why),
                Event::Progress(progress) => self.watcher.progress(slot, progress),
                Event::Ended(ending) => return Some(ending),
            }
        }
        None
    }

    /// Stops trials that are asked for no more: a guess that was wrong, a confirmation of a size
    /// that has failed. A training goes on: its cache is for others too.
    fn stop_unwanted(&mut self, open: &Open) {
        let asks = |ask: &Ask| {
            open.wanted
                .iter()
                .chain(&open.guesses)
                .any(|a| a.is_same(ask))
        };
        for job in self.slots.iter_mut().flatten() {
            if matches!(&job.work, Work::Trial(trial) if !asks(&trial.ask)) {
                job.stop();
            }
        }
    }

    /// Stops everything and waits for its end.
    fn stop_all(&mut self) -> Result<(), RunError> {
        self.slots.iter_mut().flatten().for_each(Job::stop);
        let mut first = Ok(());
        loop {
            for slot in 0..self.slots.len() {
                if let Some(ending) = self.events(slot) {
                    let ended = self.end(slot, ending).map(|_| ());
                    first = first.and(ended);
                }
            }
            if self.slots.iter().all(Option::is_none) {
                return first;
            }
            self.host.wait(PATIENCE);
        }
    }

    /// Runs something that is no trial, and waits for it.
    fn alone(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        order: &Order,
        delivery: &Delivery,
    ) -> Result<Evidence, RunError> {
        if let Some(refusal) = self.host.refuses(order) {
            return Err(refusal.into());
        }
        self.watcher.training_begins(slot, configuration);
        let mut running = self.host.launch(slot, order, delivery)?;
        let ending = loop {
            if self.watcher.interrupted() {
                running.stop();
            }
            match running.next() {
                Some(Event::Ended(ending)) => break ending,
                Some(Event::Progress(progress)) => self.watcher.progress(slot, progress),
                Some(Event::Waits(why)) => self.watcher.waits(slot, &why),
                Some(Event::Phase { .. } | Event::Soak(_) | Event::Look(_)) => {}
                None => self.host.wait(PATIENCE),
            }
        };
        self.watcher.slot_ends(slot);
        if !matches!(ending, Ending::Measured(_)) {
            // Nothing of it is wanted; what stays is swept by its owner file.
            let _ = loadline_host::remove_scratch(&order.scratch);
        }
        match ending {
            Ending::Measured(evidence) => Ok(*evidence),
            Ending::Refused(refusal) => Err(refusal.into()),
            Ending::Stopped => Err(RunError::Interrupted),
        }
    }
}
