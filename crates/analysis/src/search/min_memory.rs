//! The smallest memory that works although trials are noisy: bisect, confirm, then add a margin.
//!
//! Owns the algorithm as a state machine over a grid of sizes. P(pass | size) is an S-curve, so a
//! single pass proves little and the margin does most of the work: margin after confirmation
//! gives 0.2 % bad answers where plain bisection gives 87 % (crate simulated,
//! `tests/min_memory_error_rates.rs`).
//! Holds inside one regime only: keep the garbage collector and the CPU limit fixed.

use loadline_sizing::Bytes;

use super::TrialOutcome;
use super::expected::{ExpectedSize, likely_middle};
use crate::margin;
use crate::record::TrialPurpose;

/// This many failed confirmations move up by the same step: they are within the spread of starts.
const DOUBLES_AFTER: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryParameters {
    pub step: Bytes,
    pub expected: Option<ExpectedSize>,
    /// A size taken to fail: the end of the range.
    pub low: Bytes,
    /// A size that passes, or that is tried first; doubled, up to `max`, while it fails.
    pub high: Bytes,
    /// Whether `high` has already passed (the roomy run).
    pub high_passed: bool,
    /// Largest size allowed; confirmation and margin may go above `high`, never above this.
    pub max: Bytes,
    /// The bisection ends when high/low is at most this.
    pub resolution: f64,
    /// Passes in a row before a size counts, in addition to the bisection's pass.
    pub confirmations: u32,
    /// The same above a size that missed: the starts below it speak too.
    pub after_miss: u32,
    /// Growth after a failed confirmation, as a factor; what it adds doubles from the fifth on.
    pub backoff: f64,
    /// Added to the confirmed size, as a share.
    pub margin: f64,
    /// How often a trial that could not be measured is repeated in a row.
    pub retries: u32,
}

impl MemoryParameters {
    /// The default: 4 MiB steps, 5.7 % resolution, 2 confirmations, 3 % more after a miss, the margin of
    /// [`margin`], 2 retries. Why: METHODOLOGY, "The smallest memory".
    pub fn new(low: Bytes, high: Bytes) -> Self {
        Self {
            step: Bytes::from_mib(4),
            expected: None,
            low,
            high,
            high_passed: false,
            max: high,
            resolution: 1.057,
            confirmations: 2,
            after_miss: 1,
            backoff: 1.03,
            margin: margin::default_margin(),
            retries: 2,
        }
    }

    pub(super) fn step_bytes(&self) -> u64 {
        self.step.as_bytes().max(1)
    }

    pub(super) fn max_steps(&self) -> u64 {
        self.max.as_bytes() / self.step_bytes()
    }

    pub(super) fn steps_to_bytes(&self, steps: u64) -> Bytes {
        Bytes::from_bytes(steps.saturating_mul(self.step_bytes()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryStep {
    Try(Bytes, TrialPurpose),
    Done(MemoryFound),
    Infeasible {
        largest: Bytes,
    },
    /// No size has passed, and this one could not be measured in `retries` + 1 attempts in a row.
    CouldNotMeasure {
        size: Bytes,
        attempts: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryFound {
    /// The size to use: confirmed size plus margin, on the grid, at most the maximum.
    pub size: Bytes,
    pub confirmed: Bytes,
    pub failed: Bytes,
    pub margin: f64,
    pub starts: u32,
    pub invalid: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the search asked for {expected:?}, the outcome is of {given}")]
pub struct UnexpectedOutcome {
    pub expected: MemoryStep,
    pub given: Bytes,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MinMemory {
    parameters: MemoryParameters,
    /// In grid steps: largest size known (or taken) to fail, smallest known to pass.
    low: u64,
    high: u64,
    high_known: bool,
    passed: Vec<u64>,
    expected: Option<ExpectedSize>,
    confirming: Option<SizeConfirmation>,
    moved_up: u32,
    missed_at_max: bool,
    over: Option<MemorySearchEnd>,
    starts: u32,
    invalid: u32,
    invalid_in_a_row: u32,
    crashed_at: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct SizeConfirmation {
    at: u64,
    passes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum MemorySearchEnd {
    Confirmed(u64),
    Infeasible,
    CouldNotMeasure(u64),
}

impl MinMemory {
    pub fn new(parameters: MemoryParameters) -> Self {
        let step = parameters.step_bytes();
        let low = parameters.low.as_bytes() / step;
        let high = parameters.high.as_bytes().div_ceil(step).max(low + 1);
        let mut search = Self {
            parameters,
            low,
            high,
            high_known: parameters.high_passed,
            passed: Vec::from_iter(parameters.high_passed.then_some(high)),
            expected: parameters.expected,
            confirming: None,
            moved_up: 0,
            missed_at_max: false,
            over: None,
            starts: 0,
            invalid: 0,
            invalid_in_a_row: 0,
            crashed_at: None,
        };
        search.confirm_when_narrow();
        search
    }

    /// Sets the expected smallest size, which is tried first; a more trusted expectation stays.
    /// This changes which sizes are tried, never what they must show.
    pub fn expect_size(&mut self, expected: ExpectedSize) {
        let now = self.expected.filter(|now| now.spread < expected.spread);
        self.expected = now.or(Some(expected));
    }

    pub fn next(&self) -> MemoryStep {
        match (self.over, self.confirming) {
            (Some(MemorySearchEnd::Confirmed(size)), _) => {
                MemoryStep::Done(self.found_answer(size))
            }
            (Some(MemorySearchEnd::Infeasible), _) => MemoryStep::Infeasible {
                largest: self.grid_bytes(self.high),
            },
            (Some(MemorySearchEnd::CouldNotMeasure(size)), _) => MemoryStep::CouldNotMeasure {
                size: self.grid_bytes(size),
                attempts: self.invalid_in_a_row,
            },
            (None, Some(confirming)) => {
                MemoryStep::Try(self.grid_bytes(confirming.at), TrialPurpose::Confirm)
            }
            (None, None) => {
                MemoryStep::Try(self.grid_bytes(self.candidate()), TrialPurpose::Search)
            }
        }
    }

    /// Takes the outcome of the trial that [`MinMemory::next`] asked for.
    /// Errors: [`UnexpectedOutcome`] when it asked for another size or for none; the search is
    /// unchanged.
    pub fn record_trial(
        &mut self,
        size: Bytes,
        outcome: TrialOutcome,
    ) -> Result<(), UnexpectedOutcome> {
        let (expected, given) = (self.next(), size);
        if !matches!(expected, MemoryStep::Try(wanted, _) if wanted == given) {
            return Err(UnexpectedOutcome { expected, given });
        }
        let at = self.confirming.map_or_else(|| self.candidate(), |c| c.at);
        match outcome {
            TrialOutcome::Invalid => self.could_not_measure(at),
            TrialOutcome::Pass => self.count_trial(at, true),
            TrialOutcome::Crash if self.crashed_at != Some(at) => {
                self.starts += 1;
                self.invalid_in_a_row = 0;
                self.crashed_at = Some(at);
            }
            TrialOutcome::Fail | TrialOutcome::Crash => self.count_trial(at, false),
        }
        Ok(())
    }

    pub fn confirmations_left(&self) -> u32 {
        self.confirming.map_or(0, |confirming| {
            self.wanted_passes().saturating_sub(confirming.passes)
        })
    }

    fn could_not_measure(&mut self, at: u64) {
        self.invalid += 1;
        self.invalid_in_a_row += 1;
        if self.invalid_in_a_row > self.parameters.retries {
            // The smallest size that passed is an answer, which its fresh starts test.
            let passed = self.passed.iter().filter(|size| **size > self.low).min();
            self.over = Some(match passed {
                Some(size) => MemorySearchEnd::Confirmed(*size),
                None => MemorySearchEnd::CouldNotMeasure(at),
            });
        }
    }

    fn count_trial(&mut self, at: u64, passed: bool) {
        self.starts += 1;
        self.invalid_in_a_row = 0;
        self.crashed_at = None;
        self.passed.extend(passed.then_some(at));
        match (self.confirming, passed) {
            (Some(confirming), true) => self.confirm(confirming.at, confirming.passes + 1),
            (Some(confirming), false) => self.confirmation_failed(confirming.at),
            (None, true) => self.bisection_passed(at),
            (None, false) if !self.high_known && at >= self.largest_steps() => {
                self.largest_missed()
            }
            (None, false) => self.bisection_failed(at),
        }
    }

    fn bisection_passed(&mut self, at: u64) {
        self.high = at;
        self.high_known = true;
        self.confirm_when_narrow();
    }

    /// One miss may be chance at any size; two starts that missed are not worth a search.
    fn largest_missed(&mut self) {
        if self.missed_at_max {
            self.over = Some(MemorySearchEnd::Infeasible);
        }
        self.missed_at_max = true;
    }

    fn bisection_failed(&mut self, at: u64) {
        self.low = at;
        if !self.high_known {
            self.high = (at * 2).min(self.largest_steps());
        }
        self.confirm_when_narrow();
    }

    fn confirmation_failed(&mut self, at: u64) {
        self.low = at;
        let doublings = self.moved_up.saturating_sub(DOUBLES_AFTER).min(16);
        let growth = (self.parameters.backoff - 1.0) * f64::from(1_u32 << doublings);
        self.moved_up += 1;
        if at >= self.largest_steps() {
            self.high = at;
            self.over = Some(MemorySearchEnd::Infeasible);
            return;
        }
        let next = scale_steps(at, 1.0 + growth).max(at + 1);
        let at = next.min(self.largest_steps());
        self.high = at;
        self.confirming = Some(SizeConfirmation { at, passes: 0 });
    }

    fn confirm_when_narrow(&mut self) {
        if self.high_known && self.is_narrow() {
            self.confirm(self.high, 0);
        }
    }

    fn confirm(&mut self, at: u64, passes: u32) {
        self.confirming = Some(SizeConfirmation { at, passes });
        if passes >= self.wanted_passes() {
            self.over = Some(MemorySearchEnd::Confirmed(at));
        }
    }

    fn wanted_passes(&self) -> u32 {
        match self.moved_up {
            0 => self.parameters.confirmations,
            _ => self.parameters.after_miss,
        }
    }

    fn is_narrow(&self) -> bool {
        // Rounded products: 612/600 is 1.02 exactly and must end the search.
        let limit = self.low as f64 * self.parameters.resolution * (1.0 + 1e-12);
        self.high as f64 <= limit || self.high <= self.low + 1
    }

    fn candidate(&self) -> u64 {
        if !self.high_known {
            return self.high;
        }
        let (low, high) = (self.low.max(1) as f64, self.high as f64);
        let middle = match self.expected {
            Some(ExpectedSize { size, spread }) => {
                let size = size.as_bytes() as f64 / self.parameters.step_bytes() as f64;
                likely_middle(low, high, size.max(1.0), spread)
            }
            None => (low * high).sqrt(),
        };
        let middle = (middle * (1.0 - 1e-12)).ceil() as u64;
        middle.clamp(self.low + 1, (self.high - 1).max(self.low + 1))
    }

    fn found_answer(&self, confirmed: u64) -> MemoryFound {
        let wanted = scale_steps(confirmed, 1.0 + self.parameters.margin);
        let size = wanted.min(self.largest_steps()).max(confirmed);
        MemoryFound {
            size: self.grid_bytes(size),
            confirmed: self.grid_bytes(confirmed),
            failed: self.grid_bytes(self.low),
            margin: size as f64 / confirmed as f64 - 1.0,
            starts: self.starts,
            invalid: self.invalid,
        }
    }

    fn largest_steps(&self) -> u64 {
        self.parameters.max_steps()
    }

    fn grid_bytes(&self, steps: u64) -> Bytes {
        self.parameters.steps_to_bytes(steps)
    }
}

pub(super) fn scale_steps(steps: u64, factor: f64) -> u64 {
    (steps as f64 * factor * (1.0 - 1e-12)).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mib(value: u64) -> Bytes {
        Bytes::from_mib(value)
    }

    /// The rules of the golden traces: finer and with more confirmations than the default.
    fn grid() -> MemoryParameters {
        MemoryParameters {
            high_passed: true,
            resolution: 1.02,
            confirmations: 5,
            after_miss: 5,
            backoff: 1.02,
            margin: 0.08,
            ..MemoryParameters::new(mib(64), mib(1024))
        }
    }

    /// Runs a search in a world where sizes pass from `threshold` up; the trace and the answer.
    fn trace(parameters: MemoryParameters, threshold: u64) -> String {
        trace_of(MinMemory::new(parameters), threshold)
    }

    fn trace_of(mut search: MinMemory, threshold: u64) -> String {
        let mut text = String::new();
        loop {
            match search.next() {
                MemoryStep::Try(size, purpose) => {
                    let passed = size >= mib(threshold);
                    let mark = if passed { "+" } else { "-" };
                    if purpose == TrialPurpose::Search {
                        text += &format!("{}{mark} ", size.as_mib());
                    }
                    let outcome = if passed {
                        TrialOutcome::Pass
                    } else {
                        TrialOutcome::Fail
                    };
                    search.record_trial(size, outcome).unwrap();
                }
                MemoryStep::Done(a) => {
                    let (confirmed, size) = (a.confirmed.as_mib(), a.size.as_mib());
                    return text + &format!("= {confirmed}, answer {size}, {} starts", a.starts);
                }
                other => return text + &format!("{other:?}"),
            }
        }
    }

    #[test]
    fn noiseless_searches_take_the_golden_path() {
        let lines = [300, 150, 612].map(|threshold| trace(grid(), threshold));
        insta::assert_snapshot!(lines.join("\n"), @"
        256- 512+ 364+ 308+ 284- 296- 304+ 300+ = 300, answer 324, 13 starts
        256+ 128- 184+ 156+ 144- 152+ 148- = 152, answer 168, 12 starts
        256- 512- 728+ 612+ 560- 588- 600- = 612, answer 664, 12 starts
        ");
    }

    #[test]
    fn an_untried_high_end_is_tried_first() {
        let parameters = MemoryParameters::new(mib(64), mib(1024));
        assert_eq!(
            MinMemory::new(parameters).next(),
            MemoryStep::Try(mib(1024), TrialPurpose::Search)
        );
        insta::assert_snapshot!(trace(parameters, 2000), @"1024- 1024- Infeasible { largest: Bytes(1073741824) }");
    }

    #[test]
    fn good_expectations_save_starts_and_bad_ones_do_no_harm() {
        let line = |size| {
            let mut search = MinMemory::new(MemoryParameters {
                high_passed: true,
                ..MemoryParameters::new(mib(64), mib(1024))
            });
            search.expect_size(ExpectedSize::of_a_start(mib(size)));
            trace_of(search, 300)
        };
        let lines = [300, 340, 250, 64, 4000].map(line);
        insta::assert_snapshot!(lines.join("\n"), @"
        300+ 264- 284- = 300, answer 348, 5 starts
        340+ 300+ 256- 284- = 300, answer 348, 6 starts
        252- 292- 348+ 312+ 304+ = 304, answer 356, 7 starts
        76- 96- 136- 212- 344+ 260- 296- 320+ 308+ = 308, answer 360, 11 starts
        516+ 260- 388+ 324+ 292- 308+ = 308, answer 360, 8 starts
        ");
    }

    #[test]
    fn a_failed_confirmation_goes_up_and_starts_again() {
        let mut search = MinMemory::new(MemoryParameters {
            low: mib(296),
            high: mib(300),
            max: mib(1024),
            high_passed: true,
            ..grid()
        });
        let mut tried = Vec::new();
        for outcome in [TrialOutcome::Pass, TrialOutcome::Pass, TrialOutcome::Fail]
            .into_iter()
            .chain([TrialOutcome::Pass; 5])
        {
            let MemoryStep::Try(size, _) = search.next() else {
                panic!("{:?}", search.next())
            };
            tried.push(size.as_mib() as u64);
            search.record_trial(size, outcome).unwrap();
        }
        assert_eq!(tried, [300, 300, 300, 308, 308, 308, 308, 308]);
        let MemoryStep::Done(answer) = search.next() else {
            panic!("{:?}", search.next())
        };
        assert_eq!((answer.confirmed, answer.failed), (mib(308), mib(300)));
        assert_eq!((answer.size, answer.starts), (mib(336), 8));
    }

    #[test]
    fn the_margin_never_exceeds_the_largest_size_and_says_what_it_is() {
        let mut search = MinMemory::new(MemoryParameters {
            low: mib(1000),
            high: mib(1004),
            max: mib(1024),
            high_passed: true,
            ..grid()
        });
        while let MemoryStep::Try(size, _) = search.next() {
            search.record_trial(size, TrialOutcome::Pass).unwrap();
        }
        let MemoryStep::Done(answer) = search.next() else {
            panic!("{:?}", search.next())
        };
        assert_eq!(answer.size, mib(1024));
        assert!((answer.margin - 20.0 / 1004.0).abs() < 1e-9);
    }

    #[test]
    fn invalid_trials_are_repeated_and_never_counted() {
        let mut search = MinMemory::new(grid());
        let MemoryStep::Try(size, _) = search.next() else {
            panic!("no step")
        };
        search.record_trial(size, TrialOutcome::Invalid).unwrap();
        search.record_trial(size, TrialOutcome::Invalid).unwrap();
        assert_eq!(search.next(), MemoryStep::Try(size, TrialPurpose::Search));
        let mut hopeless = MinMemory::new(MemoryParameters {
            high_passed: false,
            ..grid()
        });
        let first = mib(1024);
        for _ in 0..3 {
            hopeless.record_trial(first, TrialOutcome::Invalid).unwrap();
        }
        let given_up = MemoryStep::CouldNotMeasure {
            size: first,
            attempts: 3,
        };
        assert_eq!(hopeless.next(), given_up);
        search.record_trial(size, TrialOutcome::Pass).unwrap();
        assert_eq!(search.starts, 1);
        while let MemoryStep::Try(size, _) = search.next() {
            search.record_trial(size, TrialOutcome::Pass).unwrap();
        }
        let MemoryStep::Done(answer) = search.next() else {
            panic!("{:?}", search.next())
        };
        assert_eq!(answer.invalid, 2);
    }

    #[test]
    fn a_size_that_cannot_be_measured_leaves_the_smallest_that_passed() {
        let unmeasured = |high_passed, outcomes: &[TrialOutcome]| {
            let mut search = MinMemory::new(MemoryParameters {
                high_passed,
                retries: 0,
                margin: 0.0,
                ..grid()
            });
            for outcome in outcomes {
                let MemoryStep::Try(size, _) = search.next() else {
                    panic!("no step")
                };
                search.record_trial(size, *outcome).unwrap();
            }
            search.next()
        };
        let found = |step| match step {
            MemoryStep::Done(answer) => Some(answer.size.as_mib()),
            _ => None,
        };
        use TrialOutcome::{Fail, Invalid, Pass};
        assert_eq!(found(unmeasured(true, &[Invalid])), Some(1024.0));
        assert_eq!(found(unmeasured(true, &[Pass, Invalid])), Some(256.0));
        assert_eq!(found(unmeasured(true, &[Fail, Invalid])), Some(1024.0));
    }

    #[test]
    fn one_crash_is_repeated_two_are_a_failure() {
        let mut search = MinMemory::new(grid());
        search.record_trial(mib(256), TrialOutcome::Crash).unwrap();
        assert_eq!(
            search.next(),
            MemoryStep::Try(mib(256), TrialPurpose::Search)
        );
        assert_eq!(search.starts, 1);
        search.record_trial(mib(256), TrialOutcome::Crash).unwrap();
        assert_eq!(
            search.next(),
            MemoryStep::Try(mib(512), TrialPurpose::Search)
        );
        assert_eq!(search.starts, 2);
    }

    #[test]
    fn a_replayed_search_goes_on_where_it_was() {
        let mut search = MinMemory::new(grid());
        let mut outcomes = Vec::new();
        while let MemoryStep::Try(size, _) = search.next() {
            let mut resumed = MinMemory::new(grid());
            for (size, outcome) in &outcomes {
                resumed.record_trial(*size, *outcome).unwrap();
            }
            assert_eq!(resumed, search);
            let outcome = if size < mib(333) {
                TrialOutcome::Fail
            } else {
                TrialOutcome::Pass
            };
            outcomes.push((size, outcome));
            search.record_trial(size, outcome).unwrap();
        }
        assert!(search.record_trial(mib(256), TrialOutcome::Pass).is_err());
        let mut search = MinMemory::new(grid());
        assert!(search.record_trial(mib(128), TrialOutcome::Pass).is_err());
    }

    /// Sizes that failed their confirmations, in MiB; everything else passes.
    fn failing(parameters: MemoryParameters) -> Vec<u64> {
        let mut search = MinMemory::new(parameters);
        let mut confirmed = Vec::new();
        while let MemoryStep::Try(size, purpose) = search.next() {
            let outcome = match purpose {
                TrialPurpose::Confirm => TrialOutcome::Fail,
                _ => TrialOutcome::Pass,
            };
            if purpose == TrialPurpose::Confirm {
                confirmed.push(size.as_mib() as u64);
            }
            search.record_trial(size, outcome).unwrap();
        }
        confirmed
    }

    #[test]
    fn confirmations_that_keep_failing_go_up_by_ever_more() {
        let of = |backoff, max| {
            failing(MemoryParameters {
                backoff,
                max: mib(max),
                ..MemoryParameters::new(mib(64), mib(200))
            })
        };
        assert_eq!(
            of(1.1, 4096),
            [68, 76, 84, 96, 108, 132, 188, 340, 884, 3716, 4096]
        );
        assert_eq!(of(1.0, 80), [68, 72, 76, 80], "by a step at least");
    }
}
