//! The response parser: no bytes make it panic or stand still, and how the bytes are cut into
//! pieces makes no difference to the responses found.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::response::{Response, ResponseParser};

fuzz_target!(|input: (bool, u8, &[u8])| {
    loadline_fuzz::limited();
    let (head_only, size, bytes) = input;
    let whole = read(bytes, bytes.len().max(1), head_only);
    let pieces = read(bytes, usize::from(size).max(1), head_only);
    if let (Some(whole), Some(pieces)) = (whole, pieces) {
        assert_eq!(whole, pieces);
    }
});

/// `None` when the parser refuses the bytes.
fn read(bytes: &[u8], size: usize, head_only: bool) -> Option<Vec<Response>> {
    let mut parser = ResponseParser::default();
    let mut responses = Vec::new();
    for piece in bytes.chunks(size) {
        let mut at = 0;
        while at < piece.len() {
            let mut body = 0;
            let fed = parser
                .feed(&piece[at..], head_only, &mut |b: &[u8]| body += b.len())
                .ok()?;
            assert!(fed.used > 0 && fed.used <= piece.len() - at && body <= fed.used);
            at += fed.used;
            responses.extend(fed.response);
        }
    }
    responses.extend(parser.complete_at_eof());
    Some(responses)
}
