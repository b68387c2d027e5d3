//! The controller's own end: who it is, and what it reads and keeps.
//!
//! Owns the order in which a result comes into its empty store.

use loadline_analysis::record::MachineDescription;
use loadline_experiment::ClusterSettings as Wanted;
use loadline_protocol::RunRefusal;
use loadline_runner::store::{FinishedTrial, TrialCopies};
use std::rc::Rc;

pub use super::identity::ControllerPod;
use super::kept::PieceStore;
use super::pieces::{ControllerEnd, ResultGround, ResultPiece};
use crate::cluster::ConnectedCluster;

#[derive(Debug, Clone)]
pub struct ControllerRecords(Rc<PieceStore>);

impl ControllerRecords {
    pub fn open_records(
        wanted: &Wanted,
        inside: &ControllerPod,
    ) -> Result<(Self, Vec<ResultPiece>), RunRefusal> {
        Self::for_controller(ConnectedCluster::connect_to(wanted)?, inside)
    }

    pub(crate) fn for_controller(
        cluster: ConnectedCluster,
        inside: &ControllerPod,
    ) -> Result<(Self, Vec<ResultPiece>), RunRefusal> {
        let kept = PieceStore::new(cluster, &inside.result, &inside.uid);
        let pieces = kept.read()?;
        Ok((Self(Rc::new(kept)), pieces))
    }

    pub fn keep_end(&self, ended: ControllerEnd) -> Result<(), RunRefusal> {
        self.0.add_piece(&ResultPiece::Ended(ended))
    }
}

impl TrialCopies for ControllerRecords {
    fn keep_trial(&self, finished: &FinishedTrial) -> Result<(), RunRefusal> {
        self.0
            .add_piece(&ResultPiece::Trial(Box::new(finished.clone())))
    }

    fn stand_on(
        &self,
        machine: &MachineDescription,
        fingerprint: Option<&str>,
    ) -> Result<(), RunRefusal> {
        self.0
            .add_piece(&ResultPiece::Machine(Box::new(ResultGround {
                machine: machine.clone(),
                fingerprint: fingerprint.map(str::to_owned),
            })))
    }
}
