//! Which results `loadline list` shows.
//!
//! Owns the flags and what they mean; the rows and the table are the list's.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use loadline_analysis::calendar::parse_day;
use loadline_analysis::recommend::Conclusion;
use loadline_analysis::slo::parse_duration;
use loadline_report::format::day;
use loadline_runner::store::{ResultRow, ResultStatus};

use super::conclusion;

const MS_A_DAY: u64 = 86_400_000;

/// Flags that choose results; a result must fit all that are given.
#[derive(Debug, Clone, Default, Args)]
pub struct ResultFilter {
    /// Only results with this text in their title, as listed
    #[arg(long, value_name = "TEXT")]
    service: Option<String>,
    /// Only results with this outcome or status
    #[arg(long, value_enum, value_name = "WORD")]
    verdict: Option<StatusWord>,
    /// Only results begun since this time: an age (12h, 7d) or a day in UTC (2026-11-20)
    #[arg(long, value_name = "WHEN")]
    since: Option<PointInTime>,
    /// Only results begun before this time: an age (12h, 30d) or a day in UTC (2026-11-20)
    #[arg(long, value_name = "WHEN")]
    before: Option<PointInTime>,
}

/// How a result ended, or where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatusWord {
    /// A search with an answer that fresh starts confirmed
    #[value(alias = "proven")]
    Tested,
    /// A search with an answer that fresh starts did not confirm
    #[value(alias = "not-proven")]
    NotTested,
    /// A search that ended without an answer
    NoAnswer,
    /// Not finished
    Running,
    /// Stopped
    Interrupted,
    /// Ended by an error
    Failed,
    /// Ran to its end, whatever the answer
    Done,
}

impl StatusWord {
    fn fits(self, row: &ResultRow) -> bool {
        let of = |status| row.status == status;
        match self {
            Self::Tested => matches!(conclusion(row), Some(Conclusion::Answer(r)) if r.is_proven()),
            Self::NotTested => {
                matches!(conclusion(row), Some(Conclusion::Answer(r)) if !r.is_proven())
            }
            Self::NoAnswer => matches!(conclusion(row), Some(Conclusion::NoAnswer(_))),
            Self::Running => of(ResultStatus::Running),
            Self::Interrupted => of(ResultStatus::Interrupted),
            Self::Failed => of(ResultStatus::Failed),
            Self::Done => of(ResultStatus::Done),
        }
    }
}

impl ResultFilter {
    /// Whether a result fits all flags; `now` is milliseconds since 1970-01-01 UTC.
    pub fn fits(&self, row: &ResultRow, now_unix_ms: u64) -> bool {
        let begun = row.created_unix_ms;
        let text = self.service.as_deref();
        text.is_none_or(|text| row.title.contains(text))
            && self.verdict.is_none_or(|word| word.fits(row))
            && self.since.is_none_or(|m| begun >= m.unix_ms(now_unix_ms))
            && self.before.is_none_or(|m| begun < m.unix_ms(now_unix_ms))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointInTime {
    Ago(Duration),
    /// The begin of a day in UTC, milliseconds since 1970-01-01.
    Day(u64),
}

impl PointInTime {
    pub fn unix_ms(self, now_unix_ms: u64) -> u64 {
        match self {
            Self::Ago(time) => {
                now_unix_ms.saturating_sub(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
            }
            Self::Day(begin) => begin,
        }
    }
}

impl FromStr for PointInTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ago = || days(text).or_else(|| parse_duration(text)).map(Self::Ago);
        let found = midnight(text).map(Self::Day).or_else(ago);
        found.ok_or_else(|| {
            format!("`{text}` is neither an age nor a date; write 12h, 7d or 2026-11-20")
        })
    }
}

/// Whole days: `7d`. Lengths of measurements have none, so `parse_duration` does not know them.
fn days(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('d')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let days: u32 = is_number.then(|| number.parse().ok())??;
    Some(Duration::from_millis(MS_A_DAY * u64::from(days)))
}

/// When a day such as `2026-11-20` begins in UTC, milliseconds since 1970-01-01.
fn midnight(text: &str) -> Option<u64> {
    let begin = u64::try_from(parse_day(text)?)
        .ok()?
        .checked_mul(MS_A_DAY)?;
    // The 30th of February, or a day written otherwise, does not come back as it was given.
    (day(begin) == text).then_some(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_and_no_other_day_is_taken() {
        assert_eq!(midnight("1970-01-01"), Some(0));
        assert_eq!(midnight("2024-02-29"), Some(1_709_164_800_000));
        assert_eq!(midnight("2026-11-20"), Some(1_795_132_800_000));
        for wrong in [
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "2026-11",
            "1969-12-31",
            "2026-11-20-1",
            "",
        ] {
            assert_eq!(midnight(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_moment_is_a_time_ago_or_a_day() {
        let now = 10 * MS_A_DAY;
        let at = |text: &str| text.parse::<PointInTime>().map(|m| m.unix_ms(now));
        assert_eq!(at("7d"), Ok(3 * MS_A_DAY));
        assert_eq!(at("12h"), Ok(now - MS_A_DAY / 2));
        assert_eq!(at("30d"), Ok(0), "before the epoch nothing was begun");
        assert_eq!(at("1970-01-03"), Ok(2 * MS_A_DAY));
        for wrong in ["7", "d", "-1d", "yesterday", "1.5d"] {
            let why = at(wrong).expect_err(wrong);
            assert!(why.contains("write 12h, 7d or 2026-11-20"), "{why}");
        }
    }
}
