//! Which answers were found where nothing could be throttled.
//!
//! Owns the sentence. What throttling would do elsewhere is measured there, never predicted.

use loadline_analysis::record::TrialRecord;
use loadline_sizing::Cpus;

use super::groups;
use crate::format;
use crate::view::ResultView;

/// `None` where the quota could throttle the starts, or the named node has no more CPUs either.
pub fn throttling_sentence<'a>(
    view: &ResultView,
    starts: impl IntoIterator<Item = &'a TrialRecord>,
) -> Option<String> {
    let start = starts.into_iter().next()?;
    let (own, quota) = (start.evidence.cgroup.cpus?, start.configuration.cpu?);
    let is_as_small = view.node.as_ref().is_some_and(|node| node.cpus <= own);
    if Cpus::from_whole(own) > quota || is_as_small {
        return None;
    }
    Some(format!(
        "Throttling was not exercised: it ran on {}, no more than its quota ({}). A host with more CPUs may throttle it.",
        format::count_of(own as usize, "CPU"),
        groups::cpu_words(&start.configuration),
    ))
}
