//! The one place with system calls that need unsafe code.
//!
//! Owns seven calls that neither std nor rustix offers safely: new namespaces, fork, setting a
//! network interface up, close-on-exec for all descriptors, default signals, a real-time priority, a
//! new session keyring. Each wrapper is safe to call from anywhere: it checks what the call needs.
//! Everything else in loadline goes through std and rustix; what of rustix only Linux has comes from
//! here, too. For other systems each call of this crate refuses: there commands that read work, and
//! nothing is measured. Facts: man pages unshare(2), fork(2), signal-safety(7), netdevice(7), close_range(2).

mod error;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod linux;

pub use error::SysError;
pub use linux::*;
