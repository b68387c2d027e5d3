//! Bracket pairs without another one inside: CPU times, G1's heap line, concurrent phases, and
//! the pauses of Shenandoah on JDK 8.

use std::time::Duration;

use loadline_sizing::hotspot::CollectorKind;

use super::super::event::{
    CollectionWork, GcCpuTimes, GcLogEvent, HeaderFact, HeapChange, LogTime,
};
use super::super::{GarbageCollector, number};

pub(super) fn leaf_length(inner: &[u8]) -> Option<usize> {
    let position = memchr::memchr2(b'[', b']', inner)?;
    (inner[position] == b']').then_some(position)
}

/// Reads it; `false` for text outside a GC log.
pub(super) fn parse_leaf(inner: &[u8], at: LogTime, emit: &mut impl FnMut(GcLogEvent<'_>)) -> bool {
    let inner = inner.trim_ascii();
    if inner.starts_with(b"Eden: ") {
        if let Some(heap) = g1_heap(inner) {
            emit(GcLogEvent::PauseHeap(heap));
        }
    } else if inner.starts_with(b"CMS-concurrent-") || inner.starts_with(b"GC concurrent-") {
        emit_concurrent(inner, at, emit);
    } else if inner.starts_with(b"Pause ") || inner.starts_with(b"Concurrent ") {
        emit_shenandoah(inner, at, emit);
    } else if let Some(collector) = GarbageCollector::of_generation(inner) {
        emit(GcLogEvent::Fact(HeaderFact::CollectorMark(collector)));
    } else {
        return false;
    }
    true
}

/// `Times: user=0.13 sys=0.00, real=0.01 secs`.
pub(super) fn parse_cpu_times(inner: &[u8]) -> Option<GcCpuTimes> {
    let inner = inner.trim_ascii_start();
    let (user, rest) = number::take_billionths(inner.strip_prefix(b"Times: user=")?)?;
    let (system, rest) = number::take_billionths(rest.strip_prefix(b" sys=")?)?;
    let (real, rest) = number::take_billionths(rest.strip_prefix(b", real=")?)?;
    rest.starts_with(b" sec").then(|| GcCpuTimes {
        user: Duration::from_nanos(user),
        system: Duration::from_nanos(system),
        real: Duration::from_nanos(real),
    })
}

/// `CMS-concurrent-mark: 23.751/40.476 secs`, which CPU times may follow; `-start` has none.
pub(super) fn is_cms_phase_end(inner: &[u8]) -> bool {
    inner.starts_with(b"CMS-concurrent-") && !inner.ends_with(b"-start")
}

/// `Eden: 512.0M(512.0M)->0.0B(448.0M) Survivors: ... Heap: 740.9M(10.0G)->408.3M(10.0G)`.
fn g1_heap(inner: &[u8]) -> Option<HeapChange> {
    let at = memchr::memmem::find(inner, b"Heap: ")?;
    let (before, rest) = number::take_size(&inner[at + b"Heap: ".len()..])?;
    let arrow = memchr::memmem::find(rest, b"->")?;
    let (after, rest) = number::take_size(&rest[arrow + 2..])?;
    let committed = rest.strip_prefix(b"(").and_then(number::take_size);
    Some(HeapChange {
        before,
        after,
        committed: committed.map(|(bytes, _)| bytes),
    })
}

/// `CMS-concurrent-mark: 23.751/40.476 secs` (CPU / wall), `GC concurrent-mark-end, 0.0049 secs`.
/// The stamp is the end, for CMS and for G1's `-end`. `-start` has no duration.
fn emit_concurrent(inner: &[u8], at: LogTime, emit: &mut impl FnMut(GcLogEvent<'_>)) {
    let Some(text) = inner
        .strip_suffix(b" secs")
        .or_else(|| inner.strip_suffix(b" sec"))
    else {
        return;
    };
    let separator = memchr::memrchr2(b'/', b' ', text);
    let name_end = memchr::memchr2(b':', b',', text);
    if let (Some(separator), Some(name_end)) = (separator, name_end)
        && let Some(duration) = number::parse_decimal_seconds(&text[separator + 1..])
    {
        emit(GcLogEvent::Concurrent(CollectionWork {
            id: None,
            name: &text[..name_end],
            end: at,
            duration,
            heap: None,
        }));
    }
}

/// `Pause Degenerated GC (Mark) 121M->19211K(122M), 9.421 ms`; `..., start` is the begin.
fn emit_shenandoah(inner: &[u8], at: LogTime, emit: &mut impl FnMut(GcLogEvent<'_>)) {
    let Some(text) = inner.strip_suffix(b"ms") else {
        return;
    };
    let text = text.trim_ascii_end();
    let Some(blank) = memchr::memrchr(b' ', text) else {
        return;
    };
    let Some(duration) = number::parse_decimal_seconds(&text[blank + 1..]).map(|d| d / 1000) else {
        return;
    };
    let head = text[..blank].trim_ascii_end();
    let (name, heap) = split_heap(head.strip_suffix(b",").unwrap_or(head));
    let work = CollectionWork {
        id: None,
        name,
        end: at,
        duration,
        heap,
    };
    emit(if name.starts_with(b"Pause ") {
        GcLogEvent::Pause(work)
    } else {
        GcLogEvent::Concurrent(work)
    });
    let mark = HeaderFact::CollectorMark(GarbageCollector::HotSpot(CollectorKind::Shenandoah));
    emit(GcLogEvent::Fact(mark));
}

fn split_heap(text: &[u8]) -> (&[u8], Option<HeapChange>) {
    let figures = || {
        let blank = memchr::memrchr(b' ', text)?;
        let (before, rest) = number::take_size(&text[blank + 1..])?;
        let (after, rest) = number::take_size(rest.strip_prefix(b"->")?)?;
        let (committed, _) = number::take_size(rest.strip_prefix(b"(")?)?;
        let heap = HeapChange {
            before,
            after,
            committed: Some(committed),
        };
        Some((text[..blank].trim_ascii_end(), Some(heap)))
    };
    figures().unwrap_or((text, None))
}
