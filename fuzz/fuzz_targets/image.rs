//! Any text as what an engine says of an image, and as the name of one.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_trial::oci::image::parse_anything(text);
});
