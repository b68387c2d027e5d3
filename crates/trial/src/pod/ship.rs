//! The event log on its way out of a container: as lines of the standard output of `trial-part`,
//! which the kubelet or the engine stores and serves, even after the container has ended.
//!
//! Owns the line, and how lines become a log. Each line has the offset of its bytes in the log, so
//! a reader can resume anywhere, drop duplicates and detect gaps; the log itself has the checksums.
//!
//! ```text
//! line := "LL1 " , decimal offset , " " , base64 of at most 6,000 bytes
//!       | "LL1 armed " , word
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub const LINE: &str = "LL1 ";

/// Bytes of the log in a line: runtimes cut lines of 16 KiB.
const BYTES: usize = 6000;

/// Longest line that is one: runtimes cut there.
const LONGEST_LINE: usize = 16 << 10;

/// Most bytes of a log: an application in the same pod can write such lines too.
const LONGEST_LOG: u64 = 1 << 30;

const EVERY: Duration = Duration::from_millis(100);

/// Lines out of the bytes of a container's output, to which its application can write what it wants: a
/// line that is too long is dropped, bytes that are no text are replaced.
#[derive(Debug, Default)]
pub struct LineSplitter {
    line: Vec<u8>,
    is_too_long: bool,
}

impl LineSplitter {
    pub fn take_bytes(&mut self, bytes: &[u8], mut tell: impl FnMut(String)) {
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, is_whole) = match part.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (part, false),
            };
            self.is_too_long |= self.line.len() + text.len() > LONGEST_LINE;
            if self.is_too_long {
                self.line.clear()
            } else {
                self.line.extend_from_slice(text)
            }
            if is_whole {
                tell(String::from_utf8_lossy(&self.line).into_owned());
                self.line.clear();
                self.is_too_long = false;
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShippedLine {
    Part { offset: u64, bytes: Vec<u8> },
    Armed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEffect {
    Part,
    Armed,
    Nothing,
}

/// Appends what a line has of a log of which `written` bytes are there. What came before is dropped.
/// Errors: Why the trial is lost: lines between are gone, or the log cannot be written.
pub fn append_line(
    log: &mut impl Write,
    text: &str,
    written: &mut u64,
) -> Result<LineEffect, String> {
    let (offset, bytes) = match parse_shipped_line(text) {
        Some(ShippedLine::Armed) => return Ok(LineEffect::Armed),
        Some(ShippedLine::Part { offset, bytes }) => (offset, bytes),
        None => return Ok(LineEffect::Nothing),
    };
    let Some(end) = offset.checked_add(bytes.len() as u64) else {
        return Ok(LineEffect::Nothing);
    };
    if end <= *written {
        return Ok(LineEffect::Part);
    }
    let behind = usize::try_from(written.wrapping_sub(offset)).ok();
    let Some(new) = behind.and_then(|n| bytes.get(n..)) else {
        return Err("the start of its log was discarded (a kubelet's containerLogMaxSize, a daemon's log-opts max-size): use shorter trials, or coarser samples".to_owned());
    };
    if end > LONGEST_LOG {
        let most = LONGEST_LOG >> 30;
        return Err(format!(
            "its log has more than {most} GiB: use shorter trials, or coarser samples"
        ));
    }
    log.write_all(new)
        .map_err(|error| format!("writing the event log on this machine: {error}"))?;
    *written = end;
    Ok(LineEffect::Part)
}

/// Understands a line; `None` is anybody's else.
fn parse_shipped_line(text: &str) -> Option<ShippedLine> {
    let (first, rest) = text.strip_prefix(LINE)?.split_once(' ')?;
    if first == "armed" {
        return Some(ShippedLine::Armed);
    }
    Some(ShippedLine::Part {
        offset: first.parse().ok()?,
        bytes: STANDARD.decode(rest).ok()?,
    })
}

/// Writes a growing log as lines, until `is_over` is set and everything is written; and, once
/// `armed` returns it, the word that lets the application start. Errors: A log that cannot be read,
/// an output that cannot be written.
pub fn ship(
    log: &File,
    mut to: impl Write,
    armed: impl Fn() -> bool,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let (mut offset, mut buffer) = (0, vec![0; BYTES]);
    let mut is_told = false;
    loop {
        if !is_told && armed() {
            to.write_all(format!("{LINE}armed yes\n").as_bytes())?;
            is_told = true;
        }
        // Before reading: everything written before the flag is then included.
        let is_last = is_over.load(Ordering::Acquire);
        loop {
            let length = log.read_at(&mut buffer, offset)?;
            if length == 0 {
                break;
            }
            let text = STANDARD.encode(&buffer[..length]);
            to.write_all(format!("{LINE}{offset} {text}\n").as_bytes())?;
            offset += length as u64;
        }
        to.flush()?;
        if is_last {
            return Ok(());
        }
        std::thread::sleep(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_end_whatever_an_application_writes() {
        let mut splitter = LineSplitter::default();
        let mut lines = Vec::new();
        let mut take = |bytes: &[u8]| splitter.take_bytes(bytes, |line| lines.push(line));
        take(b"LL1 0 AA");
        take(b"==\nLL1 1 BB==\n\xff\xfe\n");
        for _ in 0..1000 {
            take(&[b'x'; 1000]);
        }
        take(b"\nnext\n");
        assert_eq!(
            lines,
            ["LL1 0 AA==", "LL1 1 BB==", "\u{fffd}\u{fffd}", "", "next"]
        );
        assert!(splitter.line.capacity() <= 2 * LONGEST_LINE);
    }

    #[test]
    fn a_log_comes_out_of_its_lines_as_it_was() {
        let mut file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        file.write_all(&bytes).expect("it is written");
        let mut out = Vec::new();
        ship(&file, &mut out, || true, &AtomicBool::new(true)).expect("it is shipped");
        let text = String::from_utf8(out).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.len() < 16 << 10));
        let (mut back, mut written) = (Vec::new(), 0);
        assert_eq!(
            append_line(&mut back, lines[0], &mut written),
            Ok(LineEffect::Armed)
        );
        // Duplicates, and foreign lines.
        for index in [1, 2, 1, 2, 3, 4] {
            let taken = append_line(&mut back, lines[index], &mut written);
            assert_eq!(taken, Ok(LineEffect::Part), "line {index}");
        }
        let other = append_line(&mut back, "Picked up JAVA_TOOL_OPTIONS", &mut written);
        assert_eq!(other, Ok(LineEffect::Nothing));
        assert_eq!(back, bytes);
        let gap = append_line(&mut Vec::new(), lines[2], &mut 0);
        assert!(gap.is_err_and(|why| why.contains("max-size")));
        let mut written = LONGEST_LOG;
        let next = format!("{LINE}{written} AAAA");
        let more = append_line(&mut Vec::new(), &next, &mut written);
        assert!(more.is_err_and(|why| why.contains("more than 1 GiB")));
    }

    #[test]
    fn other_lines_are_nobody_s() {
        assert_eq!(parse_shipped_line("Picked up JAVA_TOOL_OPTIONS"), None);
        assert_eq!(parse_shipped_line("LL1 7 not base64!"), None);
        assert_eq!(parse_shipped_line("LL1 -1 AAAA"), None);
    }
}
