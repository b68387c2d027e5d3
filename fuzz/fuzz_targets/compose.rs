//! Any text as a compose file: its services in loadline's terms, or what of them is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_experiment::compose::parse_anything(text);
});
