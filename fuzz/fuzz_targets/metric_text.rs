//! Any bytes as the metrics of an application: values, or the nearest names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_analysis::metric_text::{MetricSelector, has_samples};

fuzz_target!(|answer: &[u8]| {
    loadline_fuzz::limited();
    let text = String::from_utf8_lossy(answer);
    let first = text.lines().next().unwrap_or_default();
    let selector = first
        .parse()
        .or_else(|_| "max(lag)".parse::<MetricSelector>());
    if let Ok(selector) = selector {
        let value = selector.read_value(&text);
        assert!(value.is_none() || has_samples(&text));
        assert!(selector.nearest_names(&text).len() <= 5);
    }
});
