//! What container runtimes and log tools write around a line of a program: `... stdout F LINE`.
//!
//! Owns the frames: the CRI's files on a node, Docker's json-file, `docker compose logs`, `kubectl
//! logs` with `--prefix` and `--timestamps`, and syslog. Sources: Kubernetes "Logging architecture"
//! (CRI format); Docker "JSON File logging driver"; RFC 3164, section 4.1.

use std::borrow::Cow;

/// How far the begin of a frame may reach.
const REACH: usize = 120;

/// Fewest digits of a second that `kubectl logs --timestamps` writes: it drops zeros at the end.
/// Stamps of programs have three or six.
const FRACTION: usize = 7;

/// `kubectl logs --prefix`.
const POD: &[u8] = b"[pod/";

const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// The line itself; one without a frame stays as it is.
pub fn unframe_line(line: &[u8]) -> Cow<'_, [u8]> {
    // Unified GC logs have millions of these.
    if line.starts_with(b"[") && !line.starts_with(POD) {
        return Cow::Borrowed(line);
    }
    if line.starts_with(b"{\"log\":") || line.starts_with(b"{\"stream\":\"std") {
        #[derive(serde::Deserialize)]
        struct DockerLine {
            log: String,
        }
        return match serde_json::from_slice::<DockerLine>(line) {
            Ok(own) => Cow::Owned(own.log.trim_end().as_bytes().to_vec()),
            Err(_) => Cow::Borrowed(line),
        };
    }
    let line = after_pod(line)
        .or_else(|| after_service(line))
        .or_else(|| after_syslog(line))
        .unwrap_or(line);
    Cow::Borrowed(
        after_cri(line)
            .or_else(|| after_stamp(line))
            .unwrap_or(line),
    )
}

fn begin_of(line: &[u8]) -> &[u8] {
    &line[..line.len().min(REACH)]
}

fn after_cri(line: &[u8]) -> Option<&[u8]> {
    let begin = begin_of(line);
    let at = memchr::memmem::find(begin, b" stdout F ")
        .or_else(|| memchr::memmem::find(begin, b" stderr F "))?;
    let is_stamp = !begin[..at].contains(&b' ') && begin[..at].contains(&b'T');
    is_stamp.then(|| &line[at + b" stdout F ".len()..])
}

/// `[pod/orders-7c9d/orders] LINE`
fn after_pod(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(POD)?;
    let at = memchr::memmem::find(begin_of(rest), b"] ")?;
    Some(&rest[at + b"] ".len()..])
}

/// `2023-10-10T13:55:31.123456789Z LINE`
fn after_stamp(line: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr(b' ', begin_of(line))?;
    let stamp = line[..at].strip_suffix(b"Z")?;
    let (seconds, fraction) = stamp.split_at_checked(b"2023-10-10T13:55:31.".len())?;
    let is_stamp = seconds[4] == b'-' && seconds[10] == b'T' && seconds.ends_with(b".");
    let is_nanos = fraction.len() >= FRACTION && fraction.iter().all(u8::is_ascii_digit);
    (is_stamp && is_nanos).then(|| &line[at + 1..])
}

/// `Oct 10 13:55:31 host java[123]: LINE`
fn after_syslog(line: &[u8]) -> Option<&[u8]> {
    let month = line.get(..3)?;
    let is_month = MONTHS.chunks(3).any(|known| known == month) && line.get(3) == Some(&b' ');
    let at = memchr::memmem::find(begin_of(line), b": ").filter(|_| is_month)?;
    Some(&line[at + b": ".len()..])
}

/// `orders-1  | LINE`
fn after_service(line: &[u8]) -> Option<&[u8]> {
    let begin = begin_of(line);
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
            (r#"{"stream":"stdout","log":"a\n","time":"x"}"#, "a"),
            ("[pod/orders-7c9d/orders] GET /", "GET /"),
            (
                "[pod/orders-7c9d/orders] 2023-10-10T13:55:31.123456789Z GET /",
                "GET /",
            ),
            (
                "2023-10-10T13:55:31.123456789Z [0.1s][info]",
                "[0.1s][info]",
            ),
            // A classic load balancer's own stamp.
            (
                "2023-10-10T13:55:31.123456Z lb 10.0.0.1",
                "2023-10-10T13:55:31.123456Z lb 10.0.0.1",
            ),
            (
                "Oct 10 13:55:31 host java[123]: [0.1s][info]",
                "[0.1s][info]",
            ),
            ("Octopus: 1", "Octopus: 1"),
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
