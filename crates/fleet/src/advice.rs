//! The first step for a workload: measure it, correct its manifest, or leave it.
//!
//! Owns the rules and the money at stake. The rules read averages and peaks of production, so they
//! tell where a measurement pays and never which size suffices. Thresholds are below;
//! METHODOLOGY.md has the reasons.

use std::fmt;

use loadline_analysis::offer::Offer;
use loadline_analysis::price::{HOURS_PER_MONTH, InstanceSize};
use loadline_sizing::{Bytes, Cpus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::workload::{FleetWorkload, InstanceResources};

/// Throttled in fewer periods than this is what a start or a burst does.
const THROTTLED: f64 = 0.05;
/// A JVM that stands still for collections longer than this has too little heap, or the wrong collector.
const GC_SHARE: f64 = 0.05;
/// Of the request; a lower share is normal daily headroom.
const IDLE: f64 = 0.30;
/// HotSpot's default heap is a quarter of the limit; a part is not reported (one survivor
/// space).
const QUARTER: std::ops::RangeInclusive<f64> = 0.20..=0.27;
const RESTARTS: u32 = 3;

/// What to do first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceStep {
    /// Mend its manifest: no measurement is needed to know it.
    Fix,
    /// Measure what it needs.
    Measure,
    /// Nothing stands out.
    Leave,
}

impl AdviceStep {
    pub fn step_name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Measure => "measure",
            Self::Leave => "leave",
        }
    }
}

/// Why.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "reason", content = "value")]
pub enum AdviceReason {
    /// The kernel killed it for memory so often.
    OomKilled(u32),
    /// Nothing bounds its memory.
    NoMemoryLimit,
    /// Its manifest is wrong, in words.
    Manifest(String),
    /// Its heap may grow to this share of its limit, which holds more than the heap.
    HeapAboveLimit(f64),
    /// It uses this multiple of the memory that it requests.
    AboveRequest(f64),
    /// It was throttled in this share of the CFS periods.
    Throttled(f64),
    /// It stood still for collections this share of the time.
    Collecting(f64),
    /// It restarted so often, not for memory.
    Restarted(u32),
    /// Its heap is the default quarter of its limit.
    DefaultHeap(f64),
    /// This share of the memory that is requested was never in use.
    IdleMemory(f64),
    /// This share of the CPUs that are requested was never in use.
    IdleCpu(f64),
    /// Nothing says that it is a JVM or serves requests.
    NoService,
}

impl AdviceReason {
    fn first_step(&self) -> AdviceStep {
        match self {
            Self::NoMemoryLimit
            | Self::Manifest(_)
            | Self::HeapAboveLimit(_)
            | Self::AboveRequest(_) => AdviceStep::Fix,
            Self::NoService => AdviceStep::Leave,
            _ => AdviceStep::Measure,
        }
    }
}

impl fmt::Display for AdviceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match *self {
            Self::Manifest(ref problem) => write!(f, "its manifest: {problem}"),
            Self::OomKilled(times) => write!(f, "killed for memory ({})", count_words(times)),
            Self::NoMemoryLimit => f.write_str(
                "no memory limit: a JVM's heap goes by its node, and nothing bounds a leak",
            ),
            Self::HeapAboveLimit(share) => write!(
                f,
                "its heap may take {} of the limit, and the rest needs more",
                percent(share)
            ),
            Self::AboveRequest(times) => write!(
                f,
                "uses {times:.1} times the memory it requests: evicted first where a node is short"
            ),
            Self::Throttled(share) => {
                write!(f, "throttled in {} of the CFS periods", percent(share))
            }
            Self::Collecting(share) => {
                write!(f, "collections stop it {} of the time", percent(share))
            }
            Self::Restarted(times) => write!(f, "restarted ({})", count_words(times)),
            Self::DefaultHeap(share) => write!(
                f,
                "its heap is {} of the limit, HotSpot's default",
                percent(share)
            ),
            Self::IdleMemory(share) => write!(f, "{} of its memory never used", percent(share)),
            Self::IdleCpu(share) => write!(f, "{} of its CPU never used", percent(share)),
            Self::NoService => f.write_str("no JVM or requests are seen"),
        }
    }
}

fn count_words(times: u32) -> String {
    match times {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    }
}

/// What to do about a workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadAdvice {
    /// What to do first.
    pub step: AdviceStep,
    /// Why, the gravest first.
    pub why: Vec<AdviceReason>,
    /// USD a month for all its instances by what they request, at list prices.
    pub per_month: f64,
    /// USD that a measurement could save or protect: the full cost if instances are killed or
    /// unbounded, else the part that was idle, throttled or stopped. An upper bound, to rank by.
    pub at_stake_per_month: f64,
}

pub fn advise(workload: &FleetWorkload, offer: &Offer) -> WorkloadAdvice {
    let is_service = workload.jvm.is_some() || workload.traffic.is_some();
    let mut why = find_reasons(workload);
    if !is_service {
        // What a trial would answer is not to be had.
        why.retain(|reason| reason.first_step() == AdviceStep::Fix);
        why.push(AdviceReason::NoService);
    }
    let step = why.iter().map(|reason| reason.first_step()).min();
    let money = |per_instance: InstanceResources| {
        let size = InstanceSize {
            cpu: per_instance.cpu.unwrap_or(Cpus::from_millis(0)),
            memory: per_instance.memory.unwrap_or(Bytes::from_bytes(0)),
        };
        offer.per_hour(size) * HOURS_PER_MONTH * f64::from(workload.replicas)
    };
    let per_month = money(paid_resources(workload));
    let share = match step {
        None | Some(AdviceStep::Leave) => 0.0,
        Some(AdviceStep::Fix | AdviceStep::Measure) => {
            let idle = 1.0 - money(workload.peak) / per_month;
            let idle = if per_month > 0.0 { idle } else { 0.0 };
            why.iter().map(money_at_stake).fold(idle, f64::max)
        }
    };
    WorkloadAdvice {
        step: step.unwrap_or(AdviceStep::Leave),
        why,
        per_month,
        at_stake_per_month: per_month * share.clamp(0.0, 1.0),
    }
}

/// The paid resources: nodes are bought for requests; without a request the limit counts as one,
/// and without either the usage.
fn paid_resources(workload: &FleetWorkload) -> InstanceResources {
    let (request, limit, peak) = (workload.request, workload.limit, workload.peak);
    InstanceResources {
        cpu: request.cpu.or(limit.cpu).or(peak.cpu),
        memory: request.memory.or(limit.memory).or(peak.memory),
    }
}

fn money_at_stake(reason: &AdviceReason) -> f64 {
    match reason {
        AdviceReason::OomKilled(_)
        | AdviceReason::NoMemoryLimit
        | AdviceReason::Manifest(_)
        | AdviceReason::HeapAboveLimit(_) => 1.0,
        AdviceReason::Throttled(share) | AdviceReason::Collecting(share) => *share,
        _ => 0.0,
    }
}

fn find_reasons(workload: &FleetWorkload) -> Vec<AdviceReason> {
    let FleetWorkload {
        request,
        limit,
        peak,
        ..
    } = *workload;
    let ratio = |a: Option<Bytes>, b: Option<Bytes>| {
        let (a, b) = (a?.as_bytes() as f64, b?.as_bytes() as f64);
        (b > 0.0).then_some(a / b)
    };
    let jvm = workload.jvm.unwrap_or_default();
    let heap = ratio(jvm.heap_max, limit.memory);
    let asked = paid_resources(workload);
    let mut why = Vec::new();
    let mut say = |is_so: bool, reason: AdviceReason| {
        if is_so {
            why.push(reason);
        }
    };
    let killed = workload.oom_kills;
    say(killed > 0, AdviceReason::OomKilled(killed));
    let objections = &workload.objections;
    for objection in objections {
        say(true, AdviceReason::Manifest(objection.problem.clone()));
    }
    // The manifest says it too, where it was read.
    let is_said = !objections.is_empty();
    say(
        limit.memory.is_none() && !is_said,
        AdviceReason::NoMemoryLimit,
    );
    if let Some(heap) = heap {
        say(heap >= 1.0, AdviceReason::HeapAboveLimit(heap));
    }
    if let Some(times) = ratio(peak.memory, request.memory) {
        say(times > 1.0, AdviceReason::AboveRequest(times));
    }
    let throttled = workload.throttled.unwrap_or(0.0);
    say(throttled >= THROTTLED, AdviceReason::Throttled(throttled));
    let collecting = jvm.gc_share.unwrap_or(0.0);
    say(collecting >= GC_SHARE, AdviceReason::Collecting(collecting));
    let restarts = workload.restarts.saturating_sub(killed);
    say(restarts >= RESTARTS, AdviceReason::Restarted(restarts));
    if let Some(heap) = heap {
        say(QUARTER.contains(&heap), AdviceReason::DefaultHeap(heap));
    }
    if let Some(used) = ratio(peak.memory, asked.memory) {
        say(1.0 - used >= IDLE, AdviceReason::IdleMemory(1.0 - used));
    }
    if let (Some(used), Some(asked)) = (peak.cpu, asked.cpu) {
        let idle = 1.0 - used.as_f64() / asked.as_f64();
        say(
            idle >= IDLE && idle.is_finite(),
            AdviceReason::IdleCpu(idle),
        );
    }
    why
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{FleetContainerKey, JvmFigures};

    fn offer() -> Offer {
        Offer::built_in("own-nodes", None).expect("built in")
    }

    fn size(cpu: u32, mib: u64) -> InstanceResources {
        InstanceResources {
            cpu: Some(Cpus::from_millis(cpu)),
            memory: Some(Bytes::from_mib(mib)),
        }
    }

    fn workload() -> FleetWorkload {
        FleetWorkload {
            name: FleetContainerKey {
                namespace: "shop".to_owned(),
                kind: "Deployment".to_owned(),
                name: "orders".to_owned(),
                container: "orders".to_owned(),
            },
            image: None,
            replicas: 4,
            request: size(1000, 1024),
            limit: size(1000, 1024),
            peak: size(900, 900),
            cpu_mean: None,
            throttled: Some(0.01),
            oom_kills: 0,
            restarts: 1,
            jvm: Some(JvmFigures {
                heap_peak: Some(Bytes::from_mib(500)),
                heap_max: Some(Bytes::from_mib(700)),
                gc_share: Some(0.01),
            }),
            traffic: None,
            objections: Vec::new(),
        }
    }

    fn said(workload: &FleetWorkload) -> String {
        let advice = advise(workload, &offer());
        let why: Vec<String> = advice.why.iter().map(ToString::to_string).collect();
        let share = advice.at_stake_per_month / advice.per_month;
        format!("{} {share:.2}: {}", advice.step.step_name(), why.join("; "))
    }

    #[test]
    fn what_uses_what_it_asks_for_is_left_alone() {
        insta::assert_snapshot!(said(&workload()), @"leave 0.00: ");
        let advice = advise(&workload(), &offer());
        let one = offer().per_hour(InstanceSize {
            cpu: Cpus::from_millis(1000),
            memory: Bytes::from_mib(1024),
        });
        assert!((advice.per_month - 4.0 * 730.0 * one).abs() < 1e-9);
    }

    #[test]
    fn a_kill_puts_everything_at_stake_and_idle_memory_its_part() {
        let killed = FleetWorkload {
            oom_kills: 2,
            ..workload()
        };
        insta::assert_snapshot!(said(&killed), @"measure 1.00: killed for memory (2 times)");
        let idle = FleetWorkload {
            peak: size(900, 256),
            ..workload()
        };
        insta::assert_snapshot!(said(&idle), @"measure 0.18: 75 % of its memory never used");
    }

    #[test]
    fn what_a_manifest_shows_is_mended_before_anything_is_measured() {
        let unbounded = FleetWorkload {
            limit: InstanceResources::default(),
            ..workload()
        };
        insta::assert_snapshot!(said(&unbounded), @"fix 1.00: no memory limit: a JVM's heap goes by its node, and nothing bounds a leak");
        let above = FleetWorkload {
            jvm: Some(JvmFigures {
                heap_max: Some(Bytes::from_mib(1024)),
                ..JvmFigures::default()
            }),
            peak: size(900, 1500),
            ..workload()
        };
        insta::assert_snapshot!(said(&above), @"fix 1.00: its heap may take 100 % of the limit, and the rest needs more; uses 1.5 times the memory it requests: evicted first where a node is short");
    }

    #[test]
    fn what_is_no_jvm_and_serves_nothing_is_not_measured() {
        let other = FleetWorkload {
            jvm: None,
            peak: size(10, 100),
            ..workload()
        };
        insta::assert_snapshot!(said(&other), @"leave 0.00: no JVM or requests are seen");
    }
}
