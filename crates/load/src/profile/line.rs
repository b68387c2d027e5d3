//! One line of an access log, by the format the server was told to write.
//!
//! Owns the formats: Apache httpd and Tomcat patterns (`%h %l %u %t "%r" %s %b %D`), nginx's
//! `log_format` text (`$remote_addr ... $request_time`), JSON lines. Facts: httpd mod_log_config;
//! Tomcat AccessLogValve (Tomcat 9: `%D` in ms, from 10.1 in µs; `%t` is the end of the request
//! there, its begin in httpd); nginx ngx_http_log_module (stamps are written at the end).

use super::json::Fields;
use super::stamp::{Stamps, iso};
use crate::error::LoadError;

/// Which server wrote the log: decides what a stamp and a duration mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Apache httpd: the stamp is the begin, `%D` is µs.
    Httpd,
    /// nginx: the stamp is the end, durations are seconds.
    Nginx,
    /// Tomcat up to 9: the stamp is the end, `%D` is ms.
    Tomcat9,
    /// Tomcat from 10.1: the stamp is the end, `%D` is µs.
    Tomcat10,
}

/// How lines are written.
#[derive(Debug, Clone)]
pub struct Format {
    pieces: Option<Vec<Piece>>,
    source: Source,
    /// The stamp is the begin of the request, not its end.
    is_begin: bool,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Vec<u8>),
    Field(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Common,
    Iso,
    /// Since 1970, in units of so many to the second, with a fraction.
    Epoch(u32),
    Request,
    Status,
    Bytes,
    /// In units of so many µs.
    Duration(u64),
    Other,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Line<'a> {
    /// When the request arrived, seconds since 1970.
    pub(super) arrival: f64,
    pub(super) method: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) duration_us: Option<u64>,
}

/// The format that most servers write: `combined` begins like `common`.
const COMMON: &str = "%h %l %u %t \"%r\" %s %b";

impl Format {
    /// The common and combined formats.
    pub fn common(source: Source) -> Self {
        Self {
            pieces: Some(percent(COMMON, source)),
            source,
            is_begin: source == Source::Httpd,
        }
    }

    /// JSON lines; names of fields are tried by their usual spellings.
    pub fn json(source: Source) -> Self {
        Self {
            pieces: None,
            source,
            is_begin: source == Source::Httpd,
        }
    }

    /// From the server's own format text.
    ///
    /// # Errors
    /// [`LoadError::Plan`] when it names neither a time nor a request.
    pub fn parse(text: &str, source: Source) -> Result<Self, LoadError> {
        let pieces = match text.contains('$') {
            true => dollar(text),
            false => percent(text, source),
        };
        let has = |is_wanted: fn(&Field) -> bool| {
            let mut pieces = pieces.iter();
            pieces.any(|p| matches!(p, Piece::Field(f) if is_wanted(f)))
        };
        let has_time = has(|f| matches!(f, Field::Common | Field::Iso | Field::Epoch(_)));
        if !has_time || !has(|f| *f == Field::Request) {
            return Err(LoadError::Plan {
                field: "format",
                why: format!("`{text}` has no time (%t, $time_local) or no request (%r, $request)"),
            });
        }
        Ok(Self {
            pieces: Some(pieces),
            source,
            is_begin: match source {
                Source::Httpd => !text.contains("%{end:"),
                _ => text.contains("%{begin:"),
            },
        })
    }

    /// `None` for a line that is not of this format.
    pub(super) fn read<'a>(&self, text: &'a [u8], stamps: &mut Stamps) -> Option<Line<'a>> {
        let Some(pieces) = &self.pieces else {
            return None;
        };
        let mut line = Line::default();
        let mut rest = text;
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => rest = rest.strip_prefix(text.as_slice())?,
                Piece::Field(field) => {
                    let length = extent(rest, pieces.get(index + 1), *field)?;
                    let (value, after) = rest.split_at(length);
                    rest = after;
                    self.take(&mut line, *field, value, stamps)?;
                }
            }
        }
        self.arrive(&mut line);
        Some(line)
    }

    /// Turns the stamp into the arrival.
    fn arrive(&self, line: &mut Line<'_>) {
        if let (false, Some(us)) = (self.is_begin, line.duration_us) {
            line.arrival -= us as f64 / 1e6;
        }
    }

    fn take<'a>(
        &self,
        line: &mut Line<'a>,
        field: Field,
        value: &'a [u8],
        stamps: &mut Stamps,
    ) -> Option<()> {
        match field {
            Field::Common => line.arrival = stamps.common(value)?,
            Field::Iso => line.arrival = iso(value)?,
            Field::Epoch(per_second) => line.arrival = decimal(value)? / f64::from(per_second),
            Field::Request => (line.method, line.path) = request(value)?,
            Field::Status => line.status = std::str::from_utf8(value).ok()?.parse().ok()?,
            // A dash is no body.
            Field::Bytes => line.bytes = decimal(value).unwrap_or(0.0) as u64,
            Field::Duration(unit) => {
                line.duration_us = decimal(value).map(|v| (v * unit as f64) as u64);
            }
            Field::Other => {}
        }
        Some(())
    }

    /// What the fields of a JSON line say; `None` when they are no request.
    pub(super) fn json_line<'a>(
        &self,
        fields: &'a Fields<'_>,
        stamps: &mut Stamps,
    ) -> Option<Line<'a>> {
        let mut line = fields.line(self.source, stamps)?;
        self.arrive(&mut line);
        Some(line)
    }

    pub(super) fn is_json(&self) -> bool {
        self.pieces.is_none()
    }
}

/// How far a field reaches: to the text that follows it, past escaped quotes.
fn extent(rest: &[u8], next: Option<&Piece>, field: Field) -> Option<usize> {
    let Some(Piece::Text(text)) = next else {
        // The last field: up to a space, for what the format does not name.
        return Some(memchr::memchr(b' ', rest).unwrap_or(rest.len()));
    };
    if field == Field::Common && rest.first() == Some(&b'[') {
        return memchr::memchr(b']', rest).map(|at| at + 1);
    }
    let end = *text.first()?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(end, &rest[from..])?;
        let slashes = rest[..at].iter().rev().take_while(|b| **b == b'\\').count();
        // An escaped backslash before a quote does not escape the quote.
        if end != b'"' || slashes % 2 == 0 {
            return Some(at);
        }
        from = at + 1;
    }
}

/// `GET /path HTTP/1.1`; the path without a scheme and host.
pub(super) fn request(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..first], &line[first + 1..]);
    let end = memchr::memrchr(b' ', rest).unwrap_or(rest.len());
    let path = origin(&rest[..end]);
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    (is_method && path.first() == Some(&b'/')).then_some((method, path))
}

/// The path of `http://host/path`, as requests to proxies name it; others stay as they are.
fn origin(target: &[u8]) -> &[u8] {
    let plain = target.strip_prefix(b"http://");
    match plain.or_else(|| target.strip_prefix(b"https://")) {
        Some(rest) => memchr::memchr(b'/', rest).map_or(&b"/"[..], |at| &rest[at..]),
        None => target,
    }
}

pub(super) fn decimal(text: &[u8]) -> Option<f64> {
    if text.iter().all(u8::is_ascii_digit) && !text.is_empty() && text.len() < 16 {
        return Some(text.iter().fold(0u64, |n, b| n * 10 + u64::from(b - b'0')) as f64);
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `%h %l "%r"`, with `%{name}x` and `%>s`.
fn percent(text: &str, source: Source) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut pieces, before);
        let after = after.trim_start_matches(['>', '<']);
        let (name, after) = match after.strip_prefix('{').and_then(|a| a.split_once('}')) {
            Some((name, after)) => (name, after),
            None => ("", after),
        };
        let mut letters = after.chars();
        let field = match (name, letters.next().unwrap_or(' ')) {
            ("", 't') => Field::Common,
            (name, 't') => stamp(name),
            ("", 'r') => Field::Request,
            (_, 's') => Field::Status,
            (_, 'b' | 'B') => Field::Bytes,
            (_, 'D') if source == Source::Tomcat9 => Field::Duration(1000),
            (_, 'D') => Field::Duration(1),
            ("ms", 'T') | ("", 'F') => Field::Duration(1000),
            ("us", 'T') => Field::Duration(1),
            (_, 'T') => Field::Duration(1_000_000),
            _ => Field::Other,
        };
        pieces.push(Piece::Field(field));
        rest = letters.as_str();
    }
    push_text(&mut pieces, rest);
    pieces
}

/// `%{begin:msec}t`: whether it is the begin is read from the whole format.
fn stamp(name: &str) -> Field {
    let unit = name.trim_start_matches("begin:").trim_start_matches("end:");
    match unit {
        "" => Field::Common,
        "sec" => Field::Epoch(1),
        "msec" => Field::Epoch(1_000),
        "usec" => Field::Epoch(1_000_000),
        _ => Field::Other,
    }
}

/// `$remote_addr [$time_local]`.
fn dollar(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        push_text(&mut pieces, before);
        let end = after
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(after.len());
        let (name, after) = after.split_at(end);
        pieces.push(Piece::Field(match name {
            "time_local" => Field::Common,
            "time_iso8601" => Field::Iso,
            "msec" => Field::Epoch(1),
            "request" => Field::Request,
            "status" => Field::Status,
            "body_bytes_sent" | "bytes_sent" => Field::Bytes,
            "request_time" => Field::Duration(1_000_000),
            _ => Field::Other,
        }));
        rest = after;
    }
    push_text(&mut pieces, rest);
    pieces
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.as_bytes().to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &Format, text: &str) -> Option<(f64, String, String, u16, u64, Option<u64>)> {
        let line = format.read(text.as_bytes(), &mut Stamps::default())?;
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        Some((
            line.arrival,
            text(line.method),
            text(line.path),
            line.status,
            line.bytes,
            line.duration_us,
        ))
    }

    const COMBINED: &str = "2001:db8::1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b=\\\"c HTTP/1.1\" \
        200 2326 \"http://x/\" \"Agent \\\"1\\\"\"";

    #[test]
    fn combined_lines_are_read_with_addresses_and_escapes() {
        let format = Format::common(Source::Httpd);
        let (at, method, path, status, bytes, duration) = read(&format, COMBINED).unwrap();
        assert_eq!(
            (at, method.as_str(), status, bytes),
            (971_211_336.0, "GET", 200, 2326)
        );
        assert_eq!((path.as_str(), duration), ("/a?b=\\\"c", None));
        let dash = COMBINED.replace(" 2326 ", " - ");
        assert_eq!(read(&format, &dash).unwrap().4, 0);
    }

    #[test]
    fn the_arrival_is_the_begin_whatever_the_server_writes() {
        let line = "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1 2000";
        let pattern = "%h %l %u %t \"%r\" %>s %b %D";
        for (source, arrival, duration) in [
            (Source::Httpd, 971_211_336.0, 2000),
            (Source::Tomcat9, 971_211_334.0, 2_000_000),
            (Source::Tomcat10, 971_211_335.998, 2000),
        ] {
            let format = Format::parse(pattern, source).unwrap();
            let read = read(&format, line).unwrap();
            assert!((read.0 - arrival).abs() < 1e-6, "{source:?} {}", read.0);
            assert_eq!(read.5, Some(duration), "{source:?}");
        }
        let nginx = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                     $body_bytes_sent $request_time";
        let format = Format::parse(nginx, Source::Nginx).unwrap();
        let line = "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1 1.500";
        let read = read(&format, line).unwrap();
        assert_eq!((read.0, read.5), (971_211_334.5, Some(1_500_000)));
    }

    #[test]
    fn a_stamp_may_say_itself_what_it_is() {
        let line = "971211336500 \"GET / HTTP/1.1\" 200 250";
        for (pattern, source, arrival) in [
            (
                "%{begin:msec}t \"%r\" %s %{ms}T",
                Source::Tomcat10,
                971_211_336.5,
            ),
            (
                "%{msec}t \"%r\" %s %{ms}T",
                Source::Tomcat10,
                971_211_336.25,
            ),
            ("%{msec}t \"%r\" %s %{ms}T", Source::Httpd, 971_211_336.5),
            (
                "%{end:msec}t \"%r\" %s %{ms}T",
                Source::Httpd,
                971_211_336.25,
            ),
        ] {
            let format = Format::parse(pattern, source).unwrap();
            assert_eq!(
                read(&format, line).unwrap().0,
                arrival,
                "{pattern} {source:?}"
            );
        }
    }

    #[test]
    fn quotes_backslashes_and_proxies_do_not_confuse_it() {
        let format = Format::common(Source::Httpd);
        for (request, path) in [
            ("GET /a\\\\ HTTP/1.1", "/a\\\\"),
            ("GET /a\\\"b HTTP/1.1", "/a\\\"b"),
            ("GET /a b HTTP/1.1", "/a b"),
            ("GET http://host:80/x?y=http://z HTTP/1.1", "/x?y=http://z"),
            ("GET https://host HTTP/1.1", "/"),
            ("GET /old", "/old"),
        ] {
            let line = format!("::1 - - [10/Oct/2000:13:55:36 -0700] \"{request}\" 200 1");
            assert_eq!(read(&format, &line).unwrap().2, path, "{request}");
        }
    }

    #[test]
    fn json_lines_are_read_by_usual_names() {
        let format = Format::json(Source::Nginx);
        let text = br#"{"time": "2000-10-10T20:55:36Z", "method": "GET", "uri": "/a", "status": 200, "request_time": "0.250"}"#;
        let fields = Fields::read(text).unwrap();
        let line = format.json_line(&fields, &mut Stamps::default()).unwrap();
        assert_eq!((line.arrival, line.status), (971_211_335.75, 200));
        assert_eq!((line.method, line.path), (&b"GET"[..], &b"/a"[..]));
    }

    #[test]
    fn other_lines_are_no_lines_of_the_format() {
        let format = Format::common(Source::Httpd);
        for line in [
            "",
            "nonsense",
            "h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 0",
            "h - - [x] \"GET / HTTP/1.1\" 200 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" abc 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"\\x16\\x03\" 400 1",
        ] {
            assert_eq!(read(&format, line), None, "{line}");
        }
        assert!(Format::parse("%h %s", Source::Httpd).is_err());
    }
}
