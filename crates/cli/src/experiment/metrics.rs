//! The flags of metrics, laid over a file.

use loadline_experiment::ValueWithOrigin;
use loadline_experiment::wire::{ExperimentFile, MetricsTable};

use super::flags::ExperimentFlags;

pub(super) fn overlay_metrics(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    let before = file.metrics.clone().unwrap_or_default();
    let mut table = before.clone();
    if let Some(url) = &flags.metrics {
        table.url = Some(ValueWithOrigin::from_flag("--metrics", url.clone()));
    }
    for (name, series) in &flags.metric {
        let series = ValueWithOrigin::from_flag("--metric", series.clone());
        table.series.insert(name.clone(), series);
    }
    for (name, command) in &flags.probe {
        table.probe.insert(name.clone(), command.0.clone());
    }
    let is_changed = table != before;
    file.metrics = (table != MetricsTable::default()).then_some(table);
    is_changed
}
