//! The load command of a trial: when it starts, and what its end is to the phase under way.
//!
//! Owns when; how it is held, and what its end means, is `load_command`'s.

use std::time::{Duration, Instant};

use loadline_analysis::record::{LoadEvidence, LoadFrom, PhaseSpan, TrialPhase};
use loadline_load::reported::ReportedWindow;
use loadline_protocol::{LoadCommandSpec, LoadPhase, TrialOrder};

use super::OngoingTrial;
use crate::clock::wall_ahead_ns;
use crate::container::{ContainerNetwork, NetworkNamespace};
use crate::dependency::DependencySite;
use crate::generator::GeneratorProcess;
use crate::halt::{HaltReason, refusal_halt};
use crate::load_command::LoadTool;

/// A front listens within milliseconds.
const STANDS: Duration = Duration::from_secs(10);

/// How long a command may take to end by itself after the judged part, and again once it was asked:
/// it was told to send for 2 s more, and a JVM needs some to end.
const ENDS: Duration = Duration::from_secs(5);

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
            let network = ContainerNetwork::Of(NetworkNamespace {
                path: network.to_owned(),
                container: None,
            });
            self.start_tool_in(network, command)?;
        }
        let tool = self.instances.load_tool.iter_mut();
        tool.for_each(LoadTool::begin_phase);
        Ok(())
    }

    fn start_tool_in(
        &mut self,
        network: ContainerNetwork,
        command: &LoadCommandSpec,
    ) -> Result<(), HaltReason> {
        let at = DependencySite {
            site: self.site,
            order: self.order,
            plan: &self.instances.all[0].plan,
            stop: self.stop,
        };
        self.instances.load_tool = Some(LoadTool::start_tool(at, command, network)?);
        Ok(())
    }

    fn refuse_in_pod(&self) -> Result<(), HaltReason> {
        if !self.site.options.is_pod {
            return Ok(());
        }
        let why = "the trial runs in a container that has no program of this machine";
        let hint = "let an engine of this machine run the image (--engine), or leave out the command (--load, --drive)";
        Err(refusal_halt("the load command", why, hint))
    }

    /// Starts the command that drives a consumer, in the consumer's network, where there is one.
    pub(super) fn start_drive(&mut self) -> Result<(), HaltReason> {
        let (Some(command), [only]) = (&self.order.load_command, &self.instances.all[..]) else {
            return Ok(());
        };
        self.refuse_in_pod()?;
        if self.instances.load_tool.is_none() {
            let network = only.container.application_network();
            self.start_tool_in(network, command)?;
        }
        let tool = self.instances.load_tool.iter_mut();
        tool.for_each(LoadTool::begin_phase);
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
        let failure = tool.early_end(told_length(self.order));
        // What follows from the application's end is not the command's.
        if is_studied || self.has_ended(0) || self.instances.all[0].ran_out_of_memory() {
            Ok(false)
        } else {
            Err(HaltReason::Failed(failure))
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
        let passed = front.seconds.len();
        if tool.has_ended() {
            if is_studied || tool.is_done(Duration::from_secs(passed as u64), length) {
                front.ask_to_stop();
                return Ok(());
            }
            return Err(HaltReason::Failed(tool.early_end(told_length(self.order))));
        }
        let has_begun = !front.seconds.is_empty() || !self.load.is_empty();
        match &self.order.load_command {
            Some(command) if !has_begun && front.begin.elapsed() > command.first_request => {
                Err(HaltReason::Failed(tool.sent_nothing(command)))
            }
            _ => Ok(()),
        }
    }

    /// Waits for the end of a command that writes results or is judged by its exit code, and takes
    /// both into the evidence of the judged phase. Results that cannot be read are a remark. Errors:
    /// An exit code that is neither success nor a miss.
    pub(super) fn take_results(&mut self) -> Result<(), HaltReason> {
        let Some(window) = self.judged_window() else {
            return Ok(());
        };
        let (begin, mut is_asked) = (Instant::now(), false);
        let tool = self.instances.load_tool.as_ref();
        let own = tool.map_or(ENDS, |tool| ENDS + tool.time_left(told_length(self.order)));
        while begin.elapsed() < own + ENDS && !self.instances.all[0].state.is_over() {
            let Some(tool) = &mut self.instances.load_tool else {
                return Ok(());
            };
            tool.look_after()?;
            if tool.has_ended() || !tool.is_awaited() {
                break;
            }
            if !is_asked && begin.elapsed() > own {
                tool.ask_to_end();
                is_asked = true;
            }
            self.instances.wait_tick();
            self.go_on()?;
        }
        let Some(tool) = &mut self.instances.load_tool else {
            return Ok(());
        };
        // What follows from the application's end is not the command's.
        if !self.instances.all[0].state.is_over() {
            self.instances.load_exit = tool.judged_exit().map_err(HaltReason::Failed)?;
        }
        if !tool.writes_results() {
            return Ok(());
        }
        match tool.read_results(window) {
            Err(why) => {
                let warning = format!("the load command's {why}");
                self.instances.all[0].state.warnings.push(warning);
            }
            Ok(reported) => {
                let measured = |load: &&mut LoadEvidence| load.phase == TrialPhase::Measure;
                let load = self.load.iter_mut().rfind(measured);
                if let Some(LoadFrom::Command { command }) = load.and_then(|l| l.load_from.as_mut())
                {
                    command.reported = Some(reported);
                }
            }
        }
        Ok(())
    }

    /// The judged phase on the clocks of a tool; `None` without a command, or where it was cut short.
    fn judged_window(&self) -> Option<ReportedWindow> {
        let is_whole = self.instances.load_tool.is_some() && self.ended_early.is_none();
        let mut spans = self.phases.iter();
        let is_load = |span: &&PhaseSpan| self.order.load.iter().any(|l| l.phase == span.phase);
        let first = spans.clone().find(is_load).filter(|_| is_whole)?;
        let judged = spans.rfind(|span| span.phase == TrialPhase::Measure)?;
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        let begin = judged.start.saturating_add_signed(wall_ahead_ns());
        Some(ReportedWindow {
            begin: seconds(begin),
            since_first: seconds(judged.start.saturating_sub(first.start)),
            length: seconds(judged.end.saturating_sub(judged.start)),
        })
    }

    pub(super) fn end_load_tool(&mut self) {
        self.front = None;
        if let Some(tool) = self.instances.load_tool.take() {
            tool.end_tool();
        }
    }
}

/// The length that its command got as `{duration_s}`.
fn told_length(order: &TrialOrder) -> Duration {
    let phases = order.load.iter();
    let lengths = phases.filter_map(|load| load.plan.model.scheduled_duration());
    lengths.sum()
}
