//! How people describe the fields of a line: the servers' own notations.
//!
//! Owns three notations: `%h "%r" %D` (httpd, Tomcat, Jetty, Undertow), `$remote_addr "$request"`
//! (nginx, plus some extra names), `%START_TIME%` (Envoy, Istio). Facts: httpd mod_log_config;
//! Tomcat AccessLogValve (up to 9: `%D` in ms, from 10.1 in µs); Jetty CustomRequestLog (`%D` in
//! µs); Undertow AccessLogHandler (`%D` in ms); nginx ngx_http_log_module; Envoy "Access logging",
//! command operators.

use super::date::StampFormat;
use super::line::LogSource;

#[derive(Debug, Clone)]
pub(super) enum FormatPiece {
    Text(Vec<u8>),
    Field(LineField),
    Date(StampFormat),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineField {
    Common,
    Iso,
    /// Since 1970, in this many units per second, with a fraction.
    Epoch(u32),
    /// A stamp that is the begin whatever else the line says.
    BeginCommon,
    BeginIso,
    Request,
    Method,
    Target,
    /// What follows the path, with or without its `?`, where the path is a field without it.
    Query,
    Status,
    Bytes,
    /// In units of this many ns.
    Duration(u64),
    /// In seconds with a point, in ms without one.
    TimeTaken,
    /// One of several durations that add up, in units of this many ns.
    PartTime(u64),
    /// In seconds with a point, or a dash; of several durations the longest counts.
    UpstreamTime,
    /// A whole number that says nothing here: its unit is not known.
    Count,
    Address,
    /// The name by identd, or the client behind the name of a virtual host.
    Ident,
    User,
    /// A whole number that is not read, or a dash.
    Number,
    /// An address with `:` and a port behind it.
    AddressPort,
    Forwarded,
    Agent,
    /// What a syslog daemon writes before the message; may be nothing.
    Syslog,
    Other,
}

pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

impl LineField {
    fn is_duration(self) -> bool {
        use LineField::{Count, Duration, PartTime, TimeTaken, UpstreamTime};
        matches!(
            self,
            Duration(_) | TimeTaken | PartTime(_) | UpstreamTime | Count
        )
    }
}

impl FormatPiece {
    pub(super) fn is_time(&self) -> bool {
        use LineField::{BeginCommon, BeginIso, Common, Epoch, Iso};
        match self {
            Self::Date(_) => true,
            Self::Field(field) => matches!(field, Common | Iso | Epoch(_) | BeginCommon | BeginIso),
            Self::Text(_) => false,
        }
    }

    pub(super) fn is_field(&self, wanted: LineField) -> bool {
        matches!(self, Self::Field(field) if *field == wanted)
    }
}

pub(super) fn parse_pieces(text: &str, source: LogSource) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = match text {
        _ if text.contains('$') => parse_dollar(text),
        _ if text.contains("%START_TIME") || text.contains("%REQ(") => parse_operators(text)?,
        _ => parse_percent(text, source)?,
    };
    keep_finest(&mut pieces);
    Ok(pieces)
}

/// Of several durations the one in the finest unit counts: the coarser ones are cut off.
fn keep_finest(pieces: &mut [FormatPiece]) {
    let unit = |piece: &FormatPiece| match piece {
        FormatPiece::Field(LineField::Duration(unit)) => Some(*unit),
        _ => None,
    };
    let finest = pieces.iter().filter_map(unit).min();
    for piece in pieces {
        if unit(piece).is_some() && unit(piece) != finest {
            *piece = FormatPiece::Field(LineField::Other);
        }
    }
}

/// `%h %l "%r"`, with `%{name}x` and `%>s`.
fn parse_percent(text: &str, source: LogSource) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut pieces, before);
        let after = after.trim_start_matches(['>', '<']);
        // A strftime pattern may have percent signs within the braces.
        let (name, after) = match after.strip_prefix('{').and_then(|a| a.split_once('}')) {
            Some((name, after)) => (name, after),
            None => ("", after),
        };
        let mut letters = after.chars();
        let letter = letters.next().unwrap_or(' ');
        rest = letters.as_str();
        pieces.push(match (name, letter) {
            ("", 't') => FormatPiece::Field(LineField::Common),
            (name, 't') => stamp_piece(name)?,
            // Path and query are adjacent: together they are the request target.
            (_, 'U') => {
                rest = rest.strip_prefix("%q").unwrap_or(rest);
                FormatPiece::Field(LineField::Target)
            }
            (name, letter) => FormatPiece::Field(letter_field(name, letter, source)),
        });
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

fn letter_field(name: &str, letter: char, source: LogSource) -> LineField {
    match (name, letter) {
        ("", 'r') => LineField::Request,
        (_, 'm') => LineField::Method,
        (_, 'q') => LineField::Query,
        (_, 's') => LineField::Status,
        (_, 'b' | 'B' | 'O') => LineField::Bytes,
        (_, 'D') => source
            .duration_unit()
            .map_or(LineField::Count, LineField::Duration),
        ("ns", 'T') => LineField::Duration(1),
        ("us", 'T') => LineField::Duration(US),
        ("ms", 'T') => LineField::Duration(MS),
        ("taken", 'T') => LineField::TimeTaken,
        (_, 'T') => LineField::Duration(SECOND),
        (_, 'h' | 'a') => LineField::Address,
        ("", 'l') => LineField::Ident,
        ("", 'p') => LineField::Number,
        ("", 'u') => LineField::User,
        (name, 'i') if name.eq_ignore_ascii_case("user-agent") => LineField::Agent,
        (name, 'i') if name.eq_ignore_ascii_case("x-forwarded-for") => LineField::Forwarded,
        // Also %F: the time until the response is committed is not that until its end.
        _ => LineField::Other,
    }
}

/// `%{begin:msec}t`: whether it is the begin is read from the whole format.
fn stamp_piece(name: &str) -> Result<FormatPiece, String> {
    let unit = name.trim_start_matches("begin:").trim_start_matches("end:");
    Ok(FormatPiece::Field(match unit {
        "" => LineField::Common,
        "sec" => LineField::Epoch(1),
        "msec" => LineField::Epoch(1_000),
        "usec" => LineField::Epoch(1_000_000),
        "msec_frac" | "usec_frac" => LineField::Other,
        unit if unit.contains('%') => return date_piece(StampFormat::from_strftime(unit)?),
        // Jetty adds time zone and locale: `%{dd/MMM/yyyy:HH:mm:ss ZZZ|GMT}t`.
        unit => {
            return date_piece(StampFormat::from_simple_date_format(
                unit.split('|').next().unwrap_or(unit),
            )?);
        }
    }))
}

/// A stamp without its day is none: httpd can write a stamp in several pieces.
fn date_piece(date: StampFormat) -> Result<FormatPiece, String> {
    Ok(if date.is_whole() {
        FormatPiece::Date(date)
    } else {
        FormatPiece::Field(LineField::Other)
    })
}

/// `$remote_addr [$time_local]`.
fn parse_dollar(text: &str) -> Vec<FormatPiece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        push_text(&mut pieces, before);
        let (name, after) = split_variable(after);
        rest = after;
        if name == "uri" {
            rest = rest.strip_prefix("$is_args$args").unwrap_or(rest);
        }
        pieces.push(FormatPiece::Field(match name {
            "time_local" => LineField::Common,
            "time_iso8601" => LineField::Iso,
            "msec" => LineField::Epoch(1),
            "begin_local" => LineField::BeginCommon,
            "begin_iso8601" => LineField::BeginIso,
            "request" => LineField::Request,
            "request_method" => LineField::Method,
            "request_uri" | "uri" => LineField::Target,
            "args" | "query_string" => LineField::Query,
            "status" => LineField::Status,
            "body_bytes_sent" | "bytes_sent" => LineField::Bytes,
            "request_time" => LineField::Duration(SECOND),
            "upstream_time" => LineField::UpstreamTime,
            "part_time" => LineField::PartTime(SECOND),
            "duration_ms" => LineField::Duration(MS),
            "duration_us" => LineField::Duration(US),
            "duration_ns" => LineField::Duration(1),
            "remote_addr" => LineField::Address,
            "remote_user" => LineField::User,
            "request_count" => LineField::Number,
            "client" => LineField::AddressPort,
            "http_x_forwarded_for" => LineField::Forwarded,
            "http_user_agent" => LineField::Agent,
            "syslog" => LineField::Syslog,
            _ => LineField::Other,
        }));
    }
    push_text(&mut pieces, rest);
    pieces
}

/// The name at the begin, also as `{name}`, and what follows it.
fn split_variable(text: &str) -> (&str, &str) {
    if let Some(braced) = text.strip_prefix('{').and_then(|t| t.split_once('}')) {
        return braced;
    }
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// `[%START_TIME%] "%REQ(:METHOD)% ..."`.
fn parse_operators(text: &str) -> Result<Vec<FormatPiece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut pieces, before);
        // Text in parentheses may have percent signs.
        let closed = match after.find(['(', '%']) {
            Some(at) if after[at..].starts_with('(') => {
                after[at..].find(')').map_or(at, |n| at + n)
            }
            _ => 0,
        };
        let end = after[closed..].find('%').map(|at| closed + at);
        let end = end.ok_or_else(|| format!("`%{after}` has no second %"))?;
        rest = &after[end + 1..];
        pieces.push(operator_piece(&after[..end])?);
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

fn operator_piece(name: &str) -> Result<FormatPiece, String> {
    if let Some(form) = name.strip_prefix("START_TIME(") {
        return date_piece(StampFormat::from_strftime(form.trim_end_matches(')'))?);
    }
    Ok(FormatPiece::Field(match name {
        "START_TIME" => LineField::BeginIso,
        "REQ(:METHOD)" => LineField::Method,
        "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)" | "REQ(:PATH)" => LineField::Target,
        "RESPONSE_CODE" => LineField::Status,
        "BYTES_SENT" => LineField::Bytes,
        "BYTES_RECEIVED" => LineField::Number,
        "DURATION" => LineField::Duration(MS),
        "REQ(X-FORWARDED-FOR)" => LineField::Forwarded,
        "REQ(USER-AGENT)" => LineField::Agent,
        "DOWNSTREAM_REMOTE_ADDRESS" => LineField::AddressPort,
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => LineField::Address,
        _ => LineField::Other,
    }))
}

fn push_text(pieces: &mut Vec<FormatPiece>, text: &str) {
    if !text.is_empty() {
        pieces.push(FormatPiece::Text(text.as_bytes().to_vec()));
    }
}

pub(super) fn has_duration(pieces: &[FormatPiece]) -> bool {
    let mut pieces = pieces.iter();
    pieces.any(|piece| matches!(piece, FormatPiece::Field(field) if field.is_duration()))
}
