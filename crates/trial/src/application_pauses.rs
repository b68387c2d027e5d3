//! The file in which an application writes down when it stood still, and what it got done.
//!
//! Owns its format, which any program can write: the environment variable `LOADLINE_PAUSES` names
//! the file, and each line is one of
//!
//! ```text
//! source NAME              who writes
//! pause START END          something took from START to END and should not have
//! done AT COUNT            COUNT operations were done by AT
//! lost COUNT               pauses that were not written down
//! ```
//! Times are CLOCK_MONOTONIC in nanoseconds (`System.nanoTime` on Linux). Lines that are something
//! else are counted, never trusted.

use loadline_analysis::pauses::{ApplicationPauses, KEPT};

pub const VARIABLE: &str = "LOADLINE_PAUSES";
pub const PATH: &str = "/tmp/loadline-pauses";
pub const CAP: u64 = 16 << 20;

/// Reads the file. Keeps the longest pauses if there are too many, and every n-th count.
pub fn parse_pauses(text: &str) -> ApplicationPauses {
    let mut seen = ApplicationPauses::default();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if take_pause_line(line, &mut seen).is_none() {
            seen.unknown_lines += 1;
        }
    }
    if seen.pauses_ns.len() > KEPT {
        seen.pauses_ns
            .sort_by_key(|(start, end)| std::cmp::Reverse(end - start));
        seen.lost += (seen.pauses_ns.len() - KEPT) as u64;
        seen.pauses_ns.truncate(KEPT);
    }
    seen.pauses_ns.sort_unstable();
    seen.done.sort_unstable();
    let step = seen.done.len().div_ceil(KEPT).max(1);
    seen.done = seen.done.into_iter().step_by(step).collect();
    seen
}

fn take_pause_line(line: &str, seen: &mut ApplicationPauses) -> Option<()> {
    let (word, rest) = line.trim().split_once(' ')?;
    let pair = || {
        let (a, b) = rest.split_once(' ')?;
        Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?))
    };
    match word {
        "source" => {
            let name = rest.chars().filter(|c| !c.is_control()).take(40);
            seen.source = name.collect();
        }
        "pause" => seen
            .pauses_ns
            .push(pair().filter(|(start, end)| start <= end)?),
        "done" => seen.done.push(pair()?),
        "lost" => seen.lost = seen.lost.saturating_add(rest.parse().ok()?),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_is_kept_and_the_rest_counted() {
        let text = "source allocation\npause 20 90\npause 5 7\ndone 100 3\n\npause 9 8\npause x y\nhello\nlost 2\npau";
        let seen = parse_pauses(text);
        assert_eq!(seen.source, "allocation");
        assert_eq!(seen.pauses_ns, [(5, 7), (20, 90)]);
        assert_eq!(seen.done, [(100, 3)]);
        assert_eq!((seen.lost, seen.unknown_lines), (2, 4));
    }

    #[test]
    fn of_too_many_the_longest_are_kept() {
        let lines: Vec<String> = (0..KEPT as u64 + 5)
            .map(|n| format!("pause {n} {}", 2 * n))
            .collect();
        let seen = parse_pauses(&lines.join("\n"));
        assert_eq!((seen.pauses_ns.len(), seen.lost), (KEPT, 5));
        assert_eq!(seen.pauses_ns[0], (5, 10));
    }

    #[test]
    fn of_too_many_counts_the_late_ones_are_there_too() {
        let lines: Vec<String> = (0..KEPT as u64 * 2 + 5)
            .map(|n| format!("done {n} {}", 3 * n))
            .collect();
        let done = parse_pauses(&lines.join("\n")).done;
        assert!(done.len() <= KEPT);
        assert_eq!((done[0], done[1]), ((0, 0), (3, 9)));
        assert!(done.last().unwrap().0 > KEPT as u64 * 2);
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_refused(text in ".*") {
            parse_pauses(&text);
        }
    }
}
