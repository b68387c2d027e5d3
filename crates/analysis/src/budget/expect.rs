//! What each part of the memory still grows by, with its reason.
//!
//! Owns the factors. Measured on a Spring Boot service (C1) and Zipkin (C1 and C2) with a fixed heap: after
//! a burst of 5,000 and 20,000 requests at full concurrency both held 5.5 to 7 MiB more than after 40
//! minutes of their usual load. Malloc and metaspace had stopped growing; threads stay.

use loadline_sizing::Bytes;

use super::{BudgetLine, MemoryPart};
use crate::record::{Evidence, MemoryParts, SecondEvidence, TrialPhase};

/// Requests of a burst after which nothing grows but by chance: compilers C1 and C2.
const BURST: u64 = 20_000;
/// Fewer requests than this show no end of the growth.
const FEWEST_REQUESTS: u64 = 2_000;
/// Growth from the first requests to the end of such a burst, as shares.
const CODE_GROWTH: f64 = 0.6;
const MALLOC_GROWTH: f64 = 0.25;
/// Classes that no request needed yet.
const METASPACE_GROWTH: f64 = 0.05;
/// Growth that no measurement excludes, of code and the JVM.
const CHANCE: f64 = 0.02;
/// Memory stood still where it rose by less than this many thousandths in its last samples, one a second:
/// the 5 s for which a trial waits hold at least four.
const STILL_SHARE: u64 = 3;
const STILL_SAMPLES: usize = 4;
/// How far malloc differs between aged starts, as a share: nine of Tika held 282 to 300 MiB. Where compilers
/// make it differ more, the bursts of fresh starts show it.
const MALLOC_DIFFERS: f64 = 0.08;
/// Sockets and page tables.
const KERNEL_GROWTH: f64 = 0.05;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    code: f64,
    malloc: f64,
    reason: String,
    malloc_reason: String,
}

impl Expectation {
    /// Behind so few requests that only what other services did afterwards is known.
    pub fn after_start(requests: u64) -> Self {
        let left = 1.0 - requests.min(BURST) as f64 / BURST as f64;
        let reason = format!("seen after {requests} of {BURST} requests");
        Self {
            code: (left * CODE_GROWTH).max(CHANCE),
            malloc: (left * MALLOC_GROWTH).max(CHANCE),
            malloc_reason: reason.clone(),
            reason,
        }
    }

    /// Behind an ageing burst.
    pub fn after_burst(evidence: &Evidence, aged: &MemoryParts) -> Self {
        let mut expected = Self::after_seconds(evidence, aged);
        let fresh = evidence.memory.as_ref();
        if let Some(fresh) = fresh.filter(|fresh| fresh.requests < aged.requests) {
            // Of twelve services code grew in an hour by 0 to 1.4 times what the burst had added, which
            // is 1 MiB more at most (records/endurance).
            let added = aged.code_cache.saturating_sub(fresh.code_cache);
            let share = added.as_bytes() as f64 / aged.code_cache.as_bytes().max(1) as f64;
            expected.code = share.max(CHANCE);
            expected.reason = format!("the burst added {:.1} MiB", added.as_mib());
        }
        expected
    }

    /// Little where memory stood still at the end of the burst, else as much again as anonymous memory rose
    /// in its second half, twice that where it was short.
    fn after_seconds(evidence: &Evidence, aged: &MemoryParts) -> Self {
        let seconds = aged_seconds(evidence, aged);
        let anon: Vec<Bytes> = seconds.filter_map(|second| second.anon).collect();
        let ([_, _, .., last], true) = (anon.as_slice(), aged.requests >= FEWEST_REQUESTS) else {
            return Self::after_start(aged.requests);
        };
        let requests = aged.requests;
        let half = anon.len().saturating_sub(1) / 2;
        // A peak that has passed is no trend; [`passing_growth`] has it.
        let risen = last.saturating_sub(anon[half]);
        let (late, reason) = if stands_still(&anon) {
            (
                Bytes::default(),
                format!("memory stood still after {requests} requests"),
            )
        } else {
            (
                risen,
                format!(
                    "anonymous memory rose by {:.1} MiB in the second half of {requests} requests",
                    risen.as_mib()
                ),
            )
        };
        let growing = aged.code_cache.saturating_add(aged.malloc);
        let again = if requests < BURST { 2.0 } else { 1.0 };
        let share = again * late.as_bytes() as f64 / growing.as_bytes().max(1) as f64;
        Self {
            code: share.clamp(CHANCE, CODE_GROWTH),
            malloc: share.clamp(MALLOC_DIFFERS, MALLOC_GROWTH),
            malloc_reason: if share > MALLOC_DIFFERS {
                reason.clone()
            } else {
                "starts differ".to_owned()
            },
            reason,
        }
    }
}

fn stands_still(anon: &[Bytes]) -> bool {
    let end = &anon[anon.len().saturating_sub(STILL_SAMPLES)..];
    let ends = end.iter().min().zip(end.iter().max());
    let is_within = |low: &Bytes, high: &Bytes| *high <= low.mul_ratio(1000 + STILL_SHARE, 1000);
    end.len() == STILL_SAMPLES && ends.is_some_and(|(low, high)| is_within(low, high))
}

/// How much more anonymous memory was held for a while under the judged load behind the burst, when
/// compilers had the CPU again.
pub(super) fn passing_growth(evidence: &Evidence, aged: &MemoryParts) -> Bytes {
    let burst = evidence.span_of(TrialPhase::Age);
    let end = burst.map_or(u64::MAX, |age| age.end);
    let behind = aged_seconds(evidence, aged).filter(|second| second.at_ns > end);
    let anon: Vec<Bytes> = behind.filter_map(|second| second.anon).collect();
    let most = anon.iter().max().copied().unwrap_or_default();
    most.saturating_sub(anon.last().copied().unwrap_or_default())
}

pub(super) fn aged_seconds<'a>(
    evidence: &'a Evidence,
    aged: &MemoryParts,
) -> impl Iterator<Item = &'a SecondEvidence> {
    let age = evidence.span_of(TrialPhase::Age);
    let until = age.map_or(0, |age| age.end.max(aged.at_ns));
    let seconds = evidence.seconds.iter();
    seconds.filter(move |s| age.is_some_and(|age| age.start < s.at_ns) && s.at_ns <= until)
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
    use MemoryPart::{CodeCache, Jvm, Kernel, Malloc, Metaspace, Stacks};
    let (why_code, why_malloc) = (&expected.reason, &expected.malloc_reason);
    let mut code = line(CodeCache, parts.code_cache, expected.code, why_code);
    let most = code.need().mul_ratio(2, 1);
    let most = most.max(Bytes::from_mib(32)).round_up(Bytes::from_mib(8));
    code.cap = (parts.code_cache > Bytes::default())
        .then(|| format!("-XX:ReservedCodeCacheSize={}", most.to_jvm_size()));
    let malloc = line(Malloc, parts.malloc, expected.malloc, why_malloc);
    let unused = "classes that no request needed yet";
    let tables = "sockets and page tables";
    vec![
        line(Metaspace, parts.metaspace, METASPACE_GROWTH, unused),
        code,
        line(Stacks, parts.stacks, 0.0, ""),
        malloc,
        line(Jvm, jvm, CHANCE, "starts differ"),
        line(Kernel, parts.kernel, KERNEL_GROWTH, tables),
    ]
}
