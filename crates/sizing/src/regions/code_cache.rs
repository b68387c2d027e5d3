//! The code cache: the used part, and the size to reserve.

use super::{Region, RegionInputs, SizeProvenance, measured_or};
use crate::Bytes;

/// Used with both compilers. Measured: 23 to 30 MiB after some seconds of load on a Spring Boot
/// service (records/2026-11-20-regions); the rest is for what compiles later. Too small: the
/// container is killed late.
const BOTH: Bytes = Bytes::from_mib(36);
/// Used with C1 alone; measured 18 to 20 MiB, same origin.
const C1_ONLY: Bytes = Bytes::from_mib(22);

pub fn plan_code_cache(situation: &RegionInputs<'_>) -> Region {
    let (default, how) = if situation.is_c1_only {
        (C1_ONLY, "used by a warm web service with C1 alone")
    } else {
        (BOTH, "used by a warm web service")
    };
    let measured = situation.profile.code_cache;
    let measured = if situation.is_c1_only && situation.profile.is_c1_only != Some(true) {
        // Measured with both compilers, run with one.
        None
    } else {
        measured
    };
    let region = measured_or("code cache", measured, default, how);
    match situation.options.size_value("ReservedCodeCacheSize") {
        Some(limit) if limit < region.size => Region {
            size: limit,
            provenance: SizeProvenance::User,
            how: "ReservedCodeCacheSize".to_owned(),
            ..region
        },
        _ => region,
    }
}
