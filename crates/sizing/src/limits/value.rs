//! The text of single limit files to values, sentinels included.

use super::Quota;

/// A limit file's number. `None` means "no limit": `max`, -1, and anything at or above v1's
/// unlimited value, which is the largest multiple of a page in a signed 64-bit number.
/// Errors: The text itself when it is no number.
pub fn parse_limit(text: &str) -> Result<Option<u64>, String> {
    let text = text.trim();
    if text == "max" || text == "-1" {
        return Ok(None);
    }
    // 64 KiB pages (aarch64) have the smallest sentinel: 9223372036854710272.
    const UNLIMITED: u64 = i64::MAX as u64 / 65_536 * 65_536;
    match text.parse::<u64>() {
        Ok(value) if value >= UNLIMITED => Ok(None),
        Ok(value) => Ok(Some(value)),
        Err(_) if is_huge(text) => Ok(None),
        Err(_) => Err(shorten(text)),
    }
}

/// v2's `cpu.max`: `max 100000` or `150000 100000`; the period may be missing (100 ms).
/// Errors: The text itself when it has another form.
pub fn parse_cpu_max(text: &str) -> Result<Option<Quota>, String> {
    let mut words = text.split_whitespace();
    let quota = words.next().ok_or_else(|| shorten(text))?;
    let period_us = match words.next() {
        Some(period) => period.parse().map_err(|_| shorten(text))?,
        None => 100_000,
    };
    Ok(quota_of(parse_limit(quota)?, period_us))
}

pub(super) fn quota_of(quota_us: Option<u64>, period_us: u64) -> Option<Quota> {
    let quota_us = quota_us.filter(|quota| *quota > 0)?;
    (period_us > 0).then_some(Quota {
        quota_us,
        period_us,
    })
}

fn is_huge(text: &str) -> bool {
    text.len() > 19 && text.bytes().all(|b| b.is_ascii_digit())
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_say_unlimited_is_no_limit() {
        for text in [
            "max\n",
            "-1\n",
            "9223372036854771712",
            "9223372036854710272",
            "9223372036854775807",
            "18446744073709551615",
            "99999999999999999999999",
        ] {
            assert_eq!(parse_limit(text), Ok(None), "{text}");
        }
        assert_eq!(parse_limit("536870912\n"), Ok(Some(536_870_912)));
        assert_eq!(parse_limit("0"), Ok(Some(0)));
        assert!(parse_limit("").is_err());
        assert!(parse_limit("12 34").is_err());
    }

    #[test]
    fn cpu_max_is_quota_and_period() {
        assert_eq!(parse_cpu_max("max 100000\n"), Ok(None));
        let quota = parse_cpu_max("150000 100000\n").unwrap().unwrap();
        assert_eq!(
            (quota.to_cpus().as_millis(), quota.whole_processors()),
            (1500, 2)
        );
        let quota = parse_cpu_max("100001 100000").unwrap().unwrap();
        assert_eq!(quota.whole_processors(), 2);
        assert_eq!(parse_cpu_max("5000").unwrap().unwrap().period_us, 100_000);
        assert_eq!(parse_cpu_max("5000 0"), Ok(None));
        assert!(parse_cpu_max("").is_err());
    }
}
