//! The processes between loadline and the application: `loadline init-part`.
//!
//! One program start, then two forks. The *holder* makes the namespaces and dies with loadline; its
//! child is *init*, PID 1 of the new PID namespace: it makes the mounts, reaps orphans, sends
//! signals and takes everything down with it when it ends; init's child becomes the *application*
//! (module `app`). Holder and init stay outside the application's cgroup. Each has only one thread
//! when it forks. Facts: pid_namespaces(7), PR_SET_PDEATHSIG(2const).

mod app;
mod calls;
mod error;
mod mounts;

use std::fs::{self, File};
use std::io::BufReader;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use loadline_sys::{ForkSide, Namespaces, fork, unshare};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, waitid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

pub use error::InitError;

use super::protocol::{InitCommand, InitEvent, InitOrder, receive_message, send_message};
use crate::container::{ContainerEvent, ContainerNetwork};
use error::StepContext;

/// PF_FORKNOEXEC of include/linux/sched.h: forked, and no other program yet.
const FORKED_ONLY: u64 = 0x40;

struct ParentSocket {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

/// Runs the hidden subcommand. It returns in each of the processes; the exit code is only seen by
/// the next one up. What failed has been told to loadline already.
pub fn run() -> Result<(), InitError> {
    // First of all: from here on the holder cannot outlive the thread that started it.
    die_with_parent()?;
    let mut line = ParentSocket::open_stdin()?;
    let Some(order) = receive_message::<InitOrder>(&mut line.reader)? else {
        return Err(InitError::NotForPeople);
    };
    let done = hold_namespaces(&order, &mut line);
    if let Err(error) = &done {
        let detail = error.to_string();
        // loadline may be gone; then there is no receiver.
        let failed = InitEvent::Application(ContainerEvent::Failed { detail });
        let _ = send_message(&mut line.writer, &failed);
    }
    done
}

impl ParentSocket {
    fn open_stdin() -> Result<Self, InitError> {
        let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
            .at_step("duplicating standard input")?;
        if rustix::net::sockopt::socket_type(&stdin).is_err() {
            return Err(InitError::NotForPeople);
        }
        let reader = UnixStream::from(stdin);
        let writer = reader.try_clone().at_step("duplicating the socket")?;
        Ok(Self {
            reader: BufReader::new(reader),
            writer,
        })
    }
}

fn die_with_parent() -> Result<(), InitError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .at_step("prctl(PR_SET_PDEATHSIG)")
}

fn hold_namespaces(order: &InitOrder, line: &mut ParentSocket) -> Result<(), InitError> {
    if let Some(namespace) = order.network.namespace_path() {
        enter_namespace(namespace)?;
    }
    unshare(Namespaces {
        user: false,
        pid: true,
        mount: true,
        ipc: true,
        uts: true,
        net: order.network == ContainerNetwork::Own,
    })?;
    match fork()? {
        ForkSide::Child => run_init(order, line),
        ForkSide::Parent(init) => {
            let number = init.as_raw_pid();
            let held = InitEvent::Held { init: number };
            send_message(&mut line.writer, &held)?;
            // Init can be waited for only when all of its namespace is dead: when the holder
            // ends, and with it the last end of the socket, nothing is left.
            wait_for(init)
        }
    }
}

fn enter_namespace(namespace: &Path) -> Result<(), InitError> {
    let step = || format!("entering the network namespace {}", namespace.display());
    let file = File::open(namespace).at_step(step())?;
    let network = Some(LinkNameSpaceType::Network);
    move_into_link_name_space(file.as_fd(), network).at_step(step())
}

fn wait_for(child: Pid) -> Result<(), InitError> {
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::empty()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).at_step("waiting for init"),
        }
    }
}

/// PID 1. Signals from inside its namespace do not reach it and it has no handlers; it is
/// commanded by the socket, and ends when the socket does.
fn run_init(order: &InitOrder, line: &mut ParentSocket) -> Result<(), InitError> {
    die_with_parent()?;
    mounts::make_view(&order.view, order.shm_bytes)?;
    if order.network == ContainerNetwork::Own {
        loopback_up()?;
    }
    send_message(&mut line.writer, &InitEvent::Prepared)?;
    match receive_message::<InitCommand>(&mut line.reader)? {
        Some(InitCommand::Start) => {}
        Some(InitCommand::Signal { .. }) | None => return Ok(()),
    }
    match fork()? {
        ForkSide::Child => app::execute(order, &mut line.writer),
        ForkSide::Parent(app) => tend_application(app, line),
    }
}

/// Only a new namespace has a loopback interface that is down.
fn loopback_up() -> Result<(), InitError> {
    loadline_sys::set_interface_up("lo")?;
    // As container engines do: in a separate network any port is free for any user. Kernels before
    // 4.11 do not have the file; there ports below 1024 need root.
    let _ = std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
    Ok(())
}

/// Reaps in one thread, obeys in the other; returns when loadline hangs up, which ends the
/// namespace.
fn tend_application(app: Pid, line: &mut ParentSocket) -> Result<(), InitError> {
    let mut events = line.writer.try_clone().at_step("duplicating the socket")?;
    std::thread::Builder::new()
        .name("reaper".to_owned())
        .spawn(move || reap_children(app, &mut events))
        .at_step("starting the thread that reaps")?;
    while let Some(command) = receive_message::<InitCommand>(&mut line.reader)? {
        if let InitCommand::Signal { number } = command
            && let Some(signal) = Signal::from_named_raw(number)
        {
            // ESRCH: it has ended; its event is on the way.
            let _ = rustix::process::kill_process(app, signal);
        }
    }
    Ok(())
}

fn reap_children(app: Pid, events: &mut UnixStream) {
    let mut was_executed = false;
    loop {
        if !was_executed {
            // A look at what has ended and is still there: once waited for, it has no flags.
            let _ = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            was_executed = is_executed(app);
        }
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == app => {
                // When loadline is gone, the other thread is about to end it all.
                if !was_executed {
                    let _ =
                        send_message(events, &InitEvent::Application(ContainerEvent::NotExecuted));
                }
                let _ = send_message(events, &to_exit_event(status));
            }
            Ok(_) | Err(Errno::INTR) => {}
            // ECHILD: the namespace is empty but for init.
            Err(_) => return,
        }
    }
}

/// Whether a child, which may have ended, has become another program since it was forked; where the
/// kernel does not tell, that it has.
fn is_executed(child: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.as_raw_pid()));
    !stat.is_ok_and(|stat| is_only_forked(&stat))
}

fn is_only_forked(stat: &str) -> bool {
    // Behind the name, which may hold anything, flags are the seventh: proc_pid_stat(5).
    let words = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' '));
    let flags = words.and_then(|mut words| words.nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & FORKED_ONLY != 0)
}

fn to_exit_event(status: WaitStatus) -> InitEvent {
    InitEvent::Application(ContainerEvent::Exited {
        code: status.exit_status(),
        signal: status.terminating_signal(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_forked_and_executed_nothing_is_told_by_its_flags() {
        // Of Linux 6.18: the kernel's own thread, which never executes anything, and a program.
        let thread = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 2 0 0 20 0 1 0 30 0 0";
        let program = "16875 (cat) R 16867 16867 2141 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0";
        assert!(is_only_forked(thread));
        assert!(!is_only_forked(program));
        assert!(!is_only_forked(
            &program.replace("cat", ") S 0 0 0 0 -1 64 (")
        ));
        assert!(!is_only_forked(""));
        let own = fs::read_to_string("/proc/self/stat").expect("Linux has it");
        assert!(!is_only_forked(&own));
    }
}
