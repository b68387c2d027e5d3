//! One call of loadline: how it is put together, watched while it runs, and how it ended.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::Lab;

/// A call that takes longer than this hangs. It may have to wait for another loadline.
const LONGEST: Duration = Duration::from_secs(600);

/// How often silent state is polled.
pub const POLL: Duration = Duration::from_millis(5);

/// Where the machine's lock names its holder. Tests run as root, which uses this place.
const LOCK: &str = "/run/lock/loadline.lock";

/// A call that is being put together.
pub struct Call(Command);

impl Call {
    pub fn new(command: Command) -> Self {
        Self(command)
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.0.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Calls it in this directory, not in the lab's.
    pub fn in_directory(mut self, directory: &std::path::Path) -> Self {
        self.0.current_dir(directory);
        self
    }

    /// `-- COMMAND` with an application of the zoo.
    pub fn zoo(self, lab: &Lab, arguments: &[&str]) -> Self {
        let mut call = self.arg("--");
        call.0.args(lab.application(arguments));
        call
    }

    /// Runs it to its end.
    pub fn into_end(self) -> Ended {
        self.start().end()
    }

    pub fn start(self) -> Running {
        self.start_with(Stdio::piped())
    }

    /// Starts it with this standard output.
    pub fn start_with(mut self, stdout: Stdio) -> Running {
        self.0
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        let mut child = self.0.spawn().expect("it starts");
        Running {
            stdout: child.stdout.take().map(Collected::start),
            stderr: Collected::start(child.stderr.take().expect("a pipe")),
            child,
            line: format!("{:?}", self.0),
        }
    }
}

/// What a thread has read so far.
struct Collected {
    text: Arc<Mutex<String>>,
    thread: JoinHandle<()>,
}

impl Collected {
    fn start(mut from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&text);
        let read = move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let piece = String::from_utf8_lossy(&buffer[..count]).into_owned();
                into.lock().expect("no panic holds it").push_str(&piece);
            }
        };
        Self {
            text,
            thread: std::thread::spawn(read),
        }
    }

    fn so_far(&self) -> String {
        self.text.lock().expect("no panic holds it").clone()
    }

    fn all(self) -> String {
        self.thread.join().expect("it only reads");
        Arc::into_inner(self.text)
            .and_then(|text| text.into_inner().ok())
            .unwrap_or_default()
    }
}

/// A loadline that runs.
pub struct Running {
    child: Child,
    stdout: Option<Collected>,
    stderr: Collected,
    line: String,
}

impl Running {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is a child").is_some()
    }

    /// Waits until `wanted` holds for standard error so far.
    #[track_caller]
    pub fn until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !wanted(&self.stderr.so_far()) {
            let gone = self.has_ended() && !wanted(&self.stderr.so_far());
            assert!(
                !gone && begin.elapsed() < LONGEST,
                "{} never came to this: {what}\n{}",
                self.line,
                self.stderr.so_far()
            );
            std::thread::sleep(POLL);
        }
    }

    /// Waits until `wanted` holds for standard error so far, or it has ended.
    pub fn until_or_ended(&mut self, wanted: impl Fn(&str) -> bool) {
        while !wanted(&self.stderr.so_far()) && !self.has_ended() {
            std::thread::sleep(POLL);
        }
    }

    /// Waits until it has the machine for itself, or has ended.
    pub fn until_it_measures(&mut self) {
        let holder = format!("pid {}:", self.id());
        let has_lock = || std::fs::read_to_string(LOCK).is_ok_and(|t| t.starts_with(&holder));
        while !has_lock() && !self.has_ended() {
            std::thread::sleep(POLL);
        }
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("it runs");
    }

    /// Ends it as no program can prevent.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is a child");
    }

    /// Waits for its end.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        let begin = Instant::now();
        while !self.has_ended() {
            if begin.elapsed() > LONGEST {
                // The waiting assertion shows its output so far.
                let _ = self.child.kill();
            }
            std::thread::sleep(POLL);
        }
        let status = self.child.wait().expect("it is a child");
        Ended::new(status, self.stdout, self.stderr, self.line)
    }
}

/// How a call ended, and everything it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    line: String,
}

impl Ended {
    fn new(status: ExitStatus, stdout: Option<Collected>, stderr: Collected, line: String) -> Self {
        Self {
            code: status.code(),
            signal: status.signal(),
            stdout: stdout.map(Collected::all).unwrap_or_default(),
            stderr: stderr.all(),
            line,
        }
    }

    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "the exit code. {self}");
        let is_panic = self.stderr.contains("panicked");
        assert!(!is_panic, "it must not panic. {self}");
        self
    }

    /// Standard error contains these texts.
    #[track_caller]
    pub fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}`. {self}");
        }
        self
    }

    /// Standard output contains these texts.
    #[track_caller]
    pub fn prints(self, texts: &[&str]) -> Self {
        for text in texts {
            // Terminal text is wrapped; where is of no interest.
            let words: Vec<&str> = self.stdout.split_whitespace().collect();
            assert!(words.join(" ").contains(text), "no `{text}`. {self}");
        }
        self
    }

    /// Standard output, parsed.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("no JSON: {error}. {self}"))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            line,
            code,
            signal,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "{line}\nended with code {code:?}, signal {signal:?}\n--- stdout\n{stdout}--- stderr\n{stderr}---"
        )
    }
}
