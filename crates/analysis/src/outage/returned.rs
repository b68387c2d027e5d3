//! Whether values that an outage changed came back: threads, connections, heap, memory.
//!
//! Owns the rule: the range before the outage, with a small tolerance, is normal; a value is back
//! from the moment it stays in that range. A fall in heap or memory does no harm. The values are
//! per second of a record.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use loadline_sizing::Bytes;

use super::OutageCourse;
use crate::record::{Evidence, SecondEvidence, TrialPhase};

/// Tolerance above the previous range, as a share.
const ROOM: f64 = 0.1;

/// Tolerance for threads and sockets: one timer, one connection.
const FEW: u64 = 2;
const LITTLE: u64 = 4 << 20;
const SECOND: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplicationState {
    Threads,
    Sockets,
    Heap,
    Memory,
}

impl ApplicationState {
    const ALL: [Self; 4] = [Self::Threads, Self::Sockets, Self::Heap, Self::Memory];

    pub fn state_name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Sockets => "sockets",
            Self::Heap => "heap after collections",
            Self::Memory => "memory",
        }
    }

    fn value_in(self, second: &SecondEvidence) -> Option<u64> {
        match self {
            Self::Threads => second.threads,
            Self::Sockets => second.sockets,
            Self::Heap => second.heap_after.map(Bytes::as_bytes),
            Self::Memory => second.anon.map(Bytes::as_bytes),
        }
    }

    pub fn show_value(self, value: u64) -> String {
        match self {
            Self::Threads | Self::Sockets => value.to_string(),
            Self::Heap | Self::Memory => format!("{:.0}Mi", value as f64 / f64::from(1 << 20)),
        }
    }

    fn calm_range(self, calm: &[(u64, u64)]) -> Option<RangeInclusive<u64>> {
        let values = || calm.iter().map(|(_, value)| *value);
        let (least, most) = (values().min()?, values().max()?);
        let room = |value: u64, few: u64| few.max((value as f64 * ROOM) as u64);
        Some(match self {
            Self::Threads | Self::Sockets => {
                least.saturating_sub(room(least, FEW))..=most + room(most, FEW)
            }
            Self::Heap | Self::Memory => 0..=most + room(most, LITTLE),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateReturn {
    pub state: ApplicationState,
    /// The most before the outage; threads and sockets, or bytes.
    pub before: u64,
    /// The value furthest from the range before; the most if it never left it.
    pub furthest: u64,
    pub last: u64,
    pub changed: bool,
    /// From the end of the outage until it is as before and stays so; `None` is not in this time, or
    /// that it never changed.
    pub back: Option<Duration>,
}

/// `threads 24 -> 61, back to 25 after 6 s`.
impl fmt::Display for StateReturn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value| self.state.show_value(value);
        let (before, most, last) = (show(self.before), show(self.furthest), show(self.last));
        write!(f, "{} {before}", self.state.state_name())?;
        match (self.changed, self.back.map(|time| time.as_secs())) {
            (false, _) => write!(f, ", at most {most}"),
            (true, Some(time)) => write!(f, " -> {most}, back to {last} after {time} s"),
            (true, None) => write!(f, " -> {most}, still {last} at the end of the load"),
        }
    }
}

pub fn find_returns(evidence: &Evidence, course: &OutageCourse) -> Vec<StateReturn> {
    let Some(measured) = evidence.span_of(TrialPhase::Measure) else {
        return Vec::new();
    };
    let at = |second: usize| measured.start + second as u64 * SECOND;
    let (from, to) = course.during.seconds;
    let of = |state: ApplicationState| {
        let seen = evidence.seconds.iter();
        let seen = seen.filter_map(|second| Some((second.at_ns, state.value_in(second)?)));
        let seen: Vec<(u64, u64)> = seen
            .filter(|(time, _)| (at(0)..=at(course.after.seconds.1)).contains(time))
            .collect();
        state_return(state, &seen, at(from), at(to))
    };
    ApplicationState::ALL.into_iter().filter_map(of).collect()
}

/// Of (time, value) pairs in order; the outage lasts `from` to `to`.
fn state_return(
    state: ApplicationState,
    seen: &[(u64, u64)],
    from: u64,
    to: u64,
) -> Option<StateReturn> {
    let first = seen.partition_point(|(time, _)| *time < from);
    let (calm, rest) = seen.split_at(first);
    let most = |part: &[(u64, u64)]| part.iter().map(|(_, value)| *value).max();
    let like = state.calm_range(calm)?;
    let last = rest.last().filter(|(time, _)| *time > to)?.1;
    let is_other = |value: u64| !like.contains(&value);
    let others = rest.iter().map(|(_, value)| *value);
    let others = others.filter(|value| is_other(*value));
    let before = most(calm)?;
    let furthest = others.max_by_key(|value| value.abs_diff(before));
    let other = rest.iter().rposition(|(_, value)| is_other(*value));
    // The first second from which on none is outside.
    let back = other.and_then(|index| rest.get(index + 1));
    let back = back.map(|(time, _)| Duration::from_nanos(time.saturating_sub(to)));
    Some(StateReturn {
        state,
        before,
        furthest: furthest.or_else(|| most(rest))?,
        last,
        changed: furthest.is_some(),
        back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One value a second; the outage lasts from 3 s to 6 s.
    fn said(state: ApplicationState, values: &[u64]) -> String {
        let seen: Vec<_> = (1..)
            .zip(values)
            .map(|(n, value)| (n * SECOND, *value))
            .collect();
        state_return(state, &seen, 3 * SECOND, 6 * SECOND)
            .map_or_else(|| "not seen".to_owned(), |returned| returned.to_string())
    }

    #[test]
    fn what_grew_comes_back_or_not() {
        let mi = |values: &[u64]| values.iter().map(|value| value << 20).collect::<Vec<_>>();
        let all = [
            said(
                ApplicationState::Threads,
                &[24, 24, 30, 61, 61, 61, 60, 40, 25, 25],
            ),
            said(
                ApplicationState::Threads,
                &[24, 24, 30, 61, 61, 61, 60, 58, 58, 58],
            ),
            // A relapse counts.
            said(
                ApplicationState::Sockets,
                &[10, 10, 40, 40, 10, 10, 10, 40, 10, 10],
            ),
            said(
                ApplicationState::Sockets,
                &[10, 10, 12, 11, 10, 10, 10, 10, 10, 10],
            ),
            // A pool that loses its connections.
            said(
                ApplicationState::Sockets,
                &[32, 32, 22, 23, 22, 22, 22, 24, 32, 32],
            ),
            said(
                ApplicationState::Heap,
                &mi(&[80, 82, 70, 30, 30, 30, 80, 80, 80, 80]),
            ),
            // Back while it still lasts.
            said(
                ApplicationState::Threads,
                &[10, 10, 40, 10, 10, 10, 10, 10, 10, 10],
            ),
            said(
                ApplicationState::Heap,
                &mi(&[80, 82, 90, 120, 120, 120, 120, 84, 83, 83]),
            ),
            said(ApplicationState::Threads, &[24, 24, 30, 30]),
            said(ApplicationState::Threads, &[]),
        ];
        insta::assert_snapshot!(all.join("\n"), @"
        threads 24 -> 61, back to 25 after 3 s
        threads 24 -> 61, still 58 at the end of the load
        sockets 10 -> 40, back to 10 after 3 s
        sockets 10, at most 12
        sockets 32 -> 22, back to 32 after 3 s
        heap after collections 82Mi, at most 80Mi
        threads 10 -> 40, back to 10 after 0 s
        heap after collections 82Mi -> 120Mi, back to 83Mi after 2 s
        not seen
        not seen
        ");
    }
}
