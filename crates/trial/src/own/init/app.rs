//! From a fork of init to the application: cgroup, limits, user, then exec.
//!
//! Owns the order of the steps, which matters: what needs rights comes before they are given
//! away. Nothing of loadline but standard input (empty), output and error goes through the exec.
//! Facts: capabilities(7), setpriv(1); capability bounding can only be dropped before setresuid.

use std::fs;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use loadline_sys::{close_on_exec_from, default_signals};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

use super::error::{InitError, StepContext};
use super::{calls, mounts};
use crate::clock::monotonic_ns;
use crate::container::ContainerEvent;
use crate::cpus;
use crate::own::protocol::{InitEvent, InitOrder, send_message};

/// Preferred victim when the whole machine runs out of memory: the application, not loadline.
const OOM_SCORE_ADJ: &str = "500";

pub fn execute(order: &InitOrder, events: &mut UnixStream) -> Result<(), InitError> {
    join_cgroup(order)?;
    reset_cpu_mask(order)?;
    fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ)
        .at_step("writing /proc/self/oom_score_adj")?;
    mounts::freeze()?;
    set_limits(order)?;
    rustix::process::setsid().at_step("setsid")?;
    loadline_sys::new_session_keyring()?;
    set_descriptors()?;
    default_signals();
    give_up_rights(order)?;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let (directory, uid) = (&order.directory, order.uid);
    std::env::set_current_dir(directory)
        .at_step(format!("entering {} as uid {uid}", directory.display()))?;
    exec_command(order, events)
}

fn join_cgroup(order: &InitOrder) -> Result<(), InitError> {
    for file in &order.join {
        // 0 means the writer itself. Source: kernel Documentation/admin-guide/cgroup-v1/cgroups.rst.
        fs::write(file, "0").at_step(format!("joining the cgroup by {}", file.display()))?;
    }
    Ok(())
}

/// Resets the CPU mask: loadline's own threads are pinned away from the application's CPUs, and
/// since Linux 6.2 a mask set by a process survives a change of its cpuset.
fn reset_cpu_mask(order: &InitOrder) -> Result<(), InitError> {
    if order.cpus.is_empty() {
        return Ok(());
    }
    let mask = cpus::mask(&order.cpus);
    thread::sched_setaffinity(None, &mask).at_step(format!("pinning to CPUs {:?}", order.cpus))
}

fn set_limits(order: &InitOrder) -> Result<(), InitError> {
    let both = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(Resource::Core, both(0)).at_step("setrlimit(RLIMIT_CORE)")?;
    let allowed = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    setrlimit(Resource::Nofile, both(order.open_files.min(allowed))).at_step("setrlimit(NOFILE)")
}

fn set_descriptors() -> Result<(), InitError> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .at_step("opening /dev/null")?;
    rustix::stdio::dup2_stdin(&null).at_step("redirecting standard input")?;
    // Standard error of all stages is the pipe that loadline reads.
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).at_step("redirecting standard output")?;
    close_on_exec_from(3)?;
    Ok(())
}

fn give_up_rights(order: &InitOrder) -> Result<(), InitError> {
    // Every bit, including unnamed new ones; EINVAL: this kernel does not know it either.
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match thread::remove_capability_from_bounding_set(capability) {
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(errno) => return Err(errno).at_step("dropping the capability bounding set"),
        }
    }
    // EINVAL: before Linux 4.3 there is no ambient set.
    let _ = thread::clear_ambient_capability_set();
    let (uid, gid) = (Uid::from_raw(order.uid), Gid::from_raw(order.gid));
    if !order.keeps_groups {
        thread::set_thread_groups(&[]).at_step("setgroups")?;
    }
    thread::set_thread_res_gid(gid, gid, gid).at_step(format!("setresgid({gid:?})"))?;
    thread::set_thread_res_uid(uid, uid, uid).at_step(format!("setresuid({uid:?})"))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    thread::set_capabilities(None, none).at_step("capset")?;
    thread::set_no_new_privs(true).at_step("prctl(PR_SET_NO_NEW_PRIVS)")?;
    calls::install_filter()
}

fn exec_command(order: &InitOrder, events: &mut UnixStream) -> Result<(), InitError> {
    let program = order.command.first().map_or("", String::as_str);
    let mut command = Command::new(program);
    command.args(order.command.iter().skip(1));
    command.env_clear().envs(&order.env);
    let at_ns = monotonic_ns();
    send_message(
        events,
        &InitEvent::Application(ContainerEvent::Exec { at_ns }),
    )?;
    Err(command.exec()).at_step(format!("executing {program} as uid {}", order.uid))
}
