//! The host that an answer is to run on.

use loadline_sizing::JvmOptionSet;

/// A host with another number of CPUs than the one that measured.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetNode {
    pub cpus: u32,
    /// The JVM options of the application's command and environment; those of configurations stand
    /// in the records.
    pub options: JvmOptionSet,
    /// Whether the application's environment bounds the arenas of malloc already.
    pub has_arenas: bool,
}
