//! The CPUs that the instances of a trial may run on.
//!
//! Owns their text form, `0-1` or `0;1`, which experiments and records have; it is parsed here and
//! nowhere else.

use std::fmt;
use std::str::FromStr;

use loadline_sizing::{CpuSet, ParseUnitError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One set of CPUs for all instances, or one for each; never without a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuSets(Vec<CpuSet>);

impl CpuSets {
    pub fn shared_by_all(cpus: CpuSet) -> Option<Self> {
        (!cpus.has_no_cpu()).then(|| Self(vec![cpus]))
    }

    pub fn set_count(&self) -> usize {
        self.0.len()
    }

    pub fn of_instance(&self, index: u32) -> Self {
        Self(vec![self.0[index as usize % self.0.len()].clone()])
    }

    pub fn all_cpus(&self) -> CpuSet {
        self.0.iter().flat_map(CpuSet::iter).collect()
    }
}

impl FromStr for CpuSets {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let sets: Result<Vec<CpuSet>, _> = text.split(';').map(str::parse).collect();
        match sets? {
            sets if sets.iter().any(CpuSet::has_no_cpu) => Err(ParseUnitError {
                text: text.chars().take(80).collect(),
                expected: "a list of CPUs, or one an instance with `;` between, such as 0-1;2-3",
            }),
            sets => Ok(Self(sets)),
        }
    }
}

impl TryFrom<String> for CpuSets {
    type Error = ParseUnitError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CpuSets> for String {
    fn from(sets: CpuSets) -> Self {
        sets.to_string()
    }
}

impl fmt::Display for CpuSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sets: Vec<String> = self.0.iter().map(CpuSet::to_string).collect();
        f.pad(&sets.join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instance_has_its_set_or_that_of_all() {
        let sets: CpuSets = "0-1;2,3".parse().unwrap();
        assert_eq!(
            (sets.set_count(), sets.to_string()),
            (2, "0-1;2-3".to_owned())
        );
        assert_eq!(sets.of_instance(1).to_string(), "2-3");
        assert_eq!(sets.all_cpus().to_string(), "0-3");
        let shared: CpuSets = "0".parse().unwrap();
        assert_eq!(shared.of_instance(7), shared);
        for text in ["", ";", "0;", "a", "0;3-1"] {
            assert!(text.parse::<CpuSets>().is_err(), "{text}");
        }
    }

    #[test]
    fn records_have_the_text() {
        let sets: CpuSets = serde_json::from_str("\"0;1\"").unwrap();
        assert_eq!(sets.set_count(), 2);
        assert_eq!(serde_json::to_string(&sets).unwrap(), "\"0;1\"");
    }
}
