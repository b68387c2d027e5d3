//! JIT compilers at work, arenas, symbols, the JVM's own structures.

use super::{Region, RegionInputs, measured_or};
use crate::Bytes;

/// Symbols, modules, internal structures. Measured: 13 to 14 MiB for 17,000 classes
/// (records/2026-11-20-regions, `jit_jvm` less the compilers' arenas).
const BASE: Bytes = Bytes::from_mib(14);
/// Arenas at their peak, one thread of each compiler; large methods take tens of megabytes for a
/// moment. Measured: 33 to 38 MiB on a Spring Boot service, 21 to 23 on a small server. Too small:
/// killed during start.
const BOTH: Bytes = Bytes::from_mib(36);
/// The same with C1 alone; measured 6 to 9 MiB.
const C1_ONLY: Bytes = Bytes::from_mib(8);
/// Each further thread. Origin: an estimate; peaks seldom coincide.
const FURTHER: Bytes = Bytes::from_mib(6);

pub fn plan_jit(situation: &RegionInputs<'_>) -> Region {
    let (peak, compilers) = if situation.is_c1_only {
        (C1_ONLY, "C1")
    } else {
        (BOTH, "C1 and C2")
    };
    // More than a few compilers never peak together.
    let further = situation.compiler_threads.min(6).saturating_sub(2);
    let further = FURTHER.mul_ratio(u64::from(further), 1);
    let peak = peak.saturating_add(further);
    let default = BASE.saturating_add(peak);
    let how = format!("{BASE} of JVM structures + {peak} of {compilers} at their peak");
    measured_or("JIT and JVM", situation.profile.jit, default, how)
}
