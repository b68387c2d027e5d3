//! A phase without requests: it lasts for its time, and metrics are read meanwhile.

use loadline_analysis::record::TrialPhase;
use loadline_protocol::LoadPhase;

use super::OngoingTrial;
use crate::clock::monotonic_ns;
use crate::halt::HaltReason;

impl OngoingTrial<'_> {
    pub(super) fn pass_time(&mut self, load: &LoadPhase) -> Result<(), HaltReason> {
        let is_studied = self.is_studied(load.phase);
        if !is_studied {
            self.instances.begin_window(&[]);
        }
        let begin_ns = monotonic_ns();
        let readers = self.start_metrics(load.phase)?;
        let length = load.plan.model.scheduled_duration();
        self.wait_without_load(load.phase, length.unwrap_or_default())?;
        let end_ns = monotonic_ns();
        if !is_studied {
            self.instances.end_window();
        }
        self.finish_metrics(readers)?;
        if load.phase == TrialPhase::Measure {
            for instance in &mut self.instances.all {
                instance.state.measure = Some((begin_ns, end_ns));
                instance.measure_memory(0);
            }
        }
        self.add_span(load.phase, begin_ns, end_ns);
        Ok(())
    }
}
