//! Whether the JVM in an image or behind a start script got the ordered options.
//!
//! Owns the comparison. loadline does not see that command line: a start script may overwrite
//! JAVA_TOOL_OPTIONS, and the command line wins over it. HotSpot keeps all its options, in order,
//! in its counters (`java.rt.vmArgs`, arguments.cpp: `build_jvm_args`).

use loadline_jvm::hsperf::HsperfCounters;

use crate::process_text::{MOST_PROCESSES, read_bounded};

/// Bytes of a command line that are looked at.
const LONGEST_LINE: u64 = 64 << 10;

/// Why the options did not arrive, if they did not. `processes` are the container's; for a JVM
/// without counters the log at the ordered path is the proof.
pub fn missing_options(wanted: &[String], processes: &[u32], has_log: bool) -> Option<String> {
    if wanted.is_empty() {
        return None;
    }
    match jvm_arguments(processes) {
        Some(given) => lacking_reason(wanted, &given, "the image"),
        // The variable arrived; what the command line sets comes after it, and wins.
        None if has_log => {
            let all = [wanted.join(" "), command_lines(processes)].join(" ");
            lacking_reason(wanted, &all, "the image")
        }
        None => Some(format!(
            "no JVM in the container confirms that it got `{}`: it keeps no counters and wrote no log",
            wanted.join(" ")
        )),
    }
}

pub fn overruled_options(wanted: &[String], processes: &[u32]) -> Option<String> {
    let lines = || [wanted.join(" "), command_lines(processes)].join(" ");
    let given = jvm_arguments(processes).unwrap_or_else(lines);
    lacking_reason(wanted, &given, "the start script")
}

fn jvm_arguments(processes: &[u32]) -> Option<String> {
    let mut counters = processes.iter().map(|pid| HsperfCounters::for_jvm(*pid));
    let first = counters.find_map(Result::ok)?;
    first.counter_text("java.rt.vmArgs").map(str::to_owned)
}

fn command_lines(processes: &[u32]) -> String {
    let read = |pid: &u32| read_bounded(&format!("/proc/{pid}/cmdline"), LONGEST_LINE);
    let all = processes.iter().take(MOST_PROCESSES).filter_map(read);
    all.collect::<Vec<_>>().join(" ").replace('\0', " ")
}

/// Why these are not in force among all that a JVM was given: of options for one thing the last wins.
fn lacking_reason(wanted: &[String], given: &str, who: &str) -> Option<String> {
    let given: Vec<&str> = given.split_whitespace().collect();
    for word in wanted.iter().flat_map(|option| option.split_whitespace()) {
        let last = given
            .iter()
            .rfind(|other| option_key(other) == option_key(word));
        return Some(match last {
            Some(last) if *last == word => continue,
            Some(last) => format!(
                "the JVM runs with {last}, not with {word}, which was requested: {who} sets it itself"
            ),
            None => format!(
                "the JVM runs without {word}, which was requested: {who} sets JAVA_TOOL_OPTIONS itself, or starts the JVM without it"
            ),
        });
    }
    None
}

fn option_key(option: &str) -> &str {
    if let Some(flag) = option.strip_prefix("-XX:") {
        let flag = flag.strip_prefix(['+', '-']).unwrap_or(flag);
        return flag.split_once('=').map_or(flag, |(name, _)| name);
    }
    let mut sizes = ["-Xmx", "-Xms", "-Xmn", "-Xss"].into_iter();
    match sizes.find(|size| option.starts_with(size)) {
        Some(size) => size,
        None if option.starts_with("-D") => option.split_once('=').map_or(option, |(name, _)| name),
        None => option,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_in_force_or_it_is_said_what_is() {
        let check = |wanted: &[&str], given: &str| {
            let wanted: Vec<String> = wanted.iter().map(|o| (*o).to_owned()).collect();
            lacking_reason(&wanted, given, "the image")
        };
        let given = "-Xmx64m -XX:+UseSerialGC -Da=1 -Xmx128m -jar";
        assert_eq!(
            check(&["-XX:+UseSerialGC", "-Da=1", "-Xmx128m"], given),
            None
        );
        let other = check(&["-Xmx64m"], given).expect("the image's own wins");
        assert!(
            other.starts_with("the JVM runs with -Xmx128m, not with -Xmx64m"),
            "{other}"
        );
        let none = check(&["-XX:-UseSerialGC"], "-Da=1").expect("it lacks it");
        assert!(
            none.starts_with("the JVM runs without -XX:-UseSerialGC"),
            "{none}"
        );
        let off = check(&["-XX:+UseSerialGC"], "-XX:-UseSerialGC").expect("it is off");
        assert!(off.contains("-XX:-UseSerialGC, not with"), "{off}");
    }

    #[test]
    fn without_counters_the_log_is_the_proof() {
        let wanted = ["-Xmx64m".to_owned()];
        assert_eq!(missing_options(&[], &[], false), None);
        assert_eq!(missing_options(&wanted, &[], true), None);
        assert!(missing_options(&wanted, &[], false).is_some_and(|why| why.contains("-Xmx64m")));
    }
}
