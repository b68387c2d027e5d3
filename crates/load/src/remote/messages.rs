//! What a generator and its client say to each other, and what they know before.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::part::{ResultMessage, TotalsMessage};
use crate::plan::LoadPlan;

pub const PORT: u16 = 7787;
pub(super) const VERSION: u32 = 1;

/// A side that is silent for this long has gone: each side sends a message once a second.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generators {
    /// The secret shared by the generators and their client.
    pub secret: String,
    pub members: Vec<GeneratorMember>,
}

impl fmt::Debug for Generators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.members.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorMember {
    pub name: String,
    pub node: String,
    pub address: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteLoadFailure {
    Lost,
    Clock,
    Unreachable,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum ToGenerator {
    Clock { echo: u64 },
    Reach { targets: Vec<SocketAddr> },
    Load { plan: Box<LoadPlan> },
    Begin { start_ns: u64 },
    Stop,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorSecond {
    pub index: u64,
    pub at_ns: u64,
    pub is_warmup: bool,
    pub totals: Box<TotalsMessage>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum FromGenerator {
    Clock { echo: u64, now_ns: u64 },
    Reached { why: Option<String> },
    Connected,
    Second(GeneratorSecond),
    Result { result: Box<ResultMessage> },
    Failed { why: String },
}
