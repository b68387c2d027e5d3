//! What malloc holds beyond the named regions: libraries, JNI, fragmentation of arenas.

use super::{Region, Situation, measured_or};
use crate::Bytes;

/// glibc arenas and libraries of a JVM at rest. Origin: an estimate, not measured here. Too small:
/// killed late (Cloud Foundry #157: arenas).
const DEFAULT: Bytes = Bytes::from_mib(12);

/// Plans the region.
pub fn plan(situation: &Situation<'_>) -> Region {
    measured_or(
        "malloc",
        situation.profile.malloc,
        DEFAULT,
        "libraries and malloc arenas",
    )
}
