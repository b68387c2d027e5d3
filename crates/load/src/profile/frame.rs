//! What a container runtime writes around a line of a program: `... stdout F LINE`.
//!
//! Owns three frames: the CRI's files on a node, Docker's json-file, and the service names of
//! `docker compose logs`. Sources: Kubernetes "Logging architecture" (CRI format); Docker "JSON File
//! logging driver".

use std::borrow::Cow;

/// How far the begin of a frame may reach.
const REACH: usize = 80;

/// The line itself; one without a frame stays as it is.
pub(super) fn unframe_line(line: &[u8]) -> Cow<'_, [u8]> {
    if line.starts_with(b"{\"log\":") {
        #[derive(serde::Deserialize)]
        struct DockerLine {
            log: String,
        }
        return match serde_json::from_slice::<DockerLine>(line) {
            Ok(own) => Cow::Owned(own.log.trim_end().as_bytes().to_vec()),
            Err(_) => Cow::Borrowed(line),
        };
    }
    Cow::Borrowed(
        after_cri(line)
            .or_else(|| after_service(line))
            .unwrap_or(line),
    )
}

fn after_cri(line: &[u8]) -> Option<&[u8]> {
    let begin = &line[..line.len().min(REACH)];
    let at = memchr::memmem::find(begin, b" stdout F ")
        .or_else(|| memchr::memmem::find(begin, b" stderr F "))?;
    let is_stamp = !begin[..at].contains(&b' ') && begin[..at].contains(&b'T');
    is_stamp.then(|| &line[at + b" stdout F ".len()..])
}

/// `orders-1  | LINE`
fn after_service(line: &[u8]) -> Option<&[u8]> {
    let begin = &line[..line.len().min(REACH)];
    let at = memchr::memmem::find(begin, b" | ")?;
    let name = begin[..at].trim_ascii_end();
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
    // A service and the number of its container. An address is the begin of a line with other columns.
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let service = &name[..name.len() - digits];
    let is_numbered = digits > 0 && (service.ends_with(b"-") || service.ends_with(b"_"));
    let is_service = is_numbered
        && service.first().is_some_and(u8::is_ascii_alphabetic)
        && service.iter().all(is_name);
    is_service.then(|| &line[at + b" | ".len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_off_and_other_lines_stay() {
        for (line, own) in [
            ("2023-10-10T13:55:31.123456789Z stdout F a b", "a b"),
            (
                "2023-10-10T13:55:31.1+02:00 stderr F {\"a\":1}",
                "{\"a\":1}",
            ),
            ("orders-1  | GET / 200", "GET / 200"),
            (
                r#"{"log":"a \"b\"\n","stream":"stdout","time":"x"}"#,
                "a \"b\"",
            ),
            (r#"{"log":7}"#, r#"{"log":7}"#),
            (
                "10.0.0.1 - - [x] \"GET /a | b\"",
                "10.0.0.1 - - [x] \"GET /a | b\"",
            ),
            ("10.0.0.1 | 200 | GET /", "10.0.0.1 | 200 | GET /"),
            ("shop.example | 200 | GET /", "shop.example | 200 | GET /"),
            ("", ""),
        ] {
            assert_eq!(unframe_line(line.as_bytes()), own.as_bytes(), "{line}");
        }
    }
}
