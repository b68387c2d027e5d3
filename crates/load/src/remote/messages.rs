//! What a generator and its client say to each other, and what they know before.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::part::{ResultMessage, TotalsMessage};
use crate::plan::{LoadPlan, nanos};

/// Where a generator listens.
pub const PORT: u16 = 7787;

/// Both sides speak the same: they are one version of one image.
pub(super) const VERSION: u32 = 1;

/// Whoever says nothing for so long is gone: each side says something once a second.
pub(super) const SILENCE: Duration = Duration::from_secs(10);

/// The generators of a trial.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generators {
    /// What they and their client know and nobody else.
    pub secret: String,
    /// Each makes its part of the load.
    pub members: Vec<GeneratorMember>,
}

/// Without the secret.
impl fmt::Debug for Generators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.members.fmt(f)
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorMember {
    /// Its name, that of its pod.
    pub name: String,
    /// The node that it runs on.
    pub node: String,
    /// Where it listens.
    pub address: SocketAddr,
}

/// What one generator was to a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GeneratorMessage {
    /// Its name.
    pub name: String,
    /// The node that it ran on.
    pub node: String,
    /// Requests of its part.
    pub scheduled: u64,
    /// How far its clock was ahead of the client's before the load, ns.
    pub offset_ns: i64,
    /// Half of the smallest round trip: the offset is right to so much.
    #[serde(rename = "error_ns", with = "nanos")]
    pub error: Duration,
    /// How much further it was ahead after the load, ns.
    pub drift_ns: i64,
    /// 99th percentile of its send lag.
    #[serde(rename = "send_lag_p99_ns", with = "nanos")]
    pub send_lag_p99: Duration,
    /// CPU time that it used.
    #[serde(rename = "cpu_ns", with = "nanos")]
    pub cpu: Duration,
    /// `None`, or why it says that it was itself the bottleneck.
    pub saturated: Option<String>,
}

/// Why a load from generators is no load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteLoadFailure {
    /// A generator is gone, or never answered.
    Lost,
    /// The clocks of client and generator cannot be brought together.
    Clock,
    /// The application answers its own machine and not the generator.
    Unreachable,
}

/// What the client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum ToGenerator {
    /// What time is it there?
    Clock {
        /// Comes back.
        echo: u64,
    },
    /// Can these be reached from there?
    Reach {
        /// Addresses of the application.
        targets: Vec<SocketAddr>,
    },
    /// This is to be done, once on a connection.
    Load {
        /// Part, connections and users are the generator's own.
        plan: Box<LoadPlan>,
    },
    /// All are connected: the load begins.
    Begin {
        /// At this moment, CLOCK_MONOTONIC there.
        start_ns: u64,
    },
    /// No more requests; the result still comes.
    Stop,
}

/// What a generator says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "say")]
pub enum FromGenerator {
    /// The time.
    Clock {
        /// As it came.
        echo: u64,
        /// CLOCK_MONOTONIC there.
        now_ns: u64,
    },
    /// Whether the application can be reached.
    Reached {
        /// Why not.
        why: Option<String>,
    },
    /// Its connections are open: it can begin.
    Connected,
    /// One second has passed.
    Second {
        /// Which, from 0.
        index: u64,
        /// Its end, CLOCK_MONOTONIC there.
        at_ns: u64,
        /// Whether it belongs to the warm-up.
        is_warmup: bool,
        /// Its outcomes, which add up exactly.
        totals: Box<TotalsMessage>,
    },
    /// The load is over.
    Result {
        /// All of it.
        result: Box<ResultMessage>,
    },
    /// The load could not be made.
    Failed {
        /// Why.
        why: String,
    },
}
