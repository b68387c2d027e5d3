//! From access log lines to a load profile, in constant memory.
//!
//! Owns the counts: classes with their weights and a few sample paths, statuses, sizes, durations.
//! Replays only GET and HEAD, plus requests from templates or at the user's choice; the others are
//! counted by class.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::io::BufRead;
use std::ops::Range;

use loadline_analysis::random::RandomStream;
use loadline_files::LineJoiner;

use super::answered::{AnswerCounter, ClassAnswers};
use super::class::{KeyHasher, normalise};
use super::json::JsonFields;
use super::known::{shown_line, w3c_format};
use super::line::{AccessLogFormat, AccessLogLine, STATUSES};
use super::observed::{Distribution, LogObservations};
use super::rates::Intervals;
use super::sessions::ClientTracker;
use super::stamp::StampParser;
use super::templates::RequestTemplates;
use super::{LoadProfile, MixRequest};
use crate::histogram::{self, Histogram};

/// Most distinct classes; further requests are only counted.
const MAX_CLASSES: usize = 2_000;
const SAMPLES: usize = 16;
const MAX_LINE: usize = 64 * 1024;
/// The largest distinct response size, 1 TiB; larger ones count as this.
const MAX_BYTES: u64 = 1 << 40;

const NAMED: usize = 20;

/// Counts lines; [`ProfileBuilder::build_profile`] makes the profile.
#[derive(Debug)]
pub struct ProfileBuilder {
    format: AccessLogFormat,
    all_methods: bool,
    templates: RequestTemplates,
    window: Option<Range<f64>>,
    before: u64,
    lines: u64,
    rejected: Option<RejectedLine>,
    joiner: LineJoiner,
    stamps: StampParser,
    random: RandomStream,
    classes: HashMap<Vec<u8>, ReplayedClass, BuildHasherDefault<KeyHasher>>,
    key: Vec<u8>,
    statuses: Vec<u64>,
    intervals: Intervals,
    durations: Histogram,
    sizes: Histogram,
    clients: ClientTracker,
    observed: LogObservations,
    answered: Option<AnswerCounter>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedLine {
    pub number: u64,
    pub text: String,
}

#[derive(Debug)]
struct ReplayedClass {
    count: u64,
    samples: Vec<Vec<u8>>,
    replay: ClassReplay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassReplay {
    AsLogged,
    Filled(usize),
    /// It would change data, and has no body.
    LeftOut,
}

impl ProfileBuilder {
    pub fn new(format: AccessLogFormat, interval: f64, all_methods: bool) -> Self {
        Self {
            format,
            all_methods,
            templates: RequestTemplates::default(),
            window: None,
            before: 0,
            lines: 0,
            rejected: None,
            joiner: LineJoiner::default(),
            stamps: StampParser::default(),
            random: RandomStream::from_seed(0),
            classes: HashMap::default(),
            key: Vec::new(),
            statuses: vec![0; usize::from(STATUSES)],
            intervals: Intervals::new(interval),
            durations: histogram::growing_histogram(),
            sizes: histogram::growing_histogram(),
            clients: ClientTracker::new(),
            observed: LogObservations::default(),
            answered: None,
        }
    }

    pub fn with_answers(mut self) -> Self {
        self.answered = Some(AnswerCounter::default());
        self
    }

    /// The classes of responses, and the number of requests outside them: too many classes, or no
    /// status from 200 to 599. Empty without [`ProfileBuilder::with_answers`].
    pub fn take_answers(&mut self) -> (Vec<ClassAnswers>, u64) {
        self.answered.take().unwrap_or_default().into_answers()
    }

    pub fn with_templates(mut self, templates: RequestTemplates) -> Self {
        self.templates = templates;
        self
    }

    pub fn within_window(mut self, window: Range<f64>) -> Self {
        self.window = Some(window);
        self
    }

    pub fn rejected_line(&self) -> Option<&RejectedLine> {
        self.rejected.as_ref()
    }

    /// Takes a whole log. Lines are parsed in the reader's buffer; only a line across its end is
    /// copied. Errors: What the reader says.
    pub fn read(&mut self, mut log: impl BufRead) -> std::io::Result<()> {
        self.before = self.lines;
        let mut begun = Vec::new();
        loop {
            let buffer = log.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let mut rest = buffer;
            while let Some(end) = memchr::memchr(b'\n', rest) {
                if begun.is_empty() {
                    self.add_line(rest[..end].trim_ascii_end());
                } else {
                    begun.extend_from_slice(&rest[..end]);
                    self.add_line(begun.trim_ascii_end());
                    begun.clear();
                }
                rest = &rest[end + 1..];
            }
            // An overlong line is buffered only up to the point of its rejection.
            let room = MAX_LINE.saturating_sub(begun.len());
            begun.extend_from_slice(&rest[..rest.len().min(room)]);
            let used = buffer.len();
            log.consume(used);
        }
        if !begun.is_empty() {
            self.add_line(begun.trim_ascii_end());
        }
        Ok(())
    }

    pub fn add_line(&mut self, text: &[u8]) {
        self.lines += 1;
        if text.len() >= MAX_LINE {
            self.reject(text);
            return;
        }
        let Some(text) = self.joiner.join_line(text) else {
            return;
        };
        let text = &*text;
        if let Some(directive) = text.strip_prefix(b"#") {
            self.take_directive(directive);
            return;
        }
        if self.format.is_json() {
            let fields = JsonFields::read(text);
            let line = fields.as_ref();
            match line.and_then(|fields| self.format.json_line(fields, &mut self.stamps)) {
                Some(line) => self.count_line(&line),
                None => self.reject(text),
            }
            return;
        }
        match self.format.read(text, &mut self.stamps) {
            Some(line) => self.count_line(&line),
            None => self.reject(text),
        }
    }

    /// After a restart the fields of an extended log may be others.
    fn take_directive(&mut self, directive: &[u8]) {
        let fields = directive.strip_prefix(b"Fields:");
        let fields = fields.filter(|_| self.format.is_w3c);
        match fields.map(|fields| w3c_format(fields, self.format.source)) {
            Some(Ok(format)) => self.format = format,
            Some(Err(_)) => self.format.reject_all(),
            None => {}
        }
    }

    fn reject(&mut self, text: &[u8]) {
        self.observed.rejected_lines += 1;
        let number = self.lines - self.before;
        self.rejected.get_or_insert_with(|| RejectedLine {
            number,
            text: shown_line(text),
        });
    }

    fn count_line(&mut self, line: &AccessLogLine<'_>) {
        let window = self.window.as_ref();
        if window.is_some_and(|window| !window.contains(&line.arrival)) {
            return;
        }
        self.observe_line(line);
        let replay = self.classify(line);
        if let Some(answered) = &mut self.answered {
            answered.count_answer(&self.key, line);
        }
        match replay {
            ClassReplay::LeftOut => self.observed.left_out_methods += 1,
            ClassReplay::AsLogged | ClassReplay::Filled(_) => {
                self.intervals.count_arrival(line.arrival)
            }
        }
    }

    fn observe_line(&mut self, line: &AccessLogLine<'_>) {
        self.observed.requests += 1;
        if let Some(status) = line.status {
            self.statuses[usize::from(status)] += 1;
        }
        if let Some(bytes) = line.bytes {
            let total = &mut self.observed.total_response_bytes;
            *total = total.saturating_add(bytes);
            histogram::record_value(&mut self.sizes, bytes.min(MAX_BYTES));
        }
        if let Some(ns) = line.duration_ns {
            histogram::record_value(&mut self.durations, ns);
        }
        self.clients.track_request(line);
    }

    fn replay_new_class(&self) -> ClassReplay {
        let is_safe = self.key.starts_with(b"GET ") || self.key.starts_with(b"HEAD ");
        match self.templates.find_template(&self.key) {
            Some(index) => ClassReplay::Filled(index),
            None if is_safe || self.all_methods => ClassReplay::AsLogged,
            None => ClassReplay::LeftOut,
        }
    }

    fn classify(&mut self, line: &AccessLogLine<'_>) -> ClassReplay {
        let path = line.whole_path();
        self.key.clear();
        self.key.extend_from_slice(line.method);
        self.key.push(b' ');
        normalise(&path, &mut self.key);
        let class = match self.classes.get_mut(&self.key) {
            Some(class) => class,
            None => {
                let replay = self.replay_new_class();
                if self.classes.len() >= MAX_CLASSES {
                    self.observed.left_out_paths += u64::from(replay != ClassReplay::LeftOut);
                    return replay;
                }
                let class = ReplayedClass {
                    count: 0,
                    samples: Vec::new(),
                    replay,
                };
                self.classes.entry(self.key.clone()).or_insert(class)
            }
        };
        class.count += 1;
        // Reservoir sampling: every request of the class has the same chance to be a sample.
        if class.samples.len() < SAMPLES {
            class.samples.push(path.into_owned());
        } else {
            let at = self.random.next_u64() % class.count;
            if let Some(sample) = class.samples.get_mut(at as usize) {
                sample.clear();
                sample.extend_from_slice(&path);
            }
        }
        class.replay
    }

    pub fn build_profile(mut self, origin: &str) -> LoadProfile {
        let mut classes: Vec<_> = self.classes.into_iter().collect();
        classes.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(&b.0)));
        let (mut requests, mut left_out) = (Vec::new(), BTreeMap::new());
        let mut used = Vec::new();
        for (key, class) in classes {
            if class.replay == ClassReplay::LeftOut {
                if left_out.len() < NAMED {
                    left_out.insert(String::from_utf8_lossy(&key).into_owned(), class.count);
                }
                continue;
            }
            let Some(mut request) = sample_request(&key, &class) else {
                self.observed.left_out_paths += class.count;
                continue;
            };
            if let ClassReplay::Filled(index) = class.replay {
                self.templates.fill_request(index, &mut request);
                used.push(index);
            }
            requests.push(request);
        }
        let statuses = self.statuses.iter().enumerate().filter(|(_, n)| **n > 0);
        let interval_seconds = self.intervals.seconds;
        let curve = self.intervals.into_curve();
        let observed = LogObservations {
            statuses: statuses.map(|(s, n)| (s.to_string(), *n)).collect(),
            response_bytes: Distribution::from_histogram(&self.sizes, 1.0),
            duration_ms: Distribution::from_histogram(&self.durations, 1e6),
            think_time_ms: Distribution::from_histogram(&self.clients.gaps, 1e6),
            sessions: self.clients.sessions,
            left_out,
            unused_templates: self.templates.unused_patterns(&used),
            ..self.observed
        };
        LoadProfile {
            schema: super::SCHEMA,
            origin: origin.to_owned(),
            interval_seconds,
            session: None,
            think: None,
            observed: Some(observed.with_rates(&curve)),
            rates: curve.rates,
            requests,
        }
    }
}

fn sample_request(key: &[u8], class: &ReplayedClass) -> Option<MixRequest> {
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
    Some(MixRequest {
        weight: class.count as f64,
        method: method.to_owned(),
        path,
        name: Some(name),
        ..MixRequest::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::line::LogSource;

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
        let mut builder =
            ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 60.0, false);
        builder.read(log().as_bytes()).unwrap();
        let profile = builder.build_profile("test");
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
        assert_eq!(
            LoadProfile::parse_load_profile(&profile.toml_text().unwrap()).unwrap(),
            profile
        );
    }

    #[test]
    fn answers_are_counted_by_class_and_status_whatever_the_method() {
        let format =
            AccessLogFormat::from_format_text("%t \"%r\" %s %B %D", LogSource::Httpd).unwrap();
        let mut builder = ProfileBuilder::new(format, 60.0, false).with_answers();
        let mut log = String::new();
        for (request, status, bytes, us) in [
            ("GET /p/1", 200, 10, 2000),
            ("GET /p/2", 200, 30, 4000),
            ("GET /p/2", 503, 0, 9000),
            ("POST /p", 201, 2, 1000),
            ("GET /p/3?day=1", 200, 1, 1000),
            ("GET /p/3", 101, 1, 1000),
        ] {
            log += &format!(
                "[10/Oct/2000:13:00:00 +0000] \"{request} HTTP/1.1\" {status} {bytes} {us}\n"
            );
        }
        builder.read(log.as_bytes()).unwrap();
        let (seen, left_out) = builder.take_answers();
        let said: Vec<_> = seen
            .iter()
            .map(|s| (s.class.as_str(), s.status, s.requests, s.mean_bytes))
            .collect();
        let expected = [
            ("GET /p/{id}?day", 200, 1, 1),
            ("GET /p/{id}", 200, 2, 20),
            ("GET /p/{id}", 503, 1, 0),
            ("POST /p", 201, 1, 2),
        ];
        assert_eq!((said.as_slice(), left_out), (&expected[..], 1));
        let largest = seen[1].durations.max();
        assert!((4_000_000..4_010_000).contains(&largest), "{largest}");
    }

    #[test]
    fn lines_are_the_same_however_the_reader_cuts_them() {
        let text = log() + &"x".repeat(200_000) + "\r\nlast line without an end";
        let read = |size| {
            let mut builder =
                ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 60.0, false);
            let reader = std::io::BufReader::with_capacity(size, text.as_bytes());
            builder.read(reader).unwrap();
            builder.build_profile("test")
        };
        let whole = read(1 << 20);
        let seen = whole.observed.as_ref().unwrap();
        assert_eq!((seen.requests, seen.rejected_lines), (900, 3));
        for size in [1, 7, 64, 1000, 70_000] {
            assert_eq!(read(size), whole, "{size}");
        }
    }

    #[test]
    fn a_template_brings_the_body_and_what_has_none_is_named() {
        let text = "[[request]]\nmatch = \"POST /owners\"\nbody = \"{}\"\n\
                    headers = { Content-Type = \"application/json\" }\n\
                    [[request]]\nmatch = \"PUT /pets\"\nbody = \"{}\"";
        let templates = RequestTemplates::parse_templates(text, ".".as_ref(), "".as_ref()).unwrap();
        let mut builder =
            ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 60.0, false)
                .with_templates(templates);
        let line = |method, path| {
            format!("h - - [10/Oct/2000:13:00:00 +0000] \"{method} {path} HTTP/1.1\" 200 10")
        };
        for _ in 0..3 {
            builder.add_line(line("POST", "/owners").as_bytes());
        }
        builder.add_line(line("DELETE", "/owners/7").as_bytes());
        let profile = builder.build_profile("test");
        let seen = profile.observed.as_ref().unwrap();
        assert_eq!(profile.rates, [3.0 / 60.0]);
        assert_eq!(profile.requests.len(), 1);
        assert_eq!(profile.requests[0].body, "{}");
        assert_eq!(
            profile.requests[0].headers["Content-Type"],
            "application/json"
        );
        assert_eq!(seen.left_out_methods, 1);
        assert_eq!(
            seen.left_out,
            [("DELETE /owners/{id}".to_owned(), 1)].into()
        );
        assert_eq!(seen.unused_templates, ["PUT /pets"]);
        assert_eq!(
            LoadProfile::parse_load_profile(&profile.toml_text().unwrap()).unwrap(),
            profile
        );
    }

    #[test]
    fn a_window_counts_what_arrived_in_it_only() {
        let mut builder =
            ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 60.0, false)
                .within_window(971_182_860.0..1e12);
        builder.read(log().as_bytes()).unwrap();
        let rejected = builder.rejected_line().unwrap().clone();
        let profile = builder.build_profile("test");
        assert_eq!(profile.rates, [400.0 / 60.0]);
        assert_eq!(profile.observed.unwrap().requests, 450);
        assert_eq!(
            (rejected.number, rejected.text.as_str()),
            (901, "broken line")
        );
    }

    #[test]
    fn paths_that_cannot_be_sent_are_counted_not_sent() {
        let mut builder =
            ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 1.0, false);
        builder.add_line(b"h - - [10/Oct/2000:13:00:00 +0000] \"GET /a{b} HTTP/1.1\" 200 10");
        let profile = builder.build_profile("test");
        let seen = profile.observed.as_ref().unwrap();
        assert_eq!((profile.requests.len(), seen.left_out_paths), (0, 1));
    }
}
