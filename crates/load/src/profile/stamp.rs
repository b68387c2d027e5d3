//! Time stamps of access logs, as seconds since 1970 (UTC).

use loadline_analysis::calendar::days_since_epoch;

#[derive(Debug, Default)]
pub(super) struct StampParser {
    day: [u8; 11],
    begin: i64,
    /// The last stamp as it stood, and its value: busy servers repeat it.
    last: ([u8; 28], f64),
}

impl StampParser {
    /// Reads `10/Oct/2000:13:55:36 -0700`, with or without brackets.
    pub(super) fn parse_common(&mut self, text: &[u8]) -> Option<f64> {
        if *text == self.last.0 {
            return Some(self.last.1);
        }
        let value = self.parse_stamp(text)?;
        if let Ok(text) = text.try_into() {
            self.last = (text, value);
        }
        Some(value)
    }

    fn parse_stamp(&mut self, text: &[u8]) -> Option<f64> {
        let text = text.strip_prefix(b"[").unwrap_or(text);
        let text = text.strip_suffix(b"]").unwrap_or(text);
        if text.len() < 20 || text[11] != b':' {
            return None;
        }
        if text[..11] != self.day {
            self.begin = day_begin(&text[..11])?;
            self.day.copy_from_slice(&text[..11]);
        }
        let clock = clock(&text[12..20])?;
        // HAProxy writes ms and no zone.
        let (fraction, rest) = match &text[20..] {
            [b'.', rest @ ..] => {
                let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                (decimal_fraction(&rest[..length])?, &rest[length..])
            }
            rest => (0.0, rest),
        };
        let zone = match rest.get(1..6) {
            Some(zone) => zone_offset(zone)?,
            None => 0,
        };
        Some((self.begin + clock - zone) as f64 + fraction)
    }
}

/// Reads `2000-10-10T13:55:36-07:00`, `2000-10-10T13:55:36.123Z`, `2000-10-10 13:55:36`.
pub(crate) fn parse_iso(text: &[u8]) -> Option<f64> {
    let digits = |range: std::ops::Range<usize>| parse_digits(text.get(range)?);
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let days = days_since_epoch(digits(0..4)?, digits(5..7)?, digits(8..10)?)?;
    let clock = clock(&text[11..19])?;
    let rest = &text[19..];
    let zone_at = rest.iter().position(|b| matches!(b, b'+' | b'-' | b'Z'));
    let (fraction, zone) = rest.split_at(zone_at.unwrap_or(rest.len()));
    let fraction = match fraction {
        [] => 0.0,
        [b'.' | b',', digits @ ..] => self::decimal_fraction(digits)?,
        _ => return None,
    };
    let zone = match zone {
        [] | b"Z" => 0,
        zone => zone_offset(zone)?,
    };
    Some((days * 86_400 + clock - zone) as f64 + fraction)
}

fn day_begin(text: &[u8]) -> Option<i64> {
    let month = month(&text[3..6])?;
    Some(
        days_since_epoch(
            parse_digits(&text[7..11])?,
            month,
            parse_digits(&text[..2])?,
        )? * 86_400,
    )
}

/// `Jan` is 1.
pub(super) fn month(name: &[u8]) -> Option<i64> {
    const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let index = MONTHS.chunks(3).position(|month| month == name)?;
    Some(index as i64 + 1)
}

/// The digits behind a decimal point; those behind the ninth are cut off.
pub(super) fn decimal_fraction(digits: &[u8]) -> Option<f64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = &digits[..digits.len().min(9)];
    let scale = 10_f64.powi(digits.len() as i32);
    Some(parse_digits(digits)? as f64 / scale)
}

fn clock(text: &[u8]) -> Option<i64> {
    if text[2] != b':' || text[5] != b':' {
        return None;
    }
    Some(
        parse_digits(&text[..2])? * 3600
            + parse_digits(&text[3..5])? * 60
            + parse_digits(&text[6..8])?,
    )
}

/// `-0700` or `-07:00` in seconds.
pub(super) fn zone_offset(text: &[u8]) -> Option<i64> {
    let sign = match text.first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let minutes = if text.get(3) == Some(&b':') { 4 } else { 3 };
    let minutes = parse_digits(text.get(minutes..minutes + 2)?)?;
    Some(sign * (parse_digits(text.get(1..3)?)? * 3600 + minutes * 60))
}

pub(super) fn parse_digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |n, b| {
        b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_all_forms_are_the_same_moment() {
        let moment = Some(971_211_336.0);
        let mut stamps = StampParser::default();
        for text in ["[10/Oct/2000:13:55:36 -0700]", "10/Oct/2000:20:55:36 +0000"] {
            assert_eq!(stamps.parse_common(text.as_bytes()), moment, "{text}");
        }
        for text in [
            "2000-10-10T13:55:36-07:00",
            "2000-10-10T20:55:36Z",
            "2000-10-10 20:55:36",
            "2000-10-10T22:55:36+0200",
        ] {
            assert_eq!(parse_iso(text.as_bytes()), moment, "{text}");
        }
        assert_eq!(parse_iso(b"1970-01-01T00:00:01.250Z"), Some(1.25));
        assert_eq!(parse_iso(b"1970-01-01 00:00:01,5"), Some(1.5));
        assert_eq!(stamps.parse_common(b"01/Jan/1970:00:00:01.250"), Some(1.25));
        assert_eq!(
            stamps.parse_common(b"01/Jan/1970:01:00:01.250 +0100"),
            Some(1.25)
        );
        assert_eq!(
            stamps.parse_common(b"29/Feb/2024:00:00:00 +0000"),
            Some(1_709_164_800.0)
        );
    }

    #[test]
    fn what_is_no_stamp_is_refused() {
        for text in [
            "",
            "-",
            "10/Foo/2000:13:55:36 -0700",
            "10/Oct/2000 13:55:36",
            "99",
        ] {
            assert_eq!(
                StampParser::default().parse_common(text.as_bytes()),
                None,
                "{text}"
            );
            assert_eq!(parse_iso(text.as_bytes()), None, "{text}");
        }
    }
}
