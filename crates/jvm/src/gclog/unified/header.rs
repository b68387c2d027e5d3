//! What a JVM says once, at its start (`gc,init`), and how it names its collector.

use super::super::event::{Event, Fact};
use super::super::{Collector, number};

/// Collector names after `Using ` and `Initializing `.
const COLLECTORS: [(&[u8], Collector); 7] = [
    (b"G1", Collector::G1),
    (b"Serial", Collector::Serial),
    (b"Parallel", Collector::Parallel),
    (b"Concurrent Mark Sweep", Collector::Cms),
    (b"The Z Garbage Collector", Collector::Z),
    (b"Shenandoah", Collector::Shenandoah),
    (b"Epsilon", Collector::Epsilon),
];

/// Reads a line of the header; `None` when it is none.
pub(super) fn parse(text: &[u8]) -> Option<Event<'_>> {
    fact(text).map(Event::Fact)
}

fn fact(text: &[u8]) -> Option<Fact<'_>> {
    let colon = memchr::memchr(b':', &text[..text.len().min(48)]);
    let Some(colon) = colon else {
        return collector(text);
    };
    let value = text[colon + 1..].trim_ascii();
    let size = || whole_size(value);
    let count = || number::take_whole(value).map(|(n, _)| n);
    match &text[..colon] {
        b"Version" => Some(Fact::Version {
            text: value.strip_suffix(b" (release)").unwrap_or(value),
            is_start: true,
        }),
        b"CPUs" => cpus(value),
        b"Memory" => size().map(Fact::Memory),
        b"Heap Min Capacity" | b"Min Capacity" => size().map(Fact::HeapMin),
        b"Heap Initial Capacity" | b"Initial Capacity" => size().map(Fact::HeapInitial),
        b"Heap Max Capacity" | b"Max Capacity" => size().map(Fact::HeapMax),
        b"Heap Region Size" | b"Heap region size" => size().map(Fact::RegionSize),
        b"Parallel Workers" | b"GC Workers" | b"GC Workers for Young Generation" => {
            count().map(Fact::ParallelWorkers)
        }
        b"Concurrent Workers" => count().map(Fact::ConcurrentWorkers),
        b"Mode" if value == b"Generational" => Some(Fact::Generational),
        b"GC Workers for Old Generation" => Some(Fact::Generational),
        _ => collector(text),
    }
}

/// `Using G1`, `Using The Z Garbage Collector`; not `Using 2 workers of 2 for evacuation`.
fn collector(text: &[u8]) -> Option<Fact<'_>> {
    let name = text
        .strip_prefix(b"Using ")
        .or_else(|| text.strip_prefix(b"Initializing "))?
        .trim_ascii();
    COLLECTORS
        .iter()
        .find(|(known, _)| name == *known)
        .map(|(_, collector)| Fact::Collector(*collector))
}

/// `2 total, 1 available`; JDK 11 has only `total`.
fn cpus(value: &[u8]) -> Option<Fact<'_>> {
    let (total, rest) = number::take_whole(value)?;
    let available = rest
        .strip_prefix(b" total, ")
        .and_then(number::take_whole)
        .map_or(total, |(n, _)| n);
    Some(Fact::Cpus { total, available })
}

fn whole_size(value: &[u8]) -> Option<u64> {
    match number::take_size(value)? {
        (bytes, b"") => Some(bytes),
        _ => None,
    }
}
