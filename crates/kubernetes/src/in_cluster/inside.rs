//! The controller's own end: who it is, and what it reads and keeps.
//!
//! Owns what its pod tells it of itself (variables), and the order in which a result comes into its
//! empty store.

use loadline_analysis::record::Machine;
use loadline_engine::experiment::Cluster as Wanted;
use loadline_engine::store::{Copies, Finished};
use loadline_trial::Refusal;
use std::rc::Rc;

use super::kept::Kept;
use super::pieces::{Ended, Ground, Piece};
use crate::cluster::Cluster;

/// Variable with the result of a controller.
pub(crate) const OF_RESULT: &str = "LOADLINE_RESULT";
/// Variable with the uid of its Job.
pub(crate) const OF_UID: &str = "LOADLINE_JOB_UID";
/// Variable with the name of its pod.
pub(crate) const OF_POD: &str = "LOADLINE_POD";

/// A controller, as its pod knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// The result.
    pub result: String,
    /// The uid of its Job.
    pub uid: String,
    /// Its pod.
    pub pod: String,
}

impl Inside {
    /// This process, if it is one.
    pub fn of_process() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        Some(Self {
            result: variable(OF_RESULT)?,
            uid: variable(OF_UID)?,
            pod: variable(OF_POD)?,
        })
    }
}

/// What a controller reads and keeps; clones are the same.
#[derive(Debug, Clone)]
pub struct Keeping(Rc<Kept>);

impl Keeping {
    /// Of this process; gives what pods before it have kept.
    ///
    /// # Errors
    /// [`Refusal`] when the cluster does not answer, or a piece is missing or damaged.
    pub fn begin(wanted: &Wanted, inside: &Inside) -> Result<(Self, Vec<Piece>), Refusal> {
        Self::of(Cluster::connect(wanted)?, inside)
    }

    pub(crate) fn of(cluster: Cluster, inside: &Inside) -> Result<(Self, Vec<Piece>), Refusal> {
        let kept = Kept::new(cluster, &inside.result, &inside.uid);
        let pieces = kept.read()?;
        Ok((Self(Rc::new(kept)), pieces))
    }

    /// Keeps how it ended: nothing comes after it.
    ///
    /// # Errors
    /// As [`Copies::keep`].
    pub fn ended(&self, ended: Ended) -> Result<(), Refusal> {
        self.0.add(&Piece::Ended(ended))
    }
}

impl Copies for Keeping {
    fn keep(&self, finished: &Finished) -> Result<(), Refusal> {
        self.0.add(&Piece::Trial(Box::new(finished.clone())))
    }

    fn stand_on(&self, machine: &Machine, fingerprint: Option<&str>) -> Result<(), Refusal> {
        self.0.add(&Piece::Machine(Box::new(Ground {
            machine: machine.clone(),
            fingerprint: fingerprint.map(str::to_owned),
        })))
    }
}
