//! Options a JVM does not start with.

use std::fmt;

use super::CollectorKind;
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::words::{DASHES, has_word};
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
    /// Without the option that unlocks experimental flags.
    LockedFlag {
        option: String,
        jdk: JdkRelease,
    },
    BadValue {
        option: String,
        expected: &'static str,
    },
    /// A name in other letters than HotSpot's.
    Misspelt {
        option: String,
        meant: String,
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
            Self::LockedFlag { option, jdk } => write!(
                f,
                "{option}: the flag is experimental in {jdk}; put -XX:+UnlockExperimentalVMOptions before it"
            ),
            Self::BadValue { option, expected } => write!(f, "{option}: expected {expected}"),
            Self::Misspelt { option, meant } => write!(
                f,
                "{option}: the JVM does not know this option; did you mean {meant}?"
            ),
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

const SIZES: &str = "\
    MaxHeapSize InitialHeapSize MinHeapSize NewSize MaxNewSize SoftMaxHeapSize MaxRAM \
    MaxMetaspaceSize MetaspaceSize CompressedClassSpaceSize ReservedCodeCacheSize \
    MaxDirectMemorySize G1HeapRegionSize";

/// Flags with a percentage from 0 to 100 as value.
const PERCENTAGES: &str = "\
    MaxRAMPercentage MinRAMPercentage InitialRAMPercentage";

const COUNTS: &str = "\
    ParallelGCThreads ConcGCThreads CICompilerCount ActiveProcessorCount ThreadStackSize \
    TieredStopAtLevel ObjectAlignmentInBytes";

/// Other flags that are looked at, and product flags of 8 to 25 that change no size.
const OTHERS: &str = "\
    AggressiveHeap AlwaysActAsServerClassMachine IgnoreUnrecognizedVMOptions \
    MaxRAMFraction MinRAMFraction InitialRAMFraction NeverActAsServerClassMachine \
    UnlockDiagnosticVMOptions UnlockExperimentalVMOptions NewRatio UseCompressedOops \
    AlwaysPreTouch DisableExplicitGC ErrorFile ExplicitGCInvokesConcurrent \
    HeapDumpOnOutOfMemoryError HeapDumpPath InitiatingHeapOccupancyPercent \
    MaxGCPauseMillis MaxTenuringThreshold NativeMemoryTracking OmitStackTraceInFastThrow \
    ParallelRefProcEnabled PreserveFramePointer PrintCommandLineFlags PrintFlagsFinal \
    PrintGC PrintGCDetails SurvivorRatio UseLargePages UseNUMA UseStringDeduplication \
    UseTransparentHugePages";

/// Percentages above 0 and of at most 1, which are shares to who wrote them: as written, and as meant.
pub fn tiny_percentages(options: &JvmOptionSet) -> Vec<(String, String)> {
    let tiny = PERCENTAGES.split(' ').filter_map(|name| {
        let value = options.percentage_value(name)?;
        let text = &options.setting(name)?.text;
        let is_share = value > 0.0 && value <= 1.0;
        is_share.then(|| (text.clone(), format!("-XX:{name}={:.1}", value * 100.0)))
    });
    tiny.collect()
}

/// The option that was meant by one in other letters or with other dashes: `-Xmx512m` of `-XMX512m`
/// and `--Xmx512m`, and `-XX:MaxRAMPercentage=75` of `-XX:MaxRamPercentage=75`.
fn respell(option: &str) -> Option<String> {
    if let Some(flag) = option.strip_prefix("-XX:") {
        let sign = flag.len() - flag.trim_start_matches(['+', '-']).len();
        let end = flag.find('=').unwrap_or(flag.len());
        let name = &flag[sign.min(end)..end];
        let tables = [SIZES, PERCENTAGES, COUNTS, OTHERS];
        let mut known = tables.into_iter().flat_map(|table| table.split(' '));
        let meant = known.find(|known| known.eq_ignore_ascii_case(name))?;
        let spelt = format!("-XX:{}{meant}{}", &flag[..sign], &flag[end..]);
        return (spelt != option).then_some(spelt);
    }
    let bare = option.trim_start_matches(DASHES);
    if bare.starts_with("XX:") {
        let spelt = format!("-{bare}");
        return respell(&spelt).or(Some(spelt));
    }
    let (name, size) = bare.split_at_checked("Xmx".len())?;
    let mut known = ["Xmx", "Xms", "Xmn", "Xss"].into_iter();
    let meant = known.find(|known| known.eq_ignore_ascii_case(name))?;
    let is_size = size.starts_with(|c: char| c.is_ascii_digit());
    let spelt = format!("-{meant}{size}");
    (is_size && spelt != option).then_some(spelt)
}

/// The `-XX:` options, as written, with flags unknown here: neither their effects nor their
/// versions are known.
pub fn unknown_flags(options: &JvmOptionSet) -> Vec<&str> {
    let is_listed = |name: &&str| {
        let tables = [SIZES, PERCENTAGES, COUNTS, OTHERS];
        tables.iter().any(|table| has_word(table, name))
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
    let is_unlocked = lenient || options.switch_value("UnlockExperimentalVMOptions") == Some(true);
    // Whether it knows the name or not: without a sign or a value it takes none.
    // Nor does it take both.
    let is_bare = |text: &&str| {
        // Flight Recorder starts without a value (17.0.15 and 25.0.3).
        let name = text[4..].split('=').next().unwrap_or_default();
        *text != "-XX:StartFlightRecording"
            && (text.contains('=') == name.starts_with(['+', '-'])
                || name.contains(char::is_whitespace))
    };
    let respelt = options.option_texts().find_map(|(text, _)| {
        Some(HotSpotRefusal::Misspelt {
            meant: respell(text)?,
            option: text.to_owned(),
        })
    });
    if let Some(refusal) = respelt.filter(|_| !lenient) {
        return Err(refusal);
    }
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
        // `-Xms` is older than the flags that it sets.
        let is_named = !lenient && setting.text.starts_with("-XX:");
        if is_named && !gate::is_known(jdk, name) {
            return Err(HotSpotRefusal::UnknownFlag {
                option: option(),
                jdk,
            });
        }
        if !is_unlocked && gate::is_experimental(jdk, name) {
            return Err(HotSpotRefusal::LockedFlag {
                option: option(),
                jdk,
            });
        }
        if has_word(SIZES, name) && options.size_value(name).is_none() {
            return Err(bad("an amount such as 512m or 1g"));
        }
        let is_percentage = |p: f64| (0.0..=100.0).contains(&p);
        if has_word(PERCENTAGES, name) && !options.percentage_value(name).is_some_and(is_percentage)
        {
            return Err(bad("a percentage from 0.0 to 100.0"));
        }
        if has_word(PERCENTAGES, name) && jdk.version.feature <= 10 && !setting.value.contains('.')
        {
            return Err(bad(
                "a percentage with a point, as JDK 8 and 10 need it: 50.0",
            ));
        }
        if has_word(COUNTS, name) && options.count_value(name).is_none() {
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
        for bare in [
            "-XX:Nosuch",
            "-XX:UseG1GC",
            "-XX:MaxHeapSize",
            "-XX:+MaxRAMPercentage=75",
            "-XX:+UseG1GC -Xmx1g",
        ] {
            let said = refused(&[bare]).unwrap();
            assert!(said.starts_with(bare), "{said}");
            assert!(said.contains("-XX:NAME=VALUE"), "{said}");
        }
        assert_eq!(refused(&["-XX:Nosuch=1", "-XX:-Nosuch"]), None);
        assert_eq!(refused(&["-XX:StartFlightRecording"]), None);
        let lenient = ["-XX:Nosuch", "-XX:+IgnoreUnrecognizedVMOptions"];
        assert_eq!(refused(&lenient), None);
    }

    #[test]
    fn options_in_other_letters_are_told_as_they_were_meant() {
        for (option, meant) in [
            ("-XMX512m", Some("-Xmx512m")),
            ("-xms64m", Some("-Xms64m")),
            ("-XX:MaxRamPercentage=75", Some("-XX:MaxRAMPercentage=75")),
            ("-XX:+usecompressedoops", Some("-XX:+UseCompressedOops")),
            ("--Xmx512m", Some("-Xmx512m")),
            ("\u{2013}Xmx512m", Some("-Xmx512m")),
            ("\u{2014}XX:+useg1gc", Some("-XX:+useg1gc")),
            ("\u{2013}X", None),
            ("-Xmx512m", None),
            ("-XX:+UseG1GC", None),
            ("-Xmixed", None),
            ("-Dé", None),
        ] {
            assert_eq!(respell(option).as_deref(), meant, "{option}");
        }
        let options = JvmOptionSet::from_words(["-XX:MaxRAMPercentage=0.75"]);
        let meant = "-XX:MaxRAMPercentage=75.0".to_owned();
        assert_eq!(tiny_percentages(&options)[0].1, meant);
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
        assert!(!refused("8", "-Xms64m") && !refused("11", "-Xms64m"));
        assert!(refused("11", "-XX:MinHeapSize=64m"));
    }

    #[test]
    fn what_is_not_looked_at_is_named() {
        let options = [
            "-Xmx1g",
            "-Dname=value",
            "-XX:+UseG1GC",
            "-XX:MaxRAMPercentage=50",
            "-XX:+UseCompactObjectHeaders",
            "-XX:+HeapDumpOnOutOfMemoryError",
            "-XX:+Nosuch",
            "-XX:Nosuch2=1",
        ];
        let options = JvmOptionSet::from_words(options);
        assert_eq!(unknown_flags(&options), ["-XX:+Nosuch", "-XX:Nosuch2=1"]);
    }
}
