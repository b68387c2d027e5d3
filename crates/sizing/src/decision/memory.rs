//! Memory: the budget, the heap, and what gives way when it does not fit.
//!
//! The order in which things give way, with a measured profile: collector (Serial), compilers (C1
//! alone, which also shrinks the code cache to 48 MiB), reserve (from 4 % to 1 %). Thread stacks
//! are counted as touched, so a smaller -Xss would not save anything. After that the heap gets what
//! it was measured to need and a warning states the smallest limit that fits.

use super::cpu::Parallelism;
use super::{ChosenOption, DecisionInput, LaunchDecision, SMALL_LIMIT};
use crate::Bytes;
use crate::hotspot::{CollectorKind, MachineSize, threads};
use crate::options::JvmOptionSet;
use crate::options::dimension::OptionDimension;
use crate::profile::AppProfile;
use crate::regions::heap::{self, Budget, HeapOverrun, LEAST};
use crate::regions::{RegionInputs, SizeProvenance};

#[derive(Debug, Clone, Copy)]
pub struct RuntimeChoices {
    pub collector: CollectorKind,
    pub is_c1_only: bool,
    pub cpu: Parallelism,
}

/// Memory that must stay outside the heap where nothing was measured: \[fabric8\]'s walk of a real
/// service from 600 down to 150 MB.
const OUTSIDE_HEAP: Bytes = Bytes::from_mib(110);
/// The heap's share of a small container, same origin: 45 of 150 MB.
const SMALL_SHARE: f64 = 30.0;
const LARGEST_SHARE: f64 = 75.0;

pub fn plan_memory(
    input: &DecisionInput<'_>,
    choice: RuntimeChoices,
    decision: &mut LaunchDecision,
) {
    if !input.limits.is_memory_limited() {
        let warning = "no memory limit was found; the heap is left to the JVM".to_owned();
        decision.warnings.push(warning);
        decide_gc_threads(input, choice, decision);
        return;
    }
    let empty = AppProfile::default();
    let profile = input.profile.unwrap_or(&empty);
    let mut choice = choice;
    let mut budget = budget(input, profile, choice, decision.memory.value);
    let needed = least_heap(profile);
    if profile.is_complete() {
        let collector = choice.collector;
        budget = shrink(input, profile, &mut choice, budget, needed, decision);
        if collector != choice.collector {
            replace_collector(collector, choice, input, decision);
        }
    }
    let wanted = if profile.is_complete() {
        budget.heap.max(needed)
    } else {
        by_rule(&budget)
    };
    let wanted = wanted.min(addressable(input));
    // A given heap is checked below.
    let is_given = !input.is_free(OptionDimension::Heap) || measured_heap(input).is_some();
    if !(is_given && profile.is_complete()) {
        warn_if_too_small(&budget, wanted, needed, profile.is_complete(), decision);
    }
    let heap = decide_heap(input, wanted, decision);
    check_sum(&budget, heap, profile.is_complete(), decision);
    decision.heap = Some(heap);
    decision.budget = Some(budget);
    decide_gc_threads(input, choice, decision);
    decide_heap_shape(input, choice, decision);
}

fn budget(
    input: &DecisionInput<'_>,
    profile: &AppProfile,
    choice: RuntimeChoices,
    limit: Bytes,
) -> Budget {
    let machine = MachineSize {
        memory: limit,
        cpus: choice.cpu.processors,
    };
    let jvm = (machine, choice.collector, choice.cpu.gc_workers);
    let situation = RegionInputs {
        is_c1_only: choice.is_c1_only,
        ..RegionInputs::for_container(input.jdk, jvm, input.options, profile)
    };
    heap::plan_limit(limit, &situation)
}

/// The least heap: the live set under load plus a quarter.
pub(super) fn least_heap(profile: &AppProfile) -> Bytes {
    let live = profile
        .live_heap
        .map(|live| live.mul_ratio(5, 4).round_up(Bytes::from_mib(1)));
    live.unwrap_or(LEAST).max(LEAST)
}

fn shrink(
    input: &DecisionInput<'_>,
    profile: &AppProfile,
    choice: &mut RuntimeChoices,
    mut budget: Budget,
    needed: Bytes,
    decision: &mut LaunchDecision,
) -> Budget {
    let limit = budget.limit;
    if budget.heap < needed && input.is_free(OptionDimension::Collector) {
        choice.collector = CollectorKind::Serial;
        budget = self::budget(input, profile, *choice, limit);
    }
    if budget.heap < needed && input.is_free(OptionDimension::Compiler) && !choice.is_c1_only {
        choice.is_c1_only = true;
        budget = self::budget(input, profile, *choice, limit);
        let reason = "with C2 the measured heap does not fit";
        let option = "-XX:TieredStopAtLevel=1";
        decision.add_option(option, SizeProvenance::Calculated, reason);
    }
    if budget.heap < needed {
        let given = budget.reserve.mul_ratio(3, 4);
        budget.reserve = budget.reserve.saturating_sub(given);
        let heap = budget.heap.saturating_add(given).min(needed);
        budget.heap = heap.round_down(Bytes::from_mib(1));
    }
    budget
}

fn replace_collector(
    old: CollectorKind,
    new: RuntimeChoices,
    input: &DecisionInput<'_>,
    decision: &mut LaunchDecision,
) {
    let option = format!("-XX:+{}", old.flag());
    decision.options.retain(|chosen| chosen.option != option);
    let reason = format!("with {old} the measured heap does not fit");
    let (new, processors) = (new.collector, new.cpu.processors);
    super::add_collector_option(
        new,
        SizeProvenance::Calculated,
        reason,
        input,
        processors,
        decision,
    );
}

/// Where nothing was measured. Small: 30 % of the limit and 110 MiB outside the heap; else what a
/// typical service leaves, at most 75 %.
fn by_rule(budget: &Budget) -> Bytes {
    let limit = budget.limit;
    let heap = if limit <= SMALL_LIMIT {
        limit
            .percent_share(SMALL_SHARE)
            .min(limit.saturating_sub(OUTSIDE_HEAP))
    } else {
        // Never less than a container at the border gets.
        let least = SMALL_LIMIT.percent_share(SMALL_SHARE);
        budget
            .heap
            .min(limit.percent_share(LARGEST_SHARE))
            .max(least)
    };
    heap.round_down(Bytes::from_mib(1)).max(LEAST)
}

pub(super) fn warn_if_too_small(
    budget: &Budget,
    heap: Bytes,
    needed: Bytes,
    is_measured: bool,
    decision: &mut LaunchDecision,
) {
    let limit = budget.limit;
    let minimum = match is_measured {
        true if heap > budget.heap => Some(budget.minimum_limit(needed)),
        false if limit < OUTSIDE_HEAP.saturating_add(LEAST) => {
            Some(OUTSIDE_HEAP.saturating_add(LEAST))
        }
        _ => None,
    };
    if let Some(minimum) = minimum {
        decision.warnings.push(format!(
            "the limit of {limit} is too small: at least {minimum} is needed; started anyway"
        ));
    }
    decision.minimum = minimum;
}

/// HotSpot's own maximum if RLIMIT_AS limits the address space: half. An explicit heap size is not
/// capped, and the JVM does not start when it cannot reserve it.
///
/// Source: arguments.cpp, `limit_heap_by_allocatable_memory` (MaxVirtMemFraction is 2).
fn addressable(input: &DecisionInput<'_>) -> Bytes {
    let space = input.limits.host.address_space;
    space.map_or(Bytes::from_bytes(u64::MAX), |space| {
        Bytes::from_bytes(space.as_bytes() / 2).round_down(Bytes::from_mib(1))
    })
}

/// Says that the heap and everything else are more than the limit. Where nothing was measured the regions
/// are a typical service's, so that is a warning and no verdict.
pub(super) fn check_sum(
    budget: &Budget,
    heap: Bytes,
    is_measured: bool,
    decision: &mut LaunchDecision,
) {
    let rest = budget.total_bytes(heap).saturating_sub(heap);
    let overrun = HeapOverrun::find_overrun(heap, rest, budget.limit);
    let Some(overrun) = overrun.filter(|_| decision.minimum.is_none()) else {
        return;
    };
    let change = overrun.suggest_change();
    if is_measured {
        let warning = format!("over-committed: {overrun}, as measured; {change}");
        decision.warnings.push(warning);
        decision.minimum = Some(budget.minimum_limit(heap));
    } else {
        decision.warnings.push(format!(
            "over-committed if this is a typical service: {overrun}; {change}, or measure it (loadline footprint)"
        ));
    }
}

fn decide_heap(input: &DecisionInput<'_>, wanted: Bytes, decision: &mut LaunchDecision) -> Bytes {
    if let Some(option) = input.options.freezing_option(OptionDimension::Heap) {
        let option = option.to_owned();
        return users_heap(input, &option, wanted, decision);
    }
    if let Some(chosen) = measured_heap(input) {
        let heap = JvmOptionSet::from_words([chosen.option.as_str()]).size_value("MaxHeapSize");
        decision.options.push(chosen);
        return heap.unwrap_or(wanted);
    }
    let initial = input
        .options
        .size_value("InitialHeapSize")
        .max(input.options.size_value("MinHeapSize"));
    let soft_max = input.options.size_value("SoftMaxHeapSize");
    let asked = [
        (initial, "initial heap"),
        (soft_max, "soft limit of the heap"),
    ];
    let mut heap = wanted;
    for (size, what) in asked {
        // With a smaller heap the JVM would not start, and without this option it does.
        if let Some(size) = size.filter(|size| *size > heap) {
            decision.warnings.push(format!(
                "the {what} {size} is above the {wanted} that fit; the heap follows it"
            ));
            heap = size;
        }
    }
    let is_measured = input.profile.is_some_and(AppProfile::is_complete);
    let reason = match is_measured {
        _ if heap == addressable(input) => "half of RLIMIT_AS, as the JVM does".to_owned(),
        true => format!("{} less the measured regions", decision.memory),
        false if decision.memory.value <= SMALL_LIMIT => {
            format!(
                "{}: 30 %, and {OUTSIDE_HEAP} outside the heap",
                decision.memory
            )
        }
        false => format!(
            "{} less the regions of a typical service, at most 75 %",
            decision.memory
        ),
    };
    let option = format!("-Xmx{}", heap.to_jvm_size());
    decision.add_option(option, SizeProvenance::Calculated, reason);
    heap
}

pub(super) fn measured_heap(input: &DecisionInput<'_>) -> Option<ChosenOption> {
    let option = input.profile?.heap_option()?;
    Some(ChosenOption::new(
        option,
        SizeProvenance::Measured,
        "the profile's",
    ))
}

/// A user's heap is kept; when it is a share of memory that the JVM gets wrong, it is computed from
/// the true memory and passed.
fn users_heap(
    input: &DecisionInput<'_>,
    option: &str,
    fits: Bytes,
    decision: &mut LaunchDecision,
) -> Bytes {
    let seen = MachineSize {
        memory: decision.memory.value,
        cpus: decision.cpus.value.ceil().max(1),
    };
    let collector = crate::hotspot::collector::choose(input.jdk, seen, input.options);
    let collector = collector.unwrap_or(CollectorKind::Serial);
    let size = |machine| {
        let options = crate::hotspot::heap::with_aggressive(machine, input.options);
        let mut heap = crate::hotspot::heap::size_heap(input.jdk, machine, collector, &options)?;
        if !input.options.is_set("MaxHeapSize") {
            heap.max = heap.max.min(addressable(input));
        }
        Ok::<_, crate::hotspot::HotSpotRefusal>(heap)
    };
    let Ok(truth) = size(seen) else { return fits };
    let believed = size(MachineSize {
        memory: input.sight.memory,
        ..seen
    });
    if believed.is_ok_and(|believed| believed.max != truth.max) {
        let xmx = format!("-Xmx{}", truth.max.to_jvm_size());
        let reason = format!("what {option} means for {}", decision.memory);
        decision.add_option(xmx, SizeProvenance::Calculated, reason);
    }
    truth.max
}

fn decide_gc_threads(
    input: &DecisionInput<'_>,
    choice: RuntimeChoices,
    decision: &mut LaunchDecision,
) {
    let uses_workers = matches!(
        choice.collector,
        CollectorKind::Parallel | CollectorKind::G1
    );
    let default = threads::parallel_workers(choice.cpu.processors);
    let is_free = input.is_free(OptionDimension::GcThreads);
    if uses_workers && is_free && choice.cpu.gc_workers < default {
        let workers = choice.cpu.gc_workers;
        let reason = format!(
            "{} are {workers} whole CPUs for the collector",
            decision.cpus
        );
        let option = format!("-XX:ParallelGCThreads={workers}");
        decision.add_option(option, SizeProvenance::Calculated, reason);
    }
}

/// \[fabric8\]: no -Xms; instead a heap that grows late and gives back early. Only where memory is
/// tight: measured at 512 MiB and 1 CPU, the two ratios alone cost 10 to 12 % of the throughput and
/// saved 8 of 236 MiB (docs/guides/launcher.md), because a small old generation makes the young one
/// small too.
fn decide_heap_shape(
    input: &DecisionInput<'_>,
    choice: RuntimeChoices,
    decision: &mut LaunchDecision,
) {
    let is_free = input.is_free(OptionDimension::HeapShape);
    let applies = matches!(
        choice.collector,
        CollectorKind::Serial | CollectorKind::Parallel | CollectorKind::G1
    );
    if is_free && applies && decision.memory.value <= SMALL_LIMIT {
        for option in ["-XX:MinHeapFreeRatio=20", "-XX:MaxHeapFreeRatio=40"] {
            let reason = "a small container: the heap gives memory back early";
            decision.add_option(option, SizeProvenance::Default, reason);
        }
    }
}
