//! Services with memory that is known part by part: need = non-heap(requests) + min(touched,
//! allowed heap).
//!
//! Owns what a start with room, a squeezed one and a fresh one show of such a service, and the
//! limit that it really needs. Ranges come from measured services (METHODOLOGY, "The smallest
//! memory"), wider where that is harder: growth that settles late, bursts that end early, walls
//! that kill without a warning, a machine with noise that lasts from start to start and voids
//! misses more often than passes.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_analysis::budget::{limit_after_squeeze, named_heap};
use loadline_analysis::latency::{empty_histogram, encode_histogram};
use loadline_analysis::proof::DISTANT_STARTS;
use loadline_analysis::random::RandomStream;
use loadline_analysis::record::{
    AppKo, Evidence, GcEvidence, HeapAfter, InvalidReason, LoadEvidence, MemoryParts,
    ObjectiveResult, PhaseSpan, SCHEMA, SecondEvidence, SqueezeEnd, SqueezeEvidence, SqueezeStep,
    TrialPhase, TrialPurpose, TrialRecord, TrialVerdict,
};
use loadline_analysis::search::TrialAsk;
use loadline_analysis::slo::Slo;
use loadline_analysis::verdict::lacked_memory;
use loadline_sizing::{Bytes, Cpus};

const SECOND: u64 = 1_000_000_000;
const REQUESTS: f64 = 900.0;
const FOREVER: f64 = 200_000.0;

/// The truth of one service. Sizes are MiB.
#[derive(Debug, Clone)]
pub struct MemoryService {
    /// Objects that stay alive, at the first request.
    pub live: f64,
    /// Growth of the live set per thousand requests.
    pub leak: f64,
    non_heap: f64,
    /// What code and malloc grow by, and the requests after which two thirds of that are there.
    growth: (f64, f64),
    /// By how much that differs between starts, as a share, and what draws it.
    growth_strays: (f64, RandomStream),
    /// What grows with time for as long as it lives.
    late: f64,
    burst: f64,
    burst_requests: f64,
    /// How far starts differ, as a share of the non-heap.
    strays: f64,
    /// Whether the disk reads 8 MiB ahead, else 128 KiB.
    reads_far_ahead: bool,
    /// GC CPUs at a free heap as large as the live set.
    gc_cpus: f64,
    /// Share of the bound at which p99 lies, and how far its logarithm strays.
    latency: (f64, f64),
    /// CPUs that its load burns; `None` where CPU is plenty.
    pub burned_cpus: Option<f64>,
    /// How many times the CPU that it needs as a request it needs as a limit above one.
    pub bursts: f64,
    /// Share of starts that miss whatever their memory.
    pub misses: f64,
    /// Share of trials that are voided, three times as often where they missed.
    noise: f64,
    kills: f64,
    pub is_squeezable: bool,
    random: RandomStream,
    machine: f64,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    strays: f64,
    growth: f64,
    room: f64,
    warm_room: f64,
}

impl MemoryService {
    /// A service; services of different `kind` have independent truths.
    pub fn draw(seed: u64, kind: u64) -> Self {
        let mut random = RandomStream::from_seed(seed).derive(kind);
        let non_heap = random.uniform_between(60_f64.ln(), 350_f64.ln()).exp();
        let live = random.uniform_between(8_f64.ln(), 150_f64.ln()).exp();
        let of = |random: &mut RandomStream, low: f64, high: f64| {
            non_heap * random.uniform_between(low, high)
        };
        Self {
            live,
            leak: if random.chance(0.1) {
                random.uniform_between(0.5, 4.0)
            } else {
                0.0
            },
            non_heap,
            growth: (
                of(&mut random, 0.03, 0.12),
                random.uniform_between(300.0, 6000.0),
            ),
            growth_strays: (0.0, random.derive(3)),
            late: of(&mut random, 0.0, 0.015),
            burst: of(&mut random, 0.0, 0.03),
            burst_requests: [20_000.0, 20_000.0, 20_000.0, 6_000.0, 1_200.0]
                [random.uniform_below(5)],
            strays: random.uniform_between(0.002, 0.023),
            reads_far_ahead: random.chance(0.5),
            gc_cpus: random.uniform_between(0.001_f64.ln(), 0.1_f64.ln()).exp(),
            latency: (
                random.uniform_between(0.01_f64.ln(), 0.5_f64.ln()).exp(),
                random.uniform_between(0.03, 0.2),
            ),
            burned_cpus: None,
            bursts: 1.0,
            misses: [0.0, 0.0, 0.0, 0.0, 0.01][random.uniform_below(5)],
            noise: [0.0, 0.05, 0.2][random.uniform_below(3)],
            kills: random.uniform_between(0.0, 0.03),
            is_squeezable: !random.chance(0.03),
            machine: 0.0,
            random: random.derive(1),
        }
    }

    /// The same with compilers that do not work alike twice: one service in five, small and fast, takes 20
    /// to 45 % of its non-heap in its burst. WireMock took a third, 31 to 52 MiB in eight starts.
    pub fn draw_compiled(seed: u64, kind: u64) -> Self {
        let mut service = Self::draw(seed, kind);
        let compilers = &mut service.growth_strays.1;
        if compilers.chance(0.2) {
            service.growth.0 = compilers.uniform_between(0.2, 0.45) * service.non_heap;
            service.burst_requests = 20_000.0;
        }
        service.growth_strays.0 = service.growth_strays.1.uniform_between(0.02, 0.2);
        service
    }

    /// The same with bursts as WireMock's: they add 30 to 80 % of the non-heap, and that strays by 20 to
    /// 45 % (standard deviation). Nine starts of WireMock added 18 to 77 MiB to 80.
    pub fn draw_bursting(seed: u64, kind: u64) -> Self {
        let mut service = Self::draw(seed, kind);
        let compilers = &mut service.growth_strays.1;
        service.growth.0 = compilers.uniform_between(0.3, 0.8) * service.non_heap;
        service.burst_requests = 20_000.0;
        service.growth_strays.0 = compilers.uniform_between(0.2, 0.45);
        service
    }

    fn start(&mut self) -> Start {
        let random = &mut self.random;
        // Measured: stormed at 11 to 22.9 MiB of room and worked at 10.6 and more; 2.5 to 8 MiB.
        let (room, warm_room) = if self.reads_far_ahead {
            (
                random.uniform_between(10.5, 22.9),
                random.uniform_between(5.0, 16.0),
            )
        } else {
            (
                random.uniform_between(2.5, 8.0),
                random.uniform_between(2.5, 4.3),
            )
        };
        let (grows, compilers) = &mut self.growth_strays;
        Start {
            growth: (1.0 + *grows * compilers.normal().clamp(-3.0, 3.0)).max(0.1),
            strays: 1.0 + self.strays * random.normal().clamp(-3.0, 3.0),
            room,
            warm_room: warm_room.min(room),
        }
    }

    /// Everything but heap and files after this many requests.
    fn non_heap(&self, start: Start, requests: f64) -> f64 {
        let (growth, settles) = self.growth;
        let late = self.late * (requests / FOREVER).min(1.0);
        self.non_heap * start.strays
            + growth * start.growth * (1.0 - (-requests / settles).exp())
            + late
    }

    /// The limit that a start needs, to begin and for as long as it lives.
    fn need(&self, start: Start, heap: f64) -> f64 {
        let fresh = self.non_heap(start, REQUESTS) + heap + start.room;
        fresh.max(self.non_heap(start, FOREVER) + heap + start.warm_room)
    }

    /// The limit with which 95 % of its starts live on with this heap, MiB.
    pub fn needed_limit(&self, heap: f64) -> f64 {
        let mut drawn = self.clone();
        drawn.random = self.random.derive(2);
        let mut needs: Vec<f64> = (0..400)
            .map(|_| {
                let start = drawn.start();
                drawn.need(start, heap)
            })
            .collect();
        needs.sort_by(f64::total_cmp);
        needs[379]
    }

    /// The CPU at which 95 % of its starts keep their bound, where its load burns this much: latency grows
    /// with the share of time that a CPU is busy, as in a queue with one server.
    pub fn needed_cpus(&self) -> f64 {
        let (middle, strays) = self.latency;
        let idle = middle * (1.645 * strays).exp();
        self.burned_cpus.unwrap_or_default() / (1.0 - idle).max(0.01)
    }

    /// By how much waiting for CPU lengthens its latency.
    fn waiting(&self, ask: &TrialAsk) -> f64 {
        let of = &ask.configuration;
        let sure = of.sure_cpu().map(Cpus::as_f64);
        let limit = of
            .cpu_request
            .and(of.cpu)
            .map(|cpu| cpu.as_f64() / self.bursts);
        let given = sure.map(|sure| limit.map_or(sure, |limit| sure.min(limit)));
        let Some((burned, given)) = self.burned_cpus.zip(given) else {
            return 1.0;
        };
        1.0 / (1.0 - burned / given).max(0.001)
    }

    /// The heap that HotSpot allows itself at a limit.
    pub fn default_heap(limit: f64) -> f64 {
        match limit {
            limit if limit < 250.0 => limit / 2.0,
            limit if limit < 500.0 => 125.0,
            limit => limit / 4.0,
        }
    }

    /// The outcome of a trial, and the number of attempts.
    pub fn trial(&mut self, ask: &TrialAsk, slo: &Slo) -> (TrialRecord, u32) {
        for attempt in 1..=3 {
            let record = self.attempt(ask, slo);
            // Noise excuses what it may have caused, and nothing else.
            let counts = record.verdict == TrialVerdict::Pass || lacked_memory(&record);
            if counts || !self.random.chance(3.0 * self.noise) {
                return (record, attempt);
            }
            if attempt == 3 {
                let verdict = TrialVerdict::Invalid(InvalidReason::Noise);
                return (TrialRecord { verdict, ..record }, attempt);
            }
        }
        unreachable!("the third attempt is the last")
    }

    fn attempt(&mut self, ask: &TrialAsk, slo: &Slo) -> TrialRecord {
        self.machine = 0.5 * self.machine + 0.75_f64.sqrt() * self.random.normal();
        let start = self.start();
        let limit = ask.configuration.memory.map_or(f64::MAX, Bytes::as_mib);
        let named = named_heap(&ask.configuration).map(Bytes::as_mib);
        let allowed = named.unwrap_or_else(|| Self::default_heap(limit));
        // A heap that is not pre-touched has what its collections left it.
        let touched = named.unwrap_or((2.2 * self.live).min(allowed));
        let fresh = self.non_heap(start, REQUESTS) + touched;
        let p99 =
            (self.latency.0.ln() + self.latency.1 * self.machine).exp() * 0.25 * self.waiting(ask);
        let is_thrashing = limit < fresh + start.room;
        let is_collecting = allowed < 1.35 * self.live;
        let misses =
            is_thrashing || is_collecting || p99 >= 0.25 || self.random.chance(self.misses);
        let verdict = match misses {
            _ if limit < fresh => TrialVerdict::AppKo(AppKo::CgroupOom),
            true => TrialVerdict::SloMiss,
            false => TrialVerdict::Pass,
        };
        let mut evidence = self.evidence(start, touched, allowed, p99);
        let burned = self
            .burned_cpus
            .map(|cpus| Duration::from_secs_f64(10.0 * cpus));
        evidence.cgroup.measure_cpu = burned;
        evidence.cgroup.file_refaults = Some(if is_thrashing {
            900_000
        } else {
            20_000 + self.random.uniform_below(20_000) as u64
        });
        if ask.purpose == TrialPurpose::Squeeze
            && (verdict == TrialVerdict::Pass || verdict == TrialVerdict::SloMiss)
        {
            self.squeeze(&mut evidence, start, limit, touched);
        }
        let mut verdict = verdict;
        let has_burst = ask.purpose == TrialPurpose::Prove && ask.repeat <= DISTANT_STARTS;
        if has_burst && verdict == TrialVerdict::Pass {
            self.burst(&mut evidence, start, touched);
            let held = &mut evidence.seconds;
            let most = mib(limit);
            held.iter_mut()
                .for_each(|second| second.anon = second.anon.min(Some(most)));
            if limit < self.aged(start, self.burst_requests) + touched {
                verdict = TrialVerdict::AppKo(AppKo::CgroupOom);
            }
        }
        let objective = slo.objectives[0];
        TrialRecord {
            schema: SCHEMA,
            id: format!("{:?}-{}-{limit}", ask.purpose, ask.repeat),
            result: String::new(),
            purpose: ask.purpose,
            configuration: ask.configuration.clone(),
            repeat: ask.repeat,
            started_at_unix_ms: 0,
            slo: slo.clone(),
            verdict,
            reason: String::new().into(),
            objectives: vec![ObjectiveResult {
                request: None,
                is_peak: false,
                objective,
                measured: Some(p99),
                met: p99 < 0.25,
            }],
            evidence,
        }
    }

    fn evidence(&mut self, start: Start, touched: f64, allowed: f64, p99: f64) -> Evidence {
        let mut evidence = Evidence::default();
        let ready = 4.0 * (0.08 * self.machine).exp();
        evidence.start.ready = Some(Duration::from_secs_f64(ready));
        evidence.start.deadline = Duration::from_secs(16);
        evidence.cgroup.peak_anon = Some(mib(self.non_heap(start, REQUESTS) + touched));
        evidence.cgroup.peak_working_set =
            Some(mib(self.non_heap(start, REQUESTS) + touched + 30.0));
        let live =
            (self.live + self.leak * REQUESTS / 1000.0) * self.random.uniform_between(0.97, 1.05);
        let parts = self.parts(start, REQUESTS, touched);
        evidence.memory = Some(MemoryParts {
            live_set: Some(mib(live)),
            heap_committed: Some(mib(touched)),
            ..parts
        });
        let free = (touched - self.live).max(0.05 * self.live);
        let gc = Duration::from_secs_f64(10.0 * self.gc_cpus * self.live / free);
        evidence.gc = Some(gc_of(allowed, gc, Vec::new()));
        evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 5 * SECOND,
            end: 15 * SECOND,
        }];
        evidence.load = vec![load(TrialPhase::Measure, 1000, 1000, p99)];
        evidence
    }

    fn parts(&self, start: Start, requests: f64, heap: f64) -> MemoryParts {
        let first = self.non_heap * start.strays;
        let later = self.non_heap(start, requests) - first;
        let part = |share: f64, grown: f64| mib(share * first + grown * later);
        MemoryParts {
            requests: requests as u64,
            threads: 40,
            heap: mib(heap),
            metaspace: part(0.35, 0.0),
            code_cache: part(0.1, 0.4),
            stacks: part(0.04, 0.0),
            malloc: part(0.35, 0.6),
            other: part(0.15, 0.0),
            kernel: part(0.01, 0.0),
            files: mib(40.0),
            ..MemoryParts::default()
        }
    }

    /// Everything but heap and files in a burst.
    fn aged(&self, start: Start, requests: f64) -> f64 {
        self.non_heap(start, requests) + self.burst * (1.0 - (-requests / 2000.0).exp())
    }

    fn burst(&self, evidence: &mut Evidence, start: Start, heap: f64) {
        let requests = self.burst_requests;
        let age = |second: u64| SecondEvidence {
            at_ns: (15 + second) * SECOND,
            achieved: Some((requests / 10.0) as u64),
            anon: Some(mib(self
                .aged(start, REQUESTS + requests * second as f64 / 10.0)
                + heap)),
            ..SecondEvidence::default()
        };
        evidence.seconds = (1..=10).map(age).collect();
        evidence.phases.push(PhaseSpan {
            phase: TrialPhase::Age,
            start: 15 * SECOND,
            end: 25 * SECOND,
        });
    }

    fn squeeze(&mut self, evidence: &mut Evidence, start: Start, limit: f64, heap: f64) {
        let requests = self.burst_requests;
        let unreclaimable = self.aged(start, requests) + heap;
        let mut parts = self.parts(start, requests, heap);
        let burst = mib(unreclaimable).saturating_sub(parts.unreclaimable());
        parts.malloc = parts.malloc.saturating_add(burst);
        self.burst(evidence, start, heap);
        let grown = self.leak * requests / 1000.0;
        let after = |n: u64| HeapAfter {
            at_ns: (15 + n) * SECOND,
            bytes: mib((self.live + grown * n as f64 / 10.0).min(heap)),
            committed: None,
            is_full: true,
        };
        let collections = (1..=10).map(after).collect();
        let gc = evidence.gc.take().map(|gc| GcEvidence {
            heaps_after: collections,
            ..gc
        });
        evidence.gc = gc;
        evidence.cgroup.peak_anon = Some(mib(unreclaimable));
        let is_killed = self.random.chance(self.kills);
        let (steps, end) = self.steps(limit, unreclaimable, start.warm_room, is_killed);
        evidence.squeeze = Some(SqueezeEvidence {
            aged: Some(parts),
            burst_requests: requests as u64,
            steps,
            end: if self.is_squeezable {
                end
            } else {
                SqueezeEnd::NotPossible("an engine apart".to_owned())
            },
            read_ahead: Some(Bytes::from_kib(if self.reads_far_ahead {
                8192
            } else {
                128
            })),
            limit_after: None,
        });
        let after = limit_after_squeeze(evidence).map_or(f64::MAX, Bytes::as_mib);
        let works = after >= unreclaimable + start.warm_room && !self.random.chance(self.misses);
        if !is_killed {
            let ok = if works { 500 } else { 100 };
            evidence.load.push(load(TrialPhase::Again, 500, ok, 0.01));
        }
    }

    fn steps(
        &self,
        mut limit: f64,
        floor: f64,
        room: f64,
        is_killed: bool,
    ) -> (Vec<SqueezeStep>, SqueezeEnd) {
        let mut steps = Vec::new();
        loop {
            let left = limit - floor;
            let is_storm = left < room;
            // 128 KiB of read-ahead: it comes bit by bit.
            let gradual = if self.reads_far_ahead {
                0.0
            } else {
                4000.0 * (room / left.max(0.5)).min(2.0)
            };
            steps.push(SqueezeStep {
                at_ns: 0,
                length_ns: SECOND,
                limit: mib(limit),
                unreclaimable: mib(floor),
                file: Some(mib(left.max(0.0))),
                refaults_per_second: if is_storm { 32_503.0 } else { gradual },
                full_pressure: Some(if is_storm { 0.3 } else { 0.02 }),
                offered: Some(100),
                achieved: Some(if is_storm { 42 } else { 100 }),
            });
            if is_killed && left < 1.3 * room {
                return (steps, SqueezeEnd::Killed);
            }
            if is_storm {
                return (steps, SqueezeEnd::Storm);
            }
            let share = if limit > 1.08 * floor { 0.03 } else { 0.01 };
            limit -= share * limit;
            if limit - floor < (0.015 * floor).max(if self.reads_far_ahead { 4.0 } else { 2.0 }) {
                return (steps, SqueezeEnd::NoRoom);
            }
        }
    }
}

fn mib(value: f64) -> Bytes {
    Bytes::from_bytes((value.clamp(0.0, 1e9) * 1_048_576.0) as u64)
}

fn gc_of(heap_max: f64, measured: Duration, heaps_after: Vec<HeapAfter>) -> GcEvidence {
    GcEvidence {
        collector: "Serial".to_owned(),
        measure_gc_cpu: Some(measured),
        heap_max: Some(mib(heap_max)),
        heaps_after,
        ..GcEvidence::default()
    }
}

fn load(phase: TrialPhase, scheduled: u64, ok: u64, p99: f64) -> LoadEvidence {
    let mut histogram = empty_histogram();
    let answered = histogram.record_n((p99 * 1e9) as u64, ok);
    let text = encode_histogram(&histogram).unwrap_or_default();
    let failed = if answered.is_ok() {
        scheduled - ok
    } else {
        scheduled
    };
    LoadEvidence {
        phase,
        instance: None,
        offered_rate: Some(scheduled as f64 / 10.0),
        achieved_rate: ok as f64 / 10.0,
        duration: Duration::from_secs(10),
        scheduled,
        ok,
        errors: BTreeMap::from([("timeout".to_owned(), failed)]),
        unfinished: 0,
        latency: text.clone(),
        service_time: Some(text),
        send_lag_p99: Some(Duration::from_micros(50)),
        generator_cpu: Some(Duration::from_millis(10)),
        saturated: None,
        by_request: Vec::new(),
        by_second: Vec::new(),
        load_from: None,
    }
}
