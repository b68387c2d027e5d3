//! What runs at this moment, composed once a second for all viewers, and not at all without
//! viewers.
//!
//! Owns two texts: the parts of pages that change with results or trials, and the figures of the
//! running trials, every second.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Configuration, TrialPurpose};
use loadline_report::{content, live, redact};
use loadline_runner::store::{ResultRow, Store, StoreError, UnfinishedTrial};
use serde::Serialize;

use crate::ResultReading;
use crate::routes::row_listing;
use crate::trial::{TrialFollower, TrialSecond};

const PERIOD: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Feed {
    state: Mutex<FeedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FeedState {
    readers: usize,
    parts: FeedText,
    now: FeedText,
}

#[derive(Debug, Clone, Default)]
struct FeedText {
    version: u64,
    json: Arc<str>,
}

impl FeedText {
    fn set_json(&mut self, json: String) {
        self.version += 1;
        self.json = json.into();
    }
}

#[derive(Debug)]
pub struct FeedReader {
    feed: Arc<Feed>,
    parts: u64,
    now: u64,
}

impl Feed {
    pub fn read(self: &Arc<Self>) -> FeedReader {
        self.lock_feed().readers += 1;
        self.changed.notify_all();
        FeedReader {
            feed: Arc::clone(self),
            parts: 0,
            now: 0,
        }
    }

    pub fn reader_count(&self) -> usize {
        self.lock_feed().readers
    }

    fn lock_feed(&self) -> MutexGuard<'_, FeedState> {
        // Whoever panicked left whole texts: they are replaced, never changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn run(&self, directory: PathBuf, reading: ResultReading, is_over: &AtomicBool) {
        let mut poll = StorePoll::new(directory, reading);
        while !is_over.load(Ordering::Relaxed) {
            let state = self.lock_feed();
            if state.readers == 0 {
                // Followed logs are read again from the begin: there may be no viewer for days.
                poll.followed.clear();
                drop(self.changed.wait_timeout(state, PATIENCE));
                continue;
            }
            drop(state);
            let begin = Instant::now();
            let (parts, now) = poll.poll_store();
            let mut state = self.lock_feed();
            if let Some(parts) = parts {
                state.parts.set_json(parts);
            }
            state.now.set_json(now);
            drop(state);
            self.changed.notify_all();
            while begin.elapsed() < PERIOD && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(PATIENCE.min(PERIOD.saturating_sub(begin.elapsed())));
            }
        }
    }
}

impl FeedReader {
    pub fn next(&mut self) -> Vec<(&'static str, Arc<str>)> {
        let feed = Arc::clone(&self.feed);
        let mut state = feed.lock_feed();
        if state.now.version == self.now && state.parts.version == self.parts {
            let waited = feed.changed.wait_timeout(state, 2 * PERIOD);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut events = Vec::new();
        if state.parts.version > self.parts {
            self.parts = state.parts.version;
            events.push(("parts", Arc::clone(&state.parts.json)));
        }
        if state.now.version > self.now {
            self.now = state.now.version;
            events.push(("now", Arc::clone(&state.now.json)));
        }
        events
    }
}

impl Drop for FeedReader {
    fn drop(&mut self) {
        self.feed.lock_feed().readers -= 1;
    }
}

#[derive(Serialize)]
struct PageParts {
    list: String,
    progress: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct LiveResult {
    id: String,
    left: Option<String>,
    running: Vec<LiveTrial>,
}

#[derive(Serialize)]
struct LiveTrial {
    trial: String,
    label: String,
    phase: String,
    elapsed_s: f64,
    p99_ms: Option<f64>,
    rate: Option<f64>,
    seconds: Vec<TrialSecond>,
    log: Vec<String>,
}

struct StorePoll {
    directory: PathBuf,
    reading: ResultReading,
    store: Option<Store>,
    /// Results, finished trials, and what runs: the parts are of these.
    seen: Option<((u64, u64), Vec<String>)>,
    followed: HashMap<String, TrialFollower>,
    left: HashMap<String, (u64, Option<String>)>,
}

impl StorePoll {
    fn new(directory: PathBuf, reading: ResultReading) -> Self {
        Self {
            directory,
            reading,
            store: None,
            seen: None,
            followed: HashMap::new(),
            left: HashMap::new(),
        }
    }

    /// The parts where they have changed, and what runs now. A store that cannot be read shows
    /// nothing; the pages themselves say why.
    fn poll_store(&mut self) -> (Option<String>, String) {
        match self.try_poll() {
            Ok(seen) => seen,
            Err(_) => {
                self.store = None;
                self.seen = None;
                (None, "[]".to_owned())
            }
        }
    }

    fn try_poll(&mut self) -> Result<(Option<String>, String), StoreError> {
        let store = match self.store.take() {
            Some(store) => store,
            // One that is made later is seen then.
            None => Store::open_to_read(&self.directory)?,
        };
        let running = store.running_results()?;
        let ids: Vec<String> = running.iter().map(|row| row.id.clone()).collect();
        let seen = (store.row_counts()?, ids);
        let parts = if self.seen.as_ref() == Some(&seen) {
            None
        } else {
            Some(self.page_parts(&store, &running)?)
        };
        let now = self.running_now(&store, &running)?;
        self.seen = Some(seen);
        self.store = Store::is_in(&self.directory).then_some(store);
        Ok((parts, now))
    }

    fn page_parts(&self, store: &Store, running: &[ResultRow]) -> Result<String, StoreError> {
        let rows = store.all_results()?;
        let listings: Vec<_> = rows
            .iter()
            .map(|row| row_listing(row, &self.reading))
            .collect();
        let progress = running.iter().map(|row| {
            let text = match (self.reading.view)(store, row) {
                Ok(view) => live::progress_html(&view),
                Err(why) => live::unreadable_notice(&why),
            };
            (row.id.clone(), text)
        });
        Ok(json_or_null(&PageParts {
            list: live::listing_html(&listings),
            progress: progress.collect(),
        }))
    }

    fn running_now(&mut self, store: &Store, running: &[ResultRow]) -> Result<String, StoreError> {
        let mut all = Vec::new();
        let mut alive = Vec::new();
        for row in running {
            let trials = store.running_trials(&row.id)?;
            alive.extend(trials.iter().map(|(_, trial)| trial.id.clone()));
            let left = self.time_left(store, row);
            let running = trials.iter();
            let running =
                running.filter_map(|(purpose, trial)| self.live_trial(store, *purpose, trial));
            all.push(LiveResult {
                id: row.id.clone(),
                left,
                running: running.collect(),
            });
        }
        self.followed.retain(|id, _| alive.contains(id));
        self.left
            .retain(|id, _| running.iter().any(|row| row.id == *id));
        Ok(json_or_null(&all))
    }

    fn time_left(&mut self, store: &Store, row: &ResultRow) -> Option<String> {
        let known = self.left.get(&row.id).filter(|(at, _)| *at == row.trials);
        if let Some((_, text)) = known {
            return text.clone();
        }
        let text = (self.reading.left)(store, row);
        self.left.insert(row.id.clone(), (row.trials, text.clone()));
        text
    }

    fn live_trial(
        &mut self,
        store: &Store,
        purpose: TrialPurpose,
        trial: &UnfinishedTrial,
    ) -> Option<LiveTrial> {
        if !self.followed.contains_key(&trial.id) {
            let followed = TrialFollower::follow_log(&store.trial_log_path(&trial.id))?;
            self.followed.insert(trial.id.clone(), followed);
        }
        let followed = self.followed.get_mut(&trial.id)?;
        followed.read();
        let progress = followed.progress;
        Some(LiveTrial {
            trial: trial.id.clone(),
            label: trial_label(purpose, &trial.configuration, trial.repeat),
            phase: followed.phase.clone(),
            elapsed_s: progress.map_or(0.0, |p| p.elapsed.as_secs_f64()),
            p99_ms: progress.and_then(|p| p.p99).map(|p| p.as_secs_f64() * 1e3),
            rate: progress.and_then(|p| p.rate),
            seconds: followed.seconds.iter().cloned().collect(),
            // Redacted as everywhere.
            log: followed
                .lines
                .iter()
                .map(|line| redact::redact_line(line))
                .collect(),
        })
    }
}

fn trial_label(purpose: TrialPurpose, configuration: &Configuration, repeat: u32) -> String {
    let mut text = content::trials::purpose(purpose).to_owned();
    if let Some(memory) = configuration.memory {
        text += &format!(" {memory}");
    }
    if let Some(cpu) = configuration.cpu {
        text += &format!(", {cpu} CPU");
    }
    format!("{text} #{repeat}")
}

fn json_or_null(value: &impl Serialize) -> String {
    // Numbers that are none become null; nothing else can fail.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}
