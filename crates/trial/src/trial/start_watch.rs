//! Whether a start under way can still become ready within its deadline.
//!
//! Owns the state between two looks; `loadline_analysis::early` has the rule.

use std::time::{Duration, Instant};

use loadline_analysis::early;
use loadline_analysis::slo::Slo;
use loadline_protocol::TrialOrder;

use crate::clock::monotonic_ns;
use crate::instance::Instance;

/// The looks at a start: the file pages that each instance had read again.
#[derive(Default)]
pub(super) struct StartWatch {
    refaults: Vec<Vec<u64>>,
    looked: Duration,
}

impl StartWatch {
    pub(super) fn hopeless_reason(
        &mut self,
        begin: Instant,
        order: &TrialOrder,
        slo: &Slo,
        instances: &[Instance],
    ) -> Option<String> {
        let waited = begin.elapsed();
        if waited < self.looked + early::LOOK {
            return None;
        }
        self.looked = waited;
        self.refaults.resize(instances.len(), Vec::new());
        let mut each = self.refaults.iter_mut().zip(instances);
        each.find_map(|(seen, instance)| {
            seen.extend(instance.refaults());
            let state = &instance.state;
            let exec_ns = state.exec_ns.filter(|_| !state.was_ready())?;
            let running = Duration::from_nanos(monotonic_ns().saturating_sub(exec_ns));
            let fails = early::why_start_fails(slo, order.start_deadline, running, seen);
            fails.or_else(|| {
                let usual = order.run.as_ref()?.reference.and_then(|run| run.cpu);
                early::why_run_fails(slo, instance.cpu_used()?, usual)
            })
        })
    }
}
