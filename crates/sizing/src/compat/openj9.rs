//! OpenJ9's own default heap in a container.
//!
//! Source: OpenJ9 documentation, `-XX:+UseContainerSupport`; not measured here.

use super::Calculated;
use crate::Bytes;

/// The largest heap OpenJ9 takes by itself: half below 1 GiB, all but 512 MiB up to 2 GiB, then
/// three quarters, at most 25 GiB.
pub fn max_heap(limit: Bytes) -> Bytes {
    let heap = if limit < Bytes::from_gib(1) {
        limit.mul_ratio(1, 2)
    } else if limit <= Bytes::from_gib(2) {
        limit.saturating_sub(Bytes::from_mib(512))
    } else {
        limit.mul_ratio(3, 4)
    };
    heap.min(Bytes::from_gib(25))
}

/// The same as an answer.
pub fn calculate(limit: Bytes) -> Calculated {
    let heap = max_heap(limit);
    let text = match heap.as_bytes() {
        b if b % (1 << 30) == 0 => format!("{}G", b >> 30),
        b => format!("{}M", b >> 20),
    };
    Calculated {
        options: vec![format!("-Xmx{text}")],
        leaves_out: "every native region",
    }
}
