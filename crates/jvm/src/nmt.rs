//! Native memory tracking: the text of `VM.native_memory summary`.
//!
//! Owns the text form of JDK 17 to 25, any scale. The JVM tracks only when it was started with
//! `-XX:NativeMemoryTracking=summary`. Mapped files and what malloc adds are in no category.
//! Source: HotSpot's memReporter.cpp.

use loadline_sizing::Bytes;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NmtError {
    #[error("native memory tracking is off")]
    Off,
    #[error("no native memory report: no line `Total: reserved=..., committed=...`")]
    NoTotal,
}

impl NmtError {
    pub fn nmt_hint(&self) -> Option<&'static str> {
        match self {
            Self::Off => Some("start the JVM with -XX:NativeMemoryTracking=summary"),
            Self::NoTotal => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NmtCategory {
    /// As HotSpot names it: `Java Heap`, `Class`, `Thread`, `Code`, `GC`, `Metaspace`, `Other`
    /// (direct buffers).
    pub name: String,
    pub reserved: Bytes,
    /// Memory that the JVM may touch; more than is resident.
    pub committed: Bytes,
    /// The part from malloc, arenas included.
    pub malloc: Bytes,
    /// The most that its arenas ever held (the compilers' work); zero where it has none.
    pub arena_peak: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NmtSummary {
    pub reserved: Bytes,
    pub committed: Bytes,
    pub categories: Vec<NmtCategory>,
    pub threads: Option<u64>,
    pub classes: Option<u64>,
}

impl NmtSummary {
    /// Reads a report in any scale (`scale=B` is exact; the default is KB).
    /// Errors: [`NmtError::Off`] when the JVM says that it does not track, [`NmtError::NoTotal`]
    /// for any other text.
    pub fn from_nmt_report(text: &str) -> Result<Self, NmtError> {
        if text.contains("Native memory tracking is not enabled") {
            return Err(NmtError::Off);
        }
        let mut lines = text.lines();
        let total = lines
            .find_map(|line| line.trim_start().strip_prefix("Total: "))
            .and_then(reserved_and_committed)
            .ok_or(NmtError::NoTotal)?;
        let mut summary = Self {
            reserved: total.0,
            committed: total.1,
            categories: Vec::new(),
            threads: None,
            classes: None,
        };
        for line in lines {
            summary.take_line(line);
        }
        Ok(summary)
    }

    fn take_line(&mut self, line: &str) {
        if let Some(category) = category(line) {
            self.categories.push(category);
        } else if let Some((kind, now, peak)) = parse_allocated(line) {
            let Some(category) = self.categories.last_mut() else {
                return;
            };
            category.malloc = category.malloc.saturating_add(now);
            if kind == "arena" {
                category.arena_peak = peak;
            }
        } else if let Some(threads) = count_after(line, &["(thread #", "(threads #"]) {
            self.threads = self.threads.or(Some(threads));
        } else if let Some(classes) = count_after(line, &["(classes #"]) {
            self.classes = self.classes.or(Some(classes));
        }
    }
}

/// `-                 Java Heap (reserved=50331648, committed=50331648)`.
fn category(line: &str) -> Option<NmtCategory> {
    let rest = line.strip_prefix('-')?.trim_start();
    let (name, figures) = rest.split_once(" (")?;
    let (reserved, committed) = reserved_and_committed(figures)?;
    Some(NmtCategory {
        name: name.trim().to_owned(),
        reserved,
        committed,
        malloc: Bytes::default(),
        arena_peak: Bytes::default(),
    })
}

/// `(malloc=124535 #1626) (at peak)`, `(arena=168560 #5) (peak=2329592 #6)`: kind, present value,
/// peak. The sites of a detailed report look similar but have two brackets or a type.
fn parse_allocated(line: &str) -> Option<(&str, Bytes, Bytes)> {
    let rest = line.trim_start().strip_prefix('(')?;
    let (kind, figures) = rest.split_once('=')?;
    if !matches!(kind, "malloc" | "arena") || figures.contains(" type=") {
        return None;
    }
    let now = parse_scaled_size(figures)?;
    let peak = figures.split_once("peak=");
    let peak = peak.and_then(|(_, text)| parse_scaled_size(text));
    Some((kind, now, peak.unwrap_or(now)))
}

/// `reserved=1713752KB, committed=336232KB`, more may follow.
fn reserved_and_committed(text: &str) -> Option<(Bytes, Bytes)> {
    let figure = |name: &str| parse_scaled_size(text.split_once(name)?.1);
    Some((figure("reserved=")?, figure("committed=")?))
}

/// `336232KB`, `336MB`, `1GB`; without a unit bytes. More may follow.
fn parse_scaled_size(text: &str) -> Option<Bytes> {
    let text = text.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" | "B" => Some(Bytes::from_bytes(number)),
        "KB" => Some(Bytes::from_kib(number)),
        "MB" => Some(Bytes::from_mib(number)),
        "GB" => Some(Bytes::from_gib(number)),
        _ => None,
    }
}

/// The number after one of these words: `(threads #13)`.
fn count_after(line: &str, words: &[&str]) -> Option<u64> {
    let mut words = words.iter();
    let rest = words.find_map(|word| line.trim_start().strip_prefix(word))?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const JDK_17: &str = include_str!("../tests/data/nmt/17-bytes.txt");
    const JDK_25: &str = include_str!("../tests/data/nmt/25-bytes.txt");
    const JDK_25_KB: &str = include_str!("../tests/data/nmt/25-kb.txt");

    fn committed(summary: &NmtSummary, name: &str) -> Bytes {
        let mut categories = summary.categories.iter();
        categories.find(|c| c.name == name).unwrap().committed
    }

    #[test]
    fn categories_add_up_to_the_total() {
        for text in [JDK_17, JDK_25] {
            let summary = NmtSummary::from_nmt_report(text).unwrap();
            let sum: u64 = summary
                .categories
                .iter()
                .map(|c| c.committed.as_bytes())
                .sum();
            // The JVM counts while it runs, and leaves out categories below one unit.
            assert!(
                summary.committed.as_bytes().abs_diff(sum) < 64 << 10,
                "{sum} {summary:?}"
            );
            assert_eq!(committed(&summary, "Java Heap"), Bytes::from_mib(48));
            assert!(committed(&summary, "Metaspace") > Bytes::from_kib(100));
            assert!(summary.threads > Some(8), "{:?}", summary.threads);
            assert!(summary.classes > Some(300), "{:?}", summary.classes);
        }
    }

    #[test]
    fn the_default_scale_is_read_too() {
        let summary = NmtSummary::from_nmt_report(JDK_25_KB).unwrap();
        assert_eq!(committed(&summary, "Java Heap"), Bytes::from_mib(48));
    }

    #[test]
    fn a_jvm_that_does_not_track_says_so() {
        assert_eq!(
            NmtSummary::from_nmt_report("Native memory tracking is not enabled\n"),
            Err(NmtError::Off)
        );
        assert_eq!(
            NmtSummary::from_nmt_report("Total: soon"),
            Err(NmtError::NoTotal)
        );
    }

    proptest! {
        #[test]
        fn a_cut_report_never_makes_it_fail(cut in 0usize..JDK_17.len()) {
            if let Some(text) = JDK_17.get(..cut) {
                let _ = NmtSummary::from_nmt_report(text);
            }
        }
    }
}
