//! The synthetic application: when it starts, what kills it, how fast it answers, how it is
//! disturbed.
//!
//! Owns one instance in its own virtual time. Several of one trial are [`fleet`](crate::fleet)'s.

use std::time::Duration;

use loadline_analysis::latency::encode_histogram;
use loadline_analysis::random::RandomStream;
use loadline_analysis::record::{
    CgroupEvidence, Configuration, Evidence, ExitEvidence, GcEvidence, LoadEvidence, NoiseEvidence,
    SecondEvidence, StartEvidence, TrialPhase,
};
use loadline_protocol::LoadPhase;
use loadline_sizing::Bytes;

use crate::queue;
use crate::world::{MemoryWall, Surface};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    pub wall: MemoryWall,
    /// Estimate of that memory from its working set, as a factor.
    pub expectation: f64,
    pub surface: Surface,
    pub start_cpu: Duration,
    pub base_latency: Duration,
    /// Share of trials that something else on the machine disturbs, in [0, 1].
    pub disturbed: f64,
    /// Share of the disturbed trials with noise evidence that shows it, in [0, 1].
    pub disturbance_seen: f64,
    pub slowdown: f64,
    /// Share of trials with one stall that no evidence shows, in [0, 1].
    pub glitch: f64,
    pub glitch_stall: Duration,
    /// Share of starts that crash whatever their size, in [0, 1].
    pub crash: f64,
    /// What a request costs before the service is warm, if that is more.
    pub cold: Option<WarmingCost>,
    /// An option of the JVM and the factor of the CPU time of a request with it.
    pub option: Option<(&'static str, f64)>,
    /// Requests a second above which the generator says that it was the bottleneck.
    pub generator: f64,
}

/// How a service gets warm: t seconds after it was ready a request costs 1 + extra·e^(−t/decay) times
/// what it costs a warm one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmingCost {
    pub extra: f64,
    /// Seconds until that has fallen to a third (1/e).
    pub decay: f64,
}

impl WarmingCost {
    /// Cost of a request, as a multiple of a warm service's.
    pub fn request_cost(&self, seconds: f64) -> f64 {
        1.0 + self.extra * (-seconds / self.decay).exp()
    }
}

impl Default for World {
    /// An undisturbed service like a small Spring Boot one: 300 MiB, 5 CPU seconds to start,
    /// 1000 requests a second on one CPU.
    fn default() -> Self {
        Self {
            wall: MemoryWall {
                middle: 300.0,
                width: 3.0,
            },
            expectation: 1.0,
            surface: Surface {
                non_heap: 0.03,
                live: 0.01,
                allocation: 0.3,
                gc_cost: 0.03,
                per_cpu: 1000.0,
                contention: 0.05,
                floor: 0.02,
            },
            start_cpu: Duration::from_secs(5),
            base_latency: Duration::from_millis(2),
            disturbed: 0.0,
            disturbance_seen: 1.0,
            slowdown: 20.0,
            glitch: 0.0,
            glitch_stall: Duration::from_secs(1),
            crash: 0.0,
            cold: None,
            option: None,
            generator: f64::INFINITY,
        }
    }
}

/// What happens to one instance; drawn before it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fate {
    end: InstanceEnd,
    pub is_disturbed: bool,
    pub is_seen: bool,
    has_glitch: bool,
    need: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum InstanceEnd {
    Lives,
    /// Far too small: the kernel kills it while it starts.
    OomAtStart,
    /// Too small: it reads its own code from disk again and again and never gets ready.
    Thrashes,
    HeapAtStart,
    /// A little too small: the kernel kills it under load.
    OomUnderLoad,
    GcThrash,
    Crash,
}

impl Fate {
    fn draw_fate(world: &World, of: &Configuration, random: &mut RandomStream) -> Self {
        let need = world.wall.draw_need(random);
        let limit = of.memory.map_or(f64::MAX, Bytes::as_mib);
        let way = random.uniform_below(2);
        let end = match need / limit {
            _ if random.chance(world.crash) => InstanceEnd::Crash,
            _ if instance_capacity(world, of) <= 0.0 => InstanceEnd::HeapAtStart,
            over if over <= 1.0 => InstanceEnd::Lives,
            over if over > 1.3 => InstanceEnd::OomAtStart,
            over if over > 1.05 => [InstanceEnd::Thrashes, InstanceEnd::HeapAtStart][way],
            _ => [InstanceEnd::OomUnderLoad, InstanceEnd::GcThrash][way],
        };
        let is_disturbed = random.chance(world.disturbed);
        Self {
            end,
            is_disturbed,
            is_seen: random.chance(world.disturbance_seen),
            has_glitch: random.chance(world.glitch),
            need,
        }
    }
}

fn instance_capacity(world: &World, configuration: &Configuration) -> f64 {
    let memory = configuration.memory.map_or(64.0, Bytes::as_gib);
    let has = |text: &str| configuration.jvm_options.iter().any(|o| o.text == text);
    let factor = world
        .option
        .filter(|(text, _)| has(text))
        .map_or(1.0, |(_, f)| f);
    world.surface.capacity(usable_cpus(configuration), memory) / factor
}

fn usable_cpus(configuration: &Configuration) -> f64 {
    configuration.cpu.map_or(64.0, |cpu| cpu.as_f64())
}

pub(crate) struct SimulatedService {
    world: World,
    configuration: Configuration,
    pub now_ns: u64,
    pub fate: Fate,
    random: RandomStream,
    start: StartEvidence,
    ready_ns: u64,
    exit: ExitEvidence,
    oom_kills: u64,
    output: Vec<String>,
    seconds: Vec<SecondEvidence>,
    cpu: Duration,
    measured: Option<(Duration, Duration)>,
}

impl SimulatedService {
    pub fn new(
        world: &World,
        configuration: Configuration,
        mut random: RandomStream,
        begin: u64,
    ) -> Self {
        let fate = Fate::draw_fate(world, &configuration, &mut random);
        Self {
            world: *world,
            configuration,
            now_ns: begin,
            fate,
            random,
            start: StartEvidence::default(),
            ready_ns: begin,
            exit: ExitEvidence::default(),
            oom_kills: 0,
            output: Vec::new(),
            seconds: Vec::new(),
            cpu: Duration::ZERO,
            measured: None,
        }
    }

    /// Lets virtual time pass in steps of a second, sampling memory.
    fn pass_time(&mut self, time: Duration, load: Vec<SecondEvidence>) {
        let mut elapsed = Duration::ZERO;
        let mut load = load.into_iter();
        while elapsed < time {
            let step = Duration::from_secs(1).min(time - elapsed);
            elapsed += step;
            self.now_ns += step.as_nanos() as u64;
            self.seconds.push(SecondEvidence {
                at_ns: self.now_ns,
                memory: Some(self.memory_in_use()),
                ..load.next().unwrap_or_default()
            });
        }
    }

    fn kill_instance(&mut self) {
        self.oom_kills = 1;
        self.exit = ExitEvidence {
            before_stop: true,
            signal: Some(9),
            ..ExitEvidence::default()
        };
    }

    fn exit_with(&mut self, code: i32, said: &str) {
        self.output.push(said.to_owned());
        self.exit = ExitEvidence {
            before_stop: true,
            code: Some(code),
            ..ExitEvidence::default()
        };
    }

    fn slowdown(&self) -> f64 {
        if self.fate.is_disturbed {
            self.world.slowdown
        } else {
            1.0
        }
    }

    fn memory_in_use(&self) -> Bytes {
        let need = Bytes::from_bytes((self.fate.need * 1024.0 * 1024.0) as u64);
        self.configuration.memory.map_or(need, |m| m.min(need))
    }

    fn noise_evidence(&self) -> NoiseEvidence {
        let is_seen = self.fate.is_disturbed && self.fate.is_seen;
        NoiseEvidence {
            steal: Some(0.0),
            foreign_cpu: Some(if is_seen { 0.4 } else { 0.01 }),
            contention: Some(if is_seen { 0.2 } else { 0.0 }),
            swap_in_pages: Some(0),
            clock_jump: Some(Duration::ZERO),
            outer_throttled: Some(Duration::ZERO),
            ..NoiseEvidence::default()
        }
    }

    /// A tenth of the working set are dispensable file pages, a tenth indispensable ones.
    fn working_set(&self) -> Bytes {
        let mib = self.fate.need * self.world.expectation / 0.9;
        let wanted = Bytes::from_bytes((mib * 1024.0 * 1024.0) as u64);
        self.configuration.memory.map_or(wanted, |m| m.min(wanted))
    }

    fn cgroup_evidence(&self) -> CgroupEvidence {
        let (peak, used) = (self.memory_in_use(), self.working_set());
        let period = self.configuration.cpu_period.as_secs_f64().max(1e-3);
        let periods = self
            .measured
            .map(|(_, time)| (time.as_secs_f64() / period) as u64);
        let refaults = if self.fate.end == InstanceEnd::Thrashes {
            14_800_000
        } else {
            0
        };
        CgroupEvidence {
            peak_memory: Some(peak),
            peak_working_set: Some(used),
            peak_anon: Some(used.mul_ratio(8, 10)),
            peak_rss: Some(peak),
            loaded_rss: Some(peak),
            loaded_pss: Some(peak),
            oom_kills: Some(self.oom_kills),
            file_refaults: Some(refaults),
            major_faults: Some(refaults / 100),
            cpu: Some(self.cpu),
            measure_cpu: self.measured.map(|(cpu, _)| cpu),
            measure_nr_periods: periods,
            measure_nr_throttled: periods.map(|_| 0),
            measure_throttled: periods.map(|_| Duration::ZERO),
            ..CgroupEvidence::default()
        }
    }

    fn gc_evidence(&self) -> GcEvidence {
        let share = if self.fate.end == InstanceEnd::GcThrash {
            0.7
        } else {
            0.05
        };
        let cpu = self.measured.map(|(cpu, _)| cpu.mul_f64(share));
        GcEvidence {
            collector: "Serial".to_owned(),
            jdk: Some("simulated".to_owned()),
            gc_cpu: Some(self.cpu.mul_f64(share)),
            measure_gc_cpu: cpu,
            measure_pauses: cpu.map(|_| 0),
            measure_pause_sum: cpu.map(|_| Duration::ZERO),
            measure_pause_max: cpu.map(|_| Duration::ZERO),
            heap_after_max: Some(Bytes::from_mib((self.fate.need / 3.0) as u64)),
            ..GcEvidence::default()
        }
    }

    pub fn start_service(&mut self, deadline: Duration) -> StartEvidence {
        let spread = (0.05 * self.random.normal()).exp();
        let wall = self
            .world
            .start_cpu
            .mul_f64(spread * self.slowdown() / usable_cpus(&self.configuration));
        let until_end = wall
            .mul_f64(self.random.uniform_between(0.2, 0.9))
            .min(deadline);
        let (lasted, ready) = match self.fate.end {
            InstanceEnd::OomAtStart | InstanceEnd::HeapAtStart | InstanceEnd::Crash => {
                (until_end, None)
            }
            InstanceEnd::Thrashes => (deadline, None),
            _ if wall > deadline => (deadline, None),
            _ => (wall, Some(wall)),
        };
        self.pass_time(lasted, Vec::new());
        self.ready_ns = self.now_ns;
        match self.fate.end {
            InstanceEnd::OomAtStart => self.kill_instance(),
            InstanceEnd::HeapAtStart => self.exit_with(
                1,
                "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space",
            ),
            InstanceEnd::Crash => {
                self.exit_with(1, "Exception in thread \"main\" java.lang.RuntimeException")
            }
            _ => {}
        }
        self.cpu += lasted.mul_f64(usable_cpus(&self.configuration).min(1.0) / self.slowdown());
        self.start = StartEvidence {
            ready,
            deadline,
            cpu: Some(self.cpu),
            throttled: Some(Duration::ZERO),
            last_probe: match ready {
                Some(_) => "HTTP 200".to_owned(),
                None => "connection refused".to_owned(),
            },
            ..StartEvidence::default()
        };
        self.start.clone()
    }

    /// Runs one load phase; returns whether it died.
    pub fn drive_load(&mut self, load: &LoadPhase) -> (LoadEvidence, bool) {
        let start_ns = self.now_ns;
        let thrash = if self.fate.end == InstanceEnd::GcThrash {
            20.0
        } else {
            1.0
        };
        let age = Duration::from_nanos(start_ns - self.ready_ns).as_secs_f64();
        let dies = self.fate.end == InstanceEnd::OomUnderLoad && load.phase == TrialPhase::Measure;
        let server = queue::QueueServer {
            rate: instance_capacity(&self.world, &self.configuration) / self.slowdown() / thrash,
            servers: (usable_cpus(&self.configuration).ceil() as usize).clamp(1, 64),
            base: self.world.base_latency.as_secs_f64(),
            stall: self.fate.has_glitch.then(|| {
                let at = self.random.uniform_between(0.1, 0.8);
                (at, self.world.glitch_stall.as_secs_f64())
            }),
            dies_at: dies.then(|| self.random.uniform_between(0.1, 0.9)),
            cost: match self.world.cold {
                Some(cold) => Box::new(move |seconds| cold.request_cost(age + seconds)),
                None => Box::new(|_| 1.0),
            },
        };
        let run = queue::run(&server, &load.plan, &mut self.random);
        self.pass_time(run.duration, run.second_evidence(start_ns));
        let cpu = Duration::from_secs_f64(run.busy).mul_f64(1.0 / self.slowdown());
        self.cpu += cpu;
        if load.phase == TrialPhase::Measure {
            self.measured = Some((cpu, run.duration));
        }
        if run.died {
            self.kill_instance();
        }
        let is_saturated = run
            .offered_rate
            .is_some_and(|rate| rate > self.world.generator);
        let evidence = LoadEvidence {
            saturated: is_saturated.then(|| "it made no more requests".to_owned()),
            ..run.load_evidence(load)
        };
        (evidence, run.died)
    }

    /// Stops it and returns its evidence; the trial adds load and phases.
    pub fn stop_service(mut self) -> Evidence {
        if !self.exit.before_stop {
            // What a JVM that takes SIGTERM exits with.
            self.exit.code = Some(143);
        }
        Evidence {
            cgroup: self.cgroup_evidence(),
            gc: Some(self.gc_evidence()),
            noise: self.noise_evidence(),
            start: self.start,
            exit: self.exit,
            seconds: self.seconds,
            last_output: self.output,
            ..Evidence::default()
        }
    }
}

impl queue::PhaseRun {
    fn load_evidence(&self, load: &LoadPhase) -> LoadEvidence {
        let seconds = self.duration.as_secs_f64();
        // A histogram of these bounds can always be written.
        let text = |histogram| encode_histogram(histogram).unwrap_or_default();
        LoadEvidence {
            phase: load.phase,
            instance: None,
            offered_rate: self.offered_rate,
            achieved_rate: self.answered_in_time as f64 / seconds.max(1e-9),
            duration: self.duration,
            scheduled: self.scheduled,
            ok: self.latency.len(),
            errors: self.errors.clone(),
            unfinished: self.unfinished,
            latency: text(&self.latency),
            service_time: Some(text(&self.service_time)),
            send_lag_p99: Some(Duration::from_micros(50)),
            generator_cpu: Some(Duration::from_micros(10 * self.scheduled)),
            saturated: None,
            by_request: Vec::new(),
            by_second: Vec::new(),
            load_from: None,
        }
    }
}
