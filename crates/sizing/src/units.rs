//! Quantities that have a unit: [`Bytes`] and [`Cpus`].
//!
//! Owns their text forms; parsing and printing round-trip. There is no `From<u64>`: a
//! constructor names its unit.

use std::fmt;
use std::str::FromStr;

const KI: u64 = 1 << 10;
const MI: u64 = 1 << 20;
const GI: u64 = 1 << 30;
const TI: u64 = 1 << 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseUnitError {
    pub text: String,
    pub expected: &'static str,
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.meant() {
            Some(meant) => write!(f, "`{}` is not an amount; did you mean {meant}?", self.text),
            None => write!(f, "`{}` is not {}", self.text, self.expected),
        }
    }
}

impl ParseUnitError {
    /// The intended size, where the text has a number and a unit of another notation.
    pub fn meant(&self) -> Option<String> {
        let plain: String = self.text.chars().filter(|c| !c.is_whitespace()).collect();
        let plain = with_points(&plain.to_ascii_lowercase());
        let end = plain.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = plain.split_at(end.unwrap_or(plain.len()));
        let number: f64 = number.parse().ok().filter(|n| *n > 0.0)?;
        if self.expected == Cpus::EXPECTED {
            let millis = match unit {
                "" | "c" | "cpu" | "cpus" | "vcpu" | "vcpus" | "core" | "cores" => number * 1000.0,
                "m" | "mi" | "milli" | "millis" | "millicore" | "millicores" | "millicpu" => number,
                _ => return None,
            };
            let whole = millis.round();
            return (10.0..1e9)
                .contains(&whole)
                .then(|| Cpus(whole as u32).to_string());
        }
        let factor = spelled_factor(unit).or(binary_factor(unit.strip_suffix('b').unwrap_or(unit)));
        let bytes = number * factor? as f64;
        (1024.0..1e18)
            .contains(&bytes)
            .then(|| Bytes(bytes as u64).round_down(Bytes(KI)).to_string())
    }
}

/// The text with points for decimal commas, and without commas between thousands.
pub fn with_points(text: &str) -> String {
    let mut parts = text.split(',');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit());
        let digits = digits.unwrap_or(part.len());
        let is_inside = plain.ends_with(|c: char| c.is_ascii_digit()) && digits > 0;
        plain.push_str(match digits {
            _ if !is_inside => ",",
            3 => "",
            _ => ".",
        });
        plain.push_str(part);
    }
    plain
}

/// What a unit stands for that is a word in lower case: `gigabytes`, `gibibyte`, `megs`.
fn spelled_factor(unit: &str) -> Option<u64> {
    let word = unit.trim_end_matches('s');
    let word = word.strip_suffix("byte").unwrap_or(word);
    Some(match word {
        "kilo" | "kibi" => KI,
        "mega" | "mebi" | "meg" => MI,
        "giga" | "gibi" | "gig" => GI,
        "tera" | "tebi" => TI,
        _ => return None,
    })
}

impl std::error::Error for ParseUnitError {}

/// What a unit in lower case stands for.
fn binary_factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "" | "b" => 1,
        "k" | "ki" | "kib" => KI,
        "m" | "mi" | "mib" => MI,
        "g" | "gi" | "gib" => GI,
        "t" | "ti" | "tib" => TI,
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    const EXPECTED: &'static str = "an amount of memory: a whole number with Ki, Mi, Gi or Ti (or k, m, g, t, all binary), such as 512Mi";

    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// From kibibytes (1024 bytes); saturates.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(KI))
    }

    /// From mebibytes (1024² bytes); saturates.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(MI))
    }

    /// From gibibytes (1024³ bytes); saturates.
    pub const fn from_gib(gib: u64) -> Self {
        Self(gib.saturating_mul(GI))
    }

    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    pub fn as_mib(self) -> f64 {
        self.0 as f64 / MI as f64
    }

    pub fn as_gib(self) -> f64 {
        self.0 as f64 / GI as f64
    }

    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Rounded up to a multiple of `step`; unchanged when `step` is zero. Saturates.
    pub const fn round_up(self, step: Self) -> Self {
        match self.0.checked_next_multiple_of(step.0) {
            Some(bytes) => Self(bytes),
            None if step.0 == 0 => self,
            None => Self(u64::MAX),
        }
    }

    /// Rounded down to a multiple of `step`; unchanged when `step` is zero.
    pub const fn round_down(self, step: Self) -> Self {
        match self.0.checked_rem(step.0) {
            Some(rest) => Self(self.0 - rest),
            None => self,
        }
    }

    /// The largest power of two that is not above it; zero stays zero.
    pub const fn power_of_two_below(self) -> Self {
        match self.0.checked_ilog2() {
            Some(log) => Self(1 << log),
            None => self,
        }
    }

    /// A percentage, computed in double precision and truncated, as HotSpot does.
    pub fn percent_share(self, percent: f64) -> Self {
        Self((self.0 as f64 * percent / 100.0) as u64)
    }

    /// The fraction `numerator / denominator`, truncated; exact. Zero when the denominator is zero.
    pub fn mul_ratio(self, numerator: u64, denominator: u64) -> Self {
        let product = u128::from(self.0) * u128::from(numerator);
        let quotient = product.checked_div(u128::from(denominator)).unwrap_or(0);
        Self(u64::try_from(quotient).unwrap_or(u64::MAX))
    }

    /// For people: whole mebibytes, rounded to the nearest, instead of an exact `500000Ki`.
    pub fn to_short(self) -> String {
        let mib = Self::from_mib(1);
        if self < mib {
            self.to_string()
        } else {
            Self(self.0.saturating_add(MI / 2))
                .round_down(mib)
                .to_string()
        }
    }

    /// As a HotSpot option value: `512m`, `1g`, or kibibytes, rounded down to a kibibyte.
    pub fn to_jvm_size(self) -> String {
        match self.0 {
            b if b >= GI && b % GI == 0 => format!("{}g", b / GI),
            b if b >= MI && b % MI == 0 => format!("{}m", b / MI),
            b => format!("{}k", b / KI),
        }
    }
}

impl fmt::Display for Bytes {
    /// Prints the largest unit that is exact: `512Mi`, `1Gi`, `1536Ki`, `1000` (bytes).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            0 => "0".to_owned(),
            b if b % TI == 0 => format!("{}Ti", b / TI),
            b if b % GI == 0 => format!("{}Gi", b / GI),
            b if b % MI == 0 => format!("{}Mi", b / MI),
            b if b % KI == 0 => format!("{}Ki", b / KI),
            b => b.to_string(),
        };
        f.pad(&text)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// Accepts `1073741824`, `1048576Ki`, `1024Mi`, `1Gi`, `1GiB`, `1g`; all units are binary.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
        };
        let trimmed = text.trim();
        let digits = trimmed
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(digits);
        let factor = binary_factor(&unit.to_ascii_lowercase()).ok_or_else(error)?;
        let number: u64 = number.parse().map_err(|_| error())?;
        number.checked_mul(factor).map(Self).ok_or_else(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cpus(u32);

impl Cpus {
    const EXPECTED: &'static str =
        "an amount of CPU: CPUs with at most three decimals or millicores, such as 1.5 or 250m";

    pub const fn from_millis(millis: u32) -> Self {
        Self(millis)
    }

    pub const fn from_whole(cpus: u32) -> Self {
        Self(cpus.saturating_mul(1000))
    }

    pub const fn as_millis(self) -> u32 {
        self.0
    }

    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// Whole CPUs, rounded up: what HotSpot makes of a quota.
    pub const fn ceil(self) -> u32 {
        self.0.div_ceil(1000)
    }
}

impl fmt::Display for Cpus {
    /// Prints whole CPUs as `2`, others as millicores: `1500m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            m if m % 1000 == 0 => f.pad(&(m / 1000).to_string()),
            m => f.pad(&format!("{m}m")),
        }
    }
}

impl FromStr for Cpus {
    type Err = ParseUnitError;

    /// Accepts `2`, `0.5`, `1.25`, `250m`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError {
            text: text.to_owned(),
            expected: Self::EXPECTED,
        };
        let trimmed = text.trim();
        if let Some(millis) = trimmed.strip_suffix('m') {
            return millis.parse().map(Self).map_err(|_| error());
        }
        let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
        let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 3 || trimmed.is_empty() {
            return Err(error());
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(error());
        }
        let whole: u32 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| error())?
        };
        let fraction: u32 = format!("{fraction:0<3}").parse().map_err(|_| error())?;
        whole
            .checked_mul(1000)
            .and_then(|m| m.checked_add(fraction))
            .map(Self)
            .ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_notations_are_understood_as_meant() {
        let bytes = |text: &str| text.parse::<Bytes>().unwrap_err().to_string();
        for (text, meant) in [
            ("512MB", "512Mi"),
            ("0.5Gi", "512Mi"),
            ("512 mb", "512Mi"),
            ("1,5g", "1536Mi"),
            ("1,500m", "1500Mi"),
            ("1gig", "1Gi"),
            ("2 Gigabytes", "2Gi"),
            ("512megs", "512Mi"),
            ("512mebibytes", "512Mi"),
        ] {
            assert!(
                bytes(text).ends_with(&format!("did you mean {meant}?")),
                "{text}"
            );
        }
        let cpus = |text: &str| text.parse::<Cpus>().unwrap_err().to_string();
        for (text, meant) in [
            ("500M", "500m"),
            ("1,5", "1500m"),
            ("2 cpus", "2"),
            ("500milli", "500m"),
        ] {
            assert!(
                cpus(text).ends_with(&format!("did you mean {meant}?")),
                "{text}"
            );
        }
        for text in ["much", "half", "0.5", "1.5", "1,5"] {
            assert!(bytes(text).contains("whole number"), "{text}");
        }
        assert!(cpus("0.5m").contains("millicores"));
    }

    #[test]
    fn bytes_print_the_largest_exact_unit_and_parse_back() {
        for (bytes, text) in [
            (Bytes::from_mib(512), "512Mi"),
            (Bytes::from_gib(1), "1Gi"),
            (Bytes::from_kib(1536), "1536Ki"),
            (Bytes::from_bytes(1000), "1000"),
            (Bytes::from_bytes(0), "0"),
        ] {
            assert_eq!(bytes.to_string(), text);
            assert_eq!(text.parse(), Ok(bytes));
        }
        assert_eq!("300m".parse(), Ok(Bytes::from_mib(300)));
        assert_eq!(Bytes::from_mib(1536).to_jvm_size(), "1536m");
    }

    #[test]
    fn bytes_refuse_what_has_no_unit_meaning() {
        for text in ["", "Mi", "1.5Gi", "-1", "1 Mi x", "99999999Ti"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_print_and_parse_back() {
        for (cpus, text) in [
            (Cpus::from_whole(2), "2"),
            (Cpus::from_millis(1500), "1500m"),
            (Cpus::from_millis(250), "250m"),
        ] {
            assert_eq!(cpus.to_string(), text);
            assert_eq!(text.parse(), Ok(cpus));
        }
        assert_eq!("0.25".parse(), Ok(Cpus::from_millis(250)));
        assert_eq!(".5".parse(), Ok(Cpus::from_millis(500)));
        assert_eq!(Cpus::from_millis(1001).ceil(), 2);
    }

    #[test]
    fn cpus_refuse_what_is_no_amount() {
        for text in ["", ".", "1.2345", "-1", "1e3", "99999999999"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }
}
