//! The one place with system calls that need unsafe code.
//!
//! Owns seven calls that neither std nor rustix offers safely: new namespaces, fork, setting a
//! network interface up, close-on-exec for all descriptors, default signals, a real-time priority, a
//! new session keyring. Each wrapper is safe to call from anywhere: it checks what the call needs.
//! Everything else in loadline goes through std and rustix; what of rustix only Linux has comes from
//! here, too. For other systems each call of this crate refuses: there commands that read work, and
//! nothing is measured. Facts: man pages unshare(2), fork(2), signal-safety(7), netdevice(7), close_range(2).

#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod linux;

pub use linux::*;

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
}
