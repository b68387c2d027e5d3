//! Starts the processes of trials from one thread that lives as long as loadline.
//!
//! Why: the kernel sends PR_SET_PDEATHSIG when the *thread* that started a process ends. Started
//! from a thread of a pool, a trial would die in the middle. Facts: PR_SET_PDEATHSIG(2const).

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use loadline_sys::set_parent_process_death_signal;
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;

/// Most of a complaint that is read, in bytes.
const COMPLAINT: u64 = 4096;

struct SpawnJob {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// A process that only loadline starts has no loadline above it.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    #[error(
        "`loadline trial-part` is a part of loadline: it takes an order on standard input and writes its events to a file"
    )]
    NotForPeople,
    #[error("the loadline that started this trial has ended")]
    Orphan,
    #[error("asking the kernel for the end of the parent: {0}")]
    Signal(#[source] io::Error),
}

/// A part of loadline, without environment and with pipes. Its process group is separate, because a Ctrl-C
/// is for loadline, which tells its parts.
pub fn part_command(program: &Path, part: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(part).env_clear().current_dir("/");
    command.process_group(0).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The answers of a part, a line of JSON each, until its output ends.
pub fn read_answers<T: DeserializeOwned + Send + 'static>(
    child: &mut Child,
    thread: &str,
) -> io::Result<Receiver<T>> {
    let (told, answers) = channel();
    if let Some(stdout) = child.stdout.take() {
        let read = move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let all = lines.map_while(|line| serde_json::from_str(&line).ok());
            // The asker waits no longer.
            all.for_each(|answer| drop(told.send(answer)));
        };
        let thread = std::thread::Builder::new().name(thread.to_owned());
        thread.spawn(read)?;
    }
    Ok(answers)
}

/// A child that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct GuardedChild(pub(crate) Child);

impl Drop for GuardedChild {
    fn drop(&mut self) {
        // Already ended: then there is nothing to kill, only to reap.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a part; says how it ended, and the begin of what it said to its standard error.
pub fn kill_part(child: &mut Child) -> (String, String) {
    let _ = child.kill();
    let how = child.wait();
    let how = how.map_or_else(|error| error.to_string(), |status| status.to_string());
    (how, read_complaint(child.stderr.take()))
}

/// The begin of a part's complaint.
pub(crate) fn read_complaint(stderr: Option<impl Read>) -> String {
    let mut said = Vec::new();
    // What cannot be read is not said.
    let _ = stderr.map(|stderr| stderr.take(COMPLAINT).read_to_end(&mut said));
    String::from_utf8_lossy(&said).trim().to_owned()
}

pub fn spawn_command(command: Command) -> io::Result<Child> {
    static JOBS: OnceLock<Sender<SpawnJob>> = OnceLock::new();
    let (reply, answer) = channel();
    JOBS.get_or_init(start_spawner)
        .send(SpawnJob { command, reply })
        .map_err(|_| spawner_gone())?;
    answer.recv().map_err(|_| spawner_gone())?
}

fn start_spawner() -> Sender<SpawnJob> {
    let (jobs, queue) = channel::<SpawnJob>();
    // If the thread cannot start, the queue is dropped with the closure and `spawn` reports it.
    let _ = std::thread::Builder::new()
        .name("spawner".to_owned())
        .spawn(move || {
            // The sender is never dropped, so this ends with the process.
            for mut job in queue {
                let _ = job.reply.send(job.command.spawn());
            }
        });
    jobs
}

fn spawner_gone() -> io::Error {
    io::Error::other("the thread that starts processes is not there")
}

/// From here on this process cannot outlive the thread that started it; if that has ended before,
/// this ends now.
pub(crate) fn die_with(parent: Option<i32>) -> Result<(), ParentError> {
    let Some(parent) = parent else {
        return Err(ParentError::NotForPeople);
    };
    let set = set_parent_process_death_signal(Some(Signal::KILL));
    set.map_err(|errno| ParentError::Signal(errno.into()))?;
    match rustix::process::getppid().map(Pid::as_raw_pid) {
        Some(now) if now == parent => Ok(()),
        _ => Err(ParentError::Orphan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_and_a_missing_one_is_an_error() {
        let mut child = spawn_command(Command::new("true")).expect("true is everywhere");
        assert!(child.wait().is_ok_and(|status| status.success()));
        let missing = spawn_command(Command::new("/nonexistent/program"));
        assert_eq!(
            missing.map(drop).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }
}
