//! What local trials need of this machine, tried by doing: for `loadline doctor` and before runs.
//!
//! Owns the checks of namespaces; those of cgroups are `loadline-cgroup`'s.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadline_cgroup::{Check, Status, probe};

use super::protocol::{Order, View};
use super::sandbox::Sandbox;
use super::{LocalBackend, Options, cpus};

impl LocalBackend {
    /// Tries what a trial does, without an application. Takes a second or two.
    pub fn preflight(&self) -> Vec<Check> {
        preflight(&self.options)
    }
}

/// The same where no backend can be made: the checks say why.
pub fn preflight(options: &Options) -> Vec<Check> {
    let mut checks = probe(Path::new("/sys/fs/cgroup"), Path::new("/proc"));
    checks.push(namespaces(options));
    checks.push(spare_cpu());
    checks
}

/// Makes the namespaces and mounts of a trial, and ends them.
fn namespaces(options: &Options) -> Check {
    let name = "namespaces of trials";
    let order = Order {
        command: vec!["/bin/true".to_owned()],
        env: BTreeMap::new(),
        directory: PathBuf::from("/"),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        join: Vec::new(),
        cpus: Vec::new(),
        open_files: 1024,
        own_network: true,
        keeps_groups: !rustix::process::geteuid().is_root(),
        view: View::default(),
    };
    let opened =
        std::io::pipe()
            .map_err(|error| error.to_string())
            .and_then(|(_reader, writer)| {
                Sandbox::open(&options.program, &order, "preflight", writer, |_| {})
                    .map_err(|error| error.to_string())
            });
    match opened.map(|mut sandbox| sandbox.end(Duration::from_secs(5))) {
        Ok(true) => Check {
            name,
            status: Status::Works,
            detail: WORKS.to_owned(),
            fix: None,
        },
        Ok(false) => broken(name, "they did not end within 5 s".to_owned()),
        Err(detail) => broken(name, detail),
    }
}

const WORKS: &str = "process, mount, IPC, host name and network, with an init of its own";

fn broken(name: &'static str, detail: String) -> Check {
    let fix = "run as root; in a container: with CAP_SYS_ADMIN and without a seccomp profile that forbids unshare and mount";
    Check {
        name,
        status: Status::Broken,
        detail,
        fix: Some(fix.to_owned()),
    }
}

/// Whether the load generator can have a CPU of its own.
fn spare_cpu() -> Check {
    let count = cpus::available().map_or(0, |cpus| cpus.len());
    let fix = "use a machine with two CPUs: with one, the load generator takes what it measures";
    Check {
        name: "a CPU for the load generator",
        status: if count > 1 {
            Status::Works
        } else {
            Status::Missing
        },
        detail: format!("{count} for loadline and its trials"),
        fix: (count < 2).then(|| fix.to_owned()),
    }
}
