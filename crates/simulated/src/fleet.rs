//! Several simulated services of one trial: each in its own virtual time from the same moment on.
//!
//! Owns the clock between them: their parallel work takes as long as the slowest. Disturbances of
//! the machine affect all.

use loadline_analysis::record::{Evidence, LoadEvidence, NoiseEvidence, StartEvidence};
use loadline_analysis::together;
use loadline_load::{LoadModel, LoadPart, LoadPlan};
use loadline_protocol::LoadPhase;

use crate::service::SimulatedService;

pub(crate) struct InstanceFleet {
    members: Vec<SimulatedService>,
}

impl InstanceFleet {
    pub fn new(mut members: Vec<SimulatedService>) -> Self {
        if let Some(first) = members.first().map(|m| m.fate) {
            for member in &mut members {
                member.fate.is_disturbed = first.is_disturbed;
                member.fate.is_seen = first.is_seen;
            }
        }
        Self { members }
    }

    pub fn virtual_now_ns(&self) -> u64 {
        self.members.iter().map(|m| m.now_ns).max().unwrap_or(0)
    }

    fn wait_for_slowest(&mut self) {
        let now = self.virtual_now_ns();
        self.members.iter_mut().for_each(|m| m.now_ns = now);
    }

    pub fn start_instances(&mut self, deadline: std::time::Duration) -> StartEvidence {
        let starts: Vec<_> = self
            .members
            .iter_mut()
            .map(|m| m.start_service(deadline))
            .collect();
        self.wait_for_slowest();
        match starts.as_slice() {
            [one] => one.clone(),
            several => together::merge_starts(several),
        }
    }

    /// Runs one load phase; returns whether an instance died from it.
    pub fn drive_instances(&mut self, load: &LoadPhase) -> (Vec<LoadEvidence>, bool) {
        let of = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let (mut parts, mut has_died) = (Vec::new(), false);
        for (index, member) in (0..).zip(&mut self.members) {
            let (part, died) = member.drive_load(&instance_share(load, index, of));
            has_died |= died;
            parts.push(LoadEvidence {
                instance: (of > 1).then_some(index + 1),
                ..part
            });
        }
        self.wait_for_slowest();
        (parts, has_died)
    }

    pub fn stop_instances(self) -> Evidence {
        let mut parts: Vec<Evidence> = self
            .members
            .into_iter()
            .map(SimulatedService::stop_service)
            .collect();
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let noise = parts.first().map(|p| NoiseEvidence {
            contention: None,
            ..p.noise.clone()
        });
        Evidence {
            noise: noise.unwrap_or_default(),
            ..together::merge_instances(parts)
        }
    }
}

fn instance_share(load: &LoadPhase, index: u32, of: u32) -> LoadPhase {
    if of == 1 {
        return load.clone();
    }
    let whole = &load.plan;
    let model = match whole.model.clone() {
        LoadModel::ClosedRequests { requests } => {
            let (of, index) = (u64::from(of), u64::from(index));
            LoadModel::ClosedRequests {
                requests: requests / of + u64::from(index < requests % of),
            }
        }
        model => match model.mean_rate() {
            Some(rate) => model.at_rate(rate / f64::from(of)),
            None => model,
        },
    };
    LoadPhase {
        phase: load.phase,
        plan: LoadPlan {
            model,
            connections: LoadPart { index, of }.share_of(whole.connections),
            ..whole.clone()
        },
    }
}
