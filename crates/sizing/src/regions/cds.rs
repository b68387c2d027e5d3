//! The mapped start-up archive (CDS, AppCDS, AOT cache).

use super::{Region, RegionInputs, measured_or};
use crate::Bytes;

/// The resident part of the default CDS archive. Measured: 11.6 to 12.7 MiB on 17, 13.5 to 14.7 on 25
/// (records/2026-11-20-regions); the larger figures are G1's, which maps the archived heap too.
const DEFAULT: Bytes = Bytes::from_mib(14);

pub fn plan_cds(situation: &RegionInputs<'_>) -> Region {
    measured_or(
        "CDS",
        situation.profile.cds,
        DEFAULT,
        "the JDK's own archive",
    )
}
