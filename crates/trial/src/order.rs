//! The order of one trial: all that a host needs to carry it out, and nothing that it must look up.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loadline_analysis::record::{Configuration, Phase};
use loadline_load::Plan;
use serde::{Deserialize, Serialize};

use crate::Dependency;

/// One trial. Its instances (`configuration.instances`) are all alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// UUID of the trial; names cgroups and directories.
    pub trial: String,
    /// Limits, options and environment. JVM options and arguments stand in `app` already.
    pub configuration: Configuration,
    /// What runs.
    pub app: App,
    /// What it needs beside it, in the order in which they start.
    pub dependencies: Vec<Dependency>,
    /// Texts that no file of the trial may hold: values of credentials.
    pub secrets: Vec<String>,
    /// When it counts as ready.
    pub readiness: Readiness,
    /// Which network it gets.
    pub network: Network,
    /// Who it runs as.
    pub account: Account,
    /// Directory of the host for this trial's files, owned by loadline; made and removed by the
    /// host.
    pub scratch: PathBuf,
    /// Directories of the host that the application must not see: loadline's own records, which an
    /// application under the same account could change. What its command names below them stays.
    pub hidden: Vec<PathBuf>,
    /// The JVM's GC log as the application sees it; `None` where the application is no JVM.
    pub gc_log: Option<PathBuf>,
    /// A text in a line of its output, whose time is wanted; not what makes it ready.
    pub log_line: Option<String>,
    /// Files that the application writes and that are handed over when it has ended, as it sees
    /// them.
    pub hand_over: Vec<PathBuf>,
    /// How often the cgroup's counters are read.
    pub sampling: Sampling,
    /// How long the start may take.
    pub start_deadline: Duration,
    /// The load phases, in order.
    pub load: Vec<LoadPhase>,
    /// Time between SIGTERM and kill.
    pub stop_grace: Duration,
}

/// The application of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum App {
    /// A program of the host.
    Command {
        /// Program (an absolute path) and arguments.
        command: Vec<String>,
        /// Environment, complete: nothing is inherited.
        env: BTreeMap<String, String>,
        /// Working directory, absolute.
        directory: PathBuf,
    },
    /// A container image, started by an engine of the host.
    Image {
        /// Name, with tag or digest.
        reference: String,
        /// Arguments behind the image's entry point; empty is the image's own command.
        args: Vec<String>,
        /// Environment on top of the image's.
        env: BTreeMap<String, String>,
    },
}

/// When an application counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Readiness {
    /// `GET` of this path answers with a status below 400.
    Http {
        /// Port the application listens on.
        port: u16,
        /// Path and query, with the leading slash.
        path: String,
    },
    /// A connection is accepted.
    Tcp {
        /// Port the application listens on.
        port: u16,
    },
    /// A line of the application's output contains this text.
    LogLine {
        /// The text, case-sensitive.
        contains: String,
    },
}

/// Which network the application gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// A network of its own with a loopback interface only.
    Own,
    /// The host's network: for applications that need other services. Ports can clash.
    Host,
}

/// Who the application runs as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// User id, never 0 unless the user insists.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// How often the counters of the application's cgroup are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Once in each CFS period, just after its boundary: costs next to nothing and sees every
    /// throttled period. Without a CPU limit, every 100 ms.
    #[default]
    Period,
    /// At this distance, 1 ms or more: places throttling to about a millisecond.
    Every(Duration),
}

/// One phase of load against a ready application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPhase {
    /// Warm-up or measure.
    pub phase: Phase,
    /// What is sent, for all instances together. Its targets are the application's own addresses;
    /// parts, CPUs and the moment of its begin are the host's to choose.
    pub plan: Plan,
}
