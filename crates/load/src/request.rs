//! Requests as bytes: rendered once, before the load begins.

use crate::error::LoadError;
use crate::plan::RequestSpec;

/// Renders an HTTP/1.1 request. `address` is the Host where the request names none.
///
/// # Errors
/// [`LoadError::Plan`] when a part holds characters that would end its line.
pub(crate) fn render(spec: &RequestSpec, address: &str) -> Result<Vec<u8>, LoadError> {
    check(spec)?;
    let has = |name: &str| {
        spec.headers
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let mut head = format!("{} {} HTTP/1.1\r\n", spec.method, spec.path);
    if !has("host") {
        let host = spec.host.as_deref().unwrap_or(address);
        head.push_str(&format!("Host: {host}\r\n"));
    }
    for (name, value) in &spec.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let takes_body = matches!(spec.method.as_str(), "POST" | "PUT" | "PATCH");
    if (!spec.body.is_empty() || takes_body) && !has("content-length") {
        head.push_str(&format!("Content-Length: {}\r\n", spec.body.len()));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&spec.body);
    Ok(bytes)
}

fn check(spec: &RequestSpec) -> Result<(), LoadError> {
    let refuse = |field, text: &str, why: &str| {
        Err(LoadError::Plan {
            field,
            why: format!("`{}` {why}", text.escape_debug()),
        })
    };
    let is_token = |s: &str| {
        !s.is_empty()
            && s.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    if !is_token(&spec.method) {
        return refuse("method", &spec.method, "is no HTTP method");
    }
    if !spec.path.starts_with('/') && spec.path != "*" {
        return refuse("path", &spec.path, "does not begin with a slash");
    }
    if spec.path.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return refuse(
            "path",
            &spec.path,
            "holds a space or control character; write it as %20",
        );
    }
    let host = spec.host.iter().map(|h| ("Host", h.as_str()));
    let headers = spec.headers.iter().map(|(n, v)| (n.as_str(), v.as_str()));
    for (name, value) in host.chain(headers) {
        if !is_token(name) {
            return refuse("header", name, "is no header name");
        }
        if value.bytes().any(|b| matches!(b, b'\r' | b'\n' | 0)) {
            return refuse("header", value, "holds a line end");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_is_as_short_as_it_can_be() {
        let bytes = render(&RequestSpec::get("/a?b=c"), "127.0.0.1:80");
        assert_eq!(
            bytes.unwrap(),
            b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n"
        );
    }

    #[test]
    fn a_body_brings_its_length_and_headers_stay_in_order() {
        let spec = RequestSpec {
            method: "POST".to_owned(),
            path: "/".to_owned(),
            host: Some("h".to_owned()),
            headers: vec![("X".to_owned(), "1".to_owned())],
            body: b"abc".to_vec(),
        };
        assert_eq!(
            render(&spec, "unused").unwrap(),
            b"POST / HTTP/1.1\r\nHost: h\r\nX: 1\r\nContent-Length: 3\r\n\r\nabc"
        );
    }

    #[test]
    fn what_could_smuggle_a_second_request_is_refused() {
        let mut header = RequestSpec::get("/");
        header
            .headers
            .push(("X".to_owned(), "1\r\nY: 2".to_owned()));
        let mut method = RequestSpec::get("/");
        method.method = "GET /x HTTP/1.1\r\n".to_owned();
        for spec in [
            RequestSpec::get("/a b"),
            RequestSpec::get("a"),
            header,
            method,
        ] {
            assert!(render(&spec, "h").is_err(), "{spec:?}");
        }
    }
}
