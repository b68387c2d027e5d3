//! Requests that are gRPC calls: JSON becomes messages once, before the load begins.
//!
//! Owns what a call looks like as a request. What a message is in bytes is the caller's to say, so
//! that the process that makes the load knows no schema.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::text::GrpcCode;
use super::{LoadSpec, ProfileSource, TIMEOUT, refuse_key};
use crate::error::LoadError;
use crate::http2::push_message;
use crate::profile::MixRequest;
use crate::template;

/// Messages made of a body with variables; the load draws from them.
const POOL: usize = 256;

/// Makes a message of a method's path and JSON; errors are sentences with their hint.
type MessageEncoder<'a> = dyn Fn(&str, &str) -> Result<Vec<u8>, String> + 'a;

impl LoadSpec {
    /// Replaces each JSON body by encoded messages, and adds the headers of a call.
    /// Afterwards the load names no schema. Errors: [`LoadError::Plan`] names the key.
    pub fn encode_calls(&mut self, encode: &MessageEncoder) -> Result<(), LoadError> {
        if self.proto.take().is_none() {
            return Ok(());
        }
        if self.http2 == Some(false) {
            let why = "gRPC is spoken over HTTP/2 only; leave http2 = false out";
            return Err(refuse_key("proto", why));
        }
        self.http2 = Some(true);
        if self.mix().is_empty() {
            let url = self.url.as_ref().map_or("/", |url| &url.path);
            let json = MixRequest {
                body: self.body.take().unwrap_or_default(),
                body_file: self.body_file.take(),
                ..MixRequest::default()
            };
            self.body = Some(encode_body(url, &json, encode)?);
            self.method = Some("POST".to_owned());
        }
        let own = match &mut self.profile {
            Some(ProfileSource::Inline(profile)) => profile.requests.as_mut_slice(),
            _ => &mut [],
        };
        for request in own.iter_mut().chain(&mut self.request) {
            request.body = encode_body(&request.path, request, encode)?;
            request.body_file = None;
            "POST".clone_into(&mut request.method);
        }
        let timeout = self.timeout.map_or(TIMEOUT, |time| time.0);
        // At most eight digits. Source: gRPC over HTTP/2, "Requests".
        let timeout = format!("{}m", timeout.as_millis().clamp(1, 99_999_999));
        for (name, value) in [
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("grpc-timeout", &timeout),
        ] {
            if !self
                .headers
                .keys()
                .any(|own| own.eq_ignore_ascii_case(name))
            {
                self.headers.insert(name.to_owned(), value.to_owned());
            }
        }
        if self.expect_grpc_status.is_empty() {
            self.expect_grpc_status.push(GrpcCode(0));
        }
        Ok(())
    }
}

fn encode_body(
    path: &str,
    request: &MixRequest,
    encode: &MessageEncoder,
) -> Result<String, LoadError> {
    let body = request.read_body()?;
    let text = String::from_utf8(body).map_err(|_| {
        let why = "the body of a gRPC call is its message as JSON, but this is not text; write {\"id\": 7}";
        refuse_key("body", why)
    })?;
    if text.contains("{env:") {
        let why = "{env:NAME} is not allowed in a message, which is stored; send it as metadata: -H 'authorization: Bearer {env:TOKEN}'";
        return Err(refuse_key("body", why));
    }
    let mut messages = Vec::new();
    for json in template::sample_texts(&text, POOL)? {
        let message = encode(path, &json).map_err(|why| refuse_key("proto", &why))?;
        let mut framed = Vec::new();
        push_message(&mut framed, &message);
        messages.push(STANDARD.encode(framed));
    }
    Ok(format!("{{base64:{}}}", messages.join("|")))
}
