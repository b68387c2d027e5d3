//! Which JDK knows a flag. A flag is emitted only for JDKs that know it.
//!
//! Owns the version table. A flag that is not in it is taken as known: the table lists flags that
//! came or went between 8 and 27 and that people or this project use.

use crate::jdk::{Jdk, Version};

/// First version that knows the flag, and the first that no longer starts with it.
struct Row {
    flag: &'static str,
    since: Version,
    gone: Option<u32>,
}

const fn row(flag: &'static str, since: u32, gone: Option<u32>) -> Row {
    Row {
        flag,
        since: Version::feature(since),
        gone,
    }
}

const fn row_8u(flag: &'static str, update: u32, gone: Option<u32>) -> Row {
    Row {
        flag,
        since: Version::new(8, update),
        gone,
    }
}

// Sources: release notes, JEPs, the obsolete-flag table of arguments.cpp, and the difference of
// `-XX:+PrintFlagsFinal -XX:+UnlockExperimentalVMOptions` between 17.0.15 and 25.0.3. "gone" is
// the version that exits with "Unrecognized VM option", one after "obsolete" (ignored, warning).
const TABLE: &[Row] = &[
    row_8u("ActiveProcessorCount", 191, None),
    row("AOTCache", 24, None),
    row("AOTCacheOutput", 25, None),
    row("AOTConfiguration", 24, None),
    row("AOTMode", 24, None),
    row("AggressiveOpts", 8, Some(13)),
    row("ArchiveClassesAtExit", 13, None),
    row("AutoCreateSharedArchive", 19, None),
    row("CMSInitiatingOccupancyFraction", 8, Some(15)),
    row_8u("ExitOnOutOfMemoryError", 92, None),
    row_8u("CrashOnOutOfMemoryError", 92, None),
    row("G1PeriodicGCInterval", 12, None),
    row("G1UseTimeBasedHeapSizing", 26, None),
    row_8u("InitialRAMPercentage", 191, None),
    row_8u("MaxRAMPercentage", 191, None),
    row_8u("MinRAMPercentage", 191, None),
    row("InitialRAMFraction", 8, None),
    row("MinHeapSize", 14, None),
    row("NonNMethodCodeHeapSize", 9, None),
    row("NonProfiledCodeHeapSize", 9, None),
    row("PerfDisableSharedMem", 8, None),
    row_8u("PreferContainerQuotaForCPUCount", 191, Some(23)),
    row("ProfiledCodeHeapSize", 9, None),
    row("SegmentedCodeCache", 9, None),
    row("SharedArchiveFile", 8, None),
    row("SoftMaxHeapSize", 13, None),
    // Backported to 17.0.9 and 11.0.21 updates.
    Row {
        flag: "TrimNativeHeapInterval",
        since: Version::new(17, 9),
        gone: None,
    },
    row_8u("UseCGroupMemoryLimitForHeap", 131, Some(12)),
    row("UseCompactObjectHeaders", 24, None),
    row("UseConcMarkSweepGC", 8, Some(15)),
    row_8u("UseContainerCpuShares", 191, Some(24)),
    row_8u("UseContainerSupport", 191, None),
    row("UseEpsilonGC", 11, None),
    row("UseParNewGC", 8, Some(11)),
    row("UseParallelOldGC", 8, Some(17)),
    row("UseShenandoahGC", 12, None),
    row("UseZGC", 11, None),
    row("ZGenerational", 21, Some(26)),
    row("ZUncommit", 13, None),
];

/// Whether this JDK starts with the flag. Flags that are not in the table count as known.
pub fn is_known(jdk: Jdk, flag: &str) -> bool {
    let Some(row) = TABLE.iter().find(|row| row.flag == flag) else {
        return true;
    };
    let is_gone = row.gone.is_some_and(|gone| jdk.at_least(gone));
    // A bare feature version ("8") stands for its current update.
    let is_bare = jdk.version.update == 0 && jdk.version.feature == row.since.feature;
    let is_there = is_bare || jdk.version >= row.since;
    is_there && !is_gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_and_go_with_versions() {
        let known = |version: &str, flag| is_known(Jdk::hotspot(version.parse().unwrap()), flag);
        assert!(!known("8u181", "MaxRAMPercentage"));
        assert!(known("8u191", "MaxRAMPercentage"));
        assert!(known("8", "MaxRAMPercentage"));
        assert!(!known("17.0.15", "UseCompactObjectHeaders"));
        assert!(known("25.0.3", "UseCompactObjectHeaders"));
        assert!(known("17.0.15", "UseContainerCpuShares"));
        assert!(!known("25.0.3", "UseContainerCpuShares"));
        assert!(!known("17.0.15", "ZGenerational"));
        assert!(known("17.0.15", "SomethingNobodyListed"));
    }
}
