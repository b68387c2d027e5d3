//! A phase without requests: it lasts for its time, a command may drive the
//! application, and metrics are read.

use std::time::Instant;

use loadline_analysis::record::TrialPhase;
use loadline_protocol::LoadPhase;

use super::OngoingTrial;
use crate::clock::monotonic_ns;
use crate::halt::HaltReason;

impl OngoingTrial<'_> {
    pub(super) fn pass_time(&mut self, load: &LoadPhase) -> Result<(), HaltReason> {
        let is_studied = self.is_studied(load.phase);
        self.start_drive()?;
        if !is_studied {
            self.instances.begin_window(&[]);
        }
        let begin_ns = monotonic_ns();
        let readers = self.start_metrics(load.phase)?;
        let length = load.plan.model.scheduled_duration().unwrap_or_default();
        let begin = Instant::now();
        while begin.elapsed() < length && !self.instances.all.iter().any(|i| i.state.is_over()) {
            self.instances.wait_tick();
            self.instances.report_elapsed(load.phase, begin.elapsed());
            self.go_on()?;
            if !self.look_after_drive(load, begin.elapsed())? {
                break;
            }
        }
        let end_ns = monotonic_ns();
        if !is_studied {
            self.instances.end_window();
        }
        self.finish_metrics(readers)?;
        if load.phase == TrialPhase::Measure {
            let tool = self.instances.load_tool.as_mut();
            self.drive = tool.map(|tool| tool.drive_evidence(begin.elapsed()));
            for instance in &mut self.instances.all {
                instance.state.measure = Some((begin_ns, end_ns));
                instance.state.judged_until = Some(end_ns);
                instance.measure_memory(0);
            }
        }
        self.add_span(load.phase, begin_ns, end_ns);
        Ok(())
    }
}
