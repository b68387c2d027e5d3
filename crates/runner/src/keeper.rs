//! loadline's side of the keeper: the process that holds the dependencies shared by the trials of a
//! result, and a trial that waits for them before it begins.
//!
//! Owns that process and which of its answers become evidence. [`loadline_trial::keeper`] decides
//! when dependencies start and end. Each slot has a keeper: parallel trials must not share
//! dependencies.

use std::cell::RefCell;
use std::io::{self, Write};
use std::process::{Child, ChildStdin};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use loadline_analysis::foreign_text::indented_line;
use loadline_analysis::record::{Evidence, InvalidReason, MeasurementFailure};
use loadline_protocol::{
    DependencyScope, RunRefusal, SharedDependencies, TrialEnding, TrialEvent, TrialOrder,
};
use loadline_trial::keeper::{DependencyEnd, KeeperAnswer, KeeperRequest};
use loadline_trial::part::PARENT;
use loadline_trial::{Site, kill_part, part_command, read_answers, spawn_command};

use crate::host::{TrialHandle, WRITABLE};

const ANSWER: Duration = Duration::from_secs(10);

/// It stops its dependencies within seconds; otherwise it is killed.
const LEAVING: Duration = Duration::from_secs(30);

const POLL: Duration = Duration::from_millis(10);

type Begin = Box<dyn FnOnce(&TrialOrder) -> io::Result<Box<dyn TrialHandle>>>;

pub(crate) fn is_needed(order: &TrialOrder) -> bool {
    let mut all = order.dependencies.iter();
    all.any(|dependency| dependency.scope == DependencyScope::Result)
}

#[derive(Debug)]
pub(crate) struct KeeperProcess {
    site: Site,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<KeeperAnswer>,
}

impl KeeperProcess {
    pub(crate) fn start_process(site: &Site) -> io::Result<Self> {
        let mut command = part_command(&site.chosen_options().program, "keeper-part");
        command.env(PARENT, std::process::id().to_string());
        let mut child = spawn_command(command)?;
        let answers = read_answers(&mut child, "keeper")?;
        Ok(Self {
            site: site.clone(),
            requests: child.stdin.take(),
            child,
            answers,
        })
    }

    fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn send_request(&mut self, request: &KeeperRequest) {
        let line = serde_json::to_vec(request);
        if let (Ok(mut line), Some(requests)) = (line, &mut self.requests) {
            line.push(b'\n');
            let _ = requests.write_all(&line);
        }
    }

    fn inspect_dependencies(&mut self) -> Result<Vec<DependencyEnd>, MeasurementFailure> {
        self.send_request(&KeeperRequest::Look);
        match self.answers.recv_timeout(ANSWER) {
            Ok(KeeperAnswer::Looked { ended }) => Ok(ended),
            _ => Err(self.loss_failure()),
        }
    }

    fn loss_failure(&mut self) -> MeasurementFailure {
        let (how, said) = kill_part(&mut self.child);
        let said = indented_line(&said);
        let said = match said.as_str() {
            "" => String::new(),
            said => format!("; it said: {said}"),
        };
        let why =
            format!("the process that holds the dependencies of all trials was lost ({how}){said}");
        MeasurementFailure::new(InvalidReason::RuntimeLost, why)
    }

    fn end_keeper(&mut self) {
        // It ends when its requests do.
        self.requests = None;
        let begin = Instant::now();
        while self.is_there() && begin.elapsed() < LEAVING {
            std::thread::sleep(POLL);
        }
        let is_killed = self.is_there();
        let _ = self.child.kill();
        let status = self.child.wait();
        if is_killed || !status.is_ok_and(|status| status.success()) {
            // What cannot be removed now is found by the sweep of the next start.
            let _ = self.site.sweep_leftovers();
        }
    }
}

impl Drop for KeeperProcess {
    fn drop(&mut self) {
        self.end_keeper();
    }
}

pub(crate) type Place = Rc<RefCell<Option<KeeperProcess>>>;

/// A trial with shared dependencies: they are made ready before it begins.
pub(crate) struct JoiningTrial {
    keeper: Place,
    stage: JoiningStage,
}

enum JoiningStage {
    Asked(Box<TrialOrder>, Begin),
    Running(Box<dyn TrialHandle>),
    Over,
}

impl JoiningTrial {
    /// Asks the keeper, started if necessary, to make them ready; `begin` then starts the trial.
    pub(crate) fn ask_keeper(
        site: &Site,
        keeper: &Place,
        order: &TrialOrder,
        begin: Begin,
    ) -> io::Result<Self> {
        let mut place = keeper.borrow_mut();
        if !place.as_mut().is_some_and(KeeperProcess::is_there) {
            // First the old one, so that what it left is gone.
            *place = None;
            *place = Some(KeeperProcess::start_process(site)?);
        }
        if let Some(keeper) = place.as_mut() {
            keeper.send_request(&KeeperRequest::Trial(Box::new(order.clone())));
        }
        drop(place);
        Ok(Self {
            keeper: Rc::clone(keeper),
            stage: JoiningStage::Asked(Box::new(order.clone()), begin),
        })
    }

    fn begin_joined(&mut self, answer: KeeperAnswer) -> Option<TrialEvent> {
        let stage = std::mem::replace(&mut self.stage, JoiningStage::Over);
        let JoiningStage::Asked(order, begin) = stage else {
            return None;
        };
        let kept = match joined_dependencies(answer) {
            Ok(kept) => kept,
            Err(ending) => return Some(TrialEvent::Ended(ending)),
        };
        let order = TrialOrder {
            kept: Some(kept),
            ..*order
        };
        match begin(&order) {
            Ok(running) => {
                self.stage = JoiningStage::Running(running);
                None
            }
            Err(error) => {
                let refusal = RunRefusal::new("starting `loadline trial-part`", error, WRITABLE);
                Some(TrialEvent::Ended(TrialEnding::Refused(refusal)))
            }
        }
    }

    fn complete_last_event(&mut self, event: TrialEvent) -> TrialEvent {
        let TrialEvent::Ended(ending) = event else {
            return event;
        };
        self.stage = JoiningStage::Over;
        let TrialEnding::Measured(mut evidence) = ending else {
            return TrialEvent::Ended(ending);
        };
        let mut place = self.keeper.borrow_mut();
        match place.as_mut().map(KeeperProcess::inspect_dependencies) {
            Some(Ok(ended)) => add_ended_dependencies(&mut evidence, ended),
            Some(Err(failure)) => {
                *place = None;
                evidence.failure = Some(failure);
            }
            None => {}
        }
        TrialEvent::Ended(TrialEnding::Measured(evidence))
    }
}

impl TrialHandle for JoiningTrial {
    fn next(&mut self) -> Option<TrialEvent> {
        match &mut self.stage {
            JoiningStage::Over => None,
            JoiningStage::Running(running) => {
                let event = running.next()?;
                Some(self.complete_last_event(event))
            }
            JoiningStage::Asked(..) => {
                let mut place = self.keeper.borrow_mut();
                let answer = place.as_mut().map(|keeper| keeper.answers.try_recv());
                match answer {
                    Some(Ok(answer)) => {
                        drop(place);
                        self.begin_joined(answer)
                    }
                    Some(Err(TryRecvError::Empty)) => None,
                    // It was asked to stop, or it has gone.
                    Some(Err(TryRecvError::Disconnected)) | None => {
                        let lost = place.as_mut().map(KeeperProcess::loss_failure);
                        *place = None;
                        self.stage = JoiningStage::Over;
                        let lost = lost.map(|failure| Box::new(Evidence::failed(failure)));
                        let ending = lost.map_or(TrialEnding::Stopped, TrialEnding::Measured);
                        Some(TrialEvent::Ended(ending))
                    }
                }
            }
        }
    }

    fn stop_trial(&mut self) {
        match &mut self.stage {
            JoiningStage::Running(running) => running.stop_trial(),
            // What it was about to make ready is of no use half done.
            JoiningStage::Asked(..) => *self.keeper.borrow_mut() = None,
            JoiningStage::Over => {}
        }
    }
}

impl Drop for JoiningTrial {
    fn drop(&mut self) {
        if matches!(self.stage, JoiningStage::Asked(..)) {
            self.stop_trial();
        }
    }
}

fn joined_dependencies(answer: KeeperAnswer) -> Result<SharedDependencies, TrialEnding> {
    match answer {
        KeeperAnswer::Kept(kept) => Ok(kept),
        KeeperAnswer::Refused(refusal) => Err(TrialEnding::Refused(refusal)),
        KeeperAnswer::Failed {
            failure,
            dependencies,
        } => Err(TrialEnding::Measured(Box::new(Evidence {
            dependencies,
            failure: Some(failure),
            ..Evidence::default()
        }))),
        KeeperAnswer::Looked { .. } => Err(TrialEnding::Stopped),
    }
}

/// Adds the shared dependencies that have ended to a trial's evidence: measurements without them do
/// not describe the application.
fn add_ended_dependencies(evidence: &mut Evidence, ended: Vec<DependencyEnd>) {
    for one in ended {
        let mut all = evidence.dependencies.iter_mut();
        let Some(dependency) = all.find(|dependency| dependency.name == one.name) else {
            continue;
        };
        dependency.ended = Some(one.how);
        dependency.last_output = one.last_output;
        let is_open = |failure: &MeasurementFailure| failure.cause == InvalidReason::Dependency;
        if evidence.failure.as_ref().is_none_or(is_open) {
            evidence.failure = Some(one.failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_analysis::record::DependencyEvidence;

    fn ended(name: &str) -> DependencyEnd {
        DependencyEnd {
            name: name.to_owned(),
            how: "signal 9".to_owned(),
            last_output: vec!["no space".to_owned()],
            failure: MeasurementFailure::new(
                InvalidReason::Dependency,
                format!("the dependency {name}: it ended, it said: no space"),
            ),
        }
    }

    fn evidence(failure: Option<MeasurementFailure>) -> Evidence {
        Evidence {
            dependencies: vec![DependencyEvidence {
                name: "db".to_owned(),
                ..DependencyEvidence::default()
            }],
            failure,
            ..Evidence::default()
        }
    }

    #[test]
    fn one_that_ended_makes_its_trial_invalid_with_its_last_words() {
        let mut seen = evidence(None);
        add_ended_dependencies(&mut seen, vec![ended("db"), ended("of-another-trial")]);
        let failure = seen.failure.expect("it ended");
        assert_eq!(failure.cause, InvalidReason::Dependency);
        assert!(failure.detail.ends_with("it said: no space"));
        assert_eq!(seen.dependencies[0].ended.as_deref(), Some("signal 9"));
    }

    #[test]
    fn a_failure_of_loadlines_own_stays() {
        let own = MeasurementFailure::new(InvalidReason::DiskFull, "full");
        let mut seen = evidence(Some(own.clone()));
        add_ended_dependencies(&mut seen, vec![ended("db")]);
        assert_eq!(seen.failure, Some(own));
        add_ended_dependencies(&mut seen, Vec::new());
        assert_eq!(seen.dependencies[0].last_output, ["no space"]);
    }
}
