//! Objectives about a run: a build, a batch, a test run.
//!
//! Owns their words and units. They are judged over the whole run, from exec to exit; an unfinished
//! run keeps no objective.

use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{parse_duration, parse_percent, print_duration, round_printed};
use crate::text;

/// An objective about a run (a program that ends).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "of")]
pub enum RunObjective {
    /// From exec to exit, below a bound; `time<60s` in text.
    Time {
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// CPU time of all processes of the run, below a bound; `cpu<300s` in text.
    Cpu {
        /// The bound, exclusive.
        #[serde(rename = "bound_ns", with = "crate::wire::nanos")]
        bound: Duration,
    },
    /// How much longer it takes than the run at the largest memory, below a bound; `slower<10%` in text.
    Slower {
        /// The bound, exclusive, a fraction: 0.1 is a tenth longer.
        bound: f64,
    },
    /// The exit code; `exit=3` in text. Without it 0 is expected.
    Exit {
        /// The code.
        code: i32,
    },
}

impl RunObjective {
    /// Reads `time<60s`, `cpu<300s`, `slower<10%`, `exit=3`; `None` without one of these words at
    /// the begin. Errors: Why its bound is refused.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let at = text.find(['<', '='])?;
        let (name, bound) = (text[..at].trim(), text[at + 1..].trim_start_matches('='));
        let is_equal = text[at..].starts_with('=');
        let time = || match parse_duration(bound) {
            Some(bound) if !bound.is_zero() && !is_equal => Ok(bound),
            _ => Err("the bound is not a duration (60s, 10m)".to_owned()),
        };
        Some(match name {
            "time" => time().map(|bound| Self::Time { bound }),
            "cpu" => time().map(|bound| Self::Cpu { bound }),
            "slower" => slower_bound(bound).map(|bound| Self::Slower { bound }),
            "exit" => match bound.trim().parse::<u8>() {
                Ok(code) if is_equal => Ok(Self::Exit { code: code.into() }),
                _ => Err("an exit code is a whole number from 0 to 255: exit=3".to_owned()),
            },
            _ => return None,
        })
    }

    /// The bound as a number: seconds, a fraction, or the code.
    pub(super) fn bound_value(self) -> f64 {
        match self {
            Self::Time { bound } | Self::Cpu { bound } => bound.as_secs_f64(),
            Self::Slower { bound } => bound,
            Self::Exit { code } => f64::from(code),
        }
    }

    pub(super) fn is_met(self, measured: f64) -> bool {
        match self {
            Self::Exit { code } => measured == f64::from(code),
            _ => measured < self.bound_value(),
        }
    }

    pub(super) fn show_measured(self, measured: f64) -> String {
        let length = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        match self {
            Self::Time { bound } | Self::Cpu { bound } => {
                text::duration_beside(length(measured), bound)
            }
            Self::Slower { bound } => text::percent_beside(measured, bound),
            Self::Exit { .. } => format!("{measured}"),
        }
    }

    /// What it is about: `run time`, `CPU time`.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Time { .. } => "run time",
            Self::Cpu { .. } => "CPU time",
            Self::Slower { .. } => "extra time against the largest memory",
            Self::Exit { .. } => "exit code",
        }
    }
}

fn slower_bound(text: &str) -> Result<f64, String> {
    let percent = parse_percent(text).filter(|percent| (1.0..=1000.0).contains(percent));
    let bound = percent.map(|percent| round_printed(percent) / 100.0);
    bound.ok_or_else(|| "the bound is not a percentage from 1 to 1000 (10%)".to_owned())
}

impl fmt::Display for RunObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time { bound } => write!(f, "time<{}", print_duration(*bound)),
            Self::Cpu { bound } => write!(f, "cpu<{}", print_duration(*bound)),
            Self::Slower { bound } => write!(f, "slower<{}%", round_printed(bound * 100.0)),
            Self::Exit { code } => write!(f, "exit={code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::slo::Slo;

    #[test]
    fn objectives_of_a_run_read_as_they_print_and_no_error_rate_is_added() {
        for text in [
            "time<10m",
            "cpu<300s",
            "slower<10%",
            "exit=3",
            "exit=3,time<1m,slower<7.5%",
        ] {
            let slo: Slo = text.parse().expect(text);
            assert_eq!(slo.to_string(), text.replace("300s", "5m"));
            assert_eq!(slo.run_objectives().count(), slo.objectives.len());
        }
        assert_eq!(
            "exit=3".parse::<Slo>().expect("it is one").expected_exit(),
            3
        );
        assert_eq!(
            "time<1s".parse::<Slo>().expect("it is one").expected_exit(),
            0
        );
    }

    #[test]
    fn what_is_no_bound_of_a_run_is_told() {
        let why = |text: &str| text.parse::<Slo>().expect_err(text).why;
        assert!(why("time<soon").contains("not a duration"));
        assert!(why("slower<0.1%").contains("not a percentage"));
        assert!(why("exit=boom").contains("0 to 255"));
        assert!(why("GET /: time<60s").contains("not of a request"));
    }

    #[test]
    fn bounds_are_exclusive_and_an_exit_code_is_exact() {
        let kept = |text: &str, measured| {
            let slo: Slo = text.parse().expect(text);
            slo.objectives[0].is_met(Some(measured))
        };
        assert!(kept("time<60s", 59.9) && !kept("time<60s", 60.0));
        assert!(kept("slower<10%", 0.09) && !kept("slower<10%", 0.1));
        assert!(kept("exit=3", 3.0) && !kept("exit=3", 0.0));
    }
}
