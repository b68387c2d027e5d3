//! What local trials need of this machine, tried by doing: for `loadline doctor` and before runs.
//!
//! Owns the checks of namespaces; those of cgroups are `loadline-cgroup`'s.

use std::path::Path;

use loadline_cgroup::{Check, Status, probe};

use crate::site::{Options, Site};
use crate::{cpus, own};

impl Site {
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
    match own::attempt(&options.program) {
        Ok(()) => Check {
            name,
            status: Status::Works,
            detail: WORKS.to_owned(),
            fix: None,
        },
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
