//! gRPC messages in a body: each behind a prefix.
//!
//! Source: github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, "Length-Prefixed-Message".

/// Not compressed or compressed, then the length.
const PREFIX: usize = 5;

pub fn push_message(out: &mut Vec<u8>, message: &[u8]) {
    out.push(0);
    out.extend((message.len() as u32).to_be_bytes());
    out.extend_from_slice(message);
}

pub(super) fn split_messages(mut body: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut messages = Vec::new();
    while let Some(([compressed, length @ ..], rest)) = body.split_first_chunk::<PREFIX>() {
        if *compressed != 0 {
            return Err("the answer is compressed, which was not asked for".to_owned());
        }
        let whole = rest.split_at_checked(u32::from_be_bytes(*length) as usize);
        let (message, rest) = whole.ok_or("a message of the answer is cut off")?;
        messages.push(message.to_vec());
        body = rest;
    }
    if body.is_empty() {
        Ok(messages)
    } else {
        Err("a message of the answer is cut off".to_owned())
    }
}
