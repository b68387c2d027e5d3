//! The OpenJ9 dialect: its own options, none of HotSpot's.
//!
//! Source: OpenJ9 documentation (-Xtune, -Xshareclasses); the heap by the rule
//! that [`crate::openj9`] is tested with.

use super::{Chosen, Decision, Input};
use crate::Bytes;
use crate::openj9::{default_max, processors};
use crate::options::dimension::Dimension;
use crate::regions::Provenance;

/// Decides for OpenJ9.
pub fn decide(input: &Input<'_>, decision: &mut Decision) {
    let calculated = Provenance::Calculated;
    let is_free = |dimension| input.options.freezing(dimension).is_none();
    if input.limits.is_memory_limited() && is_free(Dimension::Heap) {
        let own = default_max(decision.memory.value);
        // OpenJ9's own rule leaves 512 MiB free from 1 GiB on; its share is kept.
        let heap = own.max(Bytes::from_mib(16)).round_down(Bytes::from_mib(1));
        let reason = format!("OpenJ9's rule for {}", decision.memory);
        decision.options.push(Chosen::new(
            format!("-Xmx{}", heap.jvm()),
            calculated,
            reason,
        ));
        decision.heap = Some(heap);
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
