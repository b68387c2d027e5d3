//! The default formats of servers and proxies, by name, and detection of a log's format.
//!
//! Owns the catalogue and the choice. Facts: the projects' own documents: httpd mod_log_config and
//! Debian's apache2.conf (`vhost_combined`), nginx.org's packages (`main`), ingress-nginx
//! (`upstreaminfo`), Envoy "Access logging", Istio "Envoy access logs", AWS "Access logs for your
//! Application Load Balancer" and "Access logs for your Classic Load Balancer", Traefik "Access
//! logs", S3 "server access log format", HAProxy configuration manual 8.2.3 ("HTTP log format"),
//! Cloud Foundry's gorouter. In Envoy,
//! Istio, Traefik, HAProxy, gorouter and the Classic Load Balancer stamps are the begin of a request.

use std::borrow::Cow;

use loadline_files::LineJoiner;
use serde_json::{Map, Value};

use super::json::JsonFields;
use super::line::{AccessLogFormat, COMBINED, COMMON, LogSource};
use super::stamp::StampParser;
use crate::error::LoadError;

/// A line a format: its name, its text, and what its lines may go on with; between them a tab. The most
/// particular ones first: a line of an earlier one may look like one of a later one.
const KNOWN: &str = include_str!("formats.txt");

struct NamedFormat {
    name: &'static str,
    text: &'static str,
    rest: &'static str,
}

fn known_formats() -> impl Iterator<Item = NamedFormat> {
    KNOWN.lines().filter_map(|line| {
        let mut parts = line.split('\t');
        Some(NamedFormat {
            name: parts.next()?,
            text: parts.next()?,
            rest: parts.next().unwrap_or_default(),
        })
    })
}

pub fn format_names() -> Vec<&'static str> {
    let general = ["common", "combined", "json", "ltsv"].into_iter();
    general
        .chain(known_formats().map(|known| known.name))
        .collect()
}

const NGINX: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                     $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// The formats that read the begin of lines with more in them.
const OPEN: [&str; 2] = ["common", "vhost_combined"];

const SAMPLE: usize = 200;
const SHOWN: usize = 200;

#[derive(Debug, Clone)]
pub struct DetectedFormat {
    pub format: AccessLogFormat,
    pub name: String,
    /// Its lines have a duration that is not read, because its unit depends on the server.
    pub lacks_unit: bool,
    /// The unread part of a line that may be a duration: its end, or fields of other names.
    pub unread: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLogFormat {
    pub line: String,
    /// How near the line comes to a format, in words.
    pub closest: Option<String>,
}

/// A format by one of [`format_names`], or by the server's own text.
pub fn format_by_name(name: &str, source: LogSource) -> Result<AccessLogFormat, LoadError> {
    match name {
        "common" | "combined" => Ok(AccessLogFormat::common_log(source)),
        "json" | "ltsv" => Ok(AccessLogFormat::json_lines(source)),
        text => match known_formats().find(|known| known.name == name) {
            Some(known) => AccessLogFormat::with_rest(known.text, known.rest, source),
            None => AccessLogFormat::from_format_text(text, source),
        },
    }
}

/// Detects the format of a log from its first lines: the format that reads the most lines; among
/// several the most specific. Errors: [`UnknownLogFormat`] when no format reads a single line.
pub fn detect_format(sample: &[u8], source: LogSource) -> Result<DetectedFormat, UnknownLogFormat> {
    let lines = sample.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    let lines = lines.filter(|l| !l.is_empty()).take(SAMPLE);
    let mut joiner = LineJoiner::default();
    let lines: Vec<Cow<'_, [u8]>> = lines.filter_map(|line| joiner.join_line(line)).collect();
    let lines: Vec<&[u8]> = lines.iter().map(|line| &**line).collect();
    let unknown = |closest| {
        let line = lines.iter().find(|line| !line.starts_with(b"#"));
        UnknownLogFormat {
            closest,
            line: shown_line(line.copied().unwrap_or_default()),
        }
    };
    let mut directives = lines.iter();
    if let Some(fields) = directives.find_map(|line| line.strip_prefix(b"#Fields:")) {
        return Ok(DetectedFormat {
            format: w3c_format(fields, source).map_err(|why| unknown(Some(why)))?,
            name: "W3C extended".to_owned(),
            lacks_unit: false,
            unread: None,
        });
    }
    let candidates = format_candidates(source);
    let counts: Vec<_> = candidates.iter().map(|c| c.count_matches(&lines)).collect();
    let most = counts.iter().copied().max().unwrap_or(0);
    // A format that reads nine tenths as many lines is as good, and has more fields.
    let good = |count: usize| count > 0 && count * 10 >= most * 9;
    let best = candidates.iter().zip(&counts).find(|(_, n)| good(**n));
    let Some((best, _)) = best else {
        let first = lines.first().copied().unwrap_or_default();
        return Err(unknown(closest_format(&candidates, first)));
    };
    let (is_json, mut fields) = (best.format.is_json(), lines.iter());
    let unread = match is_json {
        true => fields.find_map(|line| unread_durations(line)),
        false if OPEN.contains(&best.name.as_str()) => fields
            .filter_map(|line| best.format.unread_rest(line))
            .find(|rest| rest.iter().any(u8::is_ascii_digit))
            .map(|rest| shown_line(rest.trim_ascii())),
        false => None,
    };
    let is_object = |line: &&[u8]| line.trim_ascii_start().starts_with(b"{");
    let mut objects = lines.iter().filter_map(|line| JsonFields::read(line));
    Ok(DetectedFormat {
        format: best.format.clone(),
        name: if is_json && !lines.iter().any(is_object) {
            "ltsv".to_owned()
        } else {
            best.name.clone()
        },
        lacks_unit: best.format.lacks_unit()
            || is_json && objects.any(|fields| fields.lacks_unit(source)),
        unread,
    })
}

/// The fields of a line of JSON without a known duration that may be one, by their names.
fn unread_durations(line: &[u8]) -> Option<String> {
    const NAMES: [&str; 7] = ["durat", "latenc", "elapsed", "took", "taken", "time", "_ms"];
    let fields = JsonFields::read(line).filter(|fields| !fields.has_duration())?;
    let all: Map<String, Value> = serde_json::from_slice(line).ok()?;
    let named = all.iter().filter(|(name, value)| {
        let lower = name.to_ascii_lowercase();
        let text = value.to_string();
        // No stamp either.
        let is_number = text
            .trim_matches('"')
            .starts_with(|c: char| c.is_ascii_digit());
        let is_short = is_number && text.len() < 20 && !lower.contains("stamp");
        is_short && NAMES.iter().any(|part| lower.contains(part)) && !fields.knows(name)
    });
    let named: Vec<String> = named
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The format that a log itself names: `#Fields: date time cs-method ...`, of CloudFront and IIS.
/// Source: W3C "Extended Log File Format"; AWS "Standard logs" of CloudFront. Errors: What lacks.
pub(super) fn w3c_format(fields: &[u8], source: LogSource) -> Result<AccessLogFormat, String> {
    let fields = String::from_utf8_lossy(fields);
    let needed = ["date", "time", "cs-method", "cs-uri-stem"].into_iter();
    let lacking = needed.filter(|name| !fields.split_whitespace().any(|field| field == *name));
    let lacking: Vec<&str> = lacking.collect();
    if !lacking.is_empty() {
        return Err(format!("its #Fields lack {}", lacking.join(", ")));
    }
    // CloudFront separates the values by tabs, and the names by blanks.
    let separator = if fields.contains("x-edge-") || fields.contains('\t') {
        "\t"
    } else {
        " "
    };
    let piece = |field: &str| match field {
        "date" => format!("%{{yyyy-MM-dd{separator}HH:mm:ss}}t"),
        "cs-method" => "%m".to_owned(),
        "cs-uri-stem" => "%U".to_owned(),
        "cs-uri-query" => "%q".to_owned(),
        "sc-status" => "%s".to_owned(),
        "sc-bytes" => "%b".to_owned(),
        "c-ip" => "%a".to_owned(),
        "cs(User-Agent)" => "%{User-Agent}i".to_owned(),
        "x-forwarded-for" => "%{X-Forwarded-For}i".to_owned(),
        "time-taken" => "%{taken}T".to_owned(),
        _ => "%{other}o".to_owned(),
    };
    // The stamp of `date` reaches over `time`, which stands next to it.
    let fields = fields.split_whitespace().filter(|field| *field != "time");
    let text: Vec<String> = fields.map(piece).collect();
    let format = AccessLogFormat::with_rest(&text.join(separator), "", source);
    let mut format = format.map_err(|error| error.to_string())?;
    format.is_w3c = true;
    Ok(format)
}

/// The format that the begin of a line follows furthest, the number of its first column that differs,
/// and the line from there; of JSON, what lacks.
fn closest_format(candidates: &[FormatCandidate], line: &[u8]) -> Option<String> {
    if let Some(fields) = JsonFields::read(line) {
        return Some(format!("it is JSON without {}", fields.lacking()));
    }
    if [b"[", b"{", b"[{".as_slice()].contains(&line.get(..2).unwrap_or(line)) {
        return Some(
            "it is JSON, but not one object per line: convert it with jq -c '.[]'".to_owned(),
        );
    }
    let reach = |candidate: &FormatCandidate| candidate.format.read_length(line);
    let best = candidates.iter().max_by_key(|candidate| reach(candidate))?;
    let begin = &line[..reach(best).1];
    let column = begin.split(|b| *b == b' ').count();
    let rest = String::from_utf8_lossy(&line[begin.len()..]);
    let rest: String = rest.chars().take(60).collect();
    let name = &best.name;
    let closest = format!("closest is {name}, from which column {column} differs: {rest}");
    (column > 3 || rest.starts_with(['[', '"'])).then_some(closest)
}

pub(super) fn shown_line(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    let dots = if line.len() > SHOWN { "..." } else { "" };
    let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(printable).collect::<String>() + dots
}

struct FormatCandidate {
    name: String,
    format: AccessLogFormat,
    is_strict: bool,
}

impl FormatCandidate {
    fn count_matches(&self, lines: &[&[u8]]) -> usize {
        let mut stamps = StampParser::default();
        let mut reads = |line: &&&[u8]| {
            if self.is_strict {
                self.format.fits_line(line, &mut stamps)
            } else {
                self.format.read(line, &mut stamps).is_some()
            }
        };
        lines.iter().filter(&mut reads).count()
    }
}

fn format_candidates(source: LogSource) -> Vec<FormatCandidate> {
    let mut candidates = vec![FormatCandidate {
        name: "json".to_owned(),
        format: AccessLogFormat::json_lines(source),
        is_strict: true,
    }];
    let mut add = |name: &str, text: &str, rest: &str, is_strict| {
        candidates.extend(
            AccessLogFormat::with_rest(text, rest, source).map(|format| FormatCandidate {
                name: name.to_owned(),
                format,
                is_strict,
            }),
        );
    };
    for known in known_formats() {
        add(known.name, known.text, known.rest, false);
    }
    let forwarded = format!("{NGINX} \"$http_x_forwarded_for\"");
    let combined = format!("{COMMON}{COMBINED}");
    for (name, text) in [("combined", &combined), ("common", &COMMON.to_owned())] {
        // A whole number behind the line is a duration with servers that call it %D.
        if source != LogSource::Nginx {
            add(&format!("{name} and %D"), &format!("{text} %D"), "", true);
            let seconds = format!("{text} %{{seconds}}o/%D");
            add(&format!("{name} and %T/%D"), &seconds, "", true);
            let starred = format!("{text} **%p/%D**");
            add(&format!("{name} and **%T/%D**"), &starred, "", true);
        }
    }
    for (name, text) in [
        ("nginx main", forwarded.as_str()),
        ("combined", NGINX),
        ("common", COMMON_NGINX),
    ] {
        for (end, shown, is_strict) in TIMED {
            let timed = format!("{text} {end}");
            add(&format!("{name} and {shown}"), &timed, "", is_strict);
        }
    }
    add("nginx main", &forwarded, "", true);
    add("combined", &combined, "", true);
    add("common", COMMON, COMBINED, false);
    candidates
}

const BOTH: &str = "$request_time $upstream_response_time";

/// How lines of nginx and others go on with a duration: the format, its name, whether the line ends
/// with it. Without a name in the line it is none unless it has the ms that nginx writes: a count of
/// bytes has no name there either.
const TIMED: [(&str, &str, bool); 9] = [
    ("$upstream_time", "$request_time", true),
    ("rt=$request_time", "rt=$request_time", false),
    ("request_time=$request_time", "request_time=", false),
    ("$upstream_time $upstream_time", BOTH, true),
    ("\"$upstream_time\" \"$upstream_time\"", BOTH, true),
    ("${duration_ms}ms", "ms", true),
    ("${duration_us}us", "us", true),
    ("(${duration_ms} ms)", "ms", true),
    ("[${duration_ms} ms]", "ms", true),
];

const COMMON_NGINX: &str =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";

#[cfg(test)]
mod tests {
    use super::*;

    /// What a format says of a line: its name, begin in ms after the second, method and path,
    /// status, bytes, duration in µs, client.
    fn found(line: &str, source: LogSource) -> String {
        let found = detect_format(line.as_bytes(), source).unwrap();
        let mut stamps = StampParser::default();
        let fields = super::super::json::JsonFields::read(line.as_bytes());
        let line = match &fields {
            Some(fields) => found.format.json_line(fields, &mut stamps),
            None => found.format.read(line.as_bytes(), &mut stamps),
        };
        let line = line.unwrap();
        let text = String::from_utf8_lossy;
        format!(
            "{}: {:.3} {} {} {:?} {:?} {:?} us, {} {} {}{}",
            found.name,
            line.arrival,
            text(line.method),
            text(line.path),
            line.status,
            line.bytes,
            line.duration_ns.map(|ns| ns / 1000),
            text(line.address),
            text(line.forwarded),
            text(line.agent),
            if found.lacks_unit { " (no unit)" } else { "" },
        )
    }

    #[test]
    fn lines_of_every_server_are_told_apart_by_what_is_in_them() {
        let mut all = String::new();
        for (line, source) in LINES {
            all += found(line, source).trim_end();
            all.push('\n');
        }
        insta::assert_snapshot!(all, @r#"
        common: 971211336.000 GET /apache_pb.gif Some(200) Some(2326) None us, 127.0.0.1
        combined: 971211336.000 GET /apache_pb.gif Some(200) Some(2326) None us, 127.0.0.1  Mozilla/4.08 [en] (Win98; I ;Nav)
        combined and %D: 971211336.000 GET /a Some(200) Some(2326) Some(2500) us, 127.0.0.1  curl/7.88.1
        common and %D: 971211333.500 GET /a Some(200) Some(2326) Some(2500000) us, 127.0.0.1
        common and %D: 971211336.000 GET /a Some(200) Some(2326) None us, 127.0.0.1   (no unit)
        vhost_combined: 971211336.000 GET /a?b=c Some(200) Some(2326) None us, 192.0.2.7  curl/7.88.1
        nginx main: 971211336.000 GET /a Some(200) Some(612) None us, 192.0.2.7 198.51.100.4 curl/7.88.1
        combined and $request_time: 971211335.750 GET /a Some(200) Some(612) Some(250000) us, 192.0.2.7  curl/7.88.1
        ingress-nginx: 971211335.750 GET /a Some(200) Some(612) Some(250000) us, 192.0.2.7  curl/7.88.1
        traefik: 1747310790.000 GET /api Some(200) Some(1024) Some(150000) us, 192.168.1.100  Mozilla/5.0
        json: 1667348561.640 GET /browse Some(200) Some(379) Some(80879) us, 10.9.129.184  kube-probe/1.23
        istio-1.4: 1556021242.912 GET /a Some(200) Some(5723) Some(32000) us, 10.1.1.1 10.1.1.1 curl/7.64.0
        istio-1.8: 1587643642.912 GET /a Some(200) Some(5723) Some(32000) us, 10.1.1.1 10.1.1.1 curl/7.64.0
        traefik: 1747310790.000 GET /api Some(200) Some(10) Some(15000) us, 192.0.2.1  a " b
        haproxy: 1233922454.655 GET /index.html None Some(0) Some(109000) us, 10.0.1.2
        envoy: 1460751420.310 POST /api/v1/locations Some(204) Some(0) Some(226000) us,  10.0.35.28 nsq2http
        istio: 1606339578.409 GET /status/418 Some(418) Some(135) Some(4000) us, 10.44.1.23 - curl/7.73.0-DEV
        json: 1606339578.409 GET /status/418 Some(418) Some(135) Some(4000) us, 10.44.1.23  curl/7.73.0-DEV
        alb: 1530570168.364 GET / Some(200) Some(57) Some(11822640) us, 192.168.131.39  curl/7.46.0
        haproxy: 1233922454.655 GET /index.html Some(200) Some(2750) Some(109000) us, 10.0.1.2
        haproxy: 1233922454.655 GET /index.html Some(200) Some(2750) Some(109000) us, 10.0.1.2
        json: 971211335.997 GET /a Some(200) Some(2326) Some(2500) us, 192.0.2.7
        json: 971211336.000 GET /a Some(200) Some(12) Some(250000) us, 192.0.2.7
        "#);
    }

    /// Formats that only a whole log shows: the directives of the extended format, a frame around each
    /// line, an object with the request, and an unread end.
    #[test]
    fn whole_logs_are_told_apart() {
        let said = |text: &str| {
            let found = detect_format(text.as_bytes(), LogSource::Unsaid).unwrap();
            let unread = found.unread.unwrap_or_default();
            let mut builder = super::super::ProfileBuilder::new(found.format, 60.0, false);
            builder.read(text.as_bytes()).unwrap();
            let seen = builder.build_profile("x").observed.unwrap();
            let longest = seen.duration_ms.map(|durations| durations.max.round());
            format!(
                "{}: {} requests, {} rejected, {longest:?} ms {unread}",
                found.name, seen.requests, seen.rejected_lines
            )
            .trim_end()
            .to_owned()
        };
        let cloudfront = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs-uri-stem sc-status time-taken\n\
            2023-10-10\t13:55:31\tLAX1\t239\t192.0.2.2\tGET\t/orders/1\t200\t0.031\n";
        let iis = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status time-taken\n\
            2023-10-10 13:55:31 10.0.0.1 GET /orders/1 - 443 10.0.0.9 curl/8.1 200 15\n";
        let caddy = r#"{"level":"info","ts":1696946131.1,"request":{"remote_ip":"10.0.0.1","method":"GET","uri":"/a","headers":{"Accept":["*/*"]}},"duration":0.004,"size":12,"status":200}"#;
        let google = r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://x/a","status":200,"latency":"0.031s"},"timestamp":"2023-10-10T13:55:31.1Z"}"#;
        let combined =
            r#"10.1.2.3 - - [10/Oct/2023:13:55:31 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl""#;
        let cri = format!(
            "2023-10-10T13:55:31.1Z stdout F {combined} 345 0.021 [up] [] 10.0.0.5:80 512 0.020 200 8e"
        );
        let docker = format!(
            "{{\"log\":{},\"stream\":\"stdout\"}}",
            serde_json::json!(format!("{combined}\n"))
        );
        let elb = "2023-10-10T13:55:31.5Z lb 192.0.2.7:2817 10.0.0.1:80 0.001 0.020 0.010 200 200 0 29 \"GET http://shop.example:80/a HTTP/1.1\" \"curl/7.38.0\" - -\n\
            2023-10-10T13:55:32.5Z lb 192.0.2.7:2817 - -1 -1 -1 504 0 0 0 \"GET http://shop.example:80/b HTTP/1.1\" \"curl/7.38.0\" - -\n\
            2023-10-10T13:55:33.5Z lb 192.0.2.7:2817 10.0.0.1:80 0.001 0.000 0.000 - - 82 305 \"- - - \" \"-\" - -\n";
        let gorouter = r#"shop.example - [2023-10-10T13:55:36.123456789Z] "GET /a HTTP/1.1" 200 0 12 "-" "curl" "10.0.0.1:1" "10.0.0.2:61000" x_forwarded_for:"192.0.2.7" x_forwarded_proto:"https" vcap_request_id:"x" response_time:0.012345 gorouter_time:0.000123 app_id:"x""#;
        let objects = [
            r#"{"ip":"192.0.2.7","requestTime":"09/Apr/2021:12:34:56 +0000","httpMethod":"GET","path":"/a","status":"200","responseLength":"12","responseLatency":"35"}"#,
            r#"{"latencies":{"request":36,"proxy":14},"request":{"method":"GET","uri":"/a","size":"10"},"response":{"status":200,"size":"12"},"started_at":1696946136123}"#,
            r#"{"time":"2023-10-10T13:55:36Z","properties":{"clientIP":"192.0.2.7","httpMethod":"GET","requestUri":"/a","httpStatus":200,"timeTaken":0.037}}"#,
            r#"{"time":1696946136123,"req":{"method":"GET","url":"/a"},"res":{"statusCode":200},"responseTime":38}"#,
            r#"{"@timestamp":"2023-10-10T13:55:36.123Z","http.request.method":"GET","url.path":"/a","event.duration":39000000}"#,
            r#"{"@timestamp":"2023-10-10T13:55:36.123Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/a"},"event":{"duration":40000000}}"#,
            r#"{"client.addr":"10.0.0.1:1","method":"GET","status":200,"timestamp":"2023-10-10T13:55:36.123Z","total_ns":"41520000","uri":"http://x/a"}"#,
            // Azure: Application Gateway and Front Door.
            r#"{"timeStamp":"2023-10-10T13:55:36+00:00","properties":{"clientIP":"192.0.2.7","httpMethod":"GET","originalRequestUriWithArgs":"/a?b=1","requestUri":"/a","httpStatus":200,"timeTaken":0.043}}"#,
            r#"{"time":"2023-10-10T13:55:36.1Z","properties":{"httpMethod":"GET","requestUri":"https://x:443/a","responseBytes":"2","clientIp":"192.0.2.7","timeTaken":"0.044","httpStatusCode":"200"}}"#,
            // API Gateway's own example, Cloudflare's Logpush, Envoy Gateway.
            r#"{"requestId":"a","ip":"192.0.2.7","requestTime":"10/Oct/2023:13:55:36 +0000","httpMethod":"GET","resourcePath":"/a","status":"200","responseLength":"12"}"#,
            r#"{"ClientIP":"192.0.2.7","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeStartTimestamp":"2023-10-10T13:55:36Z","EdgeResponseStatus":200,"OriginResponseDurationMs":46}"#,
            r#"{"start_time":"2023-10-10T13:55:36.123Z","method":"GET","x-envoy-origin-path":"/a","response_code":"200","duration":"47","x-forwarded-for":"192.0.2.7"}"#,
        ];
        let objects = objects.map(said);
        insta::assert_snapshot!(objects.join("\n"), @"
        json: 1 requests, 0 rejected, Some(35.0) ms
        json: 1 requests, 0 rejected, Some(36.0) ms
        json: 1 requests, 0 rejected, Some(37.0) ms
        json: 1 requests, 0 rejected, Some(38.0) ms
        json: 1 requests, 0 rejected, Some(39.0) ms
        json: 1 requests, 0 rejected, Some(40.0) ms
        json: 1 requests, 0 rejected, Some(42.0) ms
        json: 1 requests, 0 rejected, Some(43.0) ms
        json: 1 requests, 0 rejected, Some(44.0) ms
        json: 1 requests, 0 rejected, None ms
        json: 1 requests, 0 rejected, Some(46.0) ms
        json: 1 requests, 0 rejected, Some(47.0) ms
        ");
        let ltsv = "time:10/Oct/2023:13:55:36 +0000\thost:192.0.2.7\tmethod:GET\turi:/a\tstatus:200\treqtime:0.048";
        let ltsv_line = "host:192.0.2.7\ttime:[10/Oct/2023:13:55:36 +0000]\treq:GET /a HTTP/1.1\tstatus:200\ttaken:49000";
        let s3 = r#"79a59d bucket [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59d 3E57427F REST.GET.OBJECT a "GET /bucket/a HTTP/1.1" 200 - 113 113 50 10 "-" "S3Console/0.4" - s9lzHYrF SigV4"#;
        let haproxy = r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/51 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /a HTTP/2.0""#;
        let (begin, end) = combined.split_at(40);
        let cut = |flag: &str, part: &str| format!("2023-10-10T13:55:31.1Z stdout {flag} {part}\n");
        let parts = cut("P", begin) + &cut("F", end);
        let others = [
            said(ltsv),
            said(ltsv_line),
            said(s3),
            said(&format!(
                "<134>1 2009-02-06T12:14:14.655Z lb haproxy 14389 - - {haproxy}"
            )),
            said(&parts),
            said(&format!("{combined} 0.052 0.050")),
            said(&format!("{combined} 0.050 0.053")),
            said(&format!("{combined} 0.054 -")),
            said(&format!("{combined} 0.052 2.31")),
            said(&format!("{combined} 0.052 1696946131.123")),
            said(&format!("{combined} 1200 0")),
            said(&format!("{combined} 55ms")),
            said(&format!("{combined} [56 ms]")),
            said(&format!("{combined} \"0.057\" \"0.050\"")),
            said(&format!("{combined} request_time=0.058 x=1")),
            said(&format!(
                "2023-10-10T13:55:31.5+00:00 web nginx[12]: {combined}"
            )),
            said(&format!(
                "2023-10-10 13:55:30,123 INFO  [io.qua.htt.access-log] (executor-thread-1) {combined}"
            )),
            said(&format!("2023-10-10T13:55:30.123Z {combined}")),
            said(
                r#"  {"time":"2023-10-10T13:55:36Z","method":"GET","path":"/a","status":200,"taken":12}"#,
            ),
        ];
        insta::assert_snapshot!(others.join("\n"), @"
        ltsv: 1 requests, 0 rejected, Some(48.0) ms
        ltsv: 1 requests, 0 rejected, Some(49.0) ms
        s3: 1 requests, 0 rejected, Some(50.0) ms
        haproxy: 1 requests, 0 rejected, Some(51.0) ms
        combined: 1 requests, 0 rejected, None ms
        combined and $request_time $upstream_response_time: 1 requests, 0 rejected, Some(52.0) ms
        combined and $request_time $upstream_response_time: 1 requests, 0 rejected, Some(53.0) ms
        combined and $request_time $upstream_response_time: 1 requests, 0 rejected, Some(54.0) ms
        common: 1 requests, 0 rejected, None ms 0.052 2.31
        common: 1 requests, 0 rejected, None ms 0.052 1696946131.123
        common: 1 requests, 0 rejected, None ms 1200 0
        combined and ms: 1 requests, 0 rejected, Some(55.0) ms
        combined and ms: 1 requests, 0 rejected, Some(56.0) ms
        combined and $request_time $upstream_response_time: 1 requests, 0 rejected, Some(57.0) ms
        combined and request_time=: 1 requests, 0 rejected, Some(58.0) ms
        combined: 1 requests, 0 rejected, None ms
        combined: 1 requests, 0 rejected, None ms
        combined: 1 requests, 0 rejected, None ms
        json: 1 requests, 0 rejected, None ms taken: 12
        ");
        let all = [
            said(gorouter),
            said(elb),
            said(&format!("[pod/web-7c9d/web] {combined}")),
            said(&format!("{combined} 2/2500")),
            said(&format!("{combined} \"-\" rt=0.010 uct=\"0.000\"")),
            said(cloudfront),
            said(iis),
            said(caddy),
            said(google),
            said(&cri),
            said(&docker),
            said(&format!("web-1  | {combined}")),
            said(&format!("{combined} rt=0.010 urt=\"0.009\"")),
            said(&format!("{combined} cost=7")),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
        gorouter: 1 requests, 0 rejected, Some(12.0) ms
        elb: 2 requests, 1 rejected, Some(31.0) ms
        combined: 1 requests, 0 rejected, None ms
        combined and %T/%D: 1 requests, 0 rejected, None ms
        nginx main and rt=$request_time: 1 requests, 0 rejected, Some(10.0) ms
        W3C extended: 1 requests, 0 rejected, Some(31.0) ms
        W3C extended: 1 requests, 0 rejected, Some(15.0) ms
        json: 1 requests, 0 rejected, Some(4.0) ms
        json: 1 requests, 0 rejected, Some(31.0) ms
        ingress-nginx: 1 requests, 0 rejected, Some(21.0) ms
        combined: 1 requests, 0 rejected, None ms
        combined: 1 requests, 0 rejected, None ms
        combined and rt=$request_time: 1 requests, 0 rejected, Some(10.0) ms
        common: 1 requests, 0 rejected, None ms cost=7
        ");
    }

    /// Counts of bytes next to durations, fields that change, queries apart, and durations without a
    /// unit: the path that is sent, the longest duration in ms, and the part that counts as unread.
    #[test]
    fn no_query_and_no_duration_is_lost_or_made_up() {
        const C: &str =
            r#"192.0.2.7 - - [10/Oct/2023:13:55:31 +0000] "GET /a HTTP/1.1" 200 512 "-" "c""#;
        let json = |rest: &str| format!(r#"{{"time":1696946131,"method":"GET",{rest}}}"#);
        let iis = "#Fields: date time cs-method cs-uri-stem cs-uri-query sc-status time-taken\n\
                   2023-10-10 13:55:31 GET /a b=1 200 15\n\
                   #Fields: date time cs-method cs-uri-stem cs-uri-query sc-status sc-bytes time-taken\n\
                   2023-10-10 13:55:32 GET /a b=1 200 98765 16\n\
                   #Fields: time cs-method cs-uri-stem sc-status time-taken\n\
                   13:55:33 GET /a 200 17";
        let seconds = iis.replace(" 16\n", " 0.250\n");
        for (log, path, longest, unread) in [
            (format!("{C} 345 0.105"), "/a", None, "345 0.105"),
            (format!("{C} 16000us"), "/a", Some(16.0), ""),
            (format!("{C} (16 ms)"), "/a", Some(16.0), ""),
            (format!("{C} **0/2500**"), "/a", None, "no unit"),
            (format!("{C} 345 1.52"), "/a", None, "345 1.52"),
            (format!("{C} 3.21"), "/a", None, "3.21"),
            (format!("{C}\n{C} \"0.105\""), "/a", None, "\"0.105\""),
            (iis.to_owned(), "/a?b=1", Some(16.0), ""),
            (seconds, "/a?b=1", Some(250.0), ""),
            (iis.replace(' ', "\t"), "/a?b=1", Some(16.0), ""),
            (json(r#""path":"/a","query":"?b=1""#), "/a?b=1", None, ""),
            (json(r#""uri":"/a","args":"-""#), "/a", None, ""),
            (json(r#""uri":"/a?b=1","args":"b=1""#), "/a?b=1", None, ""),
            (
                json(r#""url":{"path":"/a","query":"b=1"}"#),
                "/a?b=1",
                None,
                "",
            ),
            (json(r#""request":"/a","query":"?b=1""#), "/a?b=1", None, ""),
            (
                json(r#""path":"/a","duration":"0.015s""#),
                "/a",
                Some(15.0),
                "",
            ),
            (
                json(r#""path":"/a","elapsed":"2000µs""#),
                "/a",
                Some(2.0),
                "",
            ),
            (
                json(r#""path":"/a","took":"105ms""#),
                "/a",
                None,
                "took: \"105ms\"",
            ),
            (json(r#""path":"/a","duration":105"#), "/a", None, "no unit"),
            (
                json(r#""path":"/a","elapsedTime":"105""#),
                "/a",
                None,
                "no unit",
            ),
        ] {
            let found = detect_format(log.as_bytes(), LogSource::Unsaid).unwrap();
            let no_unit = found.lacks_unit.then(|| "no unit".to_owned());
            let said = found.unread.or(no_unit).unwrap_or_default();
            let mut builder = super::super::ProfileBuilder::new(found.format, 60.0, false);
            builder.read(log.as_bytes()).unwrap();
            let profile = builder.build_profile("x");
            let durations = profile.observed.unwrap().duration_ms;
            let max = durations.map(|durations| durations.max.round());
            assert_eq!((max, said.as_str()), (longest, unread), "{log}");
            assert_eq!(profile.requests[0].path, path, "{log}");
        }
        for (log, why) in [
            (
                json(r#""route":"/a""#),
                "it is JSON without a path by a usual name",
            ),
            (
                "[\n  {\n".to_owned(),
                "it is JSON, but not one object per line",
            ),
            (
                "[{\"time\": 1}]".to_owned(),
                "it is JSON, but not one object per line",
            ),
            (
                "#Fields: time cs-method cs-uri-stem\n13:55:33 GET /a".to_owned(),
                "its #Fields lack date",
            ),
            (
                C.replacen("- - ", "- ", 1),
                "closest is common, from which column 3 differs: [10/Oct",
            ),
        ] {
            let error = detect_format(log.as_bytes(), LogSource::Unsaid).unwrap_err();
            let said = error.closest.unwrap_or_default();
            assert!(said.starts_with(why), "{log}: {said}");
            assert!(!error.line.starts_with('#'), "{}", error.line);
        }
        let format = AccessLogFormat::from_format_text("%t %m %U %s %q", LogSource::Httpd).unwrap();
        let line = b"[10/Oct/2023:13:55:31 +0000] GET /a 200 ?b=1";
        let line = format.read(line, &mut StampParser::default()).unwrap();
        assert_eq!(&*line.whole_path(), b"/a?b=1");
    }

    /// Those of ALB, HAProxy (the first) and Istio (text) stand so in the documents named. The
    /// others are made here after the format that the document states, and were not captured.
    const LINES: [(&str, LogSource); 23] = [
        // httpd 2.4, "Log Files": common and combined.
        (
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#,
            LogSource::Unsaid,
        ),
        (
            r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)""#,
            LogSource::Unsaid,
        ),
        // The same with %D, from httpd and from a Tomcat 9.
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 "-" "curl/7.88.1" 2500"#,
            LogSource::Httpd,
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 2500"#,
            LogSource::Tomcat9,
        ),
        (
            r#"127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2326 2500"#,
            LogSource::Unsaid,
        ),
        // Debian's apache2.conf, LogFormat vhost_combined.
        (
            r#"example.org:443 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/2.0" 200 2326 "-" "curl/7.88.1""#,
            LogSource::Unsaid,
        ),
        // nginx.org's packages, log_format main; and with $request_time.
        (
            r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 612 "-" "curl/7.88.1" "198.51.100.4""#,
            LogSource::Unsaid,
        ),
        (
            r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 612 "-" "curl/7.88.1" 0.250"#,
            LogSource::Unsaid,
        ),
        // ingress-nginx, "Log format": upstreaminfo.
        (
            r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 612 "-" "curl/7.88.1" 78 0.250 [default-web-80] [] 10.244.0.7:8080 612 0.249 200 5f3e7a1f2b4c6d8e9f0a1b2c3d4e5f60"#,
            LogSource::Unsaid,
        ),
        // Traefik, "Access Logs": common log format, made after it.
        (
            r#"192.168.1.100 - - [15/May/2025:12:06:30 +0000] "GET /api HTTP/1.1" 200 1024 "-" "Mozilla/5.0" 42 "web@docker" "http://10.0.0.5:80" 150ms"#,
            LogSource::Unsaid,
        ),
        // Traefik's JSON: the names as its public logs have them, the values changed.
        (
            r#"{"ClientAddr":"10.9.129.184:47134","ClientHost":"10.9.129.184","ClientPort":"47134","DownstreamContentSize":379,"DownstreamStatus":200,"Duration":80879000,"OriginStatus":200,"RequestMethod":"GET","RequestPath":"/browse","RequestProtocol":"HTTP/1.1","RouterName":"web@docker","StartUTC":"2022-11-02T00:22:41.640464109Z","level":"info","msg":"","request_User-Agent":"kube-probe/1.23","time":"2022-11-02T00:22:41Z"}"#,
            LogSource::Unsaid,
        ),
        // Istio before 1.9, "Getting Envoy's access logs": made after the forms of 1.4 and 1.8.
        (
            r#"[2019-04-23T12:07:22.912Z] "GET /a HTTP/1.1" 200 - "-" 0 5723 32 31 "10.1.1.1" "curl/7.64.0" "8cda8b91" "shop" "127.0.0.1:80" inbound|80||a - 10.0.0.1:80 10.1.1.1:0"#,
            LogSource::Unsaid,
        ),
        (
            r#"[2020-04-23T12:07:22.912Z] "GET /a HTTP/1.1" 200 - "-" "-" 0 5723 32 31 "10.1.1.1" "curl/7.64.0" "8cda8b91" "shop" "127.0.0.1:80" inbound|80||a - 10.0.0.1:80 10.1.1.1:0"#,
            LogSource::Unsaid,
        ),
        // Traefik: a quote in the agent, a service name, a user with a blank.
        (
            r#"192.0.2.1 - Ann Lee [15/May/2025:12:06:30 +0000] "GET /api HTTP/1.1" 200 10 "-" "a " b" 42 "web@docker" - 15ms"#,
            LogSource::Unsaid,
        ),
        // HAProxy: nothing answered.
        (
            r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/<NOSRV> 10/-1/-1/-1/109 -1 0 - - CR-- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1""#,
            LogSource::Unsaid,
        ),
        // Envoy, "Access logging": made after the default format.
        (
            r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#,
            LogSource::Unsaid,
        ),
        // Istio, "Envoy access logs": text; and JSON, made after the names of its fields.
        (
            r#"[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 4 4 "-" "curl/7.73.0-DEV" "84961386-6d84-929d-98bd-c5aee93b5c88" "httpbin:8000" "10.44.1.27:80" outbound|8000||httpbin.foo.svc.cluster.local 10.44.1.23:37652 10.0.45.184:8000 10.44.1.23:46520 - default"#,
            LogSource::Unsaid,
        ),
        (
            r#"{"authority":"httpbin:8000","bytes_received":0,"bytes_sent":135,"downstream_remote_address":"10.44.1.23:46520","duration":4,"method":"GET","path":"/status/418","protocol":"HTTP/1.1","response_code":418,"response_flags":"-","start_time":"2020-11-25T21:26:18.409Z","user_agent":"curl/7.73.0-DEV","x_forwarded_for":null}"#,
            LogSource::Unsaid,
        ),
        // AWS, "Access log entries": an HTTPS listener.
        (
            r#"https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#,
            LogSource::Unsaid,
        ),
        // HAProxy configuration manual, 8.2.3; and as HTTP/2 over TLS without syslog, made here.
        (
            r#"Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#,
            LogSource::Unsaid,
        ),
        (
            r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/+109 200 +2750 - - ---- 1/1/1/1/0 0/0 "GET https://1wt.eu/index.html HTTP/2.0""#,
            LogSource::Unsaid,
        ),
        // Tomcat 10.1's JsonAccessLogValve.
        (
            r#"{"host":"192.0.2.7","logicalUserName":"-","user":"-","time":"[10/Oct/2000:13:55:36 -0700]","request":"GET /a HTTP/1.1","statusCode":"200","size":"2326","elapsedTime":"2500"}"#,
            LogSource::Tomcat10,
        ),
        // logstash-logback-encoder's AccessEventEncoder, as Spring Boot services have it.
        (
            r#"{"@timestamp":"2000-10-10T20:55:36.250Z","@version":"1","message":"-","method":"GET","protocol":"HTTP/1.1","status_code":200,"requested_url":"GET /a HTTP/1.1","requested_uri":"/a","remote_host":"192.0.2.7","content_length":12,"elapsed_time":250}"#,
            LogSource::Unsaid,
        ),
    ];

    #[test]
    fn the_client_stands_behind_a_virtual_host() {
        let line =
            r#"shop.example 192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 1"#;
        let said = found(line, LogSource::Unsaid);
        assert!(said.contains(", 192.0.2.7"), "{said}");
        let line =
            r#"192.0.2.7 198.51.100.1 - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 1"#;
        let said = found(line, LogSource::Unsaid);
        assert!(said.contains(", 192.0.2.7"), "{said}");
    }

    #[test]
    fn nine_of_ten_lines_are_enough_and_none_is_not() {
        let good = LINES[0].0.to_owned() + "\n";
        let started = "2026-11-22 Started Application in 2.5 seconds\n\n";
        let sample = started.to_owned() + &good;
        let found = detect_format(sample.as_bytes(), LogSource::Unsaid).unwrap();
        assert_eq!(found.name, "common");
        let error = detect_format(started.as_bytes(), LogSource::Unsaid).unwrap_err();
        assert_eq!(error.line, started.trim_end());
        assert_eq!(detect_format(b"", LogSource::Unsaid).unwrap_err().line, "");
        let custom =
            r#"192.0.2.30 example:443 - [2022-08-23 10:54:19.786 +0200] "GET / HTTP/1.1" 200 6"#;
        let error = detect_format(custom.as_bytes(), LogSource::Unsaid).unwrap_err();
        let closest = "closest is common, from which column 4 differs: [2022-08-23";
        let said = error.closest.unwrap();
        assert!(said.starts_with(closest), "{said}");
        let long = detect_format(&[7; 500], LogSource::Unsaid)
            .unwrap_err()
            .line;
        assert_eq!(long, "\u{fffd}".repeat(SHOWN) + "...");
    }

    #[test]
    fn every_name_is_that_of_a_format() {
        for name in format_names() {
            assert!(format_by_name(name, LogSource::Unsaid).is_ok(), "{name}");
        }
        let error = format_by_name("iis", LogSource::Unsaid)
            .unwrap_err()
            .to_string();
        assert!(error.contains("`iis`: it has no time"), "{error}");
        let error = format_by_name("%h %t \"%r\" %D", LogSource::Unsaid).unwrap_err();
        assert!(error.to_string().contains("--server"), "{error}");
    }
}
