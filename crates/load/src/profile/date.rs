//! Stamps in a form of one's own: Java's SimpleDateFormat, or strftime.
//!
//! Owns which letters are known. A stamp without a zone counts as UTC: all lines of a log are off
//! by the same, which moves the begin of the profile and no rate. Facts: java.text.SimpleDateFormat
//! and httpd mod_log_config, `%{format}t`.

use loadline_analysis::calendar::days_since_epoch;

use super::stamp::{parse_digits, zone_offset};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StampFormat(Vec<StampPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum StampPart {
    Text(Vec<u8>),
    Year,
    Month,
    MonthName,
    Day,
    Hour,
    Minute,
    Second,
    Fraction,
    Epoch,
    /// `+0200`, `+02:00`, `Z`, `UTC` or `GMT`.
    Zone,
}

impl StampFormat {
    /// From `yyyy-MM-dd HH:mm:ss.SSS Z`.
    pub(super) fn from_simple_date_format(text: &str) -> Result<Self, String> {
        let mut parts = Self(Vec::new());
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if let Some(quoted) = rest.strip_prefix('\'') {
                let (inner, after) = quoted.split_once('\'').unwrap_or((quoted, ""));
                parts.push_literal(inner);
                rest = after;
                continue;
            }
            let run = rest.len() - rest.trim_start_matches(letter).len();
            let (same, after) = rest.split_at(run);
            rest = after;
            let part = match same {
                "yyyy" | "uuuu" => StampPart::Year,
                "MM" => StampPart::Month,
                "MMM" => StampPart::MonthName,
                "dd" => StampPart::Day,
                "HH" => StampPart::Hour,
                "mm" => StampPart::Minute,
                "ss" => StampPart::Second,
                _ if letter == 'S' => StampPart::Fraction,
                _ if "XZz".contains(letter) => StampPart::Zone,
                _ if letter.is_ascii_alphabetic() => return Err(unknown_letters(same, text)),
                _ => {
                    parts.push_literal(same);
                    continue;
                }
            };
            parts.0.push(part);
        }
        Ok(parts)
    }

    /// From `%Y-%m-%dT%H:%M:%S%z`.
    pub(super) fn from_strftime(text: &str) -> Result<Self, String> {
        let mut parts = Self(Vec::new());
        let text = text
            .replace("%T", "%H:%M:%S")
            .replace("%F", "%Y-%m-%d")
            .replace("%R", "%H:%M");
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once('%') {
            parts.push_literal(before);
            // Envoy: `%3f` is ms.
            let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
            let mut letters = after.chars();
            let letter = letters.next().unwrap_or(' ');
            rest = letters.as_str();
            parts.0.push(match letter {
                'Y' => StampPart::Year,
                'm' => StampPart::Month,
                'b' | 'h' => StampPart::MonthName,
                'd' => StampPart::Day,
                'H' => StampPart::Hour,
                'M' => StampPart::Minute,
                'S' => StampPart::Second,
                'f' => StampPart::Fraction,
                's' => StampPart::Epoch,
                'z' | 'Z' => StampPart::Zone,
                letter => return Err(unknown_letters(&format!("%{letter}"), &text)),
            });
        }
        parts.push_literal(rest);
        Ok(parts)
    }

    fn push_literal(&mut self, text: &str) {
        if !text.is_empty() {
            self.0.push(StampPart::Text(text.as_bytes().to_vec()));
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        let has = |part| self.0.contains(&part);
        has(StampPart::Epoch) || (has(StampPart::Year) && has(StampPart::Day))
    }

    pub(super) fn read<'a>(&self, text: &'a [u8]) -> Option<(f64, &'a [u8])> {
        let mut rest = text;
        let (mut year, mut month, mut day, mut seconds) = (1970, 1, 1, 0);
        let mut fraction = 0.0;
        for part in &self.0 {
            match part {
                StampPart::Text(text) => rest = rest.strip_prefix(text.as_slice())?,
                StampPart::Year => year = take_digits(&mut rest, 4)?,
                StampPart::Month => month = take_digits(&mut rest, 2)?,
                StampPart::Day => day = take_digits(&mut rest, 2)?,
                StampPart::Hour => seconds += take_digits(&mut rest, 2)? * 3600,
                StampPart::Minute => seconds += take_digits(&mut rest, 2)? * 60,
                StampPart::Second => seconds += take_digits(&mut rest, 2)?,
                StampPart::MonthName => {
                    let (name, after) = rest.split_at_checked(3)?;
                    month = super::stamp::month(name)?;
                    rest = after;
                }
                StampPart::Fraction => (fraction, rest) = fractional(rest)?,
                StampPart::Epoch => {
                    let length = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                    // More digits than these are no seconds since 1970.
                    seconds += take_digits(&mut rest, length.clamp(1, 12))?;
                }
                StampPart::Zone => {
                    let (zone, after) = zone(rest)?;
                    seconds -= zone;
                    rest = after;
                }
            }
        }
        Some((
            (days_since_epoch(year, month, day)? * 86_400 + seconds) as f64 + fraction,
            rest,
        ))
    }
}

fn take_digits(text: &mut &[u8], count: usize) -> Option<i64> {
    let (value, after) = text.split_at_checked(count)?;
    *text = after;
    parse_digits(value)
}

fn fractional(text: &[u8]) -> Option<(f64, &[u8])> {
    let length = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, after) = text.split_at(length);
    Some((super::stamp::decimal_fraction(digits)?, after))
}

fn zone(text: &[u8]) -> Option<(i64, &[u8])> {
    for name in [&b"UTC"[..], b"GMT", b"Z"] {
        if let Some(after) = text.strip_prefix(name) {
            return Some((0, after));
        }
    }
    let has_colon = text.get(3) == Some(&b':');
    let (zone, after) = text.split_at_checked(if has_colon { 6 } else { 5 })?;
    Some((zone_offset(zone)?, after))
}

fn unknown_letters(letters: &str, text: &str) -> String {
    format!(
        "the stamp `{text}` has `{letters}`, which is not known; years, months, days, hours, \
         minutes, seconds, fractions and zones are"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_ones_own_are_the_same_moment() {
        for (date, text) in [
            (
                StampFormat::from_simple_date_format("yyyy-MM-dd HH:mm:ss.SSS"),
                "2000-10-10 20:55:36.250",
            ),
            (
                StampFormat::from_simple_date_format("yyyy-MM-dd'T'HH:mm:ss.SSSXXX"),
                "2000-10-10T13:55:36.25-07:00",
            ),
            (
                StampFormat::from_simple_date_format("dd/MMM/yyyy:HH:mm:ss.S ZZZ"),
                "10/Oct/2000:22:55:36.250 +0200",
            ),
            (
                StampFormat::from_simple_date_format("yyyyMMddHHmmss.SSS z"),
                "20001010205536.250 GMT",
            ),
            (
                StampFormat::from_strftime("%d/%b/%Y %T.%3f%z"),
                "10/Oct/2000 13:55:36.250-0700",
            ),
            (StampFormat::from_strftime("%s.%3f"), "971211336.250"),
        ] {
            let date = date.unwrap();
            assert!(date.is_whole(), "{text}");
            let rest = format!("{text}] rest");
            let read = date.read(rest.as_bytes());
            assert_eq!(read, Some((971_211_336.25, &b"] rest"[..])), "{text}");
            for cut in 0..text.len() - 4 {
                // Part of a stamp may be one; it must not be read past its end.
                let _ = date.read(&text.as_bytes()[..cut]);
            }
        }
    }

    #[test]
    fn a_letter_that_is_not_known_is_named() {
        for (date, letters) in [
            (StampFormat::from_simple_date_format("EEE dd"), "`EEE`"),
            (StampFormat::from_strftime("%Y %j"), "`%j`"),
        ] {
            let error = date.unwrap_err();
            assert!(error.contains(letters), "{error}");
        }
        assert!(!StampFormat::from_strftime("%z").unwrap().is_whole());
    }
}
