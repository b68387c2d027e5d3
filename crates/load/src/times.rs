//! The points in time of a run.

use std::time::Duration;

use crate::plan::{LoadModel, LoadPlan};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunTimes {
    pub(crate) start: u64,
    pub(crate) warm_end: u64,
    pub(crate) end: u64,
    pub(crate) timeout: u64,
    pub(crate) connect_timeout: u64,
    pub(crate) read_timeout: u64,
    pub(crate) drain: u64,
}

impl RunTimes {
    pub(crate) fn starting_at(start: u64, plan: &LoadPlan) -> Self {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let end = match plan.model {
            LoadModel::ClosedRequests { .. } => u64::MAX,
            _ => start.saturating_add(plan.model.scheduled_duration().map_or(0, nanos)),
        };
        Self {
            start,
            warm_end: start + nanos(plan.warmup),
            end,
            timeout: nanos(plan.timeout),
            connect_timeout: plan.connect_timeout.map_or(u64::MAX, nanos),
            read_timeout: plan.read_timeout.map_or(u64::MAX, nanos),
            drain: nanos(plan.drain),
        }
    }

    /// Index of the totals that a point in time belongs to: 0 is the warm-up.
    pub(crate) fn phase(&self, at: u64) -> usize {
        usize::from(at >= self.warm_end)
    }
}
