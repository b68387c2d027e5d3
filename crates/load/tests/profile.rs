//! A log written from known requests gives the profile of those requests, in every format.
//!
//! Requests take up to 40 s and their rate changes tenfold each minute, so that a duration read
//! in the wrong unit, or subtracted where it should not be, shows in the rates.

use std::collections::BTreeMap;
use std::fmt::Write;

use loadline_load::profile::{
    AccessLogFormat, Distribution, LoadProfile, LogSource, ProfileBuilder, UserSessionCounts,
    detect_format, format_by_name,
};

/// 2026-11-20 10:00:00 UTC.
const BEGIN: f64 = 1_795_168_800.0;
const MINUTES: usize = 8;

/// One request that was made.
struct Request {
    /// Seconds since 1970, whole ms.
    arrival: f64,
    millis: u64,
    method: &'static str,
    path: String,
    status: u16,
    bytes: u64,
    client: u64,
}

impl Request {
    /// A separate address for each client.
    fn address(&self) -> String {
        format!("2001:db8::{:x}", self.client)
    }

    /// A separate agent for each client.
    fn agent(&self) -> String {
        format!("Mozilla/5.0 (\\\"x\\\") client {}", self.client)
    }

    fn end(&self) -> f64 {
        self.arrival + self.millis as f64 / 1e3
    }
}

/// Numbers that look random and are the same every time (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        let mixed = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = mixed.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn requests() -> Vec<Request> {
    let mut numbers = Numbers(7);
    let mut requests = Vec::new();
    for minute in 0..MINUTES as u64 {
        let count = if minute % 2 == 0 { 60 } else { 600 };
        for _ in 0..count {
            let within = numbers.below(60_000);
            let id = numbers.below(1000);
            let (method, path) = match numbers.below(10) {
                0..5 => ("GET", format!("/owners/{id}")),
                5..8 => ("GET", format!("/owners?lastName=D{id}")),
                8 => ("HEAD", "/".to_owned()),
                _ => ("POST", "/owners".to_owned()),
            };
            requests.push(Request {
                arrival: BEGIN + (minute * 60) as f64 + within as f64 / 1e3,
                millis: numbers.below(40_000),
                method,
                path,
                status: if id.is_multiple_of(50) { 503 } else { 200 },
                bytes: id * 7,
                client: id % 40,
            });
        }
    }
    requests
}

/// `20/Nov/2026:10:07:59 +0000`, with the fraction cut off as servers do.
fn stamp(seconds: f64) -> String {
    let within = (seconds - BEGIN).floor() as i64 + 10 * 3600;
    let (hour, minute, second) = (within / 3600, within / 60 % 60, within % 60);
    format!("20/Nov/2026:{hour:02}:{minute:02}:{second:02} +0000")
}

/// A format: its name, how it is read, how a request is written in it.
struct Case {
    name: &'static str,
    format: AccessLogFormat,
    write: fn(&Request) -> String,
    /// The stamp has ms, so that every request falls into its own minute.
    is_exact: bool,
    has_durations: bool,
    has_clients: bool,
}

fn text(pattern: &str, source: LogSource) -> AccessLogFormat {
    AccessLogFormat::from_format_text(pattern, source).expect("the format has a time and a request")
}

const TOMCAT: &str = "%h %l %u %t \"%r\" %s %b %D";
const NGINX: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                     $body_bytes_sent \"$http_referer\" \"$http_user_agent\" $request_time";

fn rest(request: &Request) -> String {
    let (method, path) = (request.method, &request.path);
    let (status, bytes) = (request.status, request.bytes);
    format!("\"{method} {path} HTTP/1.1\" {status} {bytes}")
}

fn common(request: &Request, stamp: &str) -> String {
    format!("{} - - [{stamp}] {}", request.address(), rest(request))
}

fn ended(request: &Request) -> String {
    common(request, &stamp(request.end()))
}

/// Everybody behind one address: only the agents tell clients apart.
fn behind_one_address(request: &Request, stamp: &str) -> String {
    let (rest, agent) = (rest(request), request.agent());
    format!("2001:db8::17 - - [{stamp}] {rest} \"-\" \"{agent}\"")
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "httpd combined",
            format: AccessLogFormat::common_log(LogSource::Httpd),
            write: |r| behind_one_address(r, &stamp(r.arrival)),
            is_exact: true,
            has_durations: false,
            has_clients: true,
        },
        Case {
            name: "httpd with %D in us",
            format: text(TOMCAT, LogSource::Httpd),
            write: |r| format!("{} {}", common(r, &stamp(r.arrival)), r.millis * 1000),
            is_exact: true,
            has_durations: true,
            has_clients: true,
        },
        Case {
            name: "Tomcat 9 with %D in ms",
            format: text(TOMCAT, LogSource::Tomcat9),
            write: |r| format!("{} {}", ended(r), r.millis),
            is_exact: false,
            has_durations: true,
            has_clients: true,
        },
        Case {
            name: "Tomcat 10.1 with %D in us",
            format: text(TOMCAT, LogSource::Tomcat10),
            write: |r| format!("{} {}", ended(r), r.millis * 1000),
            is_exact: false,
            has_durations: true,
            has_clients: true,
        },
        Case {
            name: "Tomcat with the begin in ms",
            format: text("%{begin:msec}t \"%r\" %s %b", LogSource::Tomcat10),
            write: |r| format!("{:.0} {}", r.arrival * 1e3, rest(r)),
            is_exact: true,
            has_durations: false,
            has_clients: false,
        },
        Case {
            name: "nginx with $request_time",
            format: text(NGINX, LogSource::Nginx),
            write: |r| {
                let line = behind_one_address(r, &stamp(r.end()));
                format!("{line} {:.3}", r.millis as f64 / 1e3)
            },
            is_exact: false,
            has_durations: true,
            has_clients: true,
        },
        Case {
            name: "nginx with $msec",
            format: text(
                "$msec $request_time \"$request\" $status $bytes_sent",
                LogSource::Nginx,
            ),
            write: |r| format!("{:.3} {:.3} {}", r.end(), r.millis as f64 / 1e3, rest(r)),
            is_exact: true,
            has_durations: true,
            has_clients: false,
        },
        Case {
            name: "nginx JSON",
            format: AccessLogFormat::json_lines(LogSource::Nginx),
            write: |r| {
                format!(
                    "{{\"msec\": \"{:.3}\", \"remote_addr\": \"{}\", \
                     \"request\": \"{} {} HTTP/1.1\", \"status\": \"{}\", \
                     \"body_bytes_sent\": {}, \"request_time\": \"{:.3}\"}}",
                    r.end(),
                    r.address(),
                    r.method,
                    r.path,
                    r.status,
                    r.bytes,
                    r.millis as f64 / 1e3
                )
            },
            is_exact: true,
            has_durations: true,
            has_clients: true,
        },
        Case {
            name: "Tomcat JSON",
            format: AccessLogFormat::json_lines(LogSource::Tomcat10),
            write: |r| {
                format!(
                    "{{\"host\": \"{}\", \"time\": \"[{}]\", \"request\": \"{} {} HTTP/1.1\", \
                     \"statusCode\": \"{}\", \"size\": \"{}\", \"elapsedTime\": \"{}\"}}",
                    r.address(),
                    stamp(r.end()),
                    r.method,
                    r.path,
                    r.status,
                    r.bytes,
                    r.millis * 1000
                )
            },
            is_exact: false,
            has_durations: true,
            has_clients: true,
        },
    ]
}

/// `2026-11-20T10:07:59.123` of a moment on that day.
fn iso(seconds: f64) -> String {
    let millis = ((seconds - BEGIN) * 1e3).round() as i64 + 10 * 3_600_000;
    let (second, milli) = (millis / 1000, millis % 1000);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("2026-11-20T{hour:02}:{minute:02}:{second:02}.{milli:03}")
}

fn line_of(request: &Request) -> String {
    format!("\"{} {} HTTP/1.1\"", request.method, request.path)
}

/// The formats of proxies, as their documents show them.
fn proxies() -> Vec<Case> {
    let case = |name: &'static str, write| Case {
        name,
        format: format_by_name(name, LogSource::Unsaid).expect("it is known"),
        write,
        is_exact: true,
        has_durations: true,
        has_clients: true,
    };
    vec![
        case("envoy", |r| {
            let (begin, line) = (iso(r.arrival), line_of(r));
            let (status, bytes, millis, client) = (r.status, r.bytes, r.millis, r.client);
            format!(
                "[{begin}Z] {line} {status} - 0 {bytes} {millis} 1 \"10.0.0.{client}\" \"x\" \
                 \"cc21d9b0\" \"locations\" \"tcp://10.0.2.1:80\""
            )
        }),
        case("istio", |r| {
            let (begin, line) = (iso(r.arrival), line_of(r));
            let (status, bytes, millis, client) = (r.status, r.bytes, r.millis, r.client);
            format!(
                "[{begin}Z] {line} {status} - via_upstream - \"-\" 0 {bytes} {millis} 1 \"-\" \"x\" \
                 \"84961386\" \"httpbin:8000\" \"10.44.1.27:80\" outbound|8000||httpbin \
                 10.44.1.23:37652 10.0.45.184:8000 10.44.1.{client}:{} - default",
                40_000 + r.millis % 1000
            )
        }),
        case("alb", |r| {
            let (begin, end) = (iso(r.arrival), iso(r.end()));
            let (status, bytes) = (r.status, r.bytes);
            format!(
                "https {end}000Z app/lb/50dc6c49 10.0.0.{}:{} 10.0.0.1:80 0.000 0.001 0.000 \
                 {status} {status} 34 {bytes} \"{} https://example.com:443{} HTTP/1.1\" \"x\" - - \
                 arn:aws:x \"Root=1\" \"-\" \"-\" 0 {begin}000Z \"forward\" \"-\" \"-\"",
                r.client,
                2000 + r.millis % 1000,
                r.method,
                r.path
            )
        }),
        case("haproxy", |r| {
            let at = stamp(r.arrival);
            let (at, _) = at.split_once(' ').expect("a zone follows");
            let milli = (r.arrival * 1e3).round() as i64 % 1000;
            format!(
                "Nov 20 10:00:00 lb haproxy[14389]: 10.0.1.{}:33317 [{at}.{milli:03}] in~ st/srv1 \
                 10/0/30/69/{} {} {} - - ---- 1/1/1/1/0 0/0 {{1wt.eu}} {{}} {}",
                r.client,
                r.millis,
                r.status,
                r.bytes,
                line_of(r)
            )
        }),
        Case {
            is_exact: false,
            ..case("traefik", |r| {
                let line = behind_one_address(r, &stamp(r.arrival));
                format!(
                    "{line} 42 \"web@docker\" \"http://10.0.0.5:80\" {}ms",
                    r.millis
                )
            })
        },
        Case {
            is_exact: false,
            ..case("ingress-nginx", |r| {
                let line = behind_one_address(r, &stamp(r.end()));
                let seconds = r.millis as f64 / 1e3;
                format!(
                    "{line} 78 {seconds:.3} [default-web-80] [] 10.244.0.7:8080 612 0.249 200 5f3e"
                )
            })
        },
    ]
}

/// Lines that no request can be made of.
const ODDITIES: [&str; 6] = [
    "",
    "::1 - - [20/Nov/2026:10:00:00 +0000] \"-\" 408 - 0",
    "::1 - - [20/Nov/2026:10:00:00 +0000] \"\\x16\\x03\\x01\" 400 226 0",
    "::1 - - [20/Nov/2026:10:00:00",
    "{\"time\": \"now\", \"request\": 7}",
    "\u{fffd}\u{fffd}\u{fffd}",
];

fn profile(case: &Case, requests: &[Request]) -> LoadProfile {
    let mut log = String::new();
    // Servers write requests when they end: not in the order of their arrival.
    let mut order: Vec<&Request> = requests.iter().collect();
    order.sort_by(|a, b| a.end().total_cmp(&b.end()));
    for (index, request) in order.iter().enumerate() {
        writeln!(log, "{}", (case.write)(request)).expect("a String takes all");
        if index % 400 == 0 {
            writeln!(log, "{}", ODDITIES[index / 400 % ODDITIES.len()]).expect("the same");
        }
    }
    let mut builder = ProfileBuilder::new(case.format.clone(), 60.0, false);
    builder.read(log.as_bytes()).expect("memory can be read");
    builder.build_profile(case.name)
}

#[test]
fn the_truth_comes_back_from_every_format() {
    let requests = requests();
    let is_replayed = |r: &&Request| r.method != "POST";
    let mut per_minute = [0.0; MINUTES];
    let mut statuses = BTreeMap::new();
    let mut classes: BTreeMap<String, f64> = BTreeMap::new();
    for request in &requests {
        *statuses.entry(request.status.to_string()).or_insert(0) += 1;
    }
    for request in requests.iter().filter(is_replayed) {
        per_minute[((request.arrival - BEGIN) / 60.0) as usize] += 1.0;
        let class = match request.path.as_bytes() {
            b"/" => "HEAD /",
            [b'/', b'o', b'w', b'n', b'e', b'r', b's', b'/', ..] => "GET /owners/{id}",
            _ => "GET /owners?lastName",
        };
        *classes.entry(class.to_owned()).or_default() += 1.0;
    }
    let oddities = requests.len().div_ceil(400) as u64;
    for case in cases().into_iter().chain(proxies()) {
        let profile = profile(&case, &requests);
        let seen = profile.observed.as_ref().expect("it is from a log");
        let name = case.name;
        assert_eq!(
            (seen.requests, seen.rejected_lines, seen.left_out_paths),
            (requests.len() as u64, oddities, 0),
            "{name}"
        );
        assert_eq!(seen.statuses, statuses, "{name}");
        let bytes: Vec<u64> = requests.iter().map(|r| r.bytes).collect();
        assert_eq!(
            seen.total_response_bytes,
            bytes.iter().sum::<u64>(),
            "{name}"
        );
        distribution(name, seen.response_bytes, bytes);
        let posts = requests.iter().filter(|r| r.method == "POST").count();
        assert_eq!(seen.left_out_methods, posts as u64, "{name}");
        let found: BTreeMap<String, f64> = profile
            .requests
            .iter()
            .map(|r| (r.name.clone().expect("it is named"), r.weight))
            .collect();
        assert_eq!(found, classes, "{name}");
        rates(&case, &profile.rates, &per_minute);
        let peak = profile.rates.iter().copied().fold(0.0, f64::max);
        assert_eq!(seen.peak_rate, Some(peak), "{name}");
        let mean = profile.rates.iter().sum::<f64>() / profile.rates.len() as f64;
        assert_eq!(seen.peak_factor, Some(peak / mean), "{name}");
        if case.has_durations {
            let millis = requests.iter().map(|r| r.millis).collect();
            distribution(name, seen.duration_ms, millis);
        } else {
            assert_eq!(seen.duration_ms, None, "{name}")
        }
    }
}

fn rates(case: &Case, found: &[f64], per_minute: &[f64]) {
    // A stamp of whole seconds puts requests of the first second into the minute before.
    let found = &found[found.len() - MINUTES..];
    for (minute, (rate, truth)) in found.iter().zip(per_minute).enumerate() {
        let count = rate * 60.0;
        let room = if case.is_exact {
            1e-6
        } else {
            10.0 + 600.0 / 60.0
        };
        assert!(
            (count - truth).abs() <= room,
            "{}, minute {minute}: {count} requests, {truth} in truth",
            case.name
        );
    }
}

/// Every figure matches the values, within the 0.1 % of a histogram.
fn distribution(name: &str, found: Option<Distribution>, mut truth: Vec<u64>) {
    let found = found.expect("the format has the field");
    truth.sort_unstable();
    let at = |quantile: f64| truth[(quantile * truth.len() as f64).ceil() as usize - 1] as f64;
    assert_eq!(found.count, truth.len() as u64, "{name}");
    for (value, expected) in [
        (
            found.mean,
            truth.iter().sum::<u64>() as f64 / truth.len() as f64,
        ),
        (found.p50, at(0.5)),
        (found.p90, at(0.9)),
        (found.p99, at(0.99)),
        (found.max, at(1.0)),
    ] {
        assert!(
            (value / expected - 1.0).abs() < 0.002,
            "{name}: {found:?}, {expected} in truth"
        );
    }
}

/// Clients that pause between their requests, some for so long that their session is over, and
/// sometimes have two requests under way.
#[derive(Default)]
struct Visits {
    requests: Vec<Request>,
    /// From the end of all before to the begin of the next, in ms.
    pauses: Vec<u64>,
    /// From begin to begin within a session, in ms: what stamps without durations show.
    steps: Vec<u64>,
    overlapping: u64,
    sessions: u64,
}

fn visits() -> Visits {
    let mut numbers = Numbers(11);
    let mut visits = Visits::default();
    for client in 0..40 {
        let mut at = numbers.below(60_000);
        let mut last_begin = None;
        for nth in 0..60 {
            let millis = 6_000 + numbers.below(4_000);
            visits.request(client, at, millis);
            visits.steps.extend(last_begin.map(|last| at - last));
            visits.sessions += u64::from(last_begin.is_none());
            last_begin = Some(at);
            at += millis;
            if nth % 10 == 5 {
                // Begins half-way through the one before and outlives it.
                let begin = at - millis / 2;
                visits.request(client, begin, millis);
                visits.steps.push(millis - millis / 2);
                visits.overlapping += 1;
                last_begin = Some(begin);
                at = begin + millis;
            }
            let pause = match nth % 20 {
                19 => 40 * 60_000,
                _ => 2_000 + numbers.below(longest(nth)),
            };
            if nth % 20 == 19 {
                last_begin = None;
            } else if nth < 59 {
                visits.pauses.push(pause);
            }
            at += pause;
        }
    }
    visits
}

/// Short pauses and long ones: the quantiles lie far apart.
fn longest(nth: u64) -> u64 {
    if nth.is_multiple_of(3) { 60_000 } else { 8_000 }
}

impl Visits {
    fn request(&mut self, client: u64, at: u64, millis: u64) {
        self.requests.push(Request {
            arrival: BEGIN + at as f64 / 1e3,
            millis,
            method: if at.is_multiple_of(7) { "POST" } else { "GET" },
            path: "/".to_owned(),
            status: 200,
            bytes: 1,
            client,
        });
    }
}

#[test]
fn think_times_come_back_from_every_format_that_says_the_client() {
    let visits = visits();
    for case in cases().into_iter().chain(proxies()) {
        let name = case.name;
        let profile = profile(&case, &visits.requests);
        let seen = profile.observed.expect("it is from a log");
        if !case.has_clients {
            assert_eq!(
                seen.sessions.anonymous,
                visits.requests.len() as u64,
                "{name}"
            );
            assert_eq!(seen.think_time_ms, None, "{name}");
            continue;
        }
        let (truth, overlapping) = if case.has_durations {
            (visits.pauses.clone(), visits.overlapping)
        } else {
            (visits.steps.clone(), 0)
        };
        let sessions = UserSessionCounts {
            begun: visits.sessions,
            overlapping,
            cut: 0,
            anonymous: 0,
        };
        assert_eq!(seen.sessions, sessions, "{name}");
        // Whole seconds put each stamp up to a second too early.
        let room = if name.contains("JSON") && case.is_exact {
            2.0
        } else {
            1_000.0
        };
        think_times(name, seen.think_time_ms, truth, room);
    }
}

fn think_times(name: &str, found: Option<Distribution>, mut truth: Vec<u64>, room_ms: f64) {
    let found = found.expect("there are pauses");
    truth.sort_unstable();
    assert_eq!(found.count, truth.len() as u64, "{name}");
    let at = |quantile: f64| truth[(quantile * truth.len() as f64).ceil() as usize - 1] as f64;
    for (value, expected) in [
        (found.p50, at(0.5)),
        (found.p90, at(0.9)),
        (found.p99, at(0.99)),
    ] {
        let off = (value - expected).abs();
        assert!(
            off <= room_ms + expected * 0.001,
            "{name}: {found:?}, {expected} in truth"
        );
    }
    // What the stamps cut off evens out.
    let mean = truth.iter().sum::<u64>() as f64 / truth.len() as f64;
    assert!(
        (found.mean / mean - 1.0).abs() < 0.01,
        "{name}: {found:?}, mean {mean}"
    );
}

#[test]
fn the_format_is_found_by_the_lines_alone() {
    let requests = requests();
    for case in proxies() {
        let lines: Vec<_> = requests.iter().take(50).map(case.write).collect();
        let found = detect_format(lines.join("\n").as_bytes(), LogSource::Unsaid);
        assert_eq!(found.expect("it is known").name, case.name);
    }
}

#[test]
fn a_day_of_seconds_comes_back_whole_with_a_stray_stamp_before_it() {
    let mut log = String::from("::1 - - [01/Jan/1970:00:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n");
    for second in 0..86_400_u32 {
        let (hour, minute) = (second / 3600, second / 60 % 60);
        writeln!(
            log,
            "::1 - - [20/Nov/2026:{hour:02}:{minute:02}:{:02} +0000] \"GET / HTTP/1.1\" 200 1",
            second % 60
        )
        .expect("a String takes all");
    }
    let mut builder =
        ProfileBuilder::new(AccessLogFormat::common_log(LogSource::Httpd), 1.0, false);
    builder.read(log.as_bytes()).expect("memory can be read");
    let profile = builder.build_profile("a day");
    let seen = profile.observed.expect("it is from a log");
    assert_eq!(profile.rates, vec![1.0; 86_400]);
    assert_eq!((seen.requests, seen.left_out_stamps), (86_401, 1));
    assert_eq!(seen.begin_unix_seconds, Some(BEGIN - 10.0 * 3600.0));
}
