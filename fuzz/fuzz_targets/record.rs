//! Any text as an exported result: what is read is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_fuzz::deep::record(text);
});
