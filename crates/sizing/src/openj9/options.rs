//! The options that OpenJ9's ergonomics obey, and those it starts with and never heeds.
//!
//! OpenJ9 refuses an unknown `-X` option and ignores an unknown `-XX:` one in silence, unless
//! `-XX:-IgnoreUnrecognizedXXColonOptions` is given: with it the JVM itself tells which it knows,
//! and that is how [`TAKEN`] was checked.

use std::fmt;
use std::str::FromStr;

use super::{GcPolicy, OpenJ9Refusal};
use crate::Bytes;
use crate::options::{JvmOptionSet, parse_size};

pub const TAKEN: &[&str] = &[
    "ActiveProcessorCount",
    "AlwaysPreTouch",
    "ConcGCThreads",
    "DisableExplicitGC",
    "ExitOnOutOfMemoryError",
    "HeapDumpOnOutOfMemoryError",
    "HeapDumpPath",
    "IdleTuningCompactOnIdle",
    "IdleTuningGcOnIdle",
    "InitialHeapSize",
    "InitialRAMPercentage",
    "MaxDirectMemorySize",
    "MaxHeapSize",
    "MaxRAMPercentage",
    "OnOutOfMemoryError",
    "ParallelGCMaxThreads",
    "ParallelGCThreads",
    "SharedCacheHardLimit",
    "UseCompressedOops",
    "UseContainerSupport",
    "UseJITServer",
    "codecachetotal",
    "codecachetotalMaxRAMPercentage",
];

/// Begins of its `-X` options, and of HotSpot's that it takes (eclipse.dev/openj9/docs, "-X options");
/// with any other it does not start.
const EXTRA: &str = "\
    aggressive alwaysclassgc aot argencoding batch bootclasspath cachefile ceilingNo check classgc \
    codecache comp compactexplicitgc compactgc compilationThreads compressedrefs \
    concurrentbackground concurrentlevel concurrentslack conmeter debug diag disable dump enable \
    fastresolve future gc int internalversion jit jni linenumbers loa lockword log lp maxe maxf maxt \
    mca mco mcrs mine minf mint mixed mn mo mr ms mx mdx no numa optionsfile oss partialcompactgc \
    prof quickstart rdbginfo realtime rs run samplingexpirationtime scdmx scmaxaot scmaxjitdata \
    scminaot scminjitdata scmx service setclassloader share: shareclasses showSettings sig softmx \
    softrefthreshold ss syslog tgc thr tlh trace tune verbosegclog verify warn zero";

/// Options with an amount of memory behind them.
const SIZED: [&str; 14] = [
    "-Xmca",
    "-Xmco",
    "-Xmdx",
    "-Xmns",
    "-Xmnx",
    "-Xmoi",
    "-Xmos",
    "-Xmox",
    "-Xmso",
    "-Xscmx",
    "-Xsoftmx",
    "-Xssi",
    "-Xss",
    "-XX:MaxDirectMemorySize=",
];

/// An option that OpenJ9 starts with and, as far as is known, says and does nothing about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredOption(String);

impl fmt::Display for IgnoredOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let option = &self.0;
        write!(
            f,
            "`{option}` is no option of OpenJ9 that is known here, and it ignores in silence what it does not know; -XX:-IgnoreUnrecognizedXXColonOptions makes it refuse such options"
        )
    }
}

impl IgnoredOption {
    pub fn find_among(options: &JvmOptionSet) -> Vec<Self> {
        let texts = options.option_texts().map(|(text, _)| text);
        let unheard = texts.filter(|text| {
            let Some(name) = text.strip_prefix("-XX:") else {
                return false;
            };
            let name = name.trim_start_matches(['+', '-']);
            let name = name.split('=').next().unwrap_or(name);
            !TAKEN.contains(&name)
        });
        unheard.map(|text| Self(text.to_owned())).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct OpenJ9Settings {
    pub policy: GcPolicy,
    pub max_heap: Option<Bytes>,
    pub initial_heap: Option<Bytes>,
    pub young: Option<Bytes>,
    pub max_percent: Option<f64>,
    pub initial_percent: Option<f64>,
    pub gc_threads: Option<u32>,
    pub most_gc_threads: Option<u32>,
    pub processors: Option<u32>,
    pub compressed: Option<bool>,
    pub is_tuned_for_throughput: bool,
    pub code_total: Option<Bytes>,
    pub code_segment: Option<Bytes>,
    pub code_percent: Option<f64>,
    pub compiler_threads: Option<u32>,
    pub is_interpreted: bool,
}

impl OpenJ9Settings {
    pub fn read(options: &JvmOptionSet) -> Result<Self, OpenJ9Refusal> {
        let mut asked = Self::default();
        for (text, _) in options.option_texts() {
            asked.apply_option(text)?;
        }
        Ok(asked)
    }

    fn apply_option(&mut self, text: &str) -> Result<(), OpenJ9Refusal> {
        let after = |names: [&str; 2]| names.iter().find_map(|name| text.strip_prefix(name));
        if let Some(value) = after(["-Xmx", "-XX:MaxHeapSize="]) {
            self.max_heap = Some(read_size(text, value)?);
        } else if let Some(value) = after(["-Xms", "-XX:InitialHeapSize="]) {
            self.initial_heap = Some(read_size(text, value)?);
        } else if let Some(value) = text.strip_prefix("-Xmn") {
            // -Xmns and -Xmnx are separate options, and no sizes.
            self.young = parse_size(value).or(self.young);
        } else if let Some(value) = text.strip_prefix("-XX:MaxRAMPercentage=") {
            self.max_percent = Some(read_percent(text, value)?);
        } else if let Some(value) = text.strip_prefix("-XX:InitialRAMPercentage=") {
            self.initial_percent = Some(read_percent(text, value)?);
        } else if let Some(value) = after(["-Xgcthreads", "-XX:ParallelGCThreads="]) {
            self.gc_threads = Some(read_count(text, value)?);
        } else if let Some(value) = after(["-Xgcmaxthreads", "-XX:ParallelGCMaxThreads="]) {
            self.most_gc_threads = Some(read_count(text, value)?);
        } else if let Some(value) = text.strip_prefix("-XX:ActiveProcessorCount=") {
            // 0 is "as counted", as in HotSpot.
            self.processors = Some(read_number(text, value)?).filter(|n| *n > 0);
        } else if let Some(name) = text.strip_prefix("-Xgcpolicy:") {
            self.policy = policy(text, name)?;
        } else if !self.apply_compiler_option(text)? {
            self.apply_switch(text)?;
        }
        Ok(())
    }

    fn apply_compiler_option(&mut self, text: &str) -> Result<bool, OpenJ9Refusal> {
        let after = |names: [&str; 2]| names.iter().find_map(|name| text.strip_prefix(name));
        if let Some(value) = after(["-Xcodecachetotal", "-XX:codecachetotal="]) {
            self.code_total = Some(read_size(text, value)?);
        } else if let Some(value) = text.strip_prefix("-XX:codecachetotalMaxRAMPercentage=") {
            self.code_percent = Some(read_percent(text, value)?);
        } else if let Some(value) = text.strip_prefix("-Xcodecache") {
            self.code_segment = Some(read_size(text, value)?);
        } else if let Some(value) = text.strip_prefix("-XcompilationThreads") {
            self.compiler_threads = Some(read_count(text, value)?);
        } else if text == "-Xint" {
            self.is_interpreted = true;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn apply_switch(&mut self, text: &str) -> Result<(), OpenJ9Refusal> {
        match text {
            "-Xcompressedrefs" | "-XX:+UseCompressedOops" => self.compressed = Some(true),
            "-Xnocompressedrefs" | "-XX:-UseCompressedOops" => self.compressed = Some(false),
            "-Xtune:throughput" => self.is_tuned_for_throughput = true,
            "-XX:-UseContainerSupport" => return Err(OpenJ9Refusal::LimitUnseen),
            _ => {}
        }
        if let Some(value) = SIZED.iter().find_map(|begin| text.strip_prefix(begin)) {
            return read_size(text, value).map(|_| ());
        }
        let extra = text
            .strip_prefix("-X")
            .filter(|rest| !rest.starts_with("X:") && !rest.is_empty());
        let mut begins = EXTRA.split_ascii_whitespace();
        match extra {
            Some(rest) if !begins.any(|begin| rest.starts_with(begin)) => {
                Err(bad_value(text, "OpenJ9 has no option of this name"))
            }
            _ => Ok(()),
        }
    }
}

fn bad_value(option: &str, expected: &'static str) -> OpenJ9Refusal {
    OpenJ9Refusal::BadValue {
        option: option.to_owned(),
        expected,
    }
}

fn read_size(text: &str, value: &str) -> Result<Bytes, OpenJ9Refusal> {
    parse_size(value).ok_or_else(|| bad_value(text, "a size is digits and k, m, g or t"))
}

fn read_percent(text: &str, value: &str) -> Result<f64, OpenJ9Refusal> {
    let percent = f64::from_str(value).ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| bad_value(text, "a percentage is between 0 and 100"))
}

fn read_number(text: &str, value: &str) -> Result<u32, OpenJ9Refusal> {
    let number = value.parse().ok();
    number.ok_or_else(|| bad_value(text, "a count is a whole number"))
}

fn read_count(text: &str, value: &str) -> Result<u32, OpenJ9Refusal> {
    let count = read_number(text, value)?;
    if count == 0 {
        return Err(bad_value(text, "at least 1 thread is needed"));
    }
    Ok(count)
}

fn policy(text: &str, name: &str) -> Result<GcPolicy, OpenJ9Refusal> {
    let policy = GcPolicy::ALL
        .into_iter()
        .find(|policy| policy.policy_name() == name);
    policy.ok_or_else(|| {
        bad_value(
            text,
            "policies are gencon, balanced, optthruput, optavgpause, metronome and nogc",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_would_ignore_is_named_and_its_own_is_not() {
        let given = [
            "-Xmx1g",
            "-XX:+UseG1GC",
            "-XX:MaxRAMPercentage=50",
            "-XX:NewRatio=2",
        ];
        let of = IgnoredOption::find_among(&JvmOptionSet::from_words(given));
        let options: Vec<&str> = of.iter().map(|unheard| unheard.0.as_str()).collect();
        assert_eq!(options, ["-XX:+UseG1GC", "-XX:NewRatio=2"]);
    }
}
