//! What every fuzz target shares: a limit on memory. A parser that needs more for a small input than
//! this is as wrong as one that panics.

pub mod deep;

use std::alloc::System;

use cap::Cap;

/// No input makes a parser hold more than this.
const MOST: usize = 64 << 20;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, MOST);

/// Fails where the limit is not in force: a target that does not call this would not be linked with
/// it.
pub fn limited() {
    assert_eq!(MEMORY.limit(), MOST);
}
