//! Messages from the threads of a trial to its main loop.
//!
//! Owns the messages. Containers, probes, outputs and generators each have a thread; all their
//! messages arrive in one queue, with the number of the instance.

use std::sync::mpsc::Sender;

use loadline_load::part::LoadMessage;

use crate::container::ContainerEvent;
use crate::probe::ProbeFinding;

pub(crate) enum InstanceNote {
    Told(ContainerEvent),
    LogLine { at_ns: u64 },
    LineFound { at_ns: u64 },
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
    pub(crate) fn new(instance: usize, queue: Sender<(usize, InstanceNote)>) -> Self {
        Self { instance, queue }
    }

    pub(crate) fn send_note(&self, note: InstanceNote) {
        let _ = self.queue.send((self.instance, note));
    }
}
