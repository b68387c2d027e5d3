//! The one loop that starts trials: slots, attempts, records.
//!
//! Owns the rule that makes everything resumable: a trial with a record is not run again. A search
//! asks ([`TrialSearch`]), the runner fills the host's slots with its asks, stores each record
//! before the search sees it, and stops trials that are no longer wanted. A trial that could not be
//! measured is repeated, then reported. Start-up caches are trained in a slot before the first
//! trial that needs them. Judges through `loadline-analysis`; knows hosts only by their trait.

mod attempts;
mod job;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Evidence, StartCache, TrialPurpose, TrialRecord};
use loadline_analysis::search::{ByAsk, SeenTrials, TrialAsk, TrialSearch, WantedTrials};
use loadline_jvm::cache::CacheKind;
use loadline_jvm::cache::classes::LoadedClasses;
use loadline_jvm::cache::scc::{FIRST_SIZE, SharedCacheLimits};
use loadline_protocol::{RunRefusal, TrialEnding, TrialEvent, TrialOrder, TrialProgress};
use loadline_sizing::Bytes;

use crate::cache::{self, CacheErrand, CacheRoom, CacheTraining, InstalledCache};
use crate::host::{Delivery, TrialHandle, TrialHost};

use attempts::AskAttempts;
use job::{SlotJob, SlotWork};

pub use crate::error::RunError;
pub use crate::measurement::Measurement;
pub use attempts::ATTEMPTS;

/// A shared class cache this full, percent, may have refused something.
const FULL: u64 = 95;

/// Longest wait before the watcher is asked again whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

pub trait TrialWatcher {
    fn trial_begins(&mut self, slot: usize, ask: &TrialAsk, attempt: u32);

    fn training_begins(&mut self, slot: usize, configuration: &Configuration);

    /// The next job of this slot has not begun: its host has no room yet.
    fn slot_waits(&mut self, slot: usize, why: &str);

    fn trial_progress(&mut self, slot: usize, progress: TrialProgress);

    /// A trial has its record: from this slot, or `None` when it was there from before.
    fn trial_ends(&mut self, slot: Option<usize>, record: &TrialRecord);

    fn slot_ends(&mut self, slot: usize);

    fn is_interrupted(&self) -> bool;
}

pub struct SearchRunner<'a> {
    of: Measurement<'a>,
    host: &'a mut dyn TrialHost,
    watcher: &'a mut dyn TrialWatcher,
    seen: SeenTrials,
    tried: ByAsk<AskAttempts>,
    slots: Vec<Option<SlotJob>>,
    pairs: HashMap<u32, usize>,
    /// When no trial runs any more, by the host's clock, ns; `None` is never.
    ends_at: Option<u64>,
    /// The longest trial so far, by purpose: a squeeze takes several times as long as a fresh start.
    longest: HashMap<TrialPurpose, Duration>,
    caches: HashMap<PathBuf, InstalledCache>,
}

impl<'a> SearchRunner<'a> {
    pub fn new(
        of: Measurement<'a>,
        host: &'a mut dyn TrialHost,
        watcher: &'a mut dyn TrialWatcher,
    ) -> Self {
        let slots = host.slot_count().max(1);
        Self {
            of,
            host,
            watcher,
            seen: SeenTrials::default(),
            tried: ByAsk::default(),
            slots: (0..slots).map(|_| None).collect(),
            pairs: HashMap::new(),
            ends_at: None,
            longest: HashMap::new(),
            caches: HashMap::new(),
        }
    }

    /// The same runner with an end, by the host's clock, ns: trials that would end later do not run, and a
    /// search answers with what it has.
    pub fn ends_at(mut self, ends_at: Option<u64>) -> Self {
        self.ends_at = ends_at;
        self
    }

    /// Runs the asks of the search until it has its answer. Nothing runs after this returns, even
    /// on errors. Errors: [`RunError`]; finished trials are in the store and are not run again by
    /// the next call.
    pub fn run<S: TrialSearch>(&mut self, search: &S) -> Result<S::Answer, RunError> {
        let ended = self.until_answered(search);
        let stopped = self.stop_all();
        // The first error is the one to report.
        let answer = ended?;
        stopped.map(|()| answer)
    }

    /// The start-up cache that a configuration asks for, trained now where it is not in place.
    pub fn ensure_cache(
        &mut self,
        configuration: &Configuration,
    ) -> Result<Option<InstalledCache>, RunError> {
        let Some(wanted) = configuration.cache else {
            return Ok(None);
        };
        if let Some(built) = self.cache_in_place(configuration, wanted) {
            return Ok(Some(built));
        }
        let built = match wanted.kind {
            CacheKind::Scc => self.build_shared_cache(0, configuration, wanted)?,
            CacheKind::AppCds | CacheKind::Aot => {
                self.train_with_room(0, configuration, wanted, CacheRoom::ANY)?
            }
        };
        Ok(Some(built))
    }

    /// A shared class cache: filled with room, with more if that is full, then rebuilt at the size
    /// of its content. Waits for each start.
    fn build_shared_cache(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        wanted: StartCache,
    ) -> Result<InstalledCache, RunError> {
        let mut size = FIRST_SIZE;
        loop {
            let first = CacheRoom {
                limits: SharedCacheLimits::for_first_filling(size),
                is_final: false,
            };
            let built = self.train_with_room(slot, configuration, wanted, first)?;
            let errand = cache::prepare_statistics(&self.of, configuration, &built)?;
            self.run_alone(slot, &errand)?;
            let held = cache::statistics_in(&errand.delivery)?;
            if held.full_percent() < FULL {
                let last = CacheRoom {
                    limits: held.rebuild_limits(),
                    is_final: true,
                };
                return self.train_with_room(slot, configuration, wanted, last);
            }
            size = Bytes::from_bytes(size.as_bytes() * 2);
        }
    }

    fn train_with_room(
        &mut self,
        slot: usize,
        configuration: &Configuration,
        wanted: StartCache,
        room: CacheRoom,
    ) -> Result<InstalledCache, RunError> {
        let training = CacheTraining::prepare_training(&self.of, configuration, wanted, room)?;
        let evidence = self.run_alone(slot, &training.errand)?;
        let place = training.place.clone();
        let built = training.install(&evidence)?;
        if room.is_final {
            self.caches.insert(place, built.clone());
        }
        Ok(built)
    }

    /// Starts the application once more with its cache and the JVM's own log of classes; `None`
    /// when the JVM wrote no such log.
    pub fn witness_classes(
        &mut self,
        configuration: &Configuration,
        built: &InstalledCache,
    ) -> Result<Option<LoadedClasses>, RunError> {
        let errand = cache::prepare_witness(&self.of, configuration, built)?;
        self.run_alone(0, &errand)?;
        Ok(cache::witnessed_classes(&errand.delivery))
    }

    fn until_answered<S: TrialSearch>(&mut self, search: &S) -> Result<S::Answer, RunError> {
        loop {
            let open = match search.next(&self.seen) {
                Ok(answer) => return Ok(answer),
                Err(open) => open,
            };
            if self.recall(&open)? {
                continue;
            }
            self.stop_unwanted(&open);
            while !self.run_turn(&open)? {}
        }
    }

    fn run_turn(&mut self, open: &WantedTrials) -> Result<bool, RunError> {
        if self.watcher.is_interrupted() {
            return Err(RunError::Interrupted);
        }
        if self.is_out_of_time(open) {
            self.stop_all()?;
            self.leave_out(open);
            return Ok(true);
        }
        if self.fill_slots(open)? {
            return Ok(true);
        }
        self.refuse_to_wait_for_nothing(open)?;
        self.host.wait_for_events(PATIENCE);
        self.collect_events()
    }

    /// Puts asks into free slots, in order; returns whether a record was found instead.
    fn fill_slots(&mut self, open: &WantedTrials) -> Result<bool, RunError> {
        if self.has_no_free_slot() {
            return Ok(false);
        }
        let reserved = self.reserved_slots(open);
        let mut open_pairs = HashSet::new();
        // A guess may take far longer than a back-off, so each wanted trial that waits for its next
        // attempt keeps a slot free of guesses; other wanted trials may use it.
        let mut kept = 0;
        let mut free = self.free_slots(&reserved).count();
        for (index, ask) in open.wanted.iter().chain(&open.guesses).enumerate() {
            let is_guess = index >= open.wanted.len();
            if is_guess && free <= kept {
                break;
            }
            if self.seen.record_for(ask).is_some() {
                continue;
            }
            let is_behind = ask.pair.is_some_and(|pair| !open_pairs.insert(pair));
            if is_behind || self.is_running(ask) {
                continue;
            }
            let tried = self.tried.value_for(ask).copied().unwrap_or_default();
            if tried.not_before > self.host.host_clock_ns() {
                kept += usize::from(self.slot_of_pair(ask).is_none());
                continue;
            }
            let Some(slot) = self.free_slot(ask, &reserved) else {
                continue;
            };
            if self.must_wait(slot, ask, tried) {
                continue;
            }
            if self.begin_ask(slot, ask, tried)? {
                return Ok(true);
            }
            if self.has_no_free_slot() {
                break;
            }
            free = self.free_slots(&reserved).count();
        }
        Ok(false)
    }

    /// An open search that wants nothing would never end.
    fn refuse_to_wait_for_nothing(&self, open: &WantedTrials) -> Result<(), RunError> {
        let mut wanted = open.wanted.iter();
        let is_coming = wanted.any(|ask| self.seen.record_for(ask).is_none());
        if is_coming || self.slots.iter().any(Option::is_some) {
            return Ok(());
        }
        let why = "it has no answer and asks for no trial";
        let hint =
            "this is a defect of loadline: please report it with `loadline show --experiment last`";
        Err(RunRefusal::new("searching", why, hint).into())
    }

    /// Slots of pairs that have begun and are not whole. No other trial comes between the two: each
    /// would keep its pair waiting, at the end of a matrix while other slots have nothing to do.
    fn reserved_slots(&self, open: &WantedTrials) -> HashSet<usize> {
        let wanted = open.wanted.iter();
        let of_pairs = wanted.filter(|ask| self.seen.record_for(ask).is_none());
        of_pairs.filter_map(|ask| self.slot_of_pair(ask)).collect()
    }

    fn has_no_free_slot(&self) -> bool {
        self.slots.iter().all(Option::is_some)
    }

    fn free_slots(&self, reserved: &HashSet<usize>) -> impl Iterator<Item = usize> {
        let slots = self.slots.iter().enumerate();
        let free = slots.filter(|(slot, job)| job.is_none() && !reserved.contains(slot));
        free.map(|(slot, _)| slot)
    }

    fn slot_of_pair(&self, ask: &TrialAsk) -> Option<usize> {
        ask.pair.and_then(|pair| self.pairs.get(&pair)).copied()
    }

    fn free_slot(&self, ask: &TrialAsk, reserved: &HashSet<usize>) -> Option<usize> {
        match self.slot_of_pair(ask) {
            Some(slot) => self.slots[slot].is_none().then_some(slot),
            None => self.free_slots(reserved).next(),
        }
    }

    fn is_running(&self, ask: &TrialAsk) -> bool {
        let is_it =
            |job: &SlotJob| matches!(&job.work, SlotWork::Trial(trial) if trial.ask.is_same(ask));
        self.slots.iter().flatten().any(is_it)
    }

    fn cache_in_place(
        &mut self,
        configuration: &Configuration,
        wanted: StartCache,
    ) -> Option<InstalledCache> {
        let place = cache::cache_path(&self.of, configuration, wanted.kind);
        if let Some(built) = self.caches.get(&place) {
            return Some(built.clone());
        }
        let built = cache::read(&place, wanted)?;
        self.caches.insert(place, built.clone());
        Some(built)
    }

    fn collect_events(&mut self) -> Result<bool, RunError> {
        let mut is_new = false;
        for slot in 0..self.slots.len() {
            if let Some(ending) = self.next_ending(slot) {
                is_new |= self.end_job(slot, ending)?;
            }
        }
        Ok(is_new)
    }

    fn next_ending(&mut self, slot: usize) -> Option<TrialEnding> {
        let job = self.slots[slot].as_mut()?;
        while let Some(event) = job.running.next() {
            match event {
                TrialEvent::Phase { .. } | TrialEvent::Soak(_) | TrialEvent::Look(_) => {}
                TrialEvent::Waits(why) => self.watcher.slot_waits(slot, &why),
                TrialEvent::Progress(progress) => self.watcher.trial_progress(slot, progress),
                TrialEvent::Ended(ending) => return Some(ending),
            }
        }
        None
    }

    /// Stops trials that are asked for no more: a guess that was wrong, a confirmation of a size
    /// that has failed. A training goes on: its cache is for others too.
    fn stop_unwanted(&mut self, open: &WantedTrials) {
        let all = || open.wanted.iter().chain(&open.guesses);
        let asks = |ask: &TrialAsk| all().any(|other| other.is_same(ask));
        for job in self.slots.iter_mut().flatten() {
            if matches!(&job.work, SlotWork::Trial(trial) if !asks(&trial.ask)) {
                job.stop_once();
            }
        }
    }

    fn stop_all(&mut self) -> Result<(), RunError> {
        self.slots.iter_mut().flatten().for_each(SlotJob::stop_once);
        let mut first = Ok(());
        loop {
            for slot in 0..self.slots.len() {
                if let Some(ending) = self.next_ending(slot) {
                    let ended = self.end_job(slot, ending).map(|_| ());
                    first = first.and(ended);
                }
            }
            if self.slots.iter().all(Option::is_none) {
                return first;
            }
            self.host.wait_for_events(PATIENCE);
        }
    }

    fn launch_order(
        &mut self,
        slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunError> {
        if let Some(refusal) = self.host.order_refusal(order) {
            return Err(refusal.into());
        }
        Ok(self.host.launch_trial(slot, order, delivery)?)
    }

    fn launch_errand(
        &mut self,
        slot: usize,
        errand: &CacheErrand,
    ) -> Result<Box<dyn TrialHandle>, RunError> {
        let running = self.launch_order(slot, &errand.order, &errand.delivery)?;
        self.watcher.training_begins(slot, &errand.configuration);
        Ok(running)
    }

    fn run_alone(&mut self, slot: usize, errand: &CacheErrand) -> Result<Evidence, RunError> {
        let mut running = self.launch_errand(slot, errand)?;
        let ending = loop {
            if self.watcher.is_interrupted() {
                running.stop_trial();
            }
            match running.next() {
                Some(TrialEvent::Ended(ending)) => break ending,
                Some(TrialEvent::Progress(progress)) => self.watcher.trial_progress(slot, progress),
                Some(TrialEvent::Waits(why)) => self.watcher.slot_waits(slot, &why),
                Some(TrialEvent::Phase { .. } | TrialEvent::Soak(_) | TrialEvent::Look(_)) => {}
                None => self.host.wait_for_events(PATIENCE),
            }
        };
        self.watcher.slot_ends(slot);
        if !matches!(ending, TrialEnding::Measured(_)) {
            // Ignored: the sweep by owner file removes leftovers.
            let _ = loadline_trial::remove_scratch(&errand.order.scratch);
        }
        match ending {
            TrialEnding::Stopped => Err(RunError::Interrupted),
            ending => job::measured_evidence(ending),
        }
    }
}
