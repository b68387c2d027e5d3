//! The memory of a running JVM: resident bytes, region by region.
//!
//! Owns the attribution: the JVM's own map of addresses (HotSpot's native memory tracking,
//! detailed; OpenJ9's Java dump) laid over the kernel's count of resident pages (smaps). Pure: text
//! in, figures out. A limit counts resident memory; the JVM's committed memory may be untouched,
//! and its categories exclude mapped files.

mod javacore;
mod parts;
mod regions;
mod smaps;

use loadline_sizing::Bytes;
use loadline_sizing::profile::AppProfile;

use self::javacore::Javacore;
pub use self::parts::{HeapHint, ResidentParts, divide_mappings};
use self::regions::ReservedRange;
use self::smaps::Mapping;
use crate::nmt::{NmtCategory, NmtError, NmtSummary};

#[cfg(fuzzing)]
pub fn parse_anything(text: &str) {
    javacore::Javacore::from_dump(text);
    regions::parse_regions(text);
    smaps::parse_smaps(text);
    parts::divide_mappings(text, &HeapHint::default());
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FootprintError {
    #[error(transparent)]
    Report(#[from] NmtError),
    #[error("the report has no memory map")]
    NoMap,
    #[error("the Java dump has no MEMINFO and NATIVEMEMINFO")]
    NoMemory,
    /// smaps is empty: the process has ended, or may not be read.
    #[error("no mappings")]
    NoMappings,
}

impl FootprintError {
    pub fn footprint_hint(&self) -> Option<&'static str> {
        match self {
            Self::Report(error) => error.nmt_hint(),
            Self::NoMap => Some("start the JVM with -XX:NativeMemoryTracking=detail"),
            Self::NoMemory => Some(
                "it was cut off, or is of another JVM; try again, and report a dump that stays so",
            ),
            Self::NoMappings => Some("the process has ended, or loadline may not look at it"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Everything: pages of the process and of the files it maps.
    pub resident: Bytes,
    pub heap: Bytes,
    pub metaspace: Bytes,
    pub code_cache: Bytes,
    pub stacks: Bytes,
    pub gc: Bytes,
    pub direct: Bytes,
    /// Compilers' arenas, symbols, modules and everything else the JVM names.
    pub jvm: Bytes,
    /// The mapped class archive (CDS, AOT).
    pub archive: Bytes,
    /// Pages of other files: the JVM's code, libraries, jars.
    pub files: Bytes,
    /// What no category has: libraries' own memory, what malloc adds or keeps.
    pub malloc: Bytes,
    pub arenas: Bytes,
    /// The most that the compilers' arenas ever held; OpenJ9 does not say.
    pub compiler_peak: Option<Bytes>,
    pub tracking: Bytes,
    pub threads: u64,
    pub classes: u64,
}

impl Footprint {
    /// Lays a detailed report (`VM.native_memory detail scale=B`) over smaps of the same moment.
    pub fn from_nmt_and_smaps(report: &str, smaps: &str) -> Result<Self, FootprintError> {
        let summary = NmtSummary::from_nmt_report(report)?;
        let reserved = regions::parse_regions(report);
        if reserved.is_empty() {
            return Err(FootprintError::NoMap);
        }
        let mut footprint = Self {
            threads: summary.threads.unwrap_or_default(),
            classes: summary.classes.unwrap_or_default(),
            ..Self::default()
        };
        let rest = footprint.assign_mappings(&parse_mappings(smaps)?, &reserved);
        let compiler = |c: &&NmtCategory| c.name == "Compiler";
        let parts = summary.categories.iter();
        footprint.compiler_peak = parts.clone().find(compiler).map(|c| c.arena_peak);
        footprint.divide(rest, parts.map(|c| (c.name.as_str(), c.malloc)));
        Ok(footprint)
    }

    /// Lays OpenJ9's Java dump over smaps of the same moment. What compilers hold at their peak it
    /// does not say.
    pub fn of_java_dump(dump: &str, smaps: &str) -> Result<Self, FootprintError> {
        let said = Javacore::from_dump(dump).ok_or(FootprintError::NoMemory)?;
        let mappings = parse_mappings(smaps)?;
        let mut footprint = Self {
            threads: said.threads,
            classes: said.classes,
            ..Self::default()
        };
        let rest = footprint.assign_mappings(&mappings, &said.reserved);
        footprint.divide(rest, said.used.into_iter());
        let rest = std::mem::take(&mut footprint.malloc);
        let all = said.allocated.iter().map(|(_, size)| *size);
        let all = all.fold(Bytes::default(), Bytes::saturating_add);
        // More than is resident: as much of each was touched.
        let touched = |size: Bytes| {
            if all > rest {
                size.mul_ratio(rest.as_bytes(), all.as_bytes().max(1))
            } else {
                size
            }
        };
        let parts = said.allocated.iter();
        footprint.divide(rest, parts.map(|(part, size)| (*part, touched(*size))));
        Ok(footprint)
    }

    /// Gives each mapping to the region of its addresses or its file; returns anonymous memory that has
    /// neither.
    fn assign_mappings(&mut self, mappings: &[Mapping], reserved: &[ReservedRange]) -> Bytes {
        let mut unnamed = Bytes::default();
        for mapping in mappings {
            add_bytes(&mut self.resident, mapping.resident);
            let rest = self.share_mapping(mapping, reserved);
            match (mapping.path.as_str(), is_file(&mapping.path)) {
                ("[stack]", _) => add_bytes(&mut self.stacks, rest),
                (_, true) => {
                    let anonymous = mapping.anonymous.min(rest);
                    add_bytes(&mut self.files, rest.saturating_sub(anonymous));
                    add_bytes(&mut unnamed, anonymous);
                }
                _ => add_bytes(&mut unnamed, rest),
            }
        }
        unnamed
    }

    /// Gives each region its part of a mapping, by addresses; returns what belongs to none. The
    /// kernel joins neighbours into one mapping: its resident pages are divided by length.
    fn share_mapping(&mut self, mapping: &Mapping, reserved: &[ReservedRange]) -> Bytes {
        if is_archive(&mapping.path) {
            add_bytes(&mut self.archive, mapping.resident);
            return Bytes::default();
        }
        let length = mapping.range.end.saturating_sub(mapping.range.start).max(1);
        let mut rest = mapping.resident;
        for region in reserved {
            let from = region.range.start.max(mapping.range.start);
            let to = region.range.end.min(mapping.range.end);
            let part = mapping.resident.mul_ratio(to.saturating_sub(from), length);
            let part = part.min(rest);
            add_bytes(self.of_category(&region.category), part);
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
    fn divide<'a>(&mut self, unnamed: Bytes, parts: impl Iterator<Item = (&'a str, Bytes)>) {
        let mut rest = unnamed;
        for (category, size) in parts {
            let part = size.min(rest);
            rest = rest.saturating_sub(part);
            match category {
                "Native Memory Tracking" => add_bytes(&mut self.tracking, part),
                "Arena Chunk" | "Compiler" => add_bytes(&mut self.arenas, part),
                _ => {}
            }
            add_bytes(self.of_category(category), part);
        }
        self.malloc = rest;
    }

    /// The JVM's own memory as production has it: without tracking, with the compilers at their
    /// peak. What their arenas gave back stays in the pool of chunks, so it is counted once.
    fn jvm_at_peak(&self) -> Bytes {
        let rest = self.jvm.saturating_sub(self.tracking);
        let rest = rest.saturating_sub(self.arenas);
        rest.saturating_add(self.arenas.max(self.compiler_peak.unwrap_or_default()))
    }

    /// The profile that `loadline-launch` reads. Heap and collector are planned, not measured, so
    /// only the live heap is in it.
    pub fn profile(&self, live_heap: Option<Bytes>) -> AppProfile {
        let up = |size: Bytes| size.round_up(Bytes::from_kib(1));
        let stack = Bytes::from_bytes(self.stacks.as_bytes() / self.threads.max(1));
        // What the compilers gave back lies in malloc's free lists: it is in their peak already.
        let peak = self.compiler_peak.unwrap_or_default();
        let given_back = peak.saturating_sub(self.arenas);
        AppProfile {
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
            ..AppProfile::default()
        }
    }
}

fn add_bytes(sum: &mut Bytes, part: Bytes) {
    *sum = sum.saturating_add(part);
}

fn parse_mappings(smaps: &str) -> Result<Vec<Mapping>, FootprintError> {
    let mappings = smaps::parse_smaps(smaps);
    if mappings.is_empty() {
        Err(FootprintError::NoMappings)
    } else {
        Ok(mappings)
    }
}

pub fn is_openj9(smaps: &str) -> bool {
    smaps.lines().any(|line| line.contains("/libj9vm"))
}

/// A mapping of classes that were prepared: HotSpot's CDS and AOT archives, OpenJ9's class cache
/// (`C290M12F1A64P_name_G43L00`).
fn is_archive(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_class_cache = || {
        let generation = name.rsplit_once("_G").map_or("", |(_, end)| end);
        name.starts_with('C')
            && generation
                .split_once('L')
                .is_some_and(|(g, layer)| [g, layer].iter().all(|n| is_number(n)))
    };
    path.ends_with(".jsa") || path.ends_with(".aot") || is_class_cache()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// A mapping of a file, not `[heap]`, `[vdso]` or anonymous memory with a name.
fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("/memfd:") && !path.starts_with("/dev/zero")
}

/// Bytes of live objects: the total of `GC.class_histogram`, which collects first.
pub fn live_heap(histogram: &str) -> Option<Bytes> {
    let mut lines = histogram.lines().rev();
    let total = lines.find_map(|line| line.trim_start().strip_prefix("Total"))?;
    let bytes = total.split_whitespace().nth(1)?;
    bytes.parse().ok().map(Bytes::from_bytes)
}

/// Direct buffers that are alive: each has one object that frees it. Netty's own have none.
pub fn direct_buffers(histogram: &str) -> u64 {
    const FREES: &str = "java.nio.DirectByteBuffer$Deallocator";
    let mut lines = histogram.lines().map(|line| line.split_whitespace());
    let line = lines.find(|words| words.clone().nth(3) == Some(FREES));
    line.and_then(|mut words| words.nth(1)?.parse().ok())
        .unwrap_or(0)
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
            let f = Footprint::from_nmt_and_smaps(report, smaps).unwrap();
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
            assert_eq!(AppProfile::parse_profile(&profile.to_file_text()), profile);
        }
    }

    #[test]
    fn regions_of_an_openj9_add_up_to_what_is_resident() {
        let dump = include_str!("../../tests/data/footprint/openj9-25-javacore.txt");
        let smaps = include_str!("../../tests/data/footprint/openj9-25-smaps.txt");
        let f = Footprint::of_java_dump(dump, smaps).unwrap();
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
        assert!(is_openj9(smaps) && !is_openj9(CAPTURED[0].1));
        // The dump says 8.6 MiB of heap, 14.9 of classes in use; of 256 of code 0.5 were.
        let mib = |size: Bytes| size.as_mib().round() as u64;
        assert_eq!((mib(f.heap), mib(f.metaspace)), (9, 15), "{f:?}");
        assert!(f.code_cache > Bytes::from_kib(500) && f.code_cache < Bytes::from_mib(4));
        assert_eq!((f.classes, f.compiler_peak), (3239, None));
        let profile = f.profile(None);
        assert!(profile.is_complete());
        assert_eq!(AppProfile::parse_profile(&profile.to_file_text()), profile);
        let cut = &dump[..2000];
        assert_eq!(
            Footprint::of_java_dump(cut, smaps),
            Err(FootprintError::NoMemory)
        );
    }

    #[test]
    fn a_class_cache_is_known_by_its_name() {
        for name in [
            "app.jsa",
            "app.aot",
            "C290M12F1A64P_loadline_G43L00",
            "C290M4F1A64_a_b_G43L01",
        ] {
            assert!(is_archive(&format!("/opt/scc/{name}")), "{name}");
        }
        for name in [
            "/opt/app.jar",
            "/opt/Cafe_Gx",
            "/opt/C_G",
            "/opt/scc_G43L00",
            "",
            "/C_G1L",
        ] {
            assert!(!is_archive(name), "{name}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let (report, smaps) = CAPTURED[0];
        let summary = report.split("Virtual memory map").next().unwrap();
        assert_eq!(
            Footprint::from_nmt_and_smaps(summary, smaps),
            Err(FootprintError::NoMap)
        );
        assert_eq!(
            Footprint::from_nmt_and_smaps(report, ""),
            Err(FootprintError::NoMappings)
        );
        assert!(Footprint::from_nmt_and_smaps("", smaps).is_err());
    }

    #[test]
    fn live_heap_is_the_histograms_total() {
        let text = " num     #instances         #bytes  class name (module)\n   1:  10  300  [B (java.base@17)\nTotal         26412        1653560\n";
        assert_eq!(live_heap(text), Some(Bytes::from_bytes(1_653_560)));
        assert_eq!(live_heap("nothing"), None);
        let text = "   9:  1425  45600  java.nio.DirectByteBuffer$Deallocator (java.base@17)\n";
        assert_eq!((direct_buffers(text), direct_buffers("nothing")), (1425, 0));
    }
}
