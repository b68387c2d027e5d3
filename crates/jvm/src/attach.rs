//! Commands to a running HotSpot JVM without a JDK: the attach protocol.
//!
//! Owns the handshake (a file and SIGQUIT make the JVM open a socket) and protocol version 1. Never
//! uses root's rights in a directory of the JVM's user, and never signals another process.
//! Works across PID and mount namespaces, as root or as the JVM's user. Facts: HotSpot's
//! attachListener_posix.cpp; measured on JDK 17 and 25 (first attach 90-195 ms, then 0.4-15 ms).

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use loadline_sys::{NONBLOCKING_SOCKET, O_PATH};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, unlinkat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, socket_with};

use crate::process::{JvmProcess, ProcessError};
use crate::rights::with_rights_of;

/// The JVM answers within milliseconds unless it has no CPU.
const SOCKET_WAIT: Duration = Duration::from_secs(6);

/// A command that takes longer has hung: the JVM needs a safepoint and does not reach it.
const REPLY_WAIT: Duration = Duration::from_secs(30);

/// A thread dump of 10 000 threads has less.
const REPLY_LIMIT: usize = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// It is no JVM, or a JVM at the very begin of its start: the handshake would kill it.
    #[error("process {pid} has no handler for SIGQUIT")]
    NoHandler { pid: u32 },
    #[error("attach to process {pid}: {path}: {source}")]
    File {
        pid: u32,
        path: PathBuf,
        source: io::Error,
    },
    #[error("attach to process {pid}: no answer within {} s: /tmp/.java_pid*: {last}", SOCKET_WAIT.as_secs())]
    NoSocket { pid: u32, last: io::Error },
    #[error("process {pid}: `{command}` failed: {reply}")]
    Refused {
        pid: u32,
        command: String,
        reply: String,
    },
}

impl AttachError {
    pub fn attach_hint(&self) -> Option<&'static str> {
        match self {
            Self::Process(error) => error.process_hint(),
            Self::NoHandler { .. } => Some(
                "it is no JVM, runs with -Xrs, or has only just started; try again when it is ready",
            ),
            Self::File { .. } => Some(
                "run as root or as the JVM's user, who must be able to make files in one of its working directory and /tmp",
            ),
            Self::NoSocket { .. } => {
                Some("it runs with -XX:+DisableAttachMechanism, is OpenJ9, or gets no CPU")
            }
            Self::Refused { .. } => None,
        }
    }
}

/// Runs a diagnostic command, as `jcmd PID COMMAND` does: `VM.native_memory summary scale=B`,
/// `Thread.print`, `GC.heap_info`, `VM.command_line`. Returns what it prints.
/// Errors: When the process is no JVM that answers, or the command fails.
pub fn run_jcmd(pid: u32, command: &str) -> Result<String, AttachError> {
    let mut socket = connect_to_jvm(pid)?;
    // Protocol 1: version, operation, always three arguments, each ended by NUL.
    let request = format!("1\0jcmd\0{}\0\0\0", command.replace('\0', " "));
    let asked = socket.write_all(request.as_bytes());
    let reply = asked.and_then(|()| read_reply(&mut socket, REPLY_WAIT));
    let reply = reply.map_err(file_error(pid, format!("attach socket of process {pid}")))?;
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

fn file_error(pid: u32, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> AttachError {
    let path = path.into();
    move |source| AttachError::File { pid, path, source }
}

/// Reads to the end, with one time limit for everything: an occasional byte is no answer.
fn read_reply(socket: &mut UnixStream, within: Duration) -> io::Result<Vec<u8>> {
    let end = Instant::now() + within;
    let (mut reply, mut block) = (Vec::new(), vec![0; 64 << 10]);
    while reply.len() < REPLY_LIMIT {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut block)? {
            0 => break,
            count => reply.extend_from_slice(&block[..count]),
        }
    }
    Ok(reply)
}

/// Connects to the JVM's socket, after a handshake if there is none yet. The directories are the
/// JVM's, and their entries are untrusted: loadline opens them with its own rights and modifies
/// them with that user's.
fn connect_to_jvm(pid: u32) -> Result<UnixStream, AttachError> {
    let process = JvmProcess::for_pid(pid)?;
    let open = |path: &str, directory: io::Result<OwnedFd>| {
        let path = PathBuf::from(format!("/proc/{pid}/{path}"));
        let directory = directory.map_err(file_error(pid, &path))?;
        Ok::<_, AttachError>(JvmDirectory { path, directory })
    };
    let here = open("cwd", process.working_directory())?;
    let tmp = open("root/tmp", process.temporary_directory())?;
    let connected = with_rights_of(process.uid, process.gid, || {
        // A socket without a listener is left over from a JVM that was killed.
        match tmp.connect_socket(&process) {
            Ok(stream) => Ok(stream),
            Err(_) => open_attach_socket(&process, &here, &tmp),
        }
    });
    connected.map_err(file_error(pid, &here.path))?
}

fn open_attach_socket(
    process: &JvmProcess,
    here: &JvmDirectory,
    tmp: &JvmDirectory,
) -> Result<UnixStream, AttachError> {
    let pid = process.pid;
    if !process.catches_quit {
        return Err(AttachError::NoHandler { pid });
    }
    // Where HotSpot looks first, then where it looks else.
    let trigger = here.create_trigger_file(process);
    let trigger = trigger.or_else(|_| tmp.create_trigger_file(process));
    let _trigger = trigger.map_err(file_error(pid, &tmp.path))?;
    let signalled = process.send_sigquit();
    signalled.map_err(file_error(pid, format!("/proc/{pid}")))?;
    let begin = Instant::now();
    let mut pause = Duration::from_millis(5);
    loop {
        match tmp.connect_socket(process) {
            Ok(stream) => return Ok(stream),
            Err(last) if begin.elapsed() > SOCKET_WAIT => {
                return Err(AttachError::NoSocket { pid, last });
            }
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

struct JvmDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

impl JvmDirectory {
    fn connect_socket(&self, process: &JvmProcess) -> io::Result<UnixStream> {
        let name = format!(".java_pid{}", process.inner_pid);
        let flags = O_PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::empty())?;
        let status = fstat(&file)?;
        let is_socket = FileType::from_raw_mode(status.st_mode) == FileType::Socket;
        if !is_socket || status.st_uid != process.uid {
            return Err(io::Error::other("it is no socket of the JVM's user"));
        }
        // Not blocking: a listener that takes no connection would hold this one for ever.
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = socket_with(family, kind, NONBLOCKING_SOCKET, None)?;
        // By descriptor: the name may stand for another file by now.
        let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        rustix::net::connect(&socket, &address)?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(REPLY_WAIT))?;
        Ok(stream)
    }

    /// Makes the file that tells the JVM that SIGQUIT means attach, not a thread dump. It belongs
    /// to the JVM's user because that user makes it; HotSpot accepts it from no other user but
    /// root.
    fn create_trigger_file(&self, process: &JvmProcess) -> io::Result<TriggerFile<'_>> {
        let name = format!(".attach_pid{}", process.inner_pid);
        // Left by a killed jcmd, or planted: a name, removed with its user's rights.
        let _ = unlinkat(&self.directory, &name, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        openat(&self.directory, &name, flags | OFlags::CLOEXEC, mode)?;
        Ok(TriggerFile { place: self, name })
    }
}

struct TriggerFile<'a> {
    place: &'a JvmDirectory,
    name: String,
}

impl Drop for TriggerFile<'_> {
    fn drop(&mut self) {
        // Whoever removed it first: it is gone.
        let _ = unlinkat(&self.place.directory, &self.name, AtFlags::empty());
    }
}
