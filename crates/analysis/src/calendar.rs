//! Day numbers of the proleptic Gregorian calendar.
//!
//! Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", days_from_civil.

/// Days since 1970-01-01; `None` where month or day is out of range.
pub fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The year starts in March, so that the leap day is its last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// The same of a `YYYY-MM-DD` date.
pub fn parse_day(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let is_whole = year <= 9999 && parts.next().is_none();
    days_since_epoch(year, month, day).filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_dates() {
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(parse_day("2000-03-01"), Some(11_017));
        assert_eq!(parse_day("2026-13-01"), None);
        assert_eq!(parse_day("2026-11-01-02"), None);
    }
}
