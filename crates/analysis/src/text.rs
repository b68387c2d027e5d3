//! How measured numbers stand in a sentence: three digits and a unit.
//!
//! Owns the short forms (`12.3ms`, `14.8 M`, `0.25 %`). They are for people and do not parse back;
//! [`crate::slo::duration`] prints the form that does.

use std::time::Duration;

/// A duration with three digits: `840us`, `12.3ms`, `1.85s`, `92.4s`.
pub fn duration(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    let (scale, unit) = match seconds {
        s if s >= 0.9995 => (1.0, "s"),
        s if s >= 0.000_999_5 => (1e3, "ms"),
        s if s >= 0.000_000_999_5 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{}{unit}", digits(seconds * scale))
}

/// A count: `312`, `4.10 k`, `14.8 M`, `2.00 G`.
pub fn count(value: u64) -> String {
    match value as f64 {
        n if n >= 999.5e6 => format!("{} G", digits(n / 1e9)),
        n if n >= 999.5e3 => format!("{} M", digits(n / 1e6)),
        n if n >= 1e3 => format!("{} k", digits(n / 1e3)),
        n => format!("{n}"),
    }
}

/// A share in [0, 1] as a percentage: `0.25 %`, `12.3 %`, `100 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", digits(share * 100.0))
}

/// A rate a second: `299/s`, `12.5/s`.
pub fn rate(per_second: f64) -> String {
    format!("{}/s", digits(per_second))
}

/// Three significant digits without an exponent; whole numbers stay whole.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == value.trunc() {
        return format!("{value}");
    }
    match value.abs() {
        a if a >= 99.95 => format!("{value:.0}"),
        a if a >= 9.995 => format!("{value:.1}"),
        a if a >= 0.0995 => format!("{value:.2}"),
        a if a >= 0.000_995 => format!("{value:.4}"),
        _ => format!("{value:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_people_write_them() {
        let texts: Vec<String> = [840, 12_345, 1_850_000, 92_400_000, 999_900, 1_000]
            .map(|us| duration(Duration::from_micros(us)))
            .into();
        insta::assert_snapshot!(texts.join(" "), @"840us 12.3ms 1.85s 92.4s 1.00s 1ms");
    }

    #[test]
    fn counts_shares_and_rates() {
        let texts = [
            count(312),
            count(4_100),
            count(14_800_000),
            percent(0.0025),
            percent(1.0),
            rate(299.4),
            rate(12.5),
        ];
        insta::assert_snapshot!(texts.join(", "), @"312, 4.10 k, 14.8 M, 0.25 %, 100 %, 299/s, 12.5/s");
    }
}
