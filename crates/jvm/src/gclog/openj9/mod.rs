//! Verbose GC logs of OpenJ9 and IBM's J9 2.6 and later (`-Xverbosegclog`, `-verbose:gc`).
//!
//! XML, a tag a line. All threads are stopped from `exclusive-start` to `exclusive-end`; the tags
//! in between give the cause and the collections. Such a stop is a pause if a collector worked in
//! it, and always a safepoint. [`clock`] determines its time. Facts: omr `gc/verbose`
//! (`schema.xsd`, `VerboseHandlerOutput*.cpp`), logs of J9 2.6 to 2.8 and of OpenJ9 25.

mod clock;
mod header;
mod stop;
mod tag;

use std::time::Duration;

pub use clock::{ClockAdjustment, WallClock};

use super::event::{CollectionWork, GcLogEvent, HeaderFact, LogTime};
use clock::StopClock;
use stop::{HeapMemory, JvmStop};
use tag::XmlTag;

const OPEN_LIMIT: usize = 8;

/// Longest distinct name of a concurrent phase.
const NAME_LENGTH: usize = 60;

#[derive(Debug, Default)]
pub(super) struct OpenJ9 {
    is_on: bool,
    is_told: bool,
    clock: StopClock,
    open: Option<JvmStop>,
    /// The heap of the collection that begins or ends.
    memory: HeapMemory,
    /// Concurrent work that goes on: what, since when (stamp, ms).
    concurrent: Vec<(Vec<u8>, i64)>,
    text: Vec<u8>,
    /// The version that the file's head states; told with the first line that only this log has.
    version: Option<Vec<u8>>,
    number: u64,
}

impl OpenJ9 {
    pub(super) fn set_wall(&mut self, wall: WallClock) {
        self.clock.set_wall(wall);
    }

    /// Reads one line; `false` for text outside such a log.
    pub(super) fn parse_openj9_line(
        &mut self,
        line: &[u8],
        emit: &mut impl FnMut(GcLogEvent<'_>),
    ) -> bool {
        let Some(tag) = XmlTag::from_line(line) else {
            return false;
        };
        self.is_on |= tag.name == b"verbosegc" || is_stop(tag.name);
        if !self.is_on {
            return tag.name == b"?xml";
        }
        if let Some(stamp) = tag.stamp() {
            self.clock.note_stamp(stamp);
            self.emit_version(emit);
        }
        match tag.name {
            b"verbosegc" => self.version = tag.attribute_text(b"version").map(<[u8]>::to_vec),
            b"initialized" => self.begin_jvm(&tag, emit),
            b"attribute" => header::emit_attribute(&tag, emit),
            b"exclusive-start" => self.begin_stop(&tag),
            b"exclusive-end" => self.end_stop(&tag, emit),
            b"gc-op" => emit_phase(&tag, emit),
            name if name.starts_with(b"concurrent-") => self.read_concurrent(&tag, emit),
            _ => self.read_inside_stop(&tag, emit),
        }
        true
    }

    /// Logs of J9 before 2.6 begin alike, and have other tags without such stamps.
    fn emit_version(&mut self, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        if !std::mem::replace(&mut self.is_told, true) {
            emit(GcLogEvent::Fact(HeaderFact::OpenJ9));
        }
        if let Some(text) = self.version.take() {
            emit(GcLogEvent::Fact(HeaderFact::Version {
                text: &text,
                is_start: false,
            }));
        }
    }

    /// The head of a JVM's log. Each file of a rotated set repeats it, with a number that goes on;
    /// another JVM's begins at 1.
    fn begin_jvm(&mut self, tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let number = tag.attribute_number(b"id").unwrap_or(0);
        if number <= self.number {
            self.number = 0;
            self.open = None;
            self.concurrent.clear();
            emit(GcLogEvent::JvmStart);
        }
    }

    fn begin_stop(&mut self, tag: &XmlTag<'_>) {
        let number = tag.attribute_number(b"id").unwrap_or(0);
        self.number = self.number.max(number);
        let at = tag
            .stamp()
            .and_then(|stamp| match tag.attribute_millis(b"intervalms") {
                Some(interval) => self.clock.place_stop(stamp, interval),
                None => self.clock.of_stamp(stamp),
            });
        self.open = Some(JvmStop::new(number, at));
    }

    fn end_stop(&mut self, tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let Some(duration) = tag.attribute_millis(b"durationms") else {
            return;
        };
        // The begin of a log may be lost, and with it the begin of its first stop: then its work is
        // unknown.
        let stop = self.open.take();
        let begin = stop.as_ref().and_then(|stop| stop.begin);
        let end = match (begin, tag.stamp()) {
            (Some(begin), _) => self.clock.log_time(begin, duration),
            (None, Some(stamp)) => self.clock.at_stamp(stamp),
            (None, None) => LogTime::default(),
        };
        let reaching = stop.as_ref().and_then(|stop| stop.reaching);
        if let Some(stop) = &stop {
            stop.emit_pause(end, duration, &mut self.text, emit);
        }
        emit(GcLogEvent::Safepoint {
            name: stop.and_then(|stop| stop.operation()),
            end,
            reaching,
            total: duration + reaching.unwrap_or_default(),
        });
    }

    fn read_inside_stop(&mut self, tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let Some(stop) = &mut self.open else { return };
        let was_gc = stop.is_gc();
        match tag.name {
            b"response-info" => stop.reaching = tag.attribute_millis(b"timems"),
            b"af-start" => stop.set_cause(b"Allocation Failure"),
            b"allocation-taxation" => stop.set_cause(b"Taxation"),
            b"sys-start" => stop.set_system_cause(tag.attribute_text(b"reason")),
            b"cycle-start" => stop.start_cycle(),
            b"gc-start" => {
                stop.start_collection(tag.attribute_text(b"type").unwrap_or_default());
                self.memory = HeapMemory::default();
            }
            b"gc-end" => {
                stop.add_process_cpu(tag);
                self.memory = HeapMemory::default();
            }
            b"mem-info" => self.memory.take_whole_heap(tag),
            b"mem" => self.memory.take_heap_part(tag),
            b"/gc-start" => stop.set_heap_before(&self.memory),
            b"/gc-end" => stop.set_heap_after(&self.memory),
            b"copy-failed" => stop.copy_failed = true,
            _ => {}
        }
        if !was_gc && stop.is_gc() {
            emit(GcLogEvent::PauseStart(Some(stop.number)));
        }
    }

    /// Concurrent work: `concurrent-start` to `concurrent-end`, and for the mark of a global
    /// collection from its kick-off to its end.
    fn read_concurrent(&mut self, tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        const MARK: &[u8] = b"Concurrent global mark";
        let Some(stamp) = tag.stamp() else { return };
        let named = || {
            let what = tag.attribute_text(b"type").unwrap_or(b"work");
            [&b"Concurrent "[..], &what[..what.len().min(NAME_LENGTH)]].concat()
        };
        match tag.name {
            b"concurrent-kickoff" => self.work_begins(MARK.to_vec(), stamp),
            b"concurrent-start" => self.work_begins(named(), stamp),
            b"concurrent-end" => self.work_ends(&named(), stamp, emit),
            b"concurrent-halted" | b"concurrent-aborted" => self.work_ends(MARK, stamp, emit),
            b"concurrent-global-final" | b"concurrent-collection-start" => {
                self.work_ends(MARK, stamp, emit);
                if let Some(stop) = &mut self.open {
                    stop.finishes_concurrent();
                }
            }
            _ => {}
        }
    }

    fn work_begins(&mut self, name: Vec<u8>, stamp: i64) {
        self.concurrent.retain(|(known, _)| *known != name);
        if self.concurrent.len() < OPEN_LIMIT {
            self.concurrent.push((name, stamp));
        }
    }

    fn work_ends(&mut self, name: &[u8], stamp: i64, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let Some(at) = self.concurrent.iter().position(|(known, _)| known == name) else {
            return;
        };
        let (_, since) = self.concurrent.swap_remove(at);
        let millis = u64::try_from(stamp.saturating_sub(since)).unwrap_or(0);
        emit(GcLogEvent::Concurrent(CollectionWork {
            id: None,
            name,
            end: self.clock.at_stamp(stamp),
            duration: Duration::from_millis(millis),
            heap: None,
        }));
    }
}

/// Tags that only such a log has: the begin of a file may be lost.
fn is_stop(name: &[u8]) -> bool {
    matches!(name, b"exclusive-start" | b"exclusive-end" | b"gc-start")
}

fn emit_phase(tag: &XmlTag<'_>, emit: &mut impl FnMut(GcLogEvent<'_>)) {
    if let (Some(name), Some(duration)) =
        (tag.attribute_text(b"type"), tag.attribute_millis(b"timems"))
    {
        emit(GcLogEvent::Phase { name, duration });
    }
}

/// The time stamp of a line, local time of the JVM: milliseconds since 1970 as if it were UTC.
pub fn stamp_ms(line: &str) -> Option<i64> {
    XmlTag::from_line(line.as_bytes())?.stamp()
}

pub(super) fn time_of(line: &[u8]) -> Option<LogTime> {
    let stamp = XmlTag::from_line(line)?.stamp()?;
    Some(LogTime {
        unix_ms: Some(stamp),
        ..LogTime::default()
    })
}

#[cfg(test)]
mod tests;
