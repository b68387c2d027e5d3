//! The test server as a program, for measurements with the generator in another process.
//!
//! `rig PORT [stall-at-ms=N stall-ms=N] [slow-every=N slow-ms=N] [capacity=R]
//! [warm-s=N warm-ms=N] [bins-ms=N]` serves until standard input ends, then prints the arrivals as
//! JSON: analysed for `rate=R` (and `skip=SECONDS`), or counted in bins of `bins-ms` from the
//! first one.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/rig/mod.rs"]
mod rig;

use std::io::Read;
use std::time::Duration;

use rig::arrivals::analyse;
use rig::server::{Behaviour, Server};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let port: u16 = arguments.first().ok_or("the port is missing")?.parse()?;
    let value = |name: &str| {
        let found = arguments.iter().find_map(|a| a.strip_prefix(name));
        found
            .and_then(|v| v.strip_prefix('='))
            .and_then(|v| v.parse::<f64>().ok())
    };
    let millis = |name: &str| value(name).map(|ms| Duration::from_secs_f64(ms / 1e3));
    let server = Server::start(
        ([127, 0, 0, 1], port).into(),
        Behaviour {
            stall: millis("stall-at-ms").zip(millis("stall-ms")),
            slow: value("slow-every").map(|n| n as u64).zip(millis("slow-ms")),
            capacity: value("capacity"),
            warm_up: value("warm-s")
                .map(Duration::from_secs_f64)
                .zip(millis("warm-ms")),
        },
    )?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let arrivals = server.stop();
    if let Some(bin) = millis("bins-ms") {
        return write_out(&format!("{:?}", bins(&arrivals, bin)));
    }
    let skip = value("skip").unwrap_or(1.0);
    let seen = value("rate").and_then(|rate| analyse(&arrivals, rate, skip));
    let report = match seen {
        None => format!(r#"{{"requests": {}}}"#, arrivals.len()),
        Some(seen) => format!(
            r#"{{"requests": {}, "late_p50_us": {:.1}, "late_p99_us": {:.1}, "dispersion": {:.3}, "dispersion_median": {:.3}, "most_per_ms": {}}}"#,
            arrivals.len(),
            seen.late_p50_us,
            seen.late_p99_us,
            seen.dispersion,
            seen.dispersion_median.unwrap_or(seen.dispersion),
            seen.most_per_ms
        ),
    };
    write_out(&report)
}

/// Arrivals in each stretch of time, from the first arrival on.
fn bins(arrivals: &[u64], length: Duration) -> Vec<u64> {
    let mut bins = Vec::new();
    for at in arrivals {
        let bin = ((at - arrivals[0]) / length.as_nanos() as u64) as usize;
        bins.resize(bins.len().max(bin + 1), 0);
        bins[bin] += 1;
    }
    bins
}

fn write_out(report: &str) -> Result<(), Box<dyn std::error::Error>> {
    use std::io::Write;
    Ok(writeln!(std::io::stdout(), "{report}")?)
}
