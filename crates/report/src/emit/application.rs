//! What the artefacts need to know about the application besides the recommendation.

use std::collections::BTreeMap;

use loadline_analysis::record::StartCache;

use super::base_image::BaseImage;
use super::command::StartCommand;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductionApplication {
    /// Name of the workload; made a DNS label where it must be one.
    pub name: String,
    /// The image with its tag or digest, as the cluster pulls it.
    pub image: String,
    /// Where that image is the one that was measured: whether its name has its digest. `None` is an
    /// image that is built from the emitted Dockerfile.
    pub measured_image: Option<ImagePinning>,
    pub base_image: BaseImage,
    pub command: StartCommand,
    /// Environment of the application; the configuration's is added to it.
    pub env: BTreeMap<String, String>,
    pub port: u16,
    pub ready: ReadinessCheck,
    pub replicas: u32,
    pub scaling: Option<AutoscalerNeeds>,
    /// Feature release of the JDK (8, 17, 25); decides the form of the options.
    pub jdk: u32,
    /// Start through `loadline-launch`.
    pub launcher: bool,
    /// Start-up cache that the image builds for itself, and how often its training asks; `None`
    /// builds none.
    pub cache: Option<StartCache>,
}

/// Whether a cluster gets just this image by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePinning {
    /// It has its digest, and a registry has it.
    Yes,
    /// It has no digest, or is only on the machine that built it.
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessCheck {
    /// A request is answered with a status below 400.
    Http {
        port: u16,
        /// Path and query, with the leading slash.
        path: String,
    },
    Tcp {
        port: u16,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoscalerNeeds {
    /// Largest rate at which one pod was seen to keep the SLO, requests a second.
    pub max_rate: u32,
    /// Whether this result's trials found it; else the user gave it.
    pub is_measured: bool,
    pub max_replicas: u32,
}
