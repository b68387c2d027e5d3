//! How long a run takes yet, by how long its trials took.
//!
//! Owns the estimate only: reads no clock. Times are since the run began.

use std::time::Duration;

#[derive(Debug, Clone, Default)]
pub struct TimeLeft {
    /// Trials it takes, as far as that is known: of a search, what half of such searches take.
    expected: Option<u32>,
    each: Duration,
    attempts: u32,
    measured: u32,
    found: u32,
    last_end: Duration,
    /// The longest attempt. It is left out of the mean: the first start of a search is aged, later ones are
    /// not.
    longest: Duration,
}

impl TimeLeft {
    pub fn new(expected: Option<u32>, each: Duration) -> Self {
        Self {
            expected,
            each,
            ..Self::default()
        }
    }

    /// A trial has ended; it is tried again if it could not be measured.
    pub fn trial_ends(&mut self, now: Duration, is_measured: bool) {
        self.attempts += 1;
        self.measured += u32::from(is_measured);
        self.longest = self.longest.max(now.saturating_sub(self.last_end));
        self.last_end = now;
    }

    /// A trial needs not run: its record is in the store.
    pub fn trial_found(&mut self) {
        self.found += 1;
    }

    /// The time left; `None` if the number of trials is not known, or a search takes more than
    /// expected.
    pub fn remaining_at(&self, now: Duration) -> Option<Duration> {
        let rest = self.expected?.checked_sub(self.measured + self.found)?;
        // With what had to be tried again: it will be no other with those to come.
        let each = match (self.measured, self.attempts) {
            (0, 0) => self.each,
            (0, attempts) => self.last_end / attempts,
            (measured @ 1..=2, _) => self.last_end / measured,
            (measured, _) => self.last_end.saturating_sub(self.longest) / (measured - 1),
        };
        // Of the trial that runs a part is over already.
        let past = now.saturating_sub(self.last_end).min(each);
        (rest > 0).then(|| (each * rest).saturating_sub(past))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trial_that_runs_counts_for_what_it_has_left() {
        let s = Duration::from_secs;
        let mut left = TimeLeft::new(Some(10), s(20));
        assert_eq!(left.remaining_at(s(0)), Some(s(200)));
        assert_eq!(left.remaining_at(s(5)), Some(s(195)));
        left.trial_ends(s(30), true);
        assert_eq!(left.remaining_at(s(30)), Some(s(270)));
        assert_eq!(left.remaining_at(s(40)), Some(s(260)));
        // An unusually long trial does not predict the later ones.
        assert_eq!(left.remaining_at(s(90)), Some(s(240)));
        left.trial_found();
        left.trial_found();
        assert_eq!(left.remaining_at(s(30)), Some(s(210)));
        for trial in 2..=8 {
            left.trial_ends(s(30 * trial), true);
        }
        assert_eq!(
            left.remaining_at(s(240)),
            None,
            "it takes more than was expected"
        );
        let mut left = TimeLeft::new(Some(3), s(20));
        left.trial_ends(s(30), false);
        assert_eq!(left.remaining_at(s(30)), Some(s(90)), "it is tried again");
        left.trial_ends(s(60), true);
        assert_eq!(left.remaining_at(s(60)), Some(s(120)));
        assert_eq!(TimeLeft::new(None, s(20)).remaining_at(s(1)), None);
    }
}
