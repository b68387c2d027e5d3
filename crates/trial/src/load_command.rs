//! The user's program that makes the load of a trial: contained, started, watched, ended.
//!
//! Owns its limits and what its end means. It is held by the same machinery as the application, in the
//! network of the front that times its exchanges ([`loadline_proxy::front`]), so it dies with the trial
//! whatever it does. It is trusted with nothing: a program that ends early, sends nothing or waits for a
//! CPU makes the trial void and is never the application's miss.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use loadline_analysis::foreign_text::one_line;
use loadline_analysis::record::{
    DriveEvidence, InvalidReason, LoadCommandEvidence, LoadEvidence, LoadFrom, MeasurementFailure,
    ReportedEvidence, SecondEvidence,
};
use loadline_cgroup::{CgroupLimits, ControlGroup, Controller};
use loadline_files::measure_tree;
use loadline_jvm::beneath::list_in_root;
use loadline_load::MAX_LAG;
use loadline_load::part::ObservedMessage;
use loadline_load::reported::{ReportedWindow, read_reported};
use loadline_protocol::{
    AppSpec, DependencyScope, DependencySpec, LoadCommandSpec, LoadPhase, Readiness, TrialOrder,
};
use rustix::process::Signal;

use crate::container::ContainerNetwork;
use crate::dependency::{
    DependencyProcess, DependencySite, DependencyStart, quote_lines, run_backlog,
};
use crate::generator::{LoadShare, outcome_evidence};
use crate::group::TASKS;
use crate::halt::{HaltReason, Stop, refusal_halt};
use crate::site::Site;

/// Most bytes that it may leave in its /tmp.
const MOST_FILES: u64 = 1 << 30;
const MOST_ENTRIES: usize = 100_000;
const LOOK: Duration = Duration::from_millis(500);

/// It was starved if its threads waited for a CPU longer than they ran, and for this share of the
/// time: it then did not send the intended load.
const MAX_WAIT: f64 = 0.1;

/// Share at the end of a phase during which it may already have ended: it counts from its own
/// start.
const LAST_PART: f64 = 0.1;

/// What tools that take a name for the begin of their files (Locust), or for a directory of runs
/// (Gatling), write there.
const TABLE: &str = "_stats.csv";
const LOG: &str = "simulation.log";
const MOST_RUNS: usize = 100;

pub(crate) struct LoadTool {
    process: DependencyProcess,
    /// What messages call it.
    name: &'static str,
    is_timed: bool,
    may_end: bool,
    fails_with: Option<i32>,
    /// As the experiment says it.
    words: Vec<String>,
    /// Where it may write its results, as it sees it, and the owner that they then have.
    results: Option<PathBuf>,
    owner: u32,
    begin: Instant,
    looked: Instant,
    waits: CpuWaits,
    used: Duration,
    broken: Option<String>,
}

impl LoadTool {
    pub(crate) fn start_tool(
        at: DependencySite<'_>,
        command: &LoadCommandSpec,
        network: ContainerNetwork,
    ) -> Result<Self, HaltReason> {
        let own = &at.plan.generator;
        let has = |controller| at.site.layout.hierarchy_of(controller).is_some();
        let start = DependencyStart {
            at,
            dependency: &as_dependency(command, "load-command"),
            suffix: "load-command".to_owned(),
            limits: CgroupLimits {
                cpuset: has(Controller::Cpuset).then(|| own.iter().copied().collect()),
                memory: has(Controller::Memory).then_some(command.memory),
                pids: Some(TASKS),
                ..CgroupLimits::default()
            },
            cpus: own,
            network,
        };
        let mut process = start.prepare_process(&command.app, None)?;
        process.container.start_application()?;
        let now = Instant::now();
        Ok(Self {
            process,
            name: tool_name(command),
            is_timed: command.port.is_none(),
            may_end: command.may_end,
            fails_with: command.fails_with.map(i32::from),
            words: command.words.clone(),
            results: results_path(&command.app),
            owner: command.account.uid,
            begin: now,
            looked: now,
            waits: CpuWaits::default(),
            used: Duration::ZERO,
            broken: None,
        })
    }

    pub(crate) fn tool_group(&self) -> &ControlGroup {
        self.process.container.application_group()
    }

    pub(crate) fn begin_phase(&mut self) {
        self.waits.read_threads(&self.process_ids());
        self.waits.total = CpuTime::default();
        self.used = self.cpu_time();
    }

    /// Looks after it: what it told, its threads and its files.
    pub(crate) fn look_after(&mut self) -> Result<(), HaltReason> {
        self.process.take_notes(Duration::ZERO);
        if let Some(detail) = self.process.state.stage_failure.take() {
            let what = format!("starting {}", self.name);
            let hint = "it runs as the application's user, who must be able to read and execute it: --user";
            return Err(refusal_halt(&what, detail, hint));
        }
        if self.looked.elapsed() < LOOK || self.has_ended() {
            return Ok(());
        }
        self.looked = Instant::now();
        self.waits.read_threads(&self.process_ids());
        let places = self.process.container.written_directories();
        let size = |place: &PathBuf| measure_tree(place, MOST_ENTRIES).ok();
        let sizes = places.iter().filter_map(size);
        let is_more = sizes.fold((0, true), |(sum, all), found| {
            (sum + found.bytes, all && found.is_all)
        });
        if is_more.0 > MOST_FILES || !is_more.1 {
            self.broken = Some("wrote more than 1 GiB into its /tmp".to_owned());
            // What survives is found when the trial ends.
            let _ = self.process.container.kill_container();
        }
        Ok(())
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.process.state.is_over()
    }

    /// Whether it ended in time: with 0, or with the judged code of missed thresholds, and not before
    /// the last part of a phase of `length`. A tool that aborts at its threshold does so
    /// earlier; 1 is the code of a crash as well.
    pub(crate) fn is_done(&self, passed: Duration, length: Duration) -> bool {
        let code = self.exit_code();
        let has_missed = code.is_some() && code == self.fails_with;
        let missing = length.saturating_sub(passed);
        let is_late = missing <= length.mul_f64(LAST_PART).max(Duration::from_secs(1));
        let is_in_time = is_late || has_missed && code != Some(1);
        self.broken.is_none()
            && (self.may_end || !passed.is_zero() && is_in_time)
            && (code == Some(0) || has_missed)
    }

    /// How much longer it goes on, where its exit code is judged: a phase behind the judged one may
    /// have been cut, of which it knows nothing.
    pub(crate) fn time_left(&self, told: Duration) -> Duration {
        let told = self.fails_with.map_or(Duration::ZERO, |_| told);
        told.saturating_sub(self.begin.elapsed())
    }

    fn exit_code(&self) -> Option<i32> {
        self.process.state.ended?.code
    }

    /// Its exit code if the SLO judges that; `None` if loadline ended it. Errors: A code, or a signal,
    /// that says nothing about the application.
    pub(crate) fn judged_exit(&mut self) -> Result<Option<i32>, MeasurementFailure> {
        let Some(fails_with) = self.fails_with.filter(|_| self.has_ended()) else {
            return Ok(None);
        };
        let code = self.exit_code();
        if self.broken.is_none() && (code == Some(0) || code == Some(fails_with)) {
            Ok(code)
        } else {
            Err(command_failure(format!(
                "{} ended ({}){}: `load passes` takes 0 as passed and {fails_with} as missed; if another code says that its thresholds were missed, name it: --slo 'load passes unless 99'",
                self.name,
                self.process.state.how_it_ended(),
                quote_lines(&self.process.output.last_lines()),
            )))
        }
    }

    pub(crate) fn early_end(&mut self, needed: Duration) -> MeasurementFailure {
        let kills = self.tool_group().read().ok();
        let kills = kills.and_then(|sample| sample.memory?.oom_kill);
        let state = &self.process.state;
        let how = match &self.broken {
            Some(broken) => format!("{broken} and was killed"),
            None if kills.is_some_and(|kills| kills > 0) => {
                "took more memory than it may have and was killed".to_owned()
            }
            None => format!("ended ({})", state.how_it_ended()),
        };
        let ran = self.begin.elapsed().as_secs_f64();
        let (stays, hint) = if self.is_timed {
            (
                "stay in the foreground",
                "; one that only fills a backlog may end with 0 if the SLO says how fast that is worked off: 'lag: drains<60s'",
            )
        } else {
            ("stay in the foreground and send", "")
        };
        let why = format!(
            "{} {how} after {ran:.1} s, before the load of the trial was over{}; it must {stays} for {:.0} s, as {{duration_s}} in its command says{hint}",
            self.name,
            quote_lines(&self.process.output.last_lines()),
            needed.as_secs_f64().ceil(),
        );
        command_failure(why)
    }

    pub(crate) fn sent_nothing(&mut self, command: &LoadCommandSpec) -> MeasurementFailure {
        command_failure(format!(
            "the load command sent no request to http://localhost:{} within {} s of its start{}; give it that address, or write {{url}} in its command; a slow start needs a longer start-deadline (--start-deadline)",
            command.port.unwrap_or_default(),
            command.first_request.as_secs(),
            quote_lines(&self.process.output.last_lines()),
        ))
    }

    pub(crate) fn add_usage(&mut self, load: &mut LoadEvidence) {
        self.waits.read_threads(&self.process_ids());
        let CpuTime { ran, waited } = self.waits.total;
        let used = self.cpu_time().saturating_sub(self.used);
        load.generator_cpu = Some(load.generator_cpu.unwrap_or_default() + used);
        if let Some(LoadFrom::Command { command }) = &mut load.load_from {
            command.cpu_wait = Some(waited);
            command.words.clone_from(&self.words);
        }
        let starved = || starvation(self.name, ran.max(used), waited, load.duration);
        load.saturated = load.saturated.take().or_else(starved);
    }

    /// What it did in the phase of a consumer that ends now.
    pub(crate) fn drive_evidence(&mut self, length: Duration) -> DriveEvidence {
        self.waits.read_threads(&self.process_ids());
        let CpuTime { ran, waited } = self.waits.total;
        let used = self.cpu_time().saturating_sub(self.used);
        DriveEvidence {
            words: self.words.clone(),
            cpu: used,
            cpu_wait: waited,
            saturated: starvation(self.name, ran.max(used), waited, length),
        }
    }

    /// Whether its end is waited for after the judged part.
    pub(crate) fn is_awaited(&self) -> bool {
        self.fails_with.is_some() || self.writes_results()
    }

    /// Whether its command names its results, or they are there: tools write the last of them at
    /// their end.
    pub(crate) fn writes_results(&self) -> bool {
        let names = ["{results}", "LOADLINE_RESULTS"];
        let is_named = |word: &String| names.iter().any(|name| word.contains(name));
        self.words.iter().any(is_named) || self.open_results().is_ok()
    }

    pub(crate) fn ask_to_end(&mut self) {
        self.process.container.signal_application(Signal::TERM);
    }

    /// Its results in this window. Errors: Why not, in words.
    pub(crate) fn read_results(&self, window: ReportedWindow) -> Result<ReportedEvidence, String> {
        let hint = "the command should write {results} and end after {duration_s}";
        let file = self.open_results().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("results: there are none; {hint}"),
            _ => format!("results: {error}; {hint}"),
        })?;
        // Parsers quote what they do not understand.
        read_reported(file, window).map_err(|error| one_line(&error.to_string()))
    }

    fn open_results(&self) -> io::Result<File> {
        let named = self.results.as_ref();
        let named = named.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let table = PathBuf::from(format!("{}{TABLE}", named.display()));
        let mut places = vec![named.clone(), table];
        places.extend(self.result_runs().into_iter().flatten());
        let opened = places.iter().map(|place| {
            let file = self.process.container.open_file(place)?;
            if file.metadata()?.uid() == self.owner {
                Ok(file)
            } else {
                // A hard link to what only loadline may read.
                Err(io::Error::other("they are another user's"))
            }
        });
        let missing = Err(io::ErrorKind::NotFound.into());
        opened.fold(missing, |found: io::Result<File>, next| {
            found.or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => next,
                _ => next.or(Err(error)),
            })
        })
    }

    /// The logs of runs in the directory of its results, as it sees them.
    fn result_runs(&self) -> Option<Vec<PathBuf>> {
        let named = self.results.as_ref()?;
        let private = self.process.container.written_directories().pop()?;
        let root = File::open(private.join("tmp")).ok()?;
        let names = list_in_root(root, named.strip_prefix("/tmp").ok()?).ok()?;
        let names = names.into_iter().take(MOST_RUNS);
        Some(names.map(|(name, _)| named.join(name).join(LOG)).collect())
    }

    pub(crate) fn end_tool(mut self) {
        self.process.end_process();
    }

    fn process_ids(&self) -> Vec<u32> {
        self.tool_group().process_ids().unwrap_or_default()
    }

    fn cpu_time(&self) -> Duration {
        let sample = self.tool_group().read().ok();
        let usage = sample.and_then(|sample| sample.cpu.usage);
        usage.unwrap_or_default()
    }
}

fn results_path(app: &AppSpec) -> Option<PathBuf> {
    match app {
        AppSpec::Command { env, .. } => env.get("LOADLINE_RESULTS").map(PathBuf::from),
        AppSpec::Image(_) => None,
    }
}

fn starvation(name: &str, ran: Duration, waited: Duration, length: Duration) -> Option<String> {
    let is_starved = waited > ran && waited > length.mul_f64(MAX_WAIT);
    is_starved.then(|| {
        format!(
            "{name} waited {:.1} s for a CPU and had one for {:.1} s; leave it more CPUs (a smaller --cpu, --cpus), or lower its rate",
            waited.as_secs_f64(),
            ran.as_secs_f64()
        )
    })
}

fn tool_name(command: &LoadCommandSpec) -> &'static str {
    match command.port {
        Some(_) => "the load command",
        None => "the drive command",
    }
}

fn command_failure(why: String) -> MeasurementFailure {
    MeasurementFailure::new(InvalidReason::LoadCommand, why)
}

pub(crate) fn observed_share(
    load: &LoadPhase,
    observed: ObservedMessage,
    seconds: Vec<SecondEvidence>,
) -> Result<LoadShare, HaltReason> {
    if let Some(what) = &observed.unreadable {
        return Err(HaltReason::Failed(command_failure(format!(
            "the load command spoke {what} to the service, which loadline cannot time; let it send HTTP without TLS, for example to http://localhost"
        ))));
    }
    let totals = observed.totals;
    if totals.totals.scheduled == 0 {
        let phase = load.phase;
        let why = format!("the load command sent no request in the {phase} phase");
        return Err(HaltReason::Failed(command_failure(why)));
    }
    let allowed = load.plan.slo.map_or(MAX_LAG, |slo| MAX_LAG.max(slo / 10));
    let is_late = observed.lag_p99 > allowed;
    Ok(LoadShare {
        start_ns: observed.start_ns,
        end_ns: observed.end_ns,
        users: Vec::new(),
        cut_pauses: 0,
        seconds,
        load: LoadEvidence {
            generator_cpu: Some(observed.cpu),
            saturated: is_late.then(|| {
                format!(
                    "the front before the service was {:.1} ms late at the 99th percentile, at most {:.1} ms for this SLO",
                    observed.lag_p99.as_secs_f64() * 1e3,
                    allowed.as_secs_f64() * 1e3
                )
            }),
            load_from: Some(LoadFrom::Command {
                command: Box::new(LoadCommandEvidence {
                    words: Vec::new(),
                    connections: observed.connections,
                    stalled: observed.stalls.stalled,
                    arrived_in_stalls: observed.stalls.arrived,
                    expected_in_stalls: observed.stalls.expected,
                    front_lag_p99: observed.lag_p99,
                    cpu_wait: None,
                    reported: None,
                }),
            }),
            ..outcome_evidence(load, &totals, observed.names.into_iter())
        },
    })
}

/// How long the backlog command of the trial took, where it has one.
pub(crate) fn restore_backlog(
    site: &Site,
    order: &TrialOrder,
    network: ContainerNetwork,
    stop: Stop<'_>,
) -> Result<Option<Duration>, HaltReason> {
    let run = |command| {
        let plan = &site.plan_cpus(order, 0)?;
        let at = DependencySite {
            site,
            order,
            plan,
            stop,
        };
        run_backlog(at, &as_dependency(command, "backlog"), network)
    };
    order.backlog.as_ref().map(run).transpose()
}

fn as_dependency(command: &LoadCommandSpec, name: &str) -> DependencySpec {
    DependencySpec {
        name: name.to_owned(),
        app: command.app.clone(),
        readiness: Readiness::Exit,
        start_deadline: command.first_request,
        seed: Vec::new(),
        scope: DependencyScope::Trial,
        reset: Vec::new(),
        account: command.account,
        directories: Vec::new(),
        cpu: None,
        cpuset: None,
        memory: Some(command.memory),
        shm: None,
        proxied: None,
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct CpuTime {
    ran: Duration,
    waited: Duration,
}

/// The times of all threads, read again and again: those of a thread that has ended are gone with it.
/// Source: kernel Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`.
#[derive(Debug, Default)]
struct CpuWaits {
    threads: HashMap<u32, CpuTime>,
    total: CpuTime,
}

impl CpuWaits {
    fn read_threads(&mut self, processes: &[u32]) {
        let threads = processes.iter().flat_map(|process| {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            let names = tasks.into_iter().flatten().flatten();
            names.filter_map(|task| Some((task.file_name().to_str()?.parse().ok()?, task.path())))
        });
        let seen = threads.filter_map(|(thread, path): (u32, PathBuf)| {
            let text = fs::read_to_string(path.join("schedstat")).ok()?;
            Some((thread, parse_schedstat(&text)?))
        });
        let seen: HashMap<u32, CpuTime> = seen.collect();
        for (thread, now) in &seen {
            let before = self.threads.get(thread).copied().unwrap_or_default();
            self.total.ran += now.ran.saturating_sub(before.ran);
            self.total.waited += now.waited.saturating_sub(before.waited);
        }
        self.threads = seen;
    }
}

fn parse_schedstat(text: &str) -> Option<CpuTime> {
    let mut fields = text.split_ascii_whitespace();
    let mut next = || Some(Duration::from_nanos(fields.next()?.parse().ok()?));
    let (ran, waited) = (next()?, next()?);
    Some(CpuTime { ran, waited })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_starved_that_waits_longer_than_it_runs_and_for_long() {
        let ms = Duration::from_millis;
        assert_eq!(
            starvation("the load command", ms(5000), ms(4000), ms(10_000)),
            None
        );
        assert_eq!(
            starvation("the load command", ms(100), ms(900), ms(10_000)),
            None
        );
        let why = starvation("the load command", ms(100), ms(1100), ms(10_000)).unwrap();
        insta::assert_snapshot!(why, @"the load command waited 1.1 s for a CPU and had one for 0.1 s; leave it more CPUs (a smaller --cpu, --cpus), or lower its rate");
    }

    #[test]
    fn waits_of_threads_are_summed_from_when_they_are_first_seen() {
        let own = std::process::id();
        let mut waits = CpuWaits::default();
        waits.read_threads(&[own]);
        let before = waits.total.ran;
        assert!(before > Duration::ZERO);
        waits.read_threads(&[own]);
        assert!(waits.total.ran >= before && waits.total.ran < before * 2);
        assert!(parse_schedstat("1 2").is_some() && parse_schedstat("x").is_none());
    }
}
