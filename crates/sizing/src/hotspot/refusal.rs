//! Options a JVM does not start with.

use std::fmt;

use super::CollectorKind;
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::words::{DASHES, has_word};
use crate::options::{JvmOptionSet, canonical, dimension, flags, gate, logging, parse_size};

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
    /// Without the option before it that unlocks such flags: `experimental`, `diagnostic`.
    LockedFlag {
        option: String,
        jdk: JdkRelease,
        kind: &'static str,
    },
    BadValue {
        option: String,
        expected: String,
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
    /// Two flags of which one bounds the other.
    WrongOrder {
        low: (&'static str, u64),
        high: (&'static str, u64),
    },
    HeapTooSmall {
        size: Bytes,
        least: Bytes,
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
            Self::LockedFlag { option, jdk, kind } => write!(
                f,
                "{option}: the flag is {kind} in {jdk}; put {} before it",
                unlocking_option(kind)
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
            Self::WrongOrder { low, high } => write!(
                f,
                "{} ({}) is above {} ({}); set both",
                low.0, low.1, high.0, high.1
            ),
            Self::HeapTooSmall { size, least } => write!(
                f,
                "a heap of {size} is below the least of {least} (1Mi initial)"
            ),
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

/// Flags with a percentage from 0 to 100 as value.
const PERCENTAGES: &str = "\
    MaxRAMPercentage MinRAMPercentage InitialRAMPercentage";

/// The least and the most value where neither is in the table of flags (17.0.15 and 25.0.3).
const RANGES: [(&str, u64, u64, &str); 3] = [
    (
        "ThreadStackSize",
        136,
        1 << 20,
        "a thread stack of at least 136k and at most 1g",
    ),
    ("ReservedCodeCacheSize", 0, 2 << 30, "at most 2g"),
    ("MaxMetaspaceSize", 128 << 10, u64::MAX, "at least 128k"),
];

/// What may follow `-X`: whole, or up to a value.
const EXTRA: &str = "\
    batch comp debug diag incgc int internalversion mixed noagent noclassgc prof rs share:auto \
    share:dump share:off share:on verify showSettings log future";
const EXTRA_WITH_VALUE: &str = "\
    bootclasspath: bootclasspath/a: bootclasspath/p: check:jni log: loggc: maxf maxjitcodesize \
    minf mn ms mx run showSettings: ss verify:";

/// Options of one dash with another letter than `X`, up to a colon; and of two, with the first JDK.
const SHORT: &str = "\
    -? -agentlib -agentpath -classpath -client -cp -d32 -d64 -da -disableassertions \
    -disablesystemassertions -dsa -ea -enableassertions -enablesystemassertions -esa -h -help -jar \
    -javaagent -m -noclassgc -noverify -p -server -showversion -splash -verbose -verbosegc -version";
const LONG: [(u32, &str); 6] = [
    (
        9,
        "add-exports add-modules add-opens add-reads class-path describe-module dry-run help \
         help-extra illegal-access limit-modules list-modules module module-path patch-module \
         show-module-resolution show-version upgrade-module-path validate-modules version",
    ),
    (11, "enable-preview source"),
    (17, "enable-native-access"),
    (18, "finalization"),
    (23, "sun-misc-unsafe-memory-access"),
    (24, "illegal-native-access"),
];
/// From this version on other options of two dashes may be known.
const UNMEASURED: u32 = 26;

/// Options without a flag, and the first JDK that no longer starts with each.
const GONE: [(&str, u32); 9] = [
    ("-d32", 10),
    ("-d64", 10),
    ("-Xincgc", 9),
    ("-Xbootclasspath:", 9),
    ("-Xbootclasspath/p:", 9),
    ("-Xfuture", 25),
    ("-Djava.ext.dirs=", 9),
    ("-Djava.endorsed.dirs=", 9),
    ("-Djava.security.manager", 24),
];

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
        let mut known = flags::flag_names().filter(|known| known.eq_ignore_ascii_case(name));
        let meant = known.next()?;
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
    let is_gone = |(begin, since): &(&str, u32)| {
        option.starts_with(begin) && jdk.at_least(*since) && !option.ends_with("=disallow")
    };
    let is_extra = |rest: &str| {
        let mut begins = EXTRA_WITH_VALUE.split_ascii_whitespace();
        let is_listed = has_word(EXTRA, rest) || begins.any(|begin| rest.starts_with(begin));
        let is_log = rest == "log" || rest.starts_with("log:");
        rest.is_empty() || is_listed && (jdk.at_least(9) || !is_log)
    };
    let head = |mark: char| option.split(mark).next();
    let is_known = if option.starts_with("-XX:") || option.starts_with("-D") {
        true
    } else if let Some(rest) = option.strip_prefix("-X") {
        is_extra(rest)
    } else if let Some(name) = head('=').and_then(|head| head.strip_prefix("--")) {
        let mut rows = LONG.iter();
        jdk.at_least(UNMEASURED)
            || rows.any(|(since, all)| jdk.at_least(*since) && has_word(all, name))
    } else {
        head(':').is_some_and(|head| has_word(SHORT, head))
    };
    !is_known || GONE.iter().any(is_gone)
}

fn unlocking_option(kind: &str) -> &'static str {
    match kind {
        "diagnostic" => "-XX:+UnlockDiagnosticVMOptions",
        _ => "-XX:+UnlockExperimentalVMOptions",
    }
}

/// The `-XX:` options, as written, with flags unknown here: neither their effects nor their
/// versions are known.
pub fn unknown_flags(options: &JvmOptionSet) -> Vec<&str> {
    let settings = options.settings().filter(|(name, setting)| {
        let is_known = flags::find_flag(name).is_some()
            || gate::is_listed(name)
            || dimension::of_flag(name).is_some();
        setting.text.starts_with("-XX:") && !is_known
    });
    settings.map(|(_, setting)| setting.text.as_str()).collect()
}

/// Checks each option as the JVM does, in their order: an earlier one with a wrong value is refused, too,
/// and an option unlocks only those after it (17.0.15 and 25.0.3).
pub fn check_flags(jdk: JdkRelease, options: &JvmOptionSet) -> Result<(), HotSpotRefusal> {
    let lenient = options.switch_value("IgnoreUnrecognizedVMOptions") == Some(true);
    let mut unlocked: Vec<&str> = Vec::new();
    for (text, _) in options.option_texts() {
        let option = || text.to_owned();
        if let Some(meant) = respell(text).filter(|_| !lenient) {
            let option = option();
            return Err(HotSpotRefusal::Misspelt { option, meant });
        }
        if !lenient && is_foreign(jdk, text) {
            let option = option();
            return Err(HotSpotRefusal::UnknownFlag { option, jdk });
        }
        let is_unknown = |name: &str| lenient && flags::find_flag(name).is_none();
        if bare_name(text).is_some_and(|name| !is_unknown(name)) {
            return Err(bad_value(text, "-XX:+NAME, -XX:-NAME or -XX:NAME=VALUE"));
        }
        if let Some(wrong) = text
            .strip_prefix("-Xlog:")
            .and_then(|log| logging::check_log(jdk, log))
        {
            return Err(bad_value(text, wrong));
        }
        for (name, value) in canonical(text) {
            check_flag(jdk, text, (&name, &value), &unlocked).or_else(|refusal| {
                let is_ignored = lenient && matches!(refusal, HotSpotRefusal::UnknownFlag { .. });
                if is_ignored { Ok(()) } else { Err(refusal) }
            })?;
        }
        match text.strip_prefix("-XX:-Unlock") {
            Some(off) => unlocked.retain(|on| !on.ends_with(off)),
            None if text.starts_with("-XX:+Unlock") => unlocked.push(text),
            None => {}
        }
    }
    for (name, least, most, expected) in RANGES {
        let value = options.size_value(name).map(Bytes::as_bytes);
        // A stack of 0 is the default.
        let is_default = name == "ThreadStackSize" && value == Some(0);
        if let Some(setting) = options.setting(name)
            && value.is_some_and(|value| !is_default && !(least..=most).contains(&value))
        {
            return Err(bad_value(&setting.text, expected));
        }
    }
    Ok(())
}

/// The flag of a `-XX:` option that lacks its sign or its value, or has both. Flight Recorder starts
/// without a value (17.0.15 and 25.0.3).
fn bare_name(text: &str) -> Option<&str> {
    let flag = text.strip_prefix("-XX:")?;
    let name = flag.split('=').next().unwrap_or_default();
    let is_bare = !flag.starts_with("StartFlightRecording")
        && (flag.contains('=') == name.starts_with(['+', '-'])
            || ["=true", "=false"].iter().any(|end| flag.ends_with(end))
            || name.contains(char::is_whitespace));
    is_bare.then(|| name.trim_start_matches(['+', '-']))
}

pub(super) fn bad_value(option: &str, expected: impl Into<String>) -> HotSpotRefusal {
    HotSpotRefusal::BadValue {
        option: option.to_owned(),
        expected: expected.into(),
    }
}

fn check_flag(
    jdk: JdkRelease,
    text: &str,
    (name, value): (&str, &str),
    unlocked: &[&str],
) -> Result<(), HotSpotRefusal> {
    let option = || text.to_owned();
    // `-Xms` is older than the flags that it sets.
    let is_named = text.starts_with("-XX:");
    if is_named && !gate::is_known(jdk, name) {
        let option = option();
        return Err(HotSpotRefusal::UnknownFlag { option, jdk });
    }
    let lock =
        gate::find_lock(jdk, name).filter(|kind| !unlocked.contains(&unlocking_option(kind)));
    if let Some(kind) = lock {
        let option = option();
        return Err(HotSpotRefusal::LockedFlag { option, jdk, kind });
    }
    let is_percentage = has_word(PERCENTAGES, name);
    if is_percentage && jdk.version.feature <= 10 && !value.contains('.') {
        let expected = "a percentage with a point, as JDK 8 and 10 need it: 50.0";
        return Err(bad_value(text, expected));
    }
    let is_signed = is_named && !text.contains('=');
    let is_power = value.parse().is_ok_and(u64::is_power_of_two);
    let wrong = flags::check_value(jdk.version.feature, name, (value, is_signed));
    match wrong {
        Some(_) if is_percentage => Err(bad_value(text, "a percentage from 0.0 to 100.0")),
        Some(expected) => Err(bad_value(text, expected)),
        None if name == "ObjectAlignmentInBytes" && !is_power => {
            Err(bad_value(text, "8, 16, 32, 64, 128 or 256"))
        }
        None => {
            let is_bound = ["-Xmx", "-Xmn"].iter().any(|begin| text.starts_with(begin));
            if is_bound && parse_size(value) == Some(Bytes::default()) {
                Err(bad_value(text, "an amount above 0, such as 512m"))
            } else {
                Ok(())
            }
        }
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
        let unknown = refused(&["-XX:Nosuch=1"]).unwrap();
        assert!(unknown.contains("does not know this flag"), "{unknown}");
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
            ("\u{2014}XX:+useg1gc", Some("-XX:+UseG1GC")),
            ("\u{2014}XX:+nosuch", Some("-XX:+nosuch")),
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
