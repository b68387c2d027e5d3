//! Lines of a log of any size, in constant memory.
//!
//! Owns the buffer and the cap of 64 KiB a line: longer lines are skipped and counted. Ends of line
//! are LF or CRLF.

use std::io::{self, Read};

/// Longest line that is looked at. Real ones have less than 4 KiB. A fuzzer's inputs are as short, so
/// that they pass only a smaller limit.
pub(super) const LINE_LIMIT: usize = if cfg!(fuzzing) { 512 } else { 64 << 10 };
const BUFFER: usize = 2 * LINE_LIMIT;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineCounts {
    pub bytes: u64,
    pub lines: u64,
    /// Lines over 64 KiB, skipped.
    pub too_long: u64,
    pub is_cut: bool,
}

pub(super) fn for_each(
    mut reader: impl Read,
    counts: &mut LineCounts,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut buffer = vec![0u8; BUFFER];
    let (mut start, mut end) = (0, 0);
    let mut skipping = false;
    loop {
        let read = match reader.read(&mut buffer[end..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                finish_rest(&buffer[start..end], skipping, counts, &mut each);
                return Err(error);
            }
        };
        if read == 0 {
            finish_rest(&buffer[start..end], skipping, counts, &mut each);
            return Ok(());
        }
        counts.bytes += read as u64;
        let fresh = end;
        end += read;
        // Only the fresh part can hold a line end that has not been seen.
        for position in memchr::memchr_iter(b'\n', &buffer[fresh..end]) {
            let line_end = fresh + position;
            if !skipping {
                take_one_line(&buffer[start..line_end], counts, &mut each);
            }
            skipping = false;
            start = line_end + 1;
        }
        if end - start > LINE_LIMIT {
            if !skipping {
                counts.lines += 1;
                counts.too_long += 1;
            }
            skipping = true;
            start = end;
        }
        if start > 0 {
            buffer.copy_within(start..end, 0);
            end -= start;
            start = 0;
        }
    }
}

fn take_one_line(line: &[u8], counts: &mut LineCounts, each: &mut impl FnMut(&[u8])) {
    counts.lines += 1;
    if line.len() > LINE_LIMIT {
        counts.too_long += 1;
        return;
    }
    each(line.strip_suffix(b"\r").unwrap_or(line));
}

/// The rest after the last line end: a line that was cut, or a file without a last line end.
fn finish_rest(rest: &[u8], skipping: bool, counts: &mut LineCounts, each: &mut impl FnMut(&[u8])) {
    if skipping {
        counts.is_cut = true;
    } else if !rest.is_empty() {
        counts.is_cut = true;
        take_one_line(rest, counts, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &[u8]) -> (Vec<Vec<u8>>, LineCounts) {
        let mut lines = Vec::new();
        let mut counts = LineCounts::default();
        for_each(text, &mut counts, |line| lines.push(line.to_vec())).unwrap();
        (lines, counts)
    }

    #[test]
    fn line_ends_of_every_kind() {
        let (lines, counts) = split(b"a\nb\r\n\nlast");
        assert_eq!(lines, [&b"a"[..], b"b", b"", b"last"]);
        assert_eq!((counts.lines, counts.bytes, counts.is_cut), (4, 10, true));
        let (lines, counts) = split(b"a\n");
        assert_eq!((lines.len(), counts.is_cut), (1, false));
        assert_eq!(split(b"").1, LineCounts::default());
    }

    #[test]
    fn long_lines_are_skipped_and_counted_once() {
        let mut text = b"first\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 * BUFFER));
        text.extend(b"\nafter\n");
        text.extend(std::iter::repeat_n(b'y', LINE_LIMIT + 1));
        text.extend(b"\nend\n");
        let (lines, counts) = split(&text);
        assert_eq!(lines, [&b"first"[..], b"after", b"end"]);
        assert_eq!((counts.lines, counts.too_long), (5, 2));
    }

    #[test]
    fn the_longest_line_is_kept() {
        let text = vec![b'x'; LINE_LIMIT];
        let (lines, counts) = split(&text);
        assert_eq!((lines.len(), counts.too_long), (1, 0));
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_however_reads_are_cut(
            lines in proptest::collection::vec("[a-z]{0,40}", 0..60),
            step in 1usize..50,
        ) {
            struct Slow<'a>(&'a [u8], usize);
            impl Read for Slow<'_> {
                fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                    let n = self.1.min(into.len()).min(self.0.len());
                    into[..n].copy_from_slice(&self.0[..n]);
                    self.0 = &self.0[n..];
                    Ok(n)
                }
            }
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut seen = Vec::new();
            let mut counts = LineCounts::default();
            for_each(Slow(text.as_bytes(), step), &mut counts, |line| {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
            }).unwrap();
            proptest::prop_assert_eq!(seen, lines);
        }
    }
}
