//! System calls: the launcher's one unsafe module.
//!
//! Owns exec, fork, signals, wait and the few facts about the host that no file tells. Every block
//! says why it is sound. Nothing here allocates between fork and exec.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use loadline_sizing::Bytes;
use loadline_sizing::limits::SystemCallFacts;

pub fn read_host() -> SystemCallFacts {
    SystemCallFacts {
        memory: physical_memory(),
        affinity: affinity_count(),
        address_space: rlimit(libc::RLIMIT_AS).map(Bytes::from_bytes),
        processes: rlimit(libc::RLIMIT_NPROC),
    }
}

fn physical_memory() -> Bytes {
    // SAFETY: sysconf reads no memory of ours.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    let product = u64::try_from(pages)
        .unwrap_or(0)
        .saturating_mul(u64::try_from(page).unwrap_or(0));
    Bytes::from_bytes(product)
}

/// Processors in the affinity mask; 1 when the kernel has more than 65,536.
fn affinity_count() -> u32 {
    let mut mask = [0u8; 8192];
    // SAFETY: the kernel writes at most `mask.len()` bytes into `mask`, which lives on.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            mask.len(),
            mask.as_mut_ptr(),
        )
    };
    let written = usize::try_from(written).unwrap_or(0).min(mask.len());
    mask[..written]
        .iter()
        .map(|byte| byte.count_ones())
        .sum::<u32>()
        .max(1)
}

#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

fn rlimit(resource: Resource) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: `limit` is a valid rlimit that the call fills.
    let result = unsafe { libc::getrlimit(resource, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

pub fn free_space(directory: &Path) -> Option<Bytes> {
    let path = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: statvfs is plain data; all zeroes is a valid value.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends in NUL and `stat` is a valid place to write to.
    let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) };
    (result == 0).then(|| Bytes::from_bytes(stat.f_bavail.saturating_mul(stat.f_frsize)))
}

pub fn is_writable(directory: &Path) -> bool {
    let Ok(path) = CString::new(directory.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: `path` ends in NUL.
    directory.is_dir() && unsafe { libc::access(path.as_ptr(), libc::W_OK | libc::X_OK) } == 0
}

pub fn is_pid_one() -> bool {
    // SAFETY: getpid reads no memory of ours.
    unsafe { libc::getpid() == 1 }
}

/// The command line as C's start-up gives it to `main`, which alone makes one. (Rust's own list of
/// arguments is empty behind a C `main` with musl.)
#[repr(transparent)]
pub struct CommandWords(*const *const libc::c_char);

impl CommandWords {
    /// Copies the words, the program's own name first.
    pub fn read(&self) -> Vec<OsString> {
        let word = |index| {
            // SAFETY: `main` got the array, which ends with a null pointer (C11, 5.1.2.2.1); no
            // place behind that one is read.
            let word = unsafe { *self.0.add(index) };
            // SAFETY: what stands before the null pointer are strings that end in NUL and live as
            // long as the process.
            (!word.is_null()).then(|| unsafe { CStr::from_ptr(word) })
        };
        let words = (0..).map_while(word);
        words
            .map(|word| OsString::from_vec(word.to_bytes().to_vec()))
            .collect()
    }
}

/// The signal mask and the SIGPIPE and SIGCHLD actions that the launcher was started with.
pub struct InheritedSignals {
    mask: libc::sigset_t,
    pipe: libc::sigaction,
    child: libc::sigaction,
}

impl InheritedSignals {
    /// Remembers them. Ignores SIGPIPE: a closed stderr must not end the start. Does not ignore
    /// SIGCHLD: the kernel would reap the application and say nothing, and init would wait forever.
    pub fn save_signals() -> Self {
        // SAFETY: sigset_t is plain data; all zeroes is a valid value.
        let mut mask: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are null or to a live value of the right type.
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask) };
        Self {
            mask,
            pipe: replace_action(libc::SIGPIPE, libc::SIG_IGN),
            child: replace_action(libc::SIGCHLD, libc::SIG_DFL),
        }
    }

    fn restore(&self) {
        // SAFETY: all were filled by the kernel in `take`.
        unsafe {
            libc::sigaction(libc::SIGPIPE, &raw const self.pipe, std::ptr::null_mut());
            libc::sigaction(libc::SIGCHLD, &raw const self.child, std::ptr::null_mut());
            libc::sigprocmask(
                libc::SIG_SETMASK,
                &raw const self.mask,
                std::ptr::null_mut(),
            );
        }
    }
}

/// Sets a signal's action to SIG_IGN or SIG_DFL and returns the old one.
fn replace_action(signal: i32, handler: libc::sighandler_t) -> libc::sigaction {
    // SAFETY: sigaction is plain data; all zeroes is a valid value (SIG_DFL, no flags).
    let (mut old, mut new): (libc::sigaction, libc::sigaction) =
        unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
    new.sa_sigaction = handler;
    // SAFETY: both pointers are to live values; SIG_IGN and SIG_DFL are valid actions.
    unsafe { libc::sigaction(signal, &raw const new, &raw mut old) };
    old
}

/// A program ready to start: everything exec needs, allocated beforehand.
pub struct ExecProgram {
    path: CString,
    _arguments: Vec<CString>,
    _environment: Vec<CString>,
    argument_pointers: Vec<*const libc::c_char>,
    environment_pointers: Vec<*const libc::c_char>,
}

impl ExecProgram {
    pub fn new(
        path: &Path,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
        let arguments = arguments.iter();
        let arguments: Vec<CString> = arguments.map(|a| text(a)).collect::<io::Result<_>>()?;
        let assignment = |(name, value): &(OsString, OsString)| {
            let mut bytes = name.as_bytes().to_vec();
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            text(&OsString::from_vec(bytes))
        };
        let environment = environment.iter();
        let environment: Vec<CString> = environment.map(assignment).collect::<io::Result<_>>()?;
        let pointers = |texts: &[CString]| {
            let ends = texts.iter().map(|text| text.as_ptr());
            ends.chain(std::iter::once(std::ptr::null()))
                .collect::<Vec<_>>()
        };
        Ok(Self {
            path: text(path.as_os_str())?,
            argument_pointers: pointers(&arguments),
            environment_pointers: pointers(&environment),
            _arguments: arguments,
            _environment: environment,
        })
    }

    /// Becomes the program, with the inherited signal state. Returns only the error; SIGPIPE is then
    /// ignored again, so that saying it to a closed stderr does not end the process.
    pub fn exec(&self, inherited: &InheritedSignals) -> io::Error {
        inherited.restore();
        // SAFETY: path and both arrays are NUL-terminated and owned by `self`, which lives on.
        unsafe {
            libc::execve(
                self.path.as_ptr(),
                self.argument_pointers.as_ptr(),
                self.environment_pointers.as_ptr(),
            );
        }
        let error = io::Error::last_os_error();
        replace_action(libc::SIGPIPE, libc::SIG_IGN);
        error
    }

    pub fn failure_text(&self, error: &io::Error) -> String {
        let path = self.path.to_string_lossy();
        let hint = match error.raw_os_error() {
            // The kernel says the same when the file is there and its ELF interpreter is not.
            Some(libc::ENOENT) => {
                "the file or its loader is missing (a glibc program in a musl image?)"
            }
            Some(libc::ENOEXEC) => "it is for another architecture, or no program",
            Some(libc::EACCES) => "it must be a file that this user may execute",
            Some(libc::EAGAIN) => "the limit of processes is reached (pids.max, RLIMIT_NPROC)",
            _ => "try it without loadline-launch",
        };
        format!("loadline-launch: {path} could not be started: {error}\nhint: {hint}\n")
    }
}

/// Exit code for a failed exec, as shells have it: 127 not found, 126 not executable.
pub fn exec_failure_code(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}

/// Makes this process the parent of orphans, as PID 1 is.
pub fn become_subreaper() {
    // SAFETY: prctl with integers only.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Asks for a signal when the parent dies; 0 is none. Source: prctl(2), PR_SET_PDEATHSIG.
pub fn signal_when_parent_dies(signal: i32) {
    // SAFETY: prctl with integers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) };
}

pub fn block_all_signals() {
    // SAFETY: `all` is a valid set to fill and to read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Waits for any blocked signal: its number, and whether a process sent it.
pub fn wait_signal() -> Option<(i32, bool)> {
    // SAFETY: both are plain data; the kernel fills `info`.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
        // Signals that processes send have SI_USER, SI_QUEUE or SI_TKILL: all at most 0.
        (signal > 0).then_some((signal, info.si_code <= 0))
    }
}

/// Starts the program as a child in its own process group, in the foreground of the terminal if
/// there is one, with the inherited signal state. It is killed when this process dies, however that
/// comes: `kill -9` of an init that is not PID 1 must not leave it. When exec fails, the child hands the sentence
/// about it to `say` and exits 126 or 127.
pub fn spawn(
    program: &ExecProgram,
    inherited: &InheritedSignals,
    say: fn(&str),
) -> io::Result<i32> {
    // SAFETY: this process has one thread, so the child may go on using everything.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: integers only. SIGTTOU is blocked here, so tcsetpgrp cannot stop the child.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                libc::setpgid(0, 0);
                if libc::isatty(0) == 1 {
                    libc::tcsetpgrp(0, libc::getpgrp());
                }
            }
            let error = program.exec(inherited);
            say(&program.failure_text(&error));
            // SAFETY: _exit ends the child without running the parent's clean-up.
            unsafe { libc::_exit(exec_failure_code(&error)) }
        }
        pid => {
            // Here too: a signal for the group may come before the child got that far.
            // SAFETY: integers only.
            unsafe { libc::setpgid(pid, pid) };
            Ok(pid)
        }
    }
}

pub fn send_signal(pid: i32, signal: i32) {
    // SAFETY: integers only.
    unsafe { libc::kill(pid, signal) };
}

pub fn reap() -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: `status` is a valid place to write to.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    };
    (pid > 0).then_some((pid, code))
}
