//! How people say what a line holds: the notations of the servers themselves.
//!
//! Owns three of them: `%h "%r" %D` (httpd, Tomcat, Jetty, Undertow), `$remote_addr "$request"`
//! (nginx, with some names of our own for what nginx has none), `%START_TIME%` (Envoy, Istio).
//! Facts: httpd mod_log_config; Tomcat AccessLogValve (up to 9: `%D` in ms, from 10.1 in µs); Jetty
//! CustomRequestLog (`%D` in µs); Undertow AccessLogHandler (`%D` in ms); nginx
//! ngx_http_log_module; Envoy "Access logging", command operators.

use super::date::Date;
use super::line::Source;

/// A stretch of a line.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(Vec<u8>),
    Field(Field),
    /// A stamp in a form of one's own.
    Date(Date),
}

/// What a stretch says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Common,
    Iso,
    /// Since 1970, in units of so many to the second, with a fraction.
    Epoch(u32),
    /// A stamp that is the begin whatever else the line says.
    BeginCommon,
    BeginIso,
    Request,
    Method,
    /// Path and query.
    Target,
    Status,
    Bytes,
    /// In units of so many ns.
    Duration(u64),
    /// A whole number that says nothing here: its unit is not known.
    Count,
    /// The remote address, or the host name it has.
    Address,
    /// The same with `:` and a port behind it.
    AddressPort,
    /// The addresses that a proxy says it forwards for.
    Forwarded,
    Agent,
    /// What a syslog daemon writes before the message; may be nothing.
    Syslog,
    Other,
}

pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000_000_000;

impl Field {
    fn is_duration(self) -> bool {
        matches!(self, Self::Duration(_) | Self::Count)
    }
}

impl Piece {
    /// It says when.
    pub(super) fn is_time(&self) -> bool {
        use Field::{BeginCommon, BeginIso, Common, Epoch, Iso};
        match self {
            Self::Date(_) => true,
            Self::Field(field) => matches!(field, Common | Iso | Epoch(_) | BeginCommon | BeginIso),
            Self::Text(_) => false,
        }
    }

    pub(super) fn is(&self, wanted: Field) -> bool {
        matches!(self, Self::Field(field) if *field == wanted)
    }
}

/// The pieces of a format text, whichever notation it is in.
///
/// # Errors
/// What cannot be read in it, and why.
pub(super) fn pieces(text: &str, source: Source) -> Result<Vec<Piece>, String> {
    let mut pieces = match text {
        _ if text.contains('$') => dollar(text),
        _ if text.contains("%START_TIME") || text.contains("%REQ(") => operators(text)?,
        _ => percent(text, source)?,
    };
    keep_finest(&mut pieces);
    Ok(pieces)
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
fn percent(text: &str, source: Source) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut pieces, before);
        let after = after.trim_start_matches(['>', '<']);
        // A strftime pattern has percent signs of its own within the braces.
        let (name, after) = match after.strip_prefix('{').and_then(|a| a.split_once('}')) {
            Some((name, after)) => (name, after),
            None => ("", after),
        };
        let mut letters = after.chars();
        let letter = letters.next().unwrap_or(' ');
        rest = letters.as_str();
        pieces.push(match (name, letter) {
            ("", 't') => Piece::Field(Field::Common),
            (name, 't') => stamp(name)?,
            // Path and query stand side by side: together they are what is sent.
            (_, 'U') => {
                rest = rest.strip_prefix("%q").unwrap_or(rest);
                Piece::Field(Field::Target)
            }
            (name, letter) => Piece::Field(letter_field(name, letter, source)),
        });
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

fn letter_field(name: &str, letter: char, source: Source) -> Field {
    match (name, letter) {
        ("", 'r') => Field::Request,
        (_, 'm') => Field::Method,
        (_, 's') => Field::Status,
        (_, 'b' | 'B' | 'O') => Field::Bytes,
        (_, 'D') => source.unit().map_or(Field::Count, Field::Duration),
        ("ns", 'T') => Field::Duration(1),
        ("us", 'T') => Field::Duration(US),
        ("ms", 'T') => Field::Duration(MS),
        (_, 'T') => Field::Duration(SECOND),
        (_, 'h' | 'a') => Field::Address,
        (name, 'i') if name.eq_ignore_ascii_case("user-agent") => Field::Agent,
        (name, 'i') if name.eq_ignore_ascii_case("x-forwarded-for") => Field::Forwarded,
        // Also %F: the time until the response is committed is not that until its end.
        _ => Field::Other,
    }
}

/// `%{begin:msec}t`: whether it is the begin is read from the whole format.
fn stamp(name: &str) -> Result<Piece, String> {
    let unit = name.trim_start_matches("begin:").trim_start_matches("end:");
    Ok(Piece::Field(match unit {
        "" => Field::Common,
        "sec" => Field::Epoch(1),
        "msec" => Field::Epoch(1_000),
        "usec" => Field::Epoch(1_000_000),
        "msec_frac" | "usec_frac" => Field::Other,
        unit if unit.contains('%') => return date(Date::strftime(unit)?),
        // Jetty adds time zone and locale: `%{dd/MMM/yyyy:HH:mm:ss ZZZ|GMT}t`.
        unit => return date(Date::simple(unit.split('|').next().unwrap_or(unit))?),
    }))
}

/// A stamp without its day is none: httpd can write a stamp in several pieces.
fn date(date: Date) -> Result<Piece, String> {
    Ok(match date.is_whole() {
        true => Piece::Date(date),
        false => Piece::Field(Field::Other),
    })
}

/// `$remote_addr [$time_local]`.
fn dollar(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        push_text(&mut pieces, before);
        let (name, after) = variable(after);
        rest = after;
        if name == "uri" {
            rest = rest.strip_prefix("$is_args$args").unwrap_or(rest);
        }
        pieces.push(Piece::Field(match name {
            "time_local" => Field::Common,
            "time_iso8601" => Field::Iso,
            "msec" => Field::Epoch(1),
            "begin_local" => Field::BeginCommon,
            "begin_iso8601" => Field::BeginIso,
            "request" => Field::Request,
            "request_method" => Field::Method,
            "request_uri" | "uri" => Field::Target,
            "status" => Field::Status,
            "body_bytes_sent" | "bytes_sent" => Field::Bytes,
            "request_time" => Field::Duration(SECOND),
            "duration_ms" => Field::Duration(MS),
            "duration_us" => Field::Duration(US),
            "duration_ns" => Field::Duration(1),
            "remote_addr" => Field::Address,
            "client" => Field::AddressPort,
            "http_x_forwarded_for" => Field::Forwarded,
            "http_user_agent" => Field::Agent,
            "syslog" => Field::Syslog,
            _ => Field::Other,
        }));
    }
    push_text(&mut pieces, rest);
    pieces
}

/// The name at the begin, also as `{name}`, and what follows it.
fn variable(text: &str) -> (&str, &str) {
    if let Some(braced) = text.strip_prefix('{').and_then(|t| t.split_once('}')) {
        return braced;
    }
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

/// `[%START_TIME%] "%REQ(:METHOD)% ..."`.
fn operators(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        push_text(&mut pieces, before);
        // What stands in parentheses may have percent signs of its own.
        let closed = match after.find(['(', '%']) {
            Some(at) if after[at..].starts_with('(') => {
                after[at..].find(')').map_or(at, |n| at + n)
            }
            _ => 0,
        };
        let end = after[closed..].find('%').map(|at| closed + at);
        let end = end.ok_or_else(|| format!("`%{after}` has no second %"))?;
        rest = &after[end + 1..];
        pieces.push(operator(&after[..end])?);
    }
    push_text(&mut pieces, rest);
    Ok(pieces)
}

fn operator(name: &str) -> Result<Piece, String> {
    if let Some(form) = name.strip_prefix("START_TIME(") {
        return date(Date::strftime(form.trim_end_matches(')'))?);
    }
    Ok(Piece::Field(match name {
        "START_TIME" => Field::BeginIso,
        "REQ(:METHOD)" => Field::Method,
        "REQ(X-ENVOY-ORIGINAL-PATH?:PATH)" | "REQ(:PATH)" => Field::Target,
        "RESPONSE_CODE" => Field::Status,
        "BYTES_SENT" => Field::Bytes,
        "DURATION" => Field::Duration(MS),
        "REQ(X-FORWARDED-FOR)" => Field::Forwarded,
        "REQ(USER-AGENT)" => Field::Agent,
        "DOWNSTREAM_REMOTE_ADDRESS" => Field::AddressPort,
        "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT" => Field::Address,
        _ => Field::Other,
    }))
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text.as_bytes().to_vec()));
    }
}

/// Whether the line has a duration, known or not.
pub(super) fn has_duration(pieces: &[Piece]) -> bool {
    let mut pieces = pieces.iter();
    pieces.any(|piece| matches!(piece, Piece::Field(field) if field.is_duration()))
}
