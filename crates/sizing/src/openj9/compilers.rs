//! OpenJ9's code cache and compiler threads.
//!
//! Source: openj9 cf92035774, `J9Options.cpp` (preProcessCodeCacheIncreaseTotalSize), `rossa.cpp`
//! (each thread needs a segment); and the recorded rows of `tests/data/openj9-compilers.csv`. An
//! explicit code cache above the container's memory is not predicted: OpenJ9 then allocates segment
//! by segment.

use super::options::OpenJ9Settings;
use crate::Bytes;

/// Threads that compile at most without an option, whatever the processors: OpenJ9 starts one and
/// wakes the others as it needs them.
const THREADS: u32 = 7;
/// The code cache without an option, and one of its segments.
const MOST: Bytes = Bytes::from_mib(256);
const SEGMENT: Bytes = Bytes::from_mib(2);
/// Share of memory that it takes if that is less.
const PERCENT: f64 = 25.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenJ9Jit {
    pub threads: u32,
    pub code_cache: Bytes,
}

pub(super) fn size_jit(memory: Bytes, asked: &OpenJ9Settings) -> OpenJ9Jit {
    if asked.is_interpreted {
        return OpenJ9Jit {
            threads: 0,
            code_cache: Bytes::from_bytes(0),
        };
    }
    let segment = asked.code_segment.unwrap_or(SEGMENT).max(SEGMENT);
    let share = memory.percent_share(asked.code_percent.unwrap_or(PERCENT));
    let total = asked.code_total.unwrap_or(share.min(MOST));
    let code_cache = total.max(SEGMENT).round_down(segment);
    let segments = code_cache.as_bytes() / segment.as_bytes();
    let most = u32::try_from(segments).unwrap_or(u32::MAX);
    OpenJ9Jit {
        threads: asked.compiler_threads.unwrap_or(THREADS).min(most),
        code_cache,
    }
}
