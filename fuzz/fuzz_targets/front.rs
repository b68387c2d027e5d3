//! Any bytes between a load command and the service: nothing makes the front panic, every request has
//! one outcome, and how the bytes of HTTP/2 are cut makes no difference.
//!
//! An input is a size and whether a preface comes first, then pieces: an octet with the direction (the
//! highest bit is set for answers) and the length of the bytes that follow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::http2::PREFACE;
use loadline_proxy::observe_pieces;

fuzz_target!(|input: (u8, bool, &[u8])| {
    loadline_fuzz::limited();
    let (size, has_preface, mut bytes) = input;
    let mut pieces = Vec::new();
    if has_preface {
        pieces.push((true, PREFACE));
    }
    while let Some((first, rest)) = bytes.split_first() {
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(first & 0x7f)));
        pieces.push((first & 0x80 == 0, piece));
        bytes = rest;
    }
    let whole = observe_pieces(&pieces, usize::MAX);
    let totals = &whole.totals.totals;
    let failed = totals.failed_requests();
    assert_eq!(totals.scheduled, totals.ok + failed + totals.unfinished);
    // HTTP/1 judges a head by its lines.
    if has_preface {
        assert_eq!(whole, observe_pieces(&pieces, usize::from(size)));
    }
});
