//! From access log lines to a load profile, in constant memory.
//!
//! Owns what is counted: requests in each interval, classes with their weights and a few sample
//! paths, statuses, durations. Only GET and HEAD are replayed unless the user says otherwise;
//! the others are counted.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::io::BufRead;

use super::class::{KeyHasher, normalise};
use super::json::Fields;
use super::line::{Format, Line};
use super::stamp::Stamps;
use super::{Profile, Request};
use crate::histogram::{self, Histogram};
use crate::random::Random;

/// Classes that are told apart; requests of others are counted only.
const MAX_CLASSES: usize = 2_000;
/// Sample paths kept of each class.
const SAMPLES: usize = 16;
/// Lines this long are rejected: no server writes them.
const MAX_LINE: usize = 64 * 1024;
/// Intervals kept: a week of minutes, and room for stray stamps.
const MAX_INTERVALS: usize = 20_000;

/// Counts lines; [`Builder::finish`] makes the profile.
#[derive(Debug)]
pub struct Builder {
    format: Format,
    interval: f64,
    all_methods: bool,
    stamps: Stamps,
    random: Random,
    classes: HashMap<Vec<u8>, Class, BuildHasherDefault<KeyHasher>>,
    /// Requests by status, as far as statuses are of three digits.
    statuses: Vec<u64>,
    intervals: BTreeMap<i64, u64>,
    /// The interval of the last line: most lines are in the same.
    current: (i64, u64),
    key: Vec<u8>,
    seen: Seen,
}

/// What was seen besides the profile.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Lines of the format.
    pub lines: u64,
    /// Lines that are not of the format.
    pub rejected: u64,
    /// Requests left out for their method.
    pub unsafe_methods: u64,
    /// Requests of classes beyond the limit, or without a path that can be sent.
    pub other: u64,
    /// Requests by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Body bytes of the responses.
    pub bytes: u64,
    /// Logged durations in ns; empty when the format has none.
    pub durations: Histogram,
}

#[derive(Debug, Default)]
struct Class {
    count: u64,
    samples: Vec<Vec<u8>>,
}

impl Builder {
    /// With an interval in seconds for the rate over time.
    pub fn new(format: Format, interval: f64, all_methods: bool) -> Self {
        Self {
            format,
            interval,
            all_methods,
            stamps: Stamps::default(),
            random: Random::new(0),
            classes: HashMap::default(),
            statuses: vec![0; 1000],
            intervals: BTreeMap::new(),
            current: (i64::MIN, 0),
            key: Vec::new(),
            seen: Seen {
                lines: 0,
                rejected: 0,
                unsafe_methods: 0,
                other: 0,
                statuses: BTreeMap::new(),
                bytes: 0,
                durations: histogram::new(),
            },
        }
    }

    /// Takes a whole log. Lines are read where they lie in the reader's buffer; only one that
    /// reaches over its end is copied.
    ///
    /// # Errors
    /// What the reader says.
    pub fn read(&mut self, mut log: impl BufRead) -> std::io::Result<()> {
        let mut begun = Vec::new();
        loop {
            let buffer = log.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let mut rest = buffer;
            while let Some(end) = memchr::memchr(b'\n', rest) {
                if begun.is_empty() {
                    self.line(rest[..end].trim_ascii_end());
                } else {
                    begun.extend_from_slice(&rest[..end]);
                    self.line(begun.trim_ascii_end());
                    begun.clear();
                }
                rest = &rest[end + 1..];
            }
            // What is longer than any line is kept only as far as it takes to be rejected.
            let room = MAX_LINE.saturating_sub(begun.len());
            begun.extend_from_slice(&rest[..rest.len().min(room)]);
            let used = buffer.len();
            log.consume(used);
        }
        if !begun.is_empty() {
            self.line(begun.trim_ascii_end());
        }
        Ok(())
    }

    /// Takes one line, without its end.
    pub fn line(&mut self, text: &[u8]) {
        if text.len() >= MAX_LINE {
            self.seen.rejected += 1;
            return;
        }
        if self.format.is_json() {
            let fields = Fields::read(text);
            let line = fields.as_ref();
            match line.and_then(|fields| self.format.json_line(fields, &mut self.stamps)) {
                Some(line) => self.count(&line),
                None => self.seen.rejected += 1,
            }
            return;
        }
        match self.format.read(text, &mut self.stamps) {
            Some(line) => self.count(&line),
            None => self.seen.rejected += 1,
        }
    }

    fn count(&mut self, line: &Line<'_>) {
        self.seen.lines += 1;
        self.seen.bytes += line.bytes;
        match self.statuses.get_mut(usize::from(line.status)) {
            Some(count) => *count += 1,
            None => *self.seen.statuses.entry(line.status).or_default() += 1,
        }
        if let Some(us) = line.duration_us {
            self.seen
                .durations
                .saturating_record(us.saturating_mul(1000));
        }
        if !self.all_methods && !matches!(line.method, b"GET" | b"HEAD") {
            self.seen.unsafe_methods += 1;
            return;
        }
        let interval = (line.arrival / self.interval).floor() as i64;
        if interval != self.current.0 {
            self.end_interval();
            self.current.0 = interval;
        }
        self.current.1 += 1;
        self.classify(line);
    }

    fn end_interval(&mut self) {
        let (interval, count) = std::mem::take(&mut self.current);
        if count > 0
            && (self.intervals.len() < MAX_INTERVALS || self.intervals.contains_key(&interval))
        {
            *self.intervals.entry(interval).or_default() += count;
        }
    }

    fn classify(&mut self, line: &Line<'_>) {
        self.key.clear();
        self.key.extend_from_slice(line.method);
        self.key.push(b' ');
        normalise(line.path, &mut self.key);
        let has_room = self.classes.len() < MAX_CLASSES;
        let class = match self.classes.get_mut(&self.key) {
            Some(class) => class,
            None if has_room => self.classes.entry(self.key.clone()).or_default(),
            None => {
                self.seen.other += 1;
                return;
            }
        };
        class.count += 1;
        // Reservoir sampling: every request of the class has the same chance to be a sample.
        if class.samples.len() < SAMPLES {
            class.samples.push(line.path.to_vec());
        } else {
            let at = self.random.next_u64() % class.count;
            if let Some(sample) = class.samples.get_mut(at as usize) {
                sample.clear();
                sample.extend_from_slice(line.path);
            }
        }
    }

    /// The profile and what else was seen. `origin` says where the lines come from.
    pub fn finish(mut self, origin: &str) -> (Profile, Seen) {
        self.end_interval();
        let counted = self.statuses.iter().enumerate().filter(|(_, n)| **n > 0);
        let statuses = counted.map(|(status, n)| (status as u16, *n));
        self.seen.statuses.extend(statuses);
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        let mut requests = Vec::new();
        for (key, class) in classes {
            match request(&key, &class) {
                Some(request) => requests.push(request),
                None => self.seen.other += class.count,
            }
        }
        let profile = Profile {
            schema: super::SCHEMA,
            origin: origin.to_owned(),
            interval_seconds: self.interval,
            rates: rates(&self.intervals, self.interval),
            requests,
        };
        (profile, self.seen)
    }
}

/// One value for each interval from the first to the last.
fn rates(intervals: &BTreeMap<i64, u64>, interval: f64) -> Vec<f64> {
    let (Some((first, _)), Some((last, _))) =
        (intervals.first_key_value(), intervals.last_key_value())
    else {
        return Vec::new();
    };
    let last = (*last).min(first.saturating_add(MAX_INTERVALS as i64));
    (*first..=last)
        .map(|i| intervals.get(&i).copied().unwrap_or(0) as f64 / interval)
        .collect()
}

/// `None` when no sample can be sent as it is.
fn request(key: &[u8], class: &Class) -> Option<Request> {
    let name = String::from_utf8_lossy(key).into_owned();
    let (method, _) = name.split_once(' ')?;
    let is_plain = |path: &&Vec<u8>| {
        path.iter()
            .all(|b| b.is_ascii_graphic() && !b"|{}\\\"".contains(b))
    };
    let mut paths: Vec<_> = class.samples.iter().filter(is_plain).collect();
    paths.sort();
    // Repeated samples stay: their number is their share.
    let is_one = paths.windows(2).all(|w| w[0] == w[1]);
    let texts: Vec<_> = paths.iter().map(|p| String::from_utf8_lossy(p)).collect();
    let path = match texts.first()? {
        first if is_one => first.to_string(),
        _ => format!("{{pick:{}}}", texts.join("|")),
    };
    Some(Request {
        weight: class.count as f64,
        method: method.to_owned(),
        path,
        name: Some(name),
        ..Request::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::line::Source;

    fn log() -> String {
        let mut log = String::new();
        for n in 0..600 {
            let (minute, second) = (n / 300, n % 60);
            log += &format!(
                "h - - [10/Oct/2000:13:0{minute}:{second:02} +0000] \"GET /owners/{n} HTTP/1.1\" 200 10\n"
            );
            if n % 3 == 0 {
                log += &format!(
                    "h - - [10/Oct/2000:13:0{minute}:00 +0000] \"GET /health HTTP/1.1\" 200 2\n"
                );
            }
            if n % 6 == 0 {
                log += &format!(
                    "h - - [10/Oct/2000:13:0{minute}:00 +0000] \"POST /owners HTTP/1.1\" 201 0\n"
                );
            }
        }
        log + "broken line\n"
    }

    #[test]
    fn what_the_log_was_made_of_is_found_again() {
        let mut builder = Builder::new(Format::common(Source::Httpd), 60.0, false);
        builder.read(log().as_bytes()).unwrap();
        let (profile, seen) = builder.finish("test");
        assert_eq!(
            (seen.lines, seen.rejected, seen.unsafe_methods),
            (900, 1, 100)
        );
        assert_eq!(profile.rates, [400.0 / 60.0, 400.0 / 60.0]);
        let names: Vec<_> = profile
            .requests
            .iter()
            .map(|r| (r.name.as_deref(), r.weight))
            .collect();
        assert_eq!(
            names,
            [
                (Some("GET /owners/{id}"), 600.0),
                (Some("GET /health"), 200.0)
            ]
        );
        assert!(profile.requests[0].path.starts_with("{pick:/owners/"));
        assert_eq!(profile.requests[1].path, "/health");
        assert_eq!(Profile::parse(&profile.text().unwrap()).unwrap(), profile);
    }

    #[test]
    fn lines_are_the_same_however_the_reader_cuts_them() {
        let text = log() + &"x".repeat(200_000) + "\r\nlast line without an end";
        let read = |size| {
            let mut builder = Builder::new(Format::common(Source::Httpd), 60.0, false);
            let reader = std::io::BufReader::with_capacity(size, text.as_bytes());
            builder.read(reader).unwrap();
            let (profile, seen) = builder.finish("test");
            (profile, seen.lines, seen.rejected, seen.statuses)
        };
        let whole = read(1 << 20);
        assert_eq!((whole.1, whole.2), (900, 3));
        for size in [1, 7, 64, 1000, 70_000] {
            assert_eq!(read(size), whole, "{size}");
        }
    }

    #[test]
    fn paths_that_cannot_be_sent_are_counted_not_sent() {
        let mut builder = Builder::new(Format::common(Source::Httpd), 1.0, false);
        builder.line(b"h - - [10/Oct/2000:13:00:00 +0000] \"GET /a{b} HTTP/1.1\" 200 10");
        let (profile, seen) = builder.finish("test");
        assert_eq!((profile.requests.len(), seen.other), (0, 1));
    }
}
