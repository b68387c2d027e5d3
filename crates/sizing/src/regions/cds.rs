//! The mapped start-up archive (CDS, AppCDS, AOT cache).

use super::{Region, Situation, measured_or};
use crate::Bytes;

/// The part of the default CDS archive (13 to 15 MB) that becomes private or charged page cache.
/// Origin: an estimate, not measured here.
const DEFAULT: Bytes = Bytes::from_mib(13);

/// Plans the region.
pub fn plan(situation: &Situation<'_>) -> Region {
    measured_or(
        "CDS",
        situation.profile.cds,
        DEFAULT,
        "the JDK's own archive",
    )
}
