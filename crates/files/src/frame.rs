//! What container runtimes and log tools write around a line of a program: `... stdout F LINE`.
//!
//! Owns the frames: the CRI's files on a node, Docker's json-file, `docker compose logs`, `kubectl
//! logs` with `--prefix` and `--timestamps`, and syslog; and the parts of lines that the CRI cuts.
//! Sources: Kubernetes "Logging architecture" (CRI format); Docker "JSON File logging driver"; RFC
//! 3164, section 4.1; RFC 5424, section 6.

use std::borrow::Cow;

/// How far the begin of a frame may reach.
const REACH: usize = 120;

/// Fewest digits of a second that `kubectl logs --timestamps` writes: it drops zeros at the end.
/// Stamps of programs have three or six.
const FRACTION: usize = 7;

/// `kubectl logs --prefix`.
const POD: &[u8] = b"[pod/";
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// The longest line that is put together, bytes.
const LONGEST: usize = 64 << 10;

/// Puts lines together that the CRI cut: `... stdout P BEGIN`, then `... stdout F END`. Lines of the
/// other stream may come between.
#[derive(Debug, Default)]
pub struct LineJoiner {
    begun: [Vec<u8>; 2],
}

impl LineJoiner {
    /// The whole line without its frame; `None` while parts are still to come.
    pub fn join_line<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(part) = after_cri(line) else {
            return Some(unframe_line(line));
        };
        let begun = &mut self.begun[usize::from(part.is_stderr)];
        if !part.is_last {
            let room = LONGEST.saturating_sub(begun.len());
            begun.extend_from_slice(&part.own[..part.own.len().min(room)]);
            return None;
        }
        let own = unframe_line(line);
        if begun.is_empty() {
            return Some(own);
        }
        let mut whole = std::mem::take(begun);
        whole.extend_from_slice(&own);
        Some(Cow::Owned(whole))
    }
}

/// The line itself; one without a frame stays as it is.
pub fn unframe_line(line: &[u8]) -> Cow<'_, [u8]> {
    // Unified GC logs have millions of these.
    if line.starts_with(b"[") && !line.starts_with(POD) {
        return Cow::Borrowed(line);
    }
    // Docker's, Fluent Bit's and Google's objects.
    let in_object = [b"\"log\":".as_slice(), b"\"textPayload\":"];
    let has = |field: &&[u8]| memchr::memmem::find(line, field).is_some();
    if line.starts_with(b"{") && in_object.iter().any(has) {
        #[derive(serde::Deserialize)]
        struct DockerLine {
            #[serde(alias = "textPayload")]
            log: String,
        }
        return match serde_json::from_slice::<DockerLine>(line) {
            Ok(own) => Cow::Owned(own.log.trim_end().as_bytes().to_vec()),
            Err(_) => Cow::Borrowed(line),
        };
    }
    let line = after_priority(line).unwrap_or(line);
    let line = after_pod(line)
        .or_else(|| after_service(line))
        .or_else(|| after_syslog(line))
        .unwrap_or(line);
    let line = after_cri(line)
        .map(|part| part.own)
        .or_else(|| after_stamp(line))
        .unwrap_or(line);
    Cow::Borrowed(after_logger(line).unwrap_or(line))
}

fn begin_of(line: &[u8]) -> &[u8] {
    &line[..line.len().min(REACH)]
}

/// A line of the CRI, or a part that goes on in the next one of its stream (`P`, not `F`).
struct CriPart<'a> {
    own: &'a [u8],
    is_last: bool,
    is_stderr: bool,
}

fn after_cri(line: &[u8]) -> Option<CriPart<'_>> {
    if !line.first()?.is_ascii_digit() {
        return None;
    }
    let begin = begin_of(line);
    let at = memchr::memchr(b' ', begin)?;
    let (stamp, rest) = line.split_at(at);
    let stdout = rest.strip_prefix(b" stdout ");
    let rest = stdout.or_else(|| rest.strip_prefix(b" stderr "))?;
    let [flag @ (b'F' | b'P'), b' ', own @ ..] = rest else {
        return None;
    };
    stamp.contains(&b'T').then_some(CriPart {
        own,
        is_last: *flag == b'F',
        is_stderr: stdout.is_none(),
    })
}

/// `<134>1 2023-10-10T13:55:31.1Z host haproxy 123 - - LINE`, and `<134>` before an older header.
fn after_priority(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"<")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b">").filter(|_| digits > 0)?;
    let Some(header) = rest.strip_prefix(b"1 ") else {
        return Some(rest);
    };
    // Stamp, host, program, process and kind of message; then structured data.
    let mut after = header;
    for _ in 0..5 {
        after = &after[memchr::memchr(b' ', after)? + 1..];
    }
    let end: &[u8] = if after.starts_with(b"[") { b"] " } else { b" " };
    let at = memchr::memmem::find(after, end)?;
    Some(&after[at + end.len()..])
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

/// `Oct 10 13:55:31 host java[123]: LINE`, or with a stamp such as `2023-10-10T13:55:31.123456+02:00`.
fn after_syslog(line: &[u8]) -> Option<&[u8]> {
    let month = line.get(..3)?;
    let is_month = MONTHS.chunks(3).any(|known| known == month) && line.get(3) == Some(&b' ');
    let begin = begin_of(line);
    let stamp = memchr::memchr(b' ', begin).map_or(begin, |at| &begin[..at]);
    let is_iso =
        matches!(stamp, [_, _, _, _, b'-', _, _, b'-', _, _, b'T', .., end] if *end != b':');
    let at = memchr::memmem::find(begin, b": ").filter(|_| is_month || is_iso)?;
    let words = line[..at].split(|b| *b == b' ').count();
    // A stamp of one word, host and program.
    (is_month || words == 3).then(|| &line[at + b": ".len()..])
}

/// The console of Quarkus: `2023-10-10 13:55:31,123 INFO  [io.qua.htt.access-log] (thread) LINE`
fn after_logger(line: &[u8]) -> Option<&[u8]> {
    let at = memchr::memmem::find(begin_of(line), b".access-log] (")?;
    let end = memchr::memmem::find(&line[at..], b") ")?;
    Some(&line[at + end + b") ".len()..])
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
            ("2023-10-10T13:55:31.1+02:00 host java[1]: GET", "GET"),
            (
                "2014-03-12T21:18:26.029-0500: [GC [ParNew: 1K",
                "2014-03-12T21:18:26.029-0500: [GC [ParNew: 1K",
            ),
            (
                "2023-10-10 13:55:30,123 INFO  [io.qua.htt.access-log] (executor-thread-1) GET",
                "GET",
            ),
            (r#"{"container_id":"x","log":"a","x":1}"#, "a"),
            (r#"{"insertId":"x","textPayload":"a"}"#, "a"),
            (
                "<134>1 2023-10-10T13:55:31.1Z lb haproxy 12 - - 10.0.0.1:1 GET",
                "10.0.0.1:1 GET",
            ),
            (
                "<134>1 2023-10-10T13:55:31.1Z lb haproxy 12 id [a@1 b=\"c d\"] GET",
                "GET",
            ),
            ("<134>Oct 10 13:55:31 lb haproxy[1]: GET", "GET"),
            ("<verbosegc>", "<verbosegc>"),
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

    #[test]
    fn parts_of_a_line_are_put_together() {
        let mut joiner = LineJoiner::default();
        let mut joined = |line: &str| {
            let own = joiner.join_line(line.as_bytes())?;
            Some(String::from_utf8_lossy(&own).into_owned())
        };
        let stamp = "2023-10-10T13:55:31.123456789Z";
        assert_eq!(joined("a").as_deref(), Some("a"));
        assert_eq!(joined(&format!("{stamp} stdout P GET ")), None);
        assert_eq!(joined(&format!("{stamp} stderr F c")).as_deref(), Some("c"));
        assert_eq!(joined(&format!("{stamp} stdout P /orders")), None);
        let whole = joined(&format!("{stamp} stdout F  200"));
        assert_eq!(whole.as_deref(), Some("GET /orders 200"));
        assert_eq!(joined(&format!("{stamp} stderr F b")).as_deref(), Some("b"));
        for _ in 0..9 {
            assert_eq!(
                joined(&format!("{stamp} stdout P {}", "x".repeat(LONGEST))),
                None
            );
        }
        let whole = joined(&format!("{stamp} stdout F y")).map(|line| line.len());
        assert_eq!(whole, Some(LONGEST + 1));
    }
}
