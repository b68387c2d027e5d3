//! What local trials need of this machine, tried by doing: for `loadline doctor` and before runs.
//!
//! Owns the checks of namespaces; those of cgroups are `loadline-cgroup`'s.

use std::path::Path;

use loadline_cgroup::{PreflightCheck, probe_cgroups};

use crate::site::{Site, SiteOptions};
use crate::{cpus, own};

impl Site {
    pub fn run_preflight(&self) -> Vec<PreflightCheck> {
        preflight_checks(&self.options)
    }
}

pub fn preflight_checks(options: &SiteOptions) -> Vec<PreflightCheck> {
    let mut checks = probe_cgroups(Path::new("/sys/fs/cgroup"), Path::new("/proc"));
    checks.push(check_namespaces(options));
    checks.push(check_spare_cpu());
    checks
}

fn check_namespaces(options: &SiteOptions) -> PreflightCheck {
    let name = "namespaces of trials";
    let works = "process, mount, IPC, host name and network, with a separate init";
    let fix = "run as root; in a container: with CAP_SYS_ADMIN and without a seccomp profile that forbids unshare and mount";
    match own::try_sandbox(&options.program) {
        Ok(()) => PreflightCheck::works(name, works),
        Err(detail) => PreflightCheck::broken(name, detail).with_fix(fix),
    }
}

fn check_spare_cpu() -> PreflightCheck {
    let count = cpus::available_cpus().map_or(0, |cpus| cpus.len());
    let fix =
        "use a machine with two CPUs: with one, the load generator takes CPU from the application";
    let name = "a CPU for the load generator";
    let detail = format!("{count} for loadline and its trials");
    if count > 1 {
        PreflightCheck::works(name, detail)
    } else {
        PreflightCheck::missing(name, detail).with_fix(fix)
    }
}
