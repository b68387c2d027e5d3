//! Metaspace and compressed class space.

use super::{Provenance, Region, Situation, measured_or};
use crate::Bytes;

/// Bytes before any application class: Paketo's and Cloud Foundry's formula, which has been in use
/// for years (libjvm `calc/memory_regions`). Too small: the container is killed late.
const BASE: u64 = 14_000_000;
/// Bytes a loaded class, same origin.
const PER_CLASS: u64 = 5_800;
/// Loaded classes of an application nobody measured: between a small web framework (7,000) and a
/// Spring Boot service with JPA (15,800 in the published deck).
pub const TYPICAL_CLASSES: u64 = 10_000;

/// What this many loaded classes need.
pub fn for_classes(classes: u64) -> Bytes {
    Bytes::from_bytes(BASE.saturating_add(classes.saturating_mul(PER_CLASS)))
}

/// Plans the region. A user's MaxMetaspaceSize bounds it from above.
pub fn plan(situation: &Situation<'_>) -> Region {
    let classes = situation.profile.classes;
    let default = for_classes(classes.unwrap_or(TYPICAL_CLASSES));
    let how = match classes {
        Some(classes) => format!("14 MB + 5,800 B x {classes} measured classes"),
        None => format!("14 MB + 5,800 B x {TYPICAL_CLASSES} classes, a typical service"),
    };
    let mut region = measured_or("metaspace", situation.profile.metaspace, default, how);
    if classes.is_some() && region.provenance == Provenance::Default {
        region.provenance = Provenance::Calculated;
    }
    match situation.options.size("MaxMetaspaceSize") {
        Some(limit) if limit < region.size => Region {
            size: limit,
            provenance: Provenance::User,
            how: "MaxMetaspaceSize".to_owned(),
            ..region
        },
        _ => region,
    }
}
