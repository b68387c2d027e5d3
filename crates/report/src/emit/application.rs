//! What the artefacts need to know about the application besides the recommendation.

use std::collections::BTreeMap;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoscalerNeeds {
    /// Largest rate at which one pod was seen to keep the SLO, requests a second.
    pub max_rate: u32,
    /// Whether this result's trials found it; else the user gave it.
    pub is_measured: bool,
    pub max_replicas: u32,
}
