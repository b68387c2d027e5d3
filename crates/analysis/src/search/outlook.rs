//! How many starts a search takes and how long, before it runs.
//!
//! Owns the estimate: the search itself runs on randomly drawn services, so the estimate follows
//! any change of its rules. The services come from the population of the published error rates
//! (METHODOLOGY, "The smallest memory") over the sizes of this search. It says nothing about one
//! service: its memory need is not known yet.

use std::time::Duration;

use loadline_sizing::Bytes;

use super::size::{SizeSearch, SmallestMemory};
use super::{SeenTrials, TrialAsk, TrialSearch};
use crate::interval::quantile;
use crate::proof::DISTANT_STARTS;
use crate::random::RandomStream;
use crate::record::{
    Evidence, MemoryParts, SCHEMA, SecondEvidence, SqueezeEnd, SqueezeEvidence, SqueezeStep,
    TrialPurpose, TrialRecord, TrialVerdict,
};
use crate::slo::Slo;

/// Services that are drawn: enough for a 95th percentile.
const SERVICES: u64 = 60;
const WIDTHS: [f64; 3] = [0.003, 0.01, 0.03];
const MOST: u32 = 2000;
/// Share of a service's middle that is anonymous memory in a start with room; the working set is as
/// much above the middle.
const ANONYMOUS: f64 = 0.85;

/// How far anonymous memory strays between starts, as a share.
const STRAYS: f64 = 0.01;
/// The wall of a squeezed start, in widths above the middle: hardly a start fails there.
const WALL: f64 = 3.0;
const AGEING: Duration = Duration::from_secs(8);
/// What ageing, the squeeze and the load behind it add to the start that is squeezed.
const SQUEEZING: Duration = Duration::from_secs(60);
/// What the burst adds to a fresh start, and the load behind it.
const BURST: Duration = Duration::from_secs(12);

/// Warm-ups that a service may need, seconds, if the search lengthens them: equally likely in each
/// octave. Assumed, not measured.
const WARM: (f64, f64) = (1.0, 64.0);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    pub starts: u32,
    /// Starts, of 95 in 100 searches at most.
    pub starts_95: u32,
    pub each: Duration,
    /// Time, of half of all searches at most; with the longer warm-ups that some of its starts have.
    pub time: Duration,
    /// Time, of 95 in 100 searches at most.
    pub time_95: Duration,
}

impl Outlook {
    pub fn for_search(search: &SizeSearch, slo: &Slo, each: Duration) -> Self {
        let taken = |service| {
            let (starts, time) = DrawnService::new(search, service).count_starts(slo, each);
            (f64::from(starts), time.as_secs_f64())
        };
        let (starts, times): (Vec<f64>, Vec<f64>) = (0..SERVICES).map(taken).unzip();
        let starts = |share| quantile(&starts, share).unwrap_or_default().round() as u32;
        let time = |share| Duration::from_secs_f64(quantile(&times, share).unwrap_or_default());
        Self {
            starts: starts(0.5),
            starts_95: starts(0.95),
            each,
            time: time(0.5),
            time_95: time(0.95),
        }
    }
}

struct DrawnService<'a> {
    search: &'a SizeSearch,
    /// MiB at which half of the starts pass.
    middles: Vec<f64>,
    width: f64,
    warm: Duration,
    random: RandomStream,
}

impl<'a> DrawnService<'a> {
    fn new(search: &'a SizeSearch, service: u64) -> Self {
        let mut random = RandomStream::from_seed(16).derive(service);
        let width = WIDTHS[random.uniform_below(WIDTHS.len())];
        let middle = |base: &SmallestMemory| {
            let (low, high) = (base.parameters.low, base.parameters.high);
            // Inside the range: at its ends there is nothing to search.
            let (low, high) = (low.as_mib() * 1.1, high.as_mib() / 1.2);
            random.uniform_between(low.ln(), high.max(low).ln()).exp()
        };
        Self {
            search,
            middles: search.bases.iter().map(middle).collect(),
            width,
            warm: Duration::from_secs_f64(random.uniform_between(WARM.0.ln(), WARM.1.ln()).exp()),
            random,
        }
    }

    fn count_starts(mut self, slo: &Slo, each: Duration) -> (u32, Duration) {
        let mut seen = SeenTrials::default();
        let mut time = Duration::ZERO;
        for starts in 0..MOST {
            let Err(open) = self.search.next(&seen) else {
                return (starts, time);
            };
            let Some(ask) = open.wanted.first() else {
                return (starts, time);
            };
            let given = self.first_warm_up();
            let warm_up = ask.configuration.warm_up.unwrap_or(given);
            time += each + warm_up.saturating_sub(given) + self.longer(ask);
            let record = self.run_start(ask, slo);
            seen.add_record(ask, record, Duration::ZERO);
        }
        (MOST, time)
    }

    /// How much longer a start is than its judged load.
    fn longer(&self, ask: &TrialAsk) -> Duration {
        let has_wall = self.search.bases.iter().any(|base| base.is_squeezable);
        match ask.purpose {
            TrialPurpose::Room => AGEING,
            TrialPurpose::Squeeze => SQUEEZING,
            TrialPurpose::Prove if has_wall && ask.repeat <= DISTANT_STARTS => BURST,
            _ => Duration::ZERO,
        }
    }

    fn first_warm_up(&self) -> Duration {
        let first = self.search.bases.first();
        first.and_then(|base| base.warm_up).unwrap_or_default()
    }

    /// Seconds of load in which a request gets cheaper until the service is warm.
    fn warming_seconds(&self, ask: &TrialAsk) -> Vec<SecondEvidence> {
        let warm_up = ask.configuration.warm_up.unwrap_or(self.first_warm_up());
        let first = if warm_up < self.warm { 2 } else { 1 };
        let second = |cpu| SecondEvidence {
            offered: Some(1),
            achieved: Some(1),
            cpu: Some(Duration::from_secs(cpu)),
            ..SecondEvidence::default()
        };
        vec![second(first), second(1)]
    }

    fn run_start(&mut self, ask: &TrialAsk, slo: &Slo) -> TrialRecord {
        let is_own = |base: &SmallestMemory| {
            let of_base = &base.base;
            of_base.cpu == ask.configuration.cpu
                && of_base.jdk == ask.configuration.jdk
                && of_base.jvm_options == ask.configuration.jvm_options
        };
        let bases = &self.search.bases;
        let base = bases.iter().position(is_own).unwrap_or_default();
        let middle = self.middles[base];
        let size = ask.configuration.memory.map_or(f64::MAX, |m| m.as_mib());
        let above = (size - middle) / (self.width * middle);
        let passes = self.random.chance(1.0 / (1.0 + (-above).exp()));
        let mib = |share: f64| Some(Bytes::from_bytes((share * middle * 1024.0 * 1024.0) as u64));
        let mut evidence = Evidence {
            seconds: self.warming_seconds(ask),
            ..Evidence::default()
        };
        evidence.start.ready = Some(Duration::from_secs(1));
        let strays = 1.0 + STRAYS * self.random.normal();
        evidence.cgroup.peak_anon = mib(ANONYMOUS * strays);
        evidence.cgroup.peak_working_set = mib(2.0 - ANONYMOUS);
        let of_middle = |share| mib(share).unwrap_or_default();
        let parts = MemoryParts {
            requests: 20_000,
            malloc: of_middle(ANONYMOUS),
            files: of_middle(1.0 - ANONYMOUS),
            ..MemoryParts::default()
        };
        let step = |share, refaults_per_second| SqueezeStep {
            limit: of_middle(share),
            unreclaimable: of_middle(ANONYMOUS),
            refaults_per_second,
            ..SqueezeStep::default()
        };
        let calm = 1.0 + WALL * self.width;
        evidence.squeeze = (ask.purpose == TrialPurpose::Squeeze).then(|| SqueezeEvidence {
            aged: Some(parts.clone()),
            burst_requests: parts.requests,
            steps: vec![step(calm, 0.0), step(0.99 * calm, 1e5)],
            end: SqueezeEnd::Storm,
            read_ahead: Some(Bytes::from_kib(128)),
            limit_after: None,
        });
        let is_squeezable = bases.get(base).is_some_and(|base| base.is_squeezable);
        evidence.memory = is_squeezable.then_some(parts);
        // All misses of the population are of too little memory.
        evidence.cgroup.file_refaults = (!passes).then_some(1_000_000);
        TrialRecord {
            schema: SCHEMA,
            id: String::new(),
            result: String::new(),
            purpose: ask.purpose,
            configuration: ask.configuration.clone(),
            repeat: ask.repeat,
            started_at_unix_ms: 0,
            slo: slo.clone(),
            verdict: if passes {
                TrialVerdict::Pass
            } else {
                TrialVerdict::SloMiss
            },
            reason: String::new().into(),
            objectives: Vec::new(),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::min_memory::MemoryParameters;
    use super::super::size::SmallestMemory;
    use super::*;
    use crate::fixture::{configuration, slo};
    use crate::record::TrialPurpose;

    fn search(bases: u32, prove: u32) -> SizeSearch {
        let base = |n: u32| SmallestMemory {
            base: crate::record::Configuration {
                memory: None,
                jdk: Some(n.to_string()),
                ..configuration(1)
            },
            level: None,
            parameters: MemoryParameters::new(Bytes::from_mib(64), Bytes::from_mib(1024)),
            start_deadline: Duration::from_secs(60),
            warm_up: None,
            heap: Default::default(),
            keeps_direct: false,
            is_squeezable: true,
            cpus: Vec::new(),
            has_more_cpu: false,
        };
        SizeSearch {
            bases: (0..bases).map(base).collect(),
            prove,
            is_counted: false,
        }
    }

    fn outlook(bases: u32, prove: u32) -> Outlook {
        Outlook::for_search(&search(bases, prove), &slo(), Duration::from_secs(30))
    }

    /// Of starts of 30 s, the first aged, the second squeezed too, and the next ones with a burst.
    fn time(of: &Outlook) -> Duration {
        let bursts = BURST * DISTANT_STARTS;
        Duration::from_secs(30) * of.starts + AGEING + SQUEEZING + bursts
    }

    #[test]
    fn it_follows_the_rules_of_the_search() {
        let (one, without, two) = (outlook(1, 20), outlook(1, 0), outlook(2, 20));
        assert_eq!(one.time, time(&one));
        assert!(one.starts_95 > one.starts, "{one:?}");
        assert!(
            without.starts + 20 <= one.starts && one.starts <= without.starts + 22,
            "{without:?} {one:?}"
        );
        // Each base is searched, the cheapest is proven.
        assert!(two.starts >= one.starts + without.starts / 2, "{two:?}");
        assert!(two.starts <= one.starts * 2, "{two:?}");
        assert_eq!(outlook(1, 20), one, "the same each time");
    }

    #[test]
    fn longer_warm_ups_are_in_the_time() {
        let mut steady = search(1, 20);
        steady.bases[0].warm_up = Some(Duration::from_secs(2));
        let each = Duration::from_secs(30);
        let (start, steady) = (outlook(1, 20), Outlook::for_search(&steady, &slo(), each));
        // Some starts more, and of most services longer ones: up to 78 s more each.
        assert!(steady.starts > start.starts, "{steady:?} {start:?}");
        assert!(steady.time > each * steady.starts, "{steady:?}");
        assert!(steady.time_95 > steady.time.mul_f64(1.5), "{steady:?}");
        assert!(steady.time_95 < (each + Duration::from_secs(128)) * steady.starts_95);
        assert_eq!(start.time, time(&start));
    }

    /// The same population and the same rules come to the same figures: what changes them is seen.
    #[test]
    fn its_figures_are_those_of_the_population() {
        let mut steady = search(1, 5);
        steady.bases[0].warm_up = Some(Duration::from_secs(2));
        let mut wide = search(2, 5);
        wide.bases[1].parameters =
            MemoryParameters::new(Bytes::from_mib(32), Bytes::from_mib(4096));
        let of = |search: &SizeSearch| Outlook::for_search(search, &slo(), Duration::from_secs(30));
        let all = [
            of(&search(1, 20)),
            of(&search(1, 5)),
            of(&steady),
            of(&wide),
        ];
        let line = |o: &Outlook| {
            let (time, time_95) = (o.time.as_secs_f64(), o.time_95.as_secs_f64());
            format!("{} {} {time:.1} {time_95:.1}", o.starts, o.starts_95)
        };
        insta::assert_snapshot!(all.iter().map(line).collect::<Vec<_>>().join("\n"));
    }

    /// Four bases that differ in one thing each from the first.
    #[test]
    fn a_start_has_the_memory_of_its_service_and_passes_well_above_it() {
        let mut search = search(2, 5);
        let mut with = |change: fn(&mut crate::record::Configuration)| {
            let mut more = search.bases[0].clone();
            change(&mut more.base);
            search.bases.push(more);
        };
        with(|base| base.cpu = None);
        with(|base| {
            base.jvm_options = vec![crate::record::JvmOption {
                text: "-Xint".to_owned(),
                provenance: crate::record::ValueProvenance::User,
            }];
        });
        let mut drawn = DrawnService::new(&search, 3);
        for (base, middle) in search.bases.iter().zip(drawn.middles.clone()) {
            let ask = |mib: f64| TrialAsk {
                configuration: super::super::size::at_size(
                    &base.base,
                    None,
                    Bytes::from_mib(mib as u64),
                ),
                purpose: TrialPurpose::Search,
                repeat: 1,
                start_deadline: Duration::from_secs(60),
                pair: None,
            };
            let above = drawn.run_start(&ask(middle * 1.5), &slo());
            let below = drawn.run_start(&ask(middle / 1.5), &slo());
            let verdicts = (above.verdict, below.verdict);
            assert_eq!(verdicts, (TrialVerdict::Pass, TrialVerdict::SloMiss));
            let cgroup = above.evidence.cgroup;
            let share = |bytes: Option<Bytes>| bytes.map_or(0.0, |b| b.as_mib() / middle);
            assert!((0.8..0.9).contains(&share(cgroup.peak_anon)));
            assert!((share(cgroup.peak_working_set) - 1.15).abs() < 1e-3);
        }
    }

    #[test]
    fn a_service_is_drawn_inside_the_range_and_warms_up_once() {
        let search = search(2, 5);
        for service in 0..20 {
            let drawn = DrawnService::new(&search, service);
            let is_inside = |middle: &f64| (64.0 * 1.1..=1024.0 / 1.2).contains(middle);
            assert!(drawn.middles.len() == 2 && drawn.middles.iter().all(is_inside));
            let warm = drawn.warm.as_secs_f64();
            assert!((1.0..=64.0).contains(&warm) && WIDTHS.contains(&drawn.width));
        }
    }
}
