//! The phases of one trial: prepare, start, the load, stop, and the evidence on the way.
//!
//! Owns their order and their times. Knows no cgroup and no verdict.

mod metrics;
mod run;
mod start_watch;
mod study;
mod timed;
mod tool;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline_analysis::record::{
    DependencyEvidence, DriveEvidence, EarlyEnd, Evidence, LoadEvidence, MetricEvidence, PhaseSpan,
    ProxyEvidence, SecondEvidence, TrialPhase,
};
use loadline_analysis::{early, together};
use loadline_protocol::log::EventLog;
use loadline_protocol::{LoadPhase, TrialOrder, TrialProgress};

use crate::clock::monotonic_ns;
use crate::dependencies::TrialDependencies;
use crate::generator::{GeneratorProcess, GeneratorSetup, LoadShare};
use crate::group::TrialGroup;
use crate::halt::{self, HaltReason, Stop};
use crate::instance::Instance;
use crate::instances::Instances;
use crate::listener::refuse_taken_port;
use crate::load_command::restore_backlog;
use crate::program::ProgramSpec;
use crate::site::Site;
use crate::soaking::{OutagePoints, SoakRun};
use crate::studying::StudyCourse;
use crate::{ending, proxy};
use start_watch::StartWatch;

/// Grace for an application that never became ready, or in a stopped trial.
const SHORT_GRACE: Duration = Duration::from_secs(1);

/// From the order to the first request, for several generators and for a load with an external
/// start time: time for each to start and connect.
const LEAD_NS: u64 = 500_000_000;

/// From the end of the load to the last look of a soak: requests under way end.
const DRAINED: Duration = Duration::from_secs(2);

const KEPT_SECONDS: usize = 3600;

/// From the failure of a generator without an application until that end is seen: an engine may
/// take a second and more to report it.
const END_IS_SEEN: Duration = Duration::from_secs(5);

struct OngoingTrial<'a> {
    site: &'a Site,
    order: &'a TrialOrder,
    stop: Stop<'a>,
    instances: Instances,
    phases: Vec<PhaseSpan>,
    load: Vec<LoadEvidence>,
    front: Option<GeneratorProcess>,
    seconds: Vec<SecondEvidence>,
    ended_early: Option<EarlyEnd>,
    soaking: Option<SoakRun>,
    study: Option<StudyCourse>,
    around: Option<OutagePoints>,
    metrics: Vec<MetricEvidence>,
    drive: Option<DriveEvidence>,
    backlog: Option<Duration>,
}

/// Carries an order out. A failing application is evidence, not an error. Errors:
/// [`HaltReason::Refused`] when this host cannot, in whichever phase; [`HaltReason::Stopped`] when
/// it was asked to stop before the application was stopped. No process is left in either case.
pub(crate) fn run(
    site: &Site,
    order: &TrialOrder,
    log: &Arc<EventLog>,
    stop: Stop<'_>,
) -> Result<Evidence, HaltReason> {
    let program = ProgramSpec::from_order(order);
    let began = monotonic_ns();
    let mut dependencies = TrialDependencies::new(order);
    if let Err(halt) = dependencies.start_all(site, order, stop) {
        return not_begun(halt, dependencies.end_all());
    }
    let backlog = match restore_backlog(site, order, dependencies.front_network(), stop) {
        Ok(took) => took,
        Err(halt) => return not_begun(halt, dependencies.end_all()),
    };
    let prepared = refuse_taken_port(order)
        .and_then(|()| Instances::prepare_all(site, order, &program, dependencies, log));
    let instances = match prepared {
        Ok(instances) => instances,
        Err(HaltReason::Failed(failure)) => {
            return not_begun(HaltReason::Failed(failure), (Vec::new(), None));
        }
        Err(halt) => return Err(halt),
    };
    let mut trial = OngoingTrial {
        site,
        order,
        stop,
        instances,
        phases: Vec::new(),
        load: Vec::new(),
        front: None,
        seconds: Vec::new(),
        ended_early: None,
        soaking: order.soak.map(|soak| SoakRun::new(soak, log)),
        study: order.memory_study.map(StudyCourse::new),
        around: (!proxy::scheduled_outages(order).is_empty()).then(OutagePoints::default),
        metrics: Vec::new(),
        drive: None,
        backlog,
    };
    trial.add_span(TrialPhase::Prepare, began, monotonic_ns());
    let halted = trial.start_trial().and_then(|()| trial.drive_all()).err();
    trial.end_trial(&program, log, halted)
}

impl OngoingTrial<'_> {
    fn add_span(&mut self, phase: TrialPhase, start: u64, end: u64) {
        self.phases.push(PhaseSpan { phase, start, end });
    }

    fn give_up(&mut self, phase: TrialPhase, reason: String) {
        self.ended_early = Some(EarlyEnd { phase, reason });
    }

    fn go_on(&mut self) -> Result<(), HaltReason> {
        // The end of an application is evidence, even after a request to stop.
        let is_over = self.instances.all.iter().all(|i| i.state.is_over());
        match (self.stop)() && !is_over {
            true if self.cut_soak() => Ok(()),
            true => Err(HaltReason::Stopped),
            false => self.instances.dependencies.check_running(),
        }
    }

    /// A soak's data are worth keeping: it ends in order, at once. `false` if there is none.
    fn cut_soak(&mut self) -> bool {
        let Some(soaking) = self.soaking.as_mut() else {
            return false;
        };
        let has_seen = !soaking.seen.points.is_empty();
        if has_seen {
            let why = || "it was stopped".to_owned();
            soaking.seen.cut.get_or_insert_with(why);
        }
        has_seen
    }

    fn is_cut(&self) -> bool {
        let soaking = self.soaking.as_ref();
        soaking.is_some_and(|soaking| soaking.seen.cut.is_some())
    }

    fn start_trial(&mut self) -> Result<(), HaltReason> {
        let began = self.instances.begin_phase(TrialPhase::Start);
        let started = self.await_ready();
        self.add_span(TrialPhase::Start, began, monotonic_ns());
        started
    }

    /// Starts every instance and waits until each is ready, has ended, or the deadline has passed.
    fn await_ready(&mut self) -> Result<(), HaltReason> {
        if !self.site.options.is_pod {
            // In a pod the application runs since it was let: the port is its own.
            refuse_taken_port(self.order)?;
        }
        self.instances.begin_window(&[]);
        for instance in &mut self.instances.all {
            instance.start_instance()?;
        }
        let (begin, mut starts) = (Instant::now(), StartWatch::default());
        while begin.elapsed() < self.order.start_deadline {
            self.instances.wait_tick();
            let mut waiting = 0;
            for instance in &mut self.instances.all {
                waiting += u32::from(!instance.check_start(self.order)?);
            }
            if waiting == 0 {
                break;
            }
            self.instances
                .report_elapsed(TrialPhase::Start, begin.elapsed());
            self.look_at_runs(begin.elapsed());
            self.go_on()?;
            if let Some(slo) = &self.order.give_up
                && let Some(reason) =
                    starts.hopeless_reason(begin, self.order, slo, &self.instances.all)
            {
                self.give_up(TrialPhase::Start, reason);
                break;
            }
        }
        for instance in &mut self.instances.all {
            instance.settle_start(self.order);
        }
        self.end_runs(begin.elapsed());
        self.instances.end_window();
        if self.instances.all.iter().all(|i| i.state.was_ready()) {
            self.instances.start_noise = Some(self.instances.noise.clone());
        }
        Ok(())
    }

    fn drive_all(&mut self) -> Result<(), HaltReason> {
        for load in &self.order.load {
            let is_fit = |i: &Instance| i.state.was_ready() && !i.state.is_over();
            if !self.instances.all.iter().all(is_fit) || self.is_cut() {
                break;
            }
            if load.phase == TrialPhase::Peak && self.ended_early.is_some() {
                continue;
            }
            self.prepare_soak_cycle(load.phase)?;
            if self.is_cut() || !self.begin_study(load.phase) {
                break;
            }
            self.instances.begin_phase(load.phase);
            if load.plan.sends_requests() {
                let generators = self.drive_load(load)?;
                self.take_load_results(load, generators)?;
            } else {
                self.pass_time(load)?;
            }
            self.end_study(load.phase);
        }
        self.end_cut_window();
        self.take_results()?;
        self.end_load_tool();
        if let (Some(_), false) = (&self.soaking, self.is_cut()) {
            self.wait_without_load(TrialPhase::Again, DRAINED)?;
            self.probe_soak(true);
        }
        Ok(())
    }

    fn wait_without_load(&mut self, phase: TrialPhase, length: Duration) -> Result<(), HaltReason> {
        let begin = Instant::now();
        let is_there = |i: &Instance| !i.state.is_over();
        while begin.elapsed() < length && !self.is_cut() && self.instances.all.iter().all(is_there)
        {
            self.instances.wait_tick();
            self.instances.report_elapsed(phase, begin.elapsed());
            self.go_on()?;
        }
        Ok(())
    }

    fn drive_load(&mut self, load: &LoadPhase) -> Result<Vec<GeneratorProcess>, HaltReason> {
        let is_one = self.instances.all.len() == 1;
        // Faults of the proxy are scheduled from the begin of the load.
        let is_timed = !is_one || self.instances.dependencies.proxy.is_some();
        let from_ns = is_timed.then(|| monotonic_ns() + LEAD_NS);
        let is_peak = load.phase == TrialPhase::Peak;
        if let Some(at_ns) = from_ns.filter(|_| !is_peak) {
            let is_measured = load.phase == TrialPhase::Measure;
            self.instances.dependencies.begin_load(at_ns, is_measured)?;
        }
        let mut front = self.front.take();
        let start = |instance: &Instance| {
            let wanted = GeneratorSetup {
                loadline: &self.site.options.program,
                trial: &self.order.trial,
                group: instance.generator_group.as_ref().map(TrialGroup::as_group),
                part: instance.part,
                users: &instance.state.users,
                from_ns,
                cpus: &instance.plan,
                network: instance
                    .container
                    .application_network()
                    .namespace_path()
                    .map(Path::to_owned),
                generators: self.order.generators.as_ref(),
                command: self.order.load_command.as_ref(),
            };
            match front.take() {
                Some(mut front) => front.begin_phase(load, &wanted).map(|()| front),
                None => GeneratorProcess::start_generator(load, &wanted, instance.teller.clone()),
            }
        };
        let started = self.instances.all.iter().map(start);
        let mut generators = started.collect::<Result<Vec<_>, _>>()?;
        self.start_load_tool(&mut generators)?;
        let without_group = |(generator, instance): (&GeneratorProcess, &Instance)| {
            instance.generator_group.is_none().then(|| generator.id())
        };
        let both = generators.iter().zip(&self.instances.all);
        let alone: Vec<u32> = both.filter_map(without_group).collect();
        let is_studied = self.is_studied(load.phase);
        if !is_studied && !is_peak {
            self.instances.begin_window(&alone);
        }
        let readers = self.start_metrics(load.phase)?;
        let (begin, mut live) = (Instant::now(), LiveFigures(vec![None; generators.len()]));
        while !generators.iter().all(GeneratorProcess::is_over) {
            for (index, line) in self.instances.wait_tick() {
                let second = generators[index].take_generator_line(line);
                if let (Some(soaking), Some(second)) = (&mut self.soaking, second) {
                    soaking.count_second(second);
                }
                if let (Some(study), Some(second)) = (&mut self.study, second) {
                    study.count(load.phase, second);
                }
                if let Some((p99, rate)) =
                    second.and_then(|second| live.update_second(index, second))
                {
                    self.instances.report_progress(TrialProgress {
                        phase: load.phase,
                        elapsed: begin.elapsed(),
                        p99,
                        rate: Some(rate),
                    });
                }
            }
            self.go_on()?;
            self.look_after_load_tool(load, &mut generators)?;
            if self.ended_early.is_none()
                && let Some(reason) = cannot_pass(self.order, load, &generators)
            {
                self.give_up(load.phase, reason);
            }
            if let (false, Some(soaking)) = (load.phase == TrialPhase::WarmUp, &mut self.soaking) {
                soaking.take_due_point(load.phase, &self.instances.all);
            }
            if let (true, Some(around)) = (load.phase == TrialPhase::Measure, &mut self.around) {
                around.take_due_point(&self.instances.all);
            }
            let study = self.study.as_mut().zip(self.instances.all.first());
            let is_done = study.is_some_and(|(study, first)| study.pass(load.phase, first));
            let is_cut = self.is_cut() || self.ended_early.is_some() || is_done;
            for (generator, instance) in generators.iter_mut().zip(&self.instances.all) {
                if is_cut || instance.state.is_over() {
                    generator.ask_to_stop();
                }
                if generator.is_stuck() && is_studied {
                    return Ok(generators);
                }
                if generator.is_stuck() {
                    return Err(halt::measurement_failed("the load generator did not end"));
                }
            }
        }
        if !is_studied && (!alone.is_empty() || !self.has_peak_behind(load.phase)) {
            self.instances.end_window();
        }
        self.finish_metrics(readers)?;
        Ok(generators)
    }

    fn take_load_results(
        &mut self,
        load: &LoadPhase,
        generators: Vec<GeneratorProcess>,
    ) -> Result<(), HaltReason> {
        let finish = |(mut generator, instance): (GeneratorProcess, &Instance)| {
            let group = instance.generator_group.as_ref().map(TrialGroup::as_group);
            let share = generator.finish_share(load, instance.part, group);
            (share, generator)
        };
        let all = generators.into_iter().zip(&self.instances.all);
        let (driven, generators): (Vec<_>, Vec<_>) = all.map(finish).unzip();
        self.front = generators.into_iter().find(GeneratorProcess::is_front);
        let (mut start, mut end) = (u64::MAX, 0);
        let mut all: Option<Vec<SecondEvidence>> = None;
        for (index, driven) in driven.into_iter().enumerate() {
            let LoadShare {
                load: mut of,
                seconds,
                start_ns,
                end_ns,
                users,
                cut_pauses,
            } = match driven {
                Ok(driven) => driven,
                Err(_) if self.has_ended(index) => continue,
                // The judged part is valid without it.
                Err(HaltReason::Failed(failure)) if self.is_studied(load.phase) => {
                    let warnings = &mut self.instances.all[index].state.warnings;
                    warnings.push(format!("the {} phase: {}", load.phase, failure.detail));
                    continue;
                }
                Err(halt) => return Err(halt),
            };
            if let Some(tool) = &mut self.instances.load_tool {
                tool.add_usage(&mut of);
            }
            let answered = self.answered() + of.ok;
            let instance = &mut self.instances.all[index];
            (start, end) = (start.min(start_ns), end.max(end_ns));
            let state = &mut instance.state;
            state.users = users;
            let ends = seconds.iter().map(|second| second.at_ns);
            state.load_ends.extend(ends);
            if load.phase == TrialPhase::Measure && cut_pauses > 0 {
                state.warnings.push(format!(
                    "{cut_pauses} pauses of users were cut short: a request was due and all {} \
                     connections were taken; allow more (--connections)",
                    load.plan.connections
                ));
            }
            if load.phase == TrialPhase::Measure {
                state.measure = Some((start_ns, end_ns));
            }
            if load.phase.is_judged() {
                state.judged_until = Some(end_ns);
                // One after the other, when all carry their full memory: pages that they share
                // count in parts.
                instance.measure_memory(answered);
            }
            self.load.push(of);
            all = Some(match all {
                Some(sum) => together::seconds_of_two(sum, seconds),
                None => seconds,
            });
        }
        if let Some(seconds) = all {
            self.add_span(load.phase, start, end);
            self.seconds.extend(seconds);
        }
        Ok(())
    }

    /// Whether this application has ended. Its generator may have found nothing to send to before its end
    /// was seen: then that failure is the application's.
    fn has_ended(&mut self, index: usize) -> bool {
        let begin = Instant::now();
        while !self.instances.all[index].state.is_over() && begin.elapsed() < END_IS_SEEN {
            self.instances.wait_tick();
        }
        self.instances.all[index].state.is_over()
    }

    fn end_trial(
        mut self,
        program: &ProgramSpec,
        log: &EventLog,
        halted: Option<HaltReason>,
    ) -> Result<Evidence, HaltReason> {
        // One that ended takes the application with it: that is seen before the application is.
        let halted = halted.or_else(|| self.instances.dependencies.check_running().err());
        // An application that thrashes at its last limit would take all of its grace to end.
        let squeeze = self.study.take().and_then(StudyCourse::finish);
        // Nothing is learned from a slow end of what never started, of what cannot pass any more, or of
        // what the user stops.
        let was_ready = self.instances.all.iter().all(|i| i.state.was_ready());
        let is_given_up = self.ended_early.is_some();
        let is_cut =
            is_given_up || matches!(halted, Some(HaltReason::Refused(_) | HaltReason::Stopped));
        let grace = if was_ready && !is_cut {
            self.order.stop_grace
        } else {
            self.order.stop_grace.min(SHORT_GRACE)
        };
        let began = self.instances.begin_phase(TrialPhase::Stop);
        self.end_load_tool();
        let how = (grace, is_given_up);
        let mut parts = ending::end_instances(&mut self.instances, self.order, program, how, log);
        let mut evidence = match parts.len() {
            1 => parts.remove(0),
            _ => together::merge_instances(parts),
        };
        if let [instance] = &mut self.instances.all[..] {
            evidence.memory = instance.state.parts.take();
        }
        evidence.squeeze = squeeze;
        evidence.load_exit = self.instances.load_exit;
        evidence.noise = std::mem::take(&mut self.instances.noise);
        evidence.start_noise = self.instances.start_noise.take();
        (evidence.dependencies, evidence.proxy) = self.instances.dependencies.end_all();
        // Removes the remains of the containers.
        let rooms = std::mem::take(&mut self.instances.rooms);
        drop(self.instances);
        for room in rooms {
            room.record_cause(&mut evidence);
        }
        let (phase, end) = (TrialPhase::Stop, monotonic_ns());
        let start = began;
        self.phases.push(PhaseSpan { phase, start, end });
        match halted {
            Some(HaltReason::Failed(failure)) => evidence.failure = Some(failure),
            Some(halt) => return Err(halt),
            None => {}
        }
        evidence.phases = self.phases;
        evidence.load = self.load;
        evidence.metrics = self.metrics;
        evidence.drive = self.drive;
        evidence.backlog = self.backlog;
        evidence.outages = proxy::scheduled_outages(self.order);
        evidence.ended_early = self.ended_early;
        merge_seconds(&mut evidence.seconds, self.seconds);
        if let Some(around) = self.around {
            around.fold_into_seconds(log, &mut evidence.seconds);
        }
        if let Some(soaking) = self.soaking {
            evidence.soak = Some(soaking.finish_soak(log));
            evidence.seconds.truncate(KEPT_SECONDS);
        }
        Ok(evidence)
    }
}

/// Why a load under way can no longer keep the SLO, if that ends it: in the measure phase of an
/// open model, where the number of requests is known in advance.
fn cannot_pass(
    order: &TrialOrder,
    load: &LoadPhase,
    generators: &[GeneratorProcess],
) -> Option<String> {
    // How many a load command sends is not known in advance.
    let is_known = load.phase == TrialPhase::Measure && order.load_command.is_none();
    let slo = order.give_up.as_ref().filter(|_| is_known)?;
    let most = load.plan.model.most_requests()?;
    let seconds = generators.iter().map(|generator| &generator.seconds[..]);
    let seconds: Vec<_> = seconds.collect();
    early::why_load_fails(slo, most, &seconds)
}

fn not_begun(
    halt: HaltReason,
    (dependencies, proxy): (Vec<DependencyEvidence>, Option<ProxyEvidence>),
) -> Result<Evidence, HaltReason> {
    match halt {
        HaltReason::Failed(failure) => Ok(Evidence {
            dependencies,
            proxy,
            failure: Some(failure),
            ..Evidence::default()
        }),
        halt => Err(halt),
    }
}

struct LiveFigures(Vec<Option<SecondEvidence>>);

impl LiveFigures {
    fn update_second(
        &mut self,
        index: usize,
        second: &SecondEvidence,
    ) -> Option<(Option<Duration>, f64)> {
        self.0[index] = Some(second.clone());
        let known = || self.0.iter().flatten();
        let rates = known().filter_map(|second| second.achieved);
        let p99 = known().filter_map(|second| second.p99).max();
        (index == 0).then(|| (p99, rates.sum::<u64>() as f64))
    }
}
fn merge_seconds(series: &mut Vec<SecondEvidence>, load: Vec<SecondEvidence>) {
    const HALF: u64 = 500_000_000;
    for second in load {
        let at = series.partition_point(|s| s.at_ns + HALF < second.at_ns);
        match series.get_mut(at) {
            Some(slot) if slot.at_ns.abs_diff(second.at_ns) <= HALF && slot.achieved.is_none() => {
                slot.offered = second.offered;
                slot.achieved = second.achieved;
                slot.errors = second.errors;
                slot.p50 = second.p50;
                slot.p99 = second.p99;
                slot.max = second.max;
            }
            _ => series.insert(at, second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> SecondEvidence {
        SecondEvidence {
            at_ns: ns,
            ..SecondEvidence::default()
        }
    }

    #[test]
    fn load_seconds_join_the_nearest_sampled_second() {
        let mut series = vec![at(1_000_000_000), at(2_000_000_000), at(3_000_000_000)];
        let load = |ns| SecondEvidence {
            achieved: Some(7),
            ..at(ns)
        };
        merge_seconds(
            &mut series,
            vec![
                load(2_100_000_000),
                load(3_100_000_000),
                load(4_100_000_000),
            ],
        );
        let joined: Vec<_> = series.iter().map(|s| (s.at_ns, s.achieved)).collect();
        assert_eq!(
            joined,
            [
                (1_000_000_000, None),
                (2_000_000_000, Some(7)),
                (3_000_000_000, Some(7)),
                (4_100_000_000, Some(7))
            ]
        );
    }
}
