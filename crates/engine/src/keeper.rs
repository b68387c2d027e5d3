//! loadline's end of the keeper: the process that holds the dependencies which the trials of a result
//! share, and a trial that waits for them before it begins.
//!
//! Owns that process and what of its answers goes into evidence. When they start and end is
//! [`loadline_host::keeper`]'s. There is one for each slot: a trial must not share them with one that
//! runs beside it.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, Failure, Invalid};
use loadline_host::keeper::{Answer, Ended, Request};
use loadline_host::part::PARENT;
use loadline_host::{Site, plain, spawn};
use loadline_trial::{Ending, Event, Kept, Order, Refusal, Scope};

use crate::host::Running;

/// One that has nothing to do answers at once.
const ANSWER: Duration = Duration::from_secs(10);

/// It ends what it holds within seconds; one that does not is killed.
const LEAVING: Duration = Duration::from_secs(30);

/// How often it is looked whether it has ended.
const POLL: Duration = Duration::from_millis(10);

/// Of its own complaint, so much is kept.
const COMPLAINT: u64 = 4096;

/// Starts the rest of a trial once what it joins is there.
type Begin = Box<dyn FnOnce(&Order) -> io::Result<Box<dyn Running>>>;

/// Whether trials of this order share dependencies.
pub(crate) fn is_needed(order: &Order) -> bool {
    let mut all = order.dependencies.iter();
    all.any(|dependency| dependency.scope == Scope::Result)
}

/// The keeper of a slot. Dropping it ends all that it holds.
#[derive(Debug)]
pub(crate) struct Keeper {
    site: Site,
    child: Child,
    requests: Option<ChildStdin>,
    answers: Receiver<Answer>,
}

impl Keeper {
    /// Starts the process, which holds nothing yet.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn start(site: &Site) -> io::Result<Self> {
        let mut command = Command::new(&site.options().program);
        command
            .arg("keeper-part")
            .env_clear()
            .env(PARENT, std::process::id().to_string())
            .current_dir("/")
            // A Ctrl-C is for loadline, which ends it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = spawn(command)?;
        let (told, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            let read = move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                let all = lines.map_while(|line| serde_json::from_str(&line).ok());
                // Nobody who waits for an answer: loadline ends.
                all.for_each(|answer| drop(told.send(answer)));
            };
            let thread = std::thread::Builder::new().name("keeper".to_owned());
            thread.spawn(read)?;
        }
        Ok(Self {
            site: site.clone(),
            requests: child.stdin.take(),
            child,
            answers,
        })
    }

    /// Whether it is still there.
    fn is_there(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it; a keeper that is gone is found when the answer is awaited.
    fn ask(&mut self, request: &Request) {
        let line = serde_json::to_vec(request).map(|mut line| {
            line.push(b'\n');
            line
        });
        if let (Ok(line), Some(requests)) = (line, &mut self.requests) {
            let _ = requests.write_all(&line);
        }
    }

    /// How those that the trial joined are now that it is over.
    fn looked(&mut self) -> Result<Vec<Ended>, Failure> {
        self.ask(&Request::Look);
        match self.answers.recv_timeout(ANSWER) {
            Ok(Answer::Looked { ended }) => Ok(ended),
            _ => Err(self.lost()),
        }
    }

    /// What is to be said of one that is gone.
    fn lost(&mut self) -> Failure {
        let _ = self.child.kill();
        let how = self.child.wait();
        let how = how.map_or_else(|error| error.to_string(), |status| status.to_string());
        let mut said = Vec::new();
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(COMPLAINT).read_to_end(&mut said);
        }
        let said = plain(String::from_utf8_lossy(&said).trim());
        let said = match said.as_str() {
            "" => String::new(),
            said => format!("; it said: {said}"),
        };
        Failure {
            cause: Invalid::RuntimeLost,
            detail: format!(
                "the process that holds the dependencies of all trials was lost ({how}){said}"
            ),
        }
    }

    /// Ends all that it holds, and removes what it could not.
    fn end(&mut self) {
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
            let _ = self.site.sweep();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

/// The place of a slot's keeper; empty before the first trial, and after one that was lost.
pub(crate) type Place = Rc<RefCell<Option<Keeper>>>;

/// A trial whose dependencies are shared: first they are made ready, then it begins.
pub(crate) struct Joining {
    keeper: Place,
    stage: Stage,
}

enum Stage {
    /// The keeper is at work.
    Asked(Box<Order>, Begin),
    /// It runs.
    Running(Box<dyn Running>),
    Over,
}

impl Joining {
    /// Asks the keeper, which is started where there is none, to have them ready; `begin` starts the
    /// trial then.
    ///
    /// # Errors
    /// When the keeper cannot be started.
    pub(crate) fn ask(
        site: &Site,
        keeper: &Place,
        order: &Order,
        begin: Begin,
    ) -> io::Result<Self> {
        let mut place = keeper.borrow_mut();
        if !place.as_mut().is_some_and(Keeper::is_there) {
            // First the old one, so that what it left is gone.
            *place = None;
            *place = Some(Keeper::start(site)?);
        }
        if let Some(keeper) = place.as_mut() {
            keeper.ask(&Request::Trial(Box::new(order.clone())));
        }
        drop(place);
        Ok(Self {
            keeper: Rc::clone(keeper),
            stage: Stage::Asked(Box::new(order.clone()), begin),
        })
    }

    /// Begins the trial, or says how it ended before it could.
    fn begin(&mut self, answer: Answer) -> Option<Event> {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        let Stage::Asked(order, begin) = stage else {
            return None;
        };
        let kept = match kept(answer) {
            Ok(kept) => kept,
            Err(ending) => return Some(Event::Ended(ending)),
        };
        let order = Order {
            kept: Some(kept),
            ..*order
        };
        match begin(&order) {
            Ok(running) => {
                self.stage = Stage::Running(running);
                None
            }
            Err(error) => Some(Event::Ended(Ending::Refused(Refusal::new(
                "starting `loadline trial-part`",
                error,
                "the state directory must be writable, on a disk with space",
            )))),
        }
    }

    /// Puts what the keeper knows into the last event of a trial.
    fn last(&mut self, event: Event) -> Event {
        let Event::Ended(ending) = event else {
            return event;
        };
        self.stage = Stage::Over;
        let Ending::Measured(mut evidence) = ending else {
            return Event::Ended(ending);
        };
        let mut place = self.keeper.borrow_mut();
        match place.as_mut().map(Keeper::looked) {
            Some(Ok(ended)) => take(&mut evidence, ended),
            Some(Err(failure)) => {
                *place = None;
                evidence.failure = Some(failure);
            }
            None => {}
        }
        Event::Ended(Ending::Measured(evidence))
    }
}

impl Running for Joining {
    fn next(&mut self) -> Option<Event> {
        match &mut self.stage {
            Stage::Over => None,
            Stage::Running(running) => {
                let event = running.next()?;
                Some(self.last(event))
            }
            Stage::Asked(..) => {
                let mut place = self.keeper.borrow_mut();
                let answer = place.as_mut().map(|keeper| keeper.answers.try_recv());
                match answer {
                    Some(Ok(answer)) => {
                        drop(place);
                        self.begin(answer)
                    }
                    Some(Err(TryRecvError::Empty)) => None,
                    // It was told to stop, or it is gone.
                    Some(Err(TryRecvError::Disconnected)) | None => {
                        let lost = place.as_mut().map(Keeper::lost);
                        *place = None;
                        self.stage = Stage::Over;
                        Some(Event::Ended(match lost {
                            None => Ending::Stopped,
                            Some(failure) => failed(failure),
                        }))
                    }
                }
            }
        }
    }

    fn stop(&mut self) {
        match &mut self.stage {
            Stage::Running(running) => running.stop(),
            // What it was about to make ready is of no use half done.
            Stage::Asked(..) => *self.keeper.borrow_mut() = None,
            Stage::Over => {}
        }
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Asked(..)) {
            self.stop();
        }
    }
}

fn failed(failure: Failure) -> Ending {
    Ending::Measured(Box::new(Evidence {
        failure: Some(failure),
        ..Evidence::default()
    }))
}

/// What a trial joins, or how it ends without.
fn kept(answer: Answer) -> Result<Kept, Ending> {
    match answer {
        Answer::Kept(kept) => Ok(kept),
        Answer::Refused(refusal) => Err(Ending::Refused(refusal)),
        Answer::Failed {
            failure,
            dependencies,
        } => Err(Ending::Measured(Box::new(Evidence {
            dependencies,
            failure: Some(failure),
            ..Evidence::default()
        }))),
        Answer::Looked { .. } => Err(Ending::Stopped),
    }
}

/// Adds to the evidence of a trial which of its shared dependencies have ended: what it measured
/// without them is not the application.
fn take(evidence: &mut Evidence, ended: Vec<Ended>) {
    for one in ended {
        let mut all = evidence.dependencies.iter_mut();
        let Some(dependency) = all.find(|dependency| dependency.name == one.name) else {
            continue;
        };
        dependency.ended = Some(one.how);
        dependency.last_output = one.last_output;
        let is_open = |failure: &Failure| failure.cause == Invalid::Dependency;
        if evidence.failure.as_ref().is_none_or(is_open) {
            evidence.failure = Some(one.failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_analysis::record::DependencyEvidence;

    fn ended(name: &str) -> Ended {
        Ended {
            name: name.to_owned(),
            how: "signal 9".to_owned(),
            last_output: vec!["no space".to_owned()],
            failure: Failure {
                cause: Invalid::Dependency,
                detail: format!("the dependency {name}: it ended, it said: no space"),
            },
        }
    }

    fn evidence(failure: Option<Failure>) -> Evidence {
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
        take(&mut seen, vec![ended("db"), ended("of-another-trial")]);
        let failure = seen.failure.expect("it ended");
        assert_eq!(failure.cause, Invalid::Dependency);
        assert!(failure.detail.ends_with("it said: no space"));
        assert_eq!(seen.dependencies[0].ended.as_deref(), Some("signal 9"));
    }

    #[test]
    fn a_failure_of_loadlines_own_stays() {
        let own = Failure {
            cause: Invalid::DiskFull,
            detail: "full".to_owned(),
        };
        let mut seen = evidence(Some(own.clone()));
        take(&mut seen, vec![ended("db")]);
        assert_eq!(seen.failure, Some(own));
        take(&mut seen, Vec::new());
        assert_eq!(seen.dependencies[0].last_output, ["no space"]);
    }
}
