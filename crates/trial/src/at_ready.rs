//! What the application's processes had at the moment it was ready: memory and classes; memory also
//! after the load.
//!
//! Owns the readings of /proc and of HotSpot's counters. Taken after the CPU time of the start has
//! been read and before any load, and after the judged load, never in between: smaps_rollup walks the page tables. Sources:
//! Documentation/filesystems/proc.rst (smaps_rollup); hsperf counters `java.cls.*`.

use loadline_analysis::record::StartEvidence;
use loadline_jvm::hsperf::HsperfCounters;
use loadline_sizing::Bytes;

use crate::process_text::{kib_field, read_bounded};

/// In bytes; it has about 25 lines.
const LARGEST_ROLLUP: u64 = 64 << 10;

pub(crate) fn read(processes: &[u32]) -> StartEvidence {
    let texts = rollups(processes);
    let sum = |name| sum_field(&texts, name);
    let hugetlb = sum("Shared_Hugetlb:")
        .zip(sum("Private_Hugetlb:"))
        .map(|(shared, private)| shared.saturating_add(private));
    // One JVM as a rule; of several the first that keeps counters speaks.
    let mut all = processes.iter();
    let counters = all.find_map(|pid| HsperfCounters::for_jvm(*pid).ok());
    StartEvidence {
        rss: sum("Rss:"),
        pss: sum("Pss:"),
        hugetlb,
        classes: counters.as_ref().and_then(HsperfCounters::classes_loaded),
        classes_archived: counters.as_ref().and_then(HsperfCounters::classes_archived),
        ..StartEvidence::default()
    }
}

pub(crate) fn rss_and_pss(processes: &[u32]) -> (Option<Bytes>, Option<Bytes>) {
    let texts = rollups(processes);
    (sum_field(&texts, "Rss:"), sum_field(&texts, "Pss:"))
}

fn rollups(processes: &[u32]) -> Vec<String> {
    let read = |pid: &u32| read_bounded(&format!("/proc/{pid}/smaps_rollup"), LARGEST_ROLLUP);
    processes.iter().filter_map(read).collect()
}

fn sum_field(rollups: &[String], name: &str) -> Option<Bytes> {
    let values = rollups.iter().filter_map(|text| kib_field(text, name));
    values.reduce(Bytes::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// /proc/PID/smaps_rollup of a Tomcat on JDK 17, Linux 6.18, shortened; the huge page is put in.
    const ROLLUP: &str = "\
e0000000-ffffffffff601000 ---p 00000000 00:00 0                          [rollup]
Rss:               91580 kB
Pss:               89155 kB
Pss_Dirty:         71408 kB
AnonHugePages:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:    2048 kB
";

    #[test]
    fn memory_is_what_the_kernel_says() {
        assert_eq!(kib_field(ROLLUP, "Rss:"), Some(Bytes::from_kib(91_580)));
        assert_eq!(kib_field(ROLLUP, "Pss:"), Some(Bytes::from_kib(89_155)));
        assert_eq!(
            kib_field(ROLLUP, "Private_Hugetlb:"),
            Some(Bytes::from_mib(2))
        );
        assert_eq!(kib_field(ROLLUP, "Swap:"), None);
    }

    #[test]
    fn a_process_that_is_no_jvm_has_memory_and_no_classes() {
        let evidence = read(&[std::process::id()]);
        assert!(evidence.rss > Some(Bytes::from_kib(100)), "{evidence:?}");
        assert_eq!(evidence.classes, None);
        assert_eq!(read(&[]), StartEvidence::default());
    }
}
