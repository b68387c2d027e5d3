//! Any bytes as an access log in every format: no panic, every line counted once, however it is
//! cut by the reader; and any text as a format.

#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use loadline_load::profile::{Builder, NAMES, Source, detect, named};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let _ = detect(data, Source::Unsaid);
    let lines = data.split(|b| *b == b'\n').count() as u64;
    let (first, rest) = data.split_at(data.len().min(60));
    let text = String::from_utf8_lossy(first);
    for (name, data) in NAMES
        .map(|name| (name, data))
        .into_iter()
        .chain([(&*text, rest)])
    {
        let Ok(format) = named(name, Source::Tomcat9) else {
            continue;
        };
        let mut builder = Builder::new(format, 3600.0, true);
        let read = builder.read(BufReader::with_capacity(7, data));
        assert!(read.is_ok());
        let profile = builder.finish("fuzz");
        let Some(seen) = profile.observed else {
            continue;
        };
        assert!(seen.requests + seen.rejected_lines <= lines);
    }
});
