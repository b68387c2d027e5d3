//! The first lines of a classic log: the JVM's version, the machine, the flags.

use loadline_sizing::hotspot::CollectorKind;

use super::super::event::{GcLogEvent, HeaderFact};
use super::super::{GarbageCollector, number};

pub(super) fn parse_header_line(line: &[u8], emit: &mut impl FnMut(GcLogEvent<'_>)) -> bool {
    if let Some(flags) = line.strip_prefix(b"CommandLine flags: ") {
        for flag in flags.split(|b| *b == b' ') {
            if let Some(fact) = flag_fact(flag) {
                emit(GcLogEvent::Fact(fact));
            }
        }
        return true;
    }
    if let Some(rest) = line.strip_prefix(b"Memory: ") {
        if let Some(memory) = physical_memory(rest) {
            emit(GcLogEvent::Fact(HeaderFact::Memory(memory)));
        }
        return true;
    }
    let is_version = line.starts_with(b"OpenJDK ") || line.starts_with(b"Java HotSpot(TM) ");
    match memchr::memmem::find(line, b" JRE (") {
        Some(position) if is_version => {
            let rest = &line[position + b" JRE (".len()..];
            if let Some(close) = memchr::memchr(b')', rest) {
                emit(GcLogEvent::Fact(HeaderFact::Version {
                    text: &rest[..close],
                    is_start: false,
                }));
            }
            true
        }
        _ => false,
    }
}

fn flag_fact(flag: &[u8]) -> Option<HeaderFact<'static>> {
    let number = |name: &[u8]| number::take_whole(flag.strip_prefix(name)?).map(|(n, _)| n);
    if let Some(bytes) = number(b"-XX:MaxHeapSize=") {
        return Some(HeaderFact::HeapMax(bytes));
    }
    if let Some(bytes) = number(b"-XX:InitialHeapSize=") {
        return Some(HeaderFact::HeapInitial(bytes));
    }
    if let Some(threads) = number(b"-XX:ParallelGCThreads=") {
        return Some(HeaderFact::ParallelWorkers(threads));
    }
    let collector = match flag {
        b"-XX:+UseG1GC" => CollectorKind::G1,
        b"-XX:+UseSerialGC" => CollectorKind::Serial,
        b"-XX:+UseParallelGC" | b"-XX:+UseParallelOldGC" => CollectorKind::Parallel,
        b"-XX:+UseConcMarkSweepGC" => CollectorKind::Cms,
        b"-XX:+UseShenandoahGC" => CollectorKind::Shenandoah,
        _ => return None,
    };
    let collector = GarbageCollector::HotSpot(collector);
    Some(HeaderFact::Collector(collector))
}

/// `4k page, physical 16433232k(1234k free), swap ...`.
fn physical_memory(text: &[u8]) -> Option<u64> {
    let position = memchr::memmem::find(text, b"physical ")?;
    number::take_size(&text[position + b"physical ".len()..]).map(|(bytes, _)| bytes)
}
