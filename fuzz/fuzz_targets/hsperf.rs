//! Any bytes as HotSpot's counter file: no panic, no endless loop.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_jvm::hsperf::HsperfCounters;

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let mut text = vec![0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1];
    text.extend_from_slice(data);
    for input in [data, &text] {
        if let Ok(counters) = HsperfCounters::from_hsperfdata(input) {
            let _ = counters.counter_number("sun.gc.metaspace.capacity");
        }
    }
});
