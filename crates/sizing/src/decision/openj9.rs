//! The OpenJ9 dialect: its own options, none of HotSpot's.
//!
//! Source: OpenJ9 documentation (-Xtune, -Xshareclasses); the heap by measured regions, else by the
//! rule that [`crate::openj9`] is tested with.

use super::{Chosen, Decision, Input, memory};
use crate::Bytes;
use crate::openj9::{default_max, processors, regions};
use crate::options::dimension::Dimension;
use crate::profile::Profile;
use crate::regions::Provenance;
use crate::regions::heap::{LEAST, left_by};

/// Decides for OpenJ9.
pub fn decide(input: &Input<'_>, decision: &mut Decision) {
    let calculated = Provenance::Calculated;
    let is_free = |dimension| input.options.freezing(dimension).is_none();
    if input.limits.is_memory_limited() && is_free(Dimension::Heap) {
        heap(input, decision);
    }
    let is_tuned = input.options.with_prefix("-Xtune:").next().is_some();
    if !is_tuned && decision.cpus.value.as_millis() < 2000 {
        let reason = "less JIT work where CPU is scarce";
        decision.options.push(Chosen::new(
            "-Xtune:virtualized",
            Provenance::Default,
            reason,
        ));
    }
    // Whether it sees its quota is a matter of files, as HotSpot's sight; how it rounds is its own.
    let is_blind = input.limits.true_processor_count() != input.sight.cpus;
    if is_free(Dimension::CpuCount) && is_blind {
        let host = input.limits.processors().value;
        let processors = processors(Some(input.limits.usable_cpus().value), host);
        let option = format!("-XX:ActiveProcessorCount={processors}");
        let reason = "the JVM counts wrongly";
        decision
            .options
            .push(Chosen::new(option, calculated, reason));
    }
}

/// With a measured profile what the regions leave; else OpenJ9's own rule, and a warning where a typical
/// service would not fit beside it.
fn heap(input: &Input<'_>, decision: &mut Decision) {
    let empty = Profile::default();
    let profile = input.profile.unwrap_or(&empty);
    let limit = decision.memory.value;
    let budget = left_by(
        limit,
        regions::fixed(profile, input.options),
        regions::GC_SHARE,
    );
    let is_measured = profile.is_complete();
    let needed = memory::needed(profile);
    let (heap, reason) = match is_measured {
        true => {
            let reason = format!("{} less the measured regions", decision.memory);
            (budget.heap.max(needed), reason)
        }
        // Its own rule leaves 512 MiB free from 1 GiB on; its share is kept.
        false => {
            let reason = format!("OpenJ9's rule for {}", decision.memory);
            (default_max(limit).max(LEAST), reason)
        }
    };
    let heap = heap.round_down(Bytes::from_mib(1));
    memory::fit(&budget, heap, needed, is_measured, decision);
    if !is_measured && decision.minimum.is_none() {
        memory::warn_of_sum(&budget, heap, decision);
    }
    let option = format!("-Xmx{}", heap.jvm());
    let chosen = Chosen::new(option, Provenance::Calculated, reason);
    decision.options.push(chosen);
    decision.heap = Some(heap);
    decision.budget = Some(budget);
}
