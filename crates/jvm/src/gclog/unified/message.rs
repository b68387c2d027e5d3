//! Messages of the `gc*` and `safepoint` tags.
//!
//! A message is known by its first words. `GC(n) ` names the collection it belongs to;
//! generational ZGC adds `Y: `, `O: ` (a major collection) or `y: ` (a minor one).

use std::time::Duration;

use super::super::event::{CollectionWork, GcCpuTimes, GcLogEvent, HeaderFact, HeapChange};
use super::super::{GarbageCollector, number};
use super::{Decorations, header};

pub(super) fn parse_message<'a>(
    line: &Decorations<'a>,
    text: &'a [u8],
) -> (Option<u64>, Option<GcLogEvent<'a>>) {
    match text.strip_prefix(b"GC(").and_then(number::take_whole) {
        Some((id, rest)) => {
            let message = rest.strip_prefix(b") ").unwrap_or_default();
            (Some(id), collection_event(line, id, message))
        }
        None => (None, standalone_event(line, text)),
    }
}

fn collection_event<'a>(line: &Decorations<'a>, id: u64, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let plain = match text {
        [b'Y' | b'O' | b'y', b':', b' ', rest @ ..] => rest,
        _ => text,
    };
    match plain.first()? {
        b'P' if plain.starts_with(b"Pause ") => Some(pause_event(line, id, text)),
        b'P' if plain.starts_with(b"Pacing ") => pacing_event(line, plain),
        b'U' if plain.starts_with(b"User=") => {
            parse_gc_cpu(plain).map(|cpu| GcLogEvent::Cpu { id: Some(id), cpu })
        }
        b'C' if plain.starts_with(b"Concurrent ") => concurrent_event(line, id, plain),
        b'G' | b'M' if plain.starts_with(b"Garbage Coll") || is_generational_cycle(plain) => {
            cycle_event(line, id, plain)
        }
        b'T' if plain.starts_with(b"To-space exhausted") => Some(GcLogEvent::EvacuationFailure),
        b'A' | b'R' => stall_event(line, plain),
        _ => GarbageCollector::of_generation(plain)
            .map(|collector| GcLogEvent::Fact(HeaderFact::CollectorMark(collector))),
    }
}

fn standalone_event<'a>(line: &Decorations<'a>, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    match text.first()? {
        b'S' if text.starts_with(b"Safepoint \"") => safepoint_event(line, text),
        b'T' if text.starts_with(b"Total time for which") => stopped_event(line, text),
        b'A' | b'R' => stall_event(line, text),
        b'P' if text.starts_with(b"Pacing ") => pacing_event(line, text),
        b' ' | b'0'..=b'9' => dropped_event(text.trim_ascii_start()),
        _ => header::parse_header(text),
    }
}

/// `Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 56.205ms`; without the duration it
/// is the echo of the begin.
fn pause_event<'a>(line: &Decorations<'a>, id: u64, text: &'a [u8]) -> GcLogEvent<'a> {
    let Some((head, duration)) = split_duration(text) else {
        return GcLogEvent::PauseStart(Some(id));
    };
    let head = without_uptimes(head);
    let (head, heap) = split_heap(head);
    GcLogEvent::Pause(CollectionWork {
        id: Some(id),
        name: head,
        end: line.at,
        duration,
        heap,
    })
}

/// `Concurrent cleanup 196M->140M(256M) 0.019ms`; without the duration it has only begun.
fn concurrent_event<'a>(line: &Decorations<'a>, id: u64, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let (head, duration) = split_duration(text)?;
    let (name, heap) = split_heap(without_uptimes(head));
    Some(GcLogEvent::Concurrent(CollectionWork {
        id: Some(id),
        name,
        end: line.at,
        duration,
        heap,
    }))
}

fn is_generational_cycle(text: &[u8]) -> bool {
    text.starts_with(b"Minor Collection (") || text.starts_with(b"Major Collection (")
}

/// `Major Collection (Warmup) 26M(10%)->48M(19%) 0.193s`; the echo of the begin has no heap.
fn cycle_event<'a>(line: &Decorations<'a>, id: u64, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let head = split_duration(text).map_or(text, |(head, _)| head);
    match split_heap(head) {
        (_, Some(heap)) => Some(GcLogEvent::Cycle {
            id,
            end: line.at,
            heap,
        }),
        (text, None) if is_generational_cycle(text) => Some(GcLogEvent::CycleStart(id)),
        _ => None,
    }
}

/// `Allocation Stall (alloc-0) 382.528ms`; the table row `Allocation Stalls: 0 ...` is none. The
/// thread is not part of the name.
fn stall_event<'a>(line: &Decorations<'a>, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let names: [&[u8]; 2] = [b"Allocation Stall", b"Relocation Stall"];
    let name = names.iter().find(|name| {
        text.strip_prefix(**name)
            .is_some_and(|rest| rest.starts_with(b" ("))
    })?;
    let (_, duration) = split_duration(text)?;
    Some(GcLogEvent::Stall {
        name: &text[..name.len()],
        end: line.at,
        duration,
    })
}

/// `Pacing    63925 us`: what Shenandoah made the application wait in this cycle, all threads.
fn pacing_event<'a>(line: &Decorations<'a>, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let duration = number::parse_unit_duration(text[b"Pacing".len()..].trim_ascii())?;
    Some(GcLogEvent::Stall {
        name: &text[..b"Pacing".len()],
        end: line.at,
        duration,
    })
}

/// `User=0.02s Sys=0.01s Real=0.84s`.
fn parse_gc_cpu(text: &[u8]) -> Option<GcCpuTimes> {
    let (user, rest) = number::take_billionths(text.strip_prefix(b"User=")?)?;
    let (system, rest) = number::take_billionths(rest.strip_prefix(b"s Sys=")?)?;
    let (real, rest) = number::take_billionths(rest.strip_prefix(b"s Real=")?)?;
    rest.starts_with(b"s").then(|| GcCpuTimes {
        user: Duration::from_nanos(user),
        system: Duration::from_nanos(system),
        real: Duration::from_nanos(real),
    })
}

/// JDK 13+: `Safepoint "G1CollectForAllocation", Time since last: 1 ns, Reaching safepoint: 2 ns,
/// ..., Total: 3 ns[, Threads: ...]`, a list of names and values that grew over the releases.
fn safepoint_event<'a>(line: &Decorations<'a>, text: &'a [u8]) -> Option<GcLogEvent<'a>> {
    let rest = text.strip_prefix(b"Safepoint \"")?;
    let quote = memchr::memchr(b'"', rest)?;
    let nanos = |name: &[u8]| -> Option<Duration> {
        let at = memchr::memmem::find(&rest[quote..], name)? + quote + name.len();
        match number::take_whole(&rest[at..])? {
            (nanos, unit) if unit.starts_with(b" ns") => Some(Duration::from_nanos(nanos)),
            _ => None,
        }
    };
    Some(GcLogEvent::Safepoint {
        name: Some(&rest[..quote]),
        end: line.at,
        reaching: nanos(b", Reaching safepoint: "),
        total: nanos(b", Total: ")?,
    })
}

/// JDK 9 to 12, and classic logs: `Total time for which application threads were stopped:
/// 0.0072168 seconds, Stopping threads took: 0.0000300 seconds`.
pub(in super::super) fn stopped_event<'a>(
    line: &Decorations<'a>,
    text: &[u8],
) -> Option<GcLogEvent<'a>> {
    let prefix = b"Total time for which application threads were stopped: ";
    let (total, rest) = number::take_billionths(text.strip_prefix(prefix)?)?;
    let rest = rest.strip_prefix(b" seconds")?;
    let reaching = rest
        .strip_prefix(b", Stopping threads took: ")
        .and_then(number::take_billionths)
        .filter(|(_, unit)| unit.starts_with(b" seconds"));
    Some(GcLogEvent::Safepoint {
        name: None,
        end: line.at,
        reaching: reaching.map(|(nanos, _)| Duration::from_nanos(nanos)),
        total: Duration::from_nanos(total),
    })
}

/// `123 messages dropped due to async logging` (`-Xlog:async`).
fn dropped_event<'a>(text: &[u8]) -> Option<GcLogEvent<'a>> {
    let (lines, rest) = number::take_whole(text)?;
    let rest = rest.trim_ascii_start();
    rest.starts_with(b"messages dropped")
        .then_some(GcLogEvent::Dropped(lines))
}

/// Splits the duration off the end: the last word, a number with `s` or `ms`.
fn split_duration(text: &[u8]) -> Option<(&[u8], Duration)> {
    let text = text.trim_ascii_end();
    if !text.ends_with(b"s") {
        return None;
    }
    let mut blank = memchr::memrchr(b' ', text)?;
    if matches!(&text[blank + 1..], b"ms" | b"s") {
        // Some JDKs set the unit apart: `5.9 ms`.
        blank = memchr::memrchr(b' ', &text[..blank])?;
    }
    let duration = number::parse_unit_duration(&text[blank + 1..])?;
    Some((text[..blank].trim_ascii_end(), duration))
}

/// JDK 9 and 10 put begin and end between heap and duration: `(1.234s, 1.240s)`.
fn without_uptimes(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_suffix(b"s)") else {
        return text;
    };
    match memchr::memrchr(b'(', inner) {
        Some(open) if is_uptimes(&inner[open + 1..]) => text[..open].trim_ascii_end(),
        _ => text,
    }
}

fn is_uptimes(text: &[u8]) -> bool {
    let rest = number::take_billionths(text).and_then(|(_, rest)| rest.strip_prefix(b"s, "));
    rest.and_then(number::take_billionths)
        .is_some_and(|(_, rest)| rest.is_empty())
}

/// Splits heap figures off the end: `19M->11M(256M)`, `26M(10%)->48M(19%)`, `9M->8M`.
fn split_heap(text: &[u8]) -> (&[u8], Option<HeapChange>) {
    let blank = memchr::memrchr(b' ', text);
    let word = blank.map_or(text, |blank| &text[blank + 1..]);
    match (parse_heap(word), blank) {
        (Some(heap), Some(blank)) => (text[..blank].trim_ascii_end(), Some(heap)),
        _ => (text, None),
    }
}

fn parse_heap(text: &[u8]) -> Option<HeapChange> {
    let (before, rest) = number::take_size(text)?;
    let (_, rest) = take_parenthesis(rest);
    let (after, rest) = number::take_size(rest.strip_prefix(b"->")?)?;
    let (committed, rest) = take_parenthesis(rest);
    rest.is_empty().then_some(HeapChange {
        before,
        after,
        committed,
    })
}

/// A parenthesis and the size in it, if it is one (it may be a percentage).
fn take_parenthesis(text: &[u8]) -> (Option<u64>, &[u8]) {
    let inner = text.strip_prefix(b"(");
    match inner.and_then(|inner| Some((inner, memchr::memchr(b')', inner)?))) {
        Some((inner, close)) => {
            let size = number::take_size(&inner[..close]).map(|(bytes, _)| bytes);
            (size, &inner[close + 1..])
        }
        None => (None, text),
    }
}
