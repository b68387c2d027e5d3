//! The load command of a trial: when it starts, and what its end is to the phase under way.
//!
//! Owns when; how it is held, and what its end means, is `load_command`'s.

use std::time::{Duration, Instant};

use loadline_protocol::LoadPhase;

use super::OngoingTrial;
use crate::generator::GeneratorProcess;
use crate::halt::{HaltReason, refusal_halt};
use crate::load_command::LoadTool;

/// A front listens within milliseconds.
const STANDS: Duration = Duration::from_secs(10);

impl OngoingTrial<'_> {
    /// Starts the load command once its front stands; begins to count what it uses in this phase.
    pub(super) fn start_load_tool(
        &mut self,
        generators: &mut [GeneratorProcess],
    ) -> Result<(), HaltReason> {
        let (Some(command), [front]) = (&self.order.load_command, generators) else {
            return Ok(());
        };
        if self.site.options.is_pod {
            return Err(refusal_halt(
                "the load command",
                "the trial runs in a container that has no program of this machine",
                "let an engine of this machine run the image (--engine), or leave out the command (--load)",
            ));
        }
        if self.instances.load_tool.is_none() {
            let begin = Instant::now();
            while front.front_network().is_none() && !front.is_over() && begin.elapsed() < STANDS {
                for (_, line) in self.instances.wait_tick() {
                    front.take_generator_line(line);
                }
            }
            let Some(network) = front.front_network() else {
                return Err(front.gave_nothing(None));
            };
            let plan = &self.instances.all[0].plan;
            let network = network.to_owned();
            let tool = LoadTool::start_tool(self.site, self.order, command, plan, network)?;
            self.instances.load_tool = Some(tool);
        }
        if let Some(tool) = &mut self.instances.load_tool {
            tool.begin_phase();
        }
        Ok(())
    }

    /// Watches the load command during a phase. If it ends too early, or sends nothing, the judged
    /// phase is void; in a later phase this only ends the phase.
    pub(super) fn look_after_load_tool(
        &mut self,
        load: &LoadPhase,
        generators: &mut [GeneratorProcess],
    ) -> Result<(), HaltReason> {
        let is_studied = self.is_studied(load.phase);
        let (Some(tool), [front]) = (&mut self.instances.load_tool, generators) else {
            return Ok(());
        };
        tool.look_after()?;
        // The application's own end is seen first: what follows from it is not the tool's.
        if front.is_over() || self.instances.all[0].state.is_over() {
            return Ok(());
        }
        let length = load.plan.model.scheduled_duration().unwrap_or_default();
        let passed = front.passed_seconds().len();
        if tool.has_ended() {
            if is_studied || tool.is_done(Duration::from_secs(passed as u64), length) {
                front.ask_to_stop();
                return Ok(());
            }
            let needed = self.order.load.iter();
            let needed = needed.filter_map(|load| load.plan.model.scheduled_duration());
            return Err(HaltReason::Failed(tool.early_end(needed.sum())));
        }
        let has_begun = !front.passed_seconds().is_empty() || !self.load.is_empty();
        match &self.order.load_command {
            Some(command) if !has_begun && front.ordered_for() > command.first_request => {
                Err(HaltReason::Failed(tool.sent_nothing(command)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn end_load_tool(&mut self) {
        self.front = None;
        if let Some(tool) = self.instances.load_tool.take() {
            tool.end_tool();
        }
    }
}
