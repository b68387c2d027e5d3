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
    FreeRatios {
        least: u64,
        most: u64,
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
            Self::FreeRatios { least, most } => write!(
                f,
                "MinHeapFreeRatio ({least}) is above MaxHeapFreeRatio ({most}); set both"
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
    TieredStopAtLevel ObjectAlignmentInBytes SurvivorRatio MaxTenuringThreshold \
    MaxGCPauseMillis InitiatingHeapOccupancyPercent MinHeapFreeRatio MaxHeapFreeRatio";

/// The least and the most value that 17.0.15 and 25.0.3 take on x86-64.
const RANGES: [(&str, u64, u64, &str); 10] = [
    ("TieredStopAtLevel", 0, 4, "a level from 0 to 4"),
    (
        "ObjectAlignmentInBytes",
        8,
        256,
        "8, 16, 32, 64, 128 or 256",
    ),
    ("SurvivorRatio", 1, u64::MAX, "a number above 0"),
    ("MaxTenuringThreshold", 0, 16, "a number from 0 to 16"),
    ("MaxGCPauseMillis", 1, u64::MAX, "a number above 0"),
    ("InitiatingHeapOccupancyPercent", 0, 100, "0 to 100"),
    ("MinHeapFreeRatio", 0, 100, "0 to 100"),
    (
        "ThreadStackSize",
        136,
        1 << 20,
        "a thread stack of at least 136k and at most 1g",
    ),
    ("ReservedCodeCacheSize", 0, 2 << 30, "at most 2g"),
    ("CompressedClassSpaceSize", 1 << 20, 4 << 30, "1m to 3g"),
];

/// What may follow `-X`: whole, or up to a value.
const EXTRA: &str = "\
    batch comp debug diag incgc int internalversion mixed noagent noclassgc prof rs verify \
    showSettings log future";
const EXTRA_WITH_VALUE: &str = "\
    bootclasspath check:jni log: loggc: maxf maxjitcodesize minf mn ms mx run share: \
    showSettings: ss verify:";

/// Options without a flag, and the first JDK that no longer starts with each.
const GONE: [(&str, u32); 7] = [
    ("-d32", 10),
    ("-d64", 10),
    ("-Xincgc", 9),
    ("-Xbootclasspath/p:", 9),
    ("-Djava.ext.dirs=", 9),
    ("-Djava.endorsed.dirs=", 9),
    ("-Djava.security.manager=allow", 24),
];

/// Other flags that are looked at, and product flags of 8 to 25 that change no size.
const OTHERS: &str = "\
    AggressiveHeap AlwaysActAsServerClassMachine IgnoreUnrecognizedVMOptions \
    MaxRAMFraction MinRAMFraction InitialRAMFraction NeverActAsServerClassMachine \
    UnlockDiagnosticVMOptions UnlockExperimentalVMOptions NewRatio UseCompressedOops \
    AlwaysPreTouch DisableExplicitGC ErrorFile ExplicitGCInvokesConcurrent \
    HeapDumpOnOutOfMemoryError HeapDumpPath NativeMemoryTracking OmitStackTraceInFastThrow \
    ParallelRefProcEnabled PreserveFramePointer PrintCommandLineFlags PrintFlagsFinal \
    PrintGC PrintGCDetails UseLargePages UseNUMA UseStringDeduplication \
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
    // `Xmx` is as long.
    let (begin, rest) = bare.split_at_checked("XX:".len())?;
    if begin.eq_ignore_ascii_case("XX:") {
        let spelt = format!("-XX:{rest}");
        return respell(&spelt).or(Some(spelt));
    }
    let mut known = ["Xmx", "Xms", "Xmn", "Xss"].into_iter();
    let meant = known.find(|known| known.eq_ignore_ascii_case(begin))?;
    let is_size = rest.starts_with(|c: char| c.is_ascii_digit());
    let spelt = format!("-{meant}{rest}");
    (is_size && spelt != option).then_some(spelt)
}

/// Whether a JDK no longer starts with an option that sets no flag, or never did: `-Xgcpolicy` is OpenJ9's.
fn is_foreign(jdk: JdkRelease, option: &str) -> bool {
    let is_gone = |(begin, since): &(&str, u32)| option.starts_with(begin) && jdk.at_least(*since);
    let extra = option
        .strip_prefix("-X")
        .filter(|rest| !rest.is_empty() && !rest.starts_with("X:"));
    let is_extra = |rest: &str| {
        let mut begins = EXTRA_WITH_VALUE.split_ascii_whitespace();
        has_word(EXTRA, rest) || begins.any(|begin| rest.starts_with(begin))
    };
    GONE.iter().any(is_gone) || extra.is_some_and(|rest| !is_extra(rest))
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
                || ["=true", "=false"].iter().any(|end| text.ends_with(end))
                || name.contains(char::is_whitespace))
    };
    for (text, _) in options.option_texts().filter(|_| !lenient) {
        let option = text.to_owned();
        if let Some(meant) = respell(text) {
            return Err(HotSpotRefusal::Misspelt { option, meant });
        }
        if is_foreign(jdk, text) {
            return Err(HotSpotRefusal::UnknownFlag { option, jdk });
        }
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
        let range = RANGES.iter().find(|(flag, ..)| *flag == name);
        let value = options.size_value(name).map(Bytes::as_bytes);
        if let (Some((_, least, most, expected)), Some(value)) = (range, value) {
            // A stack of 0 is the default.
            let is_default = name == "ThreadStackSize" && value == 0;
            if !is_default && !(*least..=*most).contains(&value) {
                return Err(bad(expected));
            }
        }
    }
    Ok(())
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
    fn values_and_options_that_no_hotspot_takes_are_refused() {
        // Each as 17.0.15 and 25.0.3 answer.
        for (option, is_refused) in [
            ("-XX:ReservedCodeCacheSize=3g", true),
            ("-XX:ReservedCodeCacheSize=2g", false),
            ("-XX:CompressedClassSpaceSize=512k", true),
            ("-XX:ObjectAlignmentInBytes=7", true),
            ("-XX:TieredStopAtLevel=9", true),
            ("-XX:SurvivorRatio=0", true),
            ("-XX:MaxTenuringThreshold=20", true),
            ("-XX:MaxTenuringThreshold=15", false),
            ("-XX:MaxGCPauseMillis=0", true),
            ("-XX:MaxGCPauseMillis=200ms", true),
            ("-XX:InitiatingHeapOccupancyPercent=45%", true),
            ("-XX:MinHeapFreeRatio=101", true),
            ("-XX:HeapDumpOnOutOfMemoryError=true", true),
            ("-XX:UseG1GC=false", true),
            ("-XX+UseG1GC", true),
            ("-Xss2g", true),
            ("-Xss100k", true),
            ("-Xss512kb", true),
            ("-Xss0", false),
            ("-Xss1g", false),
            ("-Xgcpolicy:gencon", true),
            ("-Xshareclasses", true),
            ("-Xfoo", true),
            ("-Xshare:auto", false),
            ("-Xlog:gc*:file=gc.log", false),
            ("-Xloggc:gc.log", false),
            ("-Xrunjdwp:transport=dt_socket", false),
            ("-Xbatch", false),
            ("-Xverify:none", false),
            ("-Xbootclasspath/a:x.jar", false),
            ("-Xbootclasspath/p:x.jar", true),
            ("-d64", true),
            ("-Djava.endorsed.dirs=/x", true),
            ("-Djava.security.manager=allow", true),
            ("-Djava.security.manager=disallow", false),
            ("-Dx=y", false),
        ] {
            assert_eq!(refused(&[option]).is_some(), is_refused, "{option}");
        }
        let old = JdkRelease::for_hotspot("8u372".parse().unwrap());
        for option in ["-d64", "-Xincgc", "-Xbootclasspath/p:x.jar"] {
            let options = JvmOptionSet::from_words([option]);
            assert_eq!(check_flags(old, &options), Ok(()), "{option}");
        }
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
            ("-xx:+UseG1GC", Some("-XX:+UseG1GC")),
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
