//! `loadline load`: the load generator alone, against a URL the user names.

mod files;
mod max_rate;
mod texts;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use loadline_analysis::slo::Slo;
use loadline_load::profile::Profile;
use loadline_load::summary::{Summary, live_line};
use loadline_load::warmup::Study;
use loadline_load::{
    Arrivals, Expectation, Http2, LoadError, Model, Pacing, Part, Plan, RequestSpec, Segment,
    Target, Think, TlsSpec, now_ns, run,
};

use self::files::{Files, file_failed};
use self::texts::{CpuList, Shape, cpus, duration, factor, header, pacing, shape, think};
use super::load_part::kind;
use crate::error::{Error, Kind, Outcome};
use crate::signals::Signals;

/// Arguments of `loadline load`.
#[derive(Args)]
pub struct Arguments {
    /// Where to send requests, such as http://localhost:8080/owners; several instances of one
    /// service get equal shares of the connections, path and host name are the first one's
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Open model: requests leave at this rate whether or not answers come: 5000/s; a ramp
    /// 100/s..1000/s; steps 100/s,200/s
    #[arg(long, value_parser = shape, conflicts_with = "closed",
          required_unless_present_any = ["closed", "max_rate", "profile"])]
    rate: Option<Shape>,
    /// Closed model: each connection sends its next request when the last answer came
    #[arg(long)]
    closed: bool,
    /// Search the highest rate that keeps the SLO
    #[arg(long, conflicts_with_all = ["rate", "closed", "requests", "part", "scale", "speed",
          "warmup", "out", "hgrm", "hlog", "csv"])]
    max_rate: bool,
    /// SLO of the search, such as p99<20ms; several times for several rates
    /// [default: p99 below 10, 25, 50, 75 and 100 ms]
    #[arg(long, requires = "max_rate")]
    slo: Vec<Slo>,
    /// Decide each rate of the search by a majority of five trials
    #[arg(long, requires = "max_rate")]
    strict: bool,
    /// After the search, measure response times at this many equal steps up to the rate found:
    /// 100 is a step for each 1 %
    #[arg(long, requires = "max_rate", value_parser = clap::value_parser!(u32).range(1..=100))]
    curve: Option<u32>,
    /// Requests and their weights, and the rate over time unless another is given (TOML, as
    /// `loadline profile` writes)
    #[arg(long)]
    profile: Option<PathBuf>,
    /// Multiply the rates of the profile
    #[arg(long, value_parser = factor, default_value = "1", requires = "profile",
          conflicts_with_all = ["rate", "closed"])]
    scale: f64,
    /// Replay the profile so many times faster, at the same rates
    #[arg(long, value_parser = factor, default_value = "1", requires = "profile",
          conflicts_with_all = ["rate", "closed"])]
    speed: f64,
    /// Connections kept open
    #[arg(long, short, default_value_t = 100)]
    connections: u32,
    /// HTTP/2: chosen in the TLS handshake of https targets, with prior knowledge (h2c) of others
    #[arg(long)]
    http2: bool,
    /// Requests under way at once on each HTTP/2 connection
    #[arg(long, default_value_t = 1, requires = "http2",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Http2::MAX_STREAMS)))]
    streams: u32,
    /// How long to measure, such as 5m [default: 30s; each trial of a search 10s]
    #[arg(long, short, value_parser = duration, conflicts_with = "requests")]
    duration: Option<Duration>,
    /// How many requests to make, instead of a duration; evenly spread where there is a rate
    #[arg(long, short = 'n', value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Load before the measurement, recorded apart
    #[arg(long, value_parser = duration, default_value = "0s")]
    warmup: Duration,
    /// Spread requests as independent users would (Poisson) instead of evenly
    #[arg(long, conflicts_with_all = ["closed", "requests"])]
    poisson: bool,
    /// Bundle sends on a grid of this length (1ms costs least CPU), `exact` or `spin`
    #[arg(long, value_parser = pacing, default_value = "auto")]
    pacing: Pacing,
    /// HTTP method
    #[arg(long, short = 'X', default_value = "GET")]
    method: String,
    /// A header, such as 'Accept: application/json'; several times for several
    #[arg(long, short = 'H', value_parser = header)]
    header: Vec<(String, String)>,
    /// User name and password (HTTP Basic), as NAME:PASSWORD or @FILE that holds them
    #[arg(long, conflicts_with = "bearer")]
    basic: Option<String>,
    /// Token (HTTP Bearer), or @FILE that holds it
    #[arg(long)]
    bearer: Option<String>,
    /// Body of the request
    #[arg(long, conflicts_with = "body_file")]
    body: Option<String>,
    /// File with the body of the request
    #[arg(long)]
    body_file: Option<PathBuf>,
    /// Status that counts as a good answer; several times for several [default: 200 to 399]
    #[arg(long)]
    expect_status: Vec<u16>,
    /// Text that the body of a good answer contains
    #[arg(long)]
    expect_body: Option<String>,
    /// Size in bytes of the body of a good answer
    #[arg(long, value_name = "BYTES")]
    expect_bytes: Option<u64>,
    /// A request without an answer after this has failed
    #[arg(long, value_parser = duration, default_value = "10s")]
    timeout: Duration,
    /// A connection that does not stand after this has failed, TLS included
    #[arg(long, value_parser = duration, value_name = "TIME")]
    connect_timeout: Option<Duration>,
    /// A connection that brings no byte of an answer for this long has failed
    #[arg(long, value_parser = duration, value_name = "TIME")]
    read_timeout: Option<Duration>,
    /// Pause of each connection between an answer and its next request, such as 100ms, or
    /// 50ms..150ms for pauses spread evenly in between
    #[arg(long, value_parser = think, requires = "closed")]
    think: Option<Think>,
    /// Accept any certificate of an https target
    #[arg(long)]
    insecure: bool,
    /// PEM file with the roots that certificates are checked against [default: the system's]
    #[arg(long)]
    cacert: Option<PathBuf>,
    /// CPUs for the generator, one thread on each, such as 1 or 2-3,6
    #[arg(long, value_parser = cpus)]
    cpus: Option<CpuList>,
    /// Seed of all that is random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Make one of several parts of this load, such as 0/4; the parts' results merge with
    /// `loadline merge`
    #[arg(long, value_parser = texts::part, default_value = "0/1")]
    part: Part,
    /// Begin at this time (seconds since 1970), so that parts begin together
    #[arg(long)]
    start_at: Option<f64>,
    /// Write the whole result, histograms included, to this file
    #[arg(long)]
    out: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the latency distribution to this file (.hgrm, ms)
    #[arg(long)]
    hgrm: Option<PathBuf>,
    /// Write a latency histogram a second to this file (.hlog, ns; the warm-up has a tag)
    #[arg(long)]
    hlog: Option<PathBuf>,
    /// Write the figures of each second to this file
    #[arg(long)]
    csv: Option<PathBuf>,
}

/// Makes the load and prints what came of it.
pub fn run_load(arguments: &Arguments) -> Result<Outcome, Error> {
    let plan = plan(arguments)?;
    let signals = Signals::watch()?;
    if arguments.max_rate {
        return max_rate::run(arguments, &plan, &signals);
    }
    // A plan that cannot be run leaves the files of the last one alone.
    plan.check().map_err(load_error)?;
    let mut files = Files::create(arguments)?;
    let is_watched = std::io::stderr().is_terminal();
    let mut study = Study::new(&plan);
    let outcome = run(&plan, signals.flag(), &mut |second| {
        study.take(second);
        if is_watched {
            eprint!("\r\x1b[K{}", live_line(second.index, &second.totals));
        }
        files.second(second);
    })
    .map_err(load_error)?;
    if is_watched {
        eprint!("\r\x1b[K");
    }
    let url = arguments.urls.join(" ");
    let written = files.finish(&plan, &outcome, &url);
    let mut summary = Summary::new(&plan, &outcome, &url);
    summary.warm_up = study.judge();
    let judged = print(arguments.json, &summary);
    written?;
    if signals.came() {
        return Err(interrupted(&signals));
    }
    judged
}

/// A load that a signal ended: what was printed is true as far as it goes.
fn interrupted(signals: &Signals) -> Error {
    Error::new(signals.kind(), "interrupted").hint("the result is of the time until then")
}

/// Prints a summary; exit code 4 when the generator says that it was the bottleneck.
pub(super) fn print(as_json: bool, summary: &Summary) -> Result<Outcome, Error> {
    if as_json {
        println!("{}", json(summary)?);
    } else {
        print!("{}", summary.text());
    }
    match &summary.saturated {
        // A closed model asks how fast it goes: the generator's own end is an answer too, and
        // the summary says so.
        Some(reason) if summary.offered_rate.is_some() => Err(Error::new(
            Kind::Invalid,
            format!("the generator was itself the bottleneck: {reason}"),
        )
        .hint("give it CPUs of its own with --cpus, or a lower rate")),
        _ => Ok(Outcome::Done),
    }
}

pub(super) fn load_error(error: LoadError) -> Error {
    Error::new(kind(&error), error)
}

fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Error::new(Kind::Internal, format!("the result as JSON: {e}")))
}

/// The first target, and the addresses of all.
fn targets(urls: &[String]) -> Result<(Target, Vec<SocketAddr>), LoadError> {
    let targets: Vec<Target> = urls
        .iter()
        .map(|url| url.parse())
        .collect::<Result<_, _>>()?;
    let first = targets[0].clone();
    for (target, url) in targets.iter().zip(urls) {
        let is_same_path = target.path == first.path || target.path == "/";
        if target.is_tls != first.is_tls || !is_same_path {
            return Err(LoadError::Plan {
                field: "URL",
                why: format!(
                    "`{url}` is no other instance of `{}`: scheme and path must be the same; \
                     several paths are a --profile",
                    urls[0]
                ),
            });
        }
    }
    let addresses = targets.iter().map(Target::address);
    Ok((first, addresses.collect::<Result<_, _>>()?))
}

fn plan(arguments: &Arguments) -> Result<Plan, Error> {
    let (target, addresses) = targets(&arguments.urls).map_err(load_error)?;
    let profile = match &arguments.profile {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|e| file_failed(path, &e))?;
            Some(Profile::parse(&text).map_err(load_error)?)
        }
        None => None,
    };
    let mut plan = Plan {
        expect: Expectation {
            status: arguments.expect_status.clone(),
            body_contains: arguments.expect_body.clone(),
            body_bytes: arguments.expect_bytes,
        },
        tls: target.is_tls.then(|| TlsSpec {
            server_name: target.host.clone(),
            insecure: arguments.insecure,
            roots: arguments.cacert.clone(),
        }),
        http2: arguments.http2.then_some(Http2 {
            streams: arguments.streams,
        }),
        warmup: arguments.warmup,
        connections: arguments.connections,
        timeout: arguments.timeout,
        connect_timeout: arguments.connect_timeout,
        read_timeout: arguments.read_timeout,
        think: arguments.think,
        drain: arguments.timeout,
        cpus: arguments.cpus.clone().unwrap_or_default().0,
        seed: arguments.seed,
        pacing: arguments.pacing,
        part: arguments.part,
        start_ns: arguments.start_at.map(monotonic),
        ..Plan::new(
            addresses,
            request(arguments, &target)?,
            model(arguments, profile.as_ref())?,
        )
    };
    if let Some(profile) = profile {
        super::profile::say::bodiless(&profile);
        plan.mix = profile.mix(&plan.request).map_err(load_error)?;
    }
    Ok(plan)
}

fn request(arguments: &Arguments, target: &Target) -> Result<RequestSpec, Error> {
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => std::fs::read(path).map_err(|e| file_failed(path, &e))?,
        (None, None) => Vec::new(),
    };
    Ok(RequestSpec {
        method: arguments.method.clone(),
        path: target.path.clone(),
        host: Some(target.authority.clone()),
        headers: headers(arguments)?,
        body,
    })
}

/// The headers given, and the one that credentials become.
fn headers(arguments: &Arguments) -> Result<Vec<(String, String)>, Error> {
    let mut headers = arguments.header.clone();
    let value = match (&arguments.basic, &arguments.bearer) {
        (Some(user), _) => format!("Basic {}", STANDARD.encode(secret(user)?)),
        (None, Some(token)) => format!("Bearer {}", secret(token)?),
        (None, None) => return Ok(headers),
    };
    headers.push(("Authorization".to_owned(), value));
    Ok(headers)
}

/// A secret as it is, or from the file behind `@`: command lines can be read by others.
fn secret(text: &str) -> Result<String, Error> {
    let Some(path) = text.strip_prefix('@') else {
        return Ok(text.to_owned());
    };
    let held = std::fs::read_to_string(path).map_err(|e| file_failed(Path::new(path), &e))?;
    Ok(held.trim_end().to_owned())
}

/// A wall-clock time on CLOCK_MONOTONIC.
fn monotonic(unix_seconds: f64) -> u64 {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let ahead = unix_seconds - wall.unwrap_or_default().as_secs_f64();
    now_ns() + (ahead.max(0.0) * 1e9) as u64
}

const DEFAULT_DURATION: Duration = Duration::from_secs(30);

fn model(arguments: &Arguments, profile: Option<&Profile>) -> Result<Model, Error> {
    let duration = arguments.duration.unwrap_or(DEFAULT_DURATION);
    if arguments.closed || arguments.max_rate {
        return Ok(match arguments.requests {
            Some(requests) => Model::ClosedRequests { requests },
            None => Model::ClosedFor {
                duration: arguments.warmup + duration,
            },
        });
    }
    let refuse = |why: &str| {
        load_error(LoadError::Plan {
            field: "requests",
            why: why.to_owned(),
        })
    };
    let measured = match (&arguments.rate, profile) {
        (Some(shape), _) => match arguments.requests {
            Some(requests) => shape.segments_of(requests).ok_or_else(|| {
                refuse("so many take more than a year at this rate; say fewer, or a higher --rate")
            })?,
            None => shape.segments(duration),
        },
        (None, Some(_)) if arguments.requests.is_some() => {
            return Err(refuse(
                "a profile's own rates say how many; cut them off with --duration, or say a \
                 --rate or --closed",
            ));
        }
        (None, Some(profile)) => profile
            .segments(arguments.scale, arguments.speed, arguments.duration)
            .map_err(load_error)?,
        (None, None) => Vec::new(),
    };
    let first = match &arguments.rate {
        Some(shape) => shape.first(),
        None => measured.first().map_or(0.0, |s| s.from),
    };
    let mut segments = measured;
    if !arguments.warmup.is_zero() {
        segments.insert(0, Segment::constant(first, arguments.warmup));
    }
    Ok(Model::Open {
        segments,
        arrivals: arrivals(arguments),
    })
}

fn arrivals(arguments: &Arguments) -> Arrivals {
    match arguments.poisson {
        true => Arrivals::Poisson,
        false => Arrivals::Uniform,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(more: &[&str]) -> Arguments {
        let all = ["loadline", "http://localhost:8080/", "--closed"].iter();
        Only::parse_from(all.chain(more)).arguments
    }

    /// The example of RFC 7617 §2.
    #[test]
    fn credentials_become_a_header_and_may_stand_in_a_file() {
        let value = |arguments| headers(&arguments).unwrap().pop().unwrap().1;
        let basic = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
        assert_eq!(value(parse(&["--basic", "Aladdin:open sesame"])), basic);
        let file = std::env::temp_dir().join(format!("loadline-token-{}", std::process::id()));
        std::fs::write(&file, "t0ken\n").unwrap();
        let from_file = value(parse(&["--bearer", &format!("@{}", file.display())]));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(from_file, "Bearer t0ken");
    }

    #[test]
    fn other_instances_have_the_same_scheme_and_path() {
        for other in ["https://b/x", "http://b/y"] {
            let urls = ["http://a/x".to_owned(), other.to_owned()];
            let refused = targets(&urls).expect_err(other).to_string();
            assert!(refused.contains(other), "{refused}");
        }
    }
}
