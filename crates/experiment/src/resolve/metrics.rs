//! Metrics: their address and series, and what an experiment with them cannot ask.

use loadline_analysis::metric_text::MetricSelector;
use loadline_analysis::slo::{Objective, Slo};
use loadline_load::LoadTarget;
use loadline_protocol::MetricsSpec;

use super::super::checked::Checked;
use super::super::load::refuse_foreign_url;
use super::super::said::Text;
use crate::Experiment;
use crate::error::ExperimentSource;
use crate::wire::ExperimentFile;

/// The metrics that the SLO may name; `None` without any.
pub(super) fn check_metrics(
    file: &ExperimentFile,
    slo: &Slo,
    source: &ExperimentSource<'_>,
) -> Checked<Option<MetricsSpec>> {
    let table = file.metrics.clone().unwrap_or_default();
    let url = table.url.as_ref();
    let url = url.map(|url| metrics_url(url, source)).transpose()?;
    if let (Some((name, text)), None) = (table.series.first_key_value(), &url) {
        return Err(source.error_at(
            text,
            format!("the metric {name} has no address to be read from"),
            "name it: --metrics http://localhost:8080/metrics (url of [metrics]), or read a number from a command: --probe NAME=COMMAND",
        ));
    }
    if let (Some(text), true) = (&table.url, table.series.is_empty()) {
        return Err(source.error_at(
            text,
            "no metric to read there is named",
            "name one: --metric 'lag=records_lag' (series of [metrics]), or leave the address out",
        ));
    }
    if let Some((name, _)) = table.probe.iter().find(|(_, words)| words.is_empty()) {
        return Err(source.experiment_error(
            format!("the command of the probe {name} is empty"),
            "write its program and arguments: --probe 'lag=./lag.sh orders'",
        ));
    }
    let selector = |(name, text): (&String, &Text)| {
        let selector = source.parse_text::<MetricSelector>(
            text,
            "as the address shows it: records_lag{topic=\"orders\"}",
        )?;
        Ok((name.clone(), selector))
    };
    let metrics = MetricsSpec {
        url,
        series: table.series.iter().map(selector).collect::<Checked<_>>()?,
        probes: table.probe.clone(),
    };
    let known: Vec<&String> = metrics.series.keys().chain(metrics.probes.keys()).collect();
    let is_known = |name: &str| known.iter().any(|known| *known == name);
    if let Some((name, objective)) = slo.metric_objectives().find(|(name, _)| !is_known(name)) {
        let hint = if known.is_empty() {
            format!(
                "say where it is read: --metrics http://localhost:8080/metrics --metric '{name}=records_lag'; if {name} is a request, its bound is a time: {name}: p99<200ms"
            )
        } else {
            format!(
                "the metrics are {}; a bound on a request is a time: p99<200ms",
                names(&known)
            )
        };
        let problem = format!("the SLO has `{name}: {objective}`, but no metric is called {name}");
        return Err(source.error_at(&file.slo, problem, hint));
    }
    for named in &slo.by_request {
        if is_known(&named.request) && !matches!(named.objective, Objective::Metric(_)) {
            let problem = format!(
                "`{named}` is about a time, and {} is a metric",
                named.request
            );
            let hint = format!(
                "a metric's bound is a number in its own unit: {}: max<1000",
                named.request
            );
            return Err(source.error_at(&file.slo, problem, hint));
        }
    }
    Ok((!known.is_empty()).then_some(metrics))
}

fn names(known: &[&String]) -> String {
    let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
    known.join(", ")
}

fn metrics_url(text: &Text, source: &ExperimentSource<'_>) -> Checked<String> {
    let example = "for example http://localhost:8080/actuator/prometheus";
    let url = source.parse_text::<LoadTarget>(text, example)?;
    refuse_foreign_url(&url, source)?;
    if !url.is_tls {
        Ok(url.to_string())
    } else {
        Err(source.error_at(
        text,
        format!("`{url}` is https, and metrics are read over plain http"),
        "give the application a plain port for its metrics, or read them by a command: --probe 'NAME=curl -sk URL'",
    ))
    }
}

pub(super) fn refuse_beside_metrics(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    if experiment.metrics.is_none() && !experiment.load.is_timed() {
        return Ok(());
    }
    let configurations = experiment.configurations();
    let refused = [
        (
            experiment.app.run.is_some(),
            "a run that ends",
            "leave out --job, or the metrics",
        ),
        (
            experiment.cluster.is_some(),
            "trials in a cluster",
            "leave out the cluster (--kubernetes), or the metrics",
        ),
        (
            configurations.iter().any(|c| c.instances > 1),
            "several instances",
            "size one instance: leave out instances",
        ),
        (
            experiment.search.pricing.is_some(),
            "prices, which need the load at many rates",
            "leave out the prices, or the metrics",
        ),
    ];
    source.refuse_asked(
        "metrics and a drive command need one service on this machine",
        &refused,
    )
}
