//! Any text as the log of a trial's container in a cluster: its parts of the event log, as the kubelet
//! gives them back, and whatever else a container writes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_protocol::log::EventLogReader;
use loadline_trial::pod::append_line;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let (mut log, mut written) = (Vec::new(), 0);
    for line in text.lines() {
        if append_line(&mut log, line, &mut written).is_err() {
            break;
        }
    }
    assert_eq!(log.len() as u64, written);
    let mut log = EventLogReader::new(&log[..]);
    while let Ok(Some(_)) = log.next_entry() {}
});
