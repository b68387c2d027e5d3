//! One line of an access log, by the format the server was configured to write.
//!
//! Owns how a format is followed along a line, and the joint meaning of stamps and durations: httpd
//! and Jetty write the begin of a request, nginx (ngx_http_log_module), Tomcat (AccessLogValve) and
//! Undertow its end. Notations: [`super::notation`]; known formats: [`super::known`].

use std::borrow::Cow;
use std::net::IpAddr;

use loadline_files::LineJoiner;

use super::json::JsonFields;
use super::notation::{FormatPiece, LineField, MS, SECOND, US, has_duration, parse_pieces};
use super::stamp::{StampParser, parse_iso};
use crate::error::LoadError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    Unsaid,
    /// Apache httpd: the stamp is the begin, `%D` is µs.
    Httpd,
    /// nginx: the stamp is the end, durations are seconds.
    Nginx,
    /// Tomcat up to 9: the stamp is the end, `%D` is ms.
    Tomcat9,
    /// Tomcat from 10.1: the stamp is the end, `%D` is µs.
    Tomcat10,
    /// Jetty: the stamp is the begin, `%D` is µs.
    Jetty,
    /// Undertow: the stamp is the end, `%D` is ms.
    Undertow,
}

impl LogSource {
    pub(super) fn duration_unit(self) -> Option<u64> {
        match self {
            Self::Unsaid => None,
            Self::Tomcat9 | Self::Undertow => Some(MS),
            Self::Httpd | Self::Nginx | Self::Tomcat10 | Self::Jetty => Some(US),
        }
    }

    fn stamps_begin(self) -> bool {
        matches!(self, Self::Httpd | Self::Jetty)
    }
}

#[derive(Debug, Clone)]
pub struct AccessLogFormat {
    /// `None` is JSON.
    pieces: Option<Vec<FormatPiece>>,
    /// Pieces required for a line; later ones are read if present.
    required: usize,
    pub(super) source: LogSource,
    /// The log names its fields, and may name others later.
    pub(super) is_w3c: bool,
    is_begin: bool,
    /// Method and path are separate fields, not a request line.
    is_split: bool,
}

/// Statuses are less: they have three digits at most (RFC 9110, section 15).
pub(super) const STATUSES: u16 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct AccessLogLine<'a> {
    /// When the request arrived, seconds since 1970.
    pub(super) arrival: f64,
    pub(super) end: f64,
    pub(super) is_whole_second: bool,
    pub(super) begin: Option<f64>,
    pub(super) method: &'a [u8],
    pub(super) path: &'a [u8],
    /// Of a field apart; empty where the path has it, or there is none.
    pub(super) query: &'a [u8],
    pub(super) status: Option<u16>,
    pub(super) bytes: Option<u64>,
    pub(super) duration_ns: Option<u64>,
    /// Who sent it, as far as the line says: empty is not said.
    pub(super) address: &'a [u8],
    pub(super) forwarded: &'a [u8],
    pub(super) agent: &'a [u8],
}

impl<'a> AccessLogLine<'a> {
    pub(super) fn whole_path(&self) -> Cow<'a, [u8]> {
        if self.query.is_empty() || self.path.contains(&b'?') {
            Cow::Borrowed(self.path)
        } else {
            Cow::Owned([self.path, b"?", self.query].concat())
        }
    }
}

/// The format that most servers write: `combined` begins like `common`.
pub(super) const COMMON: &str = "%h %l %u %t \"%r\" %s %b";
pub(super) const COMBINED: &str = " \"%{Referer}i\" \"%{User-Agent}i\"";

impl AccessLogFormat {
    pub fn common_log(source: LogSource) -> Self {
        Self::with_rest(COMMON, COMBINED, source).expect("the texts are constants that are read")
    }

    pub fn json_lines(source: LogSource) -> Self {
        Self {
            pieces: None,
            required: 0,
            source,
            is_w3c: false,
            is_begin: source.stamps_begin(),
            is_split: false,
        }
    }

    /// From the server's own format text.
    /// Errors: [`LoadError::Plan`] when it names neither a time nor a request, or a duration in a
    /// unit that depends on a server which is not said.
    pub fn from_format_text(text: &str, source: LogSource) -> Result<Self, LoadError> {
        let format = Self::with_rest(text, "", source)?;
        let pieces = format.pieces.iter().flatten();
        if source == LogSource::Unsaid && pieces.clone().any(|p| p.is_field(LineField::Count)) {
            return Err(refuse_format(format!(
                "`%D` in `{text}` is us with httpd, Jetty and Tomcat from 10.1, ms with Tomcat up \
                 to 9 and Undertow; say which with --server"
            )));
        }
        Ok(format)
    }

    pub(super) fn with_rest(text: &str, rest: &str, source: LogSource) -> Result<Self, LoadError> {
        let why = |why| refuse_format(format!("`{text}`: {why}"));
        let mut all = parse_pieces(text, source).map_err(why)?;
        let required = all.len();
        all.extend(parse_pieces(rest, source).map_err(why)?);
        let has = |field| all.iter().any(|piece: &FormatPiece| piece.is_field(field));
        let is_split = !has(LineField::Request);
        if !all.iter().any(FormatPiece::is_time) {
            return Err(why("it has no time (%t, $time_local)".to_owned()));
        }
        if is_split && !(has(LineField::Method) && has(LineField::Target)) {
            return Err(why("it has no request (%r, $request)".to_owned()));
        }
        Ok(Self {
            required,
            pieces: Some(all),
            source,
            is_w3c: false,
            is_begin: match source {
                LogSource::Httpd => !text.contains("%{end:"),
                source => source.stamps_begin() || text.contains("%{begin:"),
            },
            is_split,
        })
    }

    pub(super) fn read<'a>(
        &self,
        text: &'a [u8],
        stamps: &mut StampParser,
    ) -> Option<AccessLogLine<'a>> {
        let mut line = AccessLogLine::default();
        self.read_pieces(&mut line, text, stamps)?;
        Some(line)
    }

    /// Whether a line is of this format to its end, with a duration where the format has one.
    pub(super) fn fits_line(&self, text: &[u8], stamps: &mut StampParser) -> bool {
        let Some(pieces) = &self.pieces else {
            let fields = JsonFields::read(text);
            let fields = fields.as_ref();
            return fields.is_some_and(|fields| self.json_line(fields, stamps).is_some());
        };
        let is_timed =
            |line: &AccessLogLine<'_>| line.duration_ns.is_some() || !has_duration(pieces);
        let counted = pieces.iter().any(|piece| piece.is_field(LineField::Count));
        let mut line = AccessLogLine::default();
        let rest = self.read_pieces(&mut line, text, stamps);
        rest.is_some_and(|rest| rest.is_empty() && (counted || is_timed(&line)))
    }

    /// Reads a line; returns the rest. The line is an out-parameter, because it is large.
    fn read_pieces<'a>(
        &self,
        line: &mut AccessLogLine<'a>,
        text: &'a [u8],
        stamps: &mut StampParser,
    ) -> Option<&'a [u8]> {
        let pieces = self.pieces.as_ref()?;
        let mut rest = text;
        let mut index = 0;
        // The last quoted text: where it stands, and how far it was taken to reach.
        let mut quoted: Option<(usize, &[u8], usize)> = None;
        let mut from = 0;
        while let Some(piece) = pieces.get(index) {
            let next = pieces.get(index + 1);
            let next = next.filter(|_| index + 1 != self.required);
            match Self::read_piece(line, piece, next, (rest, from), stamps) {
                Some(after) => {
                    if matches!(next, Some(FormatPiece::Text(text)) if text[0] == b'"') {
                        quoted = Some((index, rest, rest.len() - after.len()));
                    }
                    rest = after;
                    index += 1;
                    from = 0;
                }
                // A quote inside the text, which the server did not escape.
                None if index < self.required
                    && let Some((at, begin, reach)) = quoted.take() =>
                {
                    (index, rest, from) = (at, begin, reach + 1);
                }
                None if index >= self.required => break,
                None => return None,
            }
        }
        if self.is_split {
            (line.method, line.path) = sendable_target(line.method, line.path)?;
        }
        self.set_arrival(line);
        Some(rest)
    }

    /// How many thousandths of the format the begin of a line follows, and how long that begin is.
    pub(super) fn read_length(&self, text: &[u8]) -> (usize, usize) {
        let mut rest = text;
        let (mut share, mut length) = (0, 0);
        let pieces = self.pieces.iter().flatten().take(self.required);
        let pieces: Vec<&FormatPiece> = pieces.collect();
        for (index, piece) in pieces.iter().enumerate() {
            let mut line = AccessLogLine::default();
            let next = pieces.get(index + 1).copied();
            let mut stamps = StampParser::default();
            let after = Self::read_piece(&mut line, piece, next, (rest, 0), &mut stamps);
            let Some(after) = after else { break };
            // A field that swallowed a stamp or a blank does not fit this format.
            let value = &rest[..rest.len() - after.len()];
            let is_quoted =
                matches!(next, Some(FormatPiece::Text(text)) if text.starts_with(b"\""));
            let is_loose = matches!(
                piece,
                FormatPiece::Field(
                    LineField::Other | LineField::Address | LineField::Ident | LineField::User
                )
            );
            let is_other = value.starts_with(b"[") || value.starts_with(b"\"");
            if is_loose && !is_quoted && (is_other || value.contains(&b' ')) {
                break;
            }
            rest = after;
            (share, length) = (1000 * (index + 1) / pieces.len(), text.len() - rest.len());
        }
        (share, length)
    }

    pub(super) fn reject_all(&mut self) {
        self.required = 1;
        self.pieces = Some(vec![FormatPiece::Text(b"#".to_vec())]);
    }

    /// Reads one piece of the format from the begin of `rest`, a field up to what follows it, not before
    /// `from`; what follows it is left.
    fn read_piece<'a>(
        line: &mut AccessLogLine<'a>,
        piece: &FormatPiece,
        next: Option<&FormatPiece>,
        (rest, from): (&'a [u8], usize),
        stamps: &mut StampParser,
    ) -> Option<&'a [u8]> {
        match piece {
            FormatPiece::Text(text) => rest.strip_prefix(text.as_slice()),
            FormatPiece::Field(field) => {
                let (value, after) = rest.split_at(field_extent((rest, from), next, *field)?);
                read_field(line, *field, value, stamps)?;
                Some(after)
            }
            FormatPiece::Date(date) => {
                let (stamp, after) = date.read(rest)?;
                line.arrival = stamp;
                Some(after)
            }
        }
    }

    fn set_arrival(&self, line: &mut AccessLogLine<'_>) {
        let seconds = line.duration_ns.unwrap_or(0) as f64 / 1e9;
        let stamp = line.begin.unwrap_or(line.arrival);
        // Not `fract`: without SSE 4.1 that is a call.
        line.is_whole_second = stamp as i64 as f64 == stamp;
        line.end = stamp;
        if let Some(begin) = line.begin {
            // Another stamp is the end; zero means absent.
            if line.duration_ns.is_none() && line.arrival > begin {
                line.duration_ns = Some(((line.arrival - begin) * 1e9) as u64);
            }
            line.end = (begin + seconds).max(line.arrival);
            line.arrival = begin;
        } else if self.is_begin {
            line.end += seconds;
        } else {
            line.arrival -= seconds;
        }
    }

    /// What the fields of a JSON line say; `None` when they are no request.
    pub(super) fn json_line<'a>(
        &self,
        fields: &'a JsonFields<'_>,
        stamps: &mut StampParser,
    ) -> Option<AccessLogLine<'a>> {
        let mut line = fields.to_line(self.source, stamps)?;
        self.set_arrival(&mut line);
        Some(line)
    }

    pub(super) fn is_json(&self) -> bool {
        self.pieces.is_none()
    }

    pub fn first_arrival(&self, lines: &[u8]) -> Option<f64> {
        let (mut stamps, mut joiner) = (StampParser::default(), LineJoiner::default());
        lines.split(|b| *b == b'\n').find_map(|line| {
            let line = &*joiner.join_line(line.trim_ascii_end())?;
            if self.is_json() {
                let fields = JsonFields::read(line)?;
                return Some(self.json_line(&fields, &mut stamps)?.arrival);
            }
            Some(self.read(line, &mut stamps)?.arrival)
        })
    }

    /// What a line of this format goes on with.
    pub(super) fn unread_rest<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let mut line = AccessLogLine::default();
        self.read_pieces(&mut line, text, &mut StampParser::default())
    }

    /// Lines have a duration that is not read, because its unit depends on the server.
    pub(super) fn lacks_unit(&self) -> bool {
        let mut pieces = self.pieces.iter().flatten();
        pieces.any(|piece| piece.is_field(LineField::Count))
    }
}

fn refuse_format(why: String) -> LoadError {
    LoadError::plan("format", why)
}

/// What the value of a field says; `None` when it makes the line no request.
fn read_field<'a>(
    line: &mut AccessLogLine<'a>,
    field: LineField,
    value: &'a [u8],
    stamps: &mut StampParser,
) -> Option<()> {
    match field {
        LineField::Common => line.arrival = stamps.parse_common(value)?,
        LineField::Iso => line.arrival = parse_iso(value)?,
        LineField::Epoch(per_second) => line.arrival = decimal(value)? / f64::from(per_second),
        LineField::BeginCommon => line.begin = Some(stamps.parse_common(value)?),
        LineField::BeginIso => line.begin = Some(parse_iso(value)?),
        LineField::Request => (line.method, line.path) = parse_request_line(value)?,
        LineField::Method => line.method = value,
        LineField::Target => line.path = value,
        LineField::Query => line.query = query_text(value),
        LineField::Status => line.status = parse_status(value)?,
        LineField::Bytes => line.bytes = parse_body_size(value),
        LineField::Duration(unit) => line.duration_ns = parse_duration_ns(value, unit),
        // IIS counts ms; CloudFront and Tomcat write seconds with a point.
        LineField::TimeTaken if value.contains(&b'.') => {
            line.duration_ns = parse_duration_ns(value, SECOND);
        }
        LineField::TimeTaken => line.duration_ns = parse_duration_ns(value, MS),
        LineField::PartTime(unit) => {
            let part = parse_duration_ns(value, unit);
            let sum = part.map(|part| line.duration_ns.unwrap_or(0).saturating_add(part));
            line.duration_ns = sum.or(line.duration_ns);
        }
        LineField::Count if !value.iter().all(u8::is_ascii_digit) => return None,
        LineField::Number if value != b"-" && !value.iter().all(u8::is_ascii_digit) => return None,
        LineField::UpstreamTime => {
            let time = parse_duration_ns(value, SECOND).filter(|_| is_nginx_time(value));
            if time.is_none() && value != b"-" {
                return None;
            }
            line.duration_ns = line.duration_ns.max(time);
        }
        LineField::Ident if is_address(value) && !is_address(line.address) => line.address = value,
        LineField::Address => line.address = value,
        LineField::AddressPort => line.address = without_port(value),
        LineField::Forwarded => line.forwarded = value,
        LineField::Agent => line.agent = value,
        LineField::Count
        | LineField::Number
        | LineField::Ident
        | LineField::Syslog
        | LineField::User
        | LineField::Other => {}
    }
    Some(())
}

/// Seconds as nginx writes them, with ms; its `$gzip_ratio` has two decimals, its `$msec` is a moment.
fn is_nginx_time(value: &[u8]) -> bool {
    let point = value.iter().position(|byte| *byte == b'.');
    point.is_some_and(|at| at <= 5 && value.len() == at + 4)
}

fn is_address(value: &[u8]) -> bool {
    // Nearly all are a dash.
    value != b"-" && std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// A dash means no status: the client left earlier. `None` for an invalid status.
fn parse_status(value: &[u8]) -> Option<Option<u16>> {
    if matches!(value, b"-" | b"-1") {
        return Some(None);
    }
    let status = value.iter().try_fold(0_u16, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u16::from(digit - b'0'))?;
        Some(number * 10 + digit).filter(|number| *number < STATUSES)
    })?;
    (!value.is_empty()).then_some(Some(status))
}

/// In ns; `None` for a dash, for -1, and for a fraction of a unit that servers only count.
fn parse_duration_ns(value: &[u8], unit: u64) -> Option<u64> {
    // HAProxy marks a total that was logged early with a plus.
    let value = value.strip_prefix(b"+").unwrap_or(value);
    if unit < SECOND && !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    decimal(value)
        .filter(|value| *value >= 0.0)
        .map(|value| (value * unit as f64) as u64)
}

/// `10.0.0.1` of `10.0.0.1:2817`.
pub(super) fn without_port(address: &[u8]) -> &[u8] {
    memchr::memrchr(b':', address).map_or(address, |at| &address[..at])
}

/// `a=b` of `?a=b`; a dash is none.
pub(super) fn query_text(value: &[u8]) -> &[u8] {
    match value {
        b"-" => &[],
        _ => value.strip_prefix(b"?").unwrap_or(value),
    }
}

/// How far a field reaches: to the text that follows it, past escaped quotes.
fn field_extent(
    (rest, from): (&[u8], usize),
    next: Option<&FormatPiece>,
    field: LineField,
) -> Option<usize> {
    if field == LineField::Syslog {
        return Some(syslog_header_length(rest));
    }
    let Some(FormatPiece::Text(text)) = next else {
        // The last field: up to a space, for what the format does not name.
        return Some(memchr::memchr(b' ', rest).unwrap_or(rest.len()));
    };
    if field == LineField::Common && rest.first() == Some(&b'[') {
        return memchr::memchr(b']', rest).map(|at| at + 1);
    }
    if field == LineField::User
        && (text.as_slice() == b" " || text.starts_with(b" ["))
        && let Some(at) = memchr::memmem::find(rest, b" [")
            .filter(|at| memchr::memchr(b'"', &rest[..*at]).is_none())
    {
        return Some(at);
    }
    let end = *text.first()?;
    let mut from = from;
    loop {
        let at = from + memchr::memchr(end, rest.get(from..)?)?;
        let slashes = rest[..at].iter().rev().take_while(|b| **b == b'\\').count();
        // An escaped backslash before a quote does not escape the quote.
        if end != b'"' || slashes % 2 == 0 {
            return Some(at);
        }
        from = at + 1;
    }
}

/// How far the header of a syslog message reaches: `Feb  6 12:14:14 host haproxy[14389]: `.
fn syslog_header_length(line: &[u8]) -> usize {
    let stamp = memchr::memmem::find(line, b" [").unwrap_or(line.len());
    memchr::memmem::find(&line[..stamp], b": ").map_or(0, |at| at + 2)
}

/// `GET /path HTTP/1.1`; the path without a scheme and host.
pub(super) fn parse_request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let first = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..first], &line[first + 1..]);
    let end = memchr::memrchr(b' ', rest).unwrap_or(rest.len());
    sendable_target(method, &rest[..end])
}

/// A method and the path of its target; `None` if no request can be made from them.
pub(super) fn sendable_target<'a>(
    method: &'a [u8],
    target: &'a [u8],
) -> Option<(&'a [u8], &'a [u8])> {
    let path = origin_form(target);
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    (is_method && path.first() == Some(&b'/')).then_some((method, path))
}

/// The path of `http://host/path`, as requests to proxies name it; others stay as they are.
fn origin_form(target: &[u8]) -> &[u8] {
    let plain = target.strip_prefix(b"http://");
    match plain.or_else(|| target.strip_prefix(b"https://")) {
        Some(rest) => memchr::memchr(b'/', rest).map_or(&b"/"[..], |at| &rest[at..]),
        None => target,
    }
}

pub(crate) fn decimal(text: &[u8]) -> Option<f64> {
    if text.iter().all(u8::is_ascii_digit) && !text.is_empty() && text.len() < 16 {
        return Some(text.iter().fold(0u64, |n, b| n * 10 + u64::from(b - b'0')) as f64);
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    // "inf" and "nan" are numbers to Rust, not to a server.
    value.is_finite().then_some(value)
}

pub(super) fn parse_body_size(text: &[u8]) -> Option<u64> {
    match text {
        b"-" => Some(0),
        _ => decimal(text).map(|bytes| bytes as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        format: &AccessLogFormat,
        text: &str,
    ) -> Option<(f64, String, String, u16, u64, Option<u64>)> {
        let line = format.read(text.as_bytes(), &mut StampParser::default())?;
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
        let format = AccessLogFormat::common_log(LogSource::Httpd);
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
            (LogSource::Httpd, 971_211_336.0, 2000),
            (LogSource::Tomcat9, 971_211_334.0, 2_000_000),
            (LogSource::Tomcat10, 971_211_335.998, 2000),
        ] {
            let format = AccessLogFormat::from_format_text(pattern, source).unwrap();
            let read = read(&format, line).unwrap();
            assert!((read.0 - arrival).abs() < 1e-6, "{source:?} {}", read.0);
            assert_eq!(read.5, Some(duration), "{source:?}");
        }
        let nginx = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                     $body_bytes_sent $request_time";
        let format = AccessLogFormat::from_format_text(nginx, LogSource::Nginx).unwrap();
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
                LogSource::Tomcat10,
                971_211_336.5,
            ),
            (
                "%{msec}t \"%r\" %s %{ms}T",
                LogSource::Tomcat10,
                971_211_336.25,
            ),
            ("%{msec}t \"%r\" %s %{ms}T", LogSource::Httpd, 971_211_336.5),
            (
                "%{end:msec}t \"%r\" %s %{ms}T",
                LogSource::Httpd,
                971_211_336.25,
            ),
        ] {
            let format = AccessLogFormat::from_format_text(pattern, source).unwrap();
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
            ("%D %T", LogSource::Tomcat10, "5000 0", Some(5_000)),
            ("%T %D", LogSource::Tomcat9, "0 5", Some(5_000)),
            ("%D %F", LogSource::Tomcat10, "5000000 10", Some(5_000_000)),
            ("%F", LogSource::Tomcat10, "10", None),
            ("%{ns}T", LogSource::Tomcat10, "5000000", Some(5_000)),
            ("%{us}T %{ms}T", LogSource::Httpd, "5499 5", Some(5_499)),
            (
                "%{ns}T %D %{s}T",
                LogSource::Tomcat10,
                "5499000 5499 0",
                Some(5_499),
            ),
        ] {
            let text = format!("%{{msec}}t \"%r\" %s {pattern}");
            let format = AccessLogFormat::from_format_text(&text, source).unwrap();
            let line = format!("971211336500 \"GET / HTTP/1.1\" 200 {values}");
            assert_eq!(read(&format, &line).unwrap().5, us, "{pattern}");
        }
    }

    /// Patterns of Tomcat's documentation (AccessLogValve) and of httpd's (mod_log_config).
    #[test]
    fn method_path_and_query_may_be_fields_of_their_own() {
        for (pattern, source, line, path, arrival) in [
            (
                "%a %{yyyy-MM-dd HH:mm:ss.SSS}t %m %U%q %s %D",
                LogSource::Tomcat9,
                "::1 2000-10-10 20:55:36.500 GET /a?b=c 200 250",
                "/a?b=c",
                971_211_336.25,
            ),
            (
                "%{%Y-%m-%dT%T%z}t \"%m %U%q %H\" %>s %{ms}T",
                LogSource::Httpd,
                "2000-10-10T13:55:36-0700 \"GET /a HTTP/1.1\" 200 250",
                "/a",
                971_211_336.0,
            ),
            (
                "$time_iso8601 $request_method $uri$is_args$args $status $request_time",
                LogSource::Nginx,
                "2000-10-10T13:55:36-07:00 GET /a?b=c 200 0.250",
                "/a?b=c",
                971_211_335.75,
            ),
            (
                "%{client}a - %u %{dd/MMM/yyyy:HH:mm:ss ZZZ|GMT}t \"%r\" %s %O %D",
                LogSource::Jetty,
                "::1 - - 10/Oct/2000:20:55:36 +0000 \"GET /a HTTP/1.1\" 200 7 250000",
                "/a",
                971_211_336.0,
            ),
        ] {
            let format = AccessLogFormat::from_format_text(pattern, source).unwrap();
            let line = read(&format, line).unwrap();
            assert_eq!((line.0, line.2.as_str()), (arrival, path), "{pattern}");
            assert_eq!(
                (line.1.as_str(), line.5),
                ("GET", Some(250_000)),
                "{pattern}"
            );
        }
        let error = AccessLogFormat::from_format_text("%{EEE}t %r", LogSource::Httpd).unwrap_err();
        assert!(error.to_string().contains("`EEE`"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn no_line_and_no_format_makes_it_panic(
            text in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
            cut in 0_usize..400,
            pattern in "[%${}>a-zA-Z:|' \\[\\]\"]{0,40}",
        ) {
            let mut stamps = StampParser::default();
            for name in crate::profile::format_names() {
                let format = crate::profile::format_by_name(name, LogSource::Tomcat9).unwrap();
                format.fits_line(&text, &mut stamps);
                // A line cut off in the middle, and a line with trailing garbage.
                let start = &COMBINED.as_bytes()[..cut.min(COMBINED.len())];
                format.fits_line(&[start, &text].concat(), &mut stamps);
            }
            if let Ok(format) = AccessLogFormat::from_format_text(&pattern, LogSource::Httpd) {
                format.fits_line(&text, &mut stamps);
            }
        }
    }

    #[test]
    fn the_client_is_read_where_the_format_has_it() {
        let client = |format: &AccessLogFormat, text: &str| {
            let line = format.read(text.as_bytes(), &mut StampParser::default());
            let line = line.map(|l| [l.address, l.forwarded, l.agent].map(<[u8]>::to_vec));
            line.map(|parts| parts.map(|p| String::from_utf8(p).unwrap()))
        };
        let combined = AccessLogFormat::common_log(LogSource::Httpd);
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
        let nginx = AccessLogFormat::from_format_text(nginx, LogSource::Nginx).unwrap();
        let line = "h [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" \"10.0.0.1, p\" 200";
        let expected = ["h", "10.0.0.1, p", ""].map(str::to_owned);
        assert_eq!(client(&nginx, line), Some(expected));
    }

    #[test]
    fn quotes_backslashes_and_proxies_do_not_confuse_it() {
        let format = AccessLogFormat::common_log(LogSource::Httpd);
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
        let format = AccessLogFormat::json_lines(LogSource::Nginx);
        let text = br#"{"time": "2000-10-10T20:55:36Z", "method": "GET", "uri": "/a", "status": 200, "request_time": "0.250"}"#;
        let fields = JsonFields::read(text).unwrap();
        let line = format
            .json_line(&fields, &mut StampParser::default())
            .unwrap();
        assert_eq!((line.arrival, line.status), (971_211_335.75, Some(200)));
        assert_eq!((line.method, line.path), (&b"GET"[..], &b"/a"[..]));
    }

    #[test]
    fn numbers_that_no_server_writes_are_none() {
        for text in ["nan", "inf", "-inf", "1e999", "", "-", "0x1"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
        assert_eq!(
            [
                parse_status(b"999"),
                parse_status(b"-"),
                parse_status(b"1000"),
                parse_status(b"")
            ],
            [Some(Some(999)), Some(None), None, None]
        );
        assert_eq!(
            (
                parse_body_size(b"-"),
                parse_body_size(b"x"),
                parse_body_size(b"17")
            ),
            (Some(0), None, Some(17))
        );
    }

    #[test]
    fn other_lines_are_no_lines_of_the_format() {
        let format = AccessLogFormat::common_log(LogSource::Httpd);
        for line in [
            "",
            "nonsense",
            "h - - [10/Oct/2000:13:55:36 -0700] \"-\" 408 0",
            "h - - [x] \"GET / HTTP/1.1\" 200 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" abc 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 1000 1",
            "h - - [10/Oct/2000:13:55:36 -0700] \"\\x16\\x03\" 400 1",
        ] {
            assert_eq!(read(&format, line), None, "{line}");
        }
        assert!(AccessLogFormat::from_format_text("%h %s", LogSource::Httpd).is_err());
    }
}
