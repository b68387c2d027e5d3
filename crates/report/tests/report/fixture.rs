//! A simulated search and a simulated matrix, made from the record types.
//!
//! One model makes every number of a trial: seconds, histogram, counters and verdict all follow
//! from the same simulated requests, so the sections of a report can be checked against each
//! other. Invented data: good for rendering and agreement, never for figures.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use hdrhistogram::Histogram;
use loadline_analysis::budget::{Budget, BudgetLine, MemoryPart};
use loadline_analysis::latency;
use loadline_analysis::recommend::recommend;
use loadline_analysis::record::*;
use loadline_analysis::search::min_memory::MemoryFound;
use loadline_analysis::slo::{Objective, Slo};
use loadline_report::ResultView;
use loadline_sizing::{Bytes, Cpus};

pub const RATE: u64 = 300;
const START_UNIX_MS: u64 = 1_795_181_160_000;

/// A small generator of numbers (SplitMix64), so that fixtures never change.
pub struct Dice(pub u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a trial of the fixture runs.
pub struct Plan {
    pub memory_mib: u64,
    pub cpu_millis: u32,
    pub purpose: TrialPurpose,
    pub options: Vec<JvmOption>,
    pub noisy: bool,
    pub seconds: u64,
}

/// A memory size below which this application is killed, and below which it collects all the time.
const KILLED_BELOW: u64 = 180;
const SLOW_BELOW: u64 = 196;

pub fn slo() -> Slo {
    "p99<50ms,errors<0.1%,start<20s".parse().expect("an SLO")
}

fn ms(value: f64) -> Duration {
    Duration::from_nanos((value * 1e6) as u64)
}

/// One trial.
pub fn trial(number: u64, plan: &Plan) -> TrialRecord {
    let mut dice = Dice(number * 1000 + plan.memory_mib);
    let origin = 5_000_000_000_000 + number * 90_000_000_000;
    let second = 1_000_000_000u64;
    let tight = plan.memory_mib < SLOW_BELOW;
    let killed = plan.memory_mib < KILLED_BELOW;
    let ready = 5.2 * 1000.0 / f64::from(plan.cpu_millis.min(2000)) * (1.0 + 0.06 * dice.unit());
    let started = !killed;
    let warm = 10;
    let measure = plan.seconds;
    let start_s = if started { ready.ceil() as u64 } else { 4 };
    let total = if started {
        start_s + warm + measure + 2
    } else {
        start_s
    };

    let mut seconds = Vec::new();
    let mut warm_up = phase_load(TrialPhase::WarmUp, warm);
    let mut measured = phase_load(TrialPhase::Measure, measure);
    let (mut gc_sum, mut gc_max, mut gc_count) = (Duration::ZERO, Duration::ZERO, 0);
    let (mut cpu, mut measure_cpu, mut throttled, mut nr_throttled) =
        (Duration::ZERO, Duration::ZERO, Duration::ZERO, 0);
    let (mut peak, mut peak_ws, mut peak_anon) = (0u64, 0u64, 0u64);
    for s in 1..=total {
        let mut entry = SecondEvidence {
            at_ns: origin + s * second,
            ..SecondEvidence::default()
        };
        let in_warm = started && s > start_s && s <= start_s + warm;
        let in_measure = started && s > start_s + warm && s <= start_s + warm + measure;
        let settled = (s as f64 / (start_s as f64 + 6.0)).min(1.0);
        let anon = (150.0 * settled + 8.0 * dice.unit()).min(plan.memory_mib as f64 * 0.93) as u64;
        let usage = ((anon as f64 + 38.0 * settled) as u64 + 6).min(plan.memory_mib);
        let (anon, usage) = if killed && s == total {
            (plan.memory_mib - 2, plan.memory_mib)
        } else {
            (anon, usage)
        };
        let working = usage.saturating_sub(12).max(anon);
        entry.memory = Some(Bytes::from_mib(usage));
        entry.anon = Some(Bytes::from_mib(anon));
        entry.working_set = Some(Bytes::from_mib(working));
        (peak, peak_ws, peak_anon) = (peak.max(usage), peak_ws.max(working), peak_anon.max(anon));
        let busy = if in_warm || in_measure { 0.42 } else { 0.97 };
        let used = busy
            + if tight && (in_warm || in_measure) {
                0.38
            } else {
                0.05 * dice.unit()
            };
        let used = Duration::from_secs_f64(used.min(f64::from(plan.cpu_millis) / 1000.0));
        entry.cpu = Some(used);
        cpu += used;
        let gc = if in_warm || in_measure {
            ms(if tight {
                240.0 + 160.0 * dice.unit()
            } else {
                9.0 + 9.0 * dice.unit()
            })
        } else {
            ms(20.0 * dice.unit())
        };
        entry.gc_pause = Some(gc);
        let throttles = if tight {
            3
        } else {
            u64::from(!in_measure || s % 7 == 0)
        };
        let lost = ms(throttles as f64 * 31.0 * (0.5 + dice.unit()));
        entry.nr_throttled = Some(throttles);
        entry.throttled = Some(lost);
        if in_warm || in_measure {
            let slow = if s == start_s + 1 { 6.0 } else { 1.0 };
            let load = if in_warm { &mut warm_up } else { &mut measured };
            let mut this: Histogram<u64> = Histogram::new(3).expect("3 digits are valid");
            let mut errors = 0;
            for _ in 0..RATE {
                let u = dice.unit();
                let mut latency = 2.4 * slow * (1.0 + 1.2 * dice.unit())
                    + if u > 0.97 { 14.0 * dice.unit() } else { 0.0 };
                if u > 0.985 {
                    latency += gc.as_secs_f64() * 1e3 * dice.unit();
                }
                if u > 0.9975 {
                    latency += lost.as_secs_f64() * 1e3 * 0.4 * dice.unit();
                }
                if plan.noisy && u > 0.9 {
                    latency += 300.0 * dice.unit();
                }
                if tight && u > 0.9992 {
                    errors += 1;
                    continue;
                }
                this.record(ms(latency).as_nanos() as u64)
                    .expect("the histogram grows");
            }
            entry.offered = Some(RATE);
            entry.achieved = Some(this.len());
            entry.errors = Some(errors);
            let at = |q| Some(Duration::from_nanos(this.value_at_quantile(q)));
            (entry.p50, entry.p99, entry.max) = (at(0.5), at(0.99), at(1.0));
            load.histogram.add(&this).expect("the same digits");
            load.errors += errors;
        }
        if in_measure {
            gc_sum += gc;
            gc_max = gc_max.max(gc / 2);
            gc_count += 2;
            measure_cpu += used;
            throttled += lost;
            nr_throttled += throttles;
        }
        seconds.push(entry);
    }

    let slo = slo();
    let ready = started.then(|| Duration::from_secs_f64(ready));
    let (verdict, reason, objectives) = judge(plan, &slo, &measured, ready, gc_sum, peak);
    let ns = |s: u64| origin + s * second;
    let spans: &[(TrialPhase, u64, u64)] = if started {
        &[
            (TrialPhase::Start, 0, start_s),
            (TrialPhase::WarmUp, start_s, start_s + warm),
            (TrialPhase::Measure, start_s + warm, total - 1),
            (TrialPhase::Stop, total - 1, total),
        ]
    } else {
        &[(TrialPhase::Start, 0, total)]
    };
    let phases = spans
        .iter()
        .map(|&(phase, a, b)| PhaseSpan {
            phase,
            start: ns(a),
            end: ns(b),
        })
        .collect();
    let load = if started {
        vec![warm_up.evidence(), measured.evidence()]
    } else {
        Vec::new()
    };
    TrialRecord {
        schema: SCHEMA,
        id: format!("01936f2a-0000-7000-8000-{number:012x}"),
        result: "01936f2a-ffff-7000-8000-000000000001".to_owned(),
        purpose: plan.purpose,
        configuration: configuration(plan),
        repeat: 1,
        started_at_unix_ms: START_UNIX_MS + number * 90_000,
        slo,
        verdict,
        reason: reason.into(),
        objectives,
        evidence: Evidence {
            phases,
            start: StartEvidence {
                ready,
                deadline: Duration::from_secs(60),
                cpu: ready,
                throttled: Some(ms(410.0)),
                last_probe: if started {
                    "HTTP 200"
                } else {
                    "connection refused"
                }
                .to_owned(),
                ..StartEvidence::default()
            },
            load,
            cgroup: CgroupEvidence {
                peak_memory: Some(Bytes::from_mib(peak)),
                peak_working_set: Some(Bytes::from_mib(peak_ws)),
                peak_anon: Some(Bytes::from_mib(peak_anon)),
                oom_kills: Some(u64::from(killed)),
                cpu: Some(cpu),
                measure_cpu: started.then_some(measure_cpu),
                measure_nr_periods: started.then_some(measure * 10),
                measure_nr_throttled: started.then_some(nr_throttled),
                measure_throttled: started.then_some(throttled),
                ..CgroupEvidence::default()
            },
            gc: started.then(|| gc_evidence(gc_sum, gc_max, gc_count)),
            exit: ExitEvidence {
                before_stop: killed,
                code: (!killed).then_some(143),
                signal: killed.then_some(9),
                ..ExitEvidence::default()
            },
            seconds,
            last_output: vec!["Started OwnersApplication in 4.9 seconds".to_owned()],
            warnings: if number == 3 {
                vec!["transparent huge pages are set to always; the limit counts them".to_owned()]
            } else {
                Vec::new()
            },
            ..Evidence::default()
        },
    }
}

fn gc_evidence(sum: Duration, longest: Duration, pauses: u64) -> GcEvidence {
    GcEvidence {
        collector: "Serial".to_owned(),
        jdk: Some("17.0.13+11-Debian-2".to_owned()),
        pauses: pauses + 40,
        pause_sum: sum + ms(400.0),
        pause_max: longest,
        full_gcs: 2,
        gc_cpu: Some(sum),
        measure_gc_cpu: Some(sum),
        measure_pauses: Some(pauses),
        measure_pause_sum: Some(sum),
        measure_pause_max: Some(longest),
        parallel_workers: None,
        heap_after_max: Some(Bytes::from_mib(47)),
        heap_max: Some(Bytes::from_mib(64)),
        allocated: None,
        promoted: None,
        heaps_after: Vec::new(),
        pause_spans_ns: Vec::new(),
    }
}

struct Load {
    phase: TrialPhase,
    seconds: u64,
    histogram: Histogram<u64>,
    errors: u64,
}

fn phase_load(phase: TrialPhase, seconds: u64) -> Load {
    Load {
        phase,
        seconds,
        histogram: Histogram::new(3).expect("3 digits are valid"),
        errors: 0,
    }
}

impl Load {
    fn evidence(&self) -> LoadEvidence {
        let scheduled = self.seconds * RATE;
        let mut errors = BTreeMap::new();
        if self.errors > 0 {
            errors.insert("timeout".to_owned(), self.errors);
        }
        LoadEvidence {
            phase: self.phase,
            instance: None,
            offered_rate: Some(RATE as f64),
            achieved_rate: self.histogram.len() as f64 / self.seconds as f64,
            duration: Duration::from_secs(self.seconds),
            scheduled,
            ok: self.histogram.len(),
            errors,
            unfinished: 0,
            latency: latency::encode_histogram(&self.histogram).expect("small counts"),
            service_time: Some(latency::encode_histogram(&self.histogram).expect("small counts")),
            send_lag_p99: Some(ms(0.08)),
            generator_cpu: Some(ms(900.0)),
            saturated: None,
            by_request: Vec::new(),
            by_second: Vec::new(),
            load_from: None,
        }
    }

    /// The latency that this share of all requests stayed within.
    fn quantile(&self, q: f64) -> Option<Duration> {
        let (all, ok) = ((self.seconds * RATE) as f64, self.histogram.len() as f64);
        let wanted = (q * all).ceil();
        (wanted <= ok).then(|| Duration::from_nanos(self.histogram.value_at_quantile(wanted / ok)))
    }
}

fn judge(
    plan: &Plan,
    slo: &Slo,
    load: &Load,
    ready: Option<Duration>,
    gc: Duration,
    peak: u64,
) -> (TrialVerdict, String, Vec<ObjectiveResult>) {
    if ready.is_none() {
        let reason = format!(
            "the kernel killed it at its limit of {}Mi while it started; peak {peak}Mi",
            plan.memory_mib
        );
        return (TrialVerdict::AppKo(AppKo::CgroupOom), reason, Vec::new());
    }
    let results: Vec<ObjectiveResult> = slo
        .objectives
        .iter()
        .map(|objective| {
            let (measured, bound) = match objective {
                Objective::Latency { quantile, bound } => (
                    load.quantile(quantile.as_fraction())
                        .map(|d| d.as_secs_f64()),
                    bound.as_secs_f64(),
                ),
                Objective::MaxLatency { bound } => (
                    load.quantile(1.0).map(|d| d.as_secs_f64()),
                    bound.as_secs_f64(),
                ),
                Objective::Errors { bound } => (
                    Some(load.errors as f64 / (load.seconds * RATE) as f64),
                    *bound,
                ),
                Objective::Start { bound } => (ready.map(|d| d.as_secs_f64()), bound.as_secs_f64()),
                Objective::Jvm(_)
                | Objective::Run(_)
                | Objective::Metric(_)
                | Objective::LoadPasses { .. } => panic!("the fixture is a service"),
            };
            ObjectiveResult {
                request: None,
                is_peak: false,
                objective: *objective,
                measured,
                met: measured.is_some_and(|m| m < bound),
            }
        })
        .collect();
    if plan.noisy {
        return (
            TrialVerdict::Invalid(InvalidReason::Noise),
            "other programs used 61 % of the machine's CPUs while it was measured".to_owned(),
            results,
        );
    }
    let share = gc.as_secs_f64() / load.seconds as f64 * 100.0;
    let missed = results.iter().find(|r| !r.met);
    match missed {
        None => (
            TrialVerdict::Pass,
            "it kept every objective".to_owned(),
            results,
        ),
        Some(r) => {
            let reason = format!(
                "{} was measured as {:.0} ms; garbage collection stopped it {share:.0} % of the time",
                r.objective,
                r.measured.unwrap_or(f64::NAN) * 1e3
            );
            (TrialVerdict::SloMiss, reason, results)
        }
    }
}

fn configuration(plan: &Plan) -> Configuration {
    Configuration {
        label: format!("{}Mi", plan.memory_mib),
        cpu: Some(Cpus::from_millis(plan.cpu_millis)),
        memory: Some(Bytes::from_mib(plan.memory_mib)),
        jvm_options: plan.options.clone(),
        ..Configuration::default()
    }
}

pub fn option(text: &str, provenance: ValueProvenance) -> JvmOption {
    JvmOption {
        text: text.to_owned(),
        provenance,
    }
}

pub fn machine() -> MachineDescription {
    MachineDescription {
        image: None,
        level_images: Vec::new(),
        cluster: None,
        apart: None,
        version: None,
        kernel: "Linux 6.1.0-28-amd64 (Debian 12)".to_owned(),
        cpu_model: "AMD EPYC 7B13".to_owned(),
        cpus: 2,
        memory: Some(Bytes::from_gib(8)),
        cgroup: "hybrid".to_owned(),
        architecture: "x86_64".to_owned(),
        jdks: vec!["17 debian 17.0.13+11".to_owned()],
        loadline: "0.1.0".to_owned(),
    }
}

pub fn search() -> ResultView {
    static MADE: LazyLock<ResultView> = LazyLock::new(make_search);
    MADE.clone()
}

fn make_search() -> ResultView {
    let options = vec![
        option("-XX:+UseSerialGC", ValueProvenance::User),
        option("-XX:MaxMetaspaceSize=88m", ValueProvenance::Measured),
        option("-XX:ReservedCodeCacheSize=48m", ValueProvenance::Calculated),
    ];
    let mut plans: Vec<(u64, TrialPurpose, bool)> = vec![
        (1024, TrialPurpose::Search, false),
        (256, TrialPurpose::Search, false),
        (128, TrialPurpose::Search, false),
        (181, TrialPurpose::Search, false),
        (215, TrialPurpose::Search, true),
        (215, TrialPurpose::Search, false),
        (197, TrialPurpose::Search, false),
        (189, TrialPurpose::Search, false),
    ];
    plans.extend([(197, TrialPurpose::Confirm, false); 5]);
    plans.extend([(212, TrialPurpose::Prove, false); 8]);
    plans.push((195, TrialPurpose::Neighbour, false));
    let trials: Vec<TrialRecord> = plans
        .iter()
        .zip(1..)
        .map(|(&(memory_mib, purpose, noisy), number)| {
            let plan = Plan {
                memory_mib,
                cpu_millis: 1000,
                purpose,
                options: options.clone(),
                noisy,
                seconds: 30,
            };
            trial(number, &plan)
        })
        .collect();
    let next = trials.last().expect("there are trials").clone();
    let answer = MemoryFound {
        size: Bytes::from_mib(212),
        confirmed: Bytes::from_mib(197),
        failed: Bytes::from_mib(195),
        margin: 0.08,
        starts: 22,
        invalid: 1,
    };
    let recommendation = recommend(next.configuration.clone(), &answer, &trials, &[]);
    ResultView {
        id: next.result,
        title: "spring-web".to_owned(),
        question: None,
        command: ["loadline", "size", "--slo", "p99<50ms,errors<0.1%,start<20s", "--rate", "300/s", "--cpu", "1", "--url", "http://localhost:8080/owners?lastName=Da", "--", "java", "-jar", "spring-web.jar"].map(str::to_owned).to_vec(),
        experiment: "[app]\ncommand = [\"java\", \"-jar\", \"spring-web.jar\"]\nready = { http = \"/health\", port = 8080 }\n\n[load]\npath = \"/owners?lastName=Da\"\nrate = \"300/s\"\n\n[slo]\nobjectives = \"p99<50ms,errors<0.1%,start<20s\"\n".to_owned(),
        load: loadline_report::LoadWords {
            before: "GET /owners?lastName=Da at ".to_owned(),
            rate_per_second: Some(300.0),
            after: " (open model, 30 s)".to_owned(),
        },
        machine: machine(),
        slo: slo(),
        recommendation: Some(recommendation),
        trials,
        incomplete: None,
        node: None,
        today: None,
        warnings: Vec::new(),
    }
}

/// The options of a heap that loadline chose.
pub const HEAP: [&str; 3] = ["-Xms64m", "-Xmx64m", "-XX:+AlwaysPreTouch"];

/// The same search with the heap in the answer, and the budget that fills its limit.
pub fn budgeted() -> ResultView {
    let mut view = search();
    let heap = || HEAP.map(|text| option(text, ValueProvenance::Measured));
    for trial in &mut view.trials {
        trial.configuration.jvm_options.extend(heap());
    }
    let answer = view.recommendation.as_mut().expect("there is one");
    answer.configuration.jvm_options.extend(heap());
    answer.margin = 0.0;
    answer.budget = Some(budget(64, 212));
    view
}

/// A budget of this heap and 142.3 MiB of everything else.
pub fn budget(heap: u64, limit: u64) -> Budget {
    let tenths = |tenths: u64| Bytes::from_kib(tenths * 1024 / 10);
    let line = |part, measured, growth, reason: &str, cap: Option<&str>| BudgetLine {
        part,
        measured: tenths(measured),
        growth: tenths(growth),
        reason: reason.to_owned(),
        cap: cap.map(str::to_owned),
    };
    let lines = vec![
        line(MemoryPart::Heap, heap * 10, 0, "", Some("-Xmx64m")),
        line(
            MemoryPart::Metaspace,
            604,
            30,
            "classes that load later",
            None,
        ),
        line(
            MemoryPart::CodeCache,
            143,
            57,
            "C1 alone: as much again",
            Some("-XX:ReservedCodeCacheSize=48m"),
        ),
        line(
            MemoryPart::Stacks,
            52,
            118,
            "up to 200 threads",
            Some("server.tomcat.threads.max=200"),
        ),
        line(MemoryPart::Malloc, 184, 36, "arenas that fill", None),
        line(MemoryPart::Jvm, 71, 0, "", None),
        line(MemoryPart::Kernel, 18, 0, "", None),
        line(MemoryPart::Files, 110, 0, "", None),
    ];
    Budget::new(lines, Bytes::from_mib(limit)).expect("it fits")
}

/// A matrix: three option sets, four sizes.
pub fn matrix() -> ResultView {
    static MADE: LazyLock<ResultView> = LazyLock::new(make_matrix);
    MADE.clone()
}

fn make_matrix() -> ResultView {
    let sets: [(&str, Vec<JvmOption>); 3] = [
        ("default", Vec::new()),
        (
            "c1",
            vec![option("-XX:TieredStopAtLevel=1", ValueProvenance::User)],
        ),
        (
            "serial",
            vec![option("-XX:+UseSerialGC", ValueProvenance::User)],
        ),
    ];
    let mut trials = Vec::new();
    for (label, options) in &sets {
        for memory_mib in [600, 300, 190, 150] {
            let plan = Plan {
                memory_mib,
                cpu_millis: 1000,
                purpose: TrialPurpose::Matrix,
                options: options.clone(),
                noisy: false,
                seconds: 20,
            };
            let mut trial = trial(trials.len() as u64 + 1, &plan);
            trial.configuration.label = format!("{memory_mib}Mi {label}");
            trials.push(trial);
        }
    }
    ResultView {
        title: "memory-floor".to_owned(),
        question: Some("How far down does each option set carry the service?".to_owned()),
        recommendation: None,
        command: ["loadline", "run", "experiments/memory-floor.toml"]
            .map(str::to_owned)
            .to_vec(),
        trials,
        ..search()
    }
}
