//! Any bytes as header blocks of one connection: no panic, an end, and tables within their bounds
//! from one block to the next.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::http2::HpackDecoder;

fuzz_target!(|blocks: Vec<&[u8]>| {
    loadline_fuzz::limited();
    let mut decoder = HpackDecoder::default();
    for block in blocks {
        if decoder.decode_block(block).is_err() {
            return;
        }
    }
});
