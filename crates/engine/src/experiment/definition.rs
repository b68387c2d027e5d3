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

#[derive(Debug, Clone)]
pub struct Experiment {
    pub question: Option<String>,
    pub analysis: Option<String>,
    /// What the user calls the application's version.
    pub version: Option<String>,
    pub app: AppUnderTest,
    /// The cluster in which its trials run; `None` is this machine.
    pub cluster: Option<ClusterSettings>,
    /// What it needs beside it, in the order in which they start.
    pub dependencies: Vec<ExperimentDependency>,
    pub stubs: Vec<ExperimentStub>,
    pub load: ExperimentLoad,
    pub slo: Slo,
    /// The configuration before any factor is applied; its label is empty.
    pub base: Configuration,
    /// Images that configurations run in the application's place, each once.
    pub level_images: Vec<ExperimentImage>,
    pub factors: Vec<ExperimentFactor>,
    /// Exactly these configurations, in place of base and factors; empty is all combinations.
    pub listed: Vec<Configuration>,
    pub repeats: u32,
    /// Seed of the order of trials and of the statistics.
    pub seed: u64,
    /// Judge trials although other programs disturbed them.
    pub accept_noise: bool,
    pub sampling: SamplingRate,
    pub search: SearchSettings,
    pub training: TrainingSettings,
}

#[derive(Debug, Clone)]
pub struct AppUnderTest {
    /// Program and arguments; of an image its arguments, none for its own.
    pub command: Vec<String>,
    pub image: Option<ExperimentImage>,
    /// What an image sees of the machine and cannot write: (the machine's path, as it sees it).
    pub volumes: Vec<(PathBuf, PathBuf)>,
    /// Working directory, absolute.
    pub directory: PathBuf,
    pub env: BTreeMap<String, String>,
    pub readiness: Readiness,
    pub start_deadline: Duration,
    /// Time between SIGTERM and kill.
    pub stop_grace: Duration,
    pub network: NetworkMode,
    /// Who it runs as; `None` leaves it to the caller.
    pub account: Option<Account>,
    /// A text in a line of its output whose time is wanted.
    pub log_line: Option<String>,
}

#[derive(Debug, Clone)]
pub struct SearchSettings {
    pub min_memory: Bytes,
    /// Largest size to try; `None` doubles the first, 1 GiB, as far as the machine goes.
    pub max_memory: Option<Bytes>,
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
    pub heap: HeapPolicy,
    pub question: JvmQuestion,
    pub soak: Option<Duration>,
    /// CPUs of the host that the answer is to run on.
    pub node: Option<u32>,
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
