//! One stop of all threads, put together from the tags between its begin and its end.

use std::time::Duration;

use super::super::event::{CollectionWork, GcCpuTimes, GcLogEvent, HeapChange, LogTime};
use super::clock::LocalMoment;
use super::tag::XmlTag;

const CAUSE_LENGTH: usize = 60;

/// The work of a collector in a stop; a later variant is more specific.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopKind {
    Start,
    Scavenge,
    Partial,
    /// An increment of balanced's global mark.
    Mark,
    Other,
    Final,
    Global,
}

impl StopKind {
    /// The words after `Pause` in unified logs.
    fn pause_words(self) -> &'static [u8] {
        match self {
            Self::Start => b"Global Start",
            Self::Scavenge => b"Scavenge",
            Self::Partial => b"Partial",
            Self::Mark => b"Global Mark",
            Self::Other => b"Collection",
            Self::Final => b"Global Final",
            Self::Global => b"Global",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct JvmStop {
    pub number: u64,
    pub begin: Option<LocalMoment>,
    pub reaching: Option<Duration>,
    pub copy_failed: bool,
    kind: Option<StopKind>,
    cause: Option<Vec<u8>>,
    finishes_concurrent: bool,
    before: Option<u64>,
    after: Option<(u64, u64)>,
    cpu: Option<GcCpuTimes>,
}

impl JvmStop {
    pub fn new(number: u64, begin: Option<LocalMoment>) -> Self {
        Self {
            number,
            begin,
            ..Self::default()
        }
    }

    pub fn is_gc(&self) -> bool {
        self.kind.is_some()
    }

    pub fn set_cause(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(CAUSE_LENGTH)];
        self.cause.get_or_insert_with(|| text.to_vec());
    }

    /// Somebody asked for it. J9 2.6 gives no reason.
    pub fn set_system_cause(&mut self, reason: Option<&[u8]>) {
        match reason {
            None | Some(b"explicit") => self.set_cause(b"System.gc()"),
            Some(other) => self.set_cause(other),
        }
    }

    pub fn start_cycle(&mut self) {
        self.raise(StopKind::Start);
    }

    pub fn finishes_concurrent(&mut self) {
        self.finishes_concurrent = true;
        self.set_cause(b"Concurrent");
    }

    pub fn start_collection(&mut self, kind: &[u8]) {
        self.raise(match kind {
            b"scavenge" => StopKind::Scavenge,
            b"partial gc" => StopKind::Partial,
            b"global mark phase" => StopKind::Mark,
            b"global" if self.finishes_concurrent => StopKind::Final,
            b"global" | b"global garbage collect" => StopKind::Global,
            _ => StopKind::Other,
        });
    }

    fn raise(&mut self, kind: StopKind) {
        self.kind = self.kind.max(Some(kind));
    }

    pub fn add_process_cpu(&mut self, tag: &XmlTag<'_>) {
        let (Some(user), Some(system)) = (
            tag.attribute_millis(b"usertimems"),
            tag.attribute_millis(b"systemtimems"),
        ) else {
            return;
        };
        let sum = self.cpu.get_or_insert_default();
        sum.user += user;
        sum.system += system;
        sum.real += tag.attribute_millis(b"durationms").unwrap_or_default();
    }

    pub fn set_heap_before(&mut self, memory: &HeapMemory) {
        self.before = self.before.or(memory.used_bytes());
    }

    pub fn set_heap_after(&mut self, memory: &HeapMemory) {
        self.after = memory.used_bytes().zip(memory.total).or(self.after);
    }

    pub fn operation(&self) -> Option<&'static [u8]> {
        self.kind.map(StopKind::pause_words)
    }

    pub fn emit_pause(
        &self,
        end: LogTime,
        duration: Duration,
        text: &mut Vec<u8>,
        emit: &mut impl FnMut(GcLogEvent<'_>),
    ) {
        let Some(kind) = self.kind else { return };
        text.clear();
        text.extend_from_slice(b"Pause ");
        text.extend_from_slice(kind.pause_words());
        if let Some(cause) = &self.cause {
            text.extend_from_slice(b" (");
            text.extend_from_slice(cause);
            text.push(b')');
        }
        let heap = self.before.zip(self.after);
        let id = Some(self.number);
        emit(GcLogEvent::Pause(CollectionWork {
            id,
            name: text,
            end,
            duration,
            heap: heap.map(|(before, (after, committed))| HeapChange {
                before,
                after,
                committed: Some(committed),
            }),
        }));
        if let Some(cpu) = self.cpu {
            emit(GcLogEvent::Cpu { id, cpu });
        }
        if self.copy_failed {
            emit(GcLogEvent::EvacuationFailure);
        }
    }
}

/// The heap as `mem-info` and the `mem` within it say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeapMemory {
    free: Option<u64>,
    total: Option<u64>,
    /// The half of the nursery that scavenges copy to: empty between them, and not counted as free.
    survivor: u64,
}

impl HeapMemory {
    pub fn take_whole_heap(&mut self, tag: &XmlTag<'_>) {
        self.free = tag.attribute_number(b"free");
        self.total = tag.attribute_number(b"total");
    }

    pub fn take_heap_part(&mut self, tag: &XmlTag<'_>) {
        if tag.attribute_text(b"type") == Some(b"survivor") {
            self.survivor = tag.attribute_number(b"total").unwrap_or(0);
        }
    }

    fn used_bytes(&self) -> Option<u64> {
        let (free, total) = self.free.zip(self.total)?;
        Some(total.saturating_sub(free).saturating_sub(self.survivor))
    }
}
