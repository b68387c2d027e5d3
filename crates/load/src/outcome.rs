//! What became of every request: counts by outcome, histograms, per second and in total.
//!
//! Owns the invariant scheduled = ok + errors by kind + unfinished (shed requests are a kind).

use std::collections::BTreeMap;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::LoadError;
use crate::histogram::{self, Histogram};

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $name:ident => $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ErrorKind {
            $($(#[$doc])* $name,)*
        }

        impl ErrorKind {
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

error_kinds! {
    Refused => "refused",
    Reset => "reset",
    Closed => "closed",
    /// No complete response within the timeout of the send, or no connection within it.
    Timeout => "timeout",
    ConnectTimeout => "connect_timeout",
    /// The connection brought no byte within its own deadline.
    ReadTimeout => "read_timeout",
    /// This machine has no free port or descriptor for another connection.
    PortExhausted => "port_exhausted",
    Unreachable => "unreachable",
    Tls => "tls",
    Protocol => "protocol",
    /// A redirect where it is not expected; redirects are never followed.
    Http3xx => "http_3xx",
    Http4xx => "http_4xx",
    Http5xx => "http_5xx",
    WrongStatus => "wrong_status",
    WrongBody => "wrong_body",
    Io => "io",
    GrpcCancelled => "grpc_cancelled",
    GrpcUnknown => "grpc_unknown",
    GrpcInvalidArgument => "grpc_invalid_argument",
    GrpcDeadlineExceeded => "grpc_deadline_exceeded",
    GrpcNotFound => "grpc_not_found",
    GrpcAlreadyExists => "grpc_already_exists",
    GrpcPermissionDenied => "grpc_permission_denied",
    GrpcResourceExhausted => "grpc_resource_exhausted",
    GrpcFailedPrecondition => "grpc_failed_precondition",
    GrpcAborted => "grpc_aborted",
    GrpcOutOfRange => "grpc_out_of_range",
    GrpcUnimplemented => "grpc_unimplemented",
    GrpcInternal => "grpc_internal",
    GrpcUnavailable => "grpc_unavailable",
    GrpcDataLoss => "grpc_data_loss",
    GrpcUnauthenticated => "grpc_unauthenticated",
    /// Never sent: no connection was free within the timeout of its intended time.
    Shed => "shed",
}

impl ErrorKind {
    /// The kinds of failed gRPC calls by their code, from 1. Source: gRPC, "Status codes and their
    /// use in gRPC".
    pub(crate) const GRPC: &[Self] = Self::ALL
        .split_at(Self::GrpcCancelled as usize)
        .1
        .split_at(16)
        .0;

    pub fn from_grpc_status(code: u16) -> Self {
        let kind = usize::from(code)
            .checked_sub(1)
            .and_then(|nth| Self::GRPC.get(nth));
        kind.copied().unwrap_or(Self::GrpcUnknown)
    }

    pub fn from_http_status(status: u16, expected: &[u16]) -> Option<Self> {
        let is_expected = if expected.is_empty() {
            (200..400).contains(&status)
        } else {
            expected.contains(&status)
        };
        (!is_expected).then_some(match status {
            300..=399 => Self::Http3xx,
            400..=499 => Self::Http4xx,
            500.. => Self::Http5xx,
            _ => Self::WrongStatus,
        })
    }

    pub(crate) fn from_errno(errno: Errno) -> Self {
        match errno {
            Errno::CONNREFUSED => Self::Refused,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Self::Reset,
            Errno::TIMEDOUT => Self::Timeout,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE | Errno::MFILE | Errno::NFILE => {
                Self::PortExhausted
            }
            Errno::NETUNREACH | Errno::HOSTUNREACH => Self::Unreachable,
            _ => Self::Io,
        }
    }
}

type ErrorCounts = [u64; ErrorKind::ALL.len()];

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadTotals {
    /// Requests that became due (open model) or were begun (closed model).
    pub scheduled: u64,
    pub ok: u64,
    /// Good responses that came while requests of this phase were due, whichever phase they were
    /// due in themselves: what an achieved rate counts. What a backlog gave in the drain is left
    /// out, or a server would seem to carry what it only caught up with.
    pub answered_in_time: u64,
    /// Failed requests by kind; `shed` are those never sent for want of a free connection.
    #[serde(with = "errors_by_name")]
    pub(crate) errors: ErrorCounts,
    pub unfinished: u64,
    pub body_bytes: u64,
    /// Body bytes of complete responses that came in the time of `answered_in_time`.
    pub body_bytes_in_time: u64,
    /// Responses that redirect, good or not; none is followed.
    #[serde(default)]
    pub redirects: u64,
    #[serde(default)]
    pub sessions: u64,
    /// Pauses of users that were cut short, because a request was due and no connection was left for
    /// a new user.
    #[serde(default)]
    pub cut_pauses: u64,
    /// From the intended send time to the end of the response, good responses, ns.
    #[serde(with = "histogram::as_text")]
    pub latency: Histogram,
    /// From the actual send to the end of the response, good responses, ns.
    #[serde(with = "histogram::as_text")]
    pub service_time: Histogram,
    /// From when a request could have been sent (it was due and a connection was free) to its
    /// send, ns: the generator's own delay.
    #[serde(with = "histogram::as_text")]
    pub send_lag: Histogram,
    /// The same by request of the mix, in its order; empty without a mix, and in a [`LoadSecond`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_request: Vec<RequestTotals>,
    /// The same by the second in which requests were due, including shed ones; empty unless the
    /// plan asks for it, and in a [`LoadSecond`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_second: Vec<RequestTotals>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RequestTotals {
    pub ok: u64,
    pub failed: u64,
    /// Requests that were sent and had no outcome at the end of the drain.
    pub unfinished: u64,
    #[serde(with = "histogram::as_text")]
    pub latency: Histogram,
}

impl RequestTotals {
    /// Zeros for this many requests. A profile has up to thousands: each histogram begins small,
    /// and a thread keeps one set for the whole run, not per second.
    pub(crate) fn zeros_for_each(requests: usize) -> Vec<Self> {
        vec![Self::default(); requests]
    }

    pub fn count_success(&mut self, latency: u64) {
        self.ok += 1;
        histogram::record_value(&mut self.latency, latency);
    }

    fn add_outcomes(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        histogram::add_histogram(&mut self.latency, &other.latency);
    }
}

fn add_each(mine: &mut [RequestTotals], theirs: &[RequestTotals]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.add_outcomes(theirs);
    }
}

impl Default for RequestTotals {
    fn default() -> Self {
        Self {
            ok: 0,
            failed: 0,
            unfinished: 0,
            latency: histogram::growing_histogram(),
        }
    }
}

impl Default for LoadTotals {
    fn default() -> Self {
        Self {
            scheduled: 0,
            ok: 0,
            answered_in_time: 0,
            errors: [0; ErrorKind::ALL.len()],
            unfinished: 0,
            body_bytes: 0,
            body_bytes_in_time: 0,
            redirects: 0,
            sessions: 0,
            cut_pauses: 0,
            latency: histogram::new(),
            service_time: histogram::new(),
            send_lag: histogram::new(),
            by_request: Vec::new(),
            by_second: Vec::new(),
        }
    }
}

impl LoadTotals {
    pub fn count_success(&mut self, latency: u64, service_time: u64) {
        self.ok += 1;
        self.latency.saturating_record(latency);
        self.service_time.saturating_record(service_time);
    }

    pub fn count_failure(&mut self, kind: ErrorKind) {
        self.count_failures(kind, 1);
    }

    pub(crate) fn count_failures(&mut self, kind: ErrorKind, count: u64) {
        self.errors[kind as usize] += count;
    }

    pub fn failed_requests(&self) -> u64 {
        self.errors.iter().sum()
    }

    pub fn errors_of(&self, kind: ErrorKind) -> u64 {
        self.errors[kind as usize]
    }

    /// Failed requests by the names of their kinds; kinds without any are left out.
    pub fn errors_by_name(&self) -> BTreeMap<String, u64> {
        errors_by_name::to_names(&self.errors)
    }

    /// The latency quantile over all scheduled requests: failed and unfinished ones count as
    /// infinitely slow. `None` is infinite.
    pub fn latency_quantile(&self, fraction: f64) -> Option<Duration> {
        histogram::quantile_with_failures(
            &self.latency,
            self.failed_requests() + self.unfinished,
            fraction,
        )
    }

    pub fn add_outcomes(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.ok += other.ok;
        self.answered_in_time += other.answered_in_time;
        for (mine, theirs) in self.errors.iter_mut().zip(other.errors) {
            *mine += theirs;
        }
        self.unfinished += other.unfinished;
        self.body_bytes += other.body_bytes;
        self.body_bytes_in_time += other.body_bytes_in_time;
        self.redirects += other.redirects;
        self.sessions += other.sessions;
        self.cut_pauses += other.cut_pauses;
        histogram::add_histogram(&mut self.latency, &other.latency);
        histogram::add_histogram(&mut self.service_time, &other.service_time);
        histogram::add_histogram(&mut self.send_lag, &other.send_lag);
        add_each(&mut self.by_request, &other.by_request);
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        self.add_outcomes(other);
        self.add_seconds(&other.by_second);
    }

    pub(crate) fn add_requests(&mut self, thread: Vec<RequestTotals>) {
        if self.by_request.is_empty() {
            self.by_request = thread
        } else {
            add_each(&mut self.by_request, &thread)
        }
    }

    pub(crate) fn add_seconds(&mut self, thread: &[RequestTotals]) {
        let missing = thread.len().saturating_sub(self.by_second.len());
        self.by_second
            .extend(RequestTotals::zeros_for_each(missing));
        add_each(&mut self.by_second, thread);
    }

    pub(crate) fn clear(&mut self) {
        self.scheduled = 0;
        self.ok = 0;
        self.answered_in_time = 0;
        self.errors = [0; ErrorKind::ALL.len()];
        self.unfinished = 0;
        self.body_bytes = 0;
        self.body_bytes_in_time = 0;
        self.redirects = 0;
        self.sessions = 0;
        self.cut_pauses = 0;
        for histogram in [
            &mut self.latency,
            &mut self.service_time,
            &mut self.send_lag,
        ] {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
    }

    /// Checks that every scheduled request has exactly one outcome.
    /// Errors: [`LoadError::Accounting`] with both sums.
    pub fn check_balance(&self) -> Result<(), LoadError> {
        let accounted = self.ok + self.failed_requests() + self.unfinished;
        if accounted == self.scheduled {
            Ok(())
        } else {
            Err(LoadError::Accounting {
                scheduled: self.scheduled,
                accounted,
            })
        }
    }
}

mod errors_by_name {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use crate::outcome::{ErrorCounts, ErrorKind};

    pub(super) fn to_names(errors: &ErrorCounts) -> BTreeMap<String, u64> {
        let named = ErrorKind::ALL.iter().zip(errors);
        let named = named.filter(|(_, count)| **count > 0);
        named
            .map(|(kind, n)| (kind.name().to_owned(), *n))
            .collect()
    }

    pub fn serialize<S: serde::Serializer>(errors: &ErrorCounts, to: S) -> Result<S::Ok, S::Error> {
        to_names(errors).serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<ErrorCounts, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let count = |kind: &ErrorKind| named.get(kind.name()).copied().unwrap_or(0);
        Ok(std::array::from_fn(|i| count(&ErrorKind::ALL[i])))
    }
}

#[derive(Debug)]
pub struct LoadSecond {
    pub index: u64,
    pub at_ns: u64,
    pub length: Duration,
    pub is_warmup: bool,
    /// Requests that became due in it and outcomes that came in it. Its sums need not match:
    /// a request may end in a later second than the one it was due in.
    pub totals: LoadTotals,
    /// The same apart: those due in the warm-up, and the others; `None` without a warm-up.
    pub phases: Option<Box<[LoadTotals; 2]>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_must_add_up() {
        let mut totals = LoadTotals {
            scheduled: 3,
            ok: 1,
            unfinished: 1,
            ..LoadTotals::default()
        };
        assert!(totals.check_balance().is_err());
        totals.count_failure(ErrorKind::Http5xx);
        assert!(totals.check_balance().is_ok());
        assert_eq!(
            totals.errors_by_name(),
            BTreeMap::from([("http_5xx".to_owned(), 1)])
        );
    }

    #[test]
    fn the_sum_of_parts_is_the_whole() {
        let mut part = LoadTotals {
            scheduled: 2,
            ok: 1,
            ..LoadTotals::default()
        };
        part.count_failure(ErrorKind::Reset);
        part.latency.saturating_record(5_000);
        let mut sum = LoadTotals::default();
        sum.add_outcomes(&part);
        sum.add_outcomes(&part);
        assert!(sum.check_balance().is_ok());
        assert_eq!(sum.latency.len(), 2);
        sum.clear();
        assert_eq!(
            (sum.scheduled, sum.failed_requests(), sum.latency.len()),
            (0, 0, 0)
        );
    }

    fn counted(factor: u64) -> LoadTotals {
        let mut totals = LoadTotals {
            scheduled: 100 * factor,
            ok: 2 * factor,
            answered_in_time: 3 * factor,
            unfinished: 5 * factor,
            body_bytes: 7 * factor,
            body_bytes_in_time: 11 * factor,
            redirects: 13 * factor,
            sessions: 17 * factor,
            cut_pauses: 19 * factor,
            by_request: RequestTotals::zeros_for_each(2),
            ..LoadTotals::default()
        };
        totals.count_failures(ErrorKind::Reset, 23 * factor);
        totals.count_failures(ErrorKind::Shed, 29 * factor);
        totals.count_success(1000 * factor, 2000 * factor);
        totals.send_lag.saturating_record(3000 * factor);
        for (totals, n) in totals.by_request.iter_mut().zip([31, 37]) {
            totals.count_success(n * 100 * factor);
            (totals.failed, totals.unfinished) = (n * factor, (n + 1) * factor);
        }
        totals
    }

    fn told(totals: &LoadTotals) -> String {
        let of = |r: &RequestTotals| {
            (
                r.ok,
                r.failed,
                r.unfinished,
                r.latency.len(),
                r.latency.max(),
            )
        };
        let requests: Vec<_> = totals.by_request.iter().map(of).collect();
        let seconds: Vec<_> = totals.by_second.iter().map(of).collect();
        let histograms = [&totals.latency, &totals.service_time, &totals.send_lag];
        let histograms = histograms.map(|h| (h.len(), h.min(), h.max()));
        let LoadTotals {
            scheduled,
            ok,
            answered_in_time,
            unfinished,
            body_bytes,
            body_bytes_in_time,
            redirects,
            sessions,
            cut_pauses,
            ..
        } = totals;
        format!(
            "{scheduled} {ok} {answered_in_time} {unfinished} {body_bytes} {body_bytes_in_time} {redirects} {sessions} {cut_pauses}\n{:?} {}\n{histograms:?}\n{requests:?}\n{seconds:?}",
            totals.errors_by_name(),
            totals.failed_requests()
        )
    }

    #[test]
    fn every_count_of_both_is_in_the_sum_and_none_after_it_was_cleared() {
        let mut sum = counted(1);
        sum.add_outcomes(&counted(10));
        insta::assert_snapshot!(told(&sum));
        let mut all = counted(1);
        let mut other = counted(10);
        other.by_second = RequestTotals::zeros_for_each(2);
        other.by_second[1].count_success(500);
        all.add_all(&other);
        all.add_all(&other);
        let seconds: Vec<_> = all.by_second.iter().map(|s| s.ok).collect();
        assert_eq!((seconds, all.scheduled), (vec![0, 2], 2100));
        all.add_seconds(&RequestTotals::zeros_for_each(1));
        assert_eq!(all.by_second.len(), 2);
        sum.clear();
        sum.by_request.clear();
        assert_eq!(told(&sum), told(&LoadTotals::default()));
    }

    #[test]
    fn threads_count_the_same_requests() {
        let mut totals = LoadTotals::default();
        totals.add_requests(counted(1).by_request);
        totals.add_requests(counted(10).by_request);
        let of = |r: &RequestTotals| (r.ok, r.failed, r.unfinished);
        let requests: Vec<_> = totals.by_request.iter().map(of).collect();
        assert_eq!(requests, [(2, 341, 352), (2, 407, 418)]);
    }

    #[test]
    fn a_system_call_that_failed_has_a_kind() {
        let of = |errno: Errno| ErrorKind::from_errno(errno).name();
        let all = [
            (Errno::CONNREFUSED, "refused"),
            (Errno::CONNRESET, "reset"),
            (Errno::PIPE, "reset"),
            (Errno::CONNABORTED, "reset"),
            (Errno::TIMEDOUT, "timeout"),
            (Errno::ADDRNOTAVAIL, "port_exhausted"),
            (Errno::ADDRINUSE, "port_exhausted"),
            (Errno::MFILE, "port_exhausted"),
            (Errno::NFILE, "port_exhausted"),
            (Errno::NETUNREACH, "unreachable"),
            (Errno::HOSTUNREACH, "unreachable"),
            (Errno::INVAL, "io"),
        ];
        for (errno, name) in all {
            assert_eq!(of(errno), name, "{errno}");
        }
    }

    #[test]
    fn what_failed_or_never_ended_is_slower_than_all_else() {
        let mut totals = LoadTotals::default();
        (1..=90).for_each(|ms| totals.count_success(ms * 1_000_000, 1));
        totals.count_failures(ErrorKind::Timeout, 5);
        totals.unfinished = 5;
        let at = |fraction| totals.latency_quantile(fraction).map(|d| d.as_millis());
        assert_eq!((at(0.5), at(0.9), at(0.91)), (Some(50), Some(90), None));
    }
}
