//! The host that an answer is to run on.

use loadline_sizing::JvmOptionSet;

#[derive(Debug, Clone, PartialEq)]
pub struct TargetNode {
    pub cpus: u32,
    /// The JVM options of the application's command and environment; the records have those of
    /// configurations.
    pub options: JvmOptionSet,
    pub has_arenas: bool,
}
