//! The OpenJ9 dialect: OpenJ9's options instead of HotSpot's.
//!
//! Source: OpenJ9 documentation (-Xtune, -Xshareclasses); the heap by measured regions, else by the
//! rule that [`crate::openj9`] is tested with.

use super::{DecisionInput, LaunchDecision, memory};
use crate::Bytes;
use crate::openj9::{count_processors, default_max, regions};
use crate::options::JvmOptionSet;
use crate::options::dimension::OptionDimension;
use crate::profile::AppProfile;
use crate::regions::SizeProvenance;
use crate::regions::heap::{Budget, LEAST, left_by, left_by_rest};

pub fn decide_openj9(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    let calculated = SizeProvenance::Calculated;
    if input.limits.is_memory_limited() {
        decide_openj9_heap(input, decision);
    }
    let is_tuned = input.options.with_prefix("-Xtune:").next().is_some();
    if !is_tuned && decision.cpus.value.as_millis() < 2000 {
        let reason = "less JIT work where CPU is scarce";
        decision.add_option("-Xtune:virtualized", SizeProvenance::Default, reason);
    }
    // Whether it sees its quota is a matter of files, as HotSpot's sight; how it rounds is its own.
    let is_blind = input.limits.true_processor_count() != input.sight.cpus;
    if input.is_free(OptionDimension::CpuCount) && is_blind {
        let host = input.limits.usable_processors().value;
        let processors = count_processors(Some(input.limits.usable_cpus().value), host);
        let option = format!("-XX:ActiveProcessorCount={processors}");
        let reason = "the JVM counts wrongly";
        decision.add_option(option, calculated, reason);
    }
}

/// The user's heap, the measured one, the remainder of measured regions, or OpenJ9's own rule; with
/// a warning if it does not fit.
fn decide_openj9_heap(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    let empty = AppProfile::default();
    let profile = input.profile.unwrap_or(&empty);
    let limit = decision.memory.value;
    let by_region = || {
        let fixed = regions::fixed_regions(profile, input.options);
        left_by(limit, fixed, regions::GC_SHARE)
    };
    let budget = left_by_rest(limit, profile).unwrap_or_else(by_region);
    let is_measured = profile.is_complete();
    let heap = match input.options.freezing_option(OptionDimension::Heap) {
        // A share of memory is OpenJ9's business.
        Some(_) => input.options.size_value("MaxHeapSize"),
        None => Some(chosen_heap(input, profile, &budget, decision)),
    };
    let Some(heap) = heap else { return };
    memory::check_sum(&budget, heap, is_measured, decision);
    decision.heap = Some(heap);
    decision.budget = Some(budget);
}

fn chosen_heap(
    input: &DecisionInput<'_>,
    profile: &AppProfile,
    budget: &Budget,
    decision: &mut LaunchDecision,
) -> Bytes {
    if let Some(chosen) = memory::measured_heap(input) {
        let heap = JvmOptionSet::from_words([chosen.option.as_str()]).size_value("MaxHeapSize");
        decision.options.push(chosen);
        return heap.unwrap_or(budget.heap);
    }
    let limit = decision.memory.value;
    let needed = memory::least_heap(profile);
    let is_measured = profile.is_complete();
    let (heap, reason) = if is_measured {
        let reason = format!("{} less the measured regions", decision.memory);
        (budget.heap.max(needed), reason)
    } else {
        // Its own rule leaves 512 MiB free from 1 GiB on; its share is kept.
        let reason = format!("OpenJ9's rule for {}", decision.memory);
        (default_max(limit).max(LEAST), reason)
    };
    let heap = heap.round_down(Bytes::from_mib(1));
    memory::warn_if_too_small(budget, heap, needed, is_measured, decision);
    let option = format!("-Xmx{}", heap.to_jvm_size());
    decision.add_option(option, SizeProvenance::Calculated, reason);
    heap
}
