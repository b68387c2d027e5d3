//! What malloc holds beyond the named regions: libraries, JNI, fragmentation of arenas.

use super::{Region, RegionInputs, measured_or};
use crate::Bytes;

/// Libraries' own memory and what glibc keeps after `free`, with two arenas. Measured: 19 to 41 MiB
/// on a Spring Boot service (records/2026-11-20-regions), of which up to 13 are the compilers' peak
/// given back, which [`super::jit`] has. Too small: killed late (Cloud Foundry #157: arenas).
const DEFAULT: Bytes = Bytes::from_mib(24);

pub fn plan_malloc(situation: &RegionInputs<'_>) -> Region {
    measured_or(
        "malloc",
        situation.profile.malloc,
        DEFAULT,
        "libraries and malloc arenas",
    )
}
