//! Any text as an experiment file: an experiment, or an error that names the file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_fuzz::deep::experiment(text);
});
