//! Any text as the log of a trial's container in a cluster: its parts of the event log, as the kubelet
//! gives them back, and whatever else a container writes.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    loadline_fuzz::deep::pod_log(text);
});
