//! Start-up caches in an experiment file: which kind a level asks for, and the training run.

use loadline_analysis::record::StartCache;

use super::super::checked::Checked;
use crate::TrainingSettings;
use crate::error::ExperimentSource;
use crate::load::refuse_foreign_url;
use crate::said::Text;
use crate::wire::CacheTable;

/// Default number of requests of a training run.
const CACHE_REQUESTS: u64 = 20;

pub(super) fn check_cache_level(
    text: &Text,
    requests: Option<u64>,
    source: &ExperimentSource<'_>,
) -> Checked<StartCache> {
    Ok(StartCache {
        kind: source.parse_text(text, "appcds, aot from JDK 25 on, or scc with OpenJ9")?,
        requests: requests.unwrap_or(CACHE_REQUESTS),
    })
}

pub(super) fn check_training(
    table: &CacheTable,
    source: &ExperimentSource<'_>,
) -> Checked<TrainingSettings> {
    table
        .warm
        .iter()
        .try_for_each(|url| refuse_foreign_url(url, source))?;
    Ok(TrainingSettings {
        warm: table.warm.clone(),
        jvm: table.jvm.clone(),
    })
}
