//! The binary. A C `main`, because Rust's own start-up changes the signal state (SIGPIPE) that java
//! must inherit unchanged.
#![no_main]

use loadline_launch::sys::{CommandWords, InheritedSignals};

/// Called by the C library's start-up.
// SAFETY: no other function of this program is called `main`.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn main(_count: libc::c_int, words: CommandWords) -> libc::c_int {
    let inherited = InheritedSignals::save_signals();
    loadline_launch::run(words.read(), &inherited)
}
