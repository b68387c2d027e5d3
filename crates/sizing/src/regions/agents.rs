//! Java and native agents.

use super::{Region, SizeProvenance, measured_or};
use crate::Bytes;
use crate::options::JvmOptionSet;
use crate::profile::AppProfile;

/// Native memory and classes of one agent; tracing agents load thousands of classes. Origin: a
/// choice between a JMX exporter (10 MB) and an OpenTelemetry agent (50 MB).
const EACH: Bytes = Bytes::from_mib(30);

pub fn plan_agents(profile: &AppProfile, options: &JvmOptionSet) -> Region {
    let prefixes = ["-javaagent:", "-agentpath:", "-agentlib:"];
    let count: usize = prefixes
        .iter()
        .map(|p| options.with_prefix(p).count())
        .sum();
    // The debugger agent takes next to nothing.
    let debuggers = options.with_prefix("-agentlib:jdwp").count();
    let count = count.saturating_sub(debuggers) as u64;
    let default = EACH.mul_ratio(count, 1);
    let how = format!("{count} agents x {EACH}");
    let mut region = measured_or("agents", profile.agents, default, how);
    if count == 0 && region.provenance == SizeProvenance::Default {
        region.provenance = SizeProvenance::Calculated;
    }
    region
}
