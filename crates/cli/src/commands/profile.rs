//! `loadline profile`: access logs to a load profile that `loadline load --profile` replays.

pub mod json;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use flate2::read::MultiGzDecoder;
use loadline_load::profile::{Builder, Distribution, Format, Observed, Profile, Source};

use super::load::load_error;
use super::print;
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
    /// Length of each interval of the rate, in seconds; 604800 of them are kept
    #[arg(long, default_value_t = 60.0)]
    interval: f64,
    /// Keep POST, PUT, DELETE and others too: replaying them changes data
    #[arg(long)]
    all_methods: bool,
    /// Print JSON instead of the profile that `loadline load --profile` reads
    #[arg(long)]
    json: bool,
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
    let profile = builder.finish(&names.join(", "));
    let seen = profile.observed.clone().unwrap_or_default();
    say(&seen, &profile);
    if seen.requests == 0 {
        return Err(Error::new(Kind::Usage, "no line is of this format")
            .hint("say how the server writes its log with --format"));
    }
    match arguments.json {
        true => print(&super::json(&json::document(profile))?)?,
        false => print(&profile.text().map_err(load_error)?)?,
    }
    Ok(Outcome::Done)
}

fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match path.extension().is_some_and(|e| e == "gz") {
        true => Box::new(MultiGzDecoder::new(file)),
        false => Box::new(file),
    })
}

fn say(seen: &Observed, profile: &Profile) {
    eprintln!(
        "{} requests, {} lines rejected, {} left out for their method, {} for their path",
        seen.requests, seen.rejected_lines, seen.left_out_methods, seen.left_out_paths
    );
    if let (Some(mean), Some(peak), Some(factor)) =
        (seen.mean_rate, seen.peak_rate, seen.peak_factor)
    {
        eprintln!(
            "rate: mean {mean:.2}/s, peak {peak:.2}/s, peak factor {factor:.2}, in {} intervals of \
             {} s, {} of them without a request",
            profile.rates.len(),
            profile.interval_seconds,
            seen.empty_intervals
        );
    }
    if seen.left_out_stamps > 0 {
        eprintln!(
            "{} requests are not in the rates: their stamps are too far from the others; a longer \
             --interval reaches further",
            seen.left_out_stamps
        );
    }
    let statuses: Vec<_> = seen
        .statuses
        .iter()
        .map(|(s, n)| format!("{s}: {n}"))
        .collect();
    eprintln!("statuses: {}", statuses.join(", "));
    if let Some(bytes) = &seen.response_bytes {
        eprintln!("response bytes: {}", quantiles(bytes, 1.0, 0, ""));
    }
    if let Some(durations) = &seen.duration_ms {
        eprintln!("logged durations: {}", quantiles(durations, 1.0, 1, " ms"));
    }
    say_think_times(seen);
}

fn say_think_times(seen: &Observed) {
    let sessions = &seen.sessions;
    if sessions.begun == 0 {
        eprintln!("think times: none, because the lines do not say the client");
        return;
    }
    let (count, values) = match &seen.think_time_ms {
        Some(pauses) => (pauses.count, quantiles(pauses, 1e3, 1, " s")),
        None => (0, "none seen".to_owned()),
    };
    eprintln!(
        "think times: {values}; {count} in {} sessions, {} requests overlap",
        sessions.begun, sessions.overlapping
    );
    if sessions.anonymous > 0 {
        eprintln!("{} requests do not say the client", sessions.anonymous);
    }
    if sessions.cut > 0 {
        eprintln!(
            "{} sessions were lost sight of, because too many clients were active at once: each \
             hides at most one think time",
            sessions.cut
        );
    }
}

/// `unit` of the values are 1 in the text.
fn quantiles(values: &Distribution, unit: f64, digits: usize, name: &str) -> String {
    let at = |value: f64| format!("{:.digits$}{name}", value / unit);
    format!(
        "p50 {}, p90 {}, p99 {}, max {}",
        at(values.p50),
        at(values.p90),
        at(values.p99),
        at(values.max)
    )
}
