//! What artefacts are for.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitPurpose {
    /// A Deployment with its Service and what belongs to them. The JVM options are in the image where
    /// that is emitted too, else in the pod.
    Kubernetes,
    Docker,
    /// One machine with Compose; builds the image.
    Compose,
    Options,
}

impl EmitPurpose {
    pub const ALL: [Self; 4] = [Self::Options, Self::Docker, Self::Compose, Self::Kubernetes];
}
