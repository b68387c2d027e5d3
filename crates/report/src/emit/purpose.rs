//! Artefacts and their purposes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitPurpose {
    /// A Deployment with its Service and what belongs to them. The JVM options are in the image where
    /// that is emitted too, else in the pod.
    Kubernetes,
    Docker,
    Compose,
    Options,
    /// Rules of Prometheus.
    Alerts,
    /// A dashboard of Grafana, with what the alerts compare.
    Grafana,
    /// A ScaledObject in the place of the HorizontalPodAutoscaler; only with an autoscaler's needs.
    Keda,
}

impl EmitPurpose {
    /// What is written where nothing is asked for.
    pub const ALL: [Self; 4] = [Self::Options, Self::Docker, Self::Compose, Self::Kubernetes];
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    pub name: &'static str,
    pub text: String,
}
