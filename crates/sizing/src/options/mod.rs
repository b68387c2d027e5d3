//! JVM options as people write them, merged into one value per flag.
//!
//! Owns the canonical form (`-Xmx512m` and `-XX:MaxHeapSize=512m` are one flag) and HotSpot's
//! precedence between sources. [`words`] splits text into words; [`gate`] knows which JDK has a
//! flag, `flags` its form and range; [`dimension`] knows which dimension a flag freezes; [`conflict`] knows which options
//! exclude each other. Never reads a file or the environment.

pub mod conflict;
pub mod dimension;
pub(crate) mod flags;
pub mod gate;
pub(crate) mod logging;
pub mod words;

use std::collections::BTreeMap;
use std::fmt;

use crate::Bytes;

/// Where an option came from. Ordered by precedence: a later one wins.
///
/// Source: measured on 17 and 25: `_JAVA_OPTIONS` > command line > `JDK_JAVA_OPTIONS` (since 9,
/// only the `java` launcher) > `JAVA_TOOL_OPTIONS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OptionOrigin {
    ToolOptions,
    JdkJavaOptions,
    /// `JAVA_OPTS` or `JAVA_OPTIONS`: read by launchers and start scripts, not by the JVM.
    JavaOpts,
    CommandLine,
    UnderscoreJavaOptions,
}

impl fmt::Display for OptionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ToolOptions => "JAVA_TOOL_OPTIONS",
            Self::JdkJavaOptions => "JDK_JAVA_OPTIONS",
            Self::JavaOpts => "JAVA_OPTS",
            Self::CommandLine => "the command line",
            Self::UnderscoreJavaOptions => "_JAVA_OPTIONS",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagSetting {
    pub value: String,
    pub text: String,
    pub origin: OptionOrigin,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JvmOptionSet {
    settings: BTreeMap<String, FlagSetting>,
    texts: Vec<(String, OptionOrigin)>,
}

impl JvmOptionSet {
    pub fn none() -> Self {
        Self::default()
    }

    /// Merges options given in any order of sources; within a source the order is the order given.
    pub fn merge(options: impl IntoIterator<Item = (String, OptionOrigin)>) -> Self {
        let mut texts: Vec<(String, OptionOrigin)> = options.into_iter().collect();
        // A stable sort keeps the order inside each source.
        texts.sort_by_key(|(_, origin)| *origin);
        let mut settings = BTreeMap::new();
        for (text, origin) in &texts {
            for (name, value) in canonical(text) {
                let setting = FlagSetting {
                    value,
                    text: text.clone(),
                    origin: *origin,
                };
                settings.insert(name, setting);
            }
        }
        Self { settings, texts }
    }

    pub fn from_words<I: IntoIterator<Item = S>, S: Into<String>>(words: I) -> Self {
        Self::merge(
            words
                .into_iter()
                .map(|w| (w.into(), OptionOrigin::CommandLine)),
        )
    }

    pub fn option_texts(&self) -> impl Iterator<Item = (&str, OptionOrigin)> {
        self.texts
            .iter()
            .map(|(text, origin)| (text.as_str(), *origin))
    }

    pub fn settings(&self) -> impl Iterator<Item = (&str, &FlagSetting)> {
        self.settings
            .iter()
            .map(|(name, setting)| (name.as_str(), setting))
    }

    pub fn setting(&self, name: &str) -> Option<&FlagSetting> {
        self.settings.get(name)
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    pub fn switch_value(&self, name: &str) -> Option<bool> {
        match self.setting(name)?.value.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    pub fn size_value(&self, name: &str) -> Option<Bytes> {
        parse_size(&self.setting(name)?.value)
    }

    /// A count; the JVM takes a unit there, too.
    pub fn count_value(&self, name: &str) -> Option<u64> {
        self.size_value(name).map(Bytes::as_bytes)
    }

    pub fn percentage_value(&self, name: &str) -> Option<f64> {
        self.setting(name)?.value.parse().ok()
    }

    pub fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = &str> {
        self.option_texts()
            .map(|(text, _)| text)
            .filter(move |text| text.starts_with(prefix))
    }
}

/// A HotSpot amount of memory: digits, or `0x` and hexadecimal ones, and k, m, g or t in either case, all
/// binary.
pub fn parse_size(text: &str) -> Option<Bytes> {
    let number = text
        .strip_suffix(|c: char| "kKmMgGtT".contains(c))
        .unwrap_or(text);
    let hexadecimal = number.strip_prefix("0x").or(number.strip_prefix("0X"));
    if let Some(digits) = hexadecimal.filter(|digits| !digits.starts_with('+')) {
        let decimal = u64::from_str_radix(digits, 16).ok()?;
        return format!("{decimal}{}", &text[number.len()..]).parse().ok();
    }
    let is_plain = number.bytes().all(|b| b.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// HotSpot's flag names and values for one option; none for options that set no flag.
pub(crate) fn canonical(text: &str) -> Vec<(String, String)> {
    let one = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    if let Some(flag) = text.strip_prefix("-XX:+") {
        return one(flag, "true");
    }
    if let Some(flag) = text.strip_prefix("-XX:-") {
        return one(flag, "false");
    }
    if let Some(assignment) = text.strip_prefix("-XX:") {
        return match assignment.split_once('=') {
            // `:=` appends to a text, and a colon may begin the value.
            Some((name, value)) => one(name.split(':').next().unwrap_or(name), value),
            None => Vec::new(),
        };
    }
    if let Some(value) = text.strip_prefix("-Xmx") {
        return one("MaxHeapSize", value);
    }
    if let Some(value) = text.strip_prefix("-Xmn") {
        return [one("NewSize", value), one("MaxNewSize", value)].concat();
    }
    if let Some(value) = text.strip_prefix("-Xms") {
        return [one("MinHeapSize", value), one("InitialHeapSize", value)].concat();
    }
    if let Some(value) = text.strip_prefix("-Xss") {
        // ThreadStackSize is in KiB; -Xss is in bytes and is rounded up.
        let kib = parse_size(value).map(|size| size.as_bytes().div_ceil(1024).to_string());
        return one("ThreadStackSize", kib.as_deref().unwrap_or(value));
    }
    if text == "-Xint" {
        // The interpreter alone: what level 0 means, too.
        return one("TieredStopAtLevel", "0");
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_options_are_the_flags_they_stand_for() {
        let options = JvmOptionSet::from_words(["-Xmx512m", "-Xms64M", "-Xss512k", "-XX:+UseG1GC"]);
        assert_eq!(
            options.size_value("MaxHeapSize"),
            Some(Bytes::from_mib(512))
        );
        assert_eq!(
            options.size_value("InitialHeapSize"),
            Some(Bytes::from_mib(64))
        );
        assert_eq!(options.size_value("MinHeapSize"), Some(Bytes::from_mib(64)));
        assert_eq!(options.count_value("ThreadStackSize"), Some(512));
        assert_eq!(options.switch_value("UseG1GC"), Some(true));
    }

    #[test]
    fn the_strongest_source_wins_whatever_the_order() {
        let options = JvmOptionSet::merge([
            ("-Xmx1g".to_owned(), OptionOrigin::UnderscoreJavaOptions),
            ("-Xmx2g".to_owned(), OptionOrigin::CommandLine),
            ("-XX:MaxHeapSize=3g".to_owned(), OptionOrigin::CommandLine),
            ("-Xmx4g".to_owned(), OptionOrigin::ToolOptions),
        ]);
        let setting = options.setting("MaxHeapSize").unwrap();
        assert_eq!(setting.value, "1g");
        assert_eq!(setting.origin, OptionOrigin::UnderscoreJavaOptions);
    }

    #[test]
    fn a_size_is_digits_and_one_letter() {
        assert_eq!(parse_size("64m"), Some(Bytes::from_mib(64)));
        assert_eq!(parse_size("1T"), Some(Bytes::from_gib(1024)));
        // As 17 and 25 take them.
        assert_eq!(parse_size("0x20000000"), Some(Bytes::from_mib(512)));
        assert_eq!(parse_size("0X10m"), Some(Bytes::from_mib(16)));
        for text in ["", "m", "1.5g", "12mb", "512Mi", "-1"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
