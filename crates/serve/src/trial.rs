//! A trial that runs, followed by its event log: its seconds, its phase, its last lines.
//!
//! Bounded: the last minutes and lines only, and a part of the log at a time, however long it is.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use loadline_analysis::foreign_text::indented_line;
use loadline_protocol::log::{ChunkContent, EventLogReader, FileChunk, LogEntry};
use loadline_protocol::{TrialEvent, TrialProgress};
use loadline_trial::samples;
use serde::Serialize;

const SECONDS: usize = 600;
const LINES: usize = 40;
const LINE: usize = 400;
const AT_A_TIME: usize = 20_000;
const NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct TrialSecond {
    pub t: u64,
    pub p99_ms: Option<f64>,
    pub rate: Option<f64>,
    /// Memory at its end, page cache included, MiB.
    pub memory_mib: Option<f64>,
    pub cpus: Option<f64>,
    /// Time throttled by the quota, a sum over CPUs, in CPUs.
    pub throttled_cpus: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct CpuCounters {
    at: u64,
    cpu: Option<i64>,
    throttled: Option<i64>,
}

#[derive(Debug)]
pub struct TrialFollower {
    log: EventLogReader<File>,
    begin: Option<u64>,
    /// Begin of the current phase, ns.
    phase_begin: u64,
    pub(crate) phase: String,
    pub(crate) progress: Option<TrialProgress>,
    pub(crate) seconds: VecDeque<TrialSecond>,
    before: CpuCounters,
    latest: CpuCounters,
    pub(crate) lines: VecDeque<String>,
    rest: String,
    is_over: bool,
}

impl TrialFollower {
    /// Follows the trial with this event log; `None` if it does not exist yet.
    pub fn follow_log(log: &Path) -> Option<Self> {
        let file = File::open(log).ok()?;
        Some(Self {
            log: EventLogReader::new(file),
            begin: None,
            phase_begin: 0,
            phase: "prepare".to_owned(),
            progress: None,
            seconds: VecDeque::new(),
            before: CpuCounters::default(),
            latest: CpuCounters::default(),
            lines: VecDeque::new(),
            rest: String::new(),
            is_over: false,
        })
    }

    pub fn read(&mut self) {
        for _ in 0..AT_A_TIME {
            if self.is_over {
                return;
            }
            match self.log.next_entry() {
                Ok(Some(LogEntry::Event(event))) => self.take_event(event),
                Ok(Some(LogEntry::Piece(piece))) => self.take_piece(&piece),
                Ok(None) => return,
                Err(_) => self.is_over = true,
            }
        }
    }

    fn take_event(&mut self, event: TrialEvent) {
        match event {
            TrialEvent::Phase { phase, at_ns } => {
                self.begin.get_or_insert(at_ns);
                self.phase_begin = at_ns;
                self.phase = phase.to_string();
                self.progress = None;
            }
            TrialEvent::Progress(progress) => {
                let elapsed = u64::try_from(progress.elapsed.as_nanos()).unwrap_or(u64::MAX);
                let at = self.phase_begin.saturating_add(elapsed);
                if let Some(second) = self.second_at(at) {
                    second.p99_ms = progress
                        .p99
                        .map(|p| p.as_secs_f64() * 1e3)
                        .or(second.p99_ms);
                    second.rate = progress.rate.or(second.rate);
                }
                self.progress = Some(progress);
            }
            TrialEvent::Waits(_) | TrialEvent::Soak(_) | TrialEvent::Look(_) => {}
            TrialEvent::Ended(_) => self.is_over = true,
        }
    }

    fn take_piece(&mut self, piece: &FileChunk) {
        if piece.instance != 0 {
            return;
        }
        match piece.content {
            ChunkContent::Samples => {
                let rows = piece
                    .unpacked_bytes()
                    .ok()
                    .and_then(|b| samples::decode_rows(&b));
                for row in rows.unwrap_or_default() {
                    self.take_sample(&row);
                }
            }
            ChunkContent::Output => self.take_output(&piece.unpacked_bytes().unwrap_or_default()),
            ChunkContent::GcLog | ChunkContent::File(_) => {}
        }
    }

    fn take_sample(&mut self, row: &samples::SampleRow) {
        let now = CpuCounters {
            at: row.at_ns,
            cpu: row.cpu.map(signed_nanos),
            throttled: row.throttled.map(signed_nanos),
        };
        let begin = *self.begin.get_or_insert(row.at_ns);
        let number = |at: u64| at.saturating_sub(begin) / NS;
        if self.latest.at == 0 {
            self.before = now;
        } else if number(now.at) > number(self.latest.at) {
            self.before = self.latest;
        }
        self.latest = now;
        let before = self.before;
        let span = now.at.saturating_sub(before.at);
        let share = |to: Option<i64>, from: Option<i64>| {
            let used = to?.saturating_sub(from?).max(0);
            (span > 0).then(|| used as f64 / span as f64)
        };
        let (cpus, throttled) = (
            share(now.cpu, before.cpu),
            share(now.throttled, before.throttled),
        );
        let memory = row.memory.and_then(|m| m.usage);
        if let Some(second) = self.second_at(row.at_ns) {
            second.cpus = cpus.or(second.cpus);
            second.throttled_cpus = throttled.or(second.throttled_cpus);
            second.memory_mib = memory.map(|m| m.as_mib()).or(second.memory_mib);
        }
    }

    /// The second of a point in time, added if it is the newest; `None` for a second that was
    /// dropped.
    fn second_at(&mut self, at: u64) -> Option<&mut TrialSecond> {
        let begin = *self.begin.get_or_insert(at);
        let t = at.saturating_sub(begin) / NS;
        let last = self.seconds.back().map(|s| s.t);
        if last.is_none_or(|last| t > last) {
            self.seconds.push_back(TrialSecond {
                t,
                ..TrialSecond::default()
            });
            if self.seconds.len() > SECONDS {
                self.seconds.pop_front();
            }
        }
        self.seconds.iter_mut().rev().find(|s| s.t == t)
    }

    fn take_output(&mut self, bytes: &[u8]) {
        self.rest.push_str(&String::from_utf8_lossy(bytes));
        let text = std::mem::take(&mut self.rest);
        let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", &text));
        for line in whole.lines().filter(|line| !line.is_empty()) {
            self.lines
                .push_back(indented_line(line).chars().take(LINE).collect());
            if self.lines.len() > LINES {
                self.lines.pop_front();
            }
        }
        // An endless line keeps its begin.
        self.rest = rest.chars().take(LINE).collect();
    }
}

fn signed_nanos(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
