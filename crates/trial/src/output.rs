//! What the application writes: read, kept, and watched for a line.
//!
//! Owns the thread that empties the pipe (a full pipe would stop the application), the copy in the
//! event log up to a cap, and the last 64 KiB for people. Nothing the application writes reaches a
//! terminal with its control characters.

use std::collections::VecDeque;
use std::io::{PipeReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadline_analysis::foreign_text::indented_line;
use loadline_protocol::log::{ChunkContent, EventLog, PIECE};

use crate::cpus;
use crate::redactor::Redactor;

const TAIL: usize = 64 << 10;

/// Output copied to the event log; the rest is only counted.
pub const LOG_CAP: u64 = 16 << 20;

/// Longest line in which a text is searched.
const LONGEST_OPEN_LINE: usize = 8 << 10;

/// Most lines shown to people.
const LINES: usize = 200;

pub struct AppOutput {
    state: Arc<Mutex<OutputState>>,
    to: Option<OutputCopy>,
    reader: Receiver<()>,
}

#[derive(Default)]
struct OutputState {
    tail: VecDeque<u8>,
    total: u64,
    waiting: Vec<u8>,
    first_lines: Vec<(String, Option<String>)>,
    open_line: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct OutputCopy {
    pub log: Arc<EventLog>,
    pub instance: u32,
}

pub struct LineWatch {
    pub text: String,
    pub found: Box<dyn FnOnce() + Send>,
}

impl AppOutput {
    /// Starts reading, on `cpus`; without a copy only the last lines are kept, and credentials in
    /// neither. Ends when the last writer is gone.
    pub fn read(
        pipe: PipeReader,
        to: Option<OutputCopy>,
        redactor: Redactor,
        watch: Option<LineWatch>,
        cpus: Vec<u32>,
    ) -> std::io::Result<Self> {
        let state = Arc::new(Mutex::new(OutputState::default()));
        let (shared, copy) = (Arc::clone(&state), to.clone());
        let (ended, reader) = channel();
        std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                let _ended = ended;
                cpus::pin_this_thread(&cpus);
                drain_pipe(pipe, copy.as_ref(), redactor, watch, &shared);
            })?;
        Ok(Self { state, to, reader })
    }

    pub fn written_bytes(&self) -> u64 {
        self.with_state(|state| state.total)
    }

    pub fn look_for(&self, texts: impl IntoIterator<Item = String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.first_lines = texts.into_iter().map(|text| (text, None)).collect();
    }

    pub fn first_line_with(&self, text: &str) -> Option<String> {
        self.with_state(|state| {
            let found = state.first_lines.iter().find(|(of, _)| of == text);
            found.and_then(|(_, line)| line.clone())
        })
    }

    pub fn last_lines(&self) -> Vec<String> {
        last_lines_of(&self.tail(), LINES)
    }

    pub fn lines_since(&self, total: u64) -> Vec<String> {
        let (tail, written) = self.with_state(|state| (state.tail.len(), state.total));
        let new = usize::try_from(written.saturating_sub(total)).unwrap_or(usize::MAX);
        let skip = tail.saturating_sub(new);
        last_lines_of(self.tail().get(skip..).unwrap_or_default(), usize::MAX)
    }

    /// Writes what waits to the log. Called now and then: an application that logs by single bytes
    /// shall not become a log of single bytes.
    pub fn flush_to_log(&self) {
        if let Some(to) = &self.to {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            to.write(&mut state);
        }
    }

    pub fn cut_notice(&self) -> Option<String> {
        let total = self.written_bytes();
        let text = || format!("the application wrote {total} bytes; the first {LOG_CAP} are kept");
        (total > LOG_CAP).then(text)
    }

    /// Waits for the end of the output, at most `patience`; returns whether it came. Call when
    /// every process of the application is dead. A foreign process may hold the pipe too: the
    /// application can pass a descriptor to any process.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        // Nothing is ever sent: it is the end of the reader that is waited for.
        let has_ended = self.reader.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
        self.flush_to_log();
        has_ended
    }

    fn tail(&self) -> Vec<u8> {
        self.with_state(|state| state.tail.iter().copied().collect())
    }

    fn with_state<T>(&self, ask: impl FnOnce(&OutputState) -> T) -> T {
        ask(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn drain_pipe(
    mut pipe: PipeReader,
    to: Option<&OutputCopy>,
    mut redactor: Redactor,
    mut watch: Option<LineWatch>,
    shared: &Mutex<OutputState>,
) {
    let mut buffer = vec![0; TAIL];
    let mut seam = Vec::new();
    loop {
        let chunk = match pipe.read(&mut buffer) {
            Ok(0) => return keep_chunk(&redactor.take_rest(), to, shared),
            Ok(length) => redactor.redact_chunk(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        keep_chunk(&chunk, to, shared);
        // Only now: a receiver may look at the output at once.
        if let Some(watching) = watch.take() {
            watch = find_text(watching, &mut seam, &chunk);
        }
    }
}

fn keep_chunk(chunk: &[u8], to: Option<&OutputCopy>, shared: &Mutex<OutputState>) {
    let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(to) = to {
        to.copy_chunk(&mut state, chunk);
    }
    state.total += chunk.len() as u64;
    state.find_first_lines(chunk);
    state.tail.extend(chunk);
    let excess = state.tail.len().saturating_sub(TAIL);
    state.tail.drain(..excess);
}

/// Looks for the text, also where it lies across two reads. Gives the watch back if not found.
fn find_text(watch: LineWatch, seam: &mut Vec<u8>, chunk: &[u8]) -> Option<LineWatch> {
    seam.extend_from_slice(chunk);
    if memchr::memmem::find(seam, watch.text.as_bytes()).is_some() {
        (watch.found)();
        return None;
    }
    let keep = watch.text.len().saturating_sub(1).min(seam.len());
    seam.drain(..seam.len() - keep);
    Some(watch)
}

impl OutputState {
    fn find_first_lines(&mut self, chunk: &[u8]) {
        if self.first_lines.iter().all(|(_, line)| line.is_some()) {
            return;
        }
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_OPEN_LINE.saturating_sub(self.open_line.len());
            self.open_line.extend(&part[..part.len().min(room)]);
            let open = self.first_lines.iter_mut();
            for (text, line) in open.filter(|(_, line)| line.is_none()) {
                if memchr::memmem::find(&self.open_line, text.as_bytes()).is_some() {
                    let found = String::from_utf8_lossy(&self.open_line);
                    *line = Some(indented_line(found.trim_end()));
                }
            }
            if part.ends_with(b"\n") {
                self.open_line.clear();
            }
        }
    }
}

impl OutputCopy {
    fn copy_chunk(&self, state: &mut OutputState, chunk: &[u8]) {
        let room = usize::try_from(LOG_CAP.saturating_sub(state.total)).unwrap_or(usize::MAX);
        state.waiting.extend(&chunk[..chunk.len().min(room)]);
        if state.waiting.len() >= PIECE {
            self.write(state);
        }
    }

    fn write(&self, state: &mut OutputState) {
        self.log
            .append_chunk(ChunkContent::Output, self.instance, &state.waiting);
        state.waiting.clear();
    }
}

fn last_lines_of(bytes: &[u8], count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let all: Vec<&str> = text.lines().collect();
    let skip = all.len().saturating_sub(count);
    all[skip..].iter().map(|line| indented_line(line)).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::channel;

    use super::*;

    fn reading(watch: Option<LineWatch>) -> (std::io::PipeWriter, AppOutput) {
        let log = Arc::new(EventLog::begin_log(tempfile().expect("a file")).expect("it is empty"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let cpus = cpus::available_cpus().expect("known");
        let to = Some(OutputCopy { log, instance: 0 });
        let output = AppOutput::read(reader, to, Redactor::default(), watch, cpus);
        (writer, output.expect("a thread"))
    }

    fn tempfile() -> std::io::Result<std::fs::File> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::File::options()
            .read(true)
            .append(true)
            .open(file.path())
    }

    #[test]
    fn the_tail_is_kept_and_the_log_is_capped() {
        let (mut writer, output) = reading(None);
        let line = [b"0123456789abcde".as_slice(), b"\n"].concat().repeat(4096);
        let rounds = LOG_CAP / line.len() as u64 + 3;
        for _ in 0..rounds {
            writer.write_all(&line).expect("it is read");
        }
        writer.write_all(b"the end").expect("it is read");
        drop(writer);
        assert!(output.wait_for_end(Duration::from_secs(60)));
        assert_eq!(output.written_bytes(), rounds * line.len() as u64 + 7);
        let log = output
            .to
            .as_ref()
            .expect("a copy")
            .log
            .open_reader()
            .expect("it is read again");
        let kept = std::io::copy(
            &mut log.join_chunks(ChunkContent::Output, 0),
            &mut std::io::sink(),
        );
        assert_eq!(kept.expect("it is whole"), LOG_CAP);
        let last = output.last_lines();
        assert_eq!(last.len(), LINES);
        assert_eq!(last.last().map(String::as_str), Some("the end"));
        assert!(output.cut_notice().is_some_and(|f| f.contains("are kept")));
        assert_eq!(output.lines_since(output.written_bytes() - 3), ["end"]);
    }

    #[test]
    fn a_line_is_found_across_writes_and_told_once() {
        let (found, told) = channel();
        let watch = LineWatch {
            text: "Started Shop".to_owned(),
            found: Box::new(move || found.send(()).expect("someone waits")),
        };
        let (mut writer, output) = reading(Some(watch));
        for part in ["... Star", "ted S", "hop in 3 s\n", "Started Shop again\n"] {
            writer.write_all(part.as_bytes()).expect("it is read");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        drop(writer);
        assert!(output.wait_for_end(Duration::from_secs(60)));
        assert_eq!(told.iter().count(), 1);
    }

    #[test]
    fn a_pipe_that_somebody_else_holds_is_not_waited_for() {
        let (mut writer, output) = reading(None);
        writer.write_all(b"last words\n").expect("it is read");
        let begin = std::time::Instant::now();
        while output.written_bytes() == 0 && begin.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert!(!output.wait_for_end(Duration::from_millis(10)));
        assert_eq!(output.last_lines(), ["last words"]);
        drop(writer);
        assert!(output.wait_for_end(Duration::from_secs(60)));
    }

    #[test]
    fn who_is_told_of_a_line_can_read_it() {
        // Holds the reading thread where it tells.
        let (found, told) = std::sync::mpsc::sync_channel(0);
        let watch = LineWatch {
            text: "ready".to_owned(),
            found: Box::new(move || found.send(()).expect("someone waits")),
        };
        let (mut writer, output) = reading(Some(watch));
        writer.write_all(b"one\nready\n").expect("it is read");
        let begin = std::time::Instant::now();
        while output.written_bytes() == 0 && begin.elapsed() < std::time::Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert_eq!(output.last_lines(), ["one", "ready"]);
        told.recv().expect("it tells");
        drop(writer);
        assert!(output.wait_for_end(Duration::from_secs(60)));
    }

    #[test]
    fn what_people_see_has_no_control_characters() {
        for (raw, shown) in [
            ("\u{1b}[1;31mERROR\u{1b}[0m\tx", "ERROR x"),
            ("a\u{1b}]0;title\u{7}b\u{1b}]8;;u\u{1b}\\c", "abc"),
            ("over\rwritten\u{8}\u{0}\u{9b}31m", "overwritten"),
            ("\u{202e}evil\u{2069}", "evil"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("grüße", "grüße"),
        ] {
            assert_eq!(indented_line(raw), shown, "{raw:?}");
        }
        let shortened = indented_line(&"x".repeat(5000));
        assert!(
            shortened.ends_with("x… (3000 more characters)"),
            "{shortened}"
        );
    }

    #[test]
    fn binary_output_is_text_for_people() {
        let bytes: Vec<u8> = (0..=255).collect();
        for line in last_lines_of(&bytes, 10) {
            assert!(line.chars().all(|c| !c.is_control()), "{line:?}");
        }
    }
}
