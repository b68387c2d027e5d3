//! Which collector HotSpot chooses.

use std::fmt;

use super::{Machine, Refusal};
use crate::Bytes;
use crate::jdk::Jdk;
use crate::options::Options;

/// A HotSpot collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Collector {
    /// One thread, stops the world.
    Serial,
    /// Several threads, stops the world.
    Parallel,
    /// Regions, mostly concurrent marking.
    G1,
    /// Concurrent, low pauses.
    Z,
    /// Concurrent, low pauses.
    Shenandoah,
}

impl Collector {
    /// All of them, in the order HotSpot prints them.
    pub const ALL: [Self; 5] = [
        Self::Serial,
        Self::Parallel,
        Self::G1,
        Self::Z,
        Self::Shenandoah,
    ];

    /// The flag that selects it: `UseG1GC`.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Serial => "UseSerialGC",
            Self::Parallel => "UseParallelGC",
            Self::G1 => "UseG1GC",
            Self::Z => "UseZGC",
            Self::Shenandoah => "UseShenandoahGC",
        }
    }

    /// Whether it needs no experimental switch on this JDK.
    ///
    /// Source: JEP 377 and 379: ZGC and Shenandoah are product features since 15. Shenandoah was
    /// backported to 11.0.9 (some builds).
    pub fn is_product_on(self, jdk: Jdk) -> bool {
        match self {
            Self::Serial | Self::Parallel | Self::G1 => true,
            Self::Z | Self::Shenandoah => jdk.at_least(15),
        }
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Serial => "Serial",
            Self::Parallel => "Parallel",
            Self::G1 => "G1",
            Self::Z => "ZGC",
            Self::Shenandoah => "Shenandoah",
        })
    }
}

/// From this much memory on a machine counts as server class: 2 GiB less 256 MiB.
///
/// Source: os.cpp, `os::is_server_class_machine`; measured: 1791 MiB gives Serial, 1792 G1.
pub const SERVER_CLASS_MEMORY: Bytes = Bytes::from_mib(1792);

/// From this many processors on a machine counts as server class.
pub const SERVER_CLASS_CPUS: u32 = 2;

/// The collector the options name, else the one HotSpot chooses.
///
/// # Errors
/// [`Refusal::TwoCollectors`].
pub fn choose(jdk: Jdk, machine: Machine, options: &Options) -> Result<Collector, Refusal> {
    match named(options)? {
        Some(collector) => Ok(collector),
        None => Ok(default(jdk, machine, options)),
    }
}

/// The collector the options name.
///
/// # Errors
/// [`Refusal::TwoCollectors`]: HotSpot exits with 1.
pub fn named(options: &Options) -> Result<Option<Collector>, Refusal> {
    // AggressiveHeap sets UseParallelGC as if it were on the command line (arguments.cpp,
    // set_aggressive_heap_flags; measured on 17 and 25: with another collector the JVM exits).
    let is_aggressive = options.switch("AggressiveHeap") == Some(true);
    let is_on = |c: &Collector| {
        options.switch(c.flag()) == Some(true) || (is_aggressive && *c == Collector::Parallel)
    };
    let mut on = Collector::ALL.into_iter().filter(is_on);
    let first = on.next();
    match (first, on.next()) {
        (Some(first), Some(second)) => Err(Refusal::TwoCollectors { first, second }),
        _ => Ok(first),
    }
}

/// HotSpot's own choice.
///
/// Source: gcConfig.cpp, `GCConfig::select_gc_ergonomically`. Server class takes G1 since 9
/// (JEP 248) and Parallel on 8; other machines take Serial, until 27 (JEP 523: G1 everywhere).
fn default(jdk: Jdk, machine: Machine, options: &Options) -> Collector {
    let off = |c: Collector| options.switch(c.flag()) == Some(false);
    let by_size = machine.cpus >= SERVER_CLASS_CPUS && machine.memory >= SERVER_CLASS_MEMORY;
    let is_server = match (
        options.switch("NeverActAsServerClassMachine"),
        options.switch("AlwaysActAsServerClassMachine"),
    ) {
        (Some(true), _) => false,
        (_, Some(true)) => true,
        _ => by_size || jdk.at_least(27),
    };
    let server = if jdk.at_least(9) {
        Collector::G1
    } else {
        Collector::Parallel
    };
    if is_server && !off(server) {
        server
    } else {
        Collector::Serial
    }
}
