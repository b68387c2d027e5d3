//! Which JDK knows a flag. A flag is emitted only for JDKs that know it.
//!
//! Owns the version table: flags that came or went between 8 and 27 and that people or this project
//! use. `flags` decides about all others.

use super::flags;
use super::words::has_word;
use crate::jdk::{JavaVersion, JdkRelease};

/// A line for flags of the same versions: the first version that knows them, updates of older ones that
/// learned them, the first that no longer starts with them, the first that needs no switch for
/// experimental flags (`never`: none yet), the flags. `-` is none.
///
/// Sources: release notes, JEPs, the obsolete-flag table of arguments.cpp, and the difference of
/// `-XX:+PrintFlagsFinal -XX:+UnlockExperimentalVMOptions` between 17.0.15 and 25.0.3. The third column
/// is the version that exits with "Unrecognized VM option", one after "obsolete" (ignored, warning).
const TABLE: &str = include_str!("gate.txt");

struct FlagVersions {
    since: JavaVersion,
    backports: &'static str,
    gone: Option<u32>,
    product: u32,
}

fn find_row(flag: &str) -> Option<FlagVersions> {
    let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| {
        let mut parts = line.splitn(5, ' ');
        let row = FlagVersions {
            since: parts.next()?.parse().ok()?,
            backports: parts.next()?,
            gone: parts.next()?.parse().ok(),
            product: match parts.next()? {
                "never" => u32::MAX,
                product => product.parse().unwrap_or(0),
            },
        };
        has_word(parts.next()?, flag).then_some(row)
    })
}

pub fn is_known(jdk: JdkRelease, flag: &str) -> bool {
    let Some(row) = find_row(flag) else {
        return flags::may_be_known(jdk.version.feature, flag);
    };
    let is_gone = row.gone.is_some_and(|gone| jdk.at_least(gone));
    // A bare feature version ("8") stands for its current update.
    let is_bare = jdk.version.update == 0 && jdk.version.feature == row.since.feature;
    let mut backports = row.backports.split(',').flat_map(str::parse::<JavaVersion>);
    let is_backported = backports.any(|update| {
        let own = jdk.version;
        own.feature == update.feature && (own.update == 0 || own >= update)
    });
    let is_there = is_bare || is_backported || jdk.version >= row.since;
    is_there && !is_gone
}

/// What unlocks the flag: `experimental` needs `-XX:+UnlockExperimentalVMOptions`.
pub fn find_lock(jdk: JdkRelease, flag: &str) -> Option<&'static str> {
    match find_row(flag) {
        Some(row) => (!jdk.at_least(row.product)).then_some("experimental"),
        None => flags::find_lock(jdk.version.feature, flag),
    }
}

pub fn is_listed(flag: &str) -> bool {
    find_row(flag).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            for flag in line.split(' ').skip(4) {
                assert!(is_listed(flag), "{flag}");
            }
            for update in line
                .split([' ', ','])
                .filter(|part| part.contains(['.', 'u']))
            {
                let is_flag = update.starts_with(char::is_uppercase);
                assert!(is_flag || update.parse::<JavaVersion>().is_ok(), "{update}");
            }
        }
    }

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
        assert!(
            known("8", "Flags") && !known("8", "VMOptionsFile") && known("17", "VMOptionsFile")
        );
        assert!(known("17", "UseBiasedLocking") && !known("21", "UseBiasedLocking"));
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
