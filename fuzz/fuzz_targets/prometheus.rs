//! Any bytes as an answer of a Prometheus: its series, or what is said of it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| {
    loadline_fuzz::limited();
    loadline_fleet::parse_anything(answer);
});
