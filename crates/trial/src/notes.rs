//! What the threads of a trial tell the one that runs it.
//!
//! Owns the messages. Containers, probes, outputs and generators each have a thread; everything
//! they learn arrives in one queue, with the instance it is about.

use std::sync::mpsc::Sender;

use crate::container::ContainerEvent;
use crate::probe::ProbeFinding;
use loadline_load::part::LoadMessage;

pub(crate) enum InstanceNote {
    Told(ContainerEvent),
    /// The line that the experiment names was written; it does not decide.
    LogLine {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    LineFound {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    Probe(ProbeFinding),
    Generator(GeneratorLine),
}

pub(crate) enum GeneratorLine {
    Message(LoadMessage),
    /// The end of the output, with what it wrote to standard error or what could not be read.
    End(String),
}

#[derive(Debug, Clone)]
pub(crate) struct NoteSender {
    instance: usize,
    queue: Sender<(usize, InstanceNote)>,
}

impl NoteSender {
    /// For an instance, from 0.
    pub(crate) fn new(instance: usize, queue: Sender<(usize, InstanceNote)>) -> Self {
        Self { instance, queue }
    }

    /// Tells it. When the trial is over nobody wants to know.
    pub(crate) fn send_note(&self, note: InstanceNote) {
        let _ = self.queue.send((self.instance, note));
    }
}
