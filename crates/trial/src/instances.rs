//! All instances of a trial, driven by one thread.
//!
//! Owns the queue of their notes, the periodic work for each (the rule of out-of-memory kills,
//! copies into the event log), the window in which the machine is watched, and the progress of the
//! trial. A single instance is the case n = 1.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use loadline_analysis::record::{NoiseEvidence, TrialPhase};
use loadline_cgroup::{CgroupLayout, Noise, NoiseMeter};
use loadline_load::LoadPart;
use loadline_protocol::log::EventLog;
use loadline_protocol::{TrialEvent, TrialOrder, TrialProgress};

use crate::clock::monotonic_ns;
use crate::dependencies::TrialDependencies;
use crate::disk::{self, DiskRoom};
use crate::halt::HaltReason;
use crate::instance::Instance;
use crate::load_command::LoadTool;
use crate::neighbour::BusyNeighbour;
use crate::notes::{GeneratorLine, InstanceNote, NoteSender};
use crate::program::ProgramSpec;
use crate::site::Site;

const TICK: Duration = Duration::from_millis(50);

/// Interval of copies into the log: a killed trial loses at most this much.
const COPY: Duration = Duration::from_secs(1);

const PROGRESS: Duration = Duration::from_millis(250);

/// The instances of a trial, and their surroundings. The fields are dropped in order.
pub(crate) struct Instances {
    pub(crate) all: Vec<Instance>,
    neighbour: Option<BusyNeighbour>,
    pub(crate) dependencies: TrialDependencies,
    pub(crate) load_tool: Option<LoadTool>,
    pub(crate) load_exit: Option<i32>,
    layout: CgroupLayout,
    log: Arc<EventLog>,
    notes: Receiver<(usize, InstanceNote)>,
    _queue: Sender<(usize, InstanceNote)>,
    pub(crate) rooms: Vec<DiskRoom>,
    meter: Option<NoiseMeter>,
    pub(crate) noise: NoiseEvidence,
    pub(crate) start_noise: Option<NoiseEvidence>,
    copied: Instant,
    told: Option<Instant>,
}

impl Instances {
    /// Prepares all; starts none. Errors: [`HaltReason`], after cleaning up.
    pub(crate) fn prepare_all(
        site: &Site,
        order: &TrialOrder,
        program: &ProgramSpec,
        dependencies: TrialDependencies,
        log: &Arc<EventLog>,
    ) -> Result<Self, HaltReason> {
        let (queue, notes) = channel();
        let of = order.configuration.instances.max(1);
        let instance = |index| {
            let teller = NoteSender::new(index as usize, queue.clone());
            let (part, with) = (LoadPart { index, of }, (Arc::clone(log), teller));
            let network = dependencies.front_network();
            Instance::prepare_instance(site, order, program, part, network, with)
        };
        let all = (0..of).map(instance).collect::<Result<Vec<_>, _>>()?;
        let configuration = &order.configuration;
        let cpus = all.first().map(|first| first.plan.application.as_slice());
        let cpus = cpus.unwrap_or_default();
        let threads = configuration.cpu_request.map(|_| cpus.len() as u32);
        let threads = threads.or(configuration.neighbour_threads);
        let start = |threads| BusyNeighbour::start_neighbour(site, &order.trial, threads, cpus);
        let neighbour = threads.map(start).transpose()?;
        Ok(Self {
            all,
            neighbour,
            dependencies,
            load_tool: None,
            load_exit: None,
            layout: site.layout.clone(),
            log: Arc::clone(log),
            notes,
            _queue: queue,
            rooms: disk::disk_rooms(order),
            meter: None,
            noise: NoiseEvidence::default(),
            start_noise: None,
            copied: Instant::now(),
            told: None,
        })
    }

    /// Waits for the next note, at most a tick, takes all pending ones, and does the due work.
    /// Returns the generators' lines.
    pub(crate) fn wait_tick(&mut self) -> Vec<(usize, GeneratorLine)> {
        let first = self.notes.recv_timeout(TICK).ok();
        let mut lines = Vec::new();
        self.take_notes(first, &mut lines);
        for instance in &mut self.all {
            instance.end_after_oom();
            instance.look_at_clock();
        }
        let mut rooms = self.rooms.iter_mut();
        if rooms.any(DiskRoom::has_run_short) {
            self.end_for_room();
        }
        if self.copied.elapsed() >= COPY {
            self.copied = Instant::now();
            self.all.iter_mut().for_each(Instance::copy_output);
            if let Some(meter) = &mut self.meter {
                meter.check_clocks();
            }
        }
        lines
    }

    /// Ends the applications because the disk is nearly full, and counts their files.
    fn end_for_room(&mut self) {
        let processes: Vec<u32> = self.all.iter().flat_map(Instance::process_ids).collect();
        let nameless = disk::nameless_files(&processes);
        // What survives is found when the trial ends.
        let killed = self.all.iter_mut().map(|i| i.container.kill_container());
        killed.for_each(drop);
        let all = self.all.iter();
        let places = all.flat_map(|i| i.container.written_directories());
        let places: Vec<_> = places.collect();
        for room in &mut self.rooms {
            room.count_files(&places, &nameless);
        }
    }

    pub(crate) fn drain(&mut self) {
        // Outside of load phases a generator has nothing to say that matters.
        self.take_notes(None, &mut Vec::new());
    }

    fn take_notes(
        &mut self,
        first: Option<(usize, InstanceNote)>,
        lines: &mut Vec<(usize, GeneratorLine)>,
    ) {
        for (index, note) in first.into_iter().chain(self.notes.try_iter()) {
            match note {
                InstanceNote::Generator(line) => lines.push((index, line)),
                note => self.all[index].state.take_note(note),
            }
        }
    }

    pub(crate) fn begin_phase(&mut self, phase: TrialPhase) -> u64 {
        self.told = None;
        let at_ns = monotonic_ns();
        self.log_event(&TrialEvent::Phase { phase, at_ns });
        at_ns
    }

    pub(crate) fn report_elapsed(&mut self, phase: TrialPhase, elapsed: Duration) {
        if self.told.is_none_or(|told| told.elapsed() >= PROGRESS) {
            self.told = Some(Instant::now());
            self.report_progress(TrialProgress {
                phase,
                elapsed,
                p99: None,
                rate: None,
            });
        }
    }

    pub(crate) fn report_progress(&self, progress: TrialProgress) {
        self.log_event(&TrialEvent::Progress(progress));
    }

    /// A full log loses live events; its last event counts.
    fn log_event(&self, event: &TrialEvent) {
        let _ = self.log.append_event(event);
    }

    /// Begins to watch what else happens on the machine, around all instances and the generators:
    /// those without a group by their processes. Noise that cannot be measured is `None` in the
    /// record.
    pub(crate) fn begin_window(&mut self, generators: &[u32]) {
        let groups = self.all.iter().flat_map(Instance::readable_groups);
        let mut groups: Vec<_> = groups.collect();
        groups.extend(self.neighbour.as_ref().map(BusyNeighbour::own_group));
        groups.extend(self.dependencies.dependency_groups());
        groups.extend(self.load_tool.as_ref().map(LoadTool::tool_group));
        let beside: Vec<u32> = (generators.iter().copied())
            .chain(self.dependencies.keeper)
            .collect();
        self.meter = NoiseMeter::start_window(&self.layout, &groups, &beside).ok();
        self.dependencies.begin_window();
    }

    /// Ends the window; the last one counts: the measure phase of a trial that got so far.
    pub(crate) fn end_window(&mut self) {
        self.dependencies.end_window();
        let meter = self.meter.take();
        if let Some(noise) = meter.and_then(|meter| meter.finish_window().ok()) {
            self.noise = noise_evidence(noise);
            if self.all.len() > 1 || self.dependencies.share_with_application() {
                // They wait for each other: that is the experiment, no disturbance.
                self.noise.contention = None;
            }
            if self.all.iter().any(|i| !i.container.is_within_reach()) {
                // What the application used is not known, so what others used is not either.
                self.noise.foreign_cpu = None;
                self.noise.contention = None;
            }
        }
    }
}

fn noise_evidence(noise: Noise) -> NoiseEvidence {
    NoiseEvidence {
        steal: noise.steal,
        foreign_cpu: noise.foreign_cpu,
        host_cpu_pressure: noise.host_cpu_pressure,
        contention: noise.contention,
        swap_in_pages: noise.swap_in_pages,
        clock_jump: Some(noise.clock_jump),
        outer_throttled: noise.outer_throttled,
    }
}
