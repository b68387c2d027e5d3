//! Any bytes inside records of a classic GC log: no panic, bounded lists, sums that fit.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::gclog;

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let mut text = b"1.5: [GC (".to_vec();
    text.extend_from_slice(data);
    text.extend_from_slice(b"\n, 0.5 secs] [Times: user=0.1 sys=0.0, real=0.5 secs]\n");
    let log = gclog::read(&text[..], 10);
    assert!(log.pauses.len() <= 10);
    assert!(log.summary.stw.max <= log.summary.stw.total);
});
