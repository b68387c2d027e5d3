//! A profile from a HAR file: the requests that a browser or a proxy recorded.
//!
//! Owns the choice of requests: those to the busiest host, with their bodies. The others are counted by
//! the reason. Profiles are shared, so few headers are kept, and values that look secret in queries, forms
//! and JSON become references. Text of a recording is never a variable.
//! Source: HAR 1.2, w3c.github.io/web-performance/specs/HAR/Overview.html.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::BufRead;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::error::LoadError;
use crate::profile::{LoadProfile, LogObservations, MixRequest, SCHEMA, request_class};
use crate::spec::{LARGEST_FILE, is_credential_header, is_secret_name};
use crate::template::{escape_text, has_variable};

/// Largest file, in bytes. Responses take up most of a file and are skipped.
const MOST: u64 = 1 << 30;

/// Most requests in a file.
const MOST_REQUESTS: usize = 10_000;

/// Bytes of all requests: no profile with more could be read.
const MOST_KEPT: usize = LARGEST_FILE as usize;

/// Most fields of a form.
const MOST_PAIRS: usize = 10_000;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// More names of secrets, without `-` and `_`.
const SECRETS: &str = "auth authorization credential credentials jsessionid pass passwd pwd session sessionid \
    signature";

/// The header that decides what the application answers with.
const KEPT_HEADER: &str = "Accept";

/// A profile, and the facts that its user should know.
#[derive(Debug)]
pub struct RecordedRequests {
    pub profile: LoadProfile,
    /// The host to which all replayed requests went.
    pub host: String,
    /// Requests of the file.
    pub requests: u64,
    /// Those that are not replayed, by why not.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Environment variables that replace secrets.
    pub references: BTreeSet<String>,
    /// Replayed requests that had credentials in a header, which are not kept.
    pub with_credentials: u64,
}

#[derive(Deserialize)]
struct HarFile {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: HarEntries,
}

/// As many as are read; the others are counted.
struct HarEntries {
    kept: Vec<HarEntry>,
    all: usize,
    is_too_large: bool,
}

#[derive(Deserialize)]
struct HarEntry {
    request: HarRequest,
    #[serde(default)]
    response: HarResponse,
    /// Chromium's mark of an answer that no server gave.
    #[serde(rename = "_fromCache")]
    from_cache: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: HarHeaders,
    post_data: Option<HarBody>,
}

#[derive(Deserialize)]
struct HarHeader {
    name: String,
    #[serde(default)]
    value: String,
}

/// The facts of a request's headers that count, however many it has.
#[derive(Default)]
struct HarHeaders {
    accept: Option<String>,
    has_credentials: bool,
}

/// The pairs of a form, at most [`MOST_PAIRS`].
#[derive(Default)]
struct HarPairs {
    kept: Vec<HarHeader>,
    is_cut: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HarBody {
    mime_type: String,
    text: String,
    /// A form may be in pairs instead.
    params: HarPairs,
    encoding: Option<String>,
}

impl HarBody {
    fn is_form(&self) -> bool {
        self.mime_type.contains("x-www-form-urlencoded")
    }

    fn form_text(&self) -> String {
        let word = |text: &str| escape_text(text.as_bytes());
        let pair = |pair: &HarHeader| format!("{}={}", word(&pair.name), word(&pair.value));
        if self.text.is_empty() {
            let pairs: Vec<String> = self.params.kept.iter().map(pair).collect();
            pairs.join("&")
        } else {
            self.text.clone()
        }
    }

    /// Whether a load would replace a part of what a profile with this body says. JSON may spell a brace
    /// `\u007b`, which is a brace when it is written again.
    fn has_variable(&self) -> bool {
        let is_written = |text: &str| {
            let json = serde_json::from_str::<serde_json::Value>(text);
            json.is_ok_and(|json| has_variable(&json.to_string()))
        };
        let is_text = |text: &str| has_variable(text) || is_written(text);
        has_variable(&self.mime_type) || !self.is_form() && is_text(&self.text)
    }

    fn kept_bytes(&self) -> usize {
        let pairs = self.params.kept.iter();
        let pairs = pairs.map(|pair| size_of::<HarHeader>() + pair.name.len() + pair.value.len());
        self.mime_type.len() + self.text.len() + pairs.sum::<usize>()
    }
}

impl HarEntry {
    fn kept_bytes(&self) -> usize {
        let HarRequest {
            method,
            url,
            headers,
            post_data,
        } = &self.request;
        let texts = [
            Some(method),
            Some(url),
            headers.accept.as_ref(),
            self.from_cache.as_ref(),
            Some(&self.response.content.mime_type),
        ];
        let texts = texts.into_iter().flatten().map(String::len);
        texts.sum::<usize>() + post_data.as_ref().map_or(0, HarBody::kept_bytes)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarResponse {
    status: i64,
    content: HarContent,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HarContent {
    mime_type: String,
}

impl<'de> Deserialize<'de> for HarEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = HarEntries;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of requests")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<HarEntries, A::Error> {
                let (mut kept, mut bytes) = (Vec::new(), 0);
                while kept.len() < MOST_REQUESTS
                    && bytes <= MOST_KEPT
                    && let Some(entry) = list.next_element::<HarEntry>()?
                {
                    bytes += entry.kept_bytes();
                    kept.push(entry);
                }
                let is_too_large = bytes > MOST_KEPT;
                let mut all = kept.len();
                let is_full = is_too_large || all >= MOST_REQUESTS;
                while is_full && list.next_element::<IgnoredAny>()?.is_some() {
                    all += 1;
                }
                Ok(HarEntries {
                    kept,
                    all,
                    is_too_large,
                })
            }
        }
        deserializer.deserialize_seq(ListVisitor)
    }
}

/// Hands on an element at a time, so that no list is ever whole in memory.
fn visit_list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    take: impl FnMut(T),
) -> Result<(), D::Error> {
    struct EachVisitor<T, F>(F, PhantomData<T>);
    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachVisitor<T, F> {
        type Value = ();

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a list of names and values")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(element) = list.next_element()? {
                (self.0)(element);
            }
            Ok(())
        }
    }
    deserializer.deserialize_seq(EachVisitor(take, PhantomData))
}

impl<'de> Deserialize<'de> for HarHeaders {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut headers = Self::default();
        visit_list(deserializer, |header: HarHeader| {
            headers.has_credentials |= is_credential_header(&header.name);
            if header.name.eq_ignore_ascii_case(KEPT_HEADER) {
                headers.accept.get_or_insert(header.value);
            }
        })?;
        Ok(headers)
    }
}

impl<'de> Deserialize<'de> for HarPairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut pairs = Self::default();
        visit_list(deserializer, |pair| {
            if pairs.kept.len() < MOST_PAIRS {
                pairs.kept.push(pair);
            } else {
                pairs.is_cut = true;
            }
        })?;
        Ok(pairs)
    }
}

/// Whether a file that begins so is a HAR file, and no log with JSON lines.
pub fn is_har(head: &[u8]) -> bool {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let dense = head.iter().filter(|b| !b.is_ascii_whitespace());
    let dense: Vec<u8> = dense.take(64).copied().collect();
    // The members of `log` (HAR 1.2 §2.1): some loggers have an object of this name too.
    let members = [
        "version", "creator", "browser", "pages", "entries", "comment",
    ];
    let member = dense.strip_prefix(b"{\"log\":{\"").unwrap_or_default();
    members.iter().any(|name| {
        let rest = member.strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"\":"))
    })
}

pub fn read_har(mut text: impl BufRead, origin: &str) -> Result<RecordedRequests, LoadError> {
    let refuse = |why: String| LoadError::plan("profile", format!("{origin}: {why}"));
    // RFC 8259 §8.1: one may be there.
    if text
        .fill_buf()
        .is_ok_and(|read| read.starts_with(BYTE_ORDER_MARK))
    {
        text.consume(BYTE_ORDER_MARK.len());
    }
    let mut text = text.take(MOST);
    let read = serde_json::from_reader(&mut text);
    let is_cut = text.limit() == 0;
    let file: HarFile = read.map_err(|error| {
        if is_cut {
            refuse("it is larger than 1 GiB; record less".to_owned())
        } else {
            refuse(format!(
                "it is not a complete HAR file, from line {} column {} on",
                error.line(),
                error.column()
            ))
        }
    })?;
    let HarEntries {
        kept: entries,
        all,
        is_too_large,
    } = file.log.entries;
    if is_too_large {
        let most = MOST_KEPT >> 20;
        return Err(refuse(format!(
            "its requests have more than {most} MiB; record less"
        )));
    }
    if all > MOST_REQUESTS {
        return Err(refuse(format!(
            "it has {all} requests, at most {MOST_REQUESTS} are read; record less"
        )));
    }
    let Some(host) = busiest_host(&entries) else {
        return Err(refuse("it has no request over HTTP".to_owned()));
    };
    let mut recorded = RecordedRequests {
        profile: LoadProfile {
            schema: SCHEMA,
            origin: origin.to_owned(),
            interval_seconds: 60.0,
            ..LoadProfile::default()
        },
        host,
        requests: entries.len() as u64,
        left_out: BTreeMap::new(),
        references: BTreeSet::new(),
        with_credentials: 0,
    };
    for entry in entries {
        recorded.add_entry(entry);
    }
    recorded.finish();
    if recorded.profile.requests.is_empty() {
        Err(refuse("it has no request that can be replayed".to_owned()))
    } else {
        Ok(recorded)
    }
}

/// Host and port, path and query of an HTTP URL.
pub(crate) fn split_url(url: &str) -> Option<(&str, &str)> {
    let (rest, port) = match url.strip_prefix("http://") {
        Some(rest) => (rest, ":80"),
        None => (url.strip_prefix("https://")?, ":443"),
    };
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // Names and passwords of users are not kept.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Some((host.strip_suffix(port).unwrap_or(host), path))
}

/// The host that most answers with data came from; images, styles and scripts may come from a cache
/// in front of the application, so they count only where nothing else does.
fn busiest_host(entries: &[HarEntry]) -> Option<String> {
    let mut hosts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for entry in entries {
        if let Some((host, _)) = split_url(&entry.request.url) {
            let counts = hosts.entry(host).or_default();
            counts.0 += u64::from(!is_static(&entry.response.content.mime_type));
            counts.1 += 1;
        }
    }
    // Of equals the page comes first, and is meant.
    let first = entries
        .first()
        .and_then(|entry| split_url(&entry.request.url));
    let first = first.map(|(host, _)| host);
    let busiest = hosts
        .into_iter()
        .max_by_key(|(host, counts)| (*counts, Some(*host) == first));
    busiest.map(|(host, _)| host.to_owned())
}

fn is_static(kind: &str) -> bool {
    [
        "image/",
        "font/",
        "video/",
        "audio/",
        "text/css",
        "javascript",
    ]
    .iter()
    .any(|part| kind.contains(part))
}

impl RecordedRequests {
    fn add_entry(&mut self, entry: HarEntry) {
        match self.sendable(&entry) {
            Ok(path) => self.add_request(entry.request, &path),
            Err(why) => *self.left_out.entry(why).or_default() += 1,
        }
    }

    /// The path of a request that can be sent again.
    fn sendable(&self, entry: &HarEntry) -> Result<String, &'static str> {
        let (host, path) = split_url(&entry.request.url).ok_or("not over HTTP")?;
        let body = entry.request.post_data.as_ref();
        match body {
            _ if host != self.host => Err("to another host"),
            _ if entry.from_cache.is_some() => Err("answered from the browser's cache"),
            _ if entry.response.status == 101 => Err("not over HTTP"),
            _ if entry.response.status == 0 => Err("without an answer"),
            Some(body) if body.encoding.is_some() || body.mime_type.starts_with("multipart/") => {
                Err("with a body that is not text")
            }
            Some(body) if body.params.is_cut => Err("with a form of more than 10,000 fields"),
            Some(body) if body.has_variable() => Err("with text that would be read as a variable"),
            _ if path.starts_with('/') => Ok(path.to_owned()),
            _ => Ok(format!("/{path}")),
        }
    }

    fn add_request(&mut self, request: HarRequest, path: &str) {
        self.with_credentials += u64::from(request.headers.has_credentials);
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut path = escape_braces(path);
        if !query.is_empty() {
            path = format!("{path}?{}", self.without_secrets(&escape_braces(query)));
        }
        let mut made = MixRequest {
            weight: 1.0,
            method: request.method,
            path,
            ..MixRequest::default()
        };
        if let Some(value) = request.headers.accept.filter(|value| !has_variable(value)) {
            made.headers.insert(KEPT_HEADER.to_owned(), value);
        }
        let is_there = |body: &HarBody| !(body.text.is_empty() && body.params.kept.is_empty());
        if let Some(body) = request.post_data.filter(is_there) {
            made.body = self.body_text(&body);
            if !body.mime_type.is_empty() {
                made.headers
                    .insert("Content-Type".to_owned(), body.mime_type);
            }
        }
        let known = self.profile.requests.iter_mut().find(|own| {
            (&own.method, &own.path, &own.body, &own.headers)
                == (&made.method, &made.path, &made.body, &made.headers)
        });
        match known {
            Some(own) => own.weight += 1.0,
            None => self.profile.requests.push(made),
        }
    }

    fn body_text(&mut self, body: &HarBody) -> String {
        if body.is_form() {
            return self.without_secrets(&escape_braces(&body.form_text()));
        }
        let json = serde_json::from_str::<serde_json::Value>(&body.text);
        let with_references = json.ok().and_then(|mut value| {
            let has_changed = self.replace_secrets(&mut value);
            has_changed.then(|| value.to_string())
        });
        with_references.unwrap_or_else(|| body.text.clone())
    }

    /// `a=1&token=x` without the values that look secret.
    fn without_secrets(&mut self, pairs: &str) -> String {
        let pairs: Vec<String> = pairs
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) if is_secret(name) && !value.is_empty() => {
                    format!("{name}={}", self.reference(name))
                }
                _ => pair.to_owned(),
            })
            .collect();
        pairs.join("&")
    }

    /// Replaces texts of fields that look secret; returns whether there was one.
    fn replace_secrets(&mut self, value: &mut serde_json::Value) -> bool {
        match value {
            serde_json::Value::Object(fields) => {
                let mut has_changed = false;
                for (name, field) in fields.iter_mut() {
                    if is_secret(name) && field.is_string() {
                        *field = self.reference(name).into();
                        has_changed = true;
                    } else {
                        has_changed |= self.replace_secrets(field);
                    }
                }
                has_changed
            }
            serde_json::Value::Array(values) => {
                let all = values.iter_mut();
                all.fold(false, |any, value| self.replace_secrets(value) | any)
            }
            _ => false,
        }
    }

    fn reference(&mut self, name: &str) -> String {
        let variable = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let variable: String = name.chars().map(variable).collect();
        let reference = format!("{{env:{variable}}}");
        self.references.insert(variable);
        reference
    }

    /// Names of requests, which must differ, and counts.
    fn finish(&mut self) {
        let mut uses: BTreeMap<String, u64> = BTreeMap::new();
        let mut sent = 0.0;
        for request in &mut self.profile.requests {
            let class = request_class(request.method.as_bytes(), request.path.as_bytes());
            let class = String::from_utf8_lossy(&class).into_owned();
            let uses = uses.entry(class.clone()).or_default();
            *uses += 1;
            request.name = Some(match *uses {
                1 => class,
                n => format!("{class} ({n})"),
            });
            sent += request.weight;
        }
        self.profile.observed = Some(LogObservations {
            requests: sent as u64,
            ..LogObservations::default()
        });
    }
}

fn is_secret(name: &str) -> bool {
    let short = name.to_ascii_lowercase().replace(['-', '_'], "");
    is_secret_name(name) || SECRETS.split(' ').any(|name| name == short)
}

/// Text in which no brace begins a variable. Source: RFC 3986 §2.1.
fn escape_braces(text: &str) -> String {
    text.replace('{', "%7B")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../tests/har/recorded.har");

    #[test]
    fn the_requests_to_the_application_become_a_mix() {
        let recorded = read_har(RECORDED.as_bytes(), "shop.har").unwrap();
        assert_eq!(recorded.host, "shop.example:8443");
        insta::assert_snapshot!(recorded.profile.toml_text().unwrap());
        insta::assert_debug_snapshot!((
            recorded.requests,
            recorded.left_out,
            recorded.references,
            recorded.with_credentials
        ));
    }

    #[test]
    fn requests_beyond_those_that_are_read_are_counted_only() {
        let entry = r#"{"request": {"method": "GET", "url": "http://x/"}}"#;
        // They would not even be requests.
        let more = ["{}"; 5].join(",");
        let text = format!(
            r#"{{"log": {{"entries": [{},{more}]}}}}"#,
            vec![entry; MOST_REQUESTS].join(",")
        );
        let refusal = read_har(text.as_bytes(), "shop.har")
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("it has 10005 requests"), "{refusal}");
    }

    #[test]
    fn of_equally_busy_hosts_the_page_itself_is_meant() {
        let entry = |host: &str| {
            format!(
                r#"{{"startedDateTime": "2023-10-10T13:55:30Z", "time": 1, "request": {{"method": "GET", "url": "https://{host}/a", "headers": []}}, "response": {{"status": 200, "content": {{"mimeType": "text/html"}}}}}}"#
            )
        };
        let entries = ["shop.example", "www.tracker.example"].map(entry).join(",");
        let text = format!(r#"{{"log": {{"entries": [{entries}]}}}}"#);
        let recorded = read_har(text.as_bytes(), "a.har").unwrap();
        assert_eq!(recorded.host, "shop.example");
    }

    #[test]
    fn a_form_may_be_in_pairs_and_a_host_may_name_its_usual_port() {
        let text = r#"{"log": {"entries": [
            {"request": {"method": "GET", "url": "https://x/a"}, "response": {"status": 200}},
            {"request": {"method": "POST", "url": "https://x:443/a", "postData": {
                "mimeType": "application/x-www-form-urlencoded",
                "params": [{"name": "q", "value": "a b&\u00e9"}, {"name": "pwd", "value": "geheim"}]}},
             "response": {"status": 200}}]}}"#;
        let recorded = read_har(text.as_bytes(), "a.har").unwrap();
        assert_eq!(
            recorded.profile.requests[1].body,
            "q=a%20b%26%C3%A9&pwd={env:PWD}"
        );
    }

    #[test]
    fn no_secret_and_no_variable_comes_from_a_recording() {
        let text = read_har(RECORDED.as_bytes(), "shop.har").unwrap();
        let text = text.profile.toml_text().unwrap();
        for secret in ["hunter2", "s3cr3t", "abc.def", "/etc/passwd"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let back = LoadProfile::parse_load_profile(&text).unwrap();
        assert_eq!(back.toml_text().unwrap(), text);
    }

    #[test]
    fn no_spelling_makes_recorded_text_a_variable() {
        for (kind, body) in [
            (
                "application/json",
                r#"{"a": "\u007benv:HOME}", "password": "x"}"#,
            ),
            ("application/json", r#"{"\u007bseq}": 1, "password": "x"}"#),
            ("{env:HOME}", "{}"),
            ("text/{csv:/etc/passwd:root}", "a"),
        ] {
            let body = serde_json::json!({ "mimeType": kind, "text": body });
            let text = format!(
                r#"{{"log": {{"entries": [
                {{"request": {{"method": "GET", "url": "http://x/"}}, "response": {{"status": 200}}}},
                {{"request": {{"method": "POST", "url": "http://x/a", "postData": {body}}}, "response": {{"status": 200}}}}]}}}}"#
            );
            let recorded = read_har(text.as_bytes(), "a.har").unwrap();
            assert_eq!(recorded.profile.requests.len(), 1, "{body}");
            let why = "with text that would be read as a variable";
            assert_eq!(recorded.left_out, [(why, 1)].into(), "{body}");
        }
    }

    #[test]
    fn a_recording_fills_no_memory() {
        let entry = |more: &str| {
            format!(
                r#"{{"log": {{"entries": [{{"request": {{"method": "GET", {more}}}}}, {{}}]}}}}"#
            )
        };
        let long = entry(&format!(r#""url": "http://x/{}""#, "a".repeat(MOST_KEPT)));
        let refusal = read_har(long.as_bytes(), "a.har").unwrap_err().to_string();
        assert!(refusal.contains("more than 64 MiB"), "{refusal}");
        let pairs = r#"{"name": ""},"#.repeat(MOST_PAIRS) + r#"{"name": "a"}"#;
        let form: HarPairs = serde_json::from_str(&format!("[{pairs}]")).unwrap();
        assert!(form.is_cut && form.kept.len() == MOST_PAIRS);
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_place() {
        for (text, why) in [
            (
                "{\"log\": {\"entries\": [",
                "not a complete HAR file, from line 1 column 21",
            ),
            ("{\"log\": {\"entries\": []}}", "no request over HTTP"),
            ("{\"log\": 5}", "not a complete HAR file"),
        ] {
            let error = read_har(text.as_bytes(), "a.har").unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("a.har"), "{error}");
        }
        assert!(is_har(
            b"\xEF\xBB\xBF{\n  \"log\" : {\n \"version\": \"1.2\""
        ));
        assert!(!is_har(
            b"{\"log\":{\"level\":\"info\"},\"message\":\"GET /\"}"
        ));
        assert!(!is_har(b"{\"log\":\"GET / HTTP/1.1\"}"));
        assert!(!is_har(b"{\"time\":1}"));
    }
}
