//! Which collector HotSpot chooses.

use std::fmt;

use super::refusal::bad_value;
use super::{HotSpotRefusal, MachineSize};
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::{JvmOptionSet, gate};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectorKind {
    Serial,
    Parallel,
    /// Regions, mostly concurrent marking.
    G1,
    Z,
    Shenandoah,
    /// CMS with ParNew, up to 14.
    Cms,
    /// Allocates, and never collects.
    Epsilon,
}

impl CollectorKind {
    /// All, in the order HotSpot prints them.
    pub const ALL: [Self; 7] = [
        Self::Serial,
        Self::Parallel,
        Self::G1,
        Self::Z,
        Self::Shenandoah,
        Self::Cms,
        Self::Epsilon,
    ];

    pub const fn flag(self) -> &'static str {
        match self {
            Self::Serial => "UseSerialGC",
            Self::Parallel => "UseParallelGC",
            Self::G1 => "UseG1GC",
            Self::Z => "UseZGC",
            Self::Shenandoah => "UseShenandoahGC",
            Self::Cms => "UseConcMarkSweepGC",
            Self::Epsilon => "UseEpsilonGC",
        }
    }

    pub const fn collector_name(self) -> &'static str {
        match self {
            Self::Serial => "Serial",
            Self::Parallel => "Parallel",
            Self::G1 => "G1",
            Self::Z => "ZGC",
            Self::Shenandoah => "Shenandoah",
            Self::Cms => "CMS",
            Self::Epsilon => "Epsilon",
        }
    }

    /// Whether this JDK has it, and needs no experimental switch for it.
    pub fn is_product_on(self, jdk: JdkRelease) -> bool {
        gate::is_known(jdk, self.flag()) && gate::find_lock(jdk, self.flag()).is_none()
    }
}

impl fmt::Display for CollectorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.collector_name())
    }
}

/// From this much memory on a machine counts as server class: 2 GiB less 256 MiB.
///
/// Source: os.cpp, `os::is_server_class_machine`; measured: 1791 MiB gives Serial, 1792 G1.
pub const SERVER_CLASS_MEMORY: Bytes = Bytes::from_mib(1792);

pub const SERVER_CLASS_CPUS: u32 = 2;

pub fn choose(
    jdk: JdkRelease,
    machine: MachineSize,
    options: &JvmOptionSet,
) -> Result<CollectorKind, HotSpotRefusal> {
    if let Some(collector) = named_collector(options)? {
        return Ok(collector);
    }
    let own = default(jdk, machine, options);
    match options.setting(own.flag()).filter(|_| jdk.at_least(9)) {
        Some(off) => Err(bad_value(
            &off.text,
            "another collector to be on, because this is the one it takes here",
        )),
        None => Ok(own),
    }
}

pub fn named_collector(options: &JvmOptionSet) -> Result<Option<CollectorKind>, HotSpotRefusal> {
    // AggressiveHeap sets UseParallelGC as if it were on the command line (arguments.cpp,
    // set_aggressive_heap_flags; measured on 17 and 25: with another collector the JVM exits).
    let is_aggressive = options.switch_value("AggressiveHeap") == Some(true);
    let is_on = |c: &CollectorKind| {
        options.switch_value(c.flag()) == Some(true)
            || (is_aggressive && *c == CollectorKind::Parallel)
    };
    let mut on = CollectorKind::ALL.into_iter().filter(is_on);
    let first = on.next();
    match (first, on.next()) {
        (Some(first), Some(second)) => Err(HotSpotRefusal::TwoCollectors { first, second }),
        _ => Ok(first),
    }
}

/// HotSpot's own choice.
///
/// Source: gcConfig.cpp, `GCConfig::select_gc_ergonomically`. Server class takes G1 since 9
/// (JEP 248) and Parallel on 8; other machines take Serial, until 27 (JEP 523: G1 everywhere).
fn default(jdk: JdkRelease, machine: MachineSize, options: &JvmOptionSet) -> CollectorKind {
    let by_size = machine.cpus >= SERVER_CLASS_CPUS && machine.memory >= SERVER_CLASS_MEMORY;
    let is_server = match (
        options.switch_value("NeverActAsServerClassMachine"),
        options.switch_value("AlwaysActAsServerClassMachine"),
    ) {
        (Some(true), _) => false,
        (_, Some(true)) => true,
        _ => by_size || jdk.at_least(27),
    };
    match is_server {
        true if jdk.at_least(9) => CollectorKind::G1,
        true => CollectorKind::Parallel,
        false => CollectorKind::Serial,
    }
}
