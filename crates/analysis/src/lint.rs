//! Problems in a container's settings, found before anything runs.
//!
//! Owns the order of the findings; each module has the rules of one subject. Pure: the caller reads the
//! manifest and passes measured figures if it has a result.

mod amounts;
mod build;
mod container;
mod options;
mod pod;
#[cfg(test)]
mod tests;

use std::time::Duration;

use loadline_sizing::Bytes;

pub use amounts::over_commitment;
pub use build::{BuildJvm, check_build};
pub use container::{
    CalculatorSettings, ContainerNeeds, ContainerProbe, ContainerResources, ImageHeap,
    LintedContainer, MemoryVolume, PodNeeds,
};
pub use options::check_refused_options;
pub use pod::qos_class;

use amounts::{
    check_amounts, check_calculator, check_memory_limit, check_order, check_quantities,
    check_request, check_volumes,
};
use options::{
    check_container_support, check_gc_threads, check_shares, check_small_heap, check_unseen,
    heap_options,
};
use pod::{check_probes, check_qos};

/// The annotation of a workload with what its JVM needs outside the heap, as it was measured.
pub const OUTSIDE_HEAP: &str = "loadline/outside-heap";

/// The annotation of a workload with the JVM options in the command of its image.
pub const IMAGE_OPTIONS: &str = "loadline/image-options";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    pub severity: Severity,
    pub problem: String,
    pub hint: String,
}

fn finding(severity: Severity, problem: String, hint: &str) -> LintFinding {
    LintFinding {
        severity,
        problem,
        hint: hint.to_owned(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeasuredNeeds {
    pub start: Option<Duration>,
    pub memory: Option<Bytes>,
    pub rest: Option<Bytes>,
}

pub fn lint(container: &LintedContainer, measured: MeasuredNeeds) -> Vec<LintFinding> {
    let mut findings: Vec<LintFinding> = [
        check_memory_limit(container),
        over_commitment(container, measured),
        check_calculator(container),
        heap_options(container),
        check_refused_options(container),
        check_small_heap(container),
        check_container_support(container),
        check_request(container, measured),
        check_gc_threads(container),
        check_qos(container),
        check_unseen(container),
    ]
    .into_iter()
    .flatten()
    .chain(container.malformed.iter().cloned())
    .chain(check_quantities(container))
    .chain(check_volumes(container))
    .chain(check_amounts(container))
    .chain(check_shares(container))
    .chain(check_order(container))
    .chain(check_probes(container, measured))
    .collect();
    findings.sort_by_key(|finding| finding.severity);
    findings
}
