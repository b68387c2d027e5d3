//! A log written from known requests gives the profile of those requests, in every format.
//!
//! Requests take up to 40 s and their rate changes tenfold each minute, so that a duration read
//! in the wrong unit, or subtracted where it should not be, shows in the rates.

use std::collections::BTreeMap;
use std::fmt::Write;

use loadline_load::profile::{Builder, Format, Profile, Seen, Source};

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
}

impl Request {
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
    format: Format,
    write: fn(&Request) -> String,
    /// The stamp has ms, so that every request falls into its own minute.
    is_exact: bool,
    has_durations: bool,
}

fn text(pattern: &str, source: Source) -> Format {
    Format::parse(pattern, source).expect("the format has a time and a request")
}

const TOMCAT: &str = "%h %l %u %t \"%r\" %s %b %D";
const NGINX: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                     $body_bytes_sent \"$http_referer\" \"$http_user_agent\" $request_time";

fn common(request: &Request, stamp: &str) -> String {
    let (method, path) = (request.method, &request.path);
    let (status, bytes) = (request.status, request.bytes);
    format!("2001:db8::17 - - [{stamp}] \"{method} {path} HTTP/1.1\" {status} {bytes}")
}

fn ended(request: &Request) -> String {
    common(request, &stamp(request.end()))
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "httpd combined",
            format: Format::common(Source::Httpd),
            write: |r| common(r, &stamp(r.arrival)) + " \"-\" \"Mozilla/5.0 (\\\"x\\\")\"",
            is_exact: true,
            has_durations: false,
        },
        Case {
            name: "httpd with %D in us",
            format: text(TOMCAT, Source::Httpd),
            write: |r| format!("{} {}", common(r, &stamp(r.arrival)), r.millis * 1000),
            is_exact: true,
            has_durations: true,
        },
        Case {
            name: "Tomcat 9 with %D in ms",
            format: text(TOMCAT, Source::Tomcat9),
            write: |r| format!("{} {}", ended(r), r.millis),
            is_exact: false,
            has_durations: true,
        },
        Case {
            name: "Tomcat 10.1 with %D in us",
            format: text(TOMCAT, Source::Tomcat10),
            write: |r| format!("{} {}", ended(r), r.millis * 1000),
            is_exact: false,
            has_durations: true,
        },
        Case {
            name: "Tomcat with the begin in ms",
            format: text("%{begin:msec}t \"%r\" %s %b", Source::Tomcat10),
            write: |r| {
                let rest = common(r, "").split_off("2001:db8::17 - - [] ".len());
                format!("{:.0} {rest}", r.arrival * 1e3)
            },
            is_exact: true,
            has_durations: false,
        },
        Case {
            name: "nginx with $request_time",
            format: text(NGINX, Source::Nginx),
            write: |r| format!("{} \"-\" \"curl/8\" {:.3}", ended(r), r.millis as f64 / 1e3),
            is_exact: false,
            has_durations: true,
        },
        Case {
            name: "nginx with $msec",
            format: text(
                "$msec $request_time \"$request\" $status $bytes_sent",
                Source::Nginx,
            ),
            write: |r| {
                let rest = common(r, "").split_off("2001:db8::17 - - [] ".len());
                format!("{:.3} {:.3} {rest}", r.end(), r.millis as f64 / 1e3)
            },
            is_exact: true,
            has_durations: true,
        },
        Case {
            name: "nginx JSON",
            format: Format::json(Source::Nginx),
            write: |r| {
                format!(
                    "{{\"msec\": \"{:.3}\", \"request\": \"{} {} HTTP/1.1\", \"status\": \"{}\", \
                     \"body_bytes_sent\": {}, \"request_time\": \"{:.3}\"}}",
                    r.end(),
                    r.method,
                    r.path,
                    r.status,
                    r.bytes,
                    r.millis as f64 / 1e3
                )
            },
            is_exact: true,
            has_durations: true,
        },
        Case {
            name: "Tomcat JSON",
            format: Format::json(Source::Tomcat10),
            write: |r| {
                format!(
                    "{{\"host\": \"::1\", \"time\": \"[{}]\", \"request\": \"{} {} HTTP/1.1\", \
                     \"statusCode\": \"{}\", \"size\": \"{}\", \"elapsedTime\": \"{}\"}}",
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

fn profile(case: &Case, requests: &[Request]) -> (Profile, Seen) {
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
    let mut builder = Builder::new(case.format.clone(), 60.0, false);
    builder.read(log.as_bytes()).expect("memory can be read");
    builder.finish(case.name)
}

#[test]
fn the_truth_comes_back_from_every_format() {
    let requests = requests();
    let is_replayed = |r: &&Request| r.method != "POST";
    let mut per_minute = [0.0; MINUTES];
    let mut statuses = BTreeMap::new();
    let mut classes: BTreeMap<String, f64> = BTreeMap::new();
    for request in &requests {
        *statuses.entry(request.status).or_insert(0) += 1;
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
    for case in cases() {
        let (profile, seen) = profile(&case, &requests);
        let name = case.name;
        assert_eq!(
            (seen.lines, seen.rejected, seen.other),
            (requests.len() as u64, oddities, 0),
            "{name}"
        );
        assert_eq!(seen.statuses, statuses, "{name}");
        assert_eq!(
            seen.bytes,
            requests.iter().map(|r| r.bytes).sum::<u64>(),
            "{name}"
        );
        let posts = requests.iter().filter(|r| r.method == "POST").count();
        assert_eq!(seen.unsafe_methods, posts as u64, "{name}");
        let found: BTreeMap<String, f64> = profile
            .requests
            .iter()
            .map(|r| (r.name.clone().expect("it is named"), r.weight))
            .collect();
        assert_eq!(found, classes, "{name}");
        rates(&case, &profile.rates, &per_minute);
        durations(&case, &seen, &requests);
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

fn durations(case: &Case, seen: &Seen, requests: &[Request]) {
    if !case.has_durations {
        return assert!(seen.durations.is_empty(), "{}", case.name);
    }
    let mut truth: Vec<u64> = requests.iter().map(|r| r.millis).collect();
    truth.sort_unstable();
    for quantile in [0.5, 0.99, 1.0] {
        let rank = (quantile * truth.len() as f64).ceil() as usize - 1;
        let found = seen.durations.value_at_quantile(quantile) as f64 / 1e6;
        let expected = truth[rank] as f64;
        assert!(
            (found / expected - 1.0).abs() < 0.002,
            "{}: {found} ms, {expected} ms in truth",
            case.name
        );
    }
}
