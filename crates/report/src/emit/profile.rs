//! The profile that `loadline-launch` reads: measurements of the application.
//!
//! Owns which measurements it contains. [`loadline_sizing::profile`] owns the file's form. Missing
//! values stay missing, and the launcher uses its own defaults.

use loadline_sizing::hotspot::CollectorKind;
use loadline_sizing::profile::AppProfile;

use super::facts::EmitFacts;

const C1_ONLY: &str = "-XX:TieredStopAtLevel=1";

pub fn profile(facts: &EmitFacts<'_>) -> String {
    let seen = &facts.seen;
    let collector = seen.collector.as_deref();
    let is_it = |kind: &CollectorKind| Some(kind.to_string().as_str()) == collector;
    let is_c1_only = facts.options.iter().any(|o| o.value == C1_ONLY);
    let profile = AppProfile {
        jdk: seen.jdk.as_deref().and_then(|jdk| jdk.parse().ok()),
        collector: CollectorKind::ALL.into_iter().find(is_it),
        is_c1_only: is_c1_only.then_some(true),
        rest: facts.rest,
        live_heap: seen.live_heap.as_ref().map(|heap| heap.value),
        options: facts.options.iter().map(|o| o.value.clone()).collect(),
        ..AppProfile::default()
    };
    let mut out = facts.header();
    if let Some(heap) = &seen.live_heap {
        out.push_str(&format!("# live_heap: {}\n", heap.because));
    }
    for option in &facts.options {
        out.push_str(&format!("# {}: {}\n", option.value, option.because));
    }
    out + &profile.to_file_text()
}
