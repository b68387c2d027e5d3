//! The collector's own memory: a fixed part and a share of the heap.
//!
//! Source: NMT "GC" committed right after start with Xms = Xmx, N = 1 to 96, 256 MiB to 4 GiB, on
//! 17.0.15 and 25.0.3; fitted within 1 % (Shenandoah 2 %). Versions between the two take 17's
//! values, which are larger. G1's 33.6 MB mark stack is committed but untouched, so it is left out
//! of a budget of resident memory. The resident memory of a service under load
//! (records/2026-11-20-regions) agrees within 2 MiB: G1 7.0 to 9.5 MiB, Parallel 7.9 to 11.4,
//! Serial 0.6.
//!
//! Not measured: 26, with a second card table in G1, 2 MB per GB of heap more (JEP 522); 27 and
//! later, which are assumed to equal 26.

use super::{Region, RegionInputs, SizeProvenance};
use crate::Bytes;
use crate::hotspot::CollectorKind;
use crate::jdk::JdkRelease;

const MB: f64 = 1_000_000.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CollectorCost {
    pub fixed: Bytes,
    pub share: f64,
}

pub fn collector_cost(jdk: JdkRelease, collector: CollectorKind, workers: u32) -> CollectorCost {
    let workers = f64::from(workers);
    let is_25 = jdk.at_least(25);
    // A card is a byte for 512 bytes of heap.
    let second_cards = if jdk.at_least(26) { 1.0 / 512.0 } else { 0.0 };
    let (fixed, share) = match collector {
        CollectorKind::Serial | CollectorKind::Epsilon => (0.0, 0.003_26),
        CollectorKind::Parallel if is_25 => (3.15 * workers, 0.0190),
        // CMS was not measured; its mark bitmap and cards are no larger than those of Parallel.
        CollectorKind::Parallel | CollectorKind::Cms => (3.28 * (workers + 1.0), 0.0365),
        CollectorKind::G1 if is_25 => (2.15 * workers, 0.0198 + second_cards),
        CollectorKind::G1 => (2.15 * workers, 0.0394),
        CollectorKind::Shenandoah if is_25 => (0.73 + 1.056 * workers, 0.031_25),
        CollectorKind::Shenandoah => (0.43 + 1.056 * workers, 0.031_25),
        // Grows with marking, not measured under load: 1 % is kept.
        CollectorKind::Z if is_25 => (0.1, 0.01),
        CollectorKind::Z => (67.3, 0.01),
    };
    CollectorCost {
        fixed: Bytes::from_bytes((fixed * MB) as u64),
        share,
    }
}

pub fn fixed_region(situation: &RegionInputs<'_>) -> Region {
    let cost = collector_cost(situation.jdk, situation.collector, situation.gc_workers);
    Region {
        name: "GC native",
        size: cost.fixed,
        provenance: SizeProvenance::Calculated,
        how: format!(
            "{} with {} workers; further {:.2} % of the heap",
            situation.collector,
            situation.gc_workers,
            cost.share * 100.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_g1_of_26_has_a_second_card_table() {
        let share = |jdk: &str, collector| {
            let jdk = JdkRelease::for_hotspot(jdk.parse().expect("a version"));
            collector_cost(jdk, collector, 2).share
        };
        let gib = 1024.0;
        let more = (share("26", CollectorKind::G1) - share("25", CollectorKind::G1)) * gib;
        assert!((more - 2.0).abs() < 0.01, "2 MiB per GiB: {more}");
        assert_eq!(
            share("26", CollectorKind::Serial),
            share("25", CollectorKind::Serial)
        );
    }
}
