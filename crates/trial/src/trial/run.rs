//! A run's part of a trial: its measure phase covers the whole run.

use std::time::Duration;

use loadline_analysis::record::TrialPhase;
use loadline_analysis::text;

use super::OngoingTrial;
use crate::clock::monotonic_ns;

impl OngoingTrial<'_> {
    pub(super) fn look_at_runs(&mut self, elapsed: Duration) {
        if self.order.run.is_some() {
            let all = self.instances.all.iter_mut();
            all.for_each(|instance| instance.look_at_jvms(elapsed));
        }
    }

    /// A run is measured as a whole; ends it if it has not ended by now.
    pub(super) fn end_runs(&mut self, elapsed: Duration) {
        if self.order.run.is_none() {
            return;
        }
        let end = monotonic_ns();
        for instance in &mut self.instances.all {
            instance.state.measure = instance.state.exec_ns.map(|exec| (exec, end));
        }
        if self.ended_early.is_none() && !self.instances.all.iter().all(|i| i.state.is_over()) {
            let waited = text::short_duration(elapsed);
            let reason = format!("it had not ended after {waited}");
            self.give_up(TrialPhase::Start, reason);
        }
    }
}
