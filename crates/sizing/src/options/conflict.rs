//! Conflicting options: a later one replaces an earlier one.
//!
//! Owns that rule for options of two sources, such as a measured one and a manifest's. HotSpot
//! refuses two collectors and an initial heap above the largest; `-Xmx` wins over percentages in
//! any order (measured on 17 and 25). Never reads a file.

use super::JvmOptionSet;
use super::dimension::{OptionDimension, of_flag};

/// Flags of the heap at the start; with another largest heap they may not fit below it.
const INITIAL: [&str; 3] = ["InitialHeapSize", "MinHeapSize", "InitialRAMPercentage"];

pub fn replaces(new: &str, old: &str) -> bool {
    if property(new).is_some() || property(old).is_some() {
        return property(new) == property(old);
    }
    if !new.starts_with("-X") || !old.starts_with("-X") {
        return new == old;
    }
    let (new_flags, old_flags) = (flag_names(new), flag_names(old));
    let is_same = new_flags.iter().any(|flag| old_flags.contains(flag));
    let decides = |flags: &[String], wanted| flags.iter().any(|f| of_flag(f) == Some(wanted));
    let both = |wanted| decides(&new_flags, wanted) && decides(&old_flags, wanted);
    let initial = |flags: &[String]| flags.iter().any(|f| INITIAL.contains(&f.as_str()));
    let is_initial =
        initial(&old_flags) && (initial(&new_flags) || decides(&new_flags, OptionDimension::Heap));
    new == old
        || is_same
        || both(OptionDimension::Heap)
        || both(OptionDimension::Collector)
        || is_initial
}

/// Whether an option decides something that a size rests on: heap, collector, threads, regions.
pub fn is_sizing(option: &str) -> bool {
    flag_names(option)
        .iter()
        .any(|flag| of_flag(flag).is_some())
}

fn flag_names(option: &str) -> Vec<String> {
    let options = JvmOptionSet::from_words([option]);
    options
        .settings()
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn property(option: &str) -> Option<&str> {
    let rest = option.strip_prefix("-D")?;
    Some(rest.split('=').next().unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_beside_a_later_option_is_replaced() {
        for (new, old) in [
            ("-Xmx256m", "-Xmx512m"),
            ("-Xmx256m", "-XX:MaxHeapSize=1g"),
            ("-XX:MaxRAMPercentage=60", "-Xmx512m"),
            ("-Xmx256m", "-Xms512m"),
            ("-XX:+UseSerialGC", "-XX:+UseG1GC"),
            ("-XX:+UseSerialGC", "-XX:-UseSerialGC"),
            ("-Da=1", "-Da=2"),
            ("-Da", "-Da=2"),
        ] {
            assert!(replaces(new, old), "{new} {old}");
        }
    }

    #[test]
    fn what_is_about_something_else_stays() {
        for (new, old) in [
            ("-Xmx256m", "-XX:MaxMetaspaceSize=1g"),
            ("-XX:+UseSerialGC", "-XX:ParallelGCThreads=2"),
            ("-Xms64m", "-Xmx512m"),
            ("-Da=1", "-Dab=1"),
            ("-Da=1", "-Xmx1g"),
            ("-javaagent:a.jar", "-javaagent:b.jar"),
        ] {
            assert!(!replaces(new, old), "{new} {old}");
        }
        assert!(is_sizing("-Xmx1g") && is_sizing("-XX:+UseG1GC"));
        assert!(!is_sizing("-Da=1") && !is_sizing("-XX:+PrintFlagsFinal"));
    }
}
