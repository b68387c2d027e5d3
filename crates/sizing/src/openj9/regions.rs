//! Where the memory of an OpenJ9 is beside its heap, and what that leaves for the heap.
//!
//! Owns the constants, each with its origin; the formula is [`crate::regions::heap::left_by`]'s, as for
//! HotSpot. A measured [`Profile`] replaces a constant. Sizes are resident memory.
//!
//! Facts: records/2026-11-24-regions-openj9, OpenJ9 cf92035774 (JDK 25) on x86-64 with
//! `-Xshareclasses:none`. Other releases were not measured.

use crate::Bytes;
use crate::options::Options;
use crate::profile::Profile;
use crate::regions::metaspace::TYPICAL_CLASSES;
use crate::regions::{Provenance, Region, agents, measured_or, threads};

/// The collector's memory for each byte of a heap that is in use.
pub const GC_SHARE: f64 = 0.02;

/// Bytes of class memory before any class of the application, and a loaded class.
const CLASS_BASE: u64 = 2_000_000;
const PER_CLASS: u64 = 4_000;
/// Compiled code of a warm web service.
const CODE: Bytes = Bytes::from_mib(16);
/// What the compiler knows of that code, and the JVM's own structures.
const JVM: Bytes = Bytes::from_mib(30);
/// The collector's memory whatever the heap.
const GC_FIXED: Bytes = Bytes::from_mib(2);
/// NIO buffers of a web service.
const DIRECT: Bytes = Bytes::from_mib(10);
/// Without a class cache there is none.
const CLASS_CACHE: Bytes = Bytes::from_bytes(0);
/// The JVM's code, libraries, jars.
const FILES: Bytes = Bytes::from_mib(30);
/// What no region names: libraries, the compiler's work, what malloc keeps.
const MALLOC: Bytes = Bytes::from_mib(24);
/// Application threads of a service nobody measured, and the JVM's own.
const THREADS: u64 = 60;

/// The regions beside the heap, in the order of reports.
pub fn fixed(profile: &Profile, options: &Options) -> Vec<Region> {
    let code = "compiled code of a warm web service";
    let jvm = "the compiler's data, the JVM's structures";
    vec![
        classes(profile),
        measured_or("code cache", profile.code_cache, CODE, code),
        stacks(profile),
        measured_or("direct", profile.direct, DIRECT, "a few NIO buffers"),
        Region {
            name: "GC native",
            size: GC_FIXED,
            provenance: Provenance::Default,
            how: format!("further {:.2} % of the heap", GC_SHARE * 100.0),
        },
        measured_or("JIT and JVM", profile.jit, JVM, jvm),
        measured_or("class cache", profile.cds, CLASS_CACHE, "none"),
        measured_or(
            "mapped files",
            profile.files,
            FILES,
            "the JVM's code and libraries",
        ),
        agents::plan(profile, options),
        measured_or(
            "malloc",
            profile.malloc,
            MALLOC,
            "libraries and malloc arenas",
        ),
    ]
}

fn classes(profile: &Profile) -> Region {
    let count = profile.classes.unwrap_or(TYPICAL_CLASSES);
    let size = CLASS_BASE.saturating_add(count.saturating_mul(PER_CLASS));
    let how = format!("2 MB + {PER_CLASS} B x {count} classes");
    measured_or("classes", profile.metaspace, Bytes::from_bytes(size), how)
}

fn stacks(profile: &Profile) -> Region {
    let touched = profile.thread_stack.unwrap_or(threads::TOUCHED);
    let count = profile.threads.unwrap_or(THREADS);
    Region {
        name: "thread stacks",
        size: touched.mul_ratio(count, 1),
        provenance: match profile.threads.and(profile.thread_stack) {
            Some(_) => Provenance::Measured,
            None => Provenance::Default,
        },
        how: format!("{count} threads x {touched} touched"),
    }
}
