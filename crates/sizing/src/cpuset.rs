//! A set of CPUs in the kernel's list form: `0-3,8`; the only reader and writer of that form.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::units::ParseUnitError;

/// Highest CPU number that is taken. Linux is built for at most 8192 CPUs (NR_CPUS_RANGE_END).
const MAX_CPU: u32 = 8191;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CpuSet(BTreeSet<u32>);

impl CpuSet {
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    pub fn cpu_count(&self) -> usize {
        self.0.len()
    }

    pub fn has_no_cpu(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<T: IntoIterator<Item = u32>>(cpus: T) -> Self {
        Self(cpus.into_iter().filter(|c| *c <= MAX_CPU).collect())
    }
}

impl FromStr for CpuSet {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseUnitError {
            text: text.chars().take(80).collect(),
            expected: "a list of CPUs, such as 0, 0-3 or 0,2-3 (CPUs 0 to 8191)",
        };
        let number = |s: &str| match s.trim().parse::<u32>() {
            Ok(n) if n <= MAX_CPU => Ok(n),
            _ => Err(error()),
        };
        let mut cpus = BTreeSet::new();
        if text.trim().is_empty() {
            return Ok(Self(cpus));
        }
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(error());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    /// Prints runs as ranges: `0-3,8`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_print_as_ranges_and_parse_back() {
        for (given, printed) in [
            ("0", "0"),
            ("0,1\n", "0-1"),
            ("0-3,8", "0-3,8"),
            ("3,1,2", "1-3"),
            ("", ""),
        ] {
            let set: CpuSet = given.parse().unwrap();
            assert_eq!(set.to_string(), printed);
            assert_eq!(printed.parse(), Ok(set));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["a", "1-", "-1", "3-1", "0,,1", "0-4294967295", "9999999999"] {
            assert!(text.parse::<CpuSet>().is_err(), "{text}");
        }
    }
}
