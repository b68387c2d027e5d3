//! Any bytes as the event log of a trial, and as a piece of samples: an end or an error, no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    loadline_fuzz::limited();
    loadline_fuzz::deep::event_log(bytes);
});
