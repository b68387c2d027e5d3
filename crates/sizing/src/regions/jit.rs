//! JIT compilers at work, arenas, symbols, the JVM's own structures.

use super::{Region, Situation, measured_or};
use crate::Bytes;

/// Symbols, internal structures, the JVM's libraries' writable pages.
const BASE: Bytes = Bytes::from_mib(14);
/// Peak arena of a C2 thread; large methods take tens of megabytes for a moment. Origin: an
/// estimate, not measured here. Too small: killed during start.
const PER_C2_THREAD: Bytes = Bytes::from_mib(6);
/// Peak arena of a C1 thread.
const PER_C1_THREAD: Bytes = Bytes::from_mib(2);

/// Plans the region.
pub fn plan(situation: &Situation<'_>) -> Region {
    let threads = situation.compiler_threads.max(1);
    let each = if situation.is_c1_only {
        PER_C1_THREAD
    } else {
        PER_C2_THREAD
    };
    // More than a few compilers never peak together.
    let peaks = each.mul_ratio(u64::from(threads.min(4)), 1);
    let default = BASE.saturating_add(peaks);
    let how = format!(
        "{BASE} of JVM structures + {} compilers x {each}",
        threads.min(4)
    );
    measured_or("JIT and JVM", situation.profile.jit, default, how)
}
