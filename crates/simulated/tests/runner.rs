//! The runner when trials go wrong: it repeats, waits, and keeps finished trials at the end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::record::{
    Evidence, InvalidReason, MachineDescription, MeasurementFailure, TrialPurpose, TrialVerdict,
};
use loadline_analysis::search::{Next, SeenTrials, TrialAsk, TrialSearch, WantedTrials};
use loadline_experiment::Experiment;
use loadline_protocol::{RunRefusal, TrialEnding, TrialEvent, TrialOrder};
use loadline_runner::agenda::Agenda;
use loadline_runner::host::{CpuUse, Delivery, MachineUse, TrialHandle, TrialHost};
use loadline_runner::runner::{ATTEMPTS, RunError};
use loadline_runner::store::StoreError;
use loadline_simulated::{SimulatedHost, World};

type Fault = fn(&TrialOrder, attempt: u32) -> Option<TrialEnding>;

/// A simulated host with some faulty trials.
struct Faulty {
    inner: SimulatedHost,
    fault: Fault,
    /// When each configuration was launched, ns, by its label.
    launched: BTreeMap<String, Vec<u64>>,
    /// The last order.
    last: Option<TrialOrder>,
    /// Until when another program uses the CPUs, ns.
    busy_until: u64,
}

impl Faulty {
    fn new(slots: usize, fault: Fault) -> Self {
        Self {
            inner: SimulatedHost::new(World::default(), 1, slots),
            fault,
            launched: BTreeMap::new(),
            last: None,
            busy_until: 0,
        }
    }
}

struct Replaced {
    inner: Box<dyn TrialHandle>,
    ending: Option<TrialEnding>,
    is_stopped: bool,
}

impl TrialHandle for Replaced {
    fn next(&mut self) -> Option<TrialEvent> {
        let event = self.inner.next()?;
        let TrialEvent::Ended(real) = event else {
            return Some(event);
        };
        let mut ending = match self.ending.take() {
            Some(ending) if !self.is_stopped => ending,
            _ => real.clone(),
        };
        // It took as long as the whole trial.
        if let (TrialEnding::Measured(told), TrialEnding::Measured(real)) = (&mut ending, real) {
            told.phases = real.phases;
        }
        Some(TrialEvent::Ended(ending))
    }

    fn stop_trial(&mut self) {
        self.is_stopped = true;
        self.inner.stop_trial();
    }
}

impl TrialHost for Faulty {
    fn host_machine(&self) -> MachineDescription {
        self.inner.host_machine()
    }

    fn slot_count(&self) -> usize {
        self.inner.slot_count()
    }

    fn order_refusal(&self, order: &TrialOrder) -> Option<RunRefusal> {
        self.inner.order_refusal(order)
    }

    fn launch_trial(
        &mut self,
        slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal> {
        let label = order.configuration.label.clone();
        let launched = self.launched.entry(label).or_default();
        launched.push(self.inner.host_clock_ns());
        let attempt = launched.len() as u32;
        self.last = Some(order.clone());
        Ok(Box::new(Replaced {
            inner: self.inner.launch_trial(slot, order, delivery)?,
            ending: (self.fault)(order, attempt),
            is_stopped: false,
        }))
    }

    fn wait_for_events(&mut self, patience: Duration) {
        self.inner.wait_for_events(patience);
    }

    fn host_clock_ns(&self) -> u64 {
        self.inner.host_clock_ns()
    }

    fn machine_use(&mut self) -> MachineUse {
        let is_busy = self.inner.host_clock_ns() < self.busy_until;
        MachineUse::Seen(CpuUse {
            share: if is_busy { 0.31 } else { 0.0 },
            busiest: None,
        })
    }
}

fn invalid(cause: InvalidReason) -> TrialEnding {
    let failure = Some(MeasurementFailure::new(cause, "as ordered"));
    TrialEnding::Measured(Box::new(Evidence {
        failure,
        ..Evidence::default()
    }))
}

/// The first trial, but not its last attempt.
fn is_early(order: &TrialOrder, attempt: u32) -> bool {
    is_first(order) && attempt < ATTEMPTS
}

fn is_first(order: &TrialOrder) -> bool {
    order.configuration.label == "512Mi"
}

fn experiment() -> Experiment {
    let levels = "levels = [\"512Mi\", \"640Mi\", \"768Mi\", \"1Gi\"]";
    rig::experiment(&format!("[[factor]]\nname = \"memory\"\n{levels}"), "100/s")
}

/// Verdicts by label, the trials of the store, and the host.
fn run(host: &mut Faulty) -> (Result<BTreeMap<String, TrialVerdict>, RunError>, usize) {
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let experiment = experiment();
    let matrix = Agenda::new(&experiment).matrix;
    let at = (&store, result.as_str());
    let ran = rig::run(host, &mut rig::watch(), at, &experiment, &matrix);
    let verdicts = ran.map(|records| {
        let verdict = |r: &std::sync::Arc<_>| -> (String, TrialVerdict) {
            let record: &loadline_analysis::record::TrialRecord = r;
            (record.configuration.label.clone(), record.verdict)
        };
        records.iter().map(verdict).collect()
    });
    (verdicts, store.finished_trials(&result).unwrap().len())
}

/// Launch times of a trial with two faulty first attempts, and of the others.
fn repeated(fault: Fault) -> (Vec<u64>, Vec<u64>) {
    let mut host = Faulty::new(1, fault);
    let (verdicts, kept) = run(&mut host);
    let verdicts = verdicts.unwrap();
    assert!(
        verdicts.values().all(|v| *v == TrialVerdict::Pass),
        "{verdicts:?}"
    );
    assert_eq!(kept, 6, "two attempts are records too");
    let first = host.launched.remove("512Mi").unwrap();
    assert_eq!(first.len(), 3);
    (first, host.launched.into_values().flatten().collect())
}

#[test]
fn a_disturbed_trial_is_repeated_after_a_while_and_others_run_meanwhile() {
    let (first, others) =
        repeated(|order, attempt| is_early(order, attempt).then(|| invalid(InvalidReason::Noise)));
    let is_between = |at: &u64| first[0] < *at && *at < first[1];
    assert!(others.iter().any(is_between), "{first:?} {others:?}");
}

/// Seconds from the end of a disturbed trial to its second attempt, on a machine that is busy until then.
fn waits(busy_until: u64) -> u64 {
    let levels = "[[factor]]\nname = \"memory\"\nlevels = [\"512Mi\"]";
    let experiment = rig::experiment(levels, "100/s");
    let matrix = Agenda::new(&experiment).matrix;
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let mut host = Faulty::new(1, |_, attempt| {
        (attempt == 1).then(|| invalid(InvalidReason::Noise))
    });
    host.busy_until = busy_until;
    let at = (&store, result.as_str());
    let records = rig::run(&mut host, &mut rig::watch(), at, &experiment, &matrix).unwrap();
    assert_eq!(records[0].verdict, TrialVerdict::Pass);
    let launched = &host.launched["512Mi"];
    assert_eq!(launched.len(), 2);
    (launched[1] - records[0].total_length().as_nanos() as u64) / 1_000_000_000
}

#[test]
fn a_second_attempt_waits_for_a_quiet_machine_and_not_for_ever() {
    let (quiet, busy, always) = (waits(0), waits(40_000_000_000), waits(u64::MAX));
    assert!(quiet <= 4, "{quiet}");
    assert!((30..=41).contains(&busy), "{busy}");
    assert!((58..=64).contains(&always), "{always}");
}

#[test]
fn a_budget_ends_the_wait_for_a_quiet_machine() {
    let mut host = Faulty::new(1, |_, _| Some(invalid(InvalidReason::Noise)));
    host.busy_until = u64::MAX;
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let mut experiment = experiment();
    let budget = Duration::from_secs(40);
    experiment.search.budget = Some(budget);
    let matrix = Agenda::new(&experiment).matrix;
    let at = (&store, result.as_str());
    let records = rig::run(&mut host, &mut rig::watch(), at, &experiment, &matrix).unwrap();
    assert!(records.iter().all(|record| record.is_left_out()));
    let took = host.inner.elapsed();
    assert!(took <= budget && took > budget / 2, "{took:?}");
    let kept = store.finished_trials(&result).unwrap();
    assert!(!kept.is_empty() && kept.iter().all(|record| !record.id.is_empty()));
}

#[test]
fn a_trial_that_no_disturbance_voided_is_repeated_at_once() {
    let faults: [Fault; 3] = [
        |order, attempt| is_early(order, attempt).then_some(TrialEnding::Stopped),
        |order, attempt| is_early(order, attempt).then(|| invalid(InvalidReason::Dependency)),
        |order, attempt| is_early(order, attempt).then(|| invalid(InvalidReason::Metrics)),
    ];
    for fault in faults {
        let (first, others) = repeated(fault);
        let is_between = |at: &u64| first[0] < *at && *at < first[2];
        assert!(!others.iter().any(is_between), "{first:?} {others:?}");
    }
}

/// The least busy slot's share of the time of a matrix of these levels of memory, ten trials for each
/// slot, one in a hundred of which is lost: also among the last, where it costs the most.
fn least_busy(levels: &[&str]) -> f64 {
    let asked = std::env::var("LOADLINE_SLOTS").ok();
    let slots: usize = asked.map_or(40, |text| text.parse().unwrap());
    let trials = 10 * slots;
    let repeats = trials / levels.len();
    let factor = format!("[[factor]]\nname = \"memory\"\nlevels = {levels:?}");
    let experiment = rig::experiment(&format!("[run]\nrepeats = {repeats}\n{factor}"), "100/s");
    let matrix = Agenda::new(&experiment).matrix;
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let mut host = Faulty::new(slots, |_, attempt| {
        (attempt % 100 == 97).then(|| invalid(InvalidReason::RuntimeLost))
    });
    let mut watch = rig::watch();
    let at = (&store, result.as_str());
    let records = rig::run(&mut host, &mut watch, at, &experiment, &matrix).unwrap();
    assert_eq!(records.len(), trials);
    assert!(records.iter().all(|record| record.verdict.is_evidence()));
    let lost = watch.measured as usize - trials;
    assert!(lost >= trials / 100, "{lost}");
    let all = host.inner.elapsed();
    assert_eq!(watch.worked.len(), slots);
    let shares = watch.worked.values().map(|w| w.div_duration_f64(all));
    let least = shares.fold(1.0, f64::min);
    println!(
        "{lost} of {trials} lost; the least busy of {slots} slots worked {:.1} % of the time",
        100.0 * least
    );
    least
}

/// `LOADLINE_SLOTS=200` is the long form.
#[test]
fn slots_are_busy() {
    assert!(least_busy(&["512Mi", "640Mi", "768Mi", "1Gi"]) >= 0.9);
    // The two of a pair stay in one slot: where it loses two, the others wait for two of twelve.
    assert!(least_busy(&["768Mi", "1Gi"]) >= 0.83);
}

/// Wants one trial, and guesses that it may need another.
struct WithGuess {
    wanted: TrialAsk,
    guess: TrialAsk,
}

impl TrialSearch for WithGuess {
    type Answer = TrialVerdict;

    fn next(&self, seen: &SeenTrials) -> Next<TrialVerdict> {
        let open = || WantedTrials {
            wanted: vec![self.wanted.clone()],
            guesses: vec![self.guess.clone()],
        };
        seen.record_for(&self.wanted)
            .map(|r| r.verdict)
            .ok_or_else(open)
    }
}

/// Labels of all launches, when the first two attempts at a wanted trial are disturbed.
fn launched_beside_a_back_off(slots: usize) -> Vec<String> {
    let mut host = Faulty::new(slots, |order, attempt| {
        is_early(order, attempt).then(|| invalid(InvalidReason::Noise))
    });
    let directory = rig::directory();
    let (store, result) = rig::store(directory.path());
    let experiment = experiment();
    let mut asks = experiment.configurations().into_iter().map(|c| TrialAsk {
        configuration: c,
        purpose: TrialPurpose::Matrix,
        repeat: 1,
        start_deadline: Duration::from_secs(60),
        pair: None,
    });
    let search = WithGuess {
        wanted: asks.next().unwrap(),
        guess: asks.next().unwrap(),
    };
    let at = (&store, result.as_str());
    let ran = rig::run(&mut host, &mut rig::watch(), at, &experiment, &search);
    assert_eq!(ran.unwrap(), TrialVerdict::Pass);
    host.launched.into_keys().collect()
}

#[test]
fn a_guess_does_not_take_the_slot_that_a_wanted_trial_waits_for() {
    assert_eq!(launched_beside_a_back_off(1), ["512Mi"]);
    assert_eq!(launched_beside_a_back_off(2), ["512Mi", "640Mi"]);
}

/// Wants one trial after the other.
struct InTurn(Vec<TrialAsk>);

impl TrialSearch for InTurn {
    type Answer = usize;

    /// How many ran before the time was over.
    fn next(&self, seen: &SeenTrials) -> Next<usize> {
        for (ran, ask) in self.0.iter().enumerate() {
            let open = || WantedTrials {
                wanted: vec![ask.clone()],
                guesses: Vec::new(),
            };
            if seen.record_for(ask).ok_or_else(open)?.is_left_out() {
                return Ok(ran);
            }
        }
        Ok(self.0.len())
    }
}

#[test]
fn a_long_squeeze_does_not_keep_short_starts_from_the_time_that_is_left() {
    let mut experiment = experiment();
    let ask = |purpose, repeat| TrialAsk {
        configuration: experiment.configurations().remove(0),
        purpose,
        repeat,
        start_deadline: Duration::from_secs(60),
        pair: None,
    };
    let squeeze = ask(TrialPurpose::Squeeze, 1);
    let starts = (1..=9).map(|repeat| ask(TrialPurpose::Prove, repeat));
    let search = InTurn([squeeze].into_iter().chain(starts).collect());
    let mut took = Vec::new();
    let mut ran = |budget| {
        let mut host = Faulty::new(1, |_, _| None);
        let directory = rig::directory();
        let (store, result) = rig::store(directory.path());
        experiment.search.budget = Some(budget);
        let at = (&store, result.as_str());
        let ran = rig::run(&mut host, &mut rig::watch(), at, &experiment, &search);
        took.push(host.inner.elapsed());
        ran.unwrap()
    };
    let all = ran(Duration::from_secs(1000));
    assert_eq!(all, 10);
    // The squeeze takes 146 s, a start 6 s.
    let some = ran(Duration::from_secs(170));
    assert_eq!(some, 4, "{took:?}");
    assert!(took[1] <= Duration::from_secs(170), "{took:?}");
}

#[test]
fn what_would_come_to_the_same_is_not_tried_as_often() {
    let faults: [(InvalidReason, Fault, usize); 2] = [
        (
            InvalidReason::OtherOptions,
            |order, _| is_first(order).then(|| invalid(InvalidReason::OtherOptions)),
            1,
        ),
        (
            InvalidReason::LoadCommand,
            |order, _| is_first(order).then(|| invalid(InvalidReason::LoadCommand)),
            2,
        ),
    ];
    for (reason, fault, attempts) in faults {
        let (verdicts, kept) = run(&mut Faulty::new(1, fault));
        assert_eq!(verdicts.unwrap()["512Mi"], TrialVerdict::Invalid(reason));
        assert_eq!(kept, 3 + attempts, "{reason:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_said_so_after_three_attempts_that_waited_longer_each() {
    let mut host = Faulty::new(4, |order, _| {
        is_first(order).then(|| invalid(InvalidReason::Noise))
    });
    let (verdicts, kept) = run(&mut host);
    assert_eq!(
        verdicts.unwrap()["512Mi"],
        TrialVerdict::Invalid(InvalidReason::Noise)
    );
    assert_eq!(kept as u32, 3 + ATTEMPTS);
    let at = &host.launched["512Mi"];
    let seconds = |from: usize| (at[from + 1] - at[from]) / 1_000_000_000;
    // The same trial again, and the wait before it: 2 s, then 4 s.
    assert!(seconds(1) > seconds(0), "{at:?}");
}

#[test]
fn a_full_disk_ends_the_run_with_the_store_s_error() {
    let mut host = Faulty::new(1, |order, _| {
        is_first(order).then(|| invalid(InvalidReason::DiskFull))
    });
    let (ended, _) = run(&mut host);
    let is_full = matches!(ended, Err(RunError::Store(StoreError::Full { .. })));
    assert!(is_full, "{ended:?}");
}

#[test]
fn a_refusal_ends_the_run_and_stops_the_others() {
    let mut host = Faulty::new(4, |order, _| {
        let refusal = RunRefusal::new("starting", "permission denied", "choose another user");
        is_first(order).then_some(TrialEnding::Refused(refusal))
    });
    // The others take at least as long as the refused one.
    let (ended, kept) = run(&mut host);
    let Err(RunError::Refused(refusal)) = ended else {
        panic!("{ended:?}")
    };
    assert_eq!(refusal.hint, "choose another user");
    assert!(kept < 4, "{kept}");
    let delivery = Delivery {
        log: Default::default(),
        files: Vec::new(),
    };
    let order = host.last.clone().unwrap();
    for slot in 0..4 {
        let launched = host.inner.launch_trial(slot, &order, &delivery);
        assert!(launched.is_ok(), "slot {slot} is free again");
    }
}
