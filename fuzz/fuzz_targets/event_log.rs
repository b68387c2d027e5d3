//! Any bytes as the event log of a trial, and as a piece of samples: an end or an error, no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_protocol::log::{EventLogReader, LogEntry};

fuzz_target!(|bytes: &[u8]| {
    loadline_fuzz::limited();
    loadline_trial::samples::decode_rows(bytes);
    let mut log = EventLogReader::new(bytes);
    while let Ok(Some(record)) = log.next_entry() {
        if let LogEntry::Piece(piece) = record {
            let _ = piece.unpacked_bytes();
        }
    }
});
