//! Outages of dependencies: checked, and as toxics with a schedule.
//!
//! Owns what an outage is made of, and that it lies in the measured load with some time before and
//! after it. What becomes of a trial around one is `analysis::outage`'s.

use std::time::Duration;

use loadline_proxy::{Toxic, ToxicEffect, ToxicSpan, ToxicStream};

use super::checked::Checked;
use super::error::ExperimentSource;
use super::wire::{ExperimentFile, OutageTable};
use super::{Experiment, ExperimentDependency, ExperimentStub};

/// Least time before an outage; its last second counts for neither part.
const LEAST_BEFORE: Duration = Duration::from_secs(2);

const HINT: &str = "[[outage]] with dependency = \"db\", at = \"20s\", for = \"10s\"";

pub(super) fn add_outages(
    file: &ExperimentFile,
    dependencies: &mut [ExperimentDependency],
    stubs: &mut [ExperimentStub],
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    for table in &file.outage {
        let name = &table.dependency;
        if let Some(stub) = stubs.iter_mut().find(|stub| stub.name == **name) {
            stub.toxics.extend(outage_toxics(table, source)?);
            continue;
        }
        let Some(dependency) = dependencies.iter_mut().find(|d| d.name == **name) else {
            let hint = "name a [[dependency]] of this experiment";
            return Err(source.error_at(name, format!("there is no dependency `{name}`"), hint));
        };
        if dependency.port.is_none() {
            let hint = "name it in its [[dependency]]: port = 5432";
            return Err(source.error_at(name, format!("`{name}` has no port"), hint));
        }
        dependency.toxics.extend(outage_toxics(table, source)?);
    }
    Ok(())
}

fn outage_toxics(table: &OutageTable, source: &ExperimentSource<'_>) -> Checked<Vec<Toxic>> {
    let span = ToxicSpan {
        at: source.time_or_zero(Some(&table.at), Duration::ZERO, "at")?,
        length: source.positive_time(Some(&table.lasts), Duration::ZERO, "for")?,
    };
    let toxic = |effect: ToxicEffect, stream| Toxic {
        effect,
        stream,
        toxicity: 1.0,
        span: Some(span),
    };
    let hole = ToxicEffect::Timeout {
        timeout: Duration::ZERO,
    };
    match table.kind.as_ref().map(|kind| (kind, kind.as_str())) {
        None | Some((_, "down")) => Ok(vec![toxic(ToxicEffect::Down, ToxicStream::Downstream)]),
        Some((_, "timeout")) => Ok(vec![
            toxic(hole.clone(), ToxicStream::Upstream),
            toxic(hole, ToxicStream::Downstream),
        ]),
        Some((kind, other)) => {
            let problem = format!("`{other}` is not a kind of outage");
            let hint =
                "down or timeout; for a slow dependency use [[dependency.toxic]] with at and for";
            Err(source.error_at(kind, problem, hint))
        }
    }
}

impl Experiment {
    pub fn has_outages(&self) -> bool {
        self.spans().next().is_some()
    }

    fn spans(&self) -> impl Iterator<Item = ToxicSpan> {
        let toxics = self.dependencies.iter().flat_map(|d| &d.toxics);
        let toxics = toxics.chain(self.stubs.iter().flat_map(|stub| &stub.toxics));
        toxics.filter_map(|toxic| toxic.span)
    }
}

pub(super) fn check_outages(experiment: &Experiment, source: &ExperimentSource<'_>) -> Checked<()> {
    if let Some(objective) = experiment.slo.outage.first()
        && !experiment.has_outages()
    {
        let problem = format!("`{objective}` is about an outage, but there is none");
        return Err(source.experiment_error(problem, HINT));
    }
    let Some(length) = experiment.load.model.scheduled_duration() else {
        return if experiment.has_outages() {
            Err(source.experiment_error(
                "an outage needs a load of known length",
                "duration = \"60s\"",
            ))
        } else {
            Ok(())
        };
    };
    // A measured part begins when the warm-up has ended.
    let first = experiment.spans().map(|span| span.at).min();
    let last = experiment.spans().map(ToxicSpan::end_time).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(());
    };
    if last >= length || first < LEAST_BEFORE {
        let problem = format!(
            "a fault from {} s to {} s leaves less than 2 s before it or no time after it in {} s of load",
            first.as_secs_f64(),
            last.as_secs_f64(),
            length.as_secs_f64()
        );
        let hint = "start it later, or make the load longer: load.duration = \"60s\"";
        return Err(source.experiment_error(problem, hint));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::toxic::tests::experiment as parse;

    #[test]
    fn an_outage_is_a_toxic_of_its_dependency_with_a_schedule() {
        let toxics = |kind: &str| {
            let outage = format!("[[outage]]\ndependency = 'db'\nat = '20s'\nfor = '10s'\n{kind}");
            let experiment = parse("p99<50ms,recovers<5s", &outage).expect("it is good");
            assert!(experiment.has_outages());
            let all = experiment.dependencies[0].toxics.iter();
            all.map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(toxics(""), ["down, at 20s for 10s"]);
        assert_eq!(
            toxics("type = 'timeout'"),
            [
                "timeout without an end upstream, at 20s for 10s",
                "timeout without an end downstream, at 20s for 10s"
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_an_outage_is_told_with_what_to_write() {
        let outage = |rest: &str| format!("[[outage]]\ndependency = 'db'\n{rest}");
        let bad = [
            (
                "p99<50ms,recovers<5s",
                String::new(),
                "there is none",
                "[[outage]]",
            ),
            (
                "p99<50ms",
                "[[outage]]\ndependency = 'no'\nat = '20s'\nfor = '1s'".to_owned(),
                "no dependency `no`",
                "of this experiment",
            ),
            (
                "p99<50ms",
                outage("at = '1s'\nfor = '10s'"),
                "leaves less than 2 s before it",
                "duration",
            ),
            (
                "p99<50ms",
                outage("at = '55s'\nfor = '10s'"),
                "no time after it",
                "duration",
            ),
            (
                "p99<50ms",
                outage("at = '5s'\nfor = '0s'"),
                "for is zero",
                "10s",
            ),
            (
                "p99<50ms",
                outage("at = '5s'\nfor = '1s'\ntype = 'slow'"),
                "`slow` is not a kind of outage",
                "down or timeout",
            ),
            (
                "p99<50ms",
                outage("at = '5s'"),
                "the key `for` is missing",
                "",
            ),
        ];
        for (slo, text, problem, hint) in bad {
            let told = parse(slo, &text).expect_err(&text);
            assert!(
                told.contains(problem) && told.contains(hint),
                "{text}: {told}"
            );
        }
    }
}
