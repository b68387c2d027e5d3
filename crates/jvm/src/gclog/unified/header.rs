//! What a JVM says once, at its start (`gc,init`), and how it names its collector.

use loadline_sizing::hotspot::CollectorKind;

use super::super::event::{GcLogEvent, HeaderFact};
use super::super::{GarbageCollector, number};

const COLLECTORS: [(&[u8], CollectorKind); 7] = [
    (b"G1", CollectorKind::G1),
    (b"Serial", CollectorKind::Serial),
    (b"Parallel", CollectorKind::Parallel),
    (b"Concurrent Mark Sweep", CollectorKind::Cms),
    (b"The Z Garbage Collector", CollectorKind::Z),
    (b"Shenandoah", CollectorKind::Shenandoah),
    (b"Epsilon", CollectorKind::Epsilon),
];

pub(super) fn parse_header(text: &[u8]) -> Option<GcLogEvent<'_>> {
    fact(text).map(GcLogEvent::Fact)
}

fn fact(text: &[u8]) -> Option<HeaderFact<'_>> {
    let colon = memchr::memchr(b':', &text[..text.len().min(48)]);
    let Some(colon) = colon else {
        return parse_collector(text);
    };
    let value = text[colon + 1..].trim_ascii();
    let size = || whole_size(value);
    let count = || number::take_whole(value).map(|(n, _)| n);
    match &text[..colon] {
        b"Version" => Some(HeaderFact::Version {
            text: value.strip_suffix(b" (release)").unwrap_or(value),
            is_start: true,
        }),
        b"CPUs" => parse_cpu_fact(value),
        b"Memory" => size().map(HeaderFact::Memory),
        b"Heap Min Capacity" | b"Min Capacity" => size().map(HeaderFact::HeapMin),
        b"Heap Initial Capacity" | b"Initial Capacity" => size().map(HeaderFact::HeapInitial),
        b"Heap Max Capacity" | b"Max Capacity" => size().map(HeaderFact::HeapMax),
        b"Heap Region Size" | b"Heap region size" => size().map(HeaderFact::RegionSize),
        b"Parallel Workers" | b"GC Workers" | b"GC Workers for Young Generation" => {
            count().map(HeaderFact::ParallelWorkers)
        }
        b"Concurrent Workers" => count().map(HeaderFact::ConcurrentWorkers),
        b"Mode" if value == b"Generational" => Some(HeaderFact::Generational),
        b"GC Workers for Old Generation" => Some(HeaderFact::Generational),
        _ => parse_collector(text),
    }
}

/// `Using G1`, `Using The Z Garbage Collector`; not `Using 2 workers of 2 for evacuation`.
fn parse_collector(text: &[u8]) -> Option<HeaderFact<'_>> {
    let name = text
        .strip_prefix(b"Using ")
        .or_else(|| text.strip_prefix(b"Initializing "))?
        .trim_ascii();
    COLLECTORS
        .iter()
        .find(|(known, _)| name == *known)
        .map(|(_, kind)| HeaderFact::Collector(GarbageCollector::HotSpot(*kind)))
}

/// `2 total, 1 available`; JDK 11 has only `total`.
fn parse_cpu_fact(value: &[u8]) -> Option<HeaderFact<'_>> {
    let (total, rest) = number::take_whole(value)?;
    let available = rest.strip_prefix(b" total, ").and_then(number::take_whole);
    let available = available.map_or(total, |(n, _)| n);
    Some(HeaderFact::Cpus { total, available })
}

fn whole_size(value: &[u8]) -> Option<u64> {
    match number::take_size(value)? {
        (bytes, b"") => Some(bytes),
        _ => None,
    }
}
