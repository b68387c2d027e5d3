//! The JVM behind a log: collector, version, CPUs, heap.
//!
//! Owns the kept form; the parsers find the facts.

use std::fmt;

use loadline_sizing::hotspot::CollectorKind;
use loadline_sizing::openj9::GcPolicy;
use schemars::JsonSchema;
use serde::Serialize;

use super::event::HeaderFact;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GarbageCollector {
    HotSpot(CollectorKind),
    OpenJ9(GcPolicy),
}

impl GarbageCollector {
    pub fn collector_name(self) -> &'static str {
        match self {
            Self::HotSpot(kind) => kind.collector_name(),
            Self::OpenJ9(policy) => policy.policy_name(),
        }
    }

    pub(super) fn of_generation(text: &[u8]) -> Option<Self> {
        const NAMES: [(&[u8], CollectorKind); 6] = [
            (b"PSYoungGen", CollectorKind::Parallel),
            (b"ParNew", CollectorKind::Cms),
            (b"ASParNew", CollectorKind::Cms),
            (b"1 CMS-", CollectorKind::Cms),
            (b"CMS: ", CollectorKind::Cms),
            (b"DefNew", CollectorKind::Serial),
        ];
        let named = NAMES.iter().find(|(name, _)| text.starts_with(name));
        named.map(|(_, kind)| Self::HotSpot(*kind))
    }

    pub(super) fn of_pause(text: &[u8]) -> Option<Self> {
        const POLICIES: [(&[u8], GcPolicy); 3] = [
            (b"Pause Scavenge", GcPolicy::Gencon),
            (b"Pause Partial", GcPolicy::Balanced),
            (b"Pause Global Mark", GcPolicy::Balanced),
        ];
        const KINDS: [(&[u8], CollectorKind); 12] = [
            (b"Pause Mark Start", CollectorKind::Z),
            (b"Pause Mark End", CollectorKind::Z),
            (b"Pause Relocate Start", CollectorKind::Z),
            (b"Pause Init Mark", CollectorKind::Shenandoah),
            (b"Pause Final", CollectorKind::Shenandoah),
            (b"Pause Init Update", CollectorKind::Shenandoah),
            (b"Pause Degenerated", CollectorKind::Shenandoah),
            (b"G1 ", CollectorKind::G1),
            (b"(Normal)", CollectorKind::G1),
            (b"(Concurrent Start)", CollectorKind::G1),
            (b"Pause Cleanup", CollectorKind::G1),
            (b"Pause Initial Mark", CollectorKind::Cms),
        ];
        let has = |mark: &[u8]| memchr::memmem::find(text, mark).is_some();
        if let Some((_, policy)) = POLICIES.iter().find(|(mark, _)| has(mark)) {
            return Some(Self::OpenJ9(*policy));
        }
        // JDK 9 and 10 have G1's `Pause Initial Mark (G1 Evacuation Pause)`: G1 stands before CMS.
        let marked = KINDS.iter().find(|(mark, _)| has(mark));
        marked.map(|(_, kind)| Self::HotSpot(*kind))
    }
}

impl fmt::Display for GarbageCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.collector_name())
    }
}

/// The JVM's view of its machine, and its settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JvmMachine {
    pub cpus: Option<u64>,
    // Container limits included.
    pub cpus_available: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub heap_min_bytes: Option<u64>,
    pub heap_initial_bytes: Option<u64>,
    pub region_bytes: Option<u64>,
    pub parallel_workers: Option<u64>,
    pub concurrent_workers: Option<u64>,
}

/// What a JVM said about itself at its start. `None` is what it did not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcLogHeader {
    /// The JDK's version, `25.0.3+9-LTS`; in OpenJ9's log the version of its collector (OMR).
    pub jdk: Option<String>,
    pub collector: Option<GarbageCollector>,
    /// The log is OpenJ9's, which has no clock but the wall's.
    pub is_openj9: bool,
    pub is_generational: bool,
    pub heap_max_bytes: Option<u64>,
    pub machine: JvmMachine,
    is_stated: bool,
}

/// Longest version text that is kept.
const VERSION_LENGTH: usize = 100;

impl GcLogHeader {
    pub fn jvm_description(&self) -> Option<String> {
        let version = self.jdk.as_ref()?;
        Some(if self.is_openj9 {
            format!("OpenJ9 with OMR {version}")
        } else {
            version.clone()
        })
    }

    pub(super) fn take_fact(&mut self, fact: HeaderFact<'_>) {
        match fact {
            HeaderFact::Version { text, .. } => {
                let text = &text[..text.len().min(VERSION_LENGTH)];
                let text = String::from_utf8_lossy(text);
                self.jdk = Some(text.chars().filter(|c| !c.is_control()).collect());
            }
            HeaderFact::Collector(collector) => {
                self.collector = Some(collector);
                self.is_stated = true;
            }
            HeaderFact::CollectorMark(collector) => self.guess(collector),
            HeaderFact::OpenJ9 => self.is_openj9 = true,
            HeaderFact::Generational => self.is_generational = true,
            HeaderFact::Cpus { total, available } => {
                self.machine.cpus = Some(total);
                self.machine.cpus_available = Some(available);
            }
            HeaderFact::MachineCpus(total) => self.machine.cpus = Some(total),
            HeaderFact::AvailableCpus(available) => self.machine.cpus_available = Some(available),
            HeaderFact::Memory(bytes) => self.machine.memory_bytes = Some(bytes),
            HeaderFact::HeapMin(bytes) => self.machine.heap_min_bytes = Some(bytes),
            HeaderFact::HeapInitial(bytes) => self.machine.heap_initial_bytes = Some(bytes),
            HeaderFact::HeapMax(bytes) => self.heap_max_bytes = Some(bytes),
            HeaderFact::RegionSize(bytes) => self.machine.region_bytes = Some(bytes),
            HeaderFact::ParallelWorkers(threads) => self.machine.parallel_workers = Some(threads),
            HeaderFact::ConcurrentWorkers(threads) => {
                self.machine.concurrent_workers = Some(threads)
            }
        }
    }

    /// A mark of a collector. CMS may have the young generation of Serial, so its mark counts more.
    fn guess(&mut self, collector: GarbageCollector) {
        let is_cms = collector == GarbageCollector::HotSpot(CollectorKind::Cms);
        if !self.is_stated && (self.collector.is_none() || is_cms) {
            self.collector = Some(collector);
        }
    }
}
