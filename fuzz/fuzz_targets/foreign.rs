//! Any bytes as a file that stands in the place of another, and as a framed line of a log.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use loadline_files::{FileKind, unframe_line};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let path = Path::new("fuzz");
    if let Some(kind) = FileKind::of_bytes(path, data) {
        assert!(!kind.name.is_empty() && !kind.next_step(path).contains("FILE "));
    }
    assert!(unframe_line(data).len() <= data.len());
});
