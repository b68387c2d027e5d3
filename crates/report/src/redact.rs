//! Redaction of secrets in reports: commands, options, environments, files.
//!
//! A value is a secret when the name before its `=` or `:` indicates one, or when it is the user
//! part of a URL. Reports are forwarded; the records in the store keep the original values.

mod text;
mod toml;

use loadline_analysis::deployment::Deployment;
use loadline_analysis::recommend::Recommendation;
use loadline_analysis::record::{
    Configuration, Evidence, LoadFrom, MachineDescription, TrialRecord,
};
use loadline_analysis::slo::Slo;
use loadline_analysis::text::join_words;

use crate::view::LoadWords;

pub use text::{REDACTED, is_secret_name, redact_command, redact_line, redact_variable};
pub use toml::redact_experiment;

/// The machine; the options that an image brings along, and what a version is called, without their
/// secrets.
pub fn redact_machine(machine: &MachineDescription) -> MachineDescription {
    let mut machine = machine.clone();
    let of_image = machine.image.iter_mut();
    let of_image = of_image.flat_map(|image| [&mut image.version, &mut image.revision]);
    let own = machine.version.iter_mut().map(|version| &mut version.name);
    for name in own.chain(of_image).flatten() {
        *name = redact_line(name);
    }
    let images = machine.image.iter_mut().chain(&mut machine.level_images);
    for options in images.filter_map(|image| image.tool_options.as_mut()) {
        *options = redact_line(options);
    }
    machine
}

/// A load, word by word: the query of a URL ends at the next word.
pub fn redact_load(load: &LoadWords) -> LoadWords {
    LoadWords {
        before: each_word(&load.before),
        ..load.clone()
    }
}

fn each_word(text: &str) -> String {
    let word = |word: &str| match word.strip_suffix(',') {
        Some(word) => redact_line(word) + ",",
        None => redact_line(word),
    };
    join_words(text.split(' ').map(word), " ")
}

pub fn redact_slo(slo: &Slo) -> Slo {
    let mut clean = slo.clone();
    for named in &mut clean.by_request {
        named.request = each_word(&named.request);
    }
    clean
}

pub fn redact_record(trial: &TrialRecord) -> TrialRecord {
    let mut trial = trial.clone();
    trial.configuration = redact_configuration(&trial.configuration);
    // It may quote what the application wrote.
    trial.reason = redact_line(&trial.reason.to_string()).into();
    // A request without a name has its path's.
    trial.slo = redact_slo(&trial.slo);
    for part in &mut trial.evidence.load {
        if let Some(LoadFrom::Command { command }) = &mut part.load_from {
            command.words = redact_command(&command.words);
            if let Some(reported) = &mut command.reported {
                let named = std::mem::take(&mut reported.by_request).into_iter();
                reported.by_request = named.map(|(name, of)| (each_word(&name), of)).collect();
            }
        }
    }
    let of_load = trial.evidence.load.iter_mut();
    let of_load = of_load.flat_map(|part| part.by_request.iter_mut().map(|r| &mut r.name));
    let judged = trial.objectives.iter_mut();
    let judged = judged.filter_map(|o| o.request.as_mut());
    for name in of_load.chain(judged) {
        *name = each_word(name);
    }
    redact_texts(&mut trial.evidence);
    trial
}

/// Commands, output, and sentences that may quote them.
fn redact_texts(evidence: &mut Evidence) {
    if let Some(drive) = &mut evidence.drive {
        drive.words = redact_command(&drive.words);
    }
    let dependencies = evidence.dependencies.iter_mut();
    let of_application = [
        &mut evidence.last_output,
        &mut evidence.thread_dump,
        &mut evidence.warnings,
    ];
    let run = evidence.run.iter_mut();
    let of_run = run.flat_map(|run| run.missing.iter_mut().chain(&mut run.out_of_memory));
    let metrics = evidence.metrics.iter_mut();
    let lines = dependencies.map(|dependency| &mut dependency.last_output);
    let lines = lines.chain(of_application).flatten().chain(of_run);
    let sentences = metrics.filter_map(|metric| metric.last_failure.as_mut());
    let sentences = sentences
        .chain(
            evidence
                .failure
                .iter_mut()
                .map(|failure| &mut failure.detail),
        )
        .chain(evidence.ended_early.iter_mut().map(|end| &mut end.reason))
        .chain([&mut evidence.start.last_probe]);
    for text in lines.chain(sentences) {
        *text = redact_line(text);
    }
}

pub fn redact_recommendation(recommendation: &Recommendation) -> Recommendation {
    let mut clean = recommendation.clone();
    clean.configuration = redact_configuration(&clean.configuration);
    clean.deployment = clean.deployment.map(redact_deployment);
    for of in &mut clean.by_level {
        of.configuration = of.configuration.as_ref().map(redact_configuration);
        of.why_none = of.why_none.as_deref().map(redact_line);
    }
    for other in &mut clean.comparisons {
        other.label = redact_line(&other.label);
    }
    let neighbours = clean.deployment.iter_mut().flat_map(|d| &mut d.why_not);
    // Reasons may quote what the application wrote.
    let proofs = clean.by_level.iter_mut().filter_map(|of| of.proof.as_mut());
    let proofs = proofs.flat_map(|proof| proof.failures.iter_mut().map(|(_, why)| why));
    let reasons = (clean.proof.failures.iter_mut().map(|(_, why)| why))
        .chain(proofs)
        .chain(clean.comparisons.iter_mut().map(|other| &mut other.reason))
        .chain(neighbours.map(|neighbour| &mut neighbour.breaks));
    for reason in reasons {
        *reason = redact_line(reason);
    }
    if let Some(smaller) = &mut clean.next_smaller {
        smaller.breaks = redact_line(&smaller.breaks.to_string()).into();
    }
    clean
}

/// Variants are labels, and a label may be the options themselves.
fn redact_deployment(mut deployment: Deployment) -> Deployment {
    let priced = std::iter::once(&mut deployment.chosen)
        .chain(deployment.why_not.iter_mut().map(|w| &mut w.neighbour))
        .chain(deployment.front.iter_mut().map(|point| &mut point.priced));
    for priced in priced {
        priced.variant = redact_line(&priced.variant);
    }
    for cell in &mut deployment.cells {
        cell.variant = redact_line(&cell.variant);
        if let Some(priced) = &mut cell.priced {
            priced.variant = redact_line(&priced.variant);
        }
    }
    for compared in &mut deployment.compared {
        compared.label = redact_line(&compared.label);
        compared.options = redact_command(&compared.options);
    }
    for text in &mut deployment.left_out {
        *text = redact_line(text);
    }
    deployment
}

fn redact_configuration(configuration: &Configuration) -> Configuration {
    let mut configuration = configuration.clone();
    if let Some(application) = &mut configuration.application {
        application.command = redact_command(&application.command);
    }
    // It may be the options as they were typed.
    configuration.label = redact_line(&configuration.label);
    for option in &mut configuration.jvm_options {
        option.text = redact_line(&option.text);
    }
    configuration.args = redact_command(&configuration.args);
    for (name, value) in &mut configuration.env {
        *value = if is_secret_name(name) {
            REDACTED.to_owned()
        } else {
            redact_line(value)
        };
    }
    configuration
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_analysis::record::{
        DriveEvidence, InvalidReason, MeasurementFailure, MetricEvidence, RunEvidence,
        StartEvidence,
    };

    use super::*;

    #[test]
    fn values_of_secret_names_go() {
        for (text, shown) in [
            ("--db.password=hunter2", "--db.password=[redacted]"),
            ("-Dapi_key=abc", "-Dapi_key=[redacted]"),
            ("password = \"x\"", "password = [redacted]"),
            ("Authorization: Bearer abc", "Authorization: [redacted]"),
            ("jdbc:pg://me:pw@db/x?a=b", "jdbc:pg://[redacted]@db/x?a=b"),
            (
                "a=1 x=2 \"token\": \"abc\"",
                "a=1 x=2 \"token\": [redacted]",
            ),
            ("http://x/?a=1&token=abc", "http://x/?a=1&token=[redacted]"),
            (
                "-Dstorage.accountKey=abc",
                "-Dstorage.accountKey=[redacted]",
            ),
            ("-DprivateKEY=abc", "-DprivateKEY=[redacted]"),
            ("-DSSLKey=abc", "-DSSLKey=[redacted]"),
            ("-Dkey=abc", "-Dkey=[redacted]"),
            ("-Dpass=abc", "-Dpass=[redacted]"),
            ("-Dmonkey=abc", "-Dmonkey=abc"),
            ("-DbypassAuthor=abc", "-DbypassAuthor=abc"),
            (
                "-Djavax.net.ssl.keyStore=/etc/a.p12",
                "-Djavax.net.ssl.keyStore=/etc/a.p12",
            ),
            (
                "cannot authenticate: refused",
                "cannot authenticate: refused",
            ),
            (
                "`./probe --password hunter2 -v` ended with 1",
                "`./probe --password [redacted]",
            ),
            ("--password [redacted]", "--password [redacted]"),
            ("--password --verbose", "--password --verbose"),
            ("give it with --token", "give it with --token"),
            ("-XX:+UseSerialGC", "-XX:+UseSerialGC"),
            ("-Xmx64m", "-Xmx64m"),
            ("--server.port=8080", "--server.port=8080"),
            (
                "http://localhost:8080/owners",
                "http://localhost:8080/owners",
            ),
        ] {
            assert_eq!(redact_line(text), shown);
        }
    }

    #[test]
    fn a_load_loses_the_secret_and_nothing_else() {
        let shown = "GET /a?b=1&token=[redacted], open model, 10/s for 5 s";
        let given = shown.replace(REDACTED, "hunter2");
        let load =
            |words: &str| redact_load(&LoadWords::without_rate(words.to_owned())).to_string();
        assert_eq!(load(&given), shown);
        assert_eq!(load(shown), shown);
        let plain = "GET /a?lastName=Da at 300/s (open model, 30 s)";
        assert_eq!(load(plain), plain);
    }

    #[test]
    fn a_record_loses_the_secrets_that_it_quotes() {
        let said = || "`./probe --password hunter2` ended with 1".to_owned();
        let mut evidence = Evidence {
            drive: Some(DriveEvidence {
                words: ["./fill", "--password", "hunter2"]
                    .map(str::to_owned)
                    .into(),
                cpu: Duration::ZERO,
                cpu_wait: Duration::ZERO,
                saturated: None,
            }),
            metrics: vec![MetricEvidence {
                last_failure: Some(said()),
                ..MetricEvidence::default()
            }],
            run: Some(RunEvidence {
                out_of_memory: Some("OutOfMemoryError: token=hunter2".to_owned()),
                missing: vec![said()],
                ..RunEvidence::default()
            }),
            start: StartEvidence {
                last_probe: said(),
                ..StartEvidence::default()
            },
            warnings: vec![said()],
            ..Evidence::failed(MeasurementFailure::new(InvalidReason::Metrics, said()))
        };
        redact_texts(&mut evidence);
        let text = serde_json::to_string(&evidence).expect("a record");
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.matches(REDACTED).count(), 7, "{text}");
    }

    #[test]
    fn an_option_with_its_value_as_the_next_argument() {
        let arguments = ["java", "--password", "x", "--verbose"].map(str::to_owned);
        assert_eq!(
            redact_command(&arguments),
            ["java", "--password", "[redacted]", "--verbose"]
        );
    }
}
