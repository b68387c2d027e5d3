//! The load command of a trial: when it starts, and what its end is to the phase under way.
//!
//! Owns when; how it is held, and what its end means, is `load_command`'s.

use std::time::{Duration, Instant};

use loadline_analysis::record::TrialPhase;
use loadline_protocol::LoadPhase;

use super::OngoingTrial;
use crate::container::{ContainerNetwork, NetworkNamespace};
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
        self.refuse_in_pod()?;
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
            let network = ContainerNetwork::Of(NetworkNamespace {
                path: network.to_owned(),
                container: None,
            });
            let tool = LoadTool::start_tool(self.site, self.order, command, plan, network)?;
            self.instances.load_tool = Some(tool);
        }
        if let Some(tool) = &mut self.instances.load_tool {
            tool.begin_phase();
        }
        Ok(())
    }

    fn refuse_in_pod(&self) -> Result<(), HaltReason> {
        match self.site.options.is_pod {
            false => Ok(()),
            true => Err(refusal_halt(
                "the load command",
                "the trial runs in a container that has no program of this machine",
                "let an engine of this machine run the image (--engine), or leave out the command (--load, --drive)",
            )),
        }
    }

    /// Starts the command that drives a consumer, in the consumer's network, where there is one.
    pub(super) fn start_drive(&mut self) -> Result<(), HaltReason> {
        let (Some(command), [only]) = (&self.order.load_command, &self.instances.all[..]) else {
            return Ok(());
        };
        self.refuse_in_pod()?;
        if self.instances.load_tool.is_none() {
            let network = only.container.application_network();
            let tool = LoadTool::start_tool(self.site, self.order, command, &only.plan, network)?;
            self.instances.load_tool = Some(tool);
        }
        if let Some(tool) = &mut self.instances.load_tool {
            tool.begin_phase();
        }
        Ok(())
    }

    /// Watches the command that drives a consumer; `false` where its end ends the phase. Errors: Its
    /// early end, which makes the judged phase void.
    pub(super) fn look_after_drive(
        &mut self,
        load: &LoadPhase,
        passed: Duration,
    ) -> Result<bool, HaltReason> {
        let is_studied = self.is_studied(load.phase);
        let length = load.plan.model.scheduled_duration().unwrap_or_default();
        let Some(tool) = &mut self.instances.load_tool else {
            return Ok(true);
        };
        tool.look_after()?;
        let is_judged = load.phase == TrialPhase::Measure;
        if !tool.has_ended()
            || tool.is_done(if is_judged { passed } else { Duration::ZERO }, length)
        {
            return Ok(true);
        }
        let needed = self.order.load.iter();
        let needed = needed.filter_map(|load| load.plan.model.scheduled_duration());
        let failure = tool.early_end(needed.sum());
        // What follows from the application's end is not the command's.
        match is_studied || self.has_ended(0) || self.instances.all[0].ran_out_of_memory() {
            true => Ok(false),
            false => Err(HaltReason::Failed(failure)),
        }
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
