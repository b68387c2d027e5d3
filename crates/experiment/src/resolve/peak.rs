//! The burst behind the judged load: its objectives, and what an experiment with one cannot ask.

use loadline_analysis::slo::print_peak_objective;

use super::super::checked::Checked;
use super::super::load::load_refusal;
use super::super::said::Text;
use crate::Experiment;
use crate::error::ExperimentSource;

pub(super) fn check_peak(
    experiment: &Experiment,
    slo: &Text,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let load = &experiment.load;
    let Some(peak) = load.spec.peak else {
        let unmeasured = experiment.slo.peak.first().map(print_peak_objective);
        return unmeasured.map_or(Ok(()), |objective| {
            Err(source.error_at(
                slo,
                format!("`{objective}` is about a peak, but the load has none"),
                "set its height: peak = \"2x\" in [load] (--peak 2x), or leave the objective out",
            ))
        });
    };
    for configuration in experiment.configurations() {
        let burst = load.spec.peak_model(&load.model_of(&configuration));
        burst.map_err(|error| load_refusal(&error, source))?;
    }
    let refused = [
        (
            experiment.has_outages(),
            "an outage, behind which the service may still be recovering",
            "leave out the peak (--peak), or the outage",
        ),
        (
            experiment.search.pricing.is_some() && peak.is_absolute(),
            "prices, which measure the load at many rates, while this peak has one",
            "say how many times the rate it is: peak = \"2x\" (--peak 2x)",
        ),
    ];
    source.refuse_asked("load.peak is a burst behind the judged load", &refused)
}
