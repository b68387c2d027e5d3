//! Looks after and between load phases: soaks, ageing and squeezes.
//!
//! Owns their times; `soaking` and `studying` do the reading.

use loadline_analysis::record::{Evidence, TrialPhase};
use loadline_analysis::sli::MeasuredLoad;
use loadline_analysis::verdict::load_misses;

use super::OngoingTrial;
use crate::clock::monotonic_ns;
use crate::halt::HaltReason;
use crate::load_command::LoadTool;

impl OngoingTrial<'_> {
    pub(super) fn prepare_soak_cycle(&mut self, phase: TrialPhase) -> Result<(), HaltReason> {
        let rest = self.soaking.as_ref().map(|soaking| soaking.soak.rest);
        match (phase, rest) {
            (TrialPhase::Measure, Some(_)) => self.probe_soak(false),
            (TrialPhase::Again, Some(rest)) => {
                let began = self.instances.begin_phase(TrialPhase::Rest);
                self.wait_without_load(TrialPhase::Rest, rest)?;
                self.probe_soak(false);
                self.add_span(TrialPhase::Rest, began, monotonic_ns());
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn begin_study(&mut self, phase: TrialPhase) -> bool {
        let has_missed = phase == TrialPhase::Age && self.has_missed();
        let instances = &self.instances.all;
        match (phase, &mut self.study) {
            // No size is found by the memory of a start that has missed.
            (TrialPhase::Age, Some(_)) => !has_missed,
            (TrialPhase::Squeeze, Some(study)) => {
                let before = Evidence {
                    phases: self.phases.clone(),
                    load: self.load.clone(),
                    memory: instances.first().and_then(|i| i.state.parts.clone()),
                    ..Evidence::default()
                };
                let order = (self.order, self.site.options.is_pod);
                study.prepare_squeeze(instances, order, before)
            }
            (TrialPhase::Again, Some(study)) => study.is_followed(),
            _ => true,
        }
    }

    /// Whether its judged load is over and has missed the SLO of a search.
    fn has_missed(&self) -> bool {
        let so_far = Evidence {
            load: self.load.clone(),
            ..Evidence::default()
        };
        let load = MeasuredLoad::from_evidence(&so_far).ok().flatten();
        let missed = self.order.give_up.as_ref().zip(load);
        self.ended_early.is_some() || missed.is_some_and(|(slo, load)| load_misses(slo, &load))
    }

    pub(super) fn end_study(&mut self, phase: TrialPhase) {
        let tool = self.instances.load_tool.as_ref();
        let is_unloaded = tool.is_some_and(LoadTool::has_ended);
        let (Some(study), [instance]) = (&mut self.study, &mut self.instances.all[..]) else {
            return;
        };
        match phase {
            TrialPhase::Age => {
                let live_set = study.ask_live_set(instance, self.order);
                if let Some(parts) = &mut instance.state.parts {
                    parts.live_set = live_set;
                }
            }
            TrialPhase::Squeeze => study.end_squeeze(instance, is_unloaded),
            _ => {}
        }
    }

    pub(super) fn answered(&self) -> u64 {
        self.load.iter().map(|load| load.ok).sum()
    }

    pub(super) fn is_studied(&self, phase: TrialPhase) -> bool {
        let behind = [TrialPhase::Age, TrialPhase::Squeeze, TrialPhase::Again];
        self.study.is_some() && behind.contains(&phase)
    }

    /// Whether the peak follows. Noise and dependencies are measured over both, unless generators without
    /// a separate group would count as noise.
    pub(super) fn has_peak_behind(&self, phase: TrialPhase) -> bool {
        let mut behind = self.order.load.iter();
        phase == TrialPhase::Measure
            && self.ended_early.is_none()
            && behind.any(|load| load.phase == TrialPhase::Peak)
    }

    /// Ends the window of a judged load that no peak followed, because the application ended.
    pub(super) fn end_cut_window(&mut self) {
        let has_peak = self.phases.iter().any(|p| p.phase == TrialPhase::Peak);
        if !has_peak && self.has_peak_behind(TrialPhase::Measure) {
            self.instances.end_window();
        }
    }

    pub(super) fn probe_soak(&mut self, is_last: bool) {
        if let Some(soaking) = &mut self.soaking {
            soaking.probe_jvms(&self.instances.all, is_last);
        }
    }
}
