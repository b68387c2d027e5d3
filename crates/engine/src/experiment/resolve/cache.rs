//! Start-up caches in an experiment file: which kind a level asks for, and the training run.

use loadline_analysis::record::StartCache;

use super::Checked;
use crate::experiment::Training;
use crate::experiment::error::Source;
use crate::experiment::load::own;
use crate::experiment::said::Text;
use crate::experiment::wire::CacheTable;

/// Requests of a training run when nobody says how many.
const CACHE_REQUESTS: u64 = 20;

pub(super) fn level(
    text: &Text,
    requests: Option<u64>,
    source: &Source<'_>,
) -> Checked<StartCache> {
    Ok(StartCache {
        kind: source.parse(text, "appcds, aot from JDK 25 on, or scc with OpenJ9")?,
        requests: requests.unwrap_or(CACHE_REQUESTS),
    })
}

pub(super) fn training(table: &CacheTable, source: &Source<'_>) -> Checked<Training> {
    table.warm.iter().try_for_each(|url| own(url, source))?;
    Ok(Training {
        warm: table.warm.clone(),
        jvm: table.jvm.clone(),
    })
}
