//! This machine as a host: each trial is a separate process, `loadline trial-part`.
//!
//! Owns that process: its start, its event log, and its end in every case. [`loadline_trial`] runs
//! the trial. One trial at a time, because two disturb each other.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use loadline_analysis::foreign_text::indented_line;
use loadline_analysis::record::{Evidence, InvalidReason, MachineDescription, MeasurementFailure};
use loadline_cgroup::CpuWatch;
use loadline_protocol::log::{ChunkContent, EventLogReader, FileChunk, LogEntry, LogError};
use loadline_protocol::{RunRefusal, TrialEnding, TrialEvent, TrialOrder};
use loadline_trial::part::PARENT;
use loadline_trial::{Site, SiteOptions, part_command, spawn_command};
use rustix::process::{Pid, Signal, kill_process};

use crate::host::{Delivery, MachineUse, POLL, TrialHandle, TrialHost, WRITABLE};
use crate::keeper::{self, JoiningTrial, Place};

/// A stopping trial kills and cleans up within seconds; otherwise it is killed.
const STOPPING: Duration = Duration::from_secs(60);

/// From its last event to the end of the process; milliseconds as a rule.
const LEAVING: Duration = Duration::from_secs(10);

const ROOM: u64 = 64 << 10;
const LAST_WORDS: usize = 4096;

#[derive(Debug)]
pub struct LocalTrialHost {
    site: Site,
    keeper: Place,
    cpus: CpuWatch,
}

impl LocalTrialHost {
    /// Looks at the machine; makes nothing.
    pub fn new(options: SiteOptions) -> Result<Self, RunRefusal> {
        Site::detect_site(options).map(|site| Self {
            site,
            keeper: Place::default(),
            cpus: CpuWatch::new(Path::new("/proc")),
        })
    }

    pub fn site(&self) -> &Site {
        &self.site
    }
}

impl TrialHost for LocalTrialHost {
    fn host_machine(&self) -> MachineDescription {
        self.site.describe_machine()
    }

    fn slot_count(&self) -> usize {
        1
    }

    fn order_refusal(&self, _order: &TrialOrder) -> Option<RunRefusal> {
        None
    }

    fn launch_trial(
        &mut self,
        _slot: usize,
        order: &TrialOrder,
        delivery: &Delivery,
    ) -> Result<Box<dyn TrialHandle>, RunRefusal> {
        let failed = |what: &str, error: io::Error| RunRefusal::new(what, error, WRITABLE);
        let (log, reading) = delivery.make_log()?;
        let (site, delivery) = (self.site.clone(), delivery.clone());
        let begin = move |order: &TrialOrder| {
            LocalTrialProcess::spawn_process(site, order, (log, reading), delivery)
        };
        if keeper::is_needed(order) {
            let begin =
                Box::new(|order: &TrialOrder| Ok(Box::new(begin(order)?) as Box<dyn TrialHandle>));
            let joining = JoiningTrial::ask_keeper(&self.site, &self.keeper, order, begin);
            let joining = joining.map_err(|error| failed("starting `loadline keeper-part`", error));
            return Ok(Box::new(joining?));
        }
        let part = begin(order).map_err(|error| failed("starting `loadline trial-part`", error))?;
        Ok(Box::new(part))
    }

    fn machine_use(&mut self) -> MachineUse {
        let seen = self.cpus.look();
        seen.map_or(MachineUse::NotYet, MachineUse::Seen)
    }
}

impl LocalTrialProcess {
    fn spawn_process(
        site: Site,
        order: &TrialOrder,
        (log, reading): (File, File),
        delivery: Delivery,
    ) -> io::Result<Self> {
        let mut command = part_command(&site.chosen_options().program, "trial-part");
        command
            .env("LOADLINE_TRIAL", &order.trial)
            .env(PARENT, std::process::id().to_string())
            .stdout(Stdio::from(log));
        let text = serde_json::to_vec(order)?;
        let mut child = spawn_command(command)?;
        if let Some(stderr) = &child.stderr {
            // Whatever it leaves open must not hold us when its last words are read.
            rustix::io::ioctl_fionbio(stderr, true)?;
        }
        let given = match child.stdin.take() {
            // Dropping it ends the order.
            Some(mut stdin) => stdin.write_all(&text),
            None => Err(io::Error::other("it has no standard input")),
        };
        // One that ended at once says why in its last words.
        match given {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(Self {
                child,
                site,
                log: EventLogReader::new(reading),
                delivery,
                ending: None,
                asked: None,
                is_over: false,
            }),
        }
    }
}

#[derive(Debug)]
struct LocalTrialProcess {
    child: Child,
    site: Site,
    log: EventLogReader<File>,
    delivery: Delivery,
    /// Its last event, reported only after its clean-up, and when it came.
    ending: Option<(TrialEnding, Instant)>,
    asked: Option<Instant>,
    is_over: bool,
}

impl TrialHandle for LocalTrialProcess {
    fn next(&mut self) -> Option<TrialEvent> {
        if self.is_over {
            return None;
        }
        if self.ending.is_none() {
            // Before the log is read: nothing is written after the end.
            let ended = self.child.try_wait().ok().flatten();
            match self.read() {
                Ok(Some(TrialEvent::Ended(ending))) => self.ending = Some((ending, Instant::now())),
                Ok(Some(event)) => return Some(event),
                Ok(None) => {
                    if let Some(status) = ended {
                        return Some(self.lost_event(&status.to_string(), status));
                    }
                    if self.asked.is_some_and(|asked| asked.elapsed() > STOPPING) {
                        self.kill_process();
                    }
                    return None;
                }
                Err(error) => {
                    let status = self.kill_process();
                    return Some(self.lost_event(&error.to_string(), status));
                }
            }
        }
        self.last_event()
    }

    fn stop_trial(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Ok(None)) = (pid, self.child.try_wait()) {
            // It is our child and not reaped yet: the id cannot be another's.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl Drop for LocalTrialProcess {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop_trial();
            let begin = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) && begin.elapsed() < STOPPING {
                std::thread::sleep(POLL);
            }
            self.clean_up();
        }
    }
}

impl LocalTrialProcess {
    fn read(&mut self) -> Result<Option<TrialEvent>, LogError> {
        loop {
            match self.log.next_entry()? {
                Some(LogEntry::Event(event)) => return Ok(Some(event)),
                Some(LogEntry::Piece(piece)) => deliver(&piece, &self.delivery)?,
                None => return Ok(None),
            }
        }
    }

    fn last_event(&mut self) -> Option<TrialEvent> {
        let (_, since) = self.ending.as_ref()?;
        if matches!(self.child.try_wait(), Ok(None)) {
            if since.elapsed() < LEAVING {
                return None;
            }
            self.clean_up();
        }
        self.is_over = true;
        let (ending, _) = self.ending.take()?;
        Some(TrialEvent::Ended(ending))
    }

    fn lost_event(&mut self, why: &str, status: ExitStatus) -> TrialEvent {
        self.clean_up();
        for file in &self.delivery.files {
            // A partial file counts as missing.
            let _ = fs::remove_file(file);
        }
        self.is_over = true;
        if self.asked.is_some() {
            return TrialEvent::Ended(TrialEnding::Stopped);
        }
        let said = self.last_words().unwrap_or_default();
        let failure = if status.signal().is_none() && is_disk_full(&self.delivery.log) {
            let why = format!("the disk of {} is full", self.delivery.log.display());
            MeasurementFailure::new(InvalidReason::DiskFull, why)
        } else {
            let why = format!("the process of the trial was lost ({why}){said}");
            MeasurementFailure::new(InvalidReason::RuntimeLost, why)
        };
        TrialEvent::Ended(TrialEnding::Measured(Box::new(Evidence::failed(failure))))
    }

    fn last_words(&mut self) -> Option<String> {
        let mut bytes = vec![0; LAST_WORDS];
        let length = self.child.stderr.as_mut()?.read(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let line = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(format!("; it said: {}", indented_line(line)))
    }

    fn kill_process(&mut self) -> ExitStatus {
        // Already ended: then there is nothing to kill, only to reap.
        let _ = self.child.kill();
        self.child.wait().unwrap_or_default()
    }

    /// Kills it, and removes what it had no time to remove. Its processes die with it.
    fn clean_up(&mut self) {
        self.kill_process();
        // What cannot be removed now is found by the sweep of the next start.
        let _ = self.site.sweep_leftovers();
    }
}

fn deliver(piece: &FileChunk, delivery: &Delivery) -> Result<(), LogError> {
    let ChunkContent::File(number) = piece.content else {
        return Ok(());
    };
    let Some(path) = delivery.files.get(usize::from(number)) else {
        return Ok(());
    };
    let mut options = File::options();
    let open = options.append(true).create(true).mode(0o600).open(path);
    Ok(open?.write_all(&piece.unpacked_bytes()?)?)
}

fn is_disk_full(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM)
}
