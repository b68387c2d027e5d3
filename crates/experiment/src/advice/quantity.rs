//! Quantities of Kubernetes: `250m`, `1.5Gi`, `1e3`, `1P`.
//!
//! Owns their reading into loadline's units, exact and rounded up as the API server rounds.
//! Source: apimachinery, `resource.Quantity` (suffixes n u m k M G T P E, Ki to Ei, and exponents).

use loadline_sizing::{Bytes, Cpus};

const DIGITS: usize = 27;

/// What a suffix multiplies and divides by.
fn suffix_scale(suffix: &str) -> Option<(u128, u128)> {
    let power = |base: u128, units: &str| {
        let at = units.split(' ').position(|unit| unit == suffix)?;
        base.checked_pow(u32::try_from(at).ok()?)
    };
    let large = power(1 << 10, " Ki Mi Gi Ti Pi Ei").or(power(1000, " k M G T P E"));
    large
        .map(|times| (times, 1))
        .or(power(1000, " m u n").map(|by| (1, by)))
}

/// An amount of memory, in whole bytes; `None` if it is no quantity.
pub fn parse_memory_quantity(text: &str) -> Option<Bytes> {
    let bytes = parse_scaled(text, 1)?;
    Some(Bytes::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX)))
}

/// CPUs, in whole thousandths; `None` if it is no quantity.
pub fn parse_cpu_quantity(text: &str) -> Option<Cpus> {
    let millis = parse_scaled(text, 1000)?;
    Some(Cpus::from_millis(u32::try_from(millis).unwrap_or(u32::MAX)))
}

/// The quantity times `unit`, rounded up; `None` if it is no quantity, or negative.
fn parse_scaled(text: &str, unit: u128) -> Option<u128> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > DIGITS || fraction.contains('.') {
        return None;
    }
    let mut over: u128 = digits.parse().ok()?;
    let mut under = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    match suffix_scale(suffix) {
        Some((times, by)) => {
            over = over.checked_mul(times)?;
            under = under.checked_mul(by)?;
        }
        None => {
            let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
            if exponent < 0 {
                under = under.checked_mul(power)?
            } else {
                over = over.checked_mul(power)?
            }
        }
    }
    Some(over.checked_mul(unit)?.div_ceil(under))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_suffix_is_read() {
        for (text, bytes) in [
            ("512Mi", 512 << 20),
            ("1.5Gi", 1536 << 20),
            ("1Pi", 1 << 50),
            ("2Ei", 2 << 60),
            ("1P", 1_000_000_000_000_000),
            ("1E", 1_000_000_000_000_000_000),
            ("1e3", 1000),
            ("1E3", 1000),
            ("1.5e9", 1_500_000_000),
            ("15e-1", 2),
            ("128974848", 128_974_848),
            ("128974848000m", 128_974_848),
            ("100m", 1),
            ("0.5k", 500),
            ("+1k", 1000),
            (".5Ki", 512),
            ("99999Ei", u64::MAX),
        ] {
            assert_eq!(
                parse_memory_quantity(text),
                Some(Bytes::from_bytes(bytes)),
                "{text}"
            );
        }
        for (text, millis) in [
            ("250m", 250),
            ("1", 1000),
            ("0.1", 100),
            ("1e3m", 0),
            ("100u", 1),
        ] {
            let expected = (millis > 0).then(|| Cpus::from_millis(millis));
            assert_eq!(parse_cpu_quantity(text), expected, "{text}");
        }
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "", "512MB", "512 Mi", "-1", "1..2", "Mi", "1e", "1e99999", "1K", "1mi", "{{ x }}",
        ] {
            assert_eq!(parse_memory_quantity(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*", number in "[0-9]{0,40}[.]?[0-9]{0,40}[a-zA-Z]{0,2}-?[0-9]{0,9}") {
            let _ = (parse_memory_quantity(&text), parse_cpu_quantity(&text), parse_memory_quantity(&number), parse_cpu_quantity(&number));
        }
    }
}
