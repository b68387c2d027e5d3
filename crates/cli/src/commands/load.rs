//! `loadline load`: the load generator alone, against a URL the user names.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use loadline_analysis::slo::parse_duration;
use loadline_load::summary::{Summary, live_line};
use loadline_load::{
    Arrivals, Expectation, Model, Pacing, Plan, RequestSpec, Second, Segment, Target, export, part,
    run,
};

use super::load_part::kind;
use crate::error::{Error, Kind, Outcome};

/// Arguments of `loadline load`.
#[derive(Args)]
pub struct Arguments {
    /// Where to send requests, such as http://localhost:8080/owners
    url: String,
    /// Open model: requests leave at this rate whether or not answers come, such as 5000/s
    #[arg(long, value_parser = rate, required_unless_present = "closed", conflicts_with = "closed")]
    rate: Option<f64>,
    /// Closed model: each connection sends its next request when the last answer came
    #[arg(long)]
    closed: bool,
    /// Connections kept open
    #[arg(long, short, default_value_t = 100)]
    connections: u32,
    /// How long to measure, such as 30s or 5m
    #[arg(long, short, value_parser = duration, default_value = "30s", conflicts_with = "requests")]
    duration: Duration,
    /// How many requests to make, instead of a duration
    #[arg(long, short = 'n')]
    requests: Option<u64>,
    /// Load before the measurement, recorded apart
    #[arg(long, value_parser = duration, default_value = "0s")]
    warmup: Duration,
    /// Spread requests as independent users would (Poisson) instead of evenly
    #[arg(long, requires = "rate")]
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
    /// A request without an answer after this has failed
    #[arg(long, value_parser = duration, default_value = "10s")]
    timeout: Duration,
    /// CPUs for the generator, one thread on each, such as 1 or 2-3,6
    #[arg(long, value_parser = cpus)]
    cpus: Option<CpuList>,
    /// Seed of all that is random
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Write the latency distribution to this file (.hgrm, ms)
    #[arg(long)]
    hgrm: Option<PathBuf>,
    /// Write a latency histogram a second to this file (.hlog, ns)
    #[arg(long)]
    hlog: Option<PathBuf>,
    /// Write the figures of each second to this file
    #[arg(long)]
    csv: Option<PathBuf>,
}

/// Makes the load and prints what came of it.
pub fn run_load(arguments: &Arguments) -> Result<Outcome, Error> {
    let load_error = |e| Error::new(kind(&e), e);
    let target: Target = arguments.url.parse().map_err(load_error)?;
    let address = target.address().map_err(load_error)?;
    let plan = plan(arguments, &target, address)?;
    let stop = part::stop_on_signals().map_err(load_error)?;
    let mut files = Files::create(arguments)?;
    let is_watched = std::io::stderr().is_terminal();
    let mut file_error = None;
    let outcome = run(&plan, &stop, &mut |second| {
        if is_watched {
            eprint!("\r\x1b[K{}", live_line(second.index, &second.totals));
        }
        file_error = file_error.take().or(files.second(second).err());
    })
    .map_err(load_error)?;
    if is_watched {
        eprint!("\r\x1b[K");
    }
    if let Some(error) = file_error {
        return Err(error);
    }
    if let Some(path) = &arguments.hgrm {
        write_to(
            path,
            &mut create(path)?,
            &export::hgrm(&outcome.measure.latency),
        )?;
    }
    print(arguments, &Summary::new(&plan, &outcome, &arguments.url))
}

fn print(arguments: &Arguments, summary: &Summary) -> Result<Outcome, Error> {
    if arguments.json {
        let json = serde_json::to_string_pretty(summary)
            .map_err(|e| Error::new(Kind::Internal, format!("the summary as JSON: {e}")))?;
        println!("{json}");
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

fn plan(
    arguments: &Arguments,
    target: &Target,
    address: std::net::SocketAddr,
) -> Result<Plan, Error> {
    let body = match (&arguments.body, &arguments.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => std::fs::read(path).map_err(|e| file_failed(path, &e))?,
        (None, None) => Vec::new(),
    };
    let request = RequestSpec {
        method: arguments.method.clone(),
        path: target.path.clone(),
        host: Some(target.authority.clone()),
        headers: arguments.header.clone(),
        body,
    };
    Ok(Plan {
        expect: Expectation {
            status: arguments.expect_status.clone(),
            body_contains: arguments.expect_body.clone(),
            body_bytes: None,
        },
        warmup: arguments.warmup,
        connections: arguments.connections,
        timeout: arguments.timeout,
        drain: arguments.timeout,
        cpus: arguments.cpus.clone().unwrap_or_default().0,
        seed: arguments.seed,
        pacing: arguments.pacing,
        ..Plan::new(vec![address], request, model(arguments))
    })
}

fn model(arguments: &Arguments) -> Model {
    let Some(rate) = arguments.rate else {
        return match arguments.requests {
            Some(requests) => Model::ClosedRequests { requests },
            None => Model::ClosedFor {
                duration: arguments.warmup + arguments.duration,
            },
        };
    };
    let measured = match arguments.requests {
        Some(requests) => Duration::from_secs_f64(requests as f64 / rate),
        None => arguments.duration,
    };
    Model::Open {
        segments: vec![Segment::constant(rate, arguments.warmup + measured)],
        arrivals: match arguments.poisson {
            true => Arrivals::Poisson,
            false => Arrivals::Uniform,
        },
    }
}

/// Files that get a row a second.
struct Files<'a> {
    hlog: Option<(&'a Path, File)>,
    csv: Option<(&'a Path, File)>,
}

impl<'a> Files<'a> {
    fn create(arguments: &'a Arguments) -> Result<Self, Error> {
        let open = |path: &'a Option<PathBuf>, head: &str| {
            path.as_deref()
                .map(|path| {
                    let mut file = create(path)?;
                    write_to(path, &mut file, head)?;
                    Ok((path, file))
                })
                .transpose()
        };
        Ok(Self {
            hlog: open(&arguments.hlog, &export::hlog_head(SystemTime::now()))?,
            csv: open(&arguments.csv, export::CSV_HEAD)?,
        })
    }

    fn second(&mut self, second: &Second) -> Result<(), Error> {
        if let Some((path, file)) = &mut self.hlog {
            let offset = Duration::from_secs(second.index);
            write_to(path, file, &export::hlog_row(offset, second))?;
        }
        if let Some((path, file)) = &mut self.csv {
            write_to(path, file, &export::csv_row(second))?;
        }
        Ok(())
    }
}

fn create(path: &Path) -> Result<File, Error> {
    File::create(path).map_err(|e| file_failed(path, &e))
}

fn write_to(path: &Path, file: &mut File, text: &str) -> Result<(), Error> {
    file.write_all(text.as_bytes())
        .map_err(|e| file_failed(path, &e))
}

fn file_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Environment, format!("{}: {error}", path.display()))
}

/// Reads `5000/s`, `5000`, `30/m`; requests a second.
fn rate(text: &str) -> Result<f64, String> {
    let (number, per) = match text.split_once('/') {
        None | Some((_, "s")) => (text.trim_end_matches("/s"), 1.0),
        Some((number, "m" | "min")) => (number, 60.0),
        Some((number, "h")) => (number, 3600.0),
        Some(_) => return Err("the unit is none of /s, /m, /h".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate / per),
        _ => Err("it is no rate above 0; write for example 5000/s or 30/m".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "it is no duration; write for example 30s or 5m".to_owned())
}

fn pacing(text: &str) -> Result<Pacing, String> {
    match text {
        "auto" => Ok(Pacing::Auto),
        "exact" => Ok(Pacing::Exact),
        "spin" => Ok(Pacing::Spin),
        _ => duration(text)
            .map(|quantum| Pacing::Quantum { quantum })
            .map_err(|_| "it is none of auto, exact, spin, or a duration such as 1ms".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("there is no colon; write for example 'Accept: text/html'")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// CPU numbers, from `1` or `0,2-3`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CpuList(Vec<u32>);

fn cpus(text: &str) -> Result<CpuList, String> {
    let mut list = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last && last < 1024 => list.extend(first..=last),
            _ => return Err("it is no list of CPUs; write for example 1 or 0,2-3".to_owned()),
        }
    }
    Ok(CpuList(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_command_line_are_read() {
        assert_eq!(rate("5000/s"), Ok(5000.0));
        assert_eq!(rate("30/m"), Ok(0.5));
        assert_eq!(rate("2.5"), Ok(2.5));
        assert_eq!(cpus("0,2-3"), Ok(CpuList(vec![0, 2, 3])));
        assert_eq!(header("A: b:c"), Ok(("A".to_owned(), "b:c".to_owned())));
        for text in ["0", "-1", "x", "5/d", "inf"] {
            assert!(rate(text).is_err(), "{text}");
        }
        for text in ["", "3-2", "a", "1-"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
