//! What the artefacts need to know about the application besides the recommendation.

use std::collections::BTreeMap;

use loadline_analysis::metric_text::MetricSelector;
use loadline_analysis::record::StartCache;

use super::base_image::BaseImage;
use super::command::StartCommand;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductionApplication {
    pub name: String,
    pub image: String,
    /// For the measured image: whether its name has its digest. `None` for an image built from the
    /// emitted Dockerfile.
    pub measured_image: Option<ImagePinning>,
    pub base_image: BaseImage,
    pub command: StartCommand,
    /// Environment of the application; the configuration's is added to it.
    pub env: BTreeMap<String, String>,
    /// The port that takes requests; `None` for a consumer.
    pub port: Option<u16>,
    /// `None` where nothing answers.
    pub ready: Option<ReadinessCheck>,
    /// By their names in the SLO, the metrics that the application itself tells.
    pub series: BTreeMap<String, MetricSelector>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImagePinning {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessCheck {
    /// A request is answered with a status below 400.
    Http {
        port: u16,
        path: String,
    },
    Tcp {
        port: u16,
    },
    Grpc {
        port: u16,
    },
}

impl ProductionApplication {
    /// The port that takes requests, else the one where a probe may ask.
    pub fn reached_port(&self) -> Option<u16> {
        self.port
            .or(self.ready.as_ref().map(ReadinessCheck::asked_port))
    }
}

impl ReadinessCheck {
    pub fn asked_port(&self) -> u16 {
        match self {
            Self::Http { port, .. } | Self::Tcp { port } | Self::Grpc { port } => *port,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoscalerNeeds {
    /// Largest rate at which one pod was seen to keep the SLO, requests a second. `None` for a
    /// consumer, which is scaled by its metrics.
    pub max_rate: Option<u32>,
    /// Whether this result's trials found it; else the user gave it.
    pub is_measured: bool,
    pub max_replicas: u32,
}
