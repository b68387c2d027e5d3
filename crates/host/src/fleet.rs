//! Several instances of one trial at once: each with its own cgroup, namespaces and load generator.
//!
//! Owns what they share: the moment a load phase begins, the window in which the machine is watched,
//! and the sum of what they did. Each instance goes through its phases in a thread of its own, as it
//! would alone ([`super::instance`]); the thread that runs the trial passes on progress and Ctrl-C.
//! Load is spread evenly: each generator takes its slots of one schedule.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, NoiseEvidence, Phase, StartEvidence};
use loadline_analysis::together;
use loadline_cgroup::{Layout, Limits, NoiseMeter};
use loadline_sizing::Cpus;

use super::LocalBackend;
use super::instance::{LocalInstance, invalid, noise_evidence, tool_error};
use super::prepare;
use crate::backend::{
    BackendError, Driven, Instance, InstanceSpec, LoadPhase, Observer, Progress, monotonic_ns,
    sum_of_parts,
};

/// How often the waiting thread looks at its observer.
const TICK: Duration = Duration::from_millis(50);

/// From the order to the first request: time for every generator to start and to connect.
const LEAD_NS: u64 = 500_000_000;

/// Which of how many instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// From 0.
    pub(super) index: u32,
    /// How many there are.
    pub(super) of: u32,
}

impl Place {
    /// What all instances together may take of the machine.
    pub(super) fn in_all(self, own: &Limits) -> Limits {
        let times = |cpus: Cpus| Cpus::from_millis(cpus.as_millis().saturating_mul(self.of));
        Limits {
            cpu_quota: own.cpu_quota.map(times),
            memory: own.memory.map(|m| m.mul_ratio(u64::from(self.of), 1)),
            ..own.clone()
        }
    }
}

/// The instances of a trial.
pub(super) struct Fleet {
    members: Vec<LocalInstance>,
    layout: Layout,
    noise: NoiseEvidence,
}

/// What an instance's thread does.
type Work<'a, T> = &'a (dyn Fn(&mut LocalInstance, &mut dyn Observer) -> T + Sync);

impl Fleet {
    /// Prepares all of them; starts none.
    ///
    /// # Errors
    /// As for one; what was made is gone again.
    pub(super) fn prepare(
        backend: &mut LocalBackend,
        spec: &InstanceSpec,
    ) -> Result<Self, BackendError> {
        let of = spec.configuration.instances;
        let members = (0..of).map(|index| prepare::prepare(backend, spec, Place { index, of }));
        Ok(Self {
            members: members.collect::<Result<_, _>>()?,
            layout: backend.layout.clone(),
            noise: NoiseEvidence::default(),
        })
    }

    /// Watches the machine around all instances and their generators.
    fn begin_window(&self) -> Option<NoiseMeter> {
        let groups: Vec<_> = self.members.iter().flat_map(|m| m.groups()).collect();
        NoiseMeter::start(&self.layout, &groups, &[]).ok()
    }

    fn end_window(&mut self, meter: Option<NoiseMeter>) {
        if let Some(noise) = meter.and_then(|meter| meter.finish().ok()) {
            self.noise = NoiseEvidence {
                // They wait for each other: that is the experiment, no disturbance.
                contention: None,
                ..noise_evidence(noise)
            };
        }
    }

    /// Does the same with every instance at once, and waits for all. The first failure stops the
    /// others.
    fn each<T: Send>(
        &mut self,
        observer: &mut dyn Observer,
        mut meter: Option<&mut NoiseMeter>,
        work: Work<'_, Result<T, BackendError>>,
    ) -> Result<Vec<T>, BackendError> {
        let stop = AtomicBool::new(false);
        let (tell, told) = channel();
        let mut relayed = Relayed::new(self.members.len());
        let mut second = Instant::now();
        let results: Vec<Result<T, BackendError>> = std::thread::scope(|scope| {
            let start = |(index, member)| {
                let (tell, stop) = (tell.clone(), &stop);
                std::thread::Builder::new()
                    .name("instance".to_owned())
                    .spawn_scoped(scope, move || {
                        let mut relay = Relay { index, tell, stop };
                        let result = work(member, &mut relay);
                        if result.is_err() {
                            stop.store(true, Ordering::Relaxed);
                        }
                        result
                    })
            };
            let threads: Vec<_> = self.members.iter_mut().enumerate().map(start).collect();
            drop(tell);
            loop {
                match told.recv_timeout(TICK) {
                    Ok((index, progress)) => relayed.pass(index, progress, observer),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if observer.interrupted() {
                    stop.store(true, Ordering::Relaxed);
                }
                if second.elapsed() >= Duration::from_secs(1) {
                    second = Instant::now();
                    if let Some(meter) = meter.as_deref_mut() {
                        meter.tick();
                    }
                }
            }
            let join = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
                let thread = thread.map_err(tool_error("starting a thread"))?;
                let panicked = |_| invalid("the thread of an instance panicked".to_owned());
                thread.join().map_err(panicked)?
            };
            threads.into_iter().map(join).collect()
        });
        all(results)
    }
}

/// What every instance gave, or the failure that stopped the others.
fn all<T>(results: Vec<Result<T, BackendError>>) -> Result<Vec<T>, BackendError> {
    let (mut values, mut refusal) = (Vec::new(), None);
    for result in results {
        match (result, &refusal) {
            (Ok(value), _) => values.push(value),
            (Err(error), None | Some(BackendError::Interrupted)) => refusal = Some(error),
            (Err(_), Some(_)) => {}
        }
    }
    refusal.map_or(Ok(values), Err)
}

impl Instance for Fleet {
    fn start(
        &mut self,
        deadline: Duration,
        observer: &mut dyn Observer,
    ) -> Result<StartEvidence, BackendError> {
        let mut meter = self.begin_window();
        let starts = self.each(observer, meter.as_mut(), &|member, observer| {
            let start = member.start(deadline, observer)?;
            // The sum of the trial asks it again at the end.
            member.state.start = start.clone();
            Ok(start)
        })?;
        self.end_window(meter);
        Ok(together::start(&starts))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().flat_map(|m| m.addresses()).collect()
    }

    fn drive(
        &mut self,
        load: &LoadPhase,
        observer: &mut dyn Observer,
    ) -> Result<Driven, BackendError> {
        let mut meter = self.begin_window();
        let from = monotonic_ns() + LEAD_NS;
        let parts = self.each(observer, meter.as_mut(), &|member, observer| {
            member.drive_from(load, Some(from), observer)
        })?;
        self.end_window(meter);
        if load.phase == Phase::Measure {
            // One after the other, when all carry their full memory: pages that they share count
            // in parts.
            self.members.iter_mut().for_each(LocalInstance::weigh);
        }
        Ok(sum_of_parts(parts))
    }

    fn stop(&mut self, grace: Duration, observer: &mut dyn Observer) -> Evidence {
        let parts = self.each(observer, None, &|member, observer| {
            let start = std::mem::take(&mut member.state.start);
            let evidence = member.stop(grace, observer);
            let log_line = evidence.start.log_line;
            Ok(Evidence {
                start: StartEvidence { log_line, ..start },
                ..evidence
            })
        });
        match parts {
            Ok(parts) => Evidence {
                noise: std::mem::take(&mut self.noise),
                ..together::together(parts)
            },
            // No work above fails; a thread that could not be started has no evidence.
            Err(error) => Evidence {
                failure: Some(loadline_analysis::record::Failure {
                    cause: loadline_analysis::record::Invalid::ToolError,
                    detail: error.to_string(),
                }),
                ..Evidence::default()
            },
        }
    }
}

/// The observer of one instance's thread.
struct Relay<'a> {
    index: usize,
    tell: Sender<(usize, Progress)>,
    stop: &'a AtomicBool,
}

impl Observer for Relay<'_> {
    fn progress(&mut self, progress: Progress) {
        // Nobody listens any more when the trial is over.
        let _ = self.tell.send((self.index, progress));
    }

    fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The latest figures of each instance, shown as one.
struct Relayed(Vec<Option<Progress>>);

impl Relayed {
    fn new(instances: usize) -> Self {
        Self(vec![None; instances])
    }

    /// Tells the observer, once for all: when the first instance says something.
    fn pass(&mut self, index: usize, progress: Progress, observer: &mut dyn Observer) {
        self.0[index] = Some(progress);
        if index > 0 {
            return;
        }
        let known = || self.0.iter().flatten();
        let rates: Vec<f64> = known().filter_map(|p| p.rate).collect();
        observer.progress(Progress {
            p99: known().filter_map(|p| p.p99).max(),
            rate: (!rates.is_empty()).then(|| rates.iter().sum()),
            ..progress
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_before_the_stops_that_it_caused() {
        let unable = || BackendError::from(loadline_trial::Refusal::new("w", "y", "h"));
        let failed: Vec<Result<u8, _>> = vec![
            Ok(1),
            Err(BackendError::Interrupted),
            Err(unable()),
            Err(BackendError::Interrupted),
        ];
        assert!(matches!(all(failed), Err(BackendError::Refused(_))));
        assert!(matches!(all(vec![Ok(1), Ok(2)]), Ok(v) if v == [1, 2]));
    }

    #[test]
    fn limits_of_all_are_those_of_one_times_their_number() {
        let own = Limits {
            cpu_quota: Some(Cpus::from_millis(500)),
            memory: Some(loadline_sizing::Bytes::from_mib(256)),
            ..Limits::default()
        };
        let all = Place { index: 1, of: 4 }.in_all(&own);
        assert_eq!(all.cpu_quota, Some(Cpus::from_whole(2)));
        assert_eq!(all.memory, Some(loadline_sizing::Bytes::from_gib(1)));
    }
}
