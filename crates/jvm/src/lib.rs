//! What a JVM tells about itself: which JDKs there are, their GC and safepoint logs,
//! native memory and counters.
//!
//! Reads text and files that a JVM wrote; never prints, never starts a process, never decides
//! anything. Start reading at [`detect`] (JDKs of this machine).

pub mod attach;
pub mod beneath;
pub mod cache;
pub mod detect;
pub mod footprint;
pub mod gclog;
pub mod hsperf;
pub mod java_dump;
pub mod log_option;
pub mod nmt;
pub mod process;
pub mod rights;
