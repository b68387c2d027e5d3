//! Any bytes as an access log in any format: no panic, every line counted once, however it is
//! cut by the reader; and any text as a format.

#![no_main]

use std::io::BufReader;

use libfuzzer_sys::fuzz_target;
use loadline_load::profile::{
    LogSource, ProfileBuilder, detect_format, format_by_name, format_names,
};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    // One way to a format for an input: all of them take far longer.
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let names = format_names();
    let choice = usize::from(*choice) % (names.len() + 2);
    let (first, rest) = data.split_at(data.len().min(60));
    let (format, data) = match names.get(choice) {
        Some(name) => (format_by_name(name, LogSource::Tomcat9).ok(), data),
        None if choice == names.len() => {
            let pattern = String::from_utf8_lossy(first);
            (format_by_name(&pattern, LogSource::Tomcat9).ok(), rest)
        }
        None => (
            detect_format(data, LogSource::Unsaid)
                .ok()
                .map(|found| found.format),
            data,
        ),
    };
    let Some(format) = format else {
        return;
    };
    let lines = data.split(|b| *b == b'\n').count() as u64;
    let mut builder = ProfileBuilder::new(format, 3600.0, true);
    let read = builder.read(BufReader::with_capacity(7, data));
    assert!(read.is_ok());
    let profile = builder.build_profile("fuzz");
    if let Some(seen) = profile.observed {
        assert!(seen.requests + seen.rejected_lines <= lines);
    }
});
