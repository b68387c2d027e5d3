//! `loadline profile`: access logs to a load profile that `loadline load --profile` replays.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use flate2::read::MultiGzDecoder;
use loadline_load::profile::{Builder, Format, Seen, Source};

use super::load::load_error;
use crate::error::{Error, Kind, Outcome};

/// Arguments of `loadline profile`.
#[derive(Args)]
pub struct Arguments {
    /// Access logs; .gz is read too
    #[arg(required = true)]
    logs: Vec<PathBuf>,
    /// The server that wrote them: decides what stamps and durations mean
    #[arg(long, value_enum, default_value = "nginx")]
    server: Server,
    /// Format of the lines: `combined`, `json`, or the server's own text, such as
    /// '%h %l %u %t "%r" %s %b %D' or '$remote_addr ... $request_time'
    #[arg(long, default_value = "combined")]
    format: String,
    /// Length of each interval of the rate, in seconds
    #[arg(long, default_value_t = 60.0)]
    interval: f64,
    /// Keep POST, PUT, DELETE and others too: replaying them changes data
    #[arg(long)]
    all_methods: bool,
}

/// A server that writes access logs.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Server {
    /// Apache httpd
    Httpd,
    /// nginx
    Nginx,
    /// Tomcat up to 9, and what embeds it (Spring Boot 2)
    Tomcat9,
    /// Tomcat from 10.1, and what embeds it (Spring Boot 3)
    Tomcat10,
}

/// Reads the logs, prints the profile to stdout and what else was seen to stderr.
pub fn run(arguments: &Arguments) -> Result<Outcome, Error> {
    let source = match arguments.server {
        Server::Httpd => Source::Httpd,
        Server::Nginx => Source::Nginx,
        Server::Tomcat9 => Source::Tomcat9,
        Server::Tomcat10 => Source::Tomcat10,
    };
    let format = match arguments.format.as_str() {
        "combined" | "common" => Format::common(source),
        "json" => Format::json(source),
        text => Format::parse(text, source).map_err(load_error)?,
    };
    if !(arguments.interval.is_finite() && arguments.interval > 0.0) {
        return Err(Error::new(Kind::Usage, "--interval must be above 0"));
    }
    let mut builder = Builder::new(format, arguments.interval, arguments.all_methods);
    for path in &arguments.logs {
        let failed = |e| Error::new(Kind::Environment, format!("{}: {e}", path.display()));
        let log = open(path).map_err(failed)?;
        builder
            .read(BufReader::with_capacity(1 << 20, log))
            .map_err(failed)?;
    }
    let names: Vec<_> = arguments
        .logs
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    let (profile, seen) = builder.finish(&names.join(", "));
    say(&seen, &profile.rates);
    if seen.lines == 0 {
        return Err(Error::new(Kind::Usage, "no line is of this format")
            .hint("say how the server writes its log with --format"));
    }
    print!("{}", profile.text().map_err(load_error)?);
    Ok(Outcome::Done)
}

fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match path.extension().is_some_and(|e| e == "gz") {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    })
}

fn say(seen: &Seen, rates: &[f64]) {
    eprintln!(
        "{} requests, {} lines rejected, {} left out for their method, {} for their path",
        seen.lines, seen.rejected, seen.unsafe_methods, seen.other
    );
    let peak = rates.iter().copied().fold(0.0, f64::max);
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    if mean > 0.0 {
        eprintln!(
            "rate: mean {mean:.2}/s, peak {peak:.2}/s, peak factor {:.2}",
            peak / mean
        );
    }
    let statuses: Vec<_> = seen
        .statuses
        .iter()
        .map(|(s, n)| format!("{s}: {n}"))
        .collect();
    eprintln!("statuses: {}", statuses.join(", "));
    if !seen.durations.is_empty() {
        let at = |q| seen.durations.value_at_quantile(q) as f64 / 1e6;
        eprintln!(
            "logged durations: p50 {:.1} ms, p99 {:.1} ms, max {:.1} ms",
            at(0.5),
            at(0.99),
            seen.durations.max() as f64 / 1e6
        );
    }
}
