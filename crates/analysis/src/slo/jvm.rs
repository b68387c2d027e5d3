//! Objectives about the JVM's heap and collector, read from its log.
//!
//! Owns their words. What is compared is `sli`'s.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::{parse_percent, round_printed};

/// An objective about the JVM; its bound is a fraction in (0, 1], exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "of")]
pub enum JvmObjective {
    /// Heap in use after collections, of the largest heap; `heap<80%` in text.
    Heap {
        /// The bound.
        bound: f64,
    },
    /// Time in which collections stopped the application, of the judged time; `gc<10%` in text.
    Gc {
        /// The bound.
        bound: f64,
    },
}

impl JvmObjective {
    /// Reads `heap<80%` and `gc<10%`; `None` without one of these words at the begin. Errors: Why its
    /// bound is refused.
    pub(super) fn parse(text: &str) -> Option<Result<Self, String>> {
        let (name, bound) = text.split_once('<')?;
        let percent = parse_percent(bound);
        let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 100.0);
        let bound = percent.map(|percent| round_printed(percent) / 100.0);
        let why = "the bound is not a percentage above 0 and at most 100 (80%)";
        let bound = bound.ok_or_else(|| why.to_owned());
        match name.trim() {
            "heap" => Some(bound.map(|bound| Self::Heap { bound })),
            "gc" => Some(bound.map(|bound| Self::Gc { bound })),
            _ => None,
        }
    }

    pub fn bound_value(self) -> f64 {
        match self {
            Self::Heap { bound } | Self::Gc { bound } => bound,
        }
    }

    /// What it is about, in the words of a reason.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Heap { .. } => "heap after collections",
            Self::Gc { .. } => "time in GC",
        }
    }
}

impl fmt::Display for JvmObjective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Heap { .. } => "heap",
            Self::Gc { .. } => "gc",
        };
        write!(f, "{name}<{}%", round_printed(self.bound_value() * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use crate::slo::Slo;

    #[test]
    fn objectives_about_the_jvm_read_as_they_print() {
        let slo: Slo = "p99<50ms, heap<80%, gc < 7.5%".parse().expect("an SLO");
        assert_eq!(slo.to_string(), "p99<50ms,heap<80%,gc<7.5%,errors<1%");
        let written = serde_json::to_string(&slo).expect("an SLO is written");
        assert_eq!(
            serde_json::from_str::<Slo>(&written).expect("and read"),
            slo
        );
        for text in ["heap<64Mi", "heap<0%", "gc<101%", "gc<x%"] {
            let error = text.parse::<Slo>().expect_err(text);
            assert!(
                error.why.contains("not a percentage above 0"),
                "{}",
                error.why
            );
        }
    }
}
