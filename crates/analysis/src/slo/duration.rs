//! Durations and numbers of objectives, as people write them.
//!
//! A printed duration is read as the same duration.

use std::time::Duration;

use loadline_sizing::Bytes;

/// The longest duration that is read, s: 31 years, to a µs in a floating-point number.
const LONGEST: f64 = 1e9;

/// Reads `250us`, `50ms`, `1.5s`, `2m`, `1h`, to the ns, from a second on to the µs, as [`print_duration`]
/// prints them; nothing else, and nothing above 31 years.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ')?;
    let (number, unit) = text.split_at(split);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let number: f64 = number.trim().parse().ok()?;
    let seconds = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * seconds;
    match seconds {
        s if s > LONGEST => None,
        s if s >= 1.0 => Some(Duration::from_micros((s * 1e6).round() as u64)),
        s => Duration::try_from_secs_f64(s).ok(),
    }
}

/// The length of time that was meant by a number without a unit, with one in words or with several: `30s`
/// of `30`, `1h` of `1 hour`, `90m` of `1h30m`.
pub fn meant_duration(text: &str) -> Option<String> {
    let plain = text.trim().to_lowercase().replace(char::is_whitespace, "");
    if let Some((hours, minutes)) = plain.split_once('h')
        && let Some(minutes) = minutes.strip_suffix('m')
        && let (Ok(hours), Ok(minutes)) = (hours.parse::<u32>(), minutes.parse::<u32>())
    {
        return Some(format!("{}m", u64::from(hours) * 60 + u64::from(minutes)));
    }
    if let Some((minutes, seconds)) = plain.split_once('m')
        && let Some(seconds) = seconds.strip_suffix('s')
        && let (Ok(minutes), Ok(seconds)) = (minutes.parse::<u32>(), seconds.parse::<u32>())
    {
        return Some(format!("{}s", u64::from(minutes) * 60 + u64::from(seconds)));
    }
    let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, word) = plain.split_at(end.unwrap_or(plain.len()));
    let unit = match word {
        "" | "sec" | "secs" | "second" | "seconds" => "s",
        "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "mins" | "minute" | "minutes" => "m",
        "hr" | "hrs" | "hour" | "hours" => "h",
        _ => return None,
    };
    let meant = format!("{number}{unit}");
    let is_some = parse_duration(&meant).is_some_and(|time| !time.is_zero());
    is_some.then_some(meant)
}

/// The number that was meant by one with a suffix or with signs between its digits: 1000 of `1k` and
/// `1_000`. `m` may be a minute.
pub(super) fn meant_number(text: &str) -> Option<f64> {
    let plain = text.replace([' ', '_'], "");
    let plain = plain.strip_suffix("/s").unwrap_or(&plain);
    let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = plain.split_at(end.unwrap_or(plain.len()));
    let factor = match suffix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ if suffix.len() > 1 => format!("1{suffix}").parse::<Bytes>().ok()?.as_bytes() as f64,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// Prints a duration the way people write it: `250us`, `50ms`, `1.5s`, `2m`; parses back.
pub fn print_duration(value: Duration) -> String {
    let nanos = value.as_nanos() as f64;
    let (scale, unit) = match nanos {
        n if n >= 60e9 && n % 60e9 == 0.0 => (60e9, "m"),
        n if n >= 1e9 => (1e9, "s"),
        n if n >= 1e6 => (1e6, "ms"),
        n if n >= 1e3 => (1e3, "us"),
        _ => (1.0, "ns"),
    };
    format!("{}{unit}", round_printed(nanos / scale))
}

/// Reads `0.1%`.
pub(super) fn parse_percent(text: &str) -> Option<f64> {
    let number = text.trim().strip_suffix('%')?;
    number.trim().parse().ok()
}

pub(super) fn round_printed(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_several_units_are_understood() {
        for (text, meant) in [
            ("1h30m", Some("90m")),
            ("2 m 5 s", Some("125s")),
            ("1 hour", Some("1h")),
            ("1h30", None),
            ("1x", None),
        ] {
            assert_eq!(meant_duration(text).as_deref(), meant, "{text}");
        }
    }

    #[test]
    fn a_duration_that_is_read_is_read_again_as_it_prints() {
        for (text, printed) in [
            ("2.5us", "2.5us"),
            ("0.4ns", "0ns"),
            ("999.9999999ms", "1s"),
            ("1.123456789s", "1.123457s"),
            ("0.03333333h", "119.999988s"),
            ("1.5m", "90s"),
            ("999999999.123456s", "999999999.123456s"),
            ("1000000000s", "1000000000s"),
        ] {
            let read = parse_duration(text).expect(text);
            assert_eq!(print_duration(read), printed, "{text}");
            assert_eq!(parse_duration(printed), Some(read), "{text}");
        }
        for text in ["1000000001s", "3775418158742670608s", "300000h", "1e999s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
