//! The metrics of a trial: read in its measure phase.

use loadline_analysis::record::TrialPhase;

use super::OngoingTrial;
use crate::halt::HaltReason;
use crate::metrics::MetricReaders;

impl OngoingTrial<'_> {
    pub(super) fn start_metrics(
        &self,
        phase: TrialPhase,
    ) -> Result<Option<MetricReaders>, HaltReason> {
        // Several instances are refused with metrics.
        let first = self.instances.all.first();
        first
            .filter(|_| phase == TrialPhase::Measure && self.order.metrics.is_some())
            .map(|i| MetricReaders::start_reading(self.order, &*i.container, &i.plan.generator))
            .transpose()
    }

    /// Errors: When a metric never was there, unless the application ended, which says more.
    pub(super) fn finish_metrics(
        &mut self,
        readers: Option<MetricReaders>,
    ) -> Result<(), HaltReason> {
        let Some(readers) = readers else {
            return Ok(());
        };
        let (metrics, failure) = readers.finish_reading();
        self.metrics = metrics;
        let is_over = self.instances.all.iter().any(|i| i.state.is_over());
        match failure.filter(|_| !is_over) {
            Some(failure) => Err(HaltReason::Failed(failure)),
            None => Ok(()),
        }
    }
}
