//! The one place with system calls that need unsafe code.
//!
//! Owns seven calls that neither std nor rustix offers safely: new namespaces, fork, setting a
//! network interface up, close-on-exec for all descriptors, default signals, a real-time priority, a
//! new session keyring. Each wrapper is safe to call from anywhere: it checks what the call needs.
//! Everything else in loadline goes through std and rustix. Facts: man pages unshare(2), fork(2), signal-safety(7), netdevice(7), close_range(2).

mod descriptor;
mod fork;
mod interface;
mod keyring;
mod namespace;
mod realtime;
mod signal;

pub use descriptor::close_on_exec_from;
pub use fork::{ForkSide, fork};
pub use interface::set_interface_up;
pub use keyring::new_session_keyring;
pub use namespace::{Namespaces, unshare};
pub use realtime::run_at_once;
pub use signal::default_signals;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SysError {
    #[error("{call}: {errno}")]
    Call {
        /// The call with what it was for, such as `unshare(net)`.
        call: String,
        errno: rustix::io::Errno,
    },
    #[error("fork: this process has {threads} threads, it must have one")]
    Threads { threads: usize },
    #[error("`{name}` is no interface name: 1 to 15 bytes without NUL")]
    InterfaceName { name: String },
}

impl SysError {
    pub fn errno(&self) -> Option<rustix::io::Errno> {
        match self {
            Self::Call { errno, .. } => Some(*errno),
            Self::Threads { .. } | Self::InterfaceName { .. } => None,
        }
    }

    fn from_last_errno(call: impl Into<String>) -> Self {
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(rustix::io::Errno::IO, rustix::io::Errno::from_raw_os_error);
        Self::Call {
            call: call.into(),
            errno,
        }
    }
}
