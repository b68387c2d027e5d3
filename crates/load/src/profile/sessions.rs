//! Think times: how long clients wait before their next request.
//!
//! Owns how a client is identified (its remote address, with the forwarded address and the user
//! agent if the log has them), the end of its session (30 minutes of idle), and which clients are
//! followed. A think time runs from the end of the client's requests so far to the begin of the
//! next one; a request that begins earlier overlaps and has none. Requests are taken in the order
//! of the log, that is, of their ends.
//!
//! Clients are kept in a table of fixed size, four to a set. A full set drops the client that is
//! idle for the longest; if its session may still go on, it is counted as cut.

use std::hash::Hasher;
use std::time::Duration;

use super::LoadProfile;
use super::class::KeyHasher;
use super::line::AccessLogLine;
use super::observed::UserSessionCounts;
use crate::error::LoadError;
use crate::histogram::{self, Histogram};
use crate::plan::ThinkTime;

const IDLE_US: i64 = 30 * 60 * 1_000_000;
/// Clients in a set: as many as a line of the CPU's cache holds.
const WAYS: usize = 4;
/// Binary logarithm of the number of sets; 16 is 262,144 clients in 4 MB. A fuzzer fills only a
/// few.
const SET_BITS: u32 = if cfg!(fuzzing) { 4 } else { 16 };

/// A client: its key, and when its requests so far had ended, in µs since 1970. Key 0 is none. A
/// plain tuple, because zeroed memory of those is not touched before it is used.
type Client = (u64, i64);

#[derive(Debug)]
pub(super) struct ClientTracker {
    sets: Vec<[Client; WAYS]>,
    pub(super) gaps: Histogram,
    pub(super) sessions: UserSessionCounts,
}

impl ClientTracker {
    pub(super) fn new() -> Self {
        Self {
            sets: vec![[(0, 0); WAYS]; 1 << SET_BITS],
            gaps: histogram::growing_histogram(),
            sessions: UserSessionCounts::default(),
        }
    }

    pub(super) fn track_request(&mut self, line: &AccessLogLine<'_>) {
        let Some(key) = client_key(line) else {
            self.sessions.anonymous += 1;
            return;
        };
        let (begin, end) = (to_micros(line.arrival), to_micros(line.end));
        let set = &mut self.sets[(key >> (u64::BITS - SET_BITS)) as usize];
        let Some((_, last)) = set.iter_mut().find(|(known, _)| *known == key) else {
            self.sessions.begun += 1;
            let dropped = replace_client(set, (key, end));
            self.sessions.cut += u64::from(dropped);
            return;
        };
        let gap = begin.saturating_sub(*last);
        if gap > IDLE_US || end < last.saturating_sub(IDLE_US) {
            // Long idle; or an earlier log came later, which does not affect this session.
            self.sessions.begun += 1;
            *last = end;
            return;
        }
        // A gap that is negative within the resolution of the stamps may be a pause.
        if gap >= -resolution(line) {
            histogram::record_value(&mut self.gaps, gap.max(0) as u64 * 1000);
        } else {
            self.sessions.overlapping += 1;
        }
        *last = end.max(*last);
    }
}

impl LoadProfile {
    /// The profile with the sessions in the logs: the same number in the same time, equally long,
    /// with the same thinking time, over the replayed requests. Pauses are spread evenly from none
    /// to twice their mean. Errors: [`LoadError::Plan`] when the logs do not identify clients.
    pub fn with_sessions(self) -> Result<Self, LoadError> {
        let seen = self.observed.as_ref();
        let seen = seen.filter(|seen| seen.sessions.begun > 0);
        let Some(seen) = seen else {
            let why = "the lines do not name the client; log its address (%h, $remote_addr), or \
                       write session and think into the profile yourself";
            return Err(LoadError::plan("sessions", why));
        };
        let replayed = seen.requests - seen.left_out_methods - seen.left_out_paths;
        let begun = seen.sessions.begun.min(replayed).max(1);
        let session = replayed.max(1) as f64 / begun as f64;
        let thought = seen
            .think_time_ms
            .map_or(0.0, |pauses| pauses.mean * pauses.count as f64);
        let mean = thought / (replayed.max(begun + 1) - begun) as f64;
        let think = ThinkTime {
            from: Duration::ZERO,
            to: Duration::from_millis((2.0 * mean).round() as u64),
        };
        Ok(Self {
            session: Some((session * 100.0).round() / 100.0),
            think: (session > 1.0).then_some(think),
            ..self
        })
    }
}

/// Puts a client into a free place, or replaces the client idle for the longest. Returns whether
/// the replaced client's session might have gone on.
fn replace_client(set: &mut [Client; WAYS], client: Client) -> bool {
    let now = client.1;
    let is_over = |(key, last): &Client| *key == 0 || last.abs_diff(now) > IDLE_US as u64;
    let rank = |known: &Client| (!is_over(known), known.1);
    let place = set.iter_mut().min_by_key(|known| rank(known));
    let Some(place) = place else {
        return true;
    };
    let is_cut = !is_over(place);
    *place = client;
    is_cut
}

/// `None` when the line has no address.
fn client_key(line: &AccessLogLine<'_>) -> Option<u64> {
    let is_missing = |address: &[u8]| matches!(address, b"" | b"-");
    if is_missing(line.address) && is_missing(line.forwarded) {
        return None;
    }
    let mut hasher = KeyHasher::default();
    hasher.write(line.address);
    hasher.write(line.forwarded);
    hasher.write(line.agent);
    Some(hasher.finish().max(1))
}

/// How far two stamps may be off against each other, in µs: servers cut off what they do not write.
fn resolution(line: &AccessLogLine<'_>) -> i64 {
    if line.is_whole_second {
        1_000_000
    } else {
        1_000
    }
}

fn to_micros(seconds: f64) -> i64 {
    (seconds * 1e6 + 0.5) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Distribution, LogObservations};

    fn request(address: &str, begin: f64, end: f64) -> AccessLogLine<'_> {
        AccessLogLine {
            arrival: 1e9 + begin,
            end: 1e9 + end,
            address: address.as_bytes(),
            ..AccessLogLine::default()
        }
    }

    fn follow(requests: &[(&str, f64, f64)]) -> ClientTracker {
        let mut followed = ClientTracker::new();
        for (address, begin, end) in requests {
            followed.track_request(&request(address, *begin, *end));
        }
        followed
    }

    #[test]
    fn a_think_time_runs_from_the_end_to_the_next_begin() {
        let found = follow(&[
            ("a", 0.0, 1.0),
            ("b", 0.5, 0.6),
            ("a", 3.0, 3.5),
            // Idle for 31 minutes: another session.
            ("b", 1860.6, 1861.0),
        ]);
        assert_eq!((found.gaps.len(), found.sessions.begun), (1, 3));
        assert!(found.gaps.equivalent(found.gaps.max(), 2_000_000_000));
    }

    #[test]
    fn what_overlaps_has_none_and_counts_until_it_ends() {
        let found = follow(&[
            ("a", 0.0, 1.0),
            ("a", 0.9, 10.0),
            ("a", 1.0, 2.0),
            ("a", 12.0, 13.0),
        ]);
        assert_eq!((found.gaps.len(), found.sessions.overlapping), (1, 2));
        assert!(found.gaps.equivalent(found.gaps.max(), 2_000_000_000));
    }

    #[test]
    fn stamps_of_whole_seconds_may_be_one_off() {
        let mut found = follow(&[("a", 0.0, 2.0)]);
        let mut next = request("a", 1.2, 3.0);
        next.is_whole_second = true;
        found.track_request(&next);
        assert_eq!((found.gaps.len(), found.sessions.overlapping), (1, 0));
    }

    #[test]
    fn a_log_of_another_day_begins_new_sessions() {
        let found = follow(&[("a", 86_400.0, 86_400.0), ("a", 0.0, 0.0), ("a", 5.0, 5.0)]);
        assert_eq!((found.gaps.len(), found.sessions.begun), (1, 2));
    }

    #[test]
    fn agents_tell_clients_of_one_address_apart() {
        let key = |agent, forwarded| {
            super::client_key(&AccessLogLine {
                address: b"::1",
                agent,
                forwarded,
                ..AccessLogLine::default()
            })
        };
        assert_ne!(key(b"x", b""), key(b"y", b""));
        assert_ne!(key(b"x", b"10.0.0.1"), key(b"x", b"10.0.0.2"));
        assert_eq!(key(b"x", b""), key(b"x", b""));
        let nobody = AccessLogLine {
            address: b"-",
            agent: b"x",
            ..AccessLogLine::default()
        };
        assert_eq!(super::client_key(&nobody), None);
    }

    #[test]
    fn what_is_replayed_has_as_many_sessions_and_as_much_thinking() {
        // Ten sessions of six requests, two seconds apart; two of the six are not replayed.
        let observed = LogObservations {
            requests: 60,
            left_out_methods: 20,
            think_time_ms: Some(Distribution {
                count: 50,
                mean: 2_000.0,
                ..Distribution::default()
            }),
            sessions: UserSessionCounts {
                begun: 10,
                ..UserSessionCounts::default()
            },
            ..LogObservations::default()
        };
        let profile = |observed| LoadProfile {
            observed: Some(observed),
            ..LoadProfile::default()
        };
        let found = profile(observed.clone()).with_sessions().unwrap();
        assert_eq!(found.session, Some(4.0));
        // 100 s of thinking between 30 requests.
        let said = found.think.map(|think| think.to_string());
        assert_eq!(said.as_deref(), Some("0s..6.667s"));
        let nobody = LogObservations {
            sessions: UserSessionCounts::default(),
            ..observed
        };
        let said = profile(nobody).with_sessions().unwrap_err().to_string();
        assert!(said.contains("do not name the client"), "{said}");
    }

    #[test]
    fn too_many_clients_are_counted_not_forgotten() {
        let clients = 3 << (SET_BITS + 1);
        let names: Vec<_> = (0..clients).map(|n: u32| n.to_string()).collect();
        let mut found = ClientTracker::new();
        for name in &names {
            found.track_request(&request(name, 0.0, 0.0));
        }
        let room = (WAYS << SET_BITS) as u64;
        let cut = found.sessions.cut;
        assert_eq!(found.sessions.begun, u64::from(clients));
        assert!(cut >= u64::from(clients) - room, "{cut}");
        // An hour later all sessions are over, so the next ones cut none.
        for name in &names[..1000] {
            found.track_request(&request(name, 3600.0, 3600.0));
        }
        assert_eq!(found.sessions.cut, cut);
        assert_eq!(found.gaps.len(), 0);
    }
}
