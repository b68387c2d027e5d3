//! Any bytes as a jar: an answer or an error, no panic, no more memory than its bounds.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use loadline_jvm::cache::jar::Jar;

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let _ = Jar::from_jar_file(&mut Cursor::new(data));
});
