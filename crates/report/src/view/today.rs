//! The size that ships today, as its owner tells it.

use std::str::FromStr;

use loadline_sizing::{Bytes, Cpus};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CurrentLimits {
    pub cpu: Option<Cpus>,
    pub memory: Bytes,
}

impl FromStr for CurrentLimits {
    type Err = String;

    /// `2/4Gi`, or `4Gi` alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let (cpu, memory) = match text.split_once('/') {
            Some((cpu, memory)) => (Some(cpu), memory),
            None => (None, text),
        };
        let cpu: Option<Cpus> = cpu
            .map(|cpu| cpu.parse().map_err(limits_error))
            .transpose()?;
        let memory: Bytes = memory.parse().map_err(limits_error)?;
        match memory < Bytes::from_mib(1) || cpu.is_some_and(|cpu| cpu.as_millis() == 0) {
            true => Err(limits_error("it is less than 1 MiB of memory, or no CPU")),
            false => Ok(Self { cpu, memory }),
        }
    }
}

fn limits_error(why: impl std::fmt::Display) -> String {
    format!("{why}; write CPUs and memory, 2/4Gi, or memory alone, 4Gi")
}
