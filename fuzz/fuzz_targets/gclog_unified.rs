//! Any bytes as a GC log, or as lines of a unified one: no panic, every line counted once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::gclog;

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let log = match data.split_first() {
        Some((first, rest)) if first % 2 == 0 => gclog::read(&decorated(rest)[..], 100),
        // Odd is the `[` with which whole logs begin.
        _ => gclog::read(data, 100),
    };
    let counts = &log.input;
    let known = counts.gc_lines + counts.other_lines + counts.unknown_lines;
    assert_eq!(
        counts.counts.lines,
        known + counts.empty_lines + counts.counts.too_long
    );
});

/// With decorations in front of each line, which make the fuzzer start behind them.
fn decorated(data: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(data.len() * 2);
    for line in data.split(|b| *b == b'\n') {
        text.extend_from_slice(b"[1.5s][123456789ns][info][gc] GC(1) ");
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text
}
