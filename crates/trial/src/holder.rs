//! The container of a trial's program: loadline's own namespaces and cgroup, or an engine's
//! container.
//!
//! Owns the choice, not the implementations. The application, its dependencies and their seeds are
//! all contained this way.

use std::io::PipeWriter;

use loadline_protocol::{AppSpec, EngineKind};

use crate::container::{AppContainer, ContainedProgram};
use crate::halt::{HaltReason, refusal_halt};
use crate::notes::{InstanceNote, NoteSender};
use crate::oci::OciContainer;
use crate::own::NamespaceContainer;
use crate::pod::{OrderedLimits, PodContainer, ShippedPodContainer};
use crate::site::Site;

impl ContainedProgram<'_> {
    /// Makes its container; remarks for the record go to `warnings`. Errors:
    /// [`HaltReason::Refused`] when this machine or the engine cannot; everything made so far is
    /// removed.
    pub(crate) fn prepare_container(
        &self,
        site: &Site,
        output: PipeWriter,
        teller: &NoteSender,
        warnings: &mut Vec<String>,
    ) -> Result<Box<dyn AppContainer>, HaltReason> {
        let told = teller.clone();
        let tell = move |what| told.send_note(InstanceNote::Told(what));
        let layout = &site.layout;
        Ok(match self.app {
            AppSpec::Command { .. } => {
                let loadline = &site.options.program;
                Box::new(NamespaceContainer::prepare_in_namespaces(
                    layout, self, loadline, output, tell, warnings,
                )?)
            }
            AppSpec::Image(image)
                if image.engine.kind == EngineKind::Kubernetes || site.options.is_pod =>
            {
                let place = site.options.pod.as_ref().ok_or_else(|| {
                    let why = "its order is for a pod, and this is none";
                    let hint = "see `loadline --help` for the commands to use";
                    refusal_halt("starting the application", why, hint)
                })?;
                if self.as_shipped {
                    let shipped = ShippedPodContainer::prepare_shipped(place, self.gc_log, tell)?;
                    return Ok(Box::new(shipped));
                }
                let given = OrderedLimits {
                    cpu: self.frame.limits.cpu_quota,
                    memory: self.frame.limits.memory,
                };
                let given = (given, image.stop_signal);
                Box::new(PodContainer::prepare_in_pod(
                    place, self.trial, given, tell,
                )?)
            }
            AppSpec::Image(image) => {
                let frame = &self.frame;
                Box::new(OciContainer::prepare_in_engine(
                    layout, frame, image, output, tell, warnings,
                )?)
            }
        })
    }
}
