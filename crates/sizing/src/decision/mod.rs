//! From limits, JVM, profile and the user's options to the options to add, each with its reason.
//!
//! Owns the policy. The order: CPU, collector, compilers, memory, then the rest; each dimension the
//! user froze is budgeted and left alone. What comes out is checked against the emulator: a set
//! that the JVM would refuse is never returned. Never refuses to start an application; whether a
//! budget that does not fit is an error is the caller's choice.
//!
//! Facts: \[fabric8\] (small containers), the collector costs in [`crate::regions::gc_native`],
//! published benchmarks of G1 and Serial in small containers, measurements in ARCHITECTURE.

mod cpu;
mod memory;
mod openj9;

use std::fmt;

use crate::hotspot::refusal::{HotSpotRefusal, check_flags, tiny_percentages};
use crate::hotspot::{self, CollectorKind, HotSpotErgonomics, MachineSize};
use crate::jdk::{JdkRelease, Vm};
use crate::limits::{ContainerLimits, SourcedValue};
use crate::options::dimension::OptionDimension;
use crate::options::{JvmOptionSet, OptionOrigin, gate};
use crate::profile::AppProfile;
use crate::regions::SizeProvenance;
use crate::regions::heap::Budget;
use crate::sight::PerceivedMachine;
use crate::{Bytes, Cpus};

#[derive(Debug, Clone, Copy)]
pub struct DecisionInput<'a> {
    pub jdk: JdkRelease,
    pub limits: &'a ContainerLimits,
    pub sight: &'a PerceivedMachine,
    pub options: &'a JvmOptionSet,
    /// The measured profile; `None` uses the fallback policy.
    pub profile: Option<&'a AppProfile>,
}

impl DecisionInput<'_> {
    fn is_free(&self, dimension: OptionDimension) -> bool {
        self.options.freezing_option(dimension).is_none()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenOption {
    pub option: String,
    pub provenance: SizeProvenance,
    pub reason: String,
}

impl ChosenOption {
    fn new(
        option: impl Into<String>,
        provenance: SizeProvenance,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            option: option.into(),
            provenance,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ChosenOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.option, self.provenance, self.reason)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenDimension {
    pub option: String,
    pub dimension: OptionDimension,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LaunchDecision {
    pub memory: SourcedValue<Bytes>,
    pub cpus: SourcedValue<Cpus>,
    pub options: Vec<ChosenOption>,
    pub kept: Vec<FrozenDimension>,
    /// Where the memory goes; `None` without a limit, and on OpenJ9 with a heap that is a share.
    pub budget: Option<Budget>,
    /// The resulting heap; `None` when it is left to the JVM and not known.
    pub heap: Option<Bytes>,
    pub minimum: Option<Bytes>,
    pub warnings: Vec<String>,
    pub ergonomics: Option<HotSpotErgonomics>,
}

impl LaunchDecision {
    fn add_option(
        &mut self,
        option: impl Into<String>,
        provenance: SizeProvenance,
        reason: impl Into<String>,
    ) {
        let chosen = ChosenOption::new(option, provenance, reason);
        self.options.push(chosen);
    }
}

/// Up to this limit C2 is off and the heap is small: \[fabric8\]'s rule.
pub const SMALL_LIMIT: Bytes = Bytes::from_mib(300);

/// From this limit on G1 is the fallback with two CPUs: HotSpot's own border. Below it G1 was
/// slower: a Spring Boot service with 1 GiB and 2 CPUs answered 12 % fewer requests with G1 than
/// with Serial on JDK 17 (docs/guides/launcher.md). Published runs elsewhere found the opposite
/// (+36 %), so below the border a measured profile is worth more than any rule.
pub const G1_LIMIT: Bytes = Bytes::from_mib(1792);

pub fn decide_launch(input: &DecisionInput<'_>) -> LaunchDecision {
    let mut decision = LaunchDecision {
        memory: input.limits.usable_memory(),
        cpus: input.limits.usable_cpus(),
        options: Vec::new(),
        kept: frozen_dimensions(input.options),
        budget: None,
        heap: None,
        minimum: None,
        warnings: input.sight.blindness.clone(),
        ergonomics: None,
    };
    let input = &DecisionInput {
        profile: of_this_vm(input, &mut decision),
        ..*input
    };
    if input.jdk.vm == Vm::OpenJ9 {
        openj9::decide_openj9(input, &mut decision);
        return decision;
    }
    let cpu = cpu::decide_cpu(input, &mut decision);
    let collector = decide_collector(input, cpu.processors, &mut decision);
    let is_c1_only = decide_compilers(input, &mut decision);
    let choice = memory::RuntimeChoices {
        collector,
        is_c1_only,
        cpu,
    };
    memory::plan_memory(input, choice, &mut decision);
    out_of_memory(input, &mut decision);
    measured_options(input, &mut decision);
    drop_unknown_options(input, &mut decision);
    let tiny = tiny_percentages(input.options).into_iter();
    decision.warnings.extend(tiny.map(|(option, meant)| {
        format!("{option} is less than one percent of the memory: write {meant}")
    }));
    check_prediction(input, &mut decision);
    decision
}

/// The profile, unless it was measured on another virtual machine: its regions say nothing here.
fn of_this_vm<'a>(
    input: &DecisionInput<'a>,
    decision: &mut LaunchDecision,
) -> Option<&'a AppProfile> {
    let profile = input.profile?;
    if profile.vm == input.jdk.vm {
        return Some(profile);
    }
    decision.warnings.push(format!(
        "the profile was measured on {}, this is {}: it is left aside; measure with `loadline footprint` on this one",
        profile.vm, input.jdk.vm
    ));
    None
}

fn frozen_dimensions(options: &JvmOptionSet) -> Vec<FrozenDimension> {
    use OptionDimension as D;
    let all = [
        D::Heap,
        D::HeapShape,
        D::Collector,
        D::GcThreads,
        D::ThreadStack,
        D::Metaspace,
        D::CodeCache,
        D::Direct,
        D::Compiler,
        D::CpuCount,
        D::CommonPool,
        D::OutOfMemory,
        D::StartupCache,
    ];
    let kept = |dimension| {
        let option = options.freezing_option(dimension)?.to_owned();
        Some(FrozenDimension { option, dimension })
    };
    all.into_iter().filter_map(kept).collect()
}

fn decide_collector(
    input: &DecisionInput<'_>,
    processors: u32,
    decision: &mut LaunchDecision,
) -> CollectorKind {
    if !input.is_free(OptionDimension::Collector) {
        let machine = MachineSize {
            memory: decision.memory.value,
            cpus: decision.cpus.value.ceil().max(1),
        };
        let chosen = hotspot::collector::choose(input.jdk, machine, input.options);
        return chosen.unwrap_or(CollectorKind::Serial);
    }
    let measured = input.profile.and_then(|profile| profile.collector);
    let (collector, provenance, reason) = match measured.filter(|c| c.is_product_on(input.jdk)) {
        Some(collector) => (
            collector,
            SizeProvenance::Measured,
            "the profile's".to_owned(),
        ),
        None => by_size(decision),
    };
    add_collector_option(collector, provenance, reason, input, processors, decision);
    collector
}

/// Adds the collector's option, unless it is HotSpot's default here. A second collector on the
/// command line ends the JVM, and one may be set where no launcher looks: the options that `jlink`
/// stored in a runtime image, a file that a script writes later.
fn add_collector_option(
    collector: CollectorKind,
    provenance: SizeProvenance,
    reason: String,
    input: &DecisionInput<'_>,
    processors: u32,
    decision: &mut LaunchDecision,
) {
    let seen = MachineSize {
        memory: input.sight.memory,
        cpus: processors,
    };
    if hotspot::collector::choose(input.jdk, seen, input.options) != Ok(collector) {
        let option = format!("-XX:+{}", collector.flag());
        let chosen = ChosenOption::new(option, provenance, reason);
        decision.options.push(chosen);
    }
}

fn by_size(decision: &LaunchDecision) -> (CollectorKind, SizeProvenance, String) {
    let memory = decision.memory.value;
    let cpus = decision.cpus.value;
    if cpus >= Cpus::from_whole(2) && memory >= G1_LIMIT {
        let reason = format!("{cpus} CPU and {memory}: enough for concurrent work");
        (CollectorKind::G1, SizeProvenance::Default, reason)
    } else {
        let reason = format!("{cpus} CPU and {memory}: no room for concurrent work");
        (CollectorKind::Serial, SizeProvenance::Default, reason)
    }
}

fn decide_compilers(input: &DecisionInput<'_>, decision: &mut LaunchDecision) -> bool {
    if !input.is_free(OptionDimension::Compiler) {
        let level = input.options.count_value("TieredStopAtLevel");
        return level.is_some_and(|level| level < 4);
    }
    let measured = input.profile.and_then(|profile| profile.is_c1_only);
    let (is_c1_only, provenance, reason) = match measured {
        Some(is_c1_only) => (
            is_c1_only,
            SizeProvenance::Measured,
            "the profile's".to_owned(),
        ),
        None => (
            decision.memory.value <= SMALL_LIMIT,
            SizeProvenance::Default,
            format!("C2 costs more memory than {SMALL_LIMIT} leaves"),
        ),
    };
    if is_c1_only {
        let option = "-XX:TieredStopAtLevel=1";
        decision.add_option(option, provenance, reason);
    }
    is_c1_only
}

/// A container is restarted; a JVM that limps on after an OutOfMemoryError is not.
fn out_of_memory(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    if input.is_free(OptionDimension::OutOfMemory) {
        let option = "-XX:+ExitOnOutOfMemoryError";
        let reason = "the platform restarts a container that ends";
        decision.add_option(option, SizeProvenance::Default, reason);
    }
}

/// Options the profile names, unless the user set the same flag or dimension.
fn measured_options(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    for option in input.profile.iter().flat_map(|profile| &profile.options) {
        let own = JvmOptionSet::from_words([option.as_str()]);
        let is_new = own.settings().all(|(name, _)| {
            let of = crate::options::dimension::of_flag(name);
            let is_frozen = of.is_some_and(|d| !input.is_free(d));
            let is_chosen = decision.options.iter().any(|chosen| {
                let chosen = JvmOptionSet::from_words([chosen.option.as_str()]);
                chosen.is_set(name)
            });
            !input.options.is_set(name) && !is_frozen && !is_chosen
        });
        if is_new {
            decision.add_option(option, SizeProvenance::Measured, "the profile's");
        }
    }
}

fn drop_unknown_options(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    let is_known = |chosen: &ChosenOption| {
        let own = JvmOptionSet::from_words([chosen.option.as_str()]);
        own.settings()
            .all(|(name, _)| gate::is_known(input.jdk, name))
    };
    let (known, unknown): (Vec<_>, Vec<_>) = std::mem::take(&mut decision.options)
        .into_iter()
        .partition(is_known);
    decision.options = known;
    for chosen in unknown {
        decision.warnings.push(format!(
            "{} is left out: {} does not know it",
            chosen.option, input.jdk
        ));
    }
}

/// Asks the emulator. If the JVM would refuse all options together, none is added: the user's own
/// options then fail or work as without a launcher. A user's flag that is missing in the table of
/// versions is no such reason: builds differ, and the additions are right either way.
fn check_prediction(input: &DecisionInput<'_>, decision: &mut LaunchDecision) {
    let seen = MachineSize {
        memory: input.sight.memory,
        cpus: input.sight.cpus,
    };
    let user = known_options(input, decision);
    match hotspot::predict(input.jdk, seen, &with_chosen(&user, &decision.options)) {
        Ok(ergonomics) => decision.ergonomics = Some(ergonomics),
        Err(refusal) => {
            decision.warnings.push(format!(
                "the JVM would refuse to start: {refusal}; nothing is added"
            ));
            decision.options.clear();
            decision.heap = None;
            decision.ergonomics = hotspot::predict(input.jdk, seen, &user).ok();
        }
    }
}

/// The user's options without those unknown to this JDK; a warning for each.
fn known_options(input: &DecisionInput<'_>, decision: &mut LaunchDecision) -> JvmOptionSet {
    let is_ignored = input.options.switch_value("IgnoreUnrecognizedVMOptions") == Some(true);
    let mut known = Vec::new();
    for (text, origin) in input.options.option_texts() {
        let own = JvmOptionSet::from_words([text]);
        match check_flags(input.jdk, &own) {
            Err(HotSpotRefusal::UnknownFlag { .. }) if is_ignored => {}
            Err(HotSpotRefusal::UnknownFlag { option, jdk }) => decision.warnings.push(format!(
                "{option}: {jdk} is not known to have this flag; without it, it refuses to start"
            )),
            Err(refusal @ (HotSpotRefusal::BadValue { .. } | HotSpotRefusal::Misspelt { .. })) => {
                let warning = format!("the JVM refuses to start: {refusal}");
                decision.warnings.push(warning);
            }
            _ => known.push((text.to_owned(), origin)),
        }
    }
    JvmOptionSet::merge(known)
}

impl LaunchDecision {
    /// The same plan with other options, and the JVM's resulting choices.
    pub fn replace_options(&mut self, input: &DecisionInput<'_>, options: Vec<ChosenOption>) {
        self.options = options;
        check_prediction(input, self);
        let heap = self.ergonomics.as_ref().map(|e| e.heap.max);
        let all = with_chosen(input.options, &self.options);
        self.heap = heap.or_else(|| all.size_value("MaxHeapSize"));
    }
}

fn with_chosen(options: &JvmOptionSet, chosen: &[ChosenOption]) -> JvmOptionSet {
    let chosen = chosen
        .iter()
        .map(|c| (c.option.clone(), OptionOrigin::JdkJavaOptions));
    let own = options
        .option_texts()
        .map(|(text, origin)| (text.to_owned(), origin));
    JvmOptionSet::merge(chosen.chain(own))
}
