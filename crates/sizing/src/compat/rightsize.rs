//! Argus `rightsize`: heap, limit and CPU from what a running JVM was seen to do.
//!
//! Source: behaviour of rlaope/Argus (pull request 255, 2026-05): heap 1.5 times what lives after
//! collections, initial heap the same; limit 1.25 times heap, metaspace, direct buffers, code cache
//! and 1 MiB a thread; half a CPU, half more above 256 MiB/s of allocation, a quarter more above 64
//! MiB/s of promotion; nothing below 60 s or two collections.

use std::fmt;
use std::time::Duration;

use super::LauncherOutput;
use crate::{Bytes, Cpus};

const STACK: Bytes = Bytes::from_mib(1);

const SHORTEST: Duration = Duration::from_secs(60);

const COLLECTIONS: u64 = 2;

/// Rates above which it gives more CPU, bytes a second.
const ALLOCATION: f64 = 256.0 * 1_048_576.0;
const PROMOTION: f64 = 64.0 * 1_048_576.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RightsizeInput {
    pub live: Bytes,
    pub metaspace: Bytes,
    pub direct: Bytes,
    pub code_cache: Bytes,
    pub threads: u64,
    /// Bytes allocated a second.
    pub allocation: f64,
    /// Of them, bytes that came into the old generation a second.
    pub promotion: f64,
    pub observed: Duration,
    pub collections: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RightsizeAdvice {
    pub calculated: LauncherOutput,
    pub memory: Bytes,
    pub cpu: Cpus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLittle {
    Time(Duration),
    Collections(u64),
}

impl fmt::Display for TooLittle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(seen) => write!(
                f,
                "it was watched for {:.0} s, and the rule wants 60 s",
                seen.as_secs_f64()
            ),
            Self::Collections(seen) => {
                write!(f, "{seen} collections were seen, and the rule wants 2")
            }
        }
    }
}

pub fn calculate(input: &RightsizeInput) -> Result<RightsizeAdvice, TooLittle> {
    if input.observed < SHORTEST {
        return Err(TooLittle::Time(input.observed));
    }
    if input.collections < COLLECTIONS {
        return Err(TooLittle::Collections(input.collections));
    }
    let mib = |bytes: f64| Bytes::from_mib((bytes / 1_048_576.0).ceil() as u64);
    let heap = mib(1.5 * input.live.as_bytes() as f64);
    let stacks = STACK.as_bytes().saturating_mul(input.threads);
    let parts = [heap, input.metaspace, input.direct, input.code_cache];
    let all = parts
        .into_iter()
        .fold(stacks, |sum, part| sum.saturating_add(part.as_bytes()));
    let more = |rate: f64, bound: f64, millis: u32| if rate > bound { millis } else { 0 };
    let cpu = 500 + more(input.allocation, ALLOCATION, 500) + more(input.promotion, PROMOTION, 250);
    Ok(RightsizeAdvice {
        calculated: LauncherOutput {
            options: vec![
                format!("-Xms{}", heap.to_jvm_size()),
                format!("-Xmx{}", heap.to_jvm_size()),
            ],
            leaves_out: "what the collector and the compilers need themselves, malloc, mapped files",
        },
        memory: mib(1.25 * all as f64),
        cpu: Cpus::from_millis(cpu),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: RightsizeInput = RightsizeInput {
        live: Bytes::from_mib(83),
        metaspace: Bytes::from_mib(10),
        direct: Bytes::from_mib(1),
        code_cache: Bytes::from_mib(4),
        threads: 6,
        allocation: 1e6,
        promotion: 0.0,
        observed: Duration::from_secs(60),
        collections: 2,
    };

    /// The example of its pull request: 83 MiB live give -Xmx125m, parts of 146 MiB a limit of 183.
    #[test]
    fn the_example_of_its_authors() {
        let answer = calculate(&SEEN).expect("enough was seen");
        assert_eq!(answer.calculated.options, ["-Xms125m", "-Xmx125m"]);
        assert_eq!(answer.memory, Bytes::from_mib(183));
        assert_eq!(answer.cpu, Cpus::from_millis(500));
    }

    #[test]
    fn fast_allocation_gets_more_cpu() {
        let of = |allocation: f64, promotion: f64| {
            let seen = RightsizeInput {
                allocation: allocation * 1_048_576.0,
                promotion: promotion * 1_048_576.0,
                ..SEEN
            };
            calculate(&seen).expect("enough was seen").cpu.as_millis()
        };
        assert_eq!((of(256.0, 64.0), of(257.0, 0.0)), (500, 1000));
        assert_eq!((of(0.0, 65.0), of(300.0, 65.0)), (750, 1250));
    }

    #[test]
    fn it_refuses_what_it_saw_too_little_of() {
        let short = RightsizeInput {
            observed: Duration::from_secs(59),
            ..SEEN
        };
        assert!(
            calculate(&short)
                .unwrap_err()
                .to_string()
                .contains("wants 60 s")
        );
        let one = RightsizeInput {
            collections: 1,
            ..SEEN
        };
        assert!(calculate(&one).unwrap_err().to_string().contains("wants 2"));
    }
}
