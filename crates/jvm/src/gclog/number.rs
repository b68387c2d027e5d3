//! Numbers as GC logs write them: decimals with point or comma, sizes, durations, dates.
//!
//! Works on bytes, allocates nothing, gives `None` instead of failing. Everything saturates: a log
//! is untrusted data.

use std::time::Duration;

pub(super) fn take_whole(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let value = text[..digits].iter().fold(0u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some((value, &text[digits..]))
}

/// A number with at most nine decimals that count, in billionths, and what follows it.
/// `1.5`, `1,5` and `2` are numbers; a separator needs a digit after it.
pub(super) fn take_billionths(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, mut rest) = take_whole(text)?;
    let mut value = whole.saturating_mul(1_000_000_000);
    if let [b'.' | b',', digit, ..] = rest
        && digit.is_ascii_digit()
    {
        rest = &rest[1..];
        let mut scale = 100_000_000;
        while let [digit, after @ ..] = rest
            && digit.is_ascii_digit()
        {
            value = value.saturating_add(u64::from(digit - b'0') * scale);
            scale /= 10;
            rest = after;
        }
    }
    Some((value, rest))
}

/// `58.198ms`, `1,2s`, `3 us`, `12 ns`: the whole text must be the duration.
pub(super) fn parse_unit_duration(text: &[u8]) -> Option<Duration> {
    let (billionths, unit) = take_billionths(text)?;
    let nanos = match unit.trim_ascii_start() {
        b"s" | b"secs" | b"seconds" => billionths,
        b"ms" => billionths / 1_000,
        b"us" => billionths / 1_000_000,
        b"ns" => billionths / 1_000_000_000,
        _ => return None,
    };
    Some(Duration::from_nanos(nanos))
}

/// Seconds without a unit: `0.0007660`, `0,02`.
pub(super) fn parse_decimal_seconds(text: &[u8]) -> Option<Duration> {
    match take_billionths(text)? {
        (nanos, b"") => Some(Duration::from_nanos(nanos)),
        _ => None,
    }
}

/// A size and what follows it: `512K`, `740.9M`, `0.0B`, `10G`, `22.0 G`. Without a unit it is
/// none: a bare number in a heap figure is a count of something else.
pub(super) fn take_size(text: &[u8]) -> Option<(u64, &[u8])> {
    let (billionths, rest) = take_billionths(text)?;
    let shift = match rest.first()? {
        b'B' => 0,
        b'K' | b'k' => 10,
        b'M' | b'm' => 20,
        b'G' | b'g' => 30,
        b'T' | b't' => 40,
        _ => return None,
    };
    let bytes = (u128::from(billionths) << shift) / 1_000_000_000;
    Some((u64::try_from(bytes).unwrap_or(u64::MAX), &rest[1..]))
}

/// `2016-04-14T22:30:09.108+0200` as milliseconds since 1970 UTC, and what follows it.
pub(super) fn take_date(text: &[u8]) -> Option<(i64, &[u8])> {
    // Fixed columns: yyyy-mm-ddThh:mm:ss.mmm, then the offset or Z.
    let pattern = b"0000-00-00T00:00:00";
    if text.len() < pattern.len() {
        return None;
    }
    let fits = pattern.iter().zip(text).all(|(want, have)| match want {
        b'0' => have.is_ascii_digit(),
        b'T' => matches!(have, b'T' | b' '),
        separator => separator == have,
    });
    if !fits {
        return None;
    }
    let field = |from: usize, to: usize| {
        take_whole(&text[from..to]).map_or(0, |(n, _)| i64::try_from(n).unwrap_or(0))
    };
    let days = days_since_1970(field(0, 4), field(5, 7), field(8, 10))?;
    let mut millis =
        ((days * 24 + field(11, 13)) * 60 + field(14, 16)) * 60_000 + field(17, 19) * 1_000;
    let mut rest = &text[19..];
    if let [b'.' | b',', a, b, c, after @ ..] = rest
        && [a, b, c].iter().all(|d| d.is_ascii_digit())
    {
        millis += i64::from(a - b'0') * 100 + i64::from(b - b'0') * 10 + i64::from(c - b'0');
        rest = after;
    }
    if let [sign @ (b'+' | b'-'), h1, h2, m1, m2, after @ ..] = rest
        && [h1, h2, m1, m2].iter().all(|d| d.is_ascii_digit())
    {
        let digit = |d: &u8| i64::from(d - b'0');
        let minutes = (digit(h1) * 10 + digit(h2)) * 60 + digit(m1) * 10 + digit(m2);
        millis -= minutes * 60_000 * if *sign == b'-' { -1 } else { 1 };
        rest = after;
    } else if let [b'Z', after @ ..] = rest {
        rest = after;
    }
    Some((millis, rest))
}

/// Days from 1970-01-01 in the Gregorian calendar; `None` for an invalid month or day.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The year starts in March, so the leap day is the last one.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let day_of_year = (153 * m + 2) / 5 + day - 1;
    let leap_days = y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400);
    // 719468 days lie between 0000-03-01 and 1970-01-01.
    Some(y * 365 + leap_days + day_of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_every_unit_and_locale() {
        for (text, nanos) in [
            ("58.198ms", 58_198_000),
            ("0,0012s", 1_200_000),
            ("3 us", 3_000),
            ("2207469111 ns", 2_207_469_111),
            ("0.0007660 secs", 766_000),
            ("7s", 7_000_000_000),
        ] {
            assert_eq!(
                parse_unit_duration(text.as_bytes()),
                Some(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
        for text in ["", "ms", "1.5", "1.ms", "1.5 m", "x1ms", "1msx"] {
            assert_eq!(parse_unit_duration(text.as_bytes()), None, "{text}");
        }
        assert!(parse_unit_duration(b"99999999999999999999999s").is_some());
    }

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!(take_size(b"512K->"), Some((512 << 10, &b"->"[..])));
        assert_eq!(take_size(b"740.5M"), Some((776_470_528, &b""[..])));
        assert_eq!(take_size(b"0.0B("), Some((0, &b"("[..])));
        assert_eq!(take_size(b"10G"), Some((10 << 30, &b""[..])));
        assert_eq!(take_size(b"14->0"), None);
        assert_eq!(
            take_size(b"99999999999999T").map(|(n, _)| n),
            Some(u64::MAX)
        );
    }

    #[test]
    fn dates_are_utc_milliseconds() {
        let (millis, rest) = take_date(b"2016-04-14T22:30:09.108+0200: 1.053").unwrap();
        assert_eq!((millis, rest), (1_460_665_809_108, &b": 1.053"[..]));
        assert_eq!(take_date(b"1970-01-01T00:00:00.000Z"), Some((0, &b""[..])));
        assert_eq!(
            take_date(b"2000-02-29T00:00:00").map(|d| d.0),
            Some(951_782_400_000)
        );
        assert_eq!(take_date(b"2016-13-01T00:00:00"), None);
        assert_eq!(take_date(b"2016-04-14"), None);
    }
}
