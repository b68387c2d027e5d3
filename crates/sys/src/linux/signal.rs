//! Signals as a program expects them when it starts.

/// Sets every signal back to its default: a program inherits the ignored ones (`nohup`, and
/// SIGPIPE under a Rust program). The two that the C library keeps for itself stay as they are.
pub fn default_signals() {
    for number in 1..=libc::SIGRTMAX() {
        // SAFETY: SIG_DFL puts no handler in place, so no code can run because of this call. It
        // fails, without effect, for SIGKILL, SIGSTOP and the C library's own.
        unsafe { libc::signal(number, libc::SIG_DFL) };
    }
}
