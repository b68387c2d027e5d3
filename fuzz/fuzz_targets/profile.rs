//! Any text as a load profile: what is read and checked is written and read again as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_fuzz::deep::profile(text);
});
