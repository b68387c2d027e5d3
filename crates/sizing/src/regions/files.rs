//! Pages of mapped files: the JVM's own code, libraries, jars.
//!
//! A limit counts them. They can be given back and read again, so a container that lacks room for
//! them is not killed but thrashes: the service below its smallest good size re-read 2.5 million
//! pages in seconds (records/2026-11-20-spring-web-size).

use super::{Region, RegionInputs, measured_or};
use crate::Bytes;

/// Measured: 18 to 21 MiB on 17, 20 to 23 on 25 (records/2026-11-20-regions).
const DEFAULT: Bytes = Bytes::from_mib(22);

pub fn plan_files(situation: &RegionInputs<'_>) -> Region {
    let how = "the JVM's code and libraries";
    measured_or("mapped files", situation.profile.files, DEFAULT, how)
}
