//! The memory budget of an answer: every part with its measured size and its expected growth.
//!
//! Owns the sum and the check that it fits the limit: a [`Budget`] cannot hold parts that exceed
//! its limit. Sizes are bytes. Never reads a machine. [`heap`] chooses the heap, [`expect`] the
//! growth, [`answer`] the limit.

mod answer;
mod bursts;
mod expect;
mod heap;
mod soaked;
#[cfg(test)]
mod tests;
mod trend;

use std::fmt;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

pub use answer::{
    MemoryWall, answer_budget, budget_at, limit_after_squeeze, room_need, start_room, study_limit,
};
pub use bursts::BurstMemory;
pub use heap::{
    DIRECT_MEMORY, HeapPolicy, allowed_heap, choose_heap, heap_options, live_set, named_heap,
    need_beside_heap, resize_heap, without_pretouch,
};
pub use soaked::{PROVING_SOAK, SoakOutcome};
pub use trend::{LiveSetTrend, live_set_trend};

/// A part of an application's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryPart {
    /// The Java heap, as large as it may become.
    Heap,
    /// Metaspace and class space.
    Metaspace,
    /// Compiled code.
    CodeCache,
    /// Thread stacks.
    Stacks,
    /// malloc, direct buffers among it.
    Malloc,
    /// The collector's tables, the JVM's own and relocated libraries.
    Jvm,
    /// Kernel memory: stacks, sockets, page tables.
    Kernel,
    /// Pages of files that must stay for the application to work: libraries, class archive, jar.
    Files,
}

impl fmt::Display for MemoryPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Heap => "heap",
            Self::Metaspace => "metaspace",
            Self::CodeCache => "code cache",
            Self::Stacks => "thread stacks",
            Self::Malloc => "malloc",
            Self::Jvm => "GC and JVM",
            Self::Kernel => "kernel",
            Self::Files => "file pages in use",
        })
    }
}

/// One line of a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLine {
    /// Which part.
    pub part: MemoryPart,
    /// What it took in the aged start.
    #[serde(rename = "measured_bytes", with = "wire::bytes")]
    pub measured: Bytes,
    /// What it may still grow by.
    #[serde(rename = "growth_bytes", with = "wire::bytes")]
    pub growth: Bytes,
    /// Why that much; empty where nothing is expected.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The option that caps it where a cap does no harm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<String>,
}

impl BudgetLine {
    /// Measured and expected.
    pub fn need(&self) -> Bytes {
        self.measured.saturating_add(self.growth)
    }
}

fn need_of(lines: &[BudgetLine]) -> Bytes {
    let all = lines.iter().map(BudgetLine::need);
    all.fold(Bytes::default(), Bytes::saturating_add)
}

/// A limit and the parts that fill it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    lines: Vec<BudgetLine>,
    /// The memory limit.
    #[serde(rename = "limit_bytes", with = "wire::bytes")]
    limit: Bytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parts add up to {need}, more than the limit of {limit}")]
pub struct OverCommitted {
    pub need: Bytes,
    pub limit: Bytes,
}

impl Budget {
    /// The budget of a limit.
    /// Errors: [`OverCommitted`] where the parts exceed it.
    pub fn new(lines: Vec<BudgetLine>, limit: Bytes) -> Result<Self, OverCommitted> {
        let budget = Self { lines, limit };
        let need = budget.total_need();
        if need <= limit {
            Ok(budget)
        } else {
            Err(OverCommitted { need, limit })
        }
    }

    /// The lines, largest kinds first as they are declared.
    pub fn lines(&self) -> &[BudgetLine] {
        &self.lines
    }

    pub fn limit(&self) -> Bytes {
        self.limit
    }

    pub fn total_need(&self) -> Bytes {
        need_of(&self.lines)
    }

    /// The heap at its largest; zero without a heap.
    pub fn heap_need(&self) -> Bytes {
        let heap = self.lines.iter().find(|l| l.part == MemoryPart::Heap);
        heap.map_or(Bytes::from_bytes(0), BudgetLine::need)
    }

    pub fn rest_need(&self) -> Bytes {
        self.total_need().saturating_sub(self.heap_need())
    }
}
