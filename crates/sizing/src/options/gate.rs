//! Which JDK knows a flag. A flag is emitted only for JDKs that know it.
//!
//! Owns the version table: flags that came or went between 8 and 27 and that people or this project
//! use. `flags` decides about all others.

use super::flags;
use super::words::has_word;
use crate::jdk::{JavaVersion, JdkRelease};

/// First version that knows the flags, older features that learned them in an update (feature,
/// update), and the first that no longer starts with them.
struct FlagVersions {
    flags: &'static str,
    since: JavaVersion,
    backports: &'static [(u32, u32)],
    gone: Option<u32>,
    /// The first version that needs no switch for experimental flags.
    product: u32,
}

const fn flag_row(flags: &'static str, since: u32, gone: Option<u32>) -> FlagVersions {
    FlagVersions {
        flags,
        since: JavaVersion::from_feature(since),
        backports: &[],
        gone,
        product: 0,
    }
}

const fn row_8u(flags: &'static str, update: u32, gone: Option<u32>) -> FlagVersions {
    FlagVersions {
        since: JavaVersion::new(8, update),
        ..flag_row(flags, 8, gone)
    }
}

const fn backported(
    flags: &'static str,
    since: u32,
    backports: &'static [(u32, u32)],
    gone: Option<u32>,
) -> FlagVersions {
    FlagVersions {
        backports,
        ..flag_row(flags, since, gone)
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
    backported(
        "ActiveProcessorCount InitialRAMPercentage MaxRAMPercentage MinRAMPercentage \
         UseContainerSupport",
        10,
        &[(8, 191)],
        None,
    ),
    backported(
        "PreferContainerQuotaForCPUCount UseContainerCpuShares",
        10,
        &[(8, 191)],
        Some(25),
    ),
    flag_row("AOTCache AOTConfiguration AOTMode", 24, None),
    flag_row("AOTCacheOutput", 25, None),
    flag_row("AggressiveOpts", 8, Some(13)),
    flag_row("ArchiveClassesAtExit SoftMaxHeapSize ZUncommit", 13, None),
    flag_row("AutoCreateSharedArchive", 19, None),
    flag_row(
        "CMSInitiatingOccupancyFraction UseConcMarkSweepGC",
        8,
        Some(15),
    ),
    row_8u("CrashOnOutOfMemoryError ExitOnOutOfMemoryError", 92, None),
    // JEP 158 and 271: unified logging has taken their place since 9.
    flag_row(
        "GCLogFileSize NumberOfGCLogFiles PrintAdaptiveSizePolicy PrintGCApplicationConcurrentTime \
         PrintGCApplicationStoppedTime PrintGCDateStamps PrintGCTimeStamps PrintHeapAtGC \
         PrintPromotionFailure PrintReferenceGC PrintTenuringDistribution UseGCLogFileRotation",
        8,
        Some(9),
    ),
    flag_row("MaxPermSize PermSize UseParallelOldGC", 8, Some(17)),
    experimental(
        flag_row(
            "G1MaxNewSizePercent G1MixedGCLiveThresholdPercent G1NewSizePercent \
             G1OldCSetRegionThresholdPercent",
            8,
            None,
        ),
        u32::MAX,
    ),
    flag_row("G1PeriodicGCInterval", 12, None),
    flag_row("G1UseTimeBasedHeapSizing", 26, None),
    flag_row(
        "InitialRAMFraction MaxRAMFraction MinRAMFraction OldSize",
        8,
        Some(25),
    ),
    flag_row("MinHeapSize", 14, None),
    flag_row(
        "NonNMethodCodeHeapSize NonProfiledCodeHeapSize ProfiledCodeHeapSize SegmentedCodeCache",
        9,
        None,
    ),
    flag_row("PerfDisableSharedMem SharedArchiveFile", 8, None),
    // JDK-8293114: 21, and the updates 17.0.9 and 11.0.21; not 18 to 20.
    backported("TrimNativeHeapInterval", 21, &[(17, 9), (11, 21)], None),
    // JDK-8194086.
    experimental(row_8u("UseCGroupMemoryLimitForHeap", 131, Some(11)), 11),
    // JEP 450 and 519.
    experimental(flag_row("UseCompactObjectHeaders", 24, None), 25),
    experimental(flag_row("UseEpsilonGC", 11, None), u32::MAX),
    flag_row("UseParNewGC", 8, Some(11)),
    // JEP 189 in 12; upstream's 11.0.9 has it too.
    // JEP 377 and 379: product features since 15.
    experimental(backported("UseShenandoahGC", 12, &[(11, 9)], None), 15),
    experimental(flag_row("UseZGC", 11, None), 15),
    flag_row("ZGenerational", 21, Some(26)),
];

fn row_of(flag: &str) -> Option<&'static FlagVersions> {
    TABLE.iter().find(|row| has_word(row.flags, flag))
}

pub fn is_known(jdk: JdkRelease, flag: &str) -> bool {
    let Some(row) = row_of(flag) else {
        return flags::may_be_known(jdk.version.feature, flag);
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

/// What unlocks the flag: `experimental` needs `-XX:+UnlockExperimentalVMOptions`.
pub fn find_lock(jdk: JdkRelease, flag: &str) -> Option<&'static str> {
    match row_of(flag) {
        Some(row) => (!jdk.at_least(row.product)).then_some("experimental"),
        None => flags::find_lock(jdk.version.feature, flag),
    }
}

pub fn is_listed(flag: &str) -> bool {
    row_of(flag).is_some()
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
        assert!(known("21", "CRaCCheckpointTo") && known("17.0.15", "UseWisp2"));
        assert!(!known("17.0.15", "ZGenerational"));
        for (version, is_known) in [
            ("11", true),
            ("17.0.15", false),
            ("21", false),
            ("26", true),
        ] {
            assert_eq!(
                known(version, "SomethingNobodyListed"),
                is_known,
                "{version}"
            );
        }
        assert!(known("21", "ScavengeBeforeFullGC") && !known("25", "ScavengeBeforeFullGC"));
        assert!(!known("11", "UseObjectMonitorTable") && known("21", "UseSVE"));
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
            let found = super::find_lock(jdk, flag).is_some();
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
