//! How many services lived on at sizes that budgets gave: the coverage of an answer.
//!
//! Owns the published figure. `records/endurance/services.csv` has the measurements, and a test
//! compares the two.

use crate::interval::failure_upper_bound;
use crate::proof::CONFIDENCE;

/// Services that ran for a while at their answered sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnduranceCoverage {
    pub services: u64,
    pub lived: u64,
    /// Shortest run, minutes.
    pub minutes: u64,
}

pub const COVERAGE: EnduranceCoverage = EnduranceCoverage {
    services: 12,
    lived: 12,
    minutes: 61,
};

impl EnduranceCoverage {
    /// The least share of such services that live on, in percent, with 95 % confidence.
    pub fn least_percent(self) -> f64 {
        let died = self.services.saturating_sub(self.lived);
        100.0 * (1.0 - failure_upper_bound(died, self.services, CONFIDENCE))
    }

    /// `12 of 12 services lived for 61 min on such a budget: at least 77 % of services do (95 %
    /// confidence).`
    pub fn sentence(self) -> String {
        let Self {
            services,
            lived,
            minutes,
        } = self;
        let least = self.least_percent().floor();
        format!(
            "{lived} of {services} services lived for {minutes} min on such a budget: at least {least:.0} % of services do (95 % confidence)."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_coverage_is_the_measured_one() {
        let table = include_str!("../../../records/endurance/services.csv");
        let rows = table.lines().skip(1).map(|row| row.split(',').collect());
        let rows: Vec<Vec<&str>> = rows.collect();
        let lived = rows.iter().filter(|row| row[5] != "died").count();
        let minutes = rows.iter().map(|row| row[3].parse().expect("minutes"));
        let measured = EnduranceCoverage {
            services: rows.len() as u64,
            lived: lived as u64,
            minutes: minutes.min().expect("a row"),
        };
        assert_eq!(COVERAGE, measured);
        let methodology = include_str!("../../../METHODOLOGY.md");
        assert!(methodology.contains(&COVERAGE.sentence()));
    }
}
