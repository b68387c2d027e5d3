//! HTTP/2 frames and header blocks: no bytes make the reader or the decoder panic or stand still,
//! and how the bytes are cut into pieces makes no difference to what is read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::http2::{FrameReader, HpackDecoder, Http2Frame};

fuzz_target!(|input: (u8, &[u8])| {
    loadline_fuzz::limited();
    let (size, bytes) = input;
    let whole = read(bytes, bytes.len().max(1));
    let pieces = read(bytes, usize::from(size).max(1));
    assert_eq!(whole, pieces);
});

/// `None` when the bytes are refused; bodies are joined, since they are handed on as they come.
fn read(bytes: &[u8], size: usize) -> Option<(Vec<String>, usize)> {
    let mut reader = FrameReader::default();
    let mut decoder = HpackDecoder::default();
    let mut said = Vec::new();
    let mut body = 0;
    for mut piece in bytes.chunks(size) {
        while let Some(frame) = reader.next(&mut piece).ok()? {
            match frame {
                Http2Frame::Data { piece, flow, .. } => {
                    assert!(piece.len() <= flow as usize);
                    body += piece.len();
                }
                Http2Frame::Headers { .. } => {
                    said.push(format!(
                        "{frame:?} {:?}",
                        decoder.decode_block(&reader.block).ok()?
                    ));
                }
                other => said.push(format!("{other:?}")),
            }
        }
        assert!(piece.is_empty());
    }
    Some((said, body))
}
