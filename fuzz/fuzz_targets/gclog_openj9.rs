//! Any bytes inside a stop of an OpenJ9 log, with a wall clock: no panic, every line counted once.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::gclog::{ClockAdjustment, GcLogBuilder, WallClock};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let mut text = b"<verbosegc version=\"x\">\n<exclusive-start id=\"2\" timestamp=\"2023-11-14T22:13:21.000\" intervalms=\"1.5\">\n<gc-start type=\"global\">\n".to_vec();
    text.extend_from_slice(data);
    text.extend_from_slice(
        b"\n<exclusive-end id=\"9\" timestamp=\"2023-11-14T22:13:22.000\" durationms=\"3.5\" />\n",
    );
    let wall = WallClock {
        ahead_ns: i64::MAX / 2,
        set: vec![ClockAdjustment {
            between: (1_000, u64::MAX / 2),
            ahead_ns: i64::MIN / 2,
        }],
        started_ms: 1_700_000_000_000,
    };
    let mut builder = GcLogBuilder::new(10)
        .with_window(Some((5, 10)))
        .with_wall_clock(Some(wall));
    builder.read(&text[..]);
    let log = builder.finish_log();
    let counts = &log.input;
    let known = counts.gc_lines + counts.other_lines + counts.unknown_lines;
    assert_eq!(
        counts.counts.lines,
        known + counts.empty_lines + counts.counts.too_long
    );
    assert!(log.pauses.len() <= 10);
});
