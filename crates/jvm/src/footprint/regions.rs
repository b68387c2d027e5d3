//! The virtual memory map of a detailed native memory report: address ranges by purpose.
//!
//! Source: HotSpot's memReporter.cpp. Present only with `-XX:NativeMemoryTracking=detail`.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservedRange {
    pub range: Range<u64>,
    /// HotSpot's name: `Java Heap`, `Thread Stack`, `Code`, `GC`, ...
    pub category: String,
}

pub fn parse_regions(report: &str) -> Vec<ReservedRange> {
    report.lines().filter_map(parse_reserved_line).collect()
}

/// `[0x00007f903a500000 - 0x00007f903a600000] reserved 1048576 for Thread Stack from`, at the
/// line's begin: indented ones are the committed parts.
fn parse_reserved_line(line: &str) -> Option<ReservedRange> {
    let (range, rest) = line.strip_prefix("[0x")?.split_once("] reserved ")?;
    let (from, to) = range.split_once(" - 0x")?;
    let address = |text| u64::from_str_radix(text, 16).ok();
    let (_, category) = rest.split_once(" for ")?;
    let category = category.strip_suffix(" from").unwrap_or(category);
    Some(ReservedRange {
        range: address(from)?..address(to)?,
        category: category.trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reservations_count() {
        let text = "[0x00007f903c123000 - 0x00007f903c124000] reserved and committed 4096 for Internal from\n\
                    [0x00007f903a500000 - 0x00007f903a600000] reserved 1048576 for Thread Stack from\n    \
                    [0x00007f903b0e76da]attach_current_thread.isra.0+0x8a\n\t\
                    [0x00007f903a500000 - 0x00007f903a504000] committed 16384 from\n";
        let regions = parse_regions(text);
        let names: Vec<&str> = regions.iter().map(|r| r.category.as_str()).collect();
        assert_eq!(names, ["Internal", "Thread Stack"]);
        assert_eq!(regions[1].range, 0x7f90_3a50_0000..0x7f90_3a60_0000);
    }
}
