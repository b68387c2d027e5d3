//! The typed form of an experiment: every value checked, every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::budget::HeapPolicy;
use loadline_analysis::proof::COUNTED_STARTS;
use loadline_analysis::record::Configuration;
use loadline_analysis::search::purchase::PricingTerms;
use loadline_analysis::slo::Slo;
use loadline_analysis::warming::JvmQuestion;
use loadline_protocol::{Account, NetworkMode, Readiness, SamplingRate};
use loadline_sizing::Bytes;

use super::{
    ClusterSettings, ExperimentDependency, ExperimentFactor, ExperimentImage, ExperimentLoad,
    ExperimentStub, TrainingSettings,
};

/// A checked experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// The question that it answers.
    pub question: Option<String>,
    /// How to read the answer.
    pub analysis: Option<String>,
    /// What the user calls the application's version.
    pub version: Option<String>,
    /// The application.
    pub app: AppUnderTest,
    /// The cluster in which its trials run; `None` is this machine.
    pub cluster: Option<ClusterSettings>,
    /// What it needs beside it, in the order in which they start.
    pub dependencies: Vec<ExperimentDependency>,
    /// What loadline stands in for.
    pub stubs: Vec<ExperimentStub>,
    /// The load.
    pub load: ExperimentLoad,
    /// What "it works" means.
    pub slo: Slo,
    /// The configuration before any factor is applied; its label is empty.
    pub base: Configuration,
    /// Images that configurations run in the application's place, each once.
    pub level_images: Vec<ExperimentImage>,
    /// What is varied.
    pub factors: Vec<ExperimentFactor>,
    /// Exactly these configurations, in place of base and factors; empty is all combinations.
    pub listed: Vec<Configuration>,
    /// Trials of each configuration.
    pub repeats: u32,
    /// Seed of the order of trials and of the statistics.
    pub seed: u64,
    /// Trials that run at once on this machine.
    pub slots: u32,
    /// Judge trials although other programs disturbed them.
    pub accept_noise: bool,
    /// How often the cgroup's counters are read.
    pub sampling: SamplingRate,
    /// The search for the smallest memory.
    pub search: SearchSettings,
    /// How start-up caches are trained.
    pub training: TrainingSettings,
}

/// The application under test.
#[derive(Debug, Clone)]
pub struct AppUnderTest {
    /// Program and arguments; of an image its arguments, none for its own.
    pub command: Vec<String>,
    /// The image that is started in place of a program.
    pub image: Option<ExperimentImage>,
    /// What an image sees of the machine and cannot write: (the machine's path, as it sees it).
    pub volumes: Vec<(PathBuf, PathBuf)>,
    /// Working directory, absolute.
    pub directory: PathBuf,
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// When it is ready.
    pub readiness: Readiness,
    /// How long a start may take.
    pub start_deadline: Duration,
    /// Time between SIGTERM and kill.
    pub stop_grace: Duration,
    /// Which network it gets.
    pub network: NetworkMode,
    /// Who it runs as; `None` leaves it to the caller.
    pub account: Option<Account>,
    /// A text in a line of its output whose time is wanted.
    pub log_line: Option<String>,
}

/// The search for the smallest memory.
#[derive(Debug, Clone)]
pub struct SearchSettings {
    /// Smallest size to try.
    pub min_memory: Bytes,
    /// Largest size to try; `None` doubles the first, 1 GiB, as far as the machine goes.
    pub max_memory: Option<Bytes>,
    /// An earlier answer, at which the search begins.
    pub begin: Option<Bytes>,
    /// Sizes are multiples of this.
    pub step: Bytes,
    /// Passes in a row that confirm a size.
    pub confirm: u32,
    /// Margin on top, a fraction.
    pub margin: f64,
    /// Fresh starts that prove a size when none misses.
    pub prove: u32,
    /// Whether so many were asked for: else their distance from the bounds decides.
    pub is_counted: bool,
    /// What becomes of the heap.
    pub heap: HeapPolicy,
    /// Which JVM the answer is for.
    pub question: JvmQuestion,
    /// Soak the answer for so long.
    pub soak: Option<Duration>,
    /// CPUs of the host that the answer is to run on.
    pub node: Option<u32>,
    /// Search the cheapest deployment instead.
    pub pricing: Option<PricingTerms>,
}

impl SearchSettings {
    /// Fresh starts that prove a size where they are counted.
    pub fn counted_starts(&self) -> u32 {
        match self.is_counted {
            true => self.prove,
            false => self.prove.max(COUNTED_STARTS),
        }
    }
}
