//! One region's budget, what it depends on, and where its size came from.

use std::fmt;

use crate::Bytes;
use crate::hotspot::{CollectorKind, MachineSize, threads as threads_of};
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;
use crate::profile::AppProfile;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SizeProvenance {
    Default,
    Calculated,
    Measured,
    User,
}

impl fmt::Display for SizeProvenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Default => "default",
            Self::Calculated => "calculated",
            Self::Measured => "measured",
            Self::User => "user",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub name: &'static str,
    pub size: Bytes,
    pub provenance: SizeProvenance,
    pub how: String,
}

#[derive(Debug, Clone, Copy)]
pub struct RegionInputs<'a> {
    pub jdk: JdkRelease,
    pub collector: CollectorKind,
    pub gc_workers: u32,
    pub is_c1_only: bool,
    pub compiler_threads: u32,
    pub profile: &'a AppProfile,
    pub options: &'a JvmOptionSet,
}

impl<'a> RegionInputs<'a> {
    /// For a JVM in a container of this size, with this many collector workers unless the options
    /// set them.
    pub fn for_container(
        jdk: JdkRelease,
        (machine, collector, workers): (MachineSize, CollectorKind, u32),
        options: &'a JvmOptionSet,
        profile: &'a AppProfile,
    ) -> Self {
        let set = options.count_value("ParallelGCThreads");
        let level = options.count_value("TieredStopAtLevel");
        let compilers = threads_of::choose_compilers(jdk, machine, options);
        Self {
            jdk,
            collector,
            gc_workers: set
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(match collector {
                    CollectorKind::Serial | CollectorKind::Epsilon => 0,
                    _ => workers,
                }),
            is_c1_only: level.is_some_and(|level| level < 4),
            compiler_threads: compilers.map_or(2, |compilers| compilers.count),
            profile,
            options,
        }
    }
}

pub(crate) fn measured_or(
    name: &'static str,
    measured: Option<Bytes>,
    default: Bytes,
    how: impl Into<String>,
) -> Region {
    match measured {
        Some(size) => Region {
            name,
            size,
            provenance: SizeProvenance::Measured,
            how: "from the profile".to_owned(),
        },
        None => Region {
            name,
            size: default,
            provenance: SizeProvenance::Default,
            how: how.into(),
        },
    }
}
