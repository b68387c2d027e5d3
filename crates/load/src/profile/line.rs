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
    /// So many pieces make a line; those after them are read as far as they are there.
    required: usize,
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
    /// In units of so many ns.
    Duration(u64),
    /// The remote address, or the host name it has.
    Address,
    /// The addresses that a proxy says it forwards for.
    Forwarded,
    Agent,
    Other,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Line<'a> {
    /// When the request arrived, seconds since 1970.
    pub(super) arrival: f64,
    /// When it ended, the same; the stamp where the line has no duration.
    pub(super) end: f64,
    /// The stamp has no fraction of a second.
    pub(super) is_whole_second: bool,
    pub(super) method: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) duration_ns: Option<u64>,
    /// Who sent it, as far as the line says: empty is not said.
    pub(super) address: &'a [u8],
    pub(super) forwarded: &'a [u8],
    pub(super) agent: &'a [u8],
}

/// The format that most servers write: `combined` begins like `common`.
const COMMON: &str = "%h %l %u %t \"%r\" %s %b";
/// What `combined` adds.
const COMBINED: &str = " \"%{Referer}i\" \"%{User-Agent}i\"";

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

impl Format {
    /// The common and combined formats.
    pub fn common(source: Source) -> Self {
        let mut pieces = percent(COMMON, source);
        let required = pieces.len();
        pieces.extend(percent(COMBINED, source));
        Self {
            pieces: Some(pieces),
            required,
            source,
            is_begin: source == Source::Httpd,
        }
    }

    /// JSON lines; names of fields are tried by their usual spellings.
    pub fn json(source: Source) -> Self {
        Self {
            pieces: None,
            required: 0,
            source,
            is_begin: source == Source::Httpd,
        }
    }

    /// From the server's own format text.
    ///
    /// # Errors
    /// [`LoadError::Plan`] when it names neither a time nor a request.
    pub fn parse(text: &str, source: Source) -> Result<Self, LoadError> {
        let mut pieces = match text.contains('$') {
            true => dollar(text),
            false => percent(text, source),
        };
        keep_finest(&mut pieces);
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
            required: pieces.len(),
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
            let next = pieces.get(index + 1);
            let next = next.filter(|_| index + 1 != self.required);
            match Self::piece(&mut line, piece, next, rest, stamps) {
                Some(after) => rest = after,
                None if index >= self.required => break,
                None => return None,
            }
        }
        self.arrive(&mut line);
        Some(line)
    }

    /// Reads one piece of the format from the begin of `rest`; what follows it is left.
    fn piece<'a>(
        line: &mut Line<'a>,
        piece: &Piece,
        next: Option<&Piece>,
        rest: &'a [u8],
        stamps: &mut Stamps,
    ) -> Option<&'a [u8]> {
        match piece {
            Piece::Text(text) => rest.strip_prefix(text.as_slice()),
            Piece::Field(field) => {
                let (value, after) = rest.split_at(extent(rest, next, *field)?);
                take(line, *field, value, stamps)?;
                Some(after)
            }
        }
    }

    /// Turns the stamp into arrival and end.
    fn arrive(&self, line: &mut Line<'_>) {
        let stamp = line.arrival;
        // Not `fract`: without SSE 4.1 that is a call.
        line.is_whole_second = stamp as i64 as f64 == stamp;
        line.end = stamp;
        let seconds = line.duration_ns.unwrap_or(0) as f64 / 1e9;
        match self.is_begin {
            true => line.end += seconds,
            false => line.arrival -= seconds,
        }
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

/// What the value of a field says; `None` when it makes the line no request.
fn take<'a>(line: &mut Line<'a>, field: Field, value: &'a [u8], stamps: &mut Stamps) -> Option<()> {
    match field {
        Field::Common => line.arrival = stamps.common(value)?,
        Field::Iso => line.arrival = iso(value)?,
        Field::Epoch(per_second) => line.arrival = decimal(value)? / f64::from(per_second),
        Field::Request => (line.method, line.path) = request(value)?,
        Field::Status => line.status = Some(std::str::from_utf8(value).ok()?.parse().ok()?),
        Field::Bytes => line.bytes = size(value),
        Field::Duration(unit) => {
            line.duration_ns = decimal(value).map(|v| (v * unit as f64) as u64);
        }
        Field::Address => line.address = value,
        Field::Forwarded => line.forwarded = value,
        Field::Agent => line.agent = value,
        Field::Other => {}
    }
    Some(())
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
    sendable(method, &rest[..end])
}

/// A method and the path of its target; `None` when no request can be made of them.
pub(super) fn sendable<'a>(method: &'a [u8], target: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let path = origin(target);
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
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    // "inf" and "nan" are numbers to Rust, not to a server.
    value.is_finite().then_some(value)
}

/// Response bytes; a dash is no body.
pub(super) fn size(text: &[u8]) -> Option<u64> {
    match text {
        b"-" => Some(0),
        _ => decimal(text).map(|bytes| bytes as u64),
    }
}

/// Of several durations the one in the finest unit counts: the coarser ones are cut off.
fn keep_finest(pieces: &mut [Piece]) {
    let unit = |piece: &Piece| match piece {
        Piece::Field(Field::Duration(unit)) => Some(*unit),
        _ => None,
    };
    let finest = pieces.iter().filter_map(unit).min();
    for piece in pieces {
        if unit(piece).is_some() && unit(piece) != finest {
            *piece = Piece::Field(Field::Other);
        }
    }
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
            (_, 'D') if source == Source::Tomcat9 => Field::Duration(MS),
            (_, 'D') => Field::Duration(US),
            ("ns", 'T') => Field::Duration(1),
            ("us", 'T') => Field::Duration(US),
            ("ms", 'T') => Field::Duration(MS),
            (_, 'T') => Field::Duration(SECOND),
            (_, 'h' | 'a') => Field::Address,
            (name, 'i') if name.eq_ignore_ascii_case("user-agent") => Field::Agent,
            (name, 'i') if name.eq_ignore_ascii_case("x-forwarded-for") => Field::Forwarded,
            // Also %F: the time until the response is committed is not that until its end.
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
            "request_time" => Field::Duration(SECOND),
            "remote_addr" => Field::Address,
            "http_x_forwarded_for" => Field::Forwarded,
            "http_user_agent" => Field::Agent,
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
            line.status.unwrap_or(0),
            line.bytes.unwrap_or(0),
            line.duration_ns.map(|ns| ns / 1000),
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
    fn of_several_durations_the_finest_counts() {
        for (pattern, source, values, us) in [
            ("%D %T", Source::Tomcat10, "5000 0", Some(5_000)),
            ("%T %D", Source::Tomcat9, "0 5", Some(5_000)),
            ("%D %F", Source::Tomcat10, "5000000 10", Some(5_000_000)),
            ("%F", Source::Tomcat10, "10", None),
            ("%{ns}T", Source::Tomcat10, "5000000", Some(5_000)),
            ("%{us}T %{ms}T", Source::Httpd, "5499 5", Some(5_499)),
            (
                "%{ns}T %D %{s}T",
                Source::Tomcat10,
                "5499000 5499 0",
                Some(5_499),
            ),
        ] {
            let text = format!("%{{msec}}t \"%r\" %s {pattern}");
            let format = Format::parse(&text, source).unwrap();
            let line = format!("971211336500 \"GET / HTTP/1.1\" 200 {values}");
            assert_eq!(read(&format, &line).unwrap().5, us, "{pattern}");
        }
    }

    #[test]
    fn the_client_is_read_where_the_format_has_it() {
        let client = |format: &Format, text: &str| {
            let line = format.read(text.as_bytes(), &mut Stamps::default());
            let line = line.map(|l| [l.address, l.forwarded, l.agent].map(<[u8]>::to_vec));
            line.map(|parts| parts.map(|p| String::from_utf8(p).unwrap()))
        };
        let combined = Format::common(Source::Httpd);
        let expected = ["2001:db8::1", "", "Agent \\\"1\\\""].map(str::to_owned);
        assert_eq!(client(&combined, COMBINED), Some(expected));
        let common = COMBINED.split(" \"http").next().unwrap();
        for rest in ["", " 2000", " \"-\" 17", " \"-\" \"cut o"] {
            let expected = ["2001:db8::1", "", ""].map(str::to_owned);
            assert_eq!(
                client(&combined, &format!("{common}{rest}")),
                Some(expected)
            );
        }
        let nginx = "$remote_addr [$time_local] \"$request\" \"$http_x_forwarded_for\" $status";
        let nginx = Format::parse(nginx, Source::Nginx).unwrap();
        let line = "h [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" \"10.0.0.1, p\" 200";
        let expected = ["h", "10.0.0.1, p", ""].map(str::to_owned);
        assert_eq!(client(&nginx, line), Some(expected));
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
        assert_eq!((line.arrival, line.status), (971_211_335.75, Some(200)));
        assert_eq!((line.method, line.path), (&b"GET"[..], &b"/a"[..]));
    }

    #[test]
    fn numbers_that_no_server_writes_are_none() {
        for text in ["nan", "inf", "-inf", "1e999", "", "-", "0x1"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            (size(b"-"), size(b"x"), size(b"17")),
            (Some(0), None, Some(17))
        );
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
