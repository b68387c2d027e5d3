//! What everything in the cluster is called: labels, annotations, names of containers and objects.
//!
//! Owns the words alone, so that whoever makes something and whoever looks for it agree.

/// Container of loadline's own in a pod.
pub const OWN: &str = "trial-part";

/// Container of loadline itself, where it works in a cluster.
pub const CONTROLLER: &str = "controller";

/// Container of the application.
pub const APPLICATION: &str = "application";

/// Container of a look that takes more memory than it may.
pub const FILLS: &str = "memory";

/// Container of a generator.
pub const GENERATOR: &str = "generator";

/// The label of everything that loadline makes.
pub const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "loadline");

/// The label with the machine whose loadline made it.
pub const CLIENT: &str = "loadline.dev/client";

/// The annotation with the process that made it.
pub const OWNER: &str = "loadline.dev/owner";

/// The label of a pod with its run and slot.
pub const SLOT: &str = "loadline.dev/slot";

/// The label of a pod with its place among those that share a node.
pub const SHARE: &str = "loadline.dev/share";

/// The label of a controller and of all that is kept, with the result.
pub const RESULT: &str = "loadline.dev/result";

/// The annotation of a Job with the digest of the first piece: what was sent. Who may make config maps and
/// not change Jobs cannot put another experiment in its place.
pub const FIRST_PIECE: &str = "loadline.dev/first-piece";

/// Who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakerIdentity {
    /// The machine, as a label.
    pub client: String,
    /// The process, as an annotation.
    pub owner: String,
    /// The Job that all of it belongs to and goes with, by name and uid: of loadline in the cluster.
    pub within: Option<(String, String)>,
}

/// The name of the objects of a result.
pub fn controller_name(result: &str) -> String {
    format!("loadline-result-{result}")
}
