//! Options a JVM does not start with.

use std::fmt;

use super::CollectorKind;
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::{JvmOptionSet, dimension, gate};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HotSpotRefusal {
    TwoCollectors {
        first: CollectorKind,
        second: CollectorKind,
    },
    UnknownFlag {
        option: String,
        jdk: JdkRelease,
    },
    BadValue {
        option: String,
        expected: &'static str,
    },
    InitialAboveMax {
        initial: Bytes,
        max: Bytes,
    },
    SoftMaxAboveMax {
        soft_max: Bytes,
        max: Bytes,
    },
    HeapTooSmall {
        size: Bytes,
    },
    NoGcThreads {
        collector: CollectorKind,
    },
    ConcurrentAboveParallel {
        concurrent: u32,
        parallel: u32,
    },
    TooFewCompilers {
        count: u32,
        needed: u32,
    },
    CodeCacheTooSmall {
        size: Bytes,
        least: Bytes,
    },
}

impl fmt::Display for HotSpotRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoCollectors { first, second } => write!(
                f,
                "-XX:+{} and -XX:+{} are both on; the JVM starts with one collector only",
                first.flag(),
                second.flag()
            ),
            Self::UnknownFlag { option, jdk } => {
                write!(f, "{option}: {jdk} does not know this flag")
            }
            Self::BadValue { option, expected } => write!(f, "{option}: expected {expected}"),
            Self::InitialAboveMax { initial, max } => write!(
                f,
                "the initial heap ({initial}) is larger than the largest heap ({max})"
            ),
            Self::SoftMaxAboveMax { soft_max, max } => write!(
                f,
                "SoftMaxHeapSize ({soft_max}) is larger than the largest heap ({max})"
            ),
            Self::HeapTooSmall { size } => {
                write!(
                    f,
                    "a heap of {size} is below the least of 2Mi (1Mi initial)"
                )
            }
            Self::NoGcThreads { collector } => {
                write!(f, "{collector} needs at least one of ParallelGCThreads")
            }
            Self::ConcurrentAboveParallel {
                concurrent,
                parallel,
            } => write!(
                f,
                "ConcGCThreads={concurrent} is more than ParallelGCThreads={parallel}"
            ),
            Self::TooFewCompilers { count, needed } => write!(
                f,
                "CICompilerCount={count} is below {needed}, the number of compilers in use"
            ),
            Self::CodeCacheTooSmall { size, least } => {
                write!(f, "a code cache of {size} is below the least of {least}")
            }
        }
    }
}

impl std::error::Error for HotSpotRefusal {}

const SIZES: &[&str] = &[
    "MaxHeapSize",
    "InitialHeapSize",
    "MinHeapSize",
    "NewSize",
    "MaxNewSize",
    "SoftMaxHeapSize",
    "MaxRAM",
    "MaxMetaspaceSize",
    "MetaspaceSize",
    "CompressedClassSpaceSize",
    "ReservedCodeCacheSize",
    "MaxDirectMemorySize",
    "G1HeapRegionSize",
];

/// Flags with a percentage from 0 to 100 as value.
const PERCENTAGES: &[&str] = &[
    "MaxRAMPercentage",
    "MinRAMPercentage",
    "InitialRAMPercentage",
];

const COUNTS: &[&str] = &[
    "ParallelGCThreads",
    "ConcGCThreads",
    "CICompilerCount",
    "ActiveProcessorCount",
    "ThreadStackSize",
    "TieredStopAtLevel",
];

const OTHERS: &[&str] = &[
    "AggressiveHeap",
    "AlwaysActAsServerClassMachine",
    "IgnoreUnrecognizedVMOptions",
    "MaxRAMFraction",
    "MinRAMFraction",
    "InitialRAMFraction",
    "NeverActAsServerClassMachine",
    "UnlockDiagnosticVMOptions",
    "UnlockExperimentalVMOptions",
    "NewRatio",
    "UseCompressedOops",
];

/// The `-XX:` options, as written, with flags unknown here: neither their effects nor their
/// versions are known.
pub fn unknown_flags(options: &JvmOptionSet) -> Vec<&str> {
    let is_listed = |name: &&str| {
        let tables = [SIZES, PERCENTAGES, COUNTS, OTHERS];
        tables.iter().any(|table| table.contains(name))
    };
    let settings = options.settings().filter(|(name, setting)| {
        let is_known =
            is_listed(name) || gate::is_listed(name) || dimension::of_flag(name).is_some();
        setting.text.starts_with("-XX:") && !is_known
    });
    settings.map(|(_, setting)| setting.text.as_str()).collect()
}

pub fn check_flags(jdk: JdkRelease, options: &JvmOptionSet) -> Result<(), HotSpotRefusal> {
    let lenient = options.switch_value("IgnoreUnrecognizedVMOptions") == Some(true);
    // Whether it knows the name or not: without a sign or a value it takes none.
    let is_bare = |text: &&str| !text.contains('=') && !text[4..].starts_with(['+', '-']);
    if let Some(bare) = options
        .with_prefix("-XX:")
        .find(is_bare)
        .filter(|_| !lenient)
    {
        return Err(HotSpotRefusal::BadValue {
            option: bare.to_owned(),
            expected: "-XX:+NAME, -XX:-NAME or -XX:NAME=VALUE",
        });
    }
    for (name, setting) in options.settings() {
        let option = || setting.text.clone();
        let bad = |expected| HotSpotRefusal::BadValue {
            option: option(),
            expected,
        };
        if !lenient && !gate::is_known(jdk, name) {
            return Err(HotSpotRefusal::UnknownFlag {
                option: option(),
                jdk,
            });
        }
        if SIZES.contains(&name) && options.size_value(name).is_none() {
            return Err(bad("an amount such as 512m or 1g"));
        }
        let is_percentage = |p: f64| (0.0..=100.0).contains(&p);
        if PERCENTAGES.contains(&name) && !options.percentage_value(name).is_some_and(is_percentage)
        {
            return Err(bad("a percentage from 0.0 to 100.0"));
        }
        if PERCENTAGES.contains(&name) && jdk.version.feature <= 10 && !setting.value.contains('.')
        {
            return Err(bad(
                "a percentage with a point, as JDK 8 and 10 need it: 50.0",
            ));
        }
        if COUNTS.contains(&name) && options.count_value(name).is_none() {
            return Err(bad("a whole number"));
        }
    }
    // The least stack on x86-64 is 136 KiB; -Xss below it does not start a thread.
    let stack = options.count_value("ThreadStackSize");
    match stack.filter(|kib| *kib > 0 && *kib < 136) {
        Some(_) => Err(HotSpotRefusal::BadValue {
            option: options
                .setting("ThreadStackSize")
                .map_or_else(String::new, |s| s.text.clone()),
            expected: "a thread stack of at least 136k",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(options: &[&str]) -> Option<String> {
        let jdk = JdkRelease::for_hotspot("25.0.3".parse().unwrap());
        let options = JvmOptionSet::from_words(options.iter().copied());
        check_flags(jdk, &options).err().map(|e| e.to_string())
    }

    #[test]
    fn an_option_without_sign_and_value_starts_no_jvm() {
        // 17.0.15 and 25.0.3: "Unrecognized VM option 'Nosuch'", "Missing +/- setting for VM option
        // 'UseG1GC'", "Improperly specified VM option 'MaxHeapSize'".
        for bare in ["-XX:Nosuch", "-XX:UseG1GC", "-XX:MaxHeapSize"] {
            let said = refused(&[bare]).unwrap();
            assert!(said.starts_with(bare), "{said}");
            assert!(said.contains("-XX:NAME=VALUE"), "{said}");
        }
        assert_eq!(refused(&["-XX:Nosuch=1", "-XX:-Nosuch"]), None);
        let lenient = ["-XX:Nosuch", "-XX:+IgnoreUnrecognizedVMOptions"];
        assert_eq!(refused(&lenient), None);
    }

    #[test]
    fn percentages_need_a_point_before_11() {
        // JDK-8 and 10: "Improperly specified VM option 'MaxRAMPercentage=50'".
        let refused = |jdk: &str, option: &str| {
            let jdk = JdkRelease::for_hotspot(jdk.parse().unwrap());
            check_flags(jdk, &JvmOptionSet::from_words([option])).is_err()
        };
        for jdk in ["8u191", "8u372", "8", "10"] {
            assert!(refused(jdk, "-XX:MaxRAMPercentage=50"), "{jdk}");
            assert!(!refused(jdk, "-XX:MaxRAMPercentage=50.0"), "{jdk}");
        }
        assert!(!refused("11", "-XX:MaxRAMPercentage=50"));
    }

    #[test]
    fn what_is_not_looked_at_is_named() {
        let options = [
            "-Xmx1g",
            "-Dname=value",
            "-XX:+UseG1GC",
            "-XX:MaxRAMPercentage=50",
            "-XX:+UseCompactObjectHeaders",
            "-XX:+Nosuch",
            "-XX:Nosuch2=1",
        ];
        let options = JvmOptionSet::from_words(options);
        assert_eq!(unknown_flags(&options), ["-XX:+Nosuch", "-XX:Nosuch2=1"]);
    }
}
