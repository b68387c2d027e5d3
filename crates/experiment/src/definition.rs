//! The typed form of an experiment: every value checked, every default filled in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::budget::HeapPolicy;
use loadline_analysis::offer::Offer;
use loadline_analysis::proof::COUNTED_STARTS;
use loadline_analysis::record::Configuration;
use loadline_analysis::search::purchase::PricingTerms;
use loadline_analysis::search::size::cpu::CpuPolicy;
use loadline_analysis::slo::Slo;
use loadline_analysis::warming::JvmQuestion;
use loadline_protocol::{Account, MetricsSpec, NetworkMode, Readiness, RunSpec, SamplingRate};
use loadline_sizing::Bytes;

use super::{
    ClusterSettings, ExperimentDependency, ExperimentFactor, ExperimentImage, ExperimentLoad,
    ExperimentStub, TrainingSettings,
};

#[derive(Debug, Clone)]
pub struct Experiment {
    pub question: Option<String>,
    pub analysis: Option<String>,
    pub version: Option<String>,
    pub app: AppUnderTest,
    pub cluster: Option<ClusterSettings>,
    pub dependencies: Vec<ExperimentDependency>,
    pub stubs: Vec<ExperimentStub>,
    pub load: ExperimentLoad,
    pub metrics: Option<MetricsSpec>,
    pub slo: Slo,
    pub base: Configuration,
    /// Images that configurations run in the application's place, each once.
    pub level_images: Vec<ExperimentImage>,
    pub factors: Vec<ExperimentFactor>,
    pub listed: Vec<Configuration>,
    pub repeats: u32,
    pub seed: u64,
    /// Judge trials although other programs disturbed them.
    pub accept_noise: bool,
    pub sampling: SamplingRate,
    pub search: SearchSettings,
    pub training: TrainingSettings,
}

#[derive(Debug, Clone)]
pub struct AppUnderTest {
    pub command: Vec<String>,
    pub image: Option<ExperimentImage>,
    pub volumes: Vec<(PathBuf, PathBuf)>,
    pub directory: PathBuf,
    pub env: BTreeMap<String, String>,
    pub readiness: Readiness,
    pub start_deadline: Duration,
    pub stop_grace: Duration,
    pub network: NetworkMode,
    pub account: Option<Account>,
    /// A text in the output; the time of its line is measured.
    pub log_line: Option<String>,
    /// The expected end of a run; `None` is a service. Paths are relative to the working directory.
    pub run: Option<RunSpec>,
}

#[derive(Debug, Clone)]
pub struct SearchSettings {
    pub min_memory: Bytes,
    /// Largest size to try; `None` doubles the first as far as the machine goes.
    pub max_memory: Option<Bytes>,
    pub step: Bytes,
    pub confirm: u32,
    pub margin: f64,
    pub prove: u32,
    /// Whether the user set the number: otherwise the distance from the bounds decides.
    pub is_counted: bool,
    pub heap: HeapPolicy,
    pub question: JvmQuestion,
    pub soak: Option<Duration>,
    /// Longest time for all trials; with prices it is among their terms.
    pub budget: Option<Duration>,
    pub node: Option<u32>,
    pub pricing: Option<PricingTerms>,
    /// The prices of a run that ends; `None` for a service.
    pub run_offer: Option<Offer>,
    /// Whether the CPU limit is searched too, because it was asked for: `cpu = "auto"`.
    pub is_cpu_asked: bool,
    /// Whether the CPU until ready is searched: `start-cpu = "auto"`.
    pub is_start_cpu_asked: bool,
    pub cpu_policy: CpuPolicy,
}

pub const FIRST_MEMORY: Bytes = Bytes::from_gib(1);
/// Memory for everything beside a given heap in the first start. Keycloak needs 372Mi.
const BESIDE_HEAP: Bytes = Bytes::from_mib(512);

impl SearchSettings {
    /// The size of the first start: the largest one, where that is given.
    pub fn first_memory(&self) -> Bytes {
        let heap = match self.heap {
            HeapPolicy::Fixed(heap) => heap,
            HeapPolicy::Auto | HeapPolicy::Keep | HeapPolicy::Grow => Bytes::default(),
        };
        let usual = FIRST_MEMORY.max(heap.saturating_add(BESIDE_HEAP));
        self.max_memory.unwrap_or(usual)
    }

    pub fn counted_starts(&self) -> u32 {
        if self.is_counted {
            self.prove
        } else {
            self.prove.max(COUNTED_STARTS)
        }
    }
}
