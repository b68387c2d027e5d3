//! The code cache and its segments.
//!
//! Source: compilerDefinitions.cpp (sizes), codeCache.cpp, `CodeCache::initialize_heaps`
//! (segments). Buffer sizes per compiler are solved from the recorded grid.

use super::machine::PAGE;
use super::{HotSpotJit, HotSpotRefusal};
use crate::Bytes;
use crate::jdk::JdkRelease;
use crate::options::JvmOptionSet;

const TIERED: Bytes = Bytes::from_mib(240);
const SINGLE: Bytes = Bytes::from_mib(48);
const CLIENT: Bytes = Bytes::from_mib(32);
const INITIAL: Bytes = Bytes::from_kib(2496);
const CLIENT_INITIAL: Bytes = Bytes::from_kib(160);
/// `NonNMethodCodeHeapSize` before compiler buffers.
const NON_NMETHOD: Bytes = Bytes::from_mib(5);
/// Buffer of one C1 thread; solved from NonNMethodCodeHeapSize at N = 1, 7 and 128.
const C1_BUFFER: u64 = 576_716;
const C2_BUFFER: u64 = 6_592;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeCache {
    pub reserved: Bytes,
    pub initial: Bytes,
    pub is_segmented: bool,
    pub non_nmethod: Bytes,
    pub profiled: Bytes,
    pub non_profiled: Bytes,
}

pub fn size_code_cache(
    jdk: JdkRelease,
    compilers: &HotSpotJit,
    options: &JvmOptionSet,
) -> Result<CodeCache, HotSpotRefusal> {
    let set = options.size_value("ReservedCodeCacheSize");
    let initial = if compilers.is_client {
        CLIENT_INITIAL
    } else {
        INITIAL
    };
    let default = match compilers {
        compilers if compilers.is_client => CLIENT,
        compilers if compilers.has_both_compilers() => TIERED,
        _ => SINGLE,
    };
    let reserved = set.unwrap_or(default);
    let least = options
        .size_value("InitialCodeCacheSize")
        .unwrap_or(INITIAL);
    if reserved < least && (set.is_some() || least > INITIAL) {
        let size = reserved;
        return Err(HotSpotRefusal::CodeCacheTooSmall { size, least });
    }
    let by_size = compilers.has_both_compilers() && reserved >= TIERED;
    let is_segmented = jdk.at_least(9)
        && options
            .switch_value("SegmentedCodeCache")
            .unwrap_or(by_size);
    if !is_segmented {
        return Ok(CodeCache {
            reserved,
            initial,
            is_segmented,
            non_nmethod: if jdk.at_least(22) { PAGE } else { NON_NMETHOD },
            profiled: Bytes::default(),
            non_profiled: Bytes::default(),
        });
    }
    Ok(segments(jdk, reserved, set.is_some(), compilers))
}

/// Segments: buffers for the compilers, and half of the rest each. Since 22 (JDK-8311248) each is
/// rounded up to pages and a size that was not set follows their sum.
fn segments(jdk: JdkRelease, reserved: Bytes, is_set: bool, compilers: &HotSpotJit) -> CodeCache {
    let buffers = u64::from(compilers.c1) * C1_BUFFER + u64::from(compilers.c2) * C2_BUFFER;
    let non_nmethod = NON_NMETHOD.saturating_add(Bytes::from_bytes(buffers));
    let rest = reserved.saturating_sub(non_nmethod);
    let profiled = Bytes::from_bytes(rest.as_bytes() / 2);
    if !jdk.at_least(22) {
        return CodeCache {
            reserved,
            initial: INITIAL,
            is_segmented: true,
            non_nmethod,
            profiled,
            non_profiled: rest.saturating_sub(profiled),
        };
    }
    let non_nmethod = non_nmethod.round_up(PAGE);
    let profiled = profiled.round_up(PAGE);
    let sum = non_nmethod
        .saturating_add(profiled)
        .saturating_add(profiled);
    let reserved = if is_set { reserved.round_up(PAGE) } else { sum };
    CodeCache {
        reserved,
        initial: INITIAL,
        is_segmented: true,
        non_nmethod,
        profiled,
        // What rounding added above a size that was set is taken from here.
        non_profiled: profiled.saturating_sub(sum.saturating_sub(reserved)),
    }
}
