//! One line of an access log that names its fields: JSON or LTSV.
//!
//! Owns the names that fields go by: those of nginx configurations, of Tomcat's JsonAccessLogValve,
//! of Envoy and Istio, Traefik, logstash-logback-encoder's AccessEventEncoder, Kong, Linkerd, pino,
//! AWS API Gateway, Azure's gateways, Cloudflare, Envoy Gateway, the Elastic Common Schema, ltsv.org,
//! and the usual spellings of others.
//! Fields with other names are passed over without being kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::line::{
    AccessLogLine, LogSource, STATUSES, decimal, parse_body_size, parse_request_line, query_text,
    sendable_target, without_port,
};
use super::notation::{MS, SECOND, US};
use super::stamp::{StampParser, parse_iso};

/// Objects in a line that hold parts of a request.
const NESTED: &str =
    "request httpRequest req response res http url event latencies properties source client";

/// The fields that were found; of several names for one thing the first in the line counts.
#[derive(Debug, Default)]
pub(super) struct JsonFields<'a> {
    stamp: Option<Cow<'a, str>>,
    begin: Option<Cow<'a, str>>,
    request: Option<Cow<'a, str>>,
    method: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
    query: Option<Cow<'a, str>>,
    status: Option<Cow<'a, str>>,
    bytes: Option<Cow<'a, str>>,
    timed: Option<Cow<'a, str>>,
    unit: u64,
    /// With its unit: `0.031s`, as Google Cloud's load balancers write it.
    latency: Option<Cow<'a, str>>,
    /// The request is a nested object, as Caddy writes it: then `duration` is in seconds.
    is_nested: bool,
    /// In the unit of the server.
    elapsed: Option<Cow<'a, str>>,
    address: Option<Cow<'a, str>>,
    peer: Option<Cow<'a, str>>,
    /// The client in Tomcat's logs; elsewhere the name of the server.
    host: Option<Cow<'a, str>>,
    forwarded: Option<Cow<'a, str>>,
    agent: Option<Cow<'a, str>>,
}

impl<'a> JsonFields<'a> {
    pub(super) fn read(text: &'a [u8]) -> Option<Self> {
        if text.trim_ascii_start().starts_with(b"{") {
            return serde_json::from_slice(text).ok();
        }
        let text = std::str::from_utf8(text).ok()?;
        let mut fields = Self::default();
        let parts = text.split('\t').filter(|part| !part.is_empty());
        let labelled = parts.map(|part| part.split_once(':'));
        for (label, value) in labelled.collect::<Option<Vec<_>>>()? {
            let place = match label {
                "req" => Some(&mut fields.request),
                "host" => Some(&mut fields.address),
                // As ltsv.org names the `%D` of httpd.
                "taken" => Some(fields.duration_place(US)),
                label => fields.field_place(label),
            };
            if let Some(place) = place.filter(|place| place.is_none()) {
                *place = Some(Cow::Borrowed(value));
            }
        }
        fields.stamp.is_some().then_some(fields)
    }

    pub(super) fn to_line(
        &self,
        source: LogSource,
        stamps: &mut StampParser,
    ) -> Option<AccessLogLine<'_>> {
        let mut moment = |stamp: &Option<Cow<'_, str>>| {
            let stamp = stamp.as_deref()?.as_bytes();
            let common = stamps.parse_common(stamp);
            common
                .or_else(|| parse_iso(stamp))
                .or_else(|| parse_epoch(stamp))
        };
        let begin = moment(&self.begin);
        let stamp = match begin {
            Some(begin) => begin,
            None => moment(&self.stamp)?,
        };
        let [line, method, path] = [&self.request, &self.method, &self.path]
            .map(|field| field.as_deref().map(str::as_bytes));
        // Some call `%U` the request, next to the method.
        let (method, path) = match (line, method) {
            (Some(path), Some(method)) if path.starts_with(b"/") => sendable_target(method, path)?,
            (Some(line), _) => parse_request_line(line)?,
            (None, method) => sendable_target(method?, path?)?,
        };
        let number = |field: &Option<Cow<'_, str>>| decimal(field.as_deref()?.as_bytes());
        let timed = number(&self.timed).map(|value| value * self.unit as f64);
        let said = [&self.latency, &self.elapsed, &self.timed].into_iter();
        let said = said.flatten().find_map(|text| parse_latency(text));
        let elapsed = number(&self.elapsed).zip(self.elapsed_unit(source));
        let elapsed = elapsed.map(|(value, unit)| value * unit as f64);
        let peer = without_port(field_bytes(self.peer.as_ref()));
        let host = match source {
            LogSource::Tomcat9 | LogSource::Tomcat10 => &self.host,
            _ => &None,
        };
        Some(AccessLogLine {
            arrival: stamp,
            begin,
            method,
            path,
            query: query_text(field_bytes(self.query.as_ref())),
            status: number(&self.status)
                .map(|status| status as u16)
                .filter(|status| *status < STATUSES),
            bytes: self
                .bytes
                .as_deref()
                .and_then(|b| parse_body_size(b.as_bytes())),
            duration_ns: timed
                .or(said)
                .or(elapsed)
                .filter(|ns| *ns >= 0.0)
                .map(|ns| ns as u64),
            address: match self.address.as_ref().or(host.as_ref()) {
                Some(address) => address.as_bytes(),
                None => peer,
            },
            forwarded: field_bytes(self.forwarded.as_ref()),
            agent: field_bytes(self.agent.as_ref()),
            ..AccessLogLine::default()
        })
    }

    /// Who writes `start_time` (Envoy, Istio) has `duration` in ms.
    fn elapsed_unit(&self, source: LogSource) -> Option<u64> {
        match self.begin {
            Some(_) => Some(MS),
            None if self.is_nested => Some(SECOND),
            None => source.duration_unit(),
        }
    }

    /// It has a duration as a number, and nothing says in which unit.
    pub(super) fn lacks_unit(&self, source: LogSource) -> bool {
        let elapsed = self.elapsed.as_deref();
        let is_number = elapsed.is_some_and(|text| decimal(text.as_bytes()).is_some());
        is_number && self.timed.is_none() && self.elapsed_unit(source).is_none()
    }

    pub(super) fn has_duration(&self) -> bool {
        [&self.timed, &self.latency, &self.elapsed]
            .iter()
            .any(|field| field.is_some())
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        Self::default().field_place(name).is_some()
    }

    /// What keeps it from being a request, in words.
    pub(super) fn lacking(&self) -> String {
        let is_whole = self.request.is_some();
        let parts = [
            ("a time", self.stamp.is_some() || self.begin.is_some()),
            ("a method", is_whole || self.method.is_some()),
            ("a path", is_whole || self.path.is_some()),
        ];
        let lacking = parts.iter().filter(|(_, is_there)| !is_there);
        let lacking: Vec<&str> = lacking.map(|(part, _)| *part).collect();
        if lacking.is_empty() {
            "a request that can be sent".to_owned()
        } else {
            format!("{} by a usual name", lacking.join(", "))
        }
    }

    fn duration_place(&mut self, unit: u64) -> &mut Option<Cow<'a, str>> {
        if self.timed.is_none() {
            self.unit = unit;
        }
        &mut self.timed
    }

    /// A scalar by the name of a nested object.
    fn take_text(&mut self, name: &str, text: Option<Cow<'a, str>>) {
        let place = match name {
            "request" | "httpRequest" => &mut self.request,
            "url" => &mut self.path,
            _ => return,
        };
        if place.is_none() {
            *place = text;
        }
    }

    /// Takes the fields of a nested object; fields of the line itself win.
    fn take_nested(&mut self, name: &str, mut own: Self) {
        self.is_nested |= matches!(name, "request" | "httpRequest");
        match name {
            // ECS: `event.duration` is in ns.
            "event" => (own.timed, own.unit) = (own.elapsed.take(), 1),
            // Kong: the whole time, in ms.
            "latencies" => (own.timed, own.unit) = (own.request.take(), MS),
            // The size of the request.
            "request" | "req" => own.bytes = None,
            _ => {}
        }
        if self.timed.is_none() {
            (self.timed, self.unit) = (own.timed, own.unit);
        }
        for (place, value) in [
            (&mut self.method, own.method),
            (&mut self.path, own.path),
            (&mut self.query, own.query),
            (&mut self.status, own.status),
            (&mut self.bytes, own.bytes),
            (&mut self.latency, own.latency),
            (&mut self.address, own.address),
            (&mut self.agent, own.agent),
        ] {
            if place.is_none() {
                *place = value;
            }
        }
    }

    fn field_place(&mut self, name: &str) -> Option<&mut Option<Cow<'a, str>>> {
        Some(match name {
            "time" | "time_local" | "time_iso8601" | "timestamp" | "timeStamp" | "@timestamp"
            | "msec" => &mut self.stamp,
            "request_line" => &mut self.request,
            "method" | "request_method" => &mut self.method,
            "uri" | "path" | "request_uri" | "url" => &mut self.path,
            "query" | "args" | "query_string" => &mut self.query,
            "status" | "statusCode" => &mut self.status,
            "size" | "body_bytes_sent" | "bytes" => &mut self.bytes,
            "request_time" | "reqtime" => self.duration_place(SECOND),
            "elapsedTime" | "duration" | "elapsed" => &mut self.elapsed,
            "remote_addr" | "remoteAddr" | "remote_ip" | "client_ip" => &mut self.address,
            "host" => &mut self.host,
            "latency" => &mut self.latency,
            "http_x_forwarded_for" | "x_forwarded_for" | "x-forwarded-for" | "forwardedfor" => {
                &mut self.forwarded
            }
            "http_user_agent" | "user_agent" | "user-agent" | "userAgent" | "ua" => &mut self.agent,
            _ => return self.rare_field_place(name),
        })
    }

    #[rustfmt::skip]
    fn rare_field_place(&mut self, name: &str) -> Option<&mut Option<Cow<'a, str>>> {
        Some(match name {
            "ts" | "datetime" | "requestTime" => &mut self.stamp,
            "start_time" | "startTime" | "started_at" | "StartUTC" | "StartLocal"
            | "EdgeStartTimestamp" => &mut self.begin,
            "requestMethod" | "RequestMethod" | "http_method" | "httpMethod"
            | "ClientRequestMethod" | "http.request.method" => &mut self.method,
            "requestURI" | "requestUri" | "requestUrl" | "requested_uri" | "request_path"
            | "requestPath" | "RequestPath" | "original" | "url.original" | "url.path" | "resourcePath"
            | "originalRequestUriWithArgs" | "x-envoy-origin-path"
            | "ClientRequestURI" => &mut self.path,
            "queryString" | "requestQuery" | "url.query" => &mut self.query,
            "status_code" | "response_code" | "responseCode" | "DownstreamStatus" | "httpStatus"
            | "httpStatusCode" | "response_status" | "EdgeResponseStatus"
            | "http.response.status_code" => &mut self.status,
            "bytes_sent" | "content_length" | "DownstreamContentSize" | "response_bytes"
            | "responseBytes" | "response_body_size" | "EdgeResponseBytes" | "responseLength"
            | "sentBytes" => &mut self.bytes,
            "duration_s" | "duration_seconds" | "timeTaken" | "elapsedTimeS"
            | "http.server.request.duration" => self.duration_place(SECOND),
            "duration_ms" | "durationMs" | "elapsed_ms" | "elapsed_time" | "request_time_ms"
            | "response_time_ms" | "latency_ms" | "responseTime" | "responseLatency"
            | "OriginResponseDurationMs" => self.duration_place(MS),
            "duration_us" | "request_time_us" | "latency_us" | "time_us"
            | "reqtime_microsec" => self.duration_place(US),
            "duration_ns" | "Duration" | "total_ns" | "event.duration" => self.duration_place(1),
            "clientIp" | "clientIP" | "ClientIP" | "remoteIp" | "remoteIP" | "remote_host" | "ClientHost"
            | "ip" | "client.ip" | "source.ip" => &mut self.address,
            "downstream_remote_address" | "client.addr" => &mut self.peer,
            "request_User-Agent" => &mut self.agent,
            _ => return None,
        })
    }
}

/// `0.031s`, `31.5ms`: with its unit.
fn parse_latency(text: &str) -> Option<f64> {
    let units = [
        ("ns", 1),
        ("us", US),
        ("\u{b5}s", US),
        ("ms", MS),
        ("s", SECOND),
    ];
    units.iter().find_map(|(unit, ns)| {
        let number = decimal(text.strip_suffix(unit)?.as_bytes())?;
        Some(number * *ns as f64)
    })
}

fn parse_epoch(text: &[u8]) -> Option<f64> {
    let value = decimal(text)?;
    Some(match value.abs() {
        ..1e11 => value,
        ..1e14 => value / 1e3,
        ..1e17 => value / 1e6,
        _ => value / 1e9,
    })
}

fn field_bytes<'a>(field: Option<&'a Cow<'_, str>>) -> &'a [u8] {
    field.map_or(&[][..], |text| text.as_bytes())
}

impl<'de> Deserialize<'de> for JsonFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;
        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = JsonFields<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields<'de>, A::Error> {
                let mut fields = JsonFields::default();
                while let Some(name) = map.next_key::<JsonValue<'de>>()? {
                    let name = name.into_text();
                    if let Some(name) = name
                        .as_deref()
                        .filter(|name| NESTED.split(' ').any(|nested| nested == *name))
                    {
                        match map.next_value()? {
                            JsonValue::Text(text) => fields.take_text(name, text),
                            JsonValue::Fields(own) => fields.take_nested(name, *own),
                        }
                        continue;
                    }
                    match name.as_deref().and_then(|name| fields.field_place(name)) {
                        Some(place) if place.is_none() => {
                            *place = map.next_value::<JsonValue<'de>>()?.into_text()
                        }
                        Some(_) | None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// A scalar as text, or an object that may hold parts of a request. Other values are no text.
enum JsonValue<'a> {
    Text(Option<Cow<'a, str>>),
    Fields(Box<JsonFields<'a>>),
}

impl<'a> JsonValue<'a> {
    fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => text,
            Self::Fields(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for JsonValue<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ScalarVisitor;
        impl<'de> Visitor<'de> for ScalarVisitor {
            type Value = JsonValue<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a value")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_u64<E>(self, value: u64) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(Some(Cow::Owned(value.to_string()))))
            }

            fn visit_i64<E>(self, value: i64) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(Some(Cow::Owned(value.to_string()))))
            }

            fn visit_f64<E>(self, value: f64) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(Some(Cow::Owned(value.to_string()))))
            }

            fn visit_bool<E>(self, _: bool) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(None))
            }

            fn visit_unit<E>(self) -> Result<JsonValue<'de>, E> {
                Ok(JsonValue::Text(None))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<JsonValue<'de>, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(JsonValue::Text(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<JsonValue<'de>, A::Error> {
                let own = JsonFields::deserialize(MapAccessDeserializer::new(items))?;
                Ok(JsonValue::Fields(Box::new(own)))
            }
        }
        deserializer.deserialize_any(ScalarVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_no_request() {
        for (method, path, is_one) in [
            ("GET", "/a", true),
            ("GET", "http://host/a", true),
            ("GET", "", false),
            ("GET", "a", false),
            ("", "/a", false),
            ("get it", "/a", false),
        ] {
            let text = format!(r#"{{"time": 1, "method": "{method}", "uri": "{path}"}}"#);
            let fields = JsonFields::read(text.as_bytes()).unwrap();
            let line = fields.to_line(LogSource::Nginx, &mut StampParser::default());
            assert_eq!(line.map(|l| l.path), is_one.then_some(&b"/a"[..]), "{text}");
        }
    }

    #[test]
    fn the_host_is_the_client_in_the_logs_of_tomcat_only() {
        let text = br#"{"time": 1, "request": "GET / HTTP/1.1", "host": "h", "userAgent": "x"}"#;
        let fields = JsonFields::read(text).unwrap();
        let line = |source| fields.to_line(source, &mut StampParser::default()).unwrap();
        assert_eq!(line(LogSource::Tomcat10).address, b"h");
        assert_eq!(line(LogSource::Nginx).address, b"");
        assert_eq!(line(LogSource::Nginx).agent, b"x");
    }

    #[test]
    fn a_status_has_three_digits_however_it_is_written() {
        for (status, read) in [
            ("200", Some(200)),
            ("\"200\"", Some(200)),
            ("200.0", Some(200)),
            ("1000", None),
            ("1e9", None),
        ] {
            let text = format!(r#"{{"time": 1, "method": "GET", "uri": "/", "status": {status}}}"#);
            let fields = JsonFields::read(text.as_bytes()).unwrap();
            let line = fields
                .to_line(LogSource::Nginx, &mut StampParser::default())
                .unwrap();
            assert_eq!(line.status, read, "{status}");
        }
    }

    #[test]
    fn values_of_every_kind_are_read_or_passed_over() {
        let text = br#"{"time": 12.5, "extra": {"time": [1, null]}, "msec": 7, "uri": "/a\"b",
            "method": "GET", "status": 204, "size": null, "url": [1, {"x": 2}], "bytes": true}"#;
        let fields = JsonFields::read(text).unwrap();
        let line = fields
            .to_line(LogSource::Nginx, &mut StampParser::default())
            .unwrap();
        // The first name counts; a value that is no scalar is none.
        assert_eq!((line.arrival, line.status), (12.5, Some(204)));
        assert_eq!(line.bytes, None);
        assert_eq!(line.path, b"/a\"b");
        for text in [
            "",
            "[]",
            "7",
            "{\"time\": 1}",
            "{\"time\": 1, \"request\": 7}",
            "{\"a\"",
        ] {
            let fields = JsonFields::read(text.as_bytes());
            let line = fields.as_ref();
            let line = line.and_then(|f| f.to_line(LogSource::Nginx, &mut StampParser::default()));
            assert_eq!(line, None, "{text}");
        }
    }
}
