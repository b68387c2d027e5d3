//! What holds a program of a trial: namespaces and a cgroup of loadline's own, or an engine's
//! container.
//!
//! Owns the choice, and nothing of how either is done. The application, its dependencies and their
//! seeds are all held this way.

use std::io::PipeWriter;
use std::path::{Path, PathBuf};

use loadline_trial::{App, EngineKind};

use crate::container::{Container, Frame};
use crate::halt::{Halt, refused};
use crate::notes::{Note, Teller};
use crate::oci::Oci;
use crate::own::{self, Own};
use crate::pod::{Given, Pod, Shipped};
use crate::program::Program;
use crate::site::Site;

/// A program and what it may see of the machine.
pub(crate) struct Held<'a> {
    /// What every container is made of.
    pub frame: Frame<'a>,
    /// What runs.
    pub app: &'a App,
    /// The trial that it is of.
    pub trial: &'a str,
    /// The same, with who runs it.
    pub program: &'a Program,
    /// CPUs it may run on.
    pub cpus: &'a [u32],
    /// Directories of the machine that it sees as empty ones of its own.
    pub directories: &'a [PathBuf],
    /// Directories that it must not see.
    pub hidden: &'a [PathBuf],
    /// The JVM's GC log, as the application sees it.
    pub gc_log: Option<&'a Path>,
    /// Whether its pod is the one that ships.
    pub as_shipped: bool,
}

impl Held<'_> {
    /// Makes its container; remarks for the record go to `warnings`.
    ///
    /// # Errors
    /// [`Halt::Refused`] when this machine or the engine cannot; what was made is gone again.
    pub(crate) fn prepare(
        &self,
        site: &Site,
        output: PipeWriter,
        teller: &Teller,
        warnings: &mut Vec<String>,
    ) -> Result<Box<dyn Container>, Halt> {
        let told = teller.clone();
        let tell = move |what| told.tell(Note::Told(what));
        let layout = &site.layout;
        Ok(match self.app {
            App::Command { .. } => {
                let wanted = own::Wanted {
                    frame: &self.frame,
                    program: self.program,
                    cpus: self.cpus,
                    directories: self.directories,
                    hidden: self.hidden,
                    loadline: &site.options.program,
                };
                Box::new(Own::prepare(layout, &wanted, output, tell, warnings)?)
            }
            App::Image(image)
                if image.engine.kind == EngineKind::Kubernetes || site.options.is_pod =>
            {
                let place = site.options.pod.as_ref().ok_or_else(|| {
                    refused(
                        "starting the application",
                        "its order is for a pod, and this is none".to_owned(),
                        "see `loadline --help` for the commands for people",
                    )
                })?;
                if self.as_shipped {
                    return Ok(Box::new(Shipped::prepare(place, self.gc_log, tell)?));
                }
                let given = Given {
                    cpu: self.frame.limits.cpu_quota,
                    memory: self.frame.limits.memory,
                };
                Box::new(Pod::prepare(
                    place,
                    self.trial,
                    (given, image.stop_signal),
                    tell,
                )?)
            }
            App::Image(image) => {
                let frame = &self.frame;
                Box::new(Oci::prepare(layout, frame, image, output, tell, warnings)?)
            }
        })
    }
}
