//! The flags of metrics, laid over a file.

use loadline_experiment::wire::{ExperimentFile, MetricsTable};
use loadline_experiment::{ValueOrigin, ValueWithOrigin};

use super::flags::ExperimentFlags;

pub(super) fn overlay_metrics(file: &mut ExperimentFile, flags: &ExperimentFlags) -> bool {
    let before = file.metrics.clone().unwrap_or_default();
    let mut table = before.clone();
    if let Some(url) = &flags.metrics {
        table.url = Some(ValueWithOrigin::from_flag("--metrics", url.clone()));
    }
    for (name, series) in &flags.metric {
        let series = ValueWithOrigin::from_flag("--metric", series.clone());
        let earlier = table.series.insert(name.clone(), series);
        let is_flag = |earlier| matches!(<&ValueOrigin>::from(earlier), ValueOrigin::Flag(_));
        if earlier.as_ref().is_some_and(is_flag) {
            say!("warning: --metric {name}= is given more than once: the last one counts");
        }
    }
    for (at, (name, command)) in flags.probe.iter().enumerate() {
        if flags.probe[..at].iter().any(|(earlier, _)| earlier == name) {
            say!("warning: --probe {name}= is given more than once: the last one counts");
        }
        table.probe.insert(name.clone(), command.0.clone());
    }
    let is_changed = table != before;
    file.metrics = (table != MetricsTable::default()).then_some(table);
    is_changed
}
