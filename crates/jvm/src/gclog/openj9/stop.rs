//! One stop of all threads, put together from the tags between its begin and its end.

use std::time::Duration;

use super::super::event::{At, CpuTimes, Event, Heap};
use super::clock::Moment;
use super::tag::Tag;

/// Longest cause that is kept.
const CAUSE_LENGTH: usize = 60;

/// What a collector did in a stop; one that stands later says more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A cycle was begun whose work is done beside the application.
    Start,
    /// The nursery of gencon.
    Scavenge,
    /// A set of regions of balanced.
    Partial,
    /// An increment of balanced's global mark.
    Mark,
    /// Another type than is known here.
    Other,
    /// The end of a global collection whose mark ran beside the application.
    Final,
    /// The whole heap.
    Global,
}

impl Kind {
    /// The words of a pause, as they stand behind `Pause` in unified logs.
    fn words(self) -> &'static [u8] {
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

/// All threads stand.
#[derive(Debug)]
pub(super) struct Stop {
    /// The number of its first line.
    pub number: u64,
    /// When it began.
    pub begin: Option<Moment>,
    /// How long threads took to stand, before it began.
    pub reaching: Option<Duration>,
    /// Objects found no room where they were to be copied.
    pub copy_failed: bool,
    kind: Option<Kind>,
    cause: Option<Vec<u8>>,
    finishes_concurrent: bool,
    before: Option<u64>,
    after: Option<(u64, u64)>,
    cpu: Option<CpuTimes>,
}

impl Stop {
    pub fn new(number: u64, begin: Option<Moment>) -> Self {
        Self {
            number,
            begin,
            reaching: None,
            copy_failed: false,
            kind: None,
            cause: None,
            finishes_concurrent: false,
            before: None,
            after: None,
            cpu: None,
        }
    }

    /// Whether a collector works in it.
    pub fn is_gc(&self) -> bool {
        self.kind.is_some()
    }

    /// Why; the first reason counts.
    pub fn cause(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(CAUSE_LENGTH)];
        self.cause.get_or_insert_with(|| text.to_vec());
    }

    /// Somebody asked for it. J9 2.6 gives no reason.
    pub fn system(&mut self, reason: Option<&[u8]>) {
        match reason {
            None | Some(b"explicit") => self.cause(b"System.gc()"),
            Some(other) => self.cause(other),
        }
    }

    /// A cycle begins; where no collection follows, that is all.
    pub fn cycle(&mut self) {
        self.raise(Kind::Start);
    }

    /// What was marked beside the application is finished here.
    pub fn finishes_concurrent(&mut self) {
        self.finishes_concurrent = true;
        self.cause(b"Concurrent");
    }

    /// A collection, or an increment of one, begins.
    pub fn collection(&mut self, kind: &[u8]) {
        self.raise(match kind {
            b"scavenge" => Kind::Scavenge,
            b"partial gc" => Kind::Partial,
            b"global mark phase" => Kind::Mark,
            b"global" if self.finishes_concurrent => Kind::Final,
            b"global" | b"global garbage collect" => Kind::Global,
            _ => Kind::Other,
        });
    }

    fn raise(&mut self, kind: Kind) {
        self.kind = self.kind.max(Some(kind));
    }

    /// CPU of the whole process while the collection ran.
    pub fn cpu(&mut self, tag: &Tag<'_>) {
        let (Some(user), Some(system)) = (tag.millis(b"usertimems"), tag.millis(b"systemtimems"))
        else {
            return;
        };
        let sum = self.cpu.get_or_insert_default();
        sum.user += user;
        sum.system += system;
        sum.real += tag.millis(b"durationms").unwrap_or_default();
    }

    /// The heap before a collection; of several in one stop the first one counts.
    pub fn before(&mut self, memory: &Memory) {
        self.before = self.before.or(memory.used());
    }

    /// The heap after a collection; the last one counts.
    pub fn after(&mut self, memory: &Memory) {
        self.after = memory.used().zip(memory.total).or(self.after);
    }

    /// What the stop is called as a safepoint.
    pub fn operation(&self) -> Option<&'static [u8]> {
        self.kind.map(Kind::words)
    }

    /// Tells it as a pause, where a collector worked.
    pub fn report(
        &self,
        end: At,
        duration: Duration,
        text: &mut Vec<u8>,
        emit: &mut impl FnMut(Event<'_>),
    ) {
        let Some(kind) = self.kind else { return };
        text.clear();
        text.extend_from_slice(b"Pause ");
        text.extend_from_slice(kind.words());
        if let Some(cause) = &self.cause {
            text.extend_from_slice(b" (");
            text.extend_from_slice(cause);
            text.push(b')');
        }
        let heap = self.before.zip(self.after);
        let id = Some(self.number);
        emit(Event::Pause {
            id,
            text,
            end,
            duration,
            heap: heap.map(|(before, (after, committed))| Heap {
                before,
                after,
                committed: Some(committed),
            }),
        });
        if let Some(cpu) = self.cpu {
            emit(Event::Cpu { id, cpu });
        }
        if self.copy_failed {
            emit(Event::EvacuationFailure);
        }
    }
}

/// The heap as `mem-info` and the `mem` within it say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Memory {
    free: Option<u64>,
    total: Option<u64>,
    /// The half of the nursery that scavenges copy to: empty between them, and not counted as free.
    survivor: u64,
}

impl Memory {
    pub fn whole(&mut self, tag: &Tag<'_>) {
        self.free = tag.whole(b"free");
        self.total = tag.whole(b"total");
    }

    pub fn part(&mut self, tag: &Tag<'_>) {
        if tag.text(b"type") == Some(b"survivor") {
            self.survivor = tag.whole(b"total").unwrap_or(0);
        }
    }

    /// Bytes in use.
    fn used(&self) -> Option<u64> {
        let (free, total) = self.free.zip(self.total)?;
        Some(total.saturating_sub(free).saturating_sub(self.survivor))
    }
}
