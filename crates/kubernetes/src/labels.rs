//! What everything in the cluster is called: labels, annotations, names of containers and objects.
//!
//! Owns the words alone, so that whoever makes something and whoever looks for it agree.

pub const OWN: &str = "trial-part";

pub const CONTROLLER: &str = "controller";

pub const APPLICATION: &str = "application";

pub const FILLS: &str = "memory";

pub const GENERATOR: &str = "generator";

pub const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "loadline");

pub const CLIENT: &str = "loadline.dev/client";

pub const OWNER: &str = "loadline.dev/owner";

pub const SLOT: &str = "loadline.dev/slot";

pub const SHARE: &str = "loadline.dev/share";

pub const RESULT: &str = "loadline.dev/result";

/// The annotation of a Job with the digest of the first piece, as sent. A user who may make config
/// maps but not change Jobs cannot replace the experiment.
pub const FIRST_PIECE: &str = "loadline.dev/first-piece";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakerIdentity {
    pub client: String,
    pub owner: String,
    /// The Job that owns all objects, by name and uid: loadline's own in the cluster.
    pub within: Option<(String, String)>,
}

pub fn controller_name(result: &str) -> String {
    format!("loadline-result-{result}")
}
