//! From an experiment to its search: what `size` asks, with every parameter filled in.
//!
//! Owns what fits the machine and which configurations are the bases of a search. The rules are
//! `loadline_analysis::search`'s; a matrix is made by [`agenda`](crate::agenda).

use loadline_analysis::price::InstanceSize;
use loadline_analysis::record::{Configuration, MachineDescription};
use loadline_analysis::search::lattice::LatticeCell;
use loadline_analysis::search::min_memory::MemoryParameters;
use loadline_analysis::search::prices::PriceSearch;
use loadline_analysis::search::purchase::{Purchase, Variant};
use loadline_analysis::search::size::{SizeSearch, SizedLevel, SmallestMemory};
use loadline_analysis::warming::JvmQuestion;
use loadline_experiment::{Experiment, ExperimentFactor, FIRST_MEMORY, PricingTerms};
use loadline_jvm::detect::{DetectedJdks, InstalledJdk, JdkPlaces};
use loadline_sizing::hotspot::collector::{SERVER_CLASS_CPUS, SERVER_CLASS_MEMORY};
use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease, Vm};

use crate::agenda::trial_length;
use crate::command::{CommandError, assemble};
use crate::heaps::{has_direct_bound, policy_of};

/// Share of the machine's memory that a container may get: the rest is for everybody else.
const USABLE_MEMORY: (u64, u64) = (4, 5);

pub fn bases(experiment: &Experiment) -> Vec<Configuration> {
    let factors = experiment.factors.iter().filter(|f| f.name != "memory");
    let base = Configuration {
        memory: None,
        ..experiment.base.clone()
    };
    Experiment {
        factors: factors.cloned().collect(),
        base,
        ..experiment.clone()
    }
    .configurations()
}

/// The resources of the largest trial, as far as an experiment determines them beforehand: `None`
/// with prices, because sizes are chosen on the way, and without a CPU limit.
pub fn largest_trial_size(experiment: &Experiment) -> Option<InstanceSize> {
    if experiment.search.pricing.is_some() {
        return None;
    }
    let searched = experiment.search.first_memory();
    let all = experiment.configurations();
    let cpus: Option<Vec<Cpus>> = all.iter().map(|c| c.cpu).collect();
    Some(InstanceSize {
        cpu: cpus?.into_iter().max()?,
        memory: all.iter().map(|c| c.memory.unwrap_or(searched)).max()?,
    })
}

/// Memory that the load of a trial mostly takes where it is made
/// ([`LoadPlan::usual_memory`](loadline_load::LoadPlan::usual_memory)); none where it cannot be made, as whoever
/// runs it says.
pub fn load_memory(experiment: &Experiment) -> Bytes {
    let all = experiment.configurations();
    let phases = all.iter().map(|of| experiment.load.phases(of, None, 0));
    let phases = phases.flat_map(Result::unwrap_or_default);
    let most = phases.map(|phase| phase.plan.usual_memory()).max();
    Bytes::from_bytes(most.unwrap_or_default())
}

/// The search of an experiment on a machine, over the machine's CPU limits if the experiment asks
/// for that.
pub fn size_search_on(experiment: &Experiment, machine: &MachineDescription) -> SizeSearch {
    let mut search = size_search(experiment, machine.memory);
    if experiment.searches_cpu() {
        search.search_cpus(machine.cpus, experiment.search.cpu_policy);
    }
    search
}

pub fn size_search(experiment: &Experiment, memory: Option<Bytes>) -> SizeSearch {
    let smallest = |base: Configuration| SmallestMemory {
        level: level_of_base(experiment, &base),
        heap: policy_of(experiment, &base),
        keeps_direct: has_direct_bound(experiment, &base),
        // A load command that judges would judge the squeeze as well.
        is_squeezable: experiment.cluster.is_none()
            && experiment.slo.failing_exit().is_none()
            && !experiment.load.is_timed()
            && experiment.app.run.is_none(),
        cpus: Vec::new(),
        has_more_cpu: false,
        base: match base.cpu {
            Some(cpu) => experiment.search.cpu_policy.configure(base, cpu),
            None => base,
        },
        parameters: memory_parameters(experiment, memory),
        start_deadline: experiment.app.start_deadline,
        warm_up: match experiment.search.question {
            JvmQuestion::Start => None,
            JvmQuestion::Steady => Some(experiment.load.spec.warm_up()),
        },
    };
    SizeSearch {
        bases: bases(experiment).into_iter().map(smallest).collect(),
        prove: experiment.search.prove,
        is_counted: experiment.search.is_counted,
    }
}

/// The level of a base that gets its own answer, if several JDKs, applications or CPU limits are
/// compared.
fn level_of_base(experiment: &Experiment, base: &Configuration) -> Option<SizedLevel> {
    let several = experiment.factors.iter().filter(|f| f.levels.len() > 1);
    let has_jdks = several.clone().any(|factor| factor.name == "jdk");
    let is_application = |factor: &&ExperimentFactor| {
        let mut levels = factor.levels.iter();
        levels.any(|level| level.change.application.is_some())
    };
    let mut applications = several.filter(is_application).flat_map(|f| &f.levels);
    let of_base = applications.find(|level| level.change.application == base.application);
    let has_limits = several_limits(experiment);
    let level = SizedLevel {
        cpu: base.cpu.filter(|_| has_limits),
        jdk: base.jdk.clone().filter(|_| has_jdks),
        application: of_base.map(|level| level.label.clone()),
    };
    (level != SizedLevel::default() || has_jdks).then_some(level)
}

fn several_limits(experiment: &Experiment) -> bool {
    let mut factors = experiment.factors.iter();
    factors.any(|factor| factor.name == "cpu" && factor.levels.len() > 1)
}

fn memory_parameters(experiment: &Experiment, memory: Option<Bytes>) -> MemoryParameters {
    let wanted = &experiment.search;
    let first = wanted.first_memory();
    let usable = usable_for_container(memory).filter(|_| wanted.max_memory.is_none());
    let max = usable.map_or(first, |usable| usable.max(FIRST_MEMORY));
    MemoryParameters {
        max,
        step: wanted.step,
        confirmations: wanted.confirm,
        after_miss: wanted.confirm.saturating_sub(1).max(1),
        margin: wanted.margin,
        // The runner repeats what could not be measured.
        retries: 0,
        ..MemoryParameters::new(wanted.min_memory, first.min(max))
    }
}

fn usable_for_container(memory: Option<Bytes>) -> Option<Bytes> {
    let usable = memory.map(|m| m.mul_ratio(USABLE_MEMORY.0, USABLE_MEMORY.1));
    // People read it: whole MiB.
    usable.map(|usable| Bytes::from_mib(usable.as_mib() as u64))
}

pub fn price_search(
    experiment: &Experiment,
    pricing: &PricingTerms,
    machine: &MachineDescription,
    jdks: &DetectedJdks,
    places: &JdkPlaces,
) -> Result<PriceSearch, CommandError> {
    let bases = bases(experiment);
    let jdk_of = |base: &Configuration| Ok(assemble(experiment, base, jdks, places)?.jdk);
    let started = bases.iter().map(jdk_of);
    let started = started.collect::<Result<Vec<_>, CommandError>>()?;
    let mut ground = lattice_on_machine(experiment, pricing, &bases, machine.cpus, machine.memory);
    let kinds: Vec<Option<Vm>> = started.iter().map(|jdk| Some(jdk.as_ref()?.kind)).collect();
    join_regimes(&mut ground.cells, &kinds);
    let variant = |(configuration, jdk): (Configuration, &Option<InstalledJdk>)| {
        let jdk = jdk.as_ref().filter(|jdk| jdk.kind == Vm::HotSpot);
        let version = |jdk: &InstalledJdk| {
            let exact = jdk.version.full.parse();
            exact.unwrap_or(JavaVersion::from_feature(jdk.version.feature))
        };
        Variant {
            configuration,
            jdk: jdk.map(version).map(JdkRelease::for_hotspot),
        }
    };
    let app = &experiment.app;
    let environment = app.env.values().flat_map(|text| text.split_whitespace());
    let image = app.image.as_ref().and_then(|image| image.found.as_ref());
    let inside = image.into_iter();
    let inside = inside.flat_map(|image| image.env.values().chain(&image.entrypoint));
    let inside = inside.flat_map(|text| text.split_whitespace());
    let words = app.command.iter().cloned();
    let words = words.chain(inside.map(str::to_owned));
    Ok(PriceSearch::new(Purchase {
        pricing: pricing.clone(),
        variants: bases.into_iter().zip(&started).map(variant).collect(),
        cells: ground.cells,
        left_out: ground.left_out,
        prove: experiment.search.prove,
        trial_length: trial_length(experiment),
        start_deadline: app.start_deadline,
        memory: memory_parameters(experiment, machine.memory),
        words: words.chain(environment.map(str::to_owned)).collect(),
        seed: experiment.seed,
    }))
}

#[derive(Debug, Clone, PartialEq)]
pub struct MachineLattice {
    pub cells: Vec<LatticeCell>,
    pub left_out: Vec<String>,
}

/// The cells that can be measured here: every size of the offer that fits the machine, for every
/// variant.
pub fn lattice_on_machine(
    experiment: &Experiment,
    pricing: &PricingTerms,
    variants: &[Configuration],
    cpus: u32,
    memory: Option<Bytes>,
) -> MachineLattice {
    let largest = usable_for_container(memory);
    let fits = |size: &InstanceSize| {
        size.cpu <= Cpus::from_whole(cpus) && largest.is_none_or(|largest| size.memory <= largest)
    };
    let sizes: Vec<InstanceSize> = pricing.offer.billables.iter().map(|b| b.limits).collect();
    let (fitting, too_large): (Vec<InstanceSize>, Vec<InstanceSize>) =
        sizes.into_iter().partition(fits);
    let cells = (0..).zip(variants).flat_map(|(variant, base)| {
        let is_pinned = names_collector(experiment, base);
        fitting.iter().map(move |size| LatticeCell {
            size: *size,
            per_hour: pricing.offer.per_hour(*size),
            variant,
            regime: if is_pinned { 0 } else { regime(*size) },
        })
    });
    let count = too_large.len();
    let left_out = too_large.first().map(|first| {
        format!(
            "{count} of the offer's sizes do not fit this machine ({cpus} CPUs), from {first} on"
        )
    });
    MachineLattice {
        cells: cells.collect(),
        left_out: left_out.into_iter().collect(),
    }
}

fn names_collector(experiment: &Experiment, base: &Configuration) -> bool {
    let is_name = |word: &str| word.starts_with("-XX:+Use") && word.ends_with("GC");
    let names = |text: &String| text.split_whitespace().any(is_name);
    let app = &experiment.app;
    let options = base.jvm_options.iter().map(|option| &option.text);
    let texts = options.chain(&app.command).chain(&base.args);
    let mut texts = texts.chain(app.env.values()).chain(base.env.values());
    texts.any(names)
}

/// HotSpot takes Serial below its server class, G1 from there on: capacity may fall at the border.
fn regime(size: InstanceSize) -> u32 {
    let is_server = size.cpu.ceil() >= SERVER_CLASS_CPUS && size.memory >= SERVER_CLASS_MEMORY;
    u32::from(is_server)
}

/// OpenJ9's policy is the same at every size: a variant on it has one regime.
fn join_regimes(cells: &mut [LatticeCell], kinds: &[Option<Vm>]) {
    for cell in cells {
        if kinds.get(cell.variant as usize) == Some(&Some(Vm::OpenJ9)) {
            cell.regime = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_first_start_has_room_for_a_given_heap() {
        let sizes = |more: &str, machine: u64| {
            let text = format!(
                "slo = \"p99<50ms\"\n[app]\ncommand = [\"java\", \"Shop\"]\n[load]\nurl = \"http://localhost:1/\"\nrate = \"5/s\"\n[search]\n{more}\n"
            );
            let parsed = Experiment::from_file_text(&text, Path::new("e"), Path::new("/"));
            let parsed = parsed.expect("it is valid");
            let of = memory_parameters(&parsed, Some(Bytes::from_mib(machine)));
            [of.high, of.max].map(Bytes::as_mib)
        };
        assert_eq!(sizes("", 10_000), [1024.0, 8000.0]);
        assert_eq!(sizes("heap = \"96m\"", 10_000), [1024.0, 8000.0]);
        assert_eq!(sizes("heap = \"900m\"", 10_000), [1412.0, 8000.0]);
        assert_eq!(sizes("heap = \"2g\"", 10_000), [2560.0, 8000.0]);
        let given = "heap = \"2g\"\nmax-memory = \"3Gi\"";
        assert_eq!(sizes(given, 10_000), [3072.0, 3072.0]);
        assert_eq!(sizes("heap = \"2g\"", 2500), [2000.0, 2000.0], "refused");
    }

    #[test]
    fn only_hotspot_takes_another_collector_from_a_size_on() {
        let cell = |variant, memory| {
            let size = InstanceSize {
                cpu: Cpus::from_whole(2),
                memory: Bytes::from_gib(memory),
            };
            LatticeCell {
                size,
                per_hour: 1.0,
                variant,
                regime: regime(size),
            }
        };
        let mut cells: Vec<LatticeCell> = (0..3).flat_map(|v| [cell(v, 1), cell(v, 4)]).collect();
        join_regimes(&mut cells, &[Some(Vm::HotSpot), Some(Vm::OpenJ9), None]);
        let regimes: Vec<u32> = cells.iter().map(|cell| cell.regime).collect();
        assert_eq!(regimes, [0, 1, 0, 0, 0, 1]);
    }
}
