//! The memory of an OpenJ9 outside its heap, and the remainder for the heap.
//!
//! Owns the constants, each with its origin; the formula is [`crate::regions::heap::left_by`]'s, as
//! for HotSpot. A measured [`AppProfile`] replaces a constant. Sizes are resident memory.
//!
//! Facts: records/2026-11-25-regions-openj9, OpenJ9 cf92035774 (JDK 25) on x86-64 with
//! `-Xshareclasses:none`, after 8 s of load. Other releases were not measured.

use crate::Bytes;
use crate::options::JvmOptionSet;
use crate::profile::AppProfile;
use crate::regions::metaspace::TYPICAL_CLASSES;
use crate::regions::{Region, SizeProvenance, agents, measured_or, threads};

/// The collector's memory for each byte of heap: a mark map of a 64th, a card table of a 512th. Measured:
/// 4.7 MiB for a heap of 256 that was committed whole.
pub const GC_SHARE: f64 = 0.02;
/// The collector's memory whatever the heap: 0.1 to 0.5 MiB of a small server.
const GC_FIXED: Bytes = Bytes::from_mib(1);

const CLASS_BASE: u64 = 2_000_000;
/// Bytes a loaded class. Measured with [`CLASS_BASE`]: 70 to 71 MiB for the 16,870 classes of a Spring
/// Boot service, 47 for the 10,077 of a Liberty, 15 for the 3,233 of a Tomcat, 8 for 1,702.
const PER_CLASS: u64 = 4_300;
/// Compiled code. Measured: 10 to 12 MiB of a Spring Boot service; the rest is for what compiles later.
const CODE: Bytes = Bytes::from_mib(16);
/// The compiler's work and data, the JVM's structures, and malloc's overhead, which a Java dump
/// does not separate. Measured: 80 to 108 MiB in a Spring Boot service that had just begun to
/// compile, 36 in a Liberty, 6 to 43 in a small server, 8 in a Tomcat.
const JVM: Bytes = Bytes::from_mib(92);
/// NIO buffers: as for HotSpot ([`crate::regions::direct`]); 0 to 0.1 MiB were used.
const DIRECT: Bytes = Bytes::from_mib(10);
/// The JVM's code, libraries, jars. Measured: 29 to 31 MiB, 23 of small servers.
const FILES: Bytes = Bytes::from_mib(30);
/// Assumed threads of a service without measurements; 28 to 50 were seen.
const THREADS: u64 = 60;

/// The regions outside the heap, in the order of reports.
pub fn fixed_regions(profile: &AppProfile, options: &JvmOptionSet) -> Vec<Region> {
    let code = "compiled code of a warm web service";
    let jvm = "the compiler at work, the JVM's structures";
    let none = Bytes::default();
    vec![
        class_region(profile),
        measured_or("code cache", profile.code_cache, CODE, code),
        stack_region(profile),
        measured_or("direct", profile.direct, DIRECT, "a few NIO buffers"),
        Region {
            name: "GC native",
            size: GC_FIXED,
            provenance: SizeProvenance::Default,
            how: format!("further {:.2} % of the heap", GC_SHARE * 100.0),
        },
        measured_or("JIT and JVM", profile.jit, JVM, jvm),
        measured_or("class cache", profile.cds, none, "none"),
        measured_or(
            "mapped files",
            profile.files,
            FILES,
            "the JVM's code and libraries",
        ),
        agents::plan_agents(profile, options),
        measured_or("malloc", profile.malloc, none, "in JIT and JVM"),
    ]
}

fn class_region(profile: &AppProfile) -> Region {
    let count = profile.classes.unwrap_or(TYPICAL_CLASSES);
    let size = CLASS_BASE.saturating_add(count.saturating_mul(PER_CLASS));
    let how = format!("2 MB + 4,300 B x {count} classes");
    measured_or("classes", profile.metaspace, Bytes::from_bytes(size), how)
}

fn stack_region(profile: &AppProfile) -> Region {
    let touched = profile.thread_stack.unwrap_or(threads::TOUCHED);
    let count = profile.threads.unwrap_or(THREADS);
    Region {
        name: "thread stacks",
        size: touched.mul_ratio(count, 1),
        provenance: match profile.threads.and(profile.thread_stack) {
            Some(_) => SizeProvenance::Measured,
            None => SizeProvenance::Default,
        },
        how: format!("{count} threads x {touched} touched"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regions::sum_sizes;

    /// Rows of the record: classes, threads, and resident memory outside the touched heap, MiB.
    const SEEN: [(u64, u64, f64); 3] = [
        (16_871, 36, 197.5),
        (16_857, 36, 198.5),
        (16_868, 36, 227.8),
    ];

    #[test]
    fn a_typical_service_has_room_beside_its_heap() {
        for (classes, threads, resident) in SEEN {
            let profile = AppProfile {
                classes: Some(classes),
                threads: Some(threads),
                ..AppProfile::default()
            };
            let planned = sum_sizes(&fixed_regions(&profile, &JvmOptionSet::none())).as_mib();
            assert!(planned > resident * 0.97, "{planned} for {resident}");
            assert!(planned < resident * 1.2, "{planned} for {resident}");
        }
    }
}
