//! The event log on its way out of a pod: as lines of the standard output of `trial-part`, which the
//! kubelet keeps and the API server hands out, also when the pod has ended.
//!
//! Owns the line. Each has the offset of its bytes in the log, so a reader goes on anywhere, drops
//! what comes twice and sees what is missing; the log itself has the checksums.
//!
//! ```text
//! line := "LL1 " , decimal offset , " " , base64 of at most 6,000 bytes
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a line begins with.
const LINE: &str = "LL1 ";

/// Bytes of the log in a line: runtimes cut lines of 16 KiB.
const BYTES: usize = 6000;

/// How often the log is looked at.
const EVERY: Duration = Duration::from_millis(100);

/// A part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub offset: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Understands a line; `None` is anybody's else.
pub fn line(text: &str) -> Option<Part> {
    let (offset, rest) = text.strip_prefix(LINE)?.split_once(' ')?;
    Some(Part {
        offset: offset.parse().ok()?,
        bytes: STANDARD.decode(rest).ok()?,
    })
}

/// Writes what is appended to a log as lines, until `is_over` is set and all of it is written.
///
/// # Errors
/// A log that cannot be read, an output that cannot be written.
pub fn ship(log: &File, mut to: impl Write, is_over: &AtomicBool) -> io::Result<()> {
    let (mut offset, mut buffer) = (0, vec![0; BYTES]);
    loop {
        // Before the look: what was written before is seen by it.
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
    fn a_log_comes_out_of_its_lines_as_it_was() {
        let mut file = tempfile::tempfile().expect("a file");
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n % 251) as u8).collect();
        file.write_all(&bytes).expect("it is written");
        let mut out = Vec::new();
        ship(&file, &mut out, &AtomicBool::new(true)).expect("it is shipped");
        let text = String::from_utf8(out).expect("it is text");
        let mut back = Vec::new();
        for one in text.lines() {
            assert!(one.len() < 16 << 10, "{}", one.len());
            let Some(Part { offset, bytes }) = line(one) else {
                panic!("{one}");
            };
            assert_eq!(offset, back.len() as u64);
            back.extend(bytes);
        }
        assert_eq!(back, bytes);
    }

    #[test]
    fn other_lines_are_nobody_s() {
        assert_eq!(line("Picked up JAVA_TOOL_OPTIONS"), None);
        assert_eq!(line("LL1 7 not base64!"), None);
        assert_eq!(line("LL1 -1 AAAA"), None);
    }
}
