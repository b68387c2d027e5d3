//! A run (a program that ends): its expected exit and its JVMs.

use std::time::Duration;

use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::wire;

/// Evidence of a run. The start evidence covers the whole run: `ready` is from exec to the expected
/// exit, and the CPU time includes all processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default, JsonSchema)]
pub struct RunEvidence {
    /// The exit code that counts as success.
    pub expected_exit: i32,
    /// The first line of its output that says a JVM ran out of memory, wherever it stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_memory: Option<String>,
    /// What it should have left behind and did not, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The run at the largest memory of the same result, which `slower` compares it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<RunReference>,
    /// The JVMs of the run, in the order in which they were seen; a JVM that lived less than half a
    /// second may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jvms: Vec<JvmProcess>,
}

/// A run that others are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunReference {
    /// From exec to exit.
    #[serde(rename = "time_ns", with = "wire::nanos")]
    pub time: Duration,
    /// CPU time of all its processes.
    #[serde(rename = "cpu_ns", with = "wire::nanos_opt", default)]
    pub cpu: Option<Duration>,
}

/// One JVM of a run, looked at twice a second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JvmProcess {
    /// Its main class or jar.
    pub main: String,
    /// The main class or jar of the JVM that started it; `None` where no JVM of the run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// From the begin of the run until it was seen first.
    #[serde(rename = "from_ns", with = "wire::nanos")]
    pub from: Duration,
    /// From the begin of the run until it was seen last.
    #[serde(rename = "until_ns", with = "wire::nanos")]
    pub until: Duration,
    /// The largest heap that it allowed itself.
    #[serde(rename = "heap_max_bytes", with = "wire::bytes_opt", default)]
    pub heap_max: Option<Bytes>,
    /// The option that sets its largest heap, on its command line or in a variable that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_option: Option<String>,
    /// The most heap that it had committed.
    #[serde(rename = "heap_committed_bytes", with = "wire::bytes_opt", default)]
    pub heap_committed: Option<Bytes>,
    /// The most heap that was in use after a collection.
    #[serde(rename = "heap_after_bytes", with = "wire::bytes_opt", default)]
    pub heap_after: Option<Bytes>,
    /// The most memory that was resident.
    #[serde(rename = "rss_bytes", with = "wire::bytes")]
    pub rss: Bytes,
}

impl RunEvidence {
    /// The most that the heaps of JVMs alive at the same time allowed themselves together.
    pub fn heaps_together(&self) -> Option<Bytes> {
        let heap = |jvm: &JvmProcess| jvm.heap_max.map_or(0, Bytes::as_bytes);
        self.most_together(heap).map(Bytes::from_bytes)
    }

    /// The most JVMs that were alive at the same time.
    pub fn jvms_together(&self) -> u64 {
        self.most_together(|_| 1).unwrap_or_default()
    }

    fn most_together(&self, of: impl Fn(&JvmProcess) -> u64) -> Option<u64> {
        let alive = |at: Duration| {
            let jvms = self.jvms.iter();
            let alive = jvms.filter(|jvm| jvm.from <= at && at <= jvm.until);
            alive.map(&of).fold(0, u64::saturating_add)
        };
        self.jvms.iter().map(|jvm| alive(jvm.from)).max()
    }
}
