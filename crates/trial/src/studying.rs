//! The study of a start's memory after its judged load: ageing, the live set, the squeeze.
//!
//! Owns when each part ends. The order has the load of its phases; [`crate::squeezing`] lowers the
//! limit. Problems here never change the earlier judgement.

use std::io::Read;
use std::time::{Duration, Instant};

use loadline_analysis::budget::limit_after_squeeze;
use loadline_analysis::record::{
    Evidence, SecondEvidence, SqueezeEnd, SqueezeEvidence, TrialPhase,
};
use loadline_jvm::attach::run_jcmd;
use loadline_jvm::footprint::live_heap;
use loadline_jvm::gclog;
use loadline_jvm::hsperf::HsperfCounters;
use loadline_protocol::{MemoryStudy, StudyGoal, TrialOrder};
use loadline_sizing::Bytes;

use crate::instance::Instance;
use crate::parts::read_ahead;
use crate::soaking::old_in_use;
use crate::squeezing::Squeezing;

/// After this many answers an application may stop growing before its burst is over...
const FEWEST: u64 = 2_000;

/// ... that is, for this long its anonymous memory has grown by less than `STILL_SHARE` thousandths
/// and its old generation by less than `OLD_SHARE`. The kernel does not see objects fill a touched
/// heap: a store of 10,000 spans filled a heap that was chosen after 4,000 requests.
const STILL: Duration = Duration::from_secs(5);
const STILL_SHARE: u64 = 2;
const OLD_SHARE: u64 = 20;

/// Most that a squeeze waits for memory to stand still. A burst leaves the compilers no CPU: WireMock on
/// one CPU took 54 MiB in the first seconds behind its burst.
const LONGEST_SETTLING: Duration = Duration::from_secs(20);

const LOOK: Duration = Duration::from_millis(500);

/// Most of a GC log that is read for the live set, bytes.
const LARGEST_LOG: u64 = 32 << 20;

/// Number of last collections; their smallest heap counts as the live set if the JVM cannot be
/// asked.
const COLLECTIONS: usize = 5;

pub(crate) struct StudyCourse {
    study: MemoryStudy,
    requests: u64,
    still: Option<StandStill>,
    looked: Instant,
    seen: SqueezeEvidence,
    /// Since when the squeeze waits for memory to stand still.
    settling: Option<Instant>,
    squeezing: Option<Squeezing>,
    before: Evidence,
}

#[derive(Clone, Copy)]
struct StandStill {
    since: Instant,
    anon: Bytes,
    old: Bytes,
}

impl StandStill {
    fn holds(&self, now: &Self) -> bool {
        let within = |least: Bytes, now: Bytes, share| {
            now <= least.saturating_add(least.mul_ratio(share, 1000))
        };
        within(self.anon, now.anon, STILL_SHARE) && within(self.old, now.old, OLD_SHARE)
    }
}

impl StudyCourse {
    pub(crate) fn new(study: MemoryStudy) -> Self {
        Self {
            study,
            requests: 0,
            still: None,
            looked: Instant::now(),
            seen: SqueezeEvidence {
                aged: None,
                burst_requests: 0,
                steps: Vec::new(),
                end: SqueezeEnd::NotPossible("the application did not get that far".to_owned()),
                read_ahead: None,
                limit_after: None,
            },
            settling: None,
            squeezing: None,
            before: Evidence::default(),
        }
    }

    pub(crate) fn count(&mut self, phase: TrialPhase, second: &SecondEvidence) {
        match (phase, &mut self.squeezing) {
            (TrialPhase::Age, _) => self.requests += second.achieved.unwrap_or(0),
            (TrialPhase::Squeeze, Some(squeezing)) => squeezing.count(second),
            _ => {}
        }
    }

    /// Does the due work; `true` when the phase has served its purpose.
    pub(crate) fn pass(&mut self, phase: TrialPhase, instance: &Instance) -> bool {
        match phase {
            TrialPhase::Age => {
                self.requests >= self.study.burst_requests
                    || self.requests >= FEWEST && self.stands_still(instance)
            }
            TrialPhase::Squeeze => self.pass_squeeze(instance),
            _ => false,
        }
    }

    fn stands_still(&mut self, instance: &Instance) -> bool {
        let now = Instant::now();
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = now;
        let read = instance.container.application_group().read();
        let Some(anon) = read.ok().and_then(|sample| sample.memory?.anon) else {
            return false;
        };
        // Behind the burst the heap is as full as it may become.
        let processes = match self.settling {
            Some(_) => Vec::new(),
            None => instance.process_ids(),
        };
        let counters = processes
            .iter()
            .filter_map(|pid| HsperfCounters::for_jvm(*pid).ok());
        let old = counters.filter_map(|counters| old_in_use(&counters));
        let now = StandStill {
            since: now,
            anon,
            old: old.fold(Bytes::default(), Bytes::saturating_add),
        };
        let still = *self.still.get_or_insert(now);
        if !still.holds(&now) {
            self.still = Some(now);
            return false;
        }
        now.since.duration_since(still.since) >= STILL
    }

    fn pass_squeeze(&mut self, instance: &Instance) -> bool {
        if let Some(since) = self.settling {
            if !self.stands_still(instance) && since.elapsed() < LONGEST_SETTLING {
                return false;
            }
            self.settling = None;
            let answered = self.before.load.iter().map(|load| load.ok).sum();
            self.seen.aged = instance.read_parts(answered);
            match Squeezing::begin(instance.container.application_group()) {
                Ok(squeezing) => self.squeezing = Some(squeezing),
                Err(why) => self.seen.end = SqueezeEnd::NotPossible(why),
            }
        }
        let Some(squeezing) = &mut self.squeezing else {
            return true;
        };
        squeezing.pass();
        if squeezing.has_recovered() {
            // The rule for the limit behind asks how it ended.
            let (steps, end) = squeezing.told();
            self.seen.steps = steps;
            if let Some(end) = end {
                self.seen.end = end;
            }
            self.before.squeeze = Some(self.seen.clone());
            squeezing.settle_at(limit_after_squeeze(&self.before));
        }
        squeezing.is_settled()
    }

    /// Before the squeeze; `before` is the evidence so far. `false` if no squeeze is possible.
    pub(crate) fn prepare_squeeze(
        &mut self,
        instances: &[Instance],
        (order, is_pod): (&TrialOrder, bool),
        before: Evidence,
    ) -> bool {
        self.seen.burst_requests = self.requests;
        self.before = before;
        let refused = match instances {
            _ if is_pod => "the limit of a pod is its engine's to change".to_owned(),
            [instance] if instance.container.is_within_reach() => {
                let places = instance.container.written_directories();
                self.seen.read_ahead = read_ahead(order, &places);
                (self.still, self.settling) = (None, Some(Instant::now()));
                return true;
            }
            [_] => "the application is out of reach".to_owned(),
            several => format!("it runs as {} instances", several.len()),
        };
        self.seen.end = SqueezeEnd::NotPossible(refused);
        false
    }

    /// Ends the squeeze, which is cut where the application or, as `is_unloaded` says, the load command
    /// ended before.
    pub(crate) fn end_squeeze(&mut self, instance: &Instance, is_unloaded: bool) {
        let state = &instance.state;
        let ended = match (state.is_over(), is_unloaded) {
            (true, _) => Some((
                format!("the application ended: {}", state.how_it_ended()),
                instance.was_too_large(),
            )),
            (false, true) => {
                let why = "the load command ended in the squeeze; let it send for {duration_s}";
                Some((why.to_owned(), false))
            }
            (false, false) => None,
        };
        if let (Some(_), Some((how, _))) = (self.settling, &ended) {
            self.seen.end = SqueezeEnd::NotPossible(how.clone());
        }
        if let Some(squeezing) = &mut self.squeezing {
            squeezing.end(ended);
            let (steps, end) = squeezing.told();
            self.seen.steps = steps;
            self.seen.end = end.unwrap_or(SqueezeEnd::OutOfTime);
            self.seen.limit_after = squeezing.after;
        }
    }

    /// Whether the judged load runs once more: behind a squeeze only at a limit for it.
    pub(crate) fn is_followed(&self) -> bool {
        self.study.goal == StudyGoal::Burst || self.seen.limit_after.is_some()
    }

    /// Requests a collection and reads the live heap, in a study of the live set; `None` if unknown.
    pub(crate) fn ask_live_set(&self, instance: &Instance, order: &TrialOrder) -> Option<Bytes> {
        let is_asked = self.study.goal == StudyGoal::LiveSet;
        if !is_asked || !instance.is_jvm || !instance.container.is_within_reach() {
            return None;
        }
        let ask = |pid: &u32| live_heap(&run_jcmd(*pid, "GC.class_histogram").ok()?);
        let asked = instance.process_ids().iter().find_map(ask);
        asked.or_else(|| {
            // OpenJ9, or a JVM that takes no orders: its log says what collections left.
            let path = order.gc_log.as_deref()?;
            let log = instance.container.open_file(path).ok()?;
            let log = gclog::read(log.take(LARGEST_LOG), usize::MAX);
            let heaps = log.pauses.iter().rev().filter_map(|pause| pause.heap);
            let last = heaps.take(COLLECTIONS).map(|heap| heap.after);
            last.min().map(Bytes::from_bytes)
        })
    }

    pub(crate) fn finish(self) -> Option<SqueezeEvidence> {
        (self.study.goal == StudyGoal::Wall).then_some(self.seen)
    }
}
