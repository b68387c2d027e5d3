//! Any bytes as an access log in any format: no panic, every line counted once, however it is
//! cut by the reader; and any text as a format.

#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use loadline_load::profile::{Builder, NAMES, Source, detect, named};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let _ = detect(data, Source::Unsaid);
    // One format an input: each needs MiB for its clients, and all of them made 12 inputs a second where
    // one makes 200.
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let (first, rest) = data.split_at(data.len().min(60));
    let text = String::from_utf8_lossy(first);
    let (name, data) = match NAMES.get(usize::from(*choice) % (NAMES.len() + 1)) {
        Some(name) => (*name, data),
        None => (&*text, rest),
    };
    let Ok(format) = named(name, Source::Tomcat9) else {
        return;
    };
    let lines = data.split(|b| *b == b'\n').count() as u64;
    let mut builder = Builder::new(format, 3600.0, true);
    let read = builder.read(BufReader::with_capacity(7, data));
    assert!(read.is_ok());
    let profile = builder.finish("fuzz");
    if let Some(seen) = profile.observed {
        assert!(seen.requests + seen.rejected_lines <= lines);
    }
});
