//! Commands to a running HotSpot JVM without a JDK: the attach protocol.
//!
//! Owns the handshake (a file and SIGQUIT make the JVM open a socket) and protocol version 1.
//! Works across PID and mount namespaces, as root or as the JVM's user. Facts: HotSpot's
//! attachListener_posix.cpp; measured on JDK 17 and 25 (first attach 90-195 ms, then 0.4-15 ms).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::process::{Process, ProcessError};

/// The JVM answers within milliseconds unless it has no CPU.
const SOCKET_WAIT: Duration = Duration::from_secs(6);

/// A command that takes longer has hung: the JVM needs a safepoint and does not reach it.
const REPLY_WAIT: Duration = Duration::from_secs(30);

/// A thread dump of 10 000 threads has less.
const REPLY_LIMIT: u64 = 64 << 20;

/// A JVM that does not answer.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// /proc does not tell about it.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It is no JVM, or one that has only begun to start: the handshake would kill it.
    #[error(
        "process {pid} has no handler for SIGQUIT\nhint: it is no JVM, runs with -Xrs, or has only just started; try again when it is ready"
    )]
    NoHandler {
        /// The process.
        pid: u32,
    },
    /// A step of the handshake failed.
    #[error("attach to process {pid}: {path}: {source}")]
    File {
        /// The process.
        pid: u32,
        /// The file or socket.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It does not open its socket.
    #[error("attach to process {pid}: no answer within {} s\nhint: it runs with -XX:+DisableAttachMechanism, is OpenJ9, or gets no CPU", SOCKET_WAIT.as_secs())]
    NoSocket {
        /// The process.
        pid: u32,
    },
    /// It refused the command.
    #[error("process {pid}: `{command}` failed: {reply}")]
    Refused {
        /// The process.
        pid: u32,
        /// The command.
        command: String,
        /// What it said.
        reply: String,
    },
}

/// Runs a diagnostic command, as `jcmd PID COMMAND` does: `VM.native_memory summary scale=B`,
/// `Thread.print`, `GC.heap_info`, `VM.command_line`. Returns what it prints.
///
/// # Errors
/// When the process is no JVM that answers, or the command fails.
pub fn jcmd(pid: u32, command: &str) -> Result<String, AttachError> {
    let mut socket = connect(pid)?;
    let path = || PathBuf::from(format!("attach socket of process {pid}"));
    let file = |source| AttachError::File {
        pid,
        path: path(),
        source,
    };
    // Protocol 1: version, operation, always three arguments, each ended by NUL.
    let request = format!("1\0jcmd\0{}\0\0\0", command.replace('\0', " "));
    socket.write_all(request.as_bytes()).map_err(file)?;
    let mut reply = Vec::new();
    (&mut socket)
        .take(REPLY_LIMIT)
        .read_to_end(&mut reply)
        .map_err(file)?;
    let reply = String::from_utf8_lossy(&reply);
    let (code, body) = reply.split_once('\n').unwrap_or((&reply, ""));
    match code.trim() {
        "0" => Ok(body.to_owned()),
        _ => Err(AttachError::Refused {
            pid,
            command: command.to_owned(),
            reply: body.trim().to_owned(),
        }),
    }
}

/// Connects to the JVM's socket, after the handshake where there is none yet.
fn connect(pid: u32) -> Result<UnixStream, AttachError> {
    let process = Process::of(pid)?;
    let socket = process
        .temporary_directory()
        .join(format!(".java_pid{}", process.inner_pid));
    // A socket without a listener is left over from a JVM that was killed.
    let stream = match UnixStream::connect(&socket) {
        Ok(stream) => stream,
        Err(_) => {
            let _trigger = Trigger::make(&process)?;
            wait_for(&process, &socket)?
        }
    };
    let timeout = stream
        .set_read_timeout(Some(REPLY_WAIT))
        .and_then(|()| stream.set_write_timeout(Some(REPLY_WAIT)));
    timeout.map_err(|source| AttachError::File {
        pid,
        path: socket,
        source,
    })?;
    Ok(stream)
}

/// The file that tells the JVM that SIGQUIT means attach, not a thread dump. Removed when dropped.
struct Trigger(PathBuf);

impl Trigger {
    /// In the working directory, where HotSpot looks first, else in /tmp; owned by the JVM's user,
    /// because HotSpot takes it from nobody else.
    fn make(process: &Process) -> Result<Self, AttachError> {
        if !process.catches_quit {
            return Err(AttachError::NoHandler { pid: process.pid });
        }
        let name = format!(".attach_pid{}", process.inner_pid);
        let places = [process.working_directory(), process.temporary_directory()];
        let mut failure = None;
        for path in places.map(|place| place.join(&name)) {
            match Self::create(&path, process) {
                Ok(trigger) => return Ok(trigger),
                Err(source) => failure = Some((path, source)),
            }
        }
        let (path, source) =
            failure.unwrap_or_else(|| (PathBuf::new(), io::Error::other("no place")));
        Err(AttachError::File {
            pid: process.pid,
            path,
            source,
        })
    }

    fn create(path: &Path, process: &Process) -> io::Result<Self> {
        std::fs::File::create(path)?;
        let trigger = Self(path.to_owned());
        std::os::unix::fs::chown(path, Some(process.uid), Some(process.gid))?;
        Ok(trigger)
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // Whoever removed it first: it is gone.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Sends SIGQUIT and waits until the socket can be connected.
fn wait_for(process: &Process, socket: &Path) -> Result<UnixStream, AttachError> {
    let pid = process.pid;
    let file = |source: io::Error| AttachError::File {
        pid,
        path: PathBuf::from(format!("/proc/{pid}")),
        source,
    };
    let raw = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let target = raw.ok_or_else(|| file(io::Error::from(io::ErrorKind::InvalidInput)))?;
    rustix::process::kill_process(target, rustix::process::Signal::QUIT)
        .map_err(|errno| file(errno.into()))?;
    let begin = Instant::now();
    let mut pause = Duration::from_millis(5);
    while begin.elapsed() < SOCKET_WAIT {
        if let Ok(stream) = UnixStream::connect(socket) {
            return Ok(stream);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
    Err(AttachError::NoSocket { pid })
}
