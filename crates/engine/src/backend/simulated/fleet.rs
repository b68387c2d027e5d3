//! Several simulated services of one trial: each in its own virtual time from the same moment on.
//!
//! Owns the clock between them: what they do at once takes as long as the slowest. What something
//! else does to the machine, it does to all of them.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use loadline_analysis::record::{Evidence, LoadEvidence, NoiseEvidence, StartEvidence};
use loadline_analysis::together;
use loadline_load::{Model, Plan};

use super::Service;
use crate::backend::{BackendError, Driven, Instance, LoadPhase, Observer, share_of};

pub(super) struct Fleet {
    members: Vec<Service>,
    clock: Rc<Cell<u64>>,
}

impl Fleet {
    pub(super) fn new(mut members: Vec<Service>, clock: Rc<Cell<u64>>) -> Self {
        if let Some(first) = members.first().map(|m| m.fate) {
            for member in &mut members {
                member.fate.is_disturbed = first.is_disturbed;
                member.fate.is_seen = first.is_seen;
            }
        }
        Self { members, clock }
    }

    /// Does the same with every service from the same moment on; the clock ends at the latest end.
    fn each<T>(
        &mut self,
        mut work: impl FnMut(usize, &mut Service) -> Result<T, BackendError>,
    ) -> Result<Vec<T>, BackendError> {
        let (begin, mut end) = (self.clock.get(), self.clock.get());
        let mut results = Vec::new();
        for (index, member) in self.members.iter_mut().enumerate() {
            self.clock.set(begin);
            results.push(work(index, member)?);
            end = end.max(self.clock.get());
        }
        self.clock.set(end);
        Ok(results)
    }
}

impl Instance for Fleet {
    fn start(
        &mut self,
        deadline: Duration,
        observer: &mut dyn Observer,
    ) -> Result<StartEvidence, BackendError> {
        let starts = self.each(|_, member| member.start(deadline, observer))?;
        Ok(together::start(&starts))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().flat_map(|m| m.addresses()).collect()
    }

    fn drive(
        &mut self,
        load: &LoadPhase,
        observer: &mut dyn Observer,
    ) -> Result<Driven, BackendError> {
        let of = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        let parts = self.each(|index, member| {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let driven = member.drive(&share(load, index, of), observer)?;
            let number = |load| LoadEvidence {
                instance: Some(index + 1),
                ..load
            };
            Ok(Driven {
                load: driven.load.into_iter().map(number).collect(),
                ..driven
            })
        })?;
        Ok(crate::backend::sum_of_parts(parts))
    }

    fn stop(&mut self, grace: Duration, observer: &mut dyn Observer) -> Evidence {
        let parts: Vec<Evidence> = self
            .members
            .iter_mut()
            .map(|m| m.stop(grace, observer))
            .collect();
        let noise = parts.first().map(|p| NoiseEvidence {
            contention: None,
            ..p.noise.clone()
        });
        Evidence {
            noise: noise.unwrap_or_default(),
            ..together::together(parts)
        }
    }
}

/// One instance's share of a load.
fn share(load: &LoadPhase, index: u32, of: u32) -> LoadPhase {
    let whole = &load.plan;
    let model = match whole.model.clone() {
        Model::ClosedRequests { requests } => {
            let (of, index) = (u64::from(of), u64::from(index));
            Model::ClosedRequests {
                requests: requests / of + u64::from(index < requests % of),
            }
        }
        model => match model.rate() {
            Some(rate) => model.at_rate(rate / f64::from(of)),
            None => model,
        },
    };
    LoadPhase {
        phase: load.phase,
        plan: Plan {
            model,
            connections: share_of(whole.connections, index, of),
            ..whole.clone()
        },
    }
}
