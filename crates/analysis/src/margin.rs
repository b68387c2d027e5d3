//! The margin above the smallest confirmed size, and its reasons.
//!
//! Owns the default margin and its two purposes: a search ends by chance above the size that most
//! starts need, and a service needs more after hours than in the seconds of a trial. The first is
//! known from simulation, the second from soaks. The margin covers the growth of most services; a
//! service that retains its input needs its own soak, which [`memory_needed_later`] evaluates.
//! METHODOLOGY, "The margin".

use std::time::Duration;

use loadline_sizing::Bytes;

use crate::record::SoakEvidence;

pub const TRIAL: Duration = Duration::from_secs(20);

/// Nineteen of twenty searches end no further below the size that their margin aims at, as a share.
///
/// Origin: simulated services, `cargo test -p loadline-simulated --test size_error_rates`.
pub const SEARCH: f64 = 0.068;

/// Margins are rounded up to multiples of this.
const GRAIN: f64 = 0.005;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoakedService {
    pub service: &'static str,
    pub length: Duration,
    /// Largest growth after the first seconds under load, as a share.
    pub grew: f64,
}

pub const SOAKED: [SoakedService; 4] = [
    SoakedService {
        service: "WireMock 3.9.1",
        length: Duration::from_secs(530),
        grew: 0.0,
    },
    SoakedService {
        service: "spring-web",
        length: Duration::from_secs(5100),
        grew: 220.4 / 204.0 - 1.0,
    },
    SoakedService {
        service: "spring-petclinic 4.0",
        length: Duration::from_secs(560),
        grew: 295.0 / 272.0 - 1.0,
    },
    SoakedService {
        service: "Zipkin 3.4.1",
        length: Duration::from_secs(5100),
        grew: 247.8 / 199.5 - 1.0,
    },
];

/// Share of [`SOAKED`] with growth that the margin covers: a trade-off between memory for all and a
/// soak for some.
const COVERED: f64 = 0.75;

/// The margin where none is given, as a share: for the growth that it covers, behind a search that may
/// have ended low.
pub fn default_margin() -> f64 {
    margin_for(covered_growth().0)
}

pub fn covered_growth() -> (f64, usize) {
    let mut grew = SOAKED.map(|soaked| soaked.grew);
    grew.sort_by(f64::total_cmp);
    let number = (COVERED * grew.len() as f64).ceil() as usize;
    (grew[number.clamp(1, grew.len()) - 1], number)
}

fn margin_for(growth: f64) -> f64 {
    let margin = (1.0 + SEARCH) * (1.0 + growth) - 1.0;
    (margin / GRAIN * (1.0 - 1e-9)).ceil() * GRAIN
}

/// What a soak needed after the seconds that a trial sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaterMemory {
    /// The most anonymous memory in the first [`TRIAL`] of the measuring.
    pub first: Bytes,
    pub most: Bytes,
    pub after: Duration,
}

impl LaterMemory {
    /// What it needed more, as a share; 0 where it needed no more.
    pub fn growth_share(&self) -> f64 {
        self.most.as_bytes() as f64 / self.first.as_bytes().max(1) as f64 - 1.0
    }
}

/// What a soak needed later; `None` where it had no points under load, or saw no longer than a trial.
/// Anonymous memory, because no limit can take that away; pages of files give way.
pub fn memory_needed_later(soak: &SoakEvidence) -> Option<LaterMemory> {
    let points = soak.points_under_load();
    let points: Vec<(u64, Bytes)> = points.filter_map(|p| Some((p.at_ns, p.anon?))).collect();
    let begin = points.first()?.0;
    let since = |at: u64| Duration::from_nanos(at.saturating_sub(begin));
    let (early, late): (Vec<_>, Vec<_>) = points.iter().partition(|(at, _)| since(*at) <= TRIAL);
    late.first()?;
    let first = early.iter().map(|(_, anon)| *anon).max()?;
    // The first of equals: since then it needed no more.
    let beyond = late.iter().filter(|(_, anon)| *anon > first);
    let (after, most) = beyond.fold((Duration::ZERO, first), |most, (at, anon)| {
        if *anon > most.1 {
            (since(*at), *anon)
        } else {
            most
        }
    });
    Some(LaterMemory { first, most, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{SoakPoint, TrialPhase};

    fn point(second: u64, phase: TrialPhase, anon: u64) -> SoakPoint {
        SoakPoint {
            at_ns: (100 + second) * 1_000_000_000,
            phase,
            requests: 0,
            errors: 0,
            anon: Some(Bytes::from_mib(anon)),
            file: None,
            working_set: None,
            heap_after: None,
            heap_before: None,
            heap_committed: None,
            metaspace: None,
            threads: None,
            descriptors: None,
            sockets: None,
        }
    }

    fn soak(points: &[(u64, TrialPhase, u64)]) -> SoakEvidence {
        SoakEvidence {
            points: points.iter().map(|(s, p, a)| point(*s, *p, *a)).collect(),
            ..SoakEvidence::default()
        }
    }

    #[test]
    fn what_comes_after_the_seconds_of_a_trial_is_later() {
        let seen = memory_needed_later(&soak(&[
            (0, TrialPhase::WarmUp, 400),
            (5, TrialPhase::Measure, 180),
            (25, TrialPhase::Measure, 200),
            (26, TrialPhase::Measure, 205),
            (900, TrialPhase::Again, 212),
            (950, TrialPhase::Again, 212),
            (999, TrialPhase::Again, 190),
        ]));
        let seen = seen.expect("there are points");
        assert_eq!(
            (seen.first, seen.most),
            (Bytes::from_mib(200), Bytes::from_mib(212))
        );
        assert_eq!(seen.after, Duration::from_secs(895));
        assert!((seen.growth_share() - 0.06).abs() < 1e-12);
    }

    #[test]
    fn a_soak_that_shrinks_needs_no_more() {
        let seen = memory_needed_later(&soak(&[
            (0, TrialPhase::Measure, 200),
            (60, TrialPhase::Measure, 150),
        ]));
        let seen = seen.expect("there are points");
        assert_eq!((seen.growth_share(), seen.after), (0.0, Duration::ZERO));
    }

    #[test]
    fn a_soak_no_longer_than_a_trial_says_nothing() {
        assert_eq!(memory_needed_later(&soak(&[])), None);
        assert_eq!(
            memory_needed_later(&soak(&[
                (0, TrialPhase::WarmUp, 1),
                (90, TrialPhase::WarmUp, 2)
            ])),
            None
        );
        assert_eq!(
            memory_needed_later(&soak(&[
                (0, TrialPhase::Measure, 1),
                (20, TrialPhase::Measure, 2)
            ])),
            None
        );
    }

    #[test]
    fn the_margin_covers_what_most_grew_by_and_a_low_end_of_the_search() {
        let (growth, number) = covered_growth();
        let within = SOAKED.iter().filter(|soaked| soaked.grew <= growth).count();
        assert_eq!(within, number);
        assert!(number as f64 >= COVERED * SOAKED.len() as f64);
        let least = (1.0 + SEARCH) * (1.0 + growth) - 1.0;
        let margin = default_margin();
        assert!((least..least + GRAIN).contains(&margin), "{margin} {least}");
        assert!(margin_for(0.0) > 0.0 && margin_for(0.2) > margin_for(0.1));
    }
}
