//! The first lines of a classic log: the JVM's version, the machine, the flags.

use super::super::event::{Event, Fact};
use super::super::{Collector, number};

/// Reads a line of the header; `false` when it is none.
pub(super) fn parse(line: &[u8], emit: &mut impl FnMut(Event<'_>)) -> bool {
    if let Some(flags) = line.strip_prefix(b"CommandLine flags: ") {
        for flag in flags.split(|b| *b == b' ') {
            if let Some(fact) = flag_fact(flag) {
                emit(Event::Fact(fact));
            }
        }
        return true;
    }
    if let Some(rest) = line.strip_prefix(b"Memory: ") {
        if let Some(memory) = physical(rest) {
            emit(Event::Fact(Fact::Memory(memory)));
        }
        return true;
    }
    let is_version = line.starts_with(b"OpenJDK ") || line.starts_with(b"Java HotSpot(TM) ");
    match memchr::memmem::find(line, b" JRE (") {
        Some(position) if is_version => {
            let rest = &line[position + b" JRE (".len()..];
            if let Some(close) = memchr::memchr(b')', rest) {
                emit(Event::Fact(Fact::Version {
                    text: &rest[..close],
                    is_start: false,
                }));
            }
            true
        }
        _ => false,
    }
}

fn flag_fact(flag: &[u8]) -> Option<Fact<'static>> {
    let number = |name: &[u8]| number::take_whole(flag.strip_prefix(name)?).map(|(n, _)| n);
    if let Some(bytes) = number(b"-XX:MaxHeapSize=") {
        return Some(Fact::HeapMax(bytes));
    }
    if let Some(bytes) = number(b"-XX:InitialHeapSize=") {
        return Some(Fact::HeapInitial(bytes));
    }
    if let Some(threads) = number(b"-XX:ParallelGCThreads=") {
        return Some(Fact::ParallelWorkers(threads));
    }
    let collector = match flag {
        b"-XX:+UseG1GC" => Collector::G1,
        b"-XX:+UseSerialGC" => Collector::Serial,
        b"-XX:+UseParallelGC" | b"-XX:+UseParallelOldGC" => Collector::Parallel,
        b"-XX:+UseConcMarkSweepGC" => Collector::Cms,
        b"-XX:+UseShenandoahGC" => Collector::Shenandoah,
        _ => return None,
    };
    Some(Fact::Collector(collector))
}

/// `4k page, physical 16433232k(1234k free), swap ...`.
fn physical(text: &[u8]) -> Option<u64> {
    let position = memchr::memmem::find(text, b"physical ")?;
    number::take_size(&text[position + b"physical ".len()..]).map(|(bytes, _)| bytes)
}
