//! What artefacts are for.

/// What the artefacts are for; decides which files there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitPurpose {
    /// A Deployment with its Service and what belongs to them. The JVM options are in the image where
    /// that is emitted too, else in the pod.
    Kubernetes,
    /// An image.
    Docker,
    /// One machine with Compose; builds the image.
    Compose,
    /// The JVM options alone.
    Options,
}

impl EmitPurpose {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Options, Self::Docker, Self::Compose, Self::Kubernetes];
}
