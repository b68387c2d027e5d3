//! Each pause explained from the trace and from each kind of sample, and how often they agree.
//!
//! Owns the scores and the targets. Pure but for the text it returns.

use std::process::ExitCode;

use loadline_analysis::attribution::{Attribution, PauseClass, PauseSources, attribute_pause};
use loadline_analysis::estimate::{
    CounterSample, FlatlineRule, PeriodBoundaries, phase_locked_spans, ran_spans, throttled_spans,
};
use loadline_analysis::span::{TimeSpan, TimeSpans};
use loadline_sizing::Cpus;

use crate::scene::Seen;

/// Title of the table; one row a run and one line below it for each kind of sample.
pub const HEADER: &str = "\
run            samples        pauses  >= 90 % explained  dominant cause  error a pause  throttled in them  sampler";

/// The kinds of samples, in the order of [`Score::kinds`]; the first is the truth.
const KINDS: [&str; 4] = ["trace", "1 kHz", "phase-locked", "1 Hz"];

/// How one kind of sample did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kind {
    pauses: u64,
    explained: u64,
    agreed: u64,
    /// Sum over pauses of the difference of throttled time, ns.
    error: u64,
    /// Sum over pauses of throttled time, ns.
    throttled: u64,
    /// CPU of the sampler as a share of one CPU; `None` without a sampler.
    cost: Option<f64>,
}

/// How one run went.
#[derive(Debug, Clone)]
pub struct Score {
    kinds: [Kind; 4],
    lost: u64,
    throttled: u64,
    /// How well the samplers kept their time.
    watched: String,
}

/// Places throttled time as samples of any distance allow: a growth of D is [t − D/cpus, t].
/// Samples a second apart, which is what the study had, get the dominant cause of a pause right
/// in less than six of ten.
fn smeared_spans(samples: &[CounterSample], cpus: usize) -> TimeSpans {
    let span = |pair: &[CounterSample]| {
        let (before, now) = (&pair[0], &pair[1]);
        let growth = now.throttled.saturating_sub(before.throttled);
        let length = (growth / cpus.max(1) as u64).min(now.at - before.at);
        TimeSpan::new(now.at - length, now.at)
    };
    samples.windows(2).map(span).collect()
}

fn throttled(of: &Attribution) -> u64 {
    of.class_ns(PauseClass::GcThrottled) + of.class_ns(PauseClass::MutatorThrottled)
}

impl Score {
    /// Scores a run on a machine with this many CPUs.
    pub fn of(seen: &Seen, cpus: usize) -> Self {
        let logged = seen.log.sources();
        let slow = smeared_spans(&every_second(&seen.fast.0), cpus);
        let placed = [
            fast_sources(seen, &logged),
            with(&logged, locked(seen, cpus)),
            with(&logged, slow),
        ];
        let all_stood = seen.scheduled.all_stood();
        let mut kinds = [Kind::default(); 4];
        kinds[1].cost = Some(seen.fast.1.cpu_share());
        kinds[2].cost = Some(seen.locked.1.cpu_share());
        for (tid, pause) in &seen.pauses {
            let truth = attribute_pause(*pause, &truth(seen, &logged, &all_stood, *tid), 0);
            kinds[0].count(&truth, &truth);
            for (kind, sources) in kinds[1..].iter_mut().zip(&placed) {
                kind.count(&attribute_pause(*pause, sources, 0), &truth);
            }
        }
        Self {
            kinds,
            lost: seen.scheduled.lost,
            watched: watched(seen),
            throttled: seen.throttled,
        }
    }

    /// Its lines of the table.
    pub fn row(&self, jdk: &str, limit: Cpus) -> String {
        let mut lines = Vec::new();
        for (index, (name, kind)) in KINDS.iter().zip(&self.kinds).enumerate() {
            let run = match index {
                0 => format!("{jdk} {limit} CPU"),
                _ => String::new(),
            };
            lines.push(kind.line(&run, name));
        }
        lines.push(self.watched.clone());
        if self.lost > 0 {
            lines.push(format!("  the trace lost {} events", self.lost));
        }
        lines.join("\n")
    }
}

/// The pauses that 1 kHz samples and the trace explain differently, or not: milliseconds of each
/// class that has some.
pub fn misses(seen: &Seen, cpus: usize) -> String {
    let logged = seen.log.sources();
    let all_stood = seen.scheduled.all_stood();
    let placed = fast_sources(seen, &logged);
    let phase_locked = with(&logged, locked(seen, cpus));
    let mut lines = Vec::new();
    for (tid, pause) in &seen.pauses {
        let truth = attribute_pause(*pause, &truth(seen, &logged, &all_stood, *tid), 0);
        let fast = attribute_pause(*pause, &placed, 0);
        let locked = attribute_pause(*pause, &phase_locked, 0);
        let off = throttled(&fast).abs_diff(throttled(&truth));
        if fast.covered_share() < 0.9 || fast.dominant() != truth.dominant() || off > 10_000_000 {
            lines.push(format!(
                "  {tid} {}+{} ms\n    trace  {}\n    1 kHz  {}\n    locked {}",
                pause.start,
                pause.length_ns() / 1_000_000,
                in_words(&truth),
                in_words(&fast),
                in_words(&locked)
            ));
        }
    }
    lines.join("\n")
}

fn in_words(of: &Attribution) -> String {
    let some = PauseClass::ALL
        .iter()
        .filter(|class| of.class_ns(**class) > 500_000);
    let each = some.map(|class| {
        format!(
            "{} {:.1}",
            class.class_name(),
            of.class_ns(*class) as f64 / 1e6
        )
    });
    each.collect::<Vec<_>>().join(", ")
}

fn watched(seen: &Seen) -> String {
    let (fast, locked) = (&seen.fast.1, &seen.locked.1);
    let lock = locked.phase_lock.map(|l| l.uncertainty);
    format!(
        "  1 kHz: {} samples, {} gaps, the longest {:.1?}, real-time {}; boundary known to {}",
        fast.samples,
        fast.gap_count,
        fast.longest_gap,
        fast.is_realtime,
        lock.map_or("nothing".to_owned(), |u| format!("{u:.1?}")),
    )
}

/// What the trace says. Some thread throttled and none running: everybody stands for the quota, in
/// a safepoint or not, also who sleeps until one of the throttled threads goes on. Else, outside
/// of safepoints, it is what the thread itself did.
fn truth(seen: &Seen, logged: &PauseSources, all_stood: &TimeSpans, tid: u32) -> PauseSources {
    let own = seen.scheduled.own(tid).difference(&logged.safepoints);
    let waiting = seen.scheduled.waiting.get(&tid);
    PauseSources {
        throttled: all_stood.union(&own),
        contention: waiting.cloned().unwrap_or_default(),
        ..logged.clone()
    }
}

fn with(logged: &PauseSources, throttled: TimeSpans) -> PauseSources {
    PauseSources {
        throttled,
        ..logged.clone()
    }
}

/// What trials with 1 kHz samples know.
fn fast_sources(seen: &Seen, logged: &PauseSources) -> PauseSources {
    let (samples, rule) = (&seen.fast.0, FlatlineRule::default());
    let throttled = throttled_spans(samples, rule);
    PauseSources {
        partly: ran_spans(samples, rule, &throttled),
        ..with(logged, throttled)
    }
}

fn locked(seen: &Seen, cpus: usize) -> TimeSpans {
    match seen.locked.1.phase_lock {
        Some(lock) => {
            let boundaries = PeriodBoundaries {
                at: lock.boundary_ns,
                period: seen.period,
            };
            phase_locked_spans(&seen.locked.0, boundaries, cpus)
        }
        None => TimeSpans::default(),
    }
}

/// What a sampler once a second would have seen.
fn every_second(samples: &[CounterSample]) -> Vec<CounterSample> {
    let mut thin: Vec<CounterSample> = Vec::new();
    for sample in samples {
        if thin
            .last()
            .is_none_or(|last| sample.at - last.at >= 1_000_000_000)
        {
            thin.push(sample.clone());
        }
    }
    thin
}

impl Kind {
    fn count(&mut self, got: &Attribution, truth: &Attribution) {
        self.pauses += 1;
        self.explained += u64::from(got.covered_share() >= 0.9);
        self.agreed += u64::from(got.dominant() == truth.dominant());
        self.error += throttled(got).abs_diff(throttled(truth));
        self.throttled += throttled(got);
    }

    fn share(&self, of: u64) -> f64 {
        100.0 * of as f64 / self.pauses.max(1) as f64
    }

    fn error_ms(&self) -> f64 {
        self.error as f64 / self.pauses.max(1) as f64 / 1e6
    }

    fn line(&self, run: &str, name: &str) -> String {
        let cost = self
            .cost
            .map_or("-".to_owned(), |cost| format!("{:.2} %", 100.0 * cost));
        format!(
            "{run:<14} {name:<13} {:>7} {:>17.1}% {:>14.1}% {:>11.1} ms {:>15.0} ms {:>9}",
            self.pauses,
            self.share(self.explained),
            self.share(self.agreed),
            self.error_ms(),
            self.throttled as f64 / 1e6,
            cost,
        )
    }

    fn add(mut self, other: &Self) -> Self {
        self.pauses += other.pauses;
        self.explained += other.explained;
        self.agreed += other.agreed;
        self.error += other.error;
        self.throttled += other.throttled;
        // The dearest run counts.
        self.cost = self.cost.into_iter().chain(other.cost).reduce(f64::max);
        self
    }
}

fn total(scores: &[Score], kind: usize) -> Kind {
    let kinds = scores.iter().map(|s| &s.kinds[kind]);
    kinds.fold(Kind::default(), Kind::add)
}

/// A figure and its target: name, value, target, whether more is better, unit.
type Check = (&'static str, f64, f64, bool, &'static str);

/// Prints the totals next to the targets.
pub fn verdict(all: &[Score], control: &[Score]) -> ExitCode {
    println!();
    let mut checks = Vec::new();
    if !all.is_empty() {
        for (index, name) in KINDS.iter().enumerate() {
            let run = if index == 0 { "all throttled" } else { "" };
            println!("{}", total(all, index).line(run, name));
        }
        checks.extend(throttled_checks(all));
    }
    checks.extend(cost_checks(all, control));
    if !control.is_empty() {
        checks.push(control_check(control));
    }
    println!();
    let mut is_met = true;
    for (name, value, target, at_least, unit) in checks {
        let met = if at_least {
            value >= target
        } else {
            value <= target
        };
        is_met &= met;
        let sign = if at_least { ">=" } else { "<=" };
        let word = if met { "met" } else { "MISSED" };
        println!("{name:<36} {value:>7.2} {unit:<7} target {sign} {target} {word}");
    }
    ExitCode::from(u8::from(!is_met))
}

fn throttled_checks(all: &[Score]) -> [Check; 5] {
    let [_, fast, locked, slow] = [0, 1, 2, 3].map(|kind| total(all, kind));
    let (explained, agreed) = (fast.share(fast.explained), fast.share(fast.agreed));
    let better = agreed - slow.share(slow.agreed);
    let (error, locked) = (fast.error_ms(), locked.error_ms());
    [
        ("1 kHz: explained", explained, 95.0, true, "%"),
        ("1 kHz: dominant cause", agreed, 90.0, true, "%"),
        ("1 kHz: error a pause", error, 5.0, false, "ms"),
        ("phase-locked: error a pause", locked, 8.0, false, "ms"),
        ("1 kHz better than 1 Hz by", better, 30.0, true, "points"),
    ]
}

/// What the samplers took, in the dearest run.
fn cost_checks(all: &[Score], control: &[Score]) -> [Check; 2] {
    let cost = |kind: usize| {
        let costs = all.iter().chain(control).filter_map(|s| s.kinds[kind].cost);
        100.0 * costs.fold(0.0, f64::max)
    };
    [
        ("1 kHz: CPU of a core", cost(1), 3.0, false, "%"),
        ("phase-locked: CPU of a core", cost(2), 0.1, false, "%"),
    ]
}

fn control_check(control: &[Score]) -> Check {
    let kinds = control.iter().flat_map(|s| &s.kinds[1..3]);
    let attributed: u64 = kinds.map(|k| k.throttled).sum();
    let counted: u64 = control.iter().map(|s| s.throttled).sum();
    println!(
        "control: the kernel counted {:.1} ms of throttling",
        counted as f64 / 1e6
    );
    let ms = attributed as f64 / 1e6;
    ("control: attributed to throttling", ms, 0.0, false, "ms")
}
