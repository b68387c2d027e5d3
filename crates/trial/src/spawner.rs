//! Starts the processes of trials from one thread that lives as long as loadline.
//!
//! Why: the kernel sends PR_SET_PDEATHSIG when the *thread* that started a process ends. Started
//! from a thread of a pool, a trial would die in the middle. Facts: PR_SET_PDEATHSIG(2const).

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

struct SpawnJob {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Starts a process that is killed when loadline ends, if it asks for that.
///
/// # Errors
/// What [`Command::spawn`] says.
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
    // If the thread cannot start, the queue is dropped with the closure and `spawn` says so.
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
