//! Trials of this machine in a thread of loadline: an order carried out by the local backend.
//!
//! Owns the thread and nothing else. One trial at a time: two would disturb each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use loadline_analysis::record::{Evidence, Failure, Invalid, Machine};
use loadline_host::trial::{self, TrialPlan};
use loadline_trial::{App, Ending, Event, Order, Progress, Refusal};

use super::local::LocalBackend;
use super::{Backend, BackendError, InstanceSpec, Keep, Observer, monotonic_ns};
use crate::host::{Delivery, Host, Running};

/// This machine, with one slot.
pub struct InProcess {
    machine: Machine,
    backend: Arc<Mutex<LocalBackend>>,
}

impl InProcess {
    /// Trials by this backend.
    pub fn new(backend: LocalBackend) -> Self {
        Self {
            machine: backend.machine(),
            backend: Arc::new(Mutex::new(backend)),
        }
    }
}

impl Host for InProcess {
    fn machine(&self) -> Machine {
        self.machine.clone()
    }

    fn slots(&self) -> usize {
        1
    }

    fn refuses(&self, order: &Order) -> Option<Refusal> {
        let is_command = matches!(order.app, App::Command { .. });
        let hint = "give the application's command";
        (!is_command).then(|| Refusal::new("starting an image", "this host runs commands", hint))
    }

    fn launch(
        &mut self,
        _slot: usize,
        order: &Order,
        delivery: &Delivery,
    ) -> Result<Box<dyn Running>, Refusal> {
        let (sender, events) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let teller = Teller {
            events: sender,
            listener: thread::current(),
            stop: Arc::clone(&stop),
        };
        let (backend, plan) = (Arc::clone(&self.backend), plan(order, delivery));
        let work = move || {
            let mut backend = backend.lock().unwrap_or_else(PoisonError::into_inner);
            carry_out(&mut backend, &plan, teller);
        };
        let spawned = thread::Builder::new().spawn(work).map_err(|error| {
            let hint = "raise the limit of processes (ulimit -u)";
            Refusal::new("starting a thread for the trial", error, hint)
        })?;
        Ok(Box::new(InThread {
            events,
            stop,
            thread: Some(spawned),
        }))
    }

    fn wait(&mut self, patience: Duration) {
        thread::park_timeout(patience);
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// A trial in its thread.
struct InThread {
    events: Receiver<Event>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running for InThread {
    fn next(&mut self) -> Option<Event> {
        match self.events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let detail = "its thread ended without a result".to_owned();
                Some(failed(Invalid::RuntimeLost, detail))
            }
        }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for InThread {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has been told as a lost trial.
            let _ = thread.join();
        }
    }
}

/// The thread's end of the channel.
struct Teller {
    events: Sender<Event>,
    listener: Thread,
    stop: Arc<AtomicBool>,
}

impl Teller {
    fn tell(&self, event: Event) {
        // Nobody listens any more to a trial that was dropped.
        let _ = self.events.send(event);
        self.listener.unpark();
    }
}

impl Observer for Teller {
    fn progress(&mut self, progress: Progress) {
        self.tell(Event::Progress(progress));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn carry_out(backend: &mut LocalBackend, plan: &TrialPlan, mut teller: Teller) {
    let ended = match trial::run(backend, plan, &mut teller) {
        Ok(evidence) => Event::Ended(Ending::Measured(Box::new(evidence))),
        Err(BackendError::Refused(refusal)) => Event::Ended(Ending::Refused(refusal)),
        Err(BackendError::Interrupted) => Event::Ended(Ending::Stopped),
        Err(BackendError::Invalid { cause, detail }) => failed(cause, detail),
    };
    teller.tell(ended);
}

fn failed(cause: Invalid, detail: String) -> Event {
    let failure = Some(Failure { cause, detail });
    let evidence = Evidence {
        failure,
        ..Evidence::default()
    };
    Event::Ended(Ending::Measured(Box::new(evidence)))
}

fn plan(order: &Order, delivery: &Delivery) -> TrialPlan {
    let (command, env, directory) = match order.app.clone() {
        App::Command {
            command,
            env,
            directory,
        } => (command, env, directory),
        // Refused before.
        App::Image { .. } => Default::default(),
    };
    let file = order.hand_over.first().zip(delivery.files.first());
    TrialPlan {
        instance: InstanceSpec {
            trial: order.trial.clone(),
            configuration: order.configuration.clone(),
            command,
            env,
            directory,
            readiness: order.readiness.clone(),
            network: order.network,
            account: order.account,
            scratch: order.scratch.clone(),
            samples: delivery.log.clone(),
            gc_log: order.gc_log.clone(),
            log_line: order.log_line.clone(),
            keep: file.map(|(seen, to)| Keep {
                seen: seen.clone(),
                to: to.clone(),
            }),
            sampling: order.sampling,
        },
        start_deadline: order.start_deadline,
        load: order.load.clone(),
        stop_grace: order.stop_grace,
    }
}
