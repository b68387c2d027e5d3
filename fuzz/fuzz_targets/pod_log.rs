//! Any text as the log of a trial's container in a cluster: its parts of the event log, as the kubelet
//! gives them back, and whatever else a container writes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_host::pod::{Line, line};
use loadline_trial::log::Reader;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let mut log = Vec::new();
    for part in text.lines().filter_map(line) {
        match part {
            Line::Part { bytes, .. } => log.extend(bytes),
            Line::Lost(why) => assert!(why.len() < text.len()),
        }
    }
    let mut log = Reader::new(&log[..]);
    while let Ok(Some(_)) = log.next_record() {}
});
