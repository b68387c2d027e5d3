//! Any bytes as a load tool's result file: failures are requests, and percentiles are in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_analysis::record::{ReportedFigures, ReportedScope};
use loadline_load::reported::{ReportedWindow, read_reported};

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let window = ReportedWindow {
        begin: 1_795_738_500.15,
        since_first: 0.15,
        length: 0.5,
    };
    let Ok(read) = read_reported(data, window) else {
        return;
    };
    let is_own = read.scope != ReportedScope::ToolSummary;
    for of in read
        .by_request
        .values()
        .chain([&read.all])
        .filter(|_| is_own)
    {
        let ReportedFigures {
            requests,
            failed,
            p50,
            p90,
            p99,
        } = of;
        assert!(failed <= requests);
        assert!(p50 <= p90 || p90.is_none());
        assert!(p90 <= p99 || p99.is_none());
    }
});
