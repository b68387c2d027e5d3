//! Thread stacks: touched memory, not reserved memory.

use super::{Region, RegionInputs, SizeProvenance};
use crate::Bytes;

/// Touched stack of a thread. Measured: 68 to 93 KiB on average in two services
/// (records/2026-11-20-regions). The reserved 1 MiB of other calculators is address space, not
/// memory. Too small: killed late.
pub const TOUCHED: Bytes = Bytes::from_kib(96);
/// Assumed application threads of a service without measurements: a small pool and the framework's
/// own.
const TYPICAL_THREADS: u64 = 60;

pub fn plan_threads(situation: &RegionInputs<'_>) -> Region {
    let profile = situation.profile;
    let touched = profile.thread_stack.unwrap_or(TOUCHED);
    let stack = situation
        .options
        .count_value("ThreadStackSize")
        .filter(|kib| *kib > 0);
    let touched = stack.map_or(touched, |kib| touched.min(Bytes::from_kib(kib)));
    // A measured count has the JVM's own threads in it.
    let own = u64::from(situation.gc_workers) + u64::from(situation.compiler_threads) + 12;
    let threads = profile.threads.unwrap_or(TYPICAL_THREADS + own);
    let provenance = match (profile.threads, profile.thread_stack) {
        (Some(_), Some(_)) => SizeProvenance::Measured,
        (Some(_), None) => SizeProvenance::Calculated,
        _ => SizeProvenance::Default,
    };
    Region {
        name: "thread stacks",
        size: Bytes::from_bytes(threads.saturating_mul(touched.as_bytes())),
        provenance,
        how: format!("{threads} threads x {touched} touched"),
    }
}
