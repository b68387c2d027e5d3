//! The changes that would remove the pauses of a trial, and how much each would help, predicted by
//! the CFS model.
//!
//! Owns the candidates and their order: the largest predicted effect first. Predictions are
//! labelled as such; `--try` measures them. Facts behind the rules: docs/guides/throttling.md.

use std::time::Duration;

use loadline_sizing::Cpus;
use loadline_sizing::hotspot::threads::parallel_workers;

use crate::attribution::PauseClass;
use crate::explain::Explanation;
use crate::record::{Configuration, CpuSets, TrialRecord};
use crate::span::TimeSpan;
use crate::throttle::{PeriodStart, QuotaLimit, ThreadWork, simulate};

/// A period that makes stops short and costs little throughput (about 2 % in the measurements).
const SHORT_PERIOD: Duration = Duration::from_millis(20);

/// Below this share of the time of all pauses a cause is not worth advice.
const WORTH: f64 = 0.1;

/// A heap is too tight when live data takes more than this share.
const TIGHT_HEAP: f64 = 0.7;

/// Shorter quotas the kernel does not take (Documentation/scheduler/sched-bwc.rst).
const SHORTEST_QUOTA: Duration = Duration::from_millis(1);
pub const GC_THREADS: [&str; 2] = ["-XX:ParallelGCThreads=", "-Xgcthreads"];

/// OpenJ9's collectors that have their own threads, as its log names them.
const OF_OPENJ9: [&str; 4] = ["gencon", "balanced", "optthruput", "optavgpause"];

pub fn is_of_openj9(collector: &str) -> bool {
    OF_OPENJ9.contains(&collector) || collector == "metronome"
}

const STEPS: u32 = 20;

#[derive(Debug, Clone, PartialEq)]
pub struct TrialAdvice {
    pub kind: AdviceKind,
    pub text: String,
    pub expected: String,
    /// Share of the time of all pauses that should go away, in [0, 1]; `None` where no model says.
    pub removes: Option<f64>,
    /// The changed configuration; `None` where a person must choose.
    pub configuration: Option<Configuration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdviceKind {
    Quota,
    Cpuset,
    Period,
    GcThreads,
    /// Quota that idle periods save up.
    Burst,
    Collector,
    Heap,
}

impl AdviceKind {
    pub const ALL: [Self; 7] = [
        Self::Quota,
        Self::Cpuset,
        Self::Period,
        Self::GcThreads,
        Self::Burst,
        Self::Collector,
        Self::Heap,
    ];

    pub fn kind_name(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Cpuset => "cpuset",
            Self::Period => "period",
            Self::GcThreads => "gc-threads",
            Self::Burst => "burst",
            Self::Collector => "collector",
            Self::Heap => "heap",
        }
    }
}

struct AdviceCase<'a> {
    record: &'a TrialRecord,
    explanation: &'a Explanation,
    command: &'a [String],
    machine: u32,
    limit: Option<(Cpus, QuotaLimit)>,
    demand: f64,
}

/// More than any machine has: a foreign record may say anything.
const MOST_CPUS: u32 = 8192;

/// Advice for a trial of this command on a machine with this many CPUs, the most effective first.
pub fn advise_trial(
    record: &TrialRecord,
    explanation: &Explanation,
    command: &[String],
    machine: u32,
) -> Vec<TrialAdvice> {
    if explanation.pauses.is_empty() {
        return Vec::new();
    }
    let configuration = &record.configuration;
    let quota = QuotaLimit::for_configuration(configuration);
    let case = AdviceCase {
        record,
        explanation,
        command,
        machine: machine.min(MOST_CPUS),
        limit: configuration.cpu.zip(quota),
        demand: demand(record, explanation.window).unwrap_or(f64::from(machine)),
    };
    let rules = [
        advise_quota,
        advise_cpuset,
        advise_period,
        advise_gc_threads,
        advise_burst,
        advise_collector,
        advise_heap,
    ];
    let mut all: Vec<TrialAdvice> = rules.iter().filter_map(|rule| rule(&case)).collect();
    let effect = |a: &TrialAdvice| a.removes.unwrap_or(0.0);
    all.sort_by(|a, b| effect(b).total_cmp(&effect(a)));
    all
}

/// CPUs in use while the group was not standing: what it would take without a limit. `None` where
/// nothing says when it stood.
fn demand(record: &TrialRecord, window: TimeSpan) -> Option<f64> {
    let cpu = record.evidence.cgroup.measure_cpu?.as_secs_f64();
    let pauses = record.evidence.pauses.as_ref()?;
    let stood = pauses.sources().throttled.within(window).len_ns();
    let ran = window.length_ns().checked_sub(stood).filter(|ns| *ns > 0)? as f64 / 1e9;
    Some(cpu / ran)
}

impl AdviceCase<'_> {
    fn throttled_share(&self) -> f64 {
        self.explanation.class_share(PauseClass::GcThrottled)
            + self.explanation.class_share(PauseClass::MutatorThrottled)
    }

    fn changed_configuration(
        &self,
        label: &str,
        change: impl FnOnce(&mut Configuration),
    ) -> Configuration {
        let mut next = self.record.configuration.clone();
        next.label = label.to_owned();
        change(&mut next);
        next
    }

    /// GC threads that the trial had: as its log says, else the option, else HotSpot's choice for the
    /// CPUs it sees.
    fn gc_threads(&self) -> u32 {
        let gc = self.record.evidence.gc.as_ref();
        gc.and_then(|gc| gc.parallel_workers)
            .or_else(|| self.option(self.gc_threads_option()))
            .unwrap_or_else(|| {
                let of_limit = || self.limit.map(|(cpu, _)| cpu.ceil().min(self.machine));
                let seen = self.option("-XX:ActiveProcessorCount=").or_else(of_limit);
                parallel_workers(seen.unwrap_or(self.machine))
            })
            .max(1)
    }

    /// The option of the JVM that ran; the other one's would be refused or ignored.
    fn gc_threads_option(&self) -> &'static str {
        let gc = self.record.evidence.gc.as_ref();
        let is_openj9 = gc.is_some_and(|gc| OF_OPENJ9.contains(&gc.collector.as_str()));
        GC_THREADS[usize::from(is_openj9)]
    }

    /// The value of an option. The user's own options come after the configuration's; the last one
    /// counts.
    fn option(&self, prefix: &str) -> Option<u32> {
        let configured = self.record.configuration.jvm_options.iter();
        let all = configured.map(|o| &o.text).chain(self.command);
        let values = all.filter_map(|text| text.strip_prefix(prefix));
        values.rev().find_map(|n| n.parse().ok())
    }

    fn cpu_per_collection(&self) -> Option<Duration> {
        let gc = self.record.evidence.gc.as_ref()?;
        let pauses = u32::try_from(gc.measure_pauses?).ok().filter(|n| *n > 0)?;
        Some(gc.measure_gc_cpu? / pauses)
    }
}

fn advise_quota(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let (cpu, _) = case.limit?;
    if case.throttled_share() < WORTH {
        return None;
    }
    // To the next tenth, and never above the machine: more than all CPUs is no limit.
    let tenths = (case.demand * 10.0).ceil().max(1.0) as u32;
    let wanted = Cpus::from_millis(tenths.saturating_mul(100)).min(Cpus::from_whole(case.machine));
    if wanted <= cpu {
        return None;
    }
    Some(TrialAdvice {
        kind: AdviceKind::Quota,
        text: format!("raise the CPU limit from {cpu} to {wanted}"),
        expected: format!(
            "while it was not throttled it used {:.2} CPUs; a limit of that much throttles it no more",
            case.demand
        ),
        removes: Some(case.throttled_share()),
        configuration: Some(case.changed_configuration("more-quota", |c| c.cpu = Some(wanted))),
    })
}

fn advise_cpuset(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let (cpu, _) = case.limit?;
    let whole = cpu.ceil();
    let is_whole = Cpus::from_whole(whole) == cpu;
    if case.throttled_share() < WORTH || !is_whole || whole >= case.machine {
        return None;
    }
    Some(TrialAdvice {
        kind: AdviceKind::Cpuset,
        text: format!("reserve {whole} CPU for it (a cpuset) instead of a quota of as much"),
        expected: "a cpuset never throttles; collections have fewer CPUs at once, so those that run take longer"
            .to_owned(),
        removes: Some(case.explanation.class_share(PauseClass::MutatorThrottled)),
        configuration: Some(case.changed_configuration("cpuset", |c| {
            c.cpu = None;
            // Without a quota there is nothing to save up: the kernel takes no burst.
            c.cpu_burst = None;
            c.cpuset = CpuSets::shared_by_all((0..whole).collect());
        })),
    })
}

fn advise_period(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let (_, now) = case.limit?;
    let share = case.explanation.class_share(PauseClass::MutatorThrottled);
    if share < WORTH || now.period <= SHORT_PERIOD {
        return None;
    }
    let threads = case.demand.ceil().max(1.0) as u32;
    let quota =
        |period: Duration| period.mul_f64(now.quota.as_secs_f64() / now.period.as_secs_f64());
    let stop = |period: Duration| period.saturating_sub(quota(period) / threads);
    let short = quota(SHORT_PERIOD);
    if short < SHORTEST_QUOTA {
        return None;
    }
    let (stop_short, stop_now) = (stop(SHORT_PERIOD).as_millis(), stop(now.period).as_millis());
    let (now_ms, short_ms) = (now.period.as_millis(), SHORT_PERIOD.as_millis());
    Some(TrialAdvice {
        kind: AdviceKind::Period,
        text: format!(
            "shorten the CFS period from {now_ms} ms to {short_ms} ms with the same share"
        ),
        expected: format!(
            "threads stand {stop_short} ms at a time instead of {stop_now} ms; collections that need more than a period's quota take as long as before"
        ),
        removes: Some(share),
        configuration: Some(case.changed_configuration("short-period", |c| {
            c.cpu_period = SHORT_PERIOD;
            // A burst is at most the quota.
            c.cpu_burst = c.cpu_burst.map(|burst| burst.min(short));
        })),
    })
}

fn advise_gc_threads(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let (_, now) = case.limit?;
    // Serial has one thread, whatever the option says.
    let collector = case.record.evidence.gc.as_ref()?.collector.as_str();
    let work = case.cpu_per_collection();
    let work = work.filter(|_| collector != "Serial")?;
    let share = case.explanation.class_share(PauseClass::Gc)
        + case.explanation.class_share(PauseClass::GcThrottled);
    // Threads beyond the CPUs do not run at once.
    let have = case.gc_threads();
    let before = mean_wall(now, work, have.min(case.machine.max(1)))?;
    let tried = (1..=case.machine).filter_map(|n| Some((n, mean_wall(now, work, n)?)));
    let (best, after) = tried.min_by_key(|(_, wall)| *wall)?;
    let saved = 1.0 - after.as_secs_f64() / before.as_secs_f64().max(f64::MIN_POSITIVE);
    if share < WORTH || saved < WORTH {
        return None;
    }
    let option = case.gc_threads_option();
    let change = |c: &mut Configuration| set_gc_threads(c, option, best);
    Some(TrialAdvice {
        kind: AdviceKind::GcThreads,
        text: format!("{option}{best} instead of {have}"),
        expected: format!(
            "a collection of {} ms of CPU takes {} ms on average instead of {} ms, the stop behind it included; one thread more or less may be better",
            work.as_millis(),
            after.as_millis(),
            before.as_millis()
        ),
        removes: Some(saved * share),
        configuration: Some(case.changed_configuration("gc-threads", change)),
    })
}

fn set_gc_threads(configuration: &mut Configuration, option: &str, threads: u32) {
    let is_other = |text: &str| !text.starts_with(option);
    configuration.jvm_options.retain(|o| is_other(&o.text));
    configuration.jvm_options.push(crate::record::JvmOption {
        text: format!("{option}{threads}"),
        provenance: crate::record::ValueProvenance::Calculated,
    });
}

/// Mean over phases and fill levels of a period: how long a collection and the stop that it leaves
/// behind take.
fn mean_wall(limit: QuotaLimit, work: Duration, threads: u32) -> Option<Duration> {
    let work = [ThreadWork { threads, cpu: work }];
    let mut sum = Duration::ZERO;
    for step in 0..STEPS {
        let phase = limit.period * step / STEPS;
        let used = limit.quota.min(phase);
        let course = simulate(limit, &work, PeriodStart { phase, used })?;
        sum += course.wall + course.wait_after;
    }
    Some(sum / STEPS)
}

fn advise_burst(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let (cpu, now) = case.limit?;
    let used = case.record.evidence.cgroup.measure_cpu?.as_secs_f64();
    let share = used / (case.explanation.window.length_ns() as f64 / 1e9).max(f64::MIN_POSITIVE);
    // An application that uses its whole quota has nothing to save up, and the kernel keeps at most
    // one quota of burst.
    if !now.burst.is_zero() || case.throttled_share() < WORTH || share > 0.8 * cpu.as_f64() {
        return None;
    }
    Some(TrialAdvice {
        kind: AdviceKind::Burst,
        text: "let idle periods save up the quota of one period (cpu.max.burst, cpu.cfs_burst_us)"
            .to_owned(),
        expected: format!(
            "it uses {:.0} % of its quota, so a burst of up to twice the quota passes without a stop",
            100.0 * share / cpu.as_f64()
        ),
        removes: None,
        configuration: Some(case.changed_configuration("burst", |c| c.cpu_burst = Some(now.quota))),
    })
}

fn advise_collector(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let gc = case.record.evidence.gc.as_ref()?;
    let is_concurrent = ["ZGC", "Shenandoah"].contains(&gc.collector.as_str());
    if is_concurrent || case.explanation.class_share(PauseClass::Gc) < 0.5 {
        return None;
    }
    Some(TrialAdvice {
        kind: AdviceKind::Collector,
        text: format!(
            "{} stops the application while it works; -XX:+UseShenandoahGC or -XX:+UseZGC works while it runs",
            gc.collector
        ),
        expected: "no model says how much; the collector's work then needs CPU at the same time as the application"
            .to_owned(),
        removes: None,
        configuration: None,
    })
}

fn advise_heap(case: &AdviceCase<'_>) -> Option<TrialAdvice> {
    let gc = case.record.evidence.gc.as_ref()?;
    let (live, most) = (gc.heap_after_max?, gc.heap_max?);
    let share = live.as_bytes() as f64 / most.as_bytes().max(1) as f64;
    let gc_share = case.explanation.class_share(PauseClass::Gc)
        + case.explanation.class_share(PauseClass::AllocationStall);
    if share < TIGHT_HEAP || gc_share < WORTH {
        return None;
    }
    Some(TrialAdvice {
        kind: AdviceKind::Heap,
        text: format!("a larger heap than {most} (-Xmx), with the memory limit to hold it"),
        expected: format!(
            "{:.0} % of the heap is in use after a collection, so there are many; twice the room means about half of them",
            100.0 * share
        ),
        removes: None,
        configuration: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::pauses::{ApplicationPauses, PauseEvidence};
    use crate::record::{
        GcEvidence, JvmOption, PhaseSpan, TrialPhase, TrialPurpose, TrialVerdict, ValueProvenance,
    };

    const MS: u64 = 1_000_000;

    /// Two threads on half a CPU for ten seconds: every period 25 ms of running and 75 of standing.
    /// The first `collections` of the stops are in a collection of 30 ms of CPU.
    fn throttled(collections: u64) -> TrialRecord {
        let mut record = fixture::trial_record("t", TrialPurpose::Matrix, 64, TrialVerdict::Pass);
        record.configuration.cpu = Some(Cpus::from_millis(500));
        record.configuration.jvm_options = vec![JvmOption {
            text: "-XX:ParallelGCThreads=8".to_owned(),
            provenance: ValueProvenance::User,
        }];
        let stops: Vec<(u64, u64)> = (0..100)
            .map(|n| ((100 * n + 25) * MS, 100 * (n + 1) * MS))
            .collect();
        let in_collection = stops.iter().take(collections as usize);
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 10_000 * MS,
        }];
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs(5));
        record.evidence.pauses = Some(PauseEvidence {
            safepoints_ns: in_collection.map(|(a, b)| (*a, *b, 0)).collect(),
            application: Some(ApplicationPauses {
                pauses_ns: stops.clone(),
                ..ApplicationPauses::default()
            }),
            throttled_ns: stops,
            ..PauseEvidence::default()
        });
        record.evidence.gc = Some(GcEvidence {
            collector: "G1".to_owned(),
            jdk: None,
            pauses: 10,
            pause_sum: Duration::ZERO,
            pause_max: Duration::ZERO,
            full_gcs: 0,
            gc_cpu: None,
            measure_gc_cpu: Some(Duration::from_millis(30) * 10),
            measure_pauses: Some(10),
            measure_pause_sum: Some(Duration::ZERO),
            measure_pause_max: Some(Duration::ZERO),
            parallel_workers: None,
            heap_after_max: None,
            heap_max: None,
            allocated: None,
            promoted: None,
            heaps_after: Vec::new(),
            pause_spans_ns: Vec::new(),
        });
        record
    }

    fn told(record: &TrialRecord, machine: u32) -> String {
        let explanation = Explanation::for_trial(record).unwrap();
        let line = |a: TrialAdvice| {
            let removes = a
                .removes
                .map_or("?".to_owned(), |r| format!("{:.0} %", 100.0 * r));
            format!(
                "{} ({removes}): {}: {}",
                a.kind.kind_name(),
                a.text,
                a.expected
            )
        };
        let all = advise_trial(record, &explanation, &[], machine);
        all.into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn threads_that_stand_get_more_quota_or_a_shorter_period() {
        let quota = "quota (100 %): raise the CPU limit from 500m to 2: while it was not throttled it used 2.00 CPUs; a limit of that much throttles it no more";
        let period = |share| {
            format!(
                "period ({share} %): shorten the CFS period from 100 ms to 20 ms with the same share: threads stand 15 ms at a time instead of 75 ms; collections that need more than a period's quota take as long as before"
            )
        };
        let of = |collections| told(&throttled(collections), 2);
        assert_eq!(of(0), format!("{quota}\n{}", period(100)));
        // Collections that stand are not helped by a shorter period, nor, says the model, by fewer
        // threads: the same work then runs on one CPU instead of two.
        assert_eq!(of(80), format!("{quota}\n{}", period(20)));
    }

    #[test]
    fn collections_on_too_few_threads_get_more() {
        let mut record = throttled(100);
        record.configuration.cpu = Some(Cpus::from_whole(2));
        record.configuration.jvm_options[0].text = "-XX:ParallelGCThreads=1".to_owned();
        if let Some(pauses) = &mut record.evidence.pauses {
            pauses.throttled_ns.clear();
        }
        let expected = "\
gc-threads (50 %): -XX:ParallelGCThreads=2 instead of 1: a collection of 30 ms of CPU takes 15 ms on average instead of 30 ms, the stop behind it included; one thread more or less may be better
collector (?): G1 stops the application while it works; -XX:+UseShenandoahGC or -XX:+UseZGC works while it runs: no model says how much; the collector's work then needs CPU at the same time as the application";
        assert_eq!(told(&record, 2), expected);
    }

    #[test]
    fn the_threads_that_count_are_those_that_ran() {
        let mut record = throttled(100);
        record.configuration.cpu = Some(Cpus::from_whole(2));
        record.configuration.jvm_options.clear();
        if let Some(pauses) = &mut record.evidence.pauses {
            pauses.throttled_ns.clear();
        }
        let of = |record: &TrialRecord, command: &[&str]| {
            let command: Vec<String> = command.iter().map(|w| (*w).to_owned()).collect();
            let explanation = Explanation::for_trial(record).unwrap();
            let all = advise_trial(record, &explanation, &command, 2);
            let threads = all.into_iter().find(|a| a.kind == AdviceKind::GcThreads);
            threads.map(|a| a.text).unwrap_or_default()
        };
        let told = "-XX:ParallelGCThreads=2 instead of 1";
        let own = ["java", "-XX:ParallelGCThreads=1", "-jar", "app.jar"];
        assert_eq!(of(&record, &[]), "", "as many as CPUs");
        assert_eq!(of(&record, &own), told);
        assert_eq!(of(&record, &["java", "-XX:ActiveProcessorCount=1"]), told);
        let gc = |record: &mut TrialRecord, workers, collector: &str| {
            let gc = record.evidence.gc.as_mut().unwrap();
            (gc.parallel_workers, gc.collector) = (workers, collector.to_owned());
        };
        // The log knows it, whoever set it.
        gc(&mut record, Some(2), "G1");
        assert_eq!(of(&record, &own), "");
        gc(&mut record, Some(1), "G1");
        assert_eq!(of(&record, &[]), told);
        gc(&mut record, Some(1), "gencon");
        assert_eq!(of(&record, &[]), "-Xgcthreads2 instead of 1");
        gc(&mut record, None, "gencon");
        let openj9 = ["java", "-Xgcthreads1", "-jar", "app.jar"];
        assert_eq!(of(&record, &openj9), "-Xgcthreads2 instead of 1");
        gc(&mut record, None, "Serial");
        assert_eq!(of(&record, &own), "", "the option does nothing there");
    }

    #[test]
    fn a_burst_is_never_more_than_the_quota_and_not_advised_twice() {
        let ms = Duration::from_millis;
        let mut record = throttled(0);
        record.configuration.cpu = Some(Cpus::from_whole(1));
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs(5));
        let of = |record: &TrialRecord, kind| {
            let explanation = Explanation::for_trial(record).unwrap();
            let all = advise_trial(record, &explanation, &[], 2);
            all.into_iter().find(|a| a.kind == kind)?.configuration
        };
        let burst = of(&record, AdviceKind::Burst).unwrap();
        assert_eq!(burst.cpu_burst, Some(ms(100)));
        assert_eq!(of(&burst_of(&record, ms(100)), AdviceKind::Burst), None);
        let record = burst_of(&record, ms(100));
        let period = of(&record, AdviceKind::Period).unwrap();
        assert_eq!(
            (period.cpu_period, period.cpu_burst),
            (ms(20), Some(ms(20)))
        );
        let cpuset = of(&record, AdviceKind::Cpuset).unwrap();
        assert_eq!((cpuset.cpu, cpuset.cpu_burst), (None, None));
        // The kernel takes no quota below 1 ms.
        let mut tiny = record;
        tiny.configuration.cpu = Some(Cpus::from_millis(40));
        tiny.configuration.cpu_burst = None;
        assert_eq!(of(&tiny, AdviceKind::Period), None);
    }

    fn burst_of(record: &TrialRecord, burst: Duration) -> TrialRecord {
        let mut record = record.clone();
        record.configuration.cpu_burst = Some(burst);
        record
    }

    #[test]
    fn a_trial_without_pauses_or_limit_gets_no_advice_on_throttling() {
        let mut record = throttled(0);
        record.evidence.pauses = Some(PauseEvidence::default());
        assert_eq!(told(&record, 2), "");
        let mut unlimited = throttled(0);
        unlimited.configuration.cpu = None;
        assert_eq!(told(&unlimited, 2), "");
    }

    #[test]
    fn what_is_tried_is_what_is_said() {
        let record = throttled(80);
        let explanation = Explanation::for_trial(&record).unwrap();
        let all = advise_trial(&record, &explanation, &[], 2);
        let of = |kind| {
            all.iter()
                .find(|a| a.kind == kind)
                .unwrap()
                .configuration
                .clone()
                .unwrap()
        };
        assert_eq!(of(AdviceKind::Quota).cpu, Some(Cpus::from_whole(2)));
        let period = of(AdviceKind::Period);
        assert_eq!(period.cpu_period, Duration::from_millis(20));
        assert_eq!(period.cpu, record.configuration.cpu);
        let mut threads = record.configuration.clone();
        set_gc_threads(&mut threads, GC_THREADS[0], 2);
        assert_eq!(threads.jvm_options.len(), 1);
        assert_eq!(threads.jvm_options[0].text, "-XX:ParallelGCThreads=2");
    }
}
