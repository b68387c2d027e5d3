//! The program of an order, as the modules that look at commands need it, and short commands next to it.
//!
//! Owns how such a command gets the program's account, and how its process group is ended. Starts no application.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use loadline_protocol::{Account, AppSpec, TrialOrder};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

const TICK: Duration = Duration::from_millis(20);

pub fn is_script(path: &Path) -> bool {
    let mut begin = [0; 2];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"#!"
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramSpec {
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    pub uid: u32,
    pub gid: u32,
}

impl ProgramSpec {
    pub fn from_order(order: &TrialOrder) -> Self {
        Self::from_app(&order.app, order.account)
    }

    /// Of an application or a dependency that runs as this account. Of an image it is what runs in
    /// its container, as far as the order tells.
    pub fn from_app(app: &AppSpec, account: Account) -> Self {
        let Account { uid, gid } = account;
        Self {
            command: app.command_line().to_vec(),
            env: app.app_environment().clone(),
            directory: match app {
                AppSpec::Command { directory, .. } => directory.clone(),
                AppSpec::Image(_) => PathBuf::from("/"),
            },
            uid,
            gid,
        }
    }

    /// A command in a separate process group, with this program's account and environment; `None`
    /// without words.
    pub(crate) fn side_command(&self, words: &[String]) -> Option<Command> {
        let (name, arguments) = words.split_first()?;
        let mut command = Command::new(name);
        command.args(arguments).current_dir(&self.directory);
        command.env_clear().envs(&self.env).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        if rustix::process::geteuid().is_root() {
            // Root's supplementary groups go with its id (std::process).
            command.uid(self.uid).gid(self.gid);
        }
        Some(command)
    }
}

/// Waits for the exit of a leader of a process group, and ends the rest of its group; `None` when the leader
/// had to be killed too.
pub(crate) fn end_within(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut has_ended = is_zombie(child)?;
    while !has_ended && begin.elapsed() < patience {
        std::thread::sleep(TICK);
        has_ended = is_zombie(child)?;
    }
    signal_group(child);
    let status = child.wait()?;
    Ok(has_ended.then_some(status))
}

/// Whether a child has ended. It stays a zombie: once it is waited for, its id may be another group's.
fn is_zombie(child: &Child) -> io::Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let Some(pid) = process_id(child) else {
        return Ok(false);
    };
    Ok(waitid(WaitId::Pid(pid), options)?.is_some())
}

fn process_id(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

fn signal_group(child: &Child) {
    if let Some(group) = process_id(child) {
        // It may have ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Kills the group of a child that was not waited for yet.
pub fn kill_group(child: &mut Child) {
    signal_group(child);
    let _ = child.wait();
}
