//! OpenJ9's defaults in a container: collector, heap, threads, width of references.
//!
//! Owns the formulas and which options they obey. It covers machines that are not at hand; where a
//! real OpenJ9 is at hand, the `initialized` element of its GC log and its `-verbose:sizes` are the
//! truth and this module is tested against them. Never measures, never starts a JVM.
//!
//! Facts: rows printed by OpenJ9 cf92035774 (JDK 25) in real cgroups, x86-64
//! (`tests/data/openj9-ergonomics.csv`). Other releases were not run.

mod compilers;
mod heap;
mod options;
pub mod regions;

use std::fmt;

use crate::hotspot::{MachineSize, PrintedValue, threads};
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;
use crate::{Bytes, Cpus};

pub use compilers::OpenJ9Jit;
pub use heap::{OpenJ9Heap, default_max};
pub use options::{IgnoredOption, TAKEN};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GcPolicy {
    #[default]
    Gencon,
    Balanced,
    OptThruput,
    /// One area, marked concurrently.
    OptAvgPause,
    Metronome,
    NoGc,
}

impl GcPolicy {
    pub const ALL: [Self; 6] = [
        Self::Gencon,
        Self::Balanced,
        Self::OptThruput,
        Self::OptAvgPause,
        Self::Metronome,
        Self::NoGc,
    ];

    pub const fn policy_name(self) -> &'static str {
        match self {
            Self::Gencon => "gencon",
            Self::Balanced => "balanced",
            Self::OptThruput => "optthruput",
            Self::OptAvgPause => "optavgpause",
            Self::Metronome => "metronome",
            Self::NoGc => "nogc",
        }
    }
}

impl fmt::Display for GcPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.policy_name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenJ9Refusal {
    BadValue {
        option: String,
        expected: &'static str,
    },
    InitialAboveMax {
        initial: Bytes,
        max: Bytes,
    },
    NoRoomForOld {
        young: Bytes,
        max: Bytes,
    },
    /// An option makes it ignore the container's limits, so this size does not apply.
    LimitUnseen,
}

impl fmt::Display for OpenJ9Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadValue { option, expected } => {
                write!(f, "`{option}` is not taken; {expected}")
            }
            Self::InitialAboveMax { initial, max } => write!(
                f,
                "the initial heap of {initial} is above the largest of {max}"
            ),
            Self::NoRoomForOld { young, max } => write!(
                f,
                "the young generation of {young} leaves no room in a heap of {max}"
            ),
            Self::LimitUnseen => f.write_str(
                "-XX:-UseContainerSupport hides the container's limits, so it would size itself by the host",
            ),
        }
    }
}

const MEASURED: u32 = 25;

pub fn rests_on(jdk: JdkRelease) -> Option<String> {
    let feature = jdk.version.feature;
    (feature != MEASURED).then(|| {
        format!(
            "OpenJ9 of JDK {feature} was not measured: this is what OpenJ9 of JDK {MEASURED} would do"
        )
    })
}

#[derive(Debug, Clone, PartialEq)]
pub struct OpenJ9Ergonomics {
    pub jdk: JdkRelease,
    pub machine: MachineSize,
    pub policy: GcPolicy,
    pub heap: OpenJ9Heap,
    pub gc_threads: u32,
    pub compilers: OpenJ9Jit,
    /// Bits that a reference is shifted by; `None` where references are not compressed.
    pub shift: Option<u32>,
    /// Parallelism of the common fork-join pool: the class library's, as HotSpot's.
    pub common_pool: u32,
    /// Carrier threads of virtual threads; `None` before 21.
    pub virtual_thread_carriers: Option<u32>,
}

const MOST_GC_THREADS: u32 = 64;
/// The largest heap that is addressed with a shift of 3: 4 GiB of references, 8 bytes each.
const SHIFT_3: Bytes = Bytes::from_gib(32);
const COMPRESSED: Bytes = Bytes::from_gib(57);

/// Processors that OpenJ9 counts: the CPU limit rounded *half up*, at least 1, at most the host's.
/// HotSpot rounds up: 1.2 CPUs are 1 here and 2 there.
pub fn count_processors(limit: Option<Cpus>, host: u32) -> u32 {
    let limited = limit.map(|cpus| cpus.as_millis().saturating_add(500) / 1000);
    limited.unwrap_or(host).clamp(1, host.max(1))
}

/// Predicts OpenJ9's choices on this machine with these options. Errors: A [`OpenJ9Refusal`] when
/// it would not start with these options, or the answer depends on unknown facts.
pub fn predict(
    jdk: JdkRelease,
    machine: MachineSize,
    options: &JvmOptionSet,
) -> Result<OpenJ9Ergonomics, OpenJ9Refusal> {
    let asked = options::OpenJ9Settings::read(options)?;
    let machine = MachineSize {
        cpus: asked.processors.unwrap_or(machine.cpus).max(1),
        ..machine
    };
    let heap = heap::size_openj9_heap(machine.memory, &asked)?;
    let own = machine.cpus.min(MOST_GC_THREADS);
    let bounded = own.min(asked.most_gc_threads.unwrap_or(own));
    Ok(OpenJ9Ergonomics {
        jdk,
        machine,
        policy: asked.policy,
        heap,
        gc_threads: asked.gc_threads.unwrap_or(bounded),
        compilers: compilers::size_jit(machine.memory, &asked),
        shift: shift(heap.max, asked.compressed),
        common_pool: threads::common_pool(jdk, machine, options),
        virtual_thread_carriers: jdk.at_least(21).then_some(machine.cpus),
    })
}

fn shift(max: Bytes, asked: Option<bool>) -> Option<u32> {
    asked
        .unwrap_or(max <= COMPRESSED)
        .then_some(if max <= SHIFT_3 { 3 } else { 4 })
}

impl OpenJ9Ergonomics {
    /// The predictions, under the names that the JVM prints: those of the `initialized` element of
    /// its GC log, and `-Xmnx` of `-verbose:sizes`; for the compiler under its options' names.
    /// Sizes are bytes.
    pub fn predicted_flags(&self) -> Vec<(&'static str, PrintedValue)> {
        let size = |size: Bytes| PrintedValue::Number(size.as_bytes());
        let compilers = PrintedValue::Number(u64::from(self.compilers.threads));
        let mut flags = vec![
            ("-Xcodecachetotal", size(self.compilers.code_cache)),
            ("-XcompilationThreads", compilers),
        ];
        flags.extend(self.heap.max_new.map(|of| ("-Xmnx", size(of))));
        flags.push(("compressedRefs", PrintedValue::Switch(self.shift.is_some())));
        let shift = self.shift.map(|of| PrintedValue::Number(u64::from(of)));
        flags.extend(shift.map(|of| ("compressedRefsShift", of)));
        flags.push((
            "gcthreads",
            PrintedValue::Number(u64::from(self.gc_threads)),
        ));
        flags.push(("initialHeapSize", size(self.heap.initial)));
        flags.push(("maxHeapSize", size(self.heap.max)));
        flags.extend(self.heap.region.map(|of| ("regionSize", size(of))));
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_limit_is_rounded_half_up_and_bounded_by_the_host() {
        let of = |millis, host| count_processors(Some(Cpus::from_millis(millis)), host);
        assert_eq!(
            [100, 499, 1499, 1500, 2000].map(|m| of(m, 8)),
            [1, 1, 1, 2, 2]
        );
        assert_eq!(of(8000, 4), 4);
        assert_eq!(count_processors(None, 64), 64);
    }
}
