//! From access log lines to a load profile, in constant memory.
//!
//! Owns what is counted: classes with their weights and a few sample paths, statuses, sizes,
//! durations. Only GET and HEAD are replayed unless the user says otherwise; the others are
//! counted.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::io::BufRead;

use super::class::{KeyHasher, normalise};
use super::json::Fields;
use super::line::{Format, Line};
use super::observed::{Distribution, Observed};
use super::rates::Intervals;
use super::sessions::Followed;
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
/// The largest response told apart: 1 TiB. What is larger counts as this.
const MAX_BYTES: u64 = 1 << 40;

/// Counts lines; [`Builder::finish`] makes the profile.
#[derive(Debug)]
pub struct Builder {
    format: Format,
    all_methods: bool,
    stamps: Stamps,
    random: Random,
    classes: HashMap<Vec<u8>, Class, BuildHasherDefault<KeyHasher>>,
    key: Vec<u8>,
    /// Requests by status: one place for every number that a line can hold.
    statuses: Vec<u64>,
    intervals: Intervals,
    /// In ns.
    durations: Histogram,
    sizes: Histogram,
    clients: Followed,
    /// What needs no more than counting.
    observed: Observed,
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
            all_methods,
            stamps: Stamps::default(),
            random: Random::new(0),
            classes: HashMap::default(),
            key: Vec::new(),
            statuses: vec![0; 1 << u16::BITS],
            intervals: Intervals::new(interval),
            durations: histogram::new(),
            sizes: Histogram::new_with_bounds(1, MAX_BYTES, 3)
                .expect("the bounds are constants that are allowed"),
            clients: Followed::new(),
            observed: Observed::default(),
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
            self.observed.rejected_lines += 1;
            return;
        }
        if self.format.is_json() {
            let fields = Fields::read(text);
            let line = fields.as_ref();
            match line.and_then(|fields| self.format.json_line(fields, &mut self.stamps)) {
                Some(line) => self.count(&line),
                None => self.observed.rejected_lines += 1,
            }
            return;
        }
        match self.format.read(text, &mut self.stamps) {
            Some(line) => self.count(&line),
            None => self.observed.rejected_lines += 1,
        }
    }

    fn count(&mut self, line: &Line<'_>) {
        self.describe(line);
        if !self.all_methods && !matches!(line.method, b"GET" | b"HEAD") {
            self.observed.left_out_methods += 1;
            return;
        }
        self.intervals.count(line.arrival);
        self.classify(line);
    }

    /// Counts what is true of every request, replayed or not.
    fn describe(&mut self, line: &Line<'_>) {
        self.observed.requests += 1;
        if let Some(status) = line.status {
            self.statuses[usize::from(status)] += 1;
        }
        if let Some(bytes) = line.bytes {
            let total = &mut self.observed.total_response_bytes;
            *total = total.saturating_add(bytes);
            self.sizes.saturating_record(bytes);
        }
        if let Some(ns) = line.duration_ns {
            self.durations.saturating_record(ns);
        }
        self.clients.count(line);
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
                self.observed.left_out_paths += 1;
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

    /// The profile. `origin` says where the lines come from.
    pub fn finish(mut self, origin: &str) -> Profile {
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        let mut requests = Vec::new();
        for (key, class) in classes {
            match request(&key, &class) {
                Some(request) => requests.push(request),
                None => self.observed.left_out_paths += class.count,
            }
        }
        let statuses = self.statuses.iter().enumerate().filter(|(_, n)| **n > 0);
        let interval_seconds = self.intervals.seconds();
        let curve = self.intervals.finish();
        let observed = Observed {
            statuses: statuses.map(|(s, n)| (s.to_string(), *n)).collect(),
            response_bytes: Distribution::of(&self.sizes, 1.0),
            duration_ms: Distribution::of(&self.durations, 1e6),
            think_time_ms: Distribution::of(&self.clients.gaps, 1e6),
            sessions: self.clients.sessions,
            ..self.observed
        };
        Profile {
            schema: super::SCHEMA,
            origin: origin.to_owned(),
            interval_seconds,
            observed: Some(observed.with_rates(&curve)),
            rates: curve.rates,
            requests,
        }
    }
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
        let profile = builder.finish("test");
        let seen = profile.observed.as_ref().unwrap();
        assert_eq!(
            (seen.requests, seen.rejected_lines, seen.left_out_methods),
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
            builder.finish("test")
        };
        let whole = read(1 << 20);
        let seen = whole.observed.as_ref().unwrap();
        assert_eq!((seen.requests, seen.rejected_lines), (900, 3));
        for size in [1, 7, 64, 1000, 70_000] {
            assert_eq!(read(size), whole, "{size}");
        }
    }

    #[test]
    fn paths_that_cannot_be_sent_are_counted_not_sent() {
        let mut builder = Builder::new(Format::common(Source::Httpd), 1.0, false);
        builder.line(b"h - - [10/Oct/2000:13:00:00 +0000] \"GET /a{b} HTTP/1.1\" 200 10");
        let profile = builder.finish("test");
        let seen = profile.observed.as_ref().unwrap();
        assert_eq!((profile.requests.len(), seen.left_out_paths), (0, 1));
    }
}
