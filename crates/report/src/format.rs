//! Numbers as people read them, and a dash for missing ones.
//!
//! The forms come from [`loadline_analysis::text`], which the reasons of trials use too; this file
//! adds memory, dates and missing values. Exact values (limits, bounds) print themselves.

use std::time::Duration;

use loadline_analysis::text;
use loadline_sizing::Bytes;

pub const NONE: &str = "–";

fn finite_or_none(value: f64, show: fn(f64) -> String) -> String {
    or_none(value.is_finite().then(|| show(value)))
}

pub fn three_digits(value: f64) -> String {
    finite_or_none(value, text::three_digits)
}

pub fn measured_time(value: Duration) -> String {
    if value.is_zero() {
        "0ms".to_owned()
    } else {
        text::short_duration(value)
    }
}

/// A computed time: it may lie outside of what a measured one can.
pub fn measured_seconds(seconds: f64) -> String {
    measured_time(Duration::from_secs_f64(seconds.clamp(0.0, 1e9)))
}

/// How long something took that people waited for: `45 s`, `12 min`, `2 h 30 min`.
pub fn elapsed(value: Duration) -> String {
    let minutes = (value.as_secs() + 30) / 60;
    match value.as_secs() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// The text, or a dash where there is none.
pub fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

pub fn time_or(value: Option<Duration>) -> String {
    or_none(value.map(measured_time))
}

/// A measured amount of memory, in Mi below 10 Gi: `231Mi`; whole Gi as `8Gi`.
pub fn measured_bytes(value: Bytes) -> String {
    let gib = Bytes::from_gib(1).as_bytes();
    match value.as_bytes() {
        bytes if bytes.is_multiple_of(gib) => value.to_string(),
        bytes if bytes >= 10 * gib => format!("{}Gi", three_digits(value.as_gib())),
        _ => format!("{}Mi", three_digits(value.as_mib())),
    }
}

pub fn bytes_or(value: Option<Bytes>) -> String {
    or_none(value.map(measured_bytes))
}

pub fn as_percent(share: f64) -> String {
    finite_or_none(share, text::short_percent)
}

/// Requests a second: `300/s`.
pub fn as_rate(value: f64) -> String {
    finite_or_none(value, text::short_rate)
}

pub fn count_of(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// Milliseconds since 1970 as `2026-11-20 13:26 UTC`.
/// Source: the proleptic Gregorian calendar from day numbers, era of 146 097 days.
pub fn date(unix_ms: u64) -> String {
    let minutes = unix_ms / 60_000;
    let (hour, minute) = (minutes / 60 % 24, minutes % 60);
    let days = minutes / 1440 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

/// The first characters of an id: what people type. UUIDv7 begins with the time in milliseconds,
/// which the first thirteen hold.
pub fn short_id(id: &str) -> &str {
    id.get(..13).unwrap_or(id)
}

pub fn day(unix_ms: u64) -> String {
    date(unix_ms).chars().take(10).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_a_dash() {
        assert_eq!(three_digits(f64::NAN), NONE);
        assert_eq!(as_percent(f64::INFINITY), NONE);
        assert_eq!(as_rate(f64::NAN), NONE);
    }

    #[test]
    fn times_and_amounts_choose_their_unit() {
        let waited: Vec<_> = [45, 725, 9000]
            .map(|s| elapsed(Duration::from_secs(s)))
            .to_vec();
        assert_eq!(waited, ["45 s", "12 min", "2 h 30 min"]);
        assert_eq!(measured_time(Duration::ZERO), "0ms");
        let amounts: Vec<_> = [
            Bytes::from_gib(8),
            Bytes::from_mib(201),
            Bytes::from_kib(1536),
            Bytes::from_mib(20_000),
        ]
        .map(measured_bytes)
        .to_vec();
        assert_eq!(amounts, ["8Gi", "201Mi", "1.50Mi", "19.5Gi"]);
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_181_160_000), "2026-11-20 13:26 UTC");
    }
}
