//! Where the memory of a running JVM is: resident bytes, region by region.
//!
//! Owns the attribution: the JVM's own map of addresses (native memory tracking, detailed) laid
//! over the kernel's count of resident pages (smaps). Pure: text in, figures out. What is resident
//! is what a limit counts; what the JVM calls committed may be untouched, and files it maps are in
//! none of its categories.

mod regions;
mod smaps;

use loadline_sizing::Bytes;
use loadline_sizing::profile::Profile;

use crate::nmt::{NmtError, Summary};

/// Every parser of this module on one text, for the fuzzer.
#[cfg(fuzzing)]
pub fn parse_anything(text: &str) {
    regions::parse(text);
    smaps::parse(text);
}

/// A report that cannot be laid over the mappings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FootprintError {
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] NmtError),
    /// The report has no addresses.
    #[error("the report has no memory map")]
    NoMap,
    /// smaps is empty: the process has ended, or may not be read.
    #[error("no mappings")]
    NoMappings,
}

impl FootprintError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Report(error) => error.hint(),
            Self::NoMap => Some("start the JVM with -XX:NativeMemoryTracking=detail"),
            Self::NoMappings => Some("the process has ended, or loadline may not look at it"),
        }
    }
}

/// Resident memory by region. The fields add up to `resident`, except `arenas`,
/// `compiler_peak` and `tracking`, which are parts of `jvm`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Everything: pages of the process and of the files it maps.
    pub resident: Bytes,
    /// The touched part of the heap.
    pub heap: Bytes,
    /// Metaspace and class space.
    pub metaspace: Bytes,
    /// Compiled code.
    pub code_cache: Bytes,
    /// Touched stacks.
    pub stacks: Bytes,
    /// The collector's own.
    pub gc: Bytes,
    /// Direct buffers.
    pub direct: Bytes,
    /// Compilers' arenas, symbols, modules and everything else the JVM names.
    pub jvm: Bytes,
    /// The mapped class archive (CDS, AOT).
    pub archive: Bytes,
    /// Pages of other files: the JVM's code, libraries, jars.
    pub files: Bytes,
    /// What no category has: libraries' own memory, what malloc adds or keeps.
    pub malloc: Bytes,
    /// Arenas in use and in the pool.
    pub arenas: Bytes,
    /// The most that the compilers' arenas ever held.
    pub compiler_peak: Bytes,
    /// What tracking itself takes; not there in production.
    pub tracking: Bytes,
    /// Threads, Java and internal.
    pub threads: u64,
    /// Classes loaded.
    pub classes: u64,
}

impl Footprint {
    /// Lays a detailed report (`VM.native_memory detail scale=B`) over smaps of the same moment.
    ///
    /// # Errors
    /// [`FootprintError`].
    pub fn of(report: &str, smaps: &str) -> Result<Self, FootprintError> {
        let summary = Summary::parse(report)?;
        let reserved = regions::parse(report);
        if reserved.is_empty() {
            return Err(FootprintError::NoMap);
        }
        let mappings = smaps::parse(smaps);
        if mappings.is_empty() {
            return Err(FootprintError::NoMappings);
        }
        let mut footprint = Self {
            threads: summary.threads.unwrap_or_default(),
            classes: summary.classes.unwrap_or_default(),
            ..Self::default()
        };
        let mut unnamed = Bytes::default();
        for mapping in &mappings {
            add(&mut footprint.resident, mapping.resident);
            let rest = footprint.share(mapping, &reserved);
            match (mapping.path.as_str(), is_file(&mapping.path)) {
                ("[stack]", _) => add(&mut footprint.stacks, rest),
                (_, true) => {
                    let anonymous = mapping.anonymous.min(rest);
                    add(&mut footprint.files, rest.saturating_sub(anonymous));
                    add(&mut unnamed, anonymous);
                }
                _ => add(&mut unnamed, rest),
            }
        }
        footprint.allocated(&summary, unnamed);
        Ok(footprint)
    }

    /// Gives each region its part of a mapping, by addresses; returns what belongs to none. The
    /// kernel joins neighbours into one mapping: its resident pages are divided by length.
    fn share(&mut self, mapping: &smaps::Mapping, reserved: &[regions::Reserved]) -> Bytes {
        if mapping.path.ends_with(".jsa") || mapping.path.ends_with(".aot") {
            add(&mut self.archive, mapping.resident);
            return Bytes::default();
        }
        let length = mapping.range.end.saturating_sub(mapping.range.start).max(1);
        let mut rest = mapping.resident;
        for region in reserved {
            let from = region.range.start.max(mapping.range.start);
            let to = region.range.end.min(mapping.range.end);
            let part = mapping
                .resident
                .mul_ratio(to.saturating_sub(from), length)
                .min(rest);
            add(self.of_category(&region.category), part);
            rest = rest.saturating_sub(part);
        }
        rest
    }

    fn of_category(&mut self, category: &str) -> &mut Bytes {
        match category {
            "Java Heap" => &mut self.heap,
            "Class" | "Metaspace" => &mut self.metaspace,
            "Code" => &mut self.code_cache,
            "Thread" | "Thread Stack" => &mut self.stacks,
            "GC" | "GCCardSet" => &mut self.gc,
            "Other" => &mut self.direct,
            "Shared class space" => &mut self.archive,
            _ => &mut self.jvm,
        }
    }

    /// Divides anonymous memory outside the map by what each category says it allocated; the rest
    /// is what malloc adds and what libraries hold.
    fn allocated(&mut self, summary: &Summary, unnamed: Bytes) {
        let mut rest = unnamed;
        for category in &summary.categories {
            let part = category.malloc.min(rest);
            rest = rest.saturating_sub(part);
            match category.name.as_str() {
                "Native Memory Tracking" => add(&mut self.tracking, part),
                "Arena Chunk" => add(&mut self.arenas, part),
                "Compiler" => {
                    add(&mut self.arenas, part);
                    self.compiler_peak = category.arena_peak;
                }
                _ => {}
            }
            add(self.of_category(&category.name), part);
        }
        self.malloc = rest;
    }

    /// The JVM's own memory as production has it: without tracking, with the compilers at their
    /// peak. What their arenas gave back stays in the pool of chunks, so it is counted once.
    fn jvm_at_peak(&self) -> Bytes {
        let rest = self.jvm.saturating_sub(self.tracking);
        let rest = rest.saturating_sub(self.arenas);
        rest.saturating_add(self.arenas.max(self.compiler_peak))
    }

    /// The profile that `loadline-launch` reads. Heap and collector are planned, not measured, so
    /// only the live heap is in it.
    pub fn profile(&self, live_heap: Option<Bytes>) -> Profile {
        let up = |size: Bytes| size.round_up(Bytes::from_kib(1));
        let stack = Bytes::from_bytes(self.stacks.as_bytes() / self.threads.max(1));
        // What the compilers gave back lies in malloc's free lists: it is in their peak already.
        let given_back = self.compiler_peak.saturating_sub(self.arenas);
        Profile {
            classes: Some(self.classes),
            metaspace: Some(up(self.metaspace)),
            code_cache: Some(up(self.code_cache)),
            threads: Some(self.threads),
            thread_stack: Some(up(stack)),
            direct: Some(up(self.direct)),
            jit: Some(up(self.jvm_at_peak())),
            cds: Some(up(self.archive)),
            files: Some(up(self.files)),
            malloc: Some(up(self.malloc.saturating_sub(given_back))),
            live_heap: live_heap.map(up),
            ..Profile::default()
        }
    }
}

fn add(sum: &mut Bytes, part: Bytes) {
    *sum = sum.saturating_add(part);
}

/// A mapping of a file, not `[heap]`, `[vdso]` or anonymous memory with a name.
fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("/memfd:") && !path.starts_with("/dev/zero")
}

/// Bytes of live objects: the total of `GC.class_histogram`, which collects first.
pub fn live_heap(histogram: &str) -> Option<Bytes> {
    let total = histogram
        .lines()
        .rev()
        .find_map(|line| line.trim_start().strip_prefix("Total"))?;
    let bytes = total.split_whitespace().nth(1)?;
    bytes.parse().ok().map(Bytes::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// See tests/data/README.md.
    const CAPTURED: [(&str, &str); 2] = [
        (
            include_str!("../../tests/data/footprint/17-detail.txt"),
            include_str!("../../tests/data/footprint/17-smaps.txt"),
        ),
        (
            include_str!("../../tests/data/footprint/25-detail.txt"),
            include_str!("../../tests/data/footprint/25-smaps.txt"),
        ),
    ];

    #[test]
    fn regions_add_up_to_what_is_resident() {
        for (report, smaps) in CAPTURED {
            let f = Footprint::of(report, smaps).unwrap();
            let parts = [
                f.heap,
                f.metaspace,
                f.code_cache,
                f.stacks,
                f.gc,
                f.direct,
                f.jvm,
                f.archive,
                f.files,
                f.malloc,
            ];
            let sum = parts
                .into_iter()
                .fold(Bytes::default(), Bytes::saturating_add);
            assert_eq!(sum, f.resident, "{f:?}");
            assert!(f.threads > 8 && f.classes > 500, "{f:?}");
            // A small program on Serial with a heap of 64 MiB that it hardly touches.
            assert!(
                f.heap > Bytes::from_mib(1) && f.heap < Bytes::from_mib(32),
                "{f:?}"
            );
            assert!(f.archive > Bytes::from_mib(8), "{f:?}");
            assert!(f.files > Bytes::from_mib(8), "{f:?}");
            let profile = f.profile(Some(Bytes::from_mib(2)));
            assert!(profile.is_complete());
            assert_eq!(Profile::parse(&profile.print()), profile);
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let (report, smaps) = CAPTURED[0];
        let summary = report.split("Virtual memory map").next().unwrap();
        assert_eq!(Footprint::of(summary, smaps), Err(FootprintError::NoMap));
        assert_eq!(Footprint::of(report, ""), Err(FootprintError::NoMappings));
        assert!(Footprint::of("", smaps).is_err());
    }

    #[test]
    fn live_heap_is_the_histograms_total() {
        let text = " num     #instances         #bytes  class name (module)\n   1:  10  300  [B (java.base@17)\nTotal         26412        1653560\n";
        assert_eq!(live_heap(text), Some(Bytes::from_bytes(1_653_560)));
        assert_eq!(live_heap("nothing"), None);
    }
}
