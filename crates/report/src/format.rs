//! Numbers as people read them: three significant digits and a unit.
//!
//! Owns the text form of measured values. Exact values (limits, bounds) print themselves
//! (`512Mi`, `50ms`) and do not come here.

use std::time::Duration;

use loadline_sizing::Bytes;

/// What stands where there is no number.
pub const NONE: &str = "–";

/// Three significant digits, without an exponent: `0.0123`, `1.23`, `12.3`, `1230`; a whole number
/// has no decimals. A value that is no number prints as [`NONE`].
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if (value - value.round()).abs() < 1e-9 {
        return format!("{value:.0}");
    }
    let size = value.abs();
    let decimals = match size {
        s if s == 0.0 || s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.09995 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// A measured time: `850 µs`, `41.2 ms`, `3.41 s`, `12 min 5 s`.
pub fn time(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    match seconds {
        s if s == 0.0 => "0 ms".to_owned(),
        s if s < 1e-6 => format!("{} ns", value.as_nanos()),
        s if s < 0.9995e-3 => format!("{} µs", number(s * 1e6)),
        s if s < 0.9995 => format!("{} ms", number(s * 1e3)),
        s if s < 120.0 => format!("{} s", number(s)),
        s if s < 7200.0 => format!("{} min {} s", s as u64 / 60, s as u64 % 60),
        s => format!("{} h {} min", s as u64 / 3600, s as u64 % 3600 / 60),
    }
}

/// A measured time that may be missing.
pub fn time_or(value: Option<Duration>) -> String {
    value.map_or_else(|| NONE.to_owned(), time)
}

/// A measured amount of memory, in Mi below 10 Gi: `231Mi`; whole Gi as `8Gi`.
pub fn bytes(value: Bytes) -> String {
    if value.as_bytes() % Bytes::from_gib(1).as_bytes() == 0 {
        value.to_string()
    } else if value >= Bytes::from_gib(10) {
        format!("{}Gi", number(value.as_gib()))
    } else {
        format!("{}Mi", number(value.as_mib()))
    }
}

/// A measured amount of memory that may be missing.
pub fn bytes_or(value: Option<Bytes>) -> String {
    value.map_or_else(|| NONE.to_owned(), bytes)
}

/// A share in [0, 1] as a percentage: `12.3 %`, `0.05 %`.
pub fn percent(share: f64) -> String {
    if share.is_finite() && share != 0.0 && share.abs() < 0.0001 {
        return "< 0.01 %".to_owned();
    }
    let text = number(share * 100.0);
    if text == NONE {
        text
    } else {
        format!("{text} %")
    }
}

/// Requests a second: `300/s`.
pub fn rate(value: f64) -> String {
    let text = number(value);
    if text == NONE {
        text
    } else {
        format!("{text}/s")
    }
}

/// A count with its noun: `1 trial`, `20 trials`.
pub fn count(n: usize, noun: &str) -> String {
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
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown: Vec<_> = [
            0.0, 0.01234, 0.5, 1.2345, 9.999, 12.34, 99.99, 123.4, 123_456.0,
        ]
        .map(number)
        .to_vec();
        let expected = [
            "0", "0.0123", "0.500", "1.23", "10.0", "12.3", "100", "123", "123456",
        ];
        assert_eq!(shown, expected);
        assert_eq!(number(f64::NAN), NONE);
        assert_eq!(percent(f64::INFINITY), NONE);
    }

    #[test]
    fn times_choose_their_unit() {
        let shown: Vec<_> = [850e-6, 0.0412, 0.99996, 3.412, 725.0, 9000.0]
            .map(|s| time(Duration::from_secs_f64(s)))
            .to_vec();
        assert_eq!(
            shown,
            [
                "850 µs",
                "41.2 ms",
                "1.00 s",
                "3.41 s",
                "12 min 5 s",
                "2 h 30 min"
            ]
        );
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_795_181_160_000), "2026-11-20 13:26 UTC");
    }
}
