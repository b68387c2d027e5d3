//! A trial in which a dependency was slow or down for a while: before, during, after.
//!
//! Owns the division of the measured load by the due times of requests, the figures of each part,
//! the time until the SLO held again, and the judgement of the objectives about that. A request
//! belongs to the second in which it was due, whenever its answer came: a request that hung through
//! the outage is a failure of the outage, not of the time after it.

mod returned;

use std::time::Duration;

pub use returned::{ApplicationState, StateReturn, find_returns};

use crate::latency::{self, Latency, LatencyError};
use crate::record::{DueEvidence, Evidence, LinkSecond, LoadEvidence, OutageEvidence, TrialPhase};
use crate::slo::{Objective, OutageObjective, Slo};
use crate::text;
use crate::verdict::judged_latency;

/// So many requests beyond a percentile, at least, has a stretch of time that says whether it held:
/// one slow request is none.
const BEYOND: f64 = 2.0;

/// Seconds before an outage that belong to neither part: the outage hits requests that are already
/// under way.
const UNDER_WAY: usize = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct CourseSection {
    /// Begin and end, whole seconds from the begin of the load.
    pub seconds: (usize, usize),
    pub latency: Latency,
    pub failed: u64,
    /// Round trips to the dependencies, and connections that were refused, together.
    pub asked: u64,
}

impl CourseSection {
    pub fn scheduled(&self) -> u64 {
        self.latency.scheduled()
    }

    /// Share of requests without a good answer, in [0, 1]; `None` without requests.
    pub fn error_share(&self) -> Option<f64> {
        self.per_request(self.failed)
    }

    /// Dependency requests per request of the load; `None` without requests.
    pub fn asked_each(&self) -> Option<f64> {
        self.per_request(self.asked)
    }

    fn per_request(&self, count: u64) -> Option<f64> {
        let all = self.scheduled();
        (all > 0).then(|| count as f64 / all as f64)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct OutageCourse {
    pub before: CourseSection,
    pub during: CourseSection,
    pub after: CourseSection,
    /// From the end of the outage until every stretch of time keeps the SLO again; `None` is that it
    /// did not come to that.
    pub recovered: Option<Duration>,
    pub stretch: Duration,
}

impl OutageCourse {
    /// Of a trial; `None` where nothing was wrong on a schedule, or there was no load.
    /// Errors: When a histogram of the record cannot be read.
    pub fn from_evidence(evidence: &Evidence, slo: &Slo) -> Result<Option<Self>, LatencyError> {
        let Some((from, to)) = outage_span(&evidence.outages) else {
            return Ok(None);
        };
        let measured = evidence.load_in(TrialPhase::Measure).next();
        let Some(load) = measured.filter(|load| !load.by_second.is_empty()) else {
            return Ok(None);
        };
        let seconds = load.by_second.iter().map(outcome_latency);
        let seconds = seconds.collect::<Result<Vec<Latency>, _>>()?;
        let links = link_counts(evidence);
        let part = |from: usize, to: usize| course_section(&seconds, &links, from, to);
        let from = whole_seconds(from).min(seconds.len());
        let to_end = whole_seconds(to) + usize::from(to.subsec_nanos() > 0);
        let to = to_end.min(seconds.len());
        let stretch = stretch(slo, load);
        let mut after = to..seconds.len();
        let recovered = after.find(|begin| holds_from(*begin, stretch, &seconds, slo));
        let after = part(to, seconds.len())?;
        // Without a request nothing has shown that it works again.
        let recovered = recovered.filter(|_| after.scheduled() > 0);
        Ok(Some(Self {
            before: part(0, from.saturating_sub(UNDER_WAY))?,
            during: part(from, to)?,
            after,
            recovered: recovered.map(|second| Duration::from_secs((second - to) as u64)),
            stretch: Duration::from_secs(stretch as u64),
        }))
    }
}

fn outage_span(outages: &[OutageEvidence]) -> Option<(Duration, Duration)> {
    let from = outages.iter().map(|outage| outage.from).min()?;
    let to = outages.iter().map(|outage| outage.to).max()?;
    Some((from, to))
}

fn whole_seconds(time: Duration) -> usize {
    usize::try_from(time.as_secs()).unwrap_or(usize::MAX)
}

fn outcome_latency(second: &DueEvidence) -> Result<Latency, LatencyError> {
    let answered = latency::decode_histogram(&second.latency)?;
    Latency::new(answered, second.ok + second.failed)
}

fn link_counts(evidence: &Evidence) -> Vec<u64> {
    let mut asked: Vec<u64> = Vec::new();
    let links = evidence.dependencies.iter().filter_map(|d| d.link.as_ref());
    for link in links {
        asked.resize(asked.len().max(link.seconds.len()), 0);
        let of = |second: &LinkSecond| second.exchanges + second.refused;
        for (all, one) in asked.iter_mut().zip(link.seconds.iter().map(of)) {
            *all += one;
        }
    }
    asked
}

fn course_section(
    seconds: &[Latency],
    links: &[u64],
    from: usize,
    to: usize,
) -> Result<CourseSection, LatencyError> {
    let latency = pool_seconds(&seconds[from..to])?;
    Ok(CourseSection {
        seconds: (from, to),
        failed: latency.scheduled() - latency.succeeded(),
        latency,
        asked: links.iter().take(to).skip(from).sum(),
    })
}

fn pool_seconds(seconds: &[Latency]) -> Result<Latency, LatencyError> {
    let mut sum = Latency::new(latency::empty_histogram(), 0)?;
    for second in seconds {
        sum.merge(second)?;
    }
    Ok(sum)
}

fn stretch(slo: &Slo, load: &LoadEvidence) -> usize {
    let beyond = |objective: &Objective| match objective {
        Objective::Latency { quantile, .. } => Some(1.0 - quantile.as_fraction()),
        Objective::Errors { bound } => Some(*bound),
        _ => None,
    };
    let least = slo.objectives.iter().filter_map(beyond).fold(1.0, f64::min);
    let rate = load.scheduled as f64 / load.duration.as_secs_f64().max(1.0);
    let needed = BEYOND / least.max(1e-6) / rate.max(1e-6);
    // A cast from a float saturates.
    needed.ceil().clamp(1.0, 60.0) as usize
}

fn holds_from(begin: usize, stretch: usize, seconds: &[Latency], slo: &Slo) -> bool {
    let last = seconds.len().saturating_sub(stretch).max(begin);
    (begin..=last).all(|from| {
        let to = (from + stretch).min(seconds.len());
        pool_seconds(&seconds[from..to]).is_ok_and(|latency| keeps_slo(&latency, slo))
    })
}

fn keeps_slo(latency: &Latency, slo: &Slo) -> bool {
    let measured = |objective: &Objective| match objective {
        Objective::Latency { .. } | Objective::MaxLatency { .. } => {
            judged_latency(*objective, latency).map(|d| d.as_secs_f64())
        }
        Objective::Errors { .. } => {
            let failed = latency.scheduled() - latency.succeeded();
            Some(failed as f64 / latency.scheduled().max(1) as f64)
        }
        _ => Some(0.0),
    };
    slo.objectives.iter().all(|o| o.is_met(measured(o)))
}

/// The evidence as if the load had ended when the outage began: what the objectives without a word
/// about outages are about. `None` where there was no outage.
/// Errors: When a histogram of the record cannot be read.
pub fn without_outage(
    evidence: &Evidence,
    course: &OutageCourse,
) -> Result<Evidence, LatencyError> {
    let mut calm = evidence.clone();
    let before = &course.before;
    let length = Duration::from_secs(before.seconds.1 as u64);
    let ok = before.latency.succeeded();
    let is_judged = |phase: TrialPhase| phase == TrialPhase::Measure;
    for load in calm.load.iter_mut().filter(|l| is_judged(l.phase)) {
        load.duration = length;
        load.scheduled = before.scheduled();
        load.ok = ok;
        load.errors.clear();
        load.unfinished = before.failed;
        load.achieved_rate = ok as f64 / length.as_secs_f64().max(1.0);
        load.latency = latency::encode_histogram(before.latency.histogram())?;
        load.by_request.clear();
    }
    let begin = evidence.span_of(TrialPhase::Measure).map(|p| p.start);
    let end = begin.map_or(u64::MAX, |at| at.saturating_add(length.as_nanos() as u64));
    calm.seconds.retain(|second| second.at_ns <= end);
    for phase in calm.phases.iter_mut().filter(|p| is_judged(p.phase)) {
        phase.end = phase.end.min(end);
    }
    Ok(calm)
}

pub fn judge_objectives(course: &OutageCourse, slo: &Slo) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut broken) = (Vec::new(), Vec::new());
    for objective in &slo.outage {
        let (is_kept, said) = match *objective {
            OutageObjective::Recovers { bound } => judge_recovery(course, bound),
            OutageObjective::Errors { bound } => match course.during.error_share() {
                Some(share) => {
                    let shown = text::percent_beside(share, bound);
                    (share < bound, format!("errors during the outage {shown}"))
                }
                None => (false, nothing_due("during")),
            },
        };
        let list = if is_kept { &mut kept } else { &mut broken };
        list.push(format!("{said} ({objective})"));
    }
    (kept, broken)
}

fn judge_recovery(course: &OutageCourse, bound: Duration) -> (bool, String) {
    let CourseSection { seconds, .. } = course.after;
    match course.recovered {
        Some(time) if time.is_zero() => (true, "it recovered at once".to_owned()),
        Some(time) => {
            let shown = text::duration_beside(time, bound);
            (time < bound, format!("it recovered within {shown}"))
        }
        None if course.after.scheduled() == 0 => (false, nothing_due("after")),
        None => {
            let waited = seconds.1 - seconds.0;
            let said = format!("it did not recover in the {waited} s after the outage");
            (false, said)
        }
    }
}

fn nothing_due(when: &str) -> String {
    format!("no request was due {when} the outage: it cannot be told")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture;

    /// 100 requests a second for 30 s at 20 ms; from 10 s to 15 s, and `slow_to_recover` seconds
    /// after, every other one fails.
    pub(crate) fn trial(slow_to_recover: usize) -> Evidence {
        let second = |index: usize| {
            let is_bad = (10..15 + slow_to_recover).contains(&index);
            let ok = if is_bad { 50 } else { 100 };
            let mut histogram = latency::empty_histogram();
            histogram
                .record_n(20_000_000, ok)
                .expect("it is in its bounds");
            DueEvidence {
                ok,
                failed: 100 - ok,
                latency: latency::encode_histogram(&histogram).expect("it is small"),
            }
        };
        let mut evidence = fixture::passing_evidence();
        for load in evidence
            .load
            .iter_mut()
            .filter(|l| l.phase == TrialPhase::Measure)
        {
            load.by_second = (0..30).map(second).collect();
            load.duration = Duration::from_secs(30);
            load.scheduled = 3000;
        }
        evidence.outages = vec![OutageEvidence {
            dependency: "db".to_owned(),
            what: "down".to_owned(),
            from: Duration::from_secs(10),
            to: Duration::from_secs(15),
        }];
        evidence
    }

    fn course(slow_to_recover: usize) -> OutageCourse {
        let slo: Slo = "p90<50ms,errors<5%".parse().expect("an SLO");
        let course = OutageCourse::from_evidence(&trial(slow_to_recover), &slo);
        course.expect("it is read").expect("there was an outage")
    }

    #[test]
    fn each_part_has_the_requests_that_were_due_in_it() {
        let course = course(3);
        let of = |part: &CourseSection| (part.seconds, part.scheduled(), part.failed);
        assert_eq!(of(&course.before), ((0, 9), 900, 0));
        assert_eq!(of(&course.during), ((10, 15), 500, 250));
        assert_eq!(of(&course.after), ((15, 30), 1500, 150));
    }

    #[test]
    fn it_has_recovered_when_every_stretch_from_then_on_keeps_the_slo() {
        assert_eq!(course(0).recovered, Some(Duration::ZERO));
        assert_eq!(course(3).recovered, Some(Duration::from_secs(3)));
        assert_eq!(course(15).recovered, None);
    }

    #[test]
    fn objectives_about_outages_are_judged_with_their_numbers() {
        let slo: Slo = "p90<50ms,errors<5%,recovers<2s,errors<60% during"
            .parse()
            .expect("one");
        let (kept, broken) = judge_objectives(&course(3), &slo);
        insta::assert_snapshot!(kept.join("\n"), @"errors during the outage 50 % (errors<60% during)");
        insta::assert_snapshot!(broken.join("\n"), @"it recovered within 3s (recovers<2s)");
        let (_, broken) = judge_objectives(&course(15), &slo);
        insta::assert_snapshot!(broken.join("\n"), @"it did not recover in the 15 s after the outage (recovers<2s)");
    }

    #[test]
    fn without_a_request_it_says_that_it_cannot_tell() {
        let slo: Slo = "errors<5%,recovers<2s,errors<60% during"
            .parse()
            .expect("one");
        let mut evidence = trial(0);
        for load in &mut evidence.load {
            for second in load.by_second.iter_mut().skip(10) {
                let latency =
                    latency::encode_histogram(&latency::empty_histogram()).expect("it is small");
                (second.ok, second.failed, second.latency) = (0, 0, latency);
            }
        }
        let course = OutageCourse::from_evidence(&evidence, &slo);
        let course = course.expect("it is read").expect("there was an outage");
        let (kept, broken) = judge_objectives(&course, &slo);
        assert_eq!(kept, Vec::<String>::new());
        insta::assert_snapshot!(broken.join("\n"), @"
        no request was due after the outage: it cannot be told (recovers<2s)
        no request was due during the outage: it cannot be told (errors<60% during)
        ");
    }

    #[test]
    fn other_objectives_are_about_the_time_before() {
        let evidence = trial(3);
        let calm = without_outage(&evidence, &course(3)).expect("it is written");
        let load = calm
            .load
            .iter()
            .find(|l| l.phase == TrialPhase::Measure)
            .expect("one");
        assert_eq!((load.scheduled, load.ok, load.unfinished), (900, 900, 0));
    }
}
