//! Direct (NIO) buffers.

use super::{Region, RegionInputs, SizeProvenance, measured_or};
use crate::Bytes;

/// What Paketo and Cloud Foundry allow. A Tomcat service used 0.1 MiB (records/2026-11-20-regions);
/// Netty takes more. Too small only where a profile is missing and the application uses NIO
/// heavily; the JVM's own cap (as large as the heap) is left alone.
const DEFAULT: Bytes = Bytes::from_mib(10);

pub fn plan_direct(situation: &RegionInputs<'_>) -> Region {
    let set = situation.options.size_value("MaxDirectMemorySize");
    match set.filter(|size| *size > Bytes::default()) {
        Some(size) => Region {
            name: "direct",
            size,
            provenance: SizeProvenance::User,
            how: "MaxDirectMemorySize".to_owned(),
        },
        None => measured_or(
            "direct",
            situation.profile.direct,
            DEFAULT,
            "a few NIO buffers",
        ),
    }
}
