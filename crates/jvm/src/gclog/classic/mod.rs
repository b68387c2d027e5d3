//! Classic logging of JDK 8 and earlier (`-Xloggc`, `-XX:+PrintGCDetails`).
//!
//! A pause is a bracketed record, `[GC ... , 0.0147 secs]`, with other records inside it, often
//! over several lines, and with lines of other threads in between. So this reads brackets, not
//! lines: text directly inside the record's own brackets carries cause, heap and duration.
//! Records of concurrent threads close on their own line and are taken out wherever they stand.
//! Facts: real logs of JDK 1.4 to 8, among them interleaved and truncated ones.

mod detail;
mod header;
mod leaf;
mod record;

use std::time::Duration;

use super::event::{CollectionWork, GcCpuTimes, GcLogEvent, LogTime};
use super::number;
use super::unified::{Decorations, stopped_event};
use record::ClassicRecord;

/// A date as every JVM writes it: `2016-04-14T22:30:09.108+0200`.
const DATE_LENGTH: usize = 28;
const RECORD_LINES: u32 = 20_000;

#[derive(Debug, Default)]
pub(super) struct ClassicReader {
    open: Option<ClassicRecord>,
    outer: Option<ClassicRecord>,
    /// Records that another one replaced or the end of the log cut.
    pub(super) unfinished: u64,
    /// The translation of the record's kind and cause into the words of unified logs.
    words: Vec<u8>,
    is_phase_last: bool,
    /// CPU times of the pause inside, which those of the record around it contain.
    nested_cpu: GcCpuTimes,
    /// Something was read that only a GC log has, though it is no event.
    pub(super) is_gc_log: bool,
}

impl ClassicReader {
    /// Reads one line; `false` for text outside a classic log.
    pub(super) fn parse_classic_line(
        &mut self,
        line: &[u8],
        emit: &mut impl FnMut(GcLogEvent<'_>),
    ) -> bool {
        self.is_gc_log = self.is_gc_log || detail::is_heap_table(line);
        let stamp = ClassicStamp::at_start(line);
        if is_histogram_row(line) {
            return self.open.is_some();
        }
        let mut known = self.open.is_some() || detail::is_detail(line);
        known |= parse_stopped(line, stamp.at, emit);
        if self.open.is_none() {
            known |= header::parse_header_line(line, emit);
        }
        let last_known = self.scan(line, stamp.at, emit);
        self.forget_endless_record();
        known | last_known
    }

    fn scan(&mut self, line: &[u8], at: LogTime, emit: &mut impl FnMut(GcLogEvent<'_>)) -> bool {
        let mut known = false;
        let mut done = 0;
        while let Some(offset) = memchr::memchr2(b'[', b']', &line[done..]) {
            let position = done + offset;
            let inner = &line[position + 1..];
            self.append(&line[done..position]);
            done = position + 1;
            if line[position] == b']' {
                self.close_bracket(emit);
            } else if let Some(kind) = record::RecordOpener::from_bracket_text(inner) {
                known = true;
                let own = ClassicStamp::before_bracket(&line[..position]);
                // A log may be cut in its first record.
                self.is_gc_log |= own.is_some();
                self.open_record(kind, own.unwrap_or(at));
                done += kind.len();
            } else if let Some(length) = leaf::leaf_length(inner) {
                let leaf_at = ClassicStamp::before_bracket(&line[..position]).unwrap_or(at);
                known |= self.read_leaf(&inner[..length], leaf_at, emit);
                done += length + 1;
            } else if let Some(record) = &mut self.open
                && !inner.starts_with(b"0x")
            {
                record.descend(inner);
            }
        }
        self.append(&line[done..]);
        self.append(b" ");
        known
    }

    fn open_record(&mut self, kind: record::RecordOpener, at: LogTime) {
        match self.open.take() {
            Some(record) if record.may_nest() => self.outer = Some(record),
            Some(_) => self.unfinished += 1,
            None => {}
        }
        self.open = Some(ClassicRecord::new(kind, at));
        self.nested_cpu = GcCpuTimes::default();
    }

    fn append(&mut self, text: &[u8]) {
        if let Some(record) = &mut self.open {
            record.append(text);
        }
    }

    fn close_bracket(&mut self, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let Some(record) = &mut self.open else { return };
        if !record.ascend() {
            return;
        }
        let duration = record.own_duration();
        self.is_phase_last = false;
        match duration {
            Some(duration) => self.report_pause(duration, emit),
            None => self.unfinished += 1,
        }
        self.open = self.outer.take();
        if let Some(outer) = &mut self.open {
            outer.nested = duration.or(Some(Duration::ZERO));
        }
    }

    fn report_pause(&mut self, duration: Duration, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        let Some(record) = &self.open else { return };
        record.write_unified_words(&mut self.words);
        emit(GcLogEvent::Pause(CollectionWork {
            id: None,
            name: &self.words,
            end: record.end_time(duration),
            duration,
            heap: record.whole_heap(),
        }));
        if record.has_evacuation_failure() {
            emit(GcLogEvent::EvacuationFailure);
        }
    }

    fn read_leaf(
        &mut self,
        inner: &[u8],
        at: LogTime,
        emit: &mut impl FnMut(GcLogEvent<'_>),
    ) -> bool {
        if let Some(record) = &mut self.open {
            record.note_leaf(inner);
        }
        if let Some(cpu) = leaf::parse_cpu_times(inner) {
            self.report_cpu_times(cpu, emit);
            return true;
        }
        self.is_phase_last |= leaf::is_cms_phase_end(inner);
        leaf::parse_leaf(inner, at, emit)
    }

    fn report_cpu_times(&mut self, cpu: GcCpuTimes, emit: &mut impl FnMut(GcLogEvent<'_>)) {
        if std::mem::take(&mut self.is_phase_last) {
            return;
        }
        let own = cpu.without_part(std::mem::take(&mut self.nested_cpu));
        if self.open.as_ref().is_some_and(|r| r.nested.is_some()) {
            self.nested_cpu = cpu;
        }
        emit(GcLogEvent::Cpu { id: None, cpu: own });
    }

    fn forget_endless_record(&mut self) {
        if let Some(record) = &mut self.open {
            record.lines += 1;
            if record.lines > RECORD_LINES {
                self.open = None;
                self.unfinished += 1;
            }
        }
    }

    pub(super) fn finish_record(&mut self) {
        self.unfinished += u64::from(self.open.take().is_some());
        self.unfinished += u64::from(self.outer.take().is_some());
    }
}

pub(super) fn time_of(line: &[u8]) -> LogTime {
    ClassicStamp::at_start(line).at
}

/// `Total time for which application threads were stopped: ...`; it may follow a record of another
/// thread. Its time stamp is the end of the stop.
fn parse_stopped(line: &[u8], at: LogTime, emit: &mut impl FnMut(GcLogEvent<'_>)) -> bool {
    let Some(position) = memchr::memmem::find(line, b"Total time for which") else {
        return memchr::memmem::find(line, b"Application time: ").is_some();
    };
    let decorations = Decorations { at, tags: b"" };
    if let Some(event) = stopped_event(&decorations, &line[position..]) {
        emit(event);
    }
    true
}

/// `  12:   3456   78900  [Ljava.lang.String;`: a class histogram, with unrelated brackets.
fn is_histogram_row(line: &[u8]) -> bool {
    let rest = line.trim_ascii_start();
    rest.len() < line.len()
        && number::take_whole(rest)
            .and_then(|(_, rest)| rest.strip_prefix(b": "))
            .is_some_and(|rest| number::take_whole(rest.trim_ascii_start()).is_some())
        && memchr::memmem::find(line, b"GC").is_none()
}

#[derive(Debug, Clone, Copy, Default)]
struct ClassicStamp {
    at: LogTime,
}

impl ClassicStamp {
    fn at_start(line: &[u8]) -> Self {
        let mut at = LogTime::default();
        let mut rest = line;
        if let Some((millis, after)) = number::take_date(rest) {
            at.unix_ms = Some(millis);
            rest = after.strip_prefix(b": ").unwrap_or(after);
        }
        if let Some((nanos, after)) = number::take_billionths(rest)
            && after.starts_with(b": ")
        {
            at.uptime_ns = Some(nanos);
        }
        Self { at }
    }

    fn before_bracket(text: &[u8]) -> Option<LogTime> {
        let text = text.strip_suffix(b": ")?;
        let uptime = Self::uptime_at_end(text);
        let date = match uptime {
            Some((_, rest)) => rest.strip_suffix(b": ").and_then(Self::date_at_end),
            None => Self::date_at_end(text),
        };
        let uptime_ns = uptime.map(|(nanos, _)| nanos);
        (uptime_ns.is_some() || date.is_some()).then_some(LogTime {
            uptime_ns,
            unix_ms: date,
            ..LogTime::default()
        })
    }

    /// An uptime, ns, and what stands before it. It always has decimals; the offset that ends a
    /// date, `+0200`, has none.
    fn uptime_at_end(text: &[u8]) -> Option<(u64, &[u8])> {
        let digits = text
            .iter()
            .rev()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'.' | b','))
            .count();
        let (before, number) = text.split_at(text.len() - digits);
        memchr::memchr2(b'.', b',', number)?;
        let (nanos, rest) = number::take_billionths(number)?;
        rest.is_empty().then_some((nanos, before))
    }

    /// Milliseconds since 1970.
    fn date_at_end(text: &[u8]) -> Option<i64> {
        let from = text.len().checked_sub(DATE_LENGTH)?;
        let (millis, rest) = number::take_date(&text[from..])?;
        rest.is_empty().then_some(millis)
    }
}

#[cfg(test)]
mod tests;
