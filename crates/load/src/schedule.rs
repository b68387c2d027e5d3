//! When requests are due: intended send times from slot numbers, never from connections.
//!
//! The rate over time is a list of [`RateSegment`]s (constant, ramp, steps, a recorded profile are
//! all lists of segments). F(t) is the number of requests due before t; slot k is due at F⁻¹(E_k),
//! where E_k = k for uniform arrivals and a sum of k exponentials for Poisson ones. Only the
//! exponentials accumulate from one request to the next, so a schedule cannot drift.

use std::time::Duration;

use loadline_analysis::random::RandomStream;
use serde::{Deserialize, Serialize};

use crate::plan::LoadModel;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateSegment {
    /// Requests a second at its start; 0 is allowed.
    pub from: f64,
    pub to: f64,
    #[serde(rename = "duration_ns", with = "loadline_analysis::wire::nanos")]
    pub duration: Duration,
}

/// A course played again and again for this length, cut at its end.
pub(crate) fn repeat_segments(segments: &[RateSegment], length: Duration) -> Vec<RateSegment> {
    let mut left = length;
    let mut course = Vec::new();
    for segment in segments.iter().filter(|s| !s.duration.is_zero()).cycle() {
        if left.is_zero() {
            break;
        }
        let duration = segment.duration.min(left);
        let share = duration.as_secs_f64() / segment.duration.as_secs_f64();
        course.push(RateSegment {
            to: segment.from + (segment.to - segment.from) * share,
            duration,
            ..*segment
        });
        left -= duration;
    }
    course
}

impl RateSegment {
    pub fn constant_rate(rate: f64, duration: Duration) -> Self {
        Self {
            from: rate,
            to: rate,
            duration,
        }
    }

    pub fn due_requests(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.duration.as_secs_f64()
    }

    /// Seconds into the segment at which `count` requests were due; `count` < `requests()`.
    fn seconds_until(&self, count: f64) -> f64 {
        let slope = (self.to - self.from) / self.duration.as_secs_f64();
        if slope.abs() < 1e-9 {
            return count / self.from;
        }
        // count = from·t + slope·t²/2, solved without cancellation for small slopes.
        let root = (self.from * self.from + 2.0 * slope * count)
            .max(0.0)
            .sqrt();
        2.0 * count / (self.from + root)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalPattern {
    /// Evenly: the gaps follow the rate exactly.
    #[default]
    Uniform,
    /// As independent users: exponential gaps with the rate as mean.
    Poisson,
}

impl LoadModel {
    /// Upper bound of scheduled requests: for random arrivals five standard deviations above the
    /// mean. `None` for a closed model.
    pub fn most_requests(&self) -> Option<u64> {
        let Self::Open { segments, arrivals } = self else {
            return None;
        };
        let requests: f64 = segments.iter().map(RateSegment::due_requests).sum();
        let more = match arrivals {
            ArrivalPattern::Uniform => 1.0,
            ArrivalPattern::Poisson => 5.0 * requests.sqrt() + 10.0,
        };
        Some((requests + more).ceil() as u64)
    }
}

/// The intended send times of one shard, in order, as ns since the start.
#[derive(Debug, Clone)]
pub(crate) struct SendSchedule {
    segments: Vec<RateSegment>,
    current: usize,
    /// Requests due, and seconds passed, before the current segment.
    base_count: f64,
    base_seconds: f64,
    /// E of the next slot, and the step to the one after it.
    position: f64,
    stride: f64,
    poisson: Option<RandomStream>,
    /// Of the next request, ns since the start; `None` after the last.
    pub(crate) next: Option<u64>,
    taken: u64,
}

impl SendSchedule {
    /// Shard `index` of `shards`. Uniform slots are dealt out in turn; Poisson arrivals are split
    /// into independent Poisson streams, which add up to one again.
    pub(crate) fn new(
        segments: &[RateSegment],
        arrivals: ArrivalPattern,
        seed: u64,
        index: u32,
        shards: u32,
    ) -> Self {
        let stride = f64::from(shards);
        let mut schedule = Self {
            segments: segments.to_vec(),
            current: 0,
            base_count: 0.0,
            base_seconds: 0.0,
            position: f64::from(index),
            stride,
            poisson: None,
            next: None,
            taken: 0,
        };
        if arrivals == ArrivalPattern::Poisson {
            let mut random = RandomStream::from_seed(shard_seed(seed, index));
            schedule.position = random.exponential() * stride;
            schedule.poisson = Some(random);
        }
        schedule.next = schedule.time_at_position(schedule.position);
        schedule
    }

    pub(crate) fn advance(&mut self) {
        self.taken += 1;
        self.position += match &mut self.poisson {
            None => self.stride,
            Some(random) => random.exponential() * self.stride,
        };
        self.next = self.time_at_position(self.position);
    }

    pub(crate) fn advance_to(&mut self, limit: u64) -> u64 {
        let before = self.taken;
        while self.next.is_some_and(|t| t < limit) {
            self.advance();
        }
        self.taken - before
    }

    fn time_at_position(&mut self, position: f64) -> Option<u64> {
        loop {
            let segment = self.segments.get(self.current)?;
            let within = position - self.base_count;
            let requests = segment.due_requests();
            if within < requests {
                let seconds = self.base_seconds + segment.seconds_until(within);
                return Some((seconds * 1e9) as u64);
            }
            self.base_count += requests;
            self.base_seconds += segment.duration.as_secs_f64();
            self.current += 1;
        }
    }
}

/// Seeds of shards must not be neighbours in one stream: mix the index in by its own draw.
pub(crate) fn shard_seed(seed: u64, index: u32) -> u64 {
    let mut random = RandomStream::from_seed(u64::from(index));
    seed ^ random.next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(
        segments: &[RateSegment],
        arrivals: ArrivalPattern,
        index: u32,
        shards: u32,
    ) -> Vec<u64> {
        let mut schedule = SendSchedule::new(segments, arrivals, 42, index, shards);
        std::iter::from_fn(|| {
            let next = schedule.next?;
            schedule.advance();
            Some(next)
        })
        .collect()
    }

    #[test]
    fn a_constant_rate_gives_every_slot_at_its_place_and_none_at_the_end() {
        let one = [RateSegment::constant_rate(1000.0, Duration::from_secs(20))];
        let times = times(&one, ArrivalPattern::Uniform, 0, 1);
        assert_eq!(times.len(), 20_000);
        assert_eq!(times[0], 0);
        assert_eq!(times[1], 1_000_000);
        assert_eq!(times[19_999], 19_999_000_000);
    }

    #[test]
    fn shards_together_are_the_whole_schedule() {
        let segments = [
            RateSegment::constant_rate(333.3, Duration::from_secs(3)),
            RateSegment {
                from: 100.0,
                to: 900.0,
                duration: Duration::from_secs(4),
            },
        ];
        let whole = times(&segments, ArrivalPattern::Uniform, 0, 1);
        let mut parts: Vec<u64> = (0..3)
            .flat_map(|i| times(&segments, ArrivalPattern::Uniform, i, 3))
            .collect();
        parts.sort_unstable();
        assert_eq!(whole, parts);
    }

    #[test]
    fn a_ramp_has_half_of_its_requests_where_the_integral_says() {
        let ramp = [RateSegment {
            from: 0.0,
            to: 1000.0,
            duration: Duration::from_secs(10),
        }];
        let times = times(&ramp, ArrivalPattern::Uniform, 0, 1);
        assert_eq!(times.len(), 5000);
        // F(t) = 50 t², so half of 5000 is reached at t = sqrt(50).
        let half = 50f64.sqrt() * 1e9;
        assert!((times[2500] as f64 - half).abs() < 10.0, "{}", times[2500]);
        assert!(times.is_sorted());
    }

    #[test]
    fn steps_and_silence_keep_their_boundaries() {
        let steps = [
            RateSegment::constant_rate(10.0, Duration::from_secs(1)),
            RateSegment::constant_rate(0.0, Duration::from_secs(5)),
            RateSegment::constant_rate(20.0, Duration::from_secs(1)),
        ];
        let times = times(&steps, ArrivalPattern::Uniform, 0, 1);
        assert_eq!(times.len(), 30);
        assert_eq!(times[9], 900_000_000);
        assert_eq!(times[10], 6_000_000_000);
    }

    #[test]
    fn poisson_counts_per_interval_have_a_variance_equal_to_their_mean() {
        let one = [RateSegment::constant_rate(1000.0, Duration::from_secs(100))];
        for shards in [1, 4] {
            let mut counts = vec![0f64; 10_000];
            for index in 0..shards {
                for t in times(&one, ArrivalPattern::Poisson, index, shards) {
                    counts[(t / 10_000_000) as usize] += 1.0;
                }
            }
            let n = counts.len() as f64;
            let mean = counts.iter().sum::<f64>() / n;
            let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
            assert!((mean - 10.0).abs() < 0.15, "{mean}");
            assert!((variance / mean - 1.0).abs() < 0.06, "{}", variance / mean);
        }
    }
}
