//! The duties of PID 1: start the application, pass signals on, reap orphans, end with its code.
//!
//! All signals are blocked and waited for, so nothing runs in a handler and nothing wakes the
//! process while nothing happens.

use crate::sys::{self, ExecProgram, InheritedSignals};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InitOptions {
    /// Signals go to all processes of the application's group, not to its first one alone.
    pub is_group: bool,
    pub parent_death: i32,
}

/// Runs the application to its end and returns its exit code: 128 + signal when a signal ended it,
/// 127 or 126 when it could not be started, which `say` is then told.
pub fn run(
    program: &ExecProgram,
    inherited: &InheritedSignals,
    options: InitOptions,
    say: fn(&str),
) -> i32 {
    if !sys::is_pid_one() {
        sys::become_subreaper();
    }
    sys::block_all_signals();
    sys::signal_when_parent_dies(options.parent_death);
    let child = match sys::spawn(program, inherited, say) {
        Ok(child) => child,
        Err(error) => {
            say(&program.failure_text(&error));
            return sys::exec_failure_code(&error);
        }
    };
    loop {
        let Some((signal, is_sent)) = sys::wait_signal() else {
            continue;
        };
        if signal != libc::SIGCHLD || is_sent {
            // The child leads its own group, and a group has the negative number of its leader.
            sys::send_signal(if options.is_group { -child } else { child }, signal);
        }
        if let Some(code) = reap_all(child) {
            return code;
        }
    }
}

fn reap_all(child: i32) -> Option<i32> {
    let mut code = None;
    while let Some((pid, ended)) = sys::reap() {
        if pid == child {
            code = Some(ended);
        }
    }
    code
}
