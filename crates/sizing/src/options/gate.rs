//! Which JDK knows a flag. A flag is emitted only for JDKs that know it.
//!
//! Owns the version table. A flag that is not in it is taken as known: the table lists flags that
//! came or went between 8 and 27 and that people or this project use.

use crate::jdk::{JavaVersion, JdkRelease};

/// First version that knows the flag, older features that learned it in an update (feature,
/// update), and the first that no longer starts with it.
struct FlagVersions {
    flag: &'static str,
    since: JavaVersion,
    backports: &'static [(u32, u32)],
    gone: Option<u32>,
    /// The first version that needs no switch for experimental flags.
    product: u32,
}

const fn flag_row(flag: &'static str, since: u32, gone: Option<u32>) -> FlagVersions {
    FlagVersions {
        flag,
        since: JavaVersion::from_feature(since),
        backports: &[],
        gone,
        product: 0,
    }
}

const fn row_8u(flag: &'static str, update: u32, gone: Option<u32>) -> FlagVersions {
    FlagVersions {
        since: JavaVersion::new(8, update),
        ..flag_row(flag, 8, gone)
    }
}

const fn backported(
    flag: &'static str,
    since: u32,
    backports: &'static [(u32, u32)],
    gone: Option<u32>,
) -> FlagVersions {
    FlagVersions {
        backports,
        ..flag_row(flag, since, gone)
    }
}

/// A flag that is experimental before the version `product`.
const fn experimental(row: FlagVersions, product: u32) -> FlagVersions {
    FlagVersions { product, ..row }
}

// Sources: release notes, JEPs, the obsolete-flag table of arguments.cpp, and the difference of
// `-XX:+PrintFlagsFinal -XX:+UnlockExperimentalVMOptions` between 17.0.15 and 25.0.3. "gone" is
// the version that exits with "Unrecognized VM option", one after "obsolete" (ignored, warning).
const TABLE: &[FlagVersions] = &[
    // 8u191 has what 10 brought for containers, and 9 has not.
    backported("ActiveProcessorCount", 10, &[(8, 191)], None),
    flag_row("AOTCache", 24, None),
    flag_row("AOTCacheOutput", 25, None),
    flag_row("AOTConfiguration", 24, None),
    flag_row("AOTMode", 24, None),
    flag_row("AggressiveOpts", 8, Some(13)),
    flag_row("ArchiveClassesAtExit", 13, None),
    flag_row("AutoCreateSharedArchive", 19, None),
    flag_row("CMSInitiatingOccupancyFraction", 8, Some(15)),
    row_8u("ExitOnOutOfMemoryError", 92, None),
    row_8u("CrashOnOutOfMemoryError", 92, None),
    // JEP 158 and 271: unified logging has taken their place since 9.
    flag_row("GCLogFileSize", 8, Some(9)),
    flag_row("NumberOfGCLogFiles", 8, Some(9)),
    flag_row("PrintAdaptiveSizePolicy", 8, Some(9)),
    flag_row("PrintGCApplicationConcurrentTime", 8, Some(9)),
    flag_row("PrintGCApplicationStoppedTime", 8, Some(9)),
    flag_row("PrintGCDateStamps", 8, Some(9)),
    flag_row("PrintGCTimeStamps", 8, Some(9)),
    flag_row("PrintHeapAtGC", 8, Some(9)),
    flag_row("PrintPromotionFailure", 8, Some(9)),
    flag_row("PrintReferenceGC", 8, Some(9)),
    flag_row("PrintTenuringDistribution", 8, Some(9)),
    flag_row("UseGCLogFileRotation", 8, Some(9)),
    flag_row("MaxPermSize", 8, Some(17)),
    flag_row("PermSize", 8, Some(17)),
    flag_row("G1PeriodicGCInterval", 12, None),
    flag_row("G1UseTimeBasedHeapSizing", 26, None),
    backported("InitialRAMPercentage", 10, &[(8, 191)], None),
    backported("MaxRAMPercentage", 10, &[(8, 191)], None),
    backported("MinRAMPercentage", 10, &[(8, 191)], None),
    flag_row("InitialRAMFraction", 8, Some(25)),
    flag_row("MaxRAMFraction", 8, Some(25)),
    flag_row("MinHeapSize", 14, None),
    flag_row("MinRAMFraction", 8, Some(25)),
    flag_row("NonNMethodCodeHeapSize", 9, None),
    flag_row("NonProfiledCodeHeapSize", 9, None),
    flag_row("OldSize", 8, Some(25)),
    flag_row("PerfDisableSharedMem", 8, None),
    backported("PreferContainerQuotaForCPUCount", 10, &[(8, 191)], Some(25)),
    flag_row("ProfiledCodeHeapSize", 9, None),
    flag_row("SegmentedCodeCache", 9, None),
    flag_row("SharedArchiveFile", 8, None),
    flag_row("SoftMaxHeapSize", 13, None),
    // JDK-8293114: 21, and the updates 17.0.9 and 11.0.21; not 18 to 20.
    backported("TrimNativeHeapInterval", 21, &[(17, 9), (11, 21)], None),
    // JDK-8194086.
    experimental(row_8u("UseCGroupMemoryLimitForHeap", 131, Some(11)), 11),
    // JEP 450 and 519.
    experimental(flag_row("UseCompactObjectHeaders", 24, None), 25),
    flag_row("UseConcMarkSweepGC", 8, Some(15)),
    backported("UseContainerCpuShares", 10, &[(8, 191)], Some(25)),
    backported("UseContainerSupport", 10, &[(8, 191)], None),
    experimental(flag_row("UseEpsilonGC", 11, None), u32::MAX),
    flag_row("UseParNewGC", 8, Some(11)),
    flag_row("UseParallelOldGC", 8, Some(17)),
    // JEP 189 in 12; upstream's 11.0.9 has it too.
    // JEP 377 and 379: product features since 15.
    experimental(backported("UseShenandoahGC", 12, &[(11, 9)], None), 15),
    experimental(flag_row("UseZGC", 11, None), 15),
    flag_row("ZGenerational", 21, Some(26)),
    flag_row("ZUncommit", 13, None),
];

pub fn is_known(jdk: JdkRelease, flag: &str) -> bool {
    let Some(row) = TABLE.iter().find(|row| row.flag == flag) else {
        return true;
    };
    let is_gone = row.gone.is_some_and(|gone| jdk.at_least(gone));
    // A bare feature version ("8") stands for its current update.
    let is_bare = jdk.version.update == 0 && jdk.version.feature == row.since.feature;
    let is_backported = row.backports.iter().any(|&(feature, update)| {
        let own = jdk.version;
        own.feature == feature && (own.update == 0 || own.update >= update)
    });
    let is_there = is_bare || is_backported || jdk.version >= row.since;
    is_there && !is_gone
}

/// Whether the flag needs `-XX:+UnlockExperimentalVMOptions`.
pub fn is_experimental(jdk: JdkRelease, flag: &str) -> bool {
    let row = TABLE.iter().find(|row| row.flag == flag);
    row.is_some_and(|row| !jdk.at_least(row.product))
}

pub fn is_listed(flag: &str) -> bool {
    TABLE.iter().any(|row| row.flag == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_and_go_with_versions() {
        let known =
            |version: &str, flag| is_known(JdkRelease::for_hotspot(version.parse().unwrap()), flag);
        assert!(!known("8u181", "MaxRAMPercentage"));
        assert!(known("8u191", "MaxRAMPercentage"));
        assert!(known("8", "MaxRAMPercentage"));
        assert!(!known("9", "MaxRAMPercentage"));
        assert!(known("8u372", "PrintGCDateStamps") && !known("11", "PrintGCDateStamps"));
        assert!(known("16", "MaxPermSize") && !known("17", "MaxPermSize"));
        assert!(!known("17.0.15", "UseCompactObjectHeaders"));
        assert!(known("25.0.3", "UseCompactObjectHeaders"));
        assert!(known("17.0.15", "UseContainerCpuShares"));
        assert!(!known("25.0.3", "UseContainerCpuShares"));
        assert!(!known("17.0.15", "ZGenerational"));
        assert!(known("17.0.15", "SomethingNobodyListed"));
    }

    #[test]
    fn experimental_flags_become_product_flags() {
        for (version, flag, is_experimental) in [
            ("8u131", "UseCGroupMemoryLimitForHeap", true),
            ("14", "UseZGC", true),
            ("15", "UseZGC", false),
            ("24", "UseCompactObjectHeaders", true),
            ("25", "UseCompactObjectHeaders", false),
            ("25", "UseEpsilonGC", true),
            ("8", "UseG1GC", false),
        ] {
            let jdk = JdkRelease::for_hotspot(version.parse().unwrap());
            let found = super::is_experimental(jdk, flag);
            assert_eq!(found, is_experimental, "{version} {flag}");
        }
    }

    #[test]
    fn backports_count_from_their_update_on_and_not_in_between() {
        let known =
            |version: &str, flag| is_known(JdkRelease::for_hotspot(version.parse().unwrap()), flag);
        for version in ["11", "11.0.9", "11.0.22", "12", "17.0.15"] {
            assert!(known(version, "UseShenandoahGC"), "{version}");
        }
        assert!(!known("11.0.8", "UseShenandoahGC"));
        for version in ["11.0.25", "17.0.9", "17", "21", "25.0.3"] {
            assert!(known(version, "TrimNativeHeapInterval"), "{version}");
        }
        for version in ["8u402", "11.0.20", "17.0.8", "18.0.2", "20.0.1"] {
            assert!(!known(version, "TrimNativeHeapInterval"), "{version}");
        }
    }
}
