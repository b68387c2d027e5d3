//! What a trial is, in words that cross processes and machines: the order, its events, a refusal.
//!
//! Owns plain types, their serialised form, and the file they travel in ([`log`]). Runs nothing,
//! reads no clock, judges nothing: a host carries an [`TrialOrder`] out and answers in [`TrialEvent`]s,
//! whichever machine it is on.

mod dependency;
mod event;
pub mod log;
mod order;
mod refusal;

pub use dependency::{
    DependencyScope, DependencySpec, NetworkNamespace, ProxiedLink, SharedDependencies,
    SharedDependency, StubSpec,
};
pub use event::{TrialEnding, TrialEvent, TrialProgress};
pub use order::{
    Account, AppSpec, ContainerEngine, EngineKind, ImageSpec, LoadCommandSpec, LoadPhase,
    MemoryStudy, MetricsSpec, NetworkMode, Readiness, RunSpec, SamplingRate, SoakSettings,
    StudyGoal, TrialOrder, WritableDirectory,
};
pub use refusal::RunRefusal;
