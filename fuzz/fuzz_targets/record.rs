//! Any text as an exported result: what is read is written and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    if let Ok(view) = loadline_report::read(text) {
        let again = loadline_report::read(&loadline_report::render_json(&view));
        assert!(again.is_ok(), "{:?}", again.err());
    }
});
