//! Measured numbers in sentences: three digits and a unit.
//!
//! Owns the short forms (`12.3ms`, `14.8 M`, `0.25 %`). They are for people and do not parse back;
//! [`crate::slo::print_duration`] prints the parseable form.

use std::time::Duration;

/// A duration with three digits: `840us`, `12.3ms`, `1.85s`, `92.4s`.
pub fn short_duration(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    let (scale, unit) = match seconds {
        s if s >= 0.9995 => (1.0, "s"),
        s if s >= 0.000_999_5 => (1e3, "ms"),
        s if s >= 0.000_000_999_5 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{}{unit}", three_digits(seconds * scale))
}

/// A chosen bound: never rounded, `1.50s` and `1.234s`.
pub fn exact_duration(bound: Duration) -> String {
    let (short, exact) = (short_duration(bound), crate::slo::print_duration(bound));
    if reads_like(&short, &exact) {
        short
    } else {
        exact
    }
}

/// A chosen share, to the millionth of a percent: `0.10 %` and `0.1234 %`.
pub fn percent_bound(share: f64) -> String {
    let (short, exact) = (short_percent(share), (share * 100.0 * 1e6).round() / 1e6);
    let exact = format!("{exact} %");
    if reads_like(&short, &exact) {
        short
    } else {
        exact
    }
}

/// A duration with enough digits to differ from an [`exact_duration`]: `100.3ms` next to `100ms`.
/// If equal to the bound it is `exactly 100ms`.
pub fn duration_beside(value: Duration, limit: Duration) -> String {
    let (short, other) = (short_duration(value), exact_duration(limit));
    if !reads_like(&short, &other) {
        return short;
    }
    if value == limit {
        return format!("exactly {other}");
    }
    let unit = short.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let scale = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        _ => 1.0,
    };
    let at =
        |of: Duration, places: usize| format!("{:.places$}{unit}", of.as_nanos() as f64 / scale);
    let mut apart = (1..=9).filter(|places| at(value, *places) != at(limit, *places));
    let apart = apart.find(|places| !reads_like(&at(value, *places), &other));
    apart.map_or_else(|| short.clone(), |places| at(value, places))
}

/// Whether two texts say the same: `1.00s` and `1s`.
fn reads_like(one: &str, other: &str) -> bool {
    let parts = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = text.split_at(end.unwrap_or(text.len()));
        (number.parse::<f64>().ok(), unit.to_owned())
    };
    parts(one) == parts(other)
}

/// A share with enough digits to differ from a [`percent_bound`], like [`duration_beside`].
pub fn percent_beside(share: f64, limit: f64) -> String {
    let (short, other) = (short_percent(share), percent_bound(limit));
    if !reads_like(&short, &other) {
        return short;
    }
    if share == limit {
        return format!("exactly {short}");
    }
    let at = |of: f64, places: usize| format!("{:.places$} %", of * 100.0);
    let mut apart = (1..=15).filter(|places| at(share, *places) != at(limit, *places));
    let apart = apart.find(|places| !reads_like(&at(share, *places), &other));
    apart.map_or(short, |places| at(share, places))
}

/// A count: `312`, `4.10 k`, `14.8 M`, `2.00 G`.
pub fn short_count(value: u64) -> String {
    match value as f64 {
        n if n >= 999.5e6 => format!("{} G", three_digits(n / 1e9)),
        n if n >= 999.5e3 => format!("{} M", three_digits(n / 1e6)),
        n if n >= 1e3 => format!("{} k", three_digits(n / 1e3)),
        n => format!("{n}"),
    }
}

/// A share in [0, 1] as a percentage: `0.25 %`, `12.3 %`, `100 %`.
pub fn short_percent(share: f64) -> String {
    format!("{} %", three_digits(share * 100.0))
}

/// A rate a second: `299/s`, `12.5/s`.
pub fn short_rate(per_second: f64) -> String {
    format!("{}/s", three_digits(per_second))
}

/// The items as text, with `between` between two.
pub fn join_words<T: ToString>(items: impl IntoIterator<Item = T>, between: &str) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(between)
}

pub fn three_digits(value: f64) -> String {
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
            .map(|us| short_duration(Duration::from_micros(us)))
            .into();
        insta::assert_snapshot!(texts.join(" "), @"840us 12.3ms 1.85s 92.4s 1.00s 1ms");
    }

    proptest::proptest! {
        /// Whatever the value and the bound: `p99 was 100ms, the SLO allows 100ms` is never said.
        #[test]
        fn a_value_never_reads_like_the_bound_that_it_breaks(
            micros in 1_u64..100_000_000,
            above in proptest::prelude::prop_oneof![0_u64..10, 0_u64..100_000, 0_u64..10_000_000_000],
        ) {
            // Bounds are written by people: to the microsecond, to the thousandth of a percent.
            let limit = Duration::from_micros(micros);
            let text = duration_beside(limit + Duration::from_nanos(above), limit);
            proptest::prop_assert!(!reads_like(&text, &exact_duration(limit)), "{}", text);
            let limit = (micros % 100_000) as f64 / 1e5;
            let text = percent_beside(limit + above as f64 / 1e11, limit);
            proptest::prop_assert!(!reads_like(&text, &percent_bound(limit)), "{}", text);
        }
    }

    #[test]
    fn digits_tell_a_value_from_its_bound() {
        let beside =
            |us, bound| duration_beside(Duration::from_micros(us), Duration::from_millis(bound));
        let texts = [
            beside(83_100, 50),
            beside(100_007, 100),
            beside(100_300, 100),
            beside(100_000, 100),
            percent_beside(0.01004, 0.01),
        ];
        insta::assert_snapshot!(texts.join(", "), @"83.1ms, 100.01ms, 100.3ms, exactly 100ms, 1.004 %");
    }

    #[test]
    fn counts_shares_and_rates() {
        let texts = [
            short_count(312),
            short_count(4_100),
            short_count(14_800_000),
            short_percent(0.0025),
            short_percent(1.0),
            short_rate(299.4),
            short_rate(12.5),
        ];
        insta::assert_snapshot!(texts.join(", "), @"312, 4.10 k, 14.8 M, 0.25 %, 100 %, 299/s, 12.5/s");
    }
}
