//! Metaspace and compressed class space.

use super::{Region, RegionInputs, SizeProvenance, measured_or};
use crate::Bytes;

/// Bytes before any application class. Too small: the container is killed late.
const BASE: u64 = 2_000_000;
/// Bytes per loaded class. Measured with [`BASE`] (records/2026-11-20-regions): 79 to 81 MiB for
/// the 17,000 classes of a Spring Boot service, 73 with C1 alone, 2 to 3 MiB for the 1,500 of a
/// small server, where the archive holds the classes. Memory calculators take 14 MB + 5,800 B a
/// class.
const PER_CLASS: u64 = 5_000;
/// Assumed loaded classes of an application without measurements: those of a Spring Boot service
/// with JPA.
pub const TYPICAL_CLASSES: u64 = 17_000;

pub fn for_classes(classes: u64) -> Bytes {
    Bytes::from_bytes(BASE.saturating_add(classes.saturating_mul(PER_CLASS)))
}

pub fn plan_metaspace(situation: &RegionInputs<'_>) -> Region {
    let classes = situation.profile.classes;
    let default = for_classes(classes.unwrap_or(TYPICAL_CLASSES));
    let how = match classes {
        Some(classes) => format!("2 MB + 5,000 B x {classes} measured classes"),
        None => format!("2 MB + 5,000 B x {TYPICAL_CLASSES} classes, a typical service"),
    };
    let mut region = measured_or("metaspace", situation.profile.metaspace, default, how);
    if classes.is_some() && region.provenance == SizeProvenance::Default {
        region.provenance = SizeProvenance::Calculated;
    }
    match situation.options.size_value("MaxMetaspaceSize") {
        Some(limit) if limit < region.size => Region {
            size: limit,
            provenance: SizeProvenance::User,
            how: "MaxMetaspaceSize".to_owned(),
            ..region
        },
        _ => region,
    }
}
