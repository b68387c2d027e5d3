//! loadline's own container: namespaces, a cgroup, an init, and nothing left behind.
//!
//! Owns the order of creation. Each object is owned by a value that removes it when dropped: a
//! failed step removes everything before it. The processes and their parents:
//!
//! ```text
//! trial-part ── holder ── init (PID 1) ── application     the cgroup holds the application only
//! ```
//!
//! Facts and measurements behind the design: ARCHITECTURE.md, "Containment".

#[cfg(target_os = "linux")]
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

use loadline_cgroup::{CgroupError, CgroupLayout, CgroupSample, ControlGroup, GroupName};
use rustix::process::Signal;

use crate::container::{
    AppContainer, ContainedProgram, ContainerEvent, ContainerNetwork, NetworkNamespace, SHM,
};
use crate::group::TrialGroup;
use crate::halt::{self, HaltReason, refusal_halt};
use crate::pagecache;
use crate::program::ProgramSpec;
use crate::scratch::Scratch;
use protocol::{FilesystemView, InitOrder};
use reach::{ProgramFiles, UnreachableFile};
use sandbox::{Sandbox, SandboxError};

/// What a build reads of the home directory, below it; it can write only what it has a copy of.
const MAVEN: &str = ".m2";

/// How long dying may take once killed; milliseconds as a rule.
const END: Duration = Duration::from_secs(10);

/// One application in namespaces and a cgroup. The fields are dropped in order: processes before
/// their group, the group before their files.
pub struct NamespaceContainer {
    sandbox: Sandbox,
    group: TrialGroup,
    scratch: Scratch,
    network: ContainerNetwork,
    jdk: Option<PathBuf>,
}

impl NamespaceContainer {
    /// Makes everything but the application's process. Its output goes to `output`; remarks for the
    /// record go to `warnings`. Errors: [`HaltReason::Refused`] when this machine cannot;
    /// everything made so far is removed.
    pub fn prepare_in_namespaces(
        layout: &CgroupLayout,
        wanted: &ContainedProgram<'_>,
        loadline: &Path,
        output: PipeWriter,
        tell: impl Fn(ContainerEvent) + Send + 'static,
        warnings: &mut Vec<String>,
    ) -> Result<Self, HaltReason> {
        let (program, frame) = (wanted.program, &wanted.frame);
        let mut needs =
            ProgramFiles::from_program(program).map_err(|error| unreachable_halt(&error))?;
        if let Some(run) = wanted.run {
            let maven = run.home.iter().map(|home| home.join(MAVEN));
            needs.named.extend(run.copies.iter().cloned().chain(maven));
            needs.named.retain(|path| path.exists());
        }
        let name = GroupName::new(Path::new("/proc"), frame.name)
            .map_err(|error| halt::cgroup_refusal("naming the trial's cgroup", &error))?;
        let mut scratch = Scratch::make_scratch(frame.scratch, &name)?;
        let home = wanted.run.and_then(|run| run.home.as_deref());
        let named = scratch.passwd_with_account(program.uid, program.gid, home)?;
        let own = scratch.empty_directories(wanted.directories, program.uid, program.gid)?;
        let hosts = scratch.hosts_with_names(frame.hosts)?;
        let replaced = scratch.replaced_directories().into_iter();
        let replaced = replaced.chain(named).chain(hosts).chain(own).collect();
        let machine = reach::machine_paths().into_iter();
        let hidden = machine.chain(wanted.hidden.iter().cloned());
        let mut view = reach::build_view(program, &needs, replaced, hidden, warnings)
            .map_err(|error| unreachable_halt(&error))?;
        if let Some(run) = wanted.run {
            view.copied = scratch.restore_copies(run, program)?;
        }
        if frame.evict_page_cache {
            for root in &needs.roots() {
                pagecache::evict_from_page_cache(root, pagecache::NEAR);
            }
        }
        let making =
            |error| halt::cgroup_refusal("making the trial's cgroup with its limits", &error);
        let group =
            TrialGroup::create_limited(layout, &name.to_string(), frame.limits).map_err(making)?;
        let order = init_order(wanted, &needs, &group, view);
        let sandbox = Sandbox::open_sandbox(loadline, &order, frame.name, output, tell);
        Ok(Self {
            sandbox: sandbox.map_err(sandbox_refused)?,
            group,
            scratch,
            network: frame.network.clone(),
            jdk: needs.jdk,
        })
    }
}

impl AppContainer for NamespaceContainer {
    fn start_application(&mut self) -> Result<(), HaltReason> {
        let started = self.sandbox.send_start();
        started.map_err(halt::step_failed("starting the application"))
    }

    fn signal_application(&mut self, signal: Signal) {
        self.sandbox.send_signal(signal);
    }

    fn application_group(&self) -> &ControlGroup {
        self.group.as_group()
    }

    fn kill_container(&mut self) -> Result<(), CgroupError> {
        self.group.as_group().kill_processes(END).map(drop)
    }

    fn shut_down(&mut self) -> bool {
        self.sandbox.end_init(END)
    }

    fn remove_group(&mut self) -> Result<(), CgroupError> {
        self.group.kill_and_remove()
    }

    fn last_sample(&self) -> Option<CgroupSample> {
        self.group.as_group().read().ok()
    }

    fn application_network(&self) -> ContainerNetwork {
        match &self.network {
            ContainerNetwork::Own => ContainerNetwork::Of(NetworkNamespace {
                path: self.sandbox.network_path(),
                container: None,
            }),
            other => other.clone(),
        }
    }

    fn open_file(&self, seen: &Path) -> io::Result<File> {
        self.scratch.open_seen(seen)
    }

    fn open_only(&self, seen: &Path) -> io::Result<(OsString, File)> {
        self.scratch.open_only(seen)
    }

    fn written_directories(&self) -> Vec<PathBuf> {
        vec![self.scratch.private_directory()]
    }

    fn jdk_path(&self) -> Option<&Path> {
        self.jdk.as_deref()
    }
}

pub fn try_sandbox(loadline: &Path) -> Result<(), String> {
    let program = ProgramSpec {
        command: vec!["/bin/true".to_owned()],
        directory: PathBuf::from("/"),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        ..ProgramSpec::default()
    };
    let order = InitOrder {
        open_files: 1024,
        network: ContainerNetwork::Own,
        ..bare_order(&program, FilesystemView::default())
    };
    let (_reader, writer) = std::io::pipe().map_err(|error| error.to_string())?;
    let opened = Sandbox::open_sandbox(loadline, &order, "preflight", writer, |_| {});
    let mut sandbox = opened.map_err(|error| error.to_string())?;
    if sandbox.end_init(Duration::from_secs(5)) {
        Ok(())
    } else {
        Err("they did not end within 5 s".to_owned())
    }
}

fn init_order(
    wanted: &ContainedProgram<'_>,
    needs: &ProgramFiles,
    group: &TrialGroup,
    view: FilesystemView,
) -> InitOrder {
    let program = needs.program.display().to_string();
    let arguments = wanted.program.command.iter().skip(1).cloned();
    InitOrder {
        command: [program].into_iter().chain(arguments).collect(),
        env: wanted.program.env.clone(),
        join: group.as_group().join_files(),
        cpus: wanted.cpus.to_vec(),
        open_files: wanted.frame.open_files,
        shm_bytes: wanted.frame.shm.as_bytes(),
        network: wanted.frame.network.clone(),
        ..bare_order(wanted.program, view)
    }
}

fn bare_order(program: &ProgramSpec, view: FilesystemView) -> InitOrder {
    InitOrder {
        command: program.command.clone(),
        env: BTreeMap::new(),
        directory: program.directory.clone(),
        uid: program.uid,
        gid: program.gid,
        join: Vec::new(),
        cpus: Vec::new(),
        open_files: 0,
        shm_bytes: SHM.as_bytes(),
        network: ContainerNetwork::Host,
        keeps_groups: !rustix::process::geteuid().is_root(),
        view,
    }
}

fn unreachable_halt(error: &UnreachableFile) -> HaltReason {
    let hint = match error.access {
        "found" => "check the path; relative paths start in the working directory".to_owned(),
        _ => format!(
            "make it readable for everyone (chmod a+rX {}), or run the application as another user: --user",
            error.path.display()
        ),
    };
    refusal_halt("preparing the application", error, &hint)
}

fn sandbox_refused(error: SandboxError) -> HaltReason {
    let hint = "`loadline doctor` shows which namespaces this machine allows";
    refusal_halt("making the trial's namespaces", error, hint)
}
