//! One value of an experiment file at a time: its text checked, a refusal with its place.
//!
//! What several values say together is for the modules that use these.

use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use loadline_analysis::record::{CPU_PERIOD, CpuSets};
use loadline_analysis::slo::parse_duration;
use loadline_protocol::{Account, Readiness};
use loadline_sizing::{Bytes, Cpus};

use super::ExperimentError;
use super::error::ExperimentSource;
use super::said::{Text, ValueWithOrigin};
use super::wire::ReadyTable;

const DAY: Duration = Duration::from_secs(86_400);
/// The kernel takes quotas of 1 ms and periods of 1 ms to 1 s (Documentation/scheduler/sched-bwc.rst).
const PERIOD_RANGE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

pub(super) type Checked<T> = Result<T, ExperimentError>;

/// Checks a value that may be left out.
pub(super) fn check_given<T, U>(
    value: &Option<T>,
    check: impl FnOnce(&T) -> Checked<U>,
) -> Checked<Option<U>> {
    value.as_ref().map(check).transpose()
}

pub(super) fn check_readiness(
    ready: &ReadyTable,
    port: Option<u16>,
    whose: &str,
    source: &ExperimentSource<'_>,
) -> Checked<Readiness> {
    let command = (!ready.command.is_empty()).then(|| ready.command.clone());
    match (&ready.http, ready.tcp, ready.grpc, &ready.log, command) {
        (Some(text), None, None, None, None) => {
            let Some((own, path)) = split_ready_path(text) else {
                let problem = format!("`{text}` starts neither with a slash nor with a port");
                let hint = "write ready = { http = \"/health\", port = 9001 }, or --ready :9001/health, tcp:9001, grpc:9090, log:Started";
                return Err(source.error_at(text, problem, hint));
            };
            let Some(port) = own.or(ready.port).or(port) else {
                let problem = format!("ready of {whose} names no port");
                let hint = "write ready = { http = \"/health\", port = 9200 }";
                return Err(source.error_at(text, problem, hint));
            };
            let path = path.to_owned();
            Ok(Readiness::Http { port, path })
        }
        (None, Some(port), None, None, None) => Ok(Readiness::Tcp { port }),
        (None, None, Some(port), None, None) => Ok(Readiness::Grpc { port }),
        (None, None, None, None, Some(command)) => Ok(Readiness::Command { command }),
        (None, None, None, Some(text), None) if !text.is_empty() => Ok(Readiness::LogLine {
            contains: text.clone(),
        }),
        _ => Err(not_one(whose, source)),
    }
}

/// `/health`, `:9001/health`, `http://localhost:9001/health`: the port that is named, and the path.
fn split_ready_path(text: &str) -> Option<(Option<u16>, &str)> {
    let bare = text.strip_prefix("http://").map_or(text, |rest| {
        let host = rest
            .strip_prefix("localhost")
            .or(rest.strip_prefix("127.0.0.1"));
        host.unwrap_or(text)
    });
    let Some(rest) = bare.strip_prefix(':') else {
        return bare.starts_with('/').then_some((None, bare));
    };
    let end = rest.find('/').unwrap_or(rest.len());
    let path = if end == rest.len() { "/" } else { &rest[end..] };
    Some((Some(rest[..end].parse().ok()?), path))
}

fn not_one(whose: &str, source: &ExperimentSource<'_>) -> ExperimentError {
    source.experiment_error(
        format!("ready of {whose} needs exactly one check"),
        "give exactly one of http = \"/health\", tcp = 8080, grpc = 9090, log = \"Started\", command = [\"./ready.sh\"]",
    )
}

pub(super) fn check_account(text: &Text, source: &ExperimentSource<'_>) -> Checked<Account> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, text));
    let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse()) else {
        let hint = "write numbers: user = \"1000\" or \"1000:1000\"";
        return Err(source.error_at(text, format!("`{text}` is not an account"), hint));
    };
    if uid == 0 || gid == 0 {
        return Err(source.error_at(text, "it may not run as root", "choose a user id above 0"));
    }
    Ok(Account { uid, gid })
}

pub(super) fn check_cpu(text: &Text, source: &ExperimentSource<'_>) -> Checked<Cpus> {
    let word = text.to_lowercase();
    let hint = if word.contains("auto") || word.contains("none") {
        "CPUs such as 1.5 or 250m; auto and none have to be alone: --cpu auto"
    } else {
        "CPUs such as 1.5 or 250m"
    };
    let cpus: Cpus = source.parse_text(text, hint)?;
    // 1 ms of quota in a period of 100 ms is the least the kernel takes.
    if cpus.as_millis() < 10 {
        let problem = format!("`{text}` is too little CPU: the kernel accepts no quota below 10m");
        return Err(source.error_at(
            text,
            problem,
            "give at least 50m; decimals have a point: 0.5",
        ));
    }
    Ok(cpus)
}

pub(super) fn check_memory(text: &Text, source: &ExperimentSource<'_>) -> Checked<Bytes> {
    let bytes: Bytes = source.parse_text(text, "memory with a unit, such as 512Mi")?;
    if bytes < Bytes::from_mib(1) {
        let problem = format!("`{text}` is less than 1 MiB of memory");
        return Err(source.error_at(text, problem, "is the unit missing? write 512Mi"));
    }
    Ok(bytes)
}

pub(super) fn check_period(text: &Text, source: &ExperimentSource<'_>) -> Checked<Duration> {
    let period = source.positive_time(Some(text), CPU_PERIOD, "cpu-period")?;
    if period < PERIOD_RANGE.0 || period > PERIOD_RANGE.1 {
        let problem = format!("`{text}` is not a CFS period");
        return Err(source.error_at(text, problem, "the kernel accepts 1ms to 1s"));
    }
    Ok(period)
}

pub(super) fn check_cpu_sets(text: &Text, source: &ExperimentSource<'_>) -> Checked<CpuSets> {
    text.parse().map_err(|_| {
        let hint = "write 0 or 0-3 or 0,2; for two instances 0-1;2-3";
        source.error_at(text, format!("`{text}` is not a list of CPUs"), hint)
    })
}

impl ExperimentSource<'_> {
    pub(super) fn parse_text<T: FromStr<Err: std::fmt::Display>>(
        &self,
        text: &Text,
        hint: &str,
    ) -> Checked<T> {
        text.parse().map_err(|e| self.error_at(text, e, hint))
    }

    pub(super) fn time_or_zero(
        &self,
        text: Option<&Text>,
        default: Duration,
        name: &str,
    ) -> Checked<Duration> {
        let Some(text) = text else { return Ok(default) };
        let time = parse_duration(text).filter(|d| *d <= DAY);
        time.ok_or_else(|| {
            let problem = format!("`{text}` is not a length of time for {name}");
            self.error_at(text, problem, "write 500ms, 10s, 2m or 1.5h, at most a day")
        })
    }

    pub(super) fn positive_time(
        &self,
        text: Option<&Text>,
        default: Duration,
        name: &str,
    ) -> Checked<Duration> {
        let time = self.time_or_zero(text, default, name)?;
        match text.filter(|_| time.is_zero()) {
            Some(text) => {
                let hint = "write 500ms, 10s, 2m or 1.5h";
                Err(self.error_at(text, format!("{name} is zero"), hint))
            }
            None => Ok(time),
        }
    }

    pub(super) fn in_range<T: Copy + PartialOrd + std::fmt::Display>(
        &self,
        value: Option<&ValueWithOrigin<T>>,
        default: T,
        range: Range<T>,
        name: &str,
    ) -> Checked<T> {
        match value {
            None => Ok(default),
            Some(value) if range.contains(value) => Ok(**value),
            Some(value) => {
                let hint = format!("from {} and below {}", range.start, range.end);
                Err(self.error_at(value, format!("{name} = {value} is out of range"), hint))
            }
        }
    }
}
