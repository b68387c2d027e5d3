//! What the kernel refused, with the call.

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
