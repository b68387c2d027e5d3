//! The container of loadline's own: namespaces, a cgroup, an init, and nothing left behind.
//!
//! Owns the order in which it is made. Each thing made is owned by a value that removes it when it is
//! dropped: a step that fails leaves nothing of those before. Who starts whom:
//!
//! ```text
//! trial-part ── holder ── init (PID 1) ── application     the cgroup holds the application only
//! ```
//! Facts and measurements behind the design: ARCHITECTURE.md, "Containment".

pub mod init;
mod protocol;
mod reach;
mod sandbox;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_cgroup::{CgroupError, Group, GroupName, Layout, Sample};
use rustix::process::Signal;

use crate::container::{Container, Frame, Namespace, Net, SHM, Told};
use crate::group::TrialGroup;
use crate::halt::{self, Halt, refused};
use crate::pagecache;
use crate::program::Program;
use crate::scratch::{self, Scratch};
use protocol::{Event, Order, View};
use reach::{Needs, Unreachable};
use sandbox::{Sandbox, SandboxError};

/// How long dying may take once killed; milliseconds as a rule.
const END: Duration = Duration::from_secs(10);

/// What one of these containers is made of.
pub struct Wanted<'a> {
    /// What every container is made of.
    pub frame: &'a Frame<'a>,
    /// What runs.
    pub program: &'a Program,
    /// CPUs it may run on.
    pub cpus: &'a [u32],
    /// Directories of the machine that it sees as empty ones of its own.
    pub directories: &'a [PathBuf],
    /// Directories that it must not see.
    pub hidden: &'a [PathBuf],
    /// The program with the subcommand `init`; loadline itself.
    pub loadline: &'a Path,
}

/// One application in namespaces and a cgroup. The fields are dropped in order: processes before
/// their group, the group before their files.
pub struct Own {
    sandbox: Sandbox,
    group: TrialGroup,
    scratch: Scratch,
    network: Net,
    jdk: Option<PathBuf>,
}

impl Own {
    /// Makes everything but the application's process. Its output goes to `output`; remarks for the
    /// record go to `warnings`.
    ///
    /// # Errors
    /// [`Halt::Refused`] when this machine cannot; what was made is gone again.
    pub fn prepare(
        layout: &Layout,
        wanted: &Wanted<'_>,
        output: PipeWriter,
        tell: impl Fn(Told) + Send + 'static,
        warnings: &mut Vec<String>,
    ) -> Result<Self, Halt> {
        let (program, frame) = (wanted.program, wanted.frame);
        let needs = Needs::of(program).map_err(|error| unreachable(&error))?;
        let name = GroupName::new(Path::new("/proc"), frame.name)
            .map_err(|error| halt::cgroup("naming the trial's cgroup", &error))?;
        let scratch = Scratch::make(frame.scratch, &name).map_err(scratch::refused)?;
        let named = scratch.named(program.uid, program.gid);
        let named = named.map_err(scratch::refused)?;
        let own = scratch.directories(wanted.directories, program.uid, program.gid);
        let own = own.map_err(scratch::refused)?;
        let hosts = scratch.hosts(frame.hosts).map_err(scratch::refused)?;
        let replaced = scratch.replaced().into_iter().chain(named).chain(hosts);
        let replaced = replaced.chain(own);
        let replaced = replaced.collect();
        let services = reach::SERVICES.iter().map(PathBuf::from);
        let hidden = services.chain(wanted.hidden.iter().cloned());
        let view = reach::view(program, &needs, replaced, hidden, warnings)
            .map_err(|error| unreachable(&error))?;
        if frame.evict_page_cache {
            let roots = needs.roots();
            roots
                .iter()
                .for_each(|root| pagecache::evict(root, pagecache::NEAR));
        }
        let making = |error| halt::cgroup("making the trial's cgroup with its limits", &error);
        let group = TrialGroup::make(layout, &name.to_string(), frame.limits).map_err(making)?;
        let order = order(wanted, &needs, &group, view);
        let tell = move |event: Option<Event>| told(event).into_iter().for_each(&tell);
        let sandbox = Sandbox::open(wanted.loadline, &order, frame.name, output, tell);
        Ok(Self {
            sandbox: sandbox.map_err(sandbox_refused)?,
            group,
            scratch,
            network: frame.network.clone(),
            jdk: needs.jdk,
        })
    }
}

impl Container for Own {
    fn start(&mut self) -> Result<(), Halt> {
        let started = self.sandbox.start();
        started.map_err(halt::step("starting the application"))
    }

    fn signal(&mut self, signal: Signal) {
        self.sandbox.signal(signal);
    }

    fn group(&self) -> &Group {
        self.group.group()
    }

    fn kill(&mut self) -> Result<(), CgroupError> {
        self.group.group().kill(END).map(drop)
    }

    fn end(&mut self) -> bool {
        self.sandbox.end(END)
    }

    fn remove(&mut self) -> Result<(), CgroupError> {
        self.group.remove()
    }

    fn at_exec(&self) -> Option<Sample> {
        None
    }

    fn last(&self) -> Option<Sample> {
        self.group.group().read().ok()
    }

    fn network(&self) -> Net {
        match &self.network {
            Net::Own => Net::Of(Namespace {
                path: self.sandbox.network_path(),
                container: None,
            }),
            other => other.clone(),
        }
    }

    fn open(&self, seen: &Path) -> io::Result<File> {
        self.scratch.open(seen)
    }

    fn open_only(&self, seen: &Path) -> io::Result<(OsString, File)> {
        self.scratch.open_only(seen)
    }

    fn places(&self) -> Vec<PathBuf> {
        vec![self.scratch.private()]
    }

    fn jdk(&self) -> Option<&Path> {
        self.jdk.as_deref()
    }
}

/// Tries what a container is made of, without an application.
///
/// # Errors
/// What does not work, in words.
pub fn attempt(loadline: &Path) -> Result<(), String> {
    let program = Program {
        command: vec!["/bin/true".to_owned()],
        directory: PathBuf::from("/"),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        ..Program::default()
    };
    let order = Order {
        open_files: 1024,
        network: Net::Own,
        ..bare(&program, View::default())
    };
    let (_reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let opened = Sandbox::open(loadline, &order, "preflight", writer, |_| {});
    let mut sandbox = opened.map_err(|error| error.to_string())?;
    let ended = sandbox.end(Duration::from_secs(5));
    ended
        .then_some(())
        .ok_or_else(|| "they did not end within 5 s".to_owned())
}

fn order(wanted: &Wanted<'_>, needs: &Needs, group: &TrialGroup, view: View) -> Order {
    let program = needs.program.display().to_string();
    let arguments = wanted.program.command.iter().skip(1).cloned();
    Order {
        command: [program].into_iter().chain(arguments).collect(),
        env: wanted.program.env.clone(),
        join: group.group().join_files(),
        cpus: wanted.cpus.to_vec(),
        open_files: wanted.frame.open_files,
        shm_bytes: wanted.frame.shm.as_bytes(),
        network: wanted.frame.network.clone(),
        ..bare(wanted.program, view)
    }
}

/// An order without limits and environment.
fn bare(program: &Program, view: View) -> Order {
    Order {
        command: program.command.clone(),
        env: BTreeMap::new(),
        directory: program.directory.clone(),
        uid: program.uid,
        gid: program.gid,
        join: Vec::new(),
        cpus: Vec::new(),
        open_files: 0,
        shm_bytes: SHM.as_bytes(),
        network: Net::Host,
        keeps_groups: !rustix::process::geteuid().is_root(),
        view,
    }
}

/// What the trial wants to know of init's events; `None` is the end of all.
fn told(event: Option<Event>) -> Option<Told> {
    match event {
        None => Some(Told::Gone),
        Some(Event::Exec { at_ns }) => Some(Told::Exec { at_ns }),
        Some(Event::NotExecuted) => Some(Told::NotExecuted),
        Some(Event::Exited { code, signal, .. }) => Some(Told::Exited { code, signal }),
        Some(Event::Failed { detail }) => Some(Told::Failed { detail }),
        Some(Event::Held { .. } | Event::Prepared) => None,
    }
}

fn unreachable(error: &Unreachable) -> Halt {
    let hint = match error.access {
        "found" => "check the path; relative paths start in the working directory".to_owned(),
        _ => format!(
            "make it readable for everyone (chmod a+rX {}), or run the application as another user: --user",
            error.path.display()
        ),
    };
    refused("preparing the application", error, &hint)
}

fn sandbox_refused(error: SandboxError) -> Halt {
    let hint = "`loadline doctor` shows which namespaces this machine allows";
    refused("making the trial's namespaces", error, hint)
}
