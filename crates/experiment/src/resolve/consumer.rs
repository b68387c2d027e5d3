//! A consumer: an application without requests, judged by its metrics or the exit of its drive command.
//!
//! Owns when it is ready unless the experiment says so, and what an experiment with one cannot ask.

use loadline_analysis::slo::Slo;
use loadline_load::LoadTarget;
use loadline_protocol::{MetricsSpec, Readiness};

use super::super::checked::Checked;
use super::super::said::Text;
use crate::Experiment;
use crate::error::ExperimentSource;

pub(super) fn refuse_request_objectives(
    slo: &Slo,
    text: &Text,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let Some(objective) = slo.request_objective() else {
        return Ok(());
    };
    Err(source.error_at(
        text,
        format!("`{objective}` is about requests, but without a URL no requests are sent"),
        "write objectives about metrics such as 'lag: max<1000', start<20s, or 'load passes' for a drive command; or name the URL that takes requests: url of [load] (--url)",
    ))
}

pub(super) fn first_sample(
    metrics: Option<&MetricsSpec>,
    source: &ExperimentSource<'_>,
) -> Checked<Readiness> {
    let Some(metrics) = metrics else {
        return Err(source.experiment_error(
            "cannot tell when the application is ready: it has no URL and no metrics",
            "write ready = { log = \"Started\" }, or tcp = 9000, in [app]; or a path that answers: --ready :9001/health",
        ));
    };
    let target = metrics.url.as_ref();
    let target = target.and_then(|url| url.parse::<LoadTarget>().ok());
    Ok(Readiness::Sample {
        port: target.map(|target| target.port),
    })
}

pub(super) fn refuse_beside_consumer(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    if !experiment.load.is_timed() {
        return Ok(());
    }
    let configurations = experiment.configurations();
    let refused = [
        (
            configurations.iter().any(|c| c.rate.is_some()),
            "rates as levels",
            "leave out the rates, or name the URL that takes requests (--url)",
        ),
        (
            experiment.search.soak.is_some(),
            "a soak, which counts requests",
            "leave out the soak, and judge for longer: --duration 10m",
        ),
        (
            experiment.has_outages(),
            "an outage, which is judged by requests",
            "leave out the outage",
        ),
    ];
    source.refuse_asked("without a URL no request is sent", &refused)
}
