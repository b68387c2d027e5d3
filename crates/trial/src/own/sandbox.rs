//! loadline's end of the containment: starts the holder, speaks to init, ends both.
//!
//! Owns the process handle and the socket of one trial. What the other end does is in
//! [`super::init`]. When the last process of the trial is dead the socket closes: nothing is left.

use std::io::{self, BufReader, PipeWriter};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::protocol::{
    InitCommand, InitEvent, InitOrder, ProtocolError, receive_message, send_message,
};
use crate::container::ContainerEvent;
use crate::spawner;

/// How long namespaces and mounts may take; milliseconds as a rule.
const PREPARE: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("{step}: {source}")]
    System { step: String, source: io::Error },
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    Stage(String),
    #[error("the process that holds the trial's namespaces ended at once")]
    Silent,
}

#[derive(Debug)]
pub struct Sandbox {
    holder: Child,
    socket: UnixStream,
    init: i32,
}

impl Sandbox {
    /// Makes the namespaces and mounts. `output` becomes the application's output; each later event
    /// goes to `tell` from a separate thread, `Gone` when every process of the trial is dead.
    /// Errors: When a stage fails; nothing is left behind.
    pub fn open_sandbox(
        program: &Path,
        order: &InitOrder,
        trial: &str,
        output: PipeWriter,
        tell: impl Fn(ContainerEvent) + Send + 'static,
    ) -> Result<Self, SandboxError> {
        let (socket, theirs) = UnixStream::pair().map_err(system_error("making a socket pair"))?;
        let mut process = spawner::part_command(program, "init-part");
        process
            .env("LOADLINE_TRIAL", trial)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::from(output));
        let holder = spawner::spawn_command(process)
            .map_err(system_error("starting `loadline init-part`"))?;
        let mut sandbox = Self {
            holder,
            socket,
            init: 0,
        };
        let reader = sandbox.greet(order)?;
        std::thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || forward_events(reader, &tell))
            .map_err(system_error("starting a thread"))?;
        Ok(sandbox)
    }

    fn greet(&mut self, order: &InitOrder) -> Result<BufReader<UnixStream>, SandboxError> {
        let socket = self.socket.try_clone();
        let socket = socket.map_err(system_error("duplicating a socket"))?;
        let set = socket.set_read_timeout(Some(PREPARE));
        set.map_err(system_error("setting a timeout"))?;
        let mut reader = BufReader::new(socket);
        send_message(&mut self.socket, order)?;
        // Two processes write: either event may come first.
        let mut is_prepared = false;
        while self.init == 0 || !is_prepared {
            match receive_message(&mut reader)? {
                Some(InitEvent::Held { init }) => self.init = init,
                Some(InitEvent::Prepared) => is_prepared = true,
                Some(InitEvent::Application(ContainerEvent::Failed { detail })) => {
                    return Err(SandboxError::Stage(detail));
                }
                Some(InitEvent::Application(_)) => {}
                None => return Err(SandboxError::Silent),
            }
        }
        let set = self.socket.set_read_timeout(None);
        set.map_err(system_error("setting a timeout"))?;
        Ok(reader)
    }

    pub fn send_start(&mut self) -> Result<(), ProtocolError> {
        send_message(&mut self.socket, &InitCommand::Start)
    }

    pub fn send_signal(&mut self, signal: rustix::process::Signal) {
        let number = signal.as_raw();
        // A closed socket means that everything is dead: the signal has no target.
        let _ = send_message(&mut self.socket, &InitCommand::Signal { number });
    }

    pub fn network_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.init))
    }

    /// Ends init and with it every process in its namespace; waits until all are dead. `false` if
    /// one was left at the deadline.
    pub fn end_init(&mut self, deadline: Duration) -> bool {
        let start = Instant::now();
        // Init ends when its socket does. Already closed means already ended.
        let _ = self.socket.shutdown(Shutdown::Both);
        let mut pause = Duration::from_micros(200);
        loop {
            if let Ok(Some(_)) = self.holder.try_wait() {
                return true;
            }
            if start.elapsed() > deadline {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        // The holder waits for init, and init for processes that cannot die. PDEATHSIG kills init.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        false
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.end_init(Duration::from_secs(5));
    }
}

fn forward_events(mut reader: BufReader<UnixStream>, tell: &dyn Fn(ContainerEvent)) {
    // An unreadable message is as good as none: the other end is not of this version.
    while let Ok(Some(event)) = receive_message(&mut reader) {
        if let InitEvent::Application(event) = event {
            tell(event);
        }
    }
    tell(ContainerEvent::Gone);
}

fn system_error(step: &str) -> impl FnOnce(io::Error) -> SandboxError + '_ {
    move |source| SandboxError::System {
        step: step.to_owned(),
        source,
    }
}
