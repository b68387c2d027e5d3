//! What each part of the memory still grows by, with its reason.
//!
//! Owns the factors. Measured on a Spring Boot service (C1) and Zipkin (C1 and C2) with a fixed heap: after
//! a burst of 5,000 and 20,000 requests at full concurrency both held 5.5 to 7 MiB more than after 40
//! minutes of their usual load. Code, malloc and metaspace had stopped growing; threads stay.

use loadline_sizing::Bytes;

use super::{BudgetLine, MemoryPart};
use crate::record::{Evidence, MemoryParts, TrialPhase};

/// Requests of a burst after which nothing grows but by chance: compilers C1 and C2.
const BURST: u64 = 20_000;
/// Fewer requests than this show no end of the growth.
const FEWEST_REQUESTS: u64 = 2_000;
/// Growth from the first requests to the end of such a burst, as shares.
const CODE_GROWTH: f64 = 0.6;
const MALLOC_GROWTH: f64 = 0.25;
/// Classes that no request needed yet.
const METASPACE_GROWTH: f64 = 0.05;
/// What nothing that was measured excludes, of code, malloc and the JVM.
const CHANCE: f64 = 0.02;
/// Sockets and page tables.
const KERNEL_GROWTH: f64 = 0.05;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    code: f64,
    malloc: f64,
    reason: String,
}

impl Expectation {
    /// Behind so few requests that only what other services did afterwards is known.
    pub fn after_start(requests: u64) -> Self {
        let left = 1.0 - requests.min(BURST) as f64 / BURST as f64;
        Self {
            code: (left * CODE_GROWTH).max(CHANCE),
            malloc: (left * MALLOC_GROWTH).max(CHANCE),
            reason: format!("seen after {requests} of {BURST} requests"),
        }
    }

    /// Behind an ageing burst: as much again as anonymous memory rose in its second half, twice that
    /// where the burst was short.
    pub fn after_burst(evidence: &Evidence, aged: &MemoryParts) -> Self {
        let growing = aged
            .code_cache
            .saturating_add(aged.malloc)
            .as_bytes()
            .max(1) as f64;
        let Some(rise) = late_rise(evidence).filter(|_| aged.requests >= FEWEST_REQUESTS) else {
            return Self::after_start(aged.requests);
        };
        let again = if aged.requests < BURST { 2.0 } else { 1.0 };
        let share = (again * rise.as_bytes() as f64 / growing).max(CHANCE);
        let most = Self::after_start(0);
        Self {
            code: share.min(most.code),
            malloc: share.min(most.malloc),
            reason: format!(
                "anonymous memory rose by {:.1} MiB in the second half of {} requests",
                rise.as_mib(),
                aged.requests
            ),
        }
    }
}

fn late_rise(evidence: &Evidence) -> Option<Bytes> {
    let age = evidence
        .phases
        .iter()
        .find(|span| span.phase == TrialPhase::Age)?;
    let seconds = evidence
        .seconds
        .iter()
        .filter(|s| age.start < s.at_ns && s.at_ns <= age.end);
    let anon: Vec<Bytes> = seconds.filter_map(|second| second.anon).collect();
    let half = *anon.get(anon.len().checked_sub(1)? / 2)?;
    let last = anon.iter().skip(anon.len() / 2).max()?;
    (anon.len() >= 3).then(|| last.saturating_sub(half))
}

pub(super) fn expected_lines(parts: &MemoryParts, expected: &Expectation) -> Vec<BudgetLine> {
    let line = |part, measured: Bytes, share: f64, reason: &str| BudgetLine {
        part,
        measured,
        growth: Bytes::from_bytes((measured.as_bytes() as f64 * share).ceil() as u64),
        reason: reason.to_owned(),
        cap: None,
    };
    let jvm = parts.private_files.saturating_add(parts.other);
    let mut code = line(
        MemoryPart::CodeCache,
        parts.code_cache,
        expected.code,
        &expected.reason,
    );
    let most = code.measured.saturating_add(code.growth).mul_ratio(2, 1);
    let most = most.max(Bytes::from_mib(32)).round_up(Bytes::from_mib(8));
    code.cap = (parts.code_cache > Bytes::default())
        .then(|| format!("-XX:ReservedCodeCacheSize={}", most.to_jvm_size()));
    let mut malloc = line(
        MemoryPart::Malloc,
        parts.malloc,
        expected.malloc,
        &expected.reason,
    );
    malloc.cap = Some("MALLOC_ARENA_MAX=2".to_owned());
    vec![
        line(
            MemoryPart::Metaspace,
            parts.metaspace,
            METASPACE_GROWTH,
            "classes that no request needed yet",
        ),
        code,
        line(MemoryPart::Stacks, parts.stacks, 0.0, ""),
        malloc,
        line(MemoryPart::Jvm, jvm, CHANCE, "starts differ"),
        line(
            MemoryPart::Kernel,
            parts.kernel,
            KERNEL_GROWTH,
            "sockets and page tables",
        ),
    ]
}
