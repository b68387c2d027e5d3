//! OpenJ9's own default heap in a container.
//!
//! The rule is [`crate::openj9::default_max`].

use super::LauncherOutput;
use crate::Bytes;
use crate::openj9::default_max;

pub fn calculate_max_heap(limit: Bytes) -> LauncherOutput {
    let heap = default_max(limit);
    let text = match heap.as_bytes() {
        b if b % (1 << 30) == 0 => format!("{}G", b >> 30),
        b => format!("{}M", b >> 20),
    };
    LauncherOutput {
        options: vec![format!("-Xmx{text}")],
        leaves_out: "every native region",
    }
}
