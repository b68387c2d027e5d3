//! A result as OpenMetrics text, for a textfile collector or a push gateway.
//!
//! Owns the names. Gauges only, because trials do not change. Numbers that were not measured are left
//! out; a percentile that lies in failures is `+Inf`.

use loadline_analysis::record::TrialRecord;

use crate::content::claim::AnswerClaim;
use crate::view::ResultView;
use crate::{figures, text};

const UNITS: [&str; 3] = ["bytes", "cores", "seconds"];

struct Family {
    name: &'static str,
    help: &'static str,
    /// Labels, at first without those of the result, and the value.
    samples: Vec<(String, f64)>,
}

/// The text of one result or of several: a family has the samples of all.
pub fn render_openmetrics(views: &[ResultView]) -> String {
    let mut out = String::new();
    let mut all: Vec<Family> = Vec::new();
    for view in views {
        let (service, result) = (label_value(&view.title), label_value(&view.id));
        let own = format!("service=\"{service}\",result=\"{result}\"");
        for mut family in families(view) {
            for (labels, _) in &mut family.samples {
                labels.insert_str(0, &own);
            }
            match all.iter_mut().find(|known| known.name == family.name) {
                Some(known) => known.samples.append(&mut family.samples),
                None => all.push(family),
            }
        }
    }
    for family in all.iter().filter(|f| !f.samples.is_empty()) {
        let Family { name, help, .. } = family;
        out.push_str(&format!("# TYPE {name} gauge\n"));
        // The format has the unit at the end of the name.
        let unit = name.rsplit('_').next().unwrap_or_default();
        if UNITS.contains(&unit) {
            out.push_str(&format!("# UNIT {name} {unit}\n"));
        }
        out.push_str(&format!("# HELP {name} {help}\n"));
        for (labels, value) in &family.samples {
            let value = if value.is_infinite() {
                "+Inf".to_owned()
            } else {
                value.to_string()
            };
            out.push_str(&format!("{name}{{{labels}}} {value}\n"));
        }
    }
    out + "# EOF\n"
}

fn families(view: &ResultView) -> Vec<Family> {
    let answer = view.recommendation.as_ref();
    let quantile = figures::headline_quantile(&view.slo.objectives);
    let of_answer = |value: Option<f64>| value.map(|value| (String::new(), value));
    let of_answer = |value| of_answer(value).into_iter().collect();
    let family = |name, help, samples| Family {
        name,
        help,
        samples,
    };
    let latencies = view.trials.iter().filter_map(|trial| {
        let seen = figures::TrialFigures::for_trial(trial, quantile).headline?;
        let time = seen.known_time();
        let seconds = time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        let quantile = format!(",quantile=\"{}\"", quantile.as_fraction());
        Some((trial_labels(view, trial) + &quantile, seconds))
    });
    let peaks = view.trials.iter().filter_map(|trial| {
        let peak = trial.evidence.cgroup.peak_memory?.as_bytes() as f64;
        Some((trial_labels(view, trial), peak))
    });
    let cpu = answer.and_then(|r| r.configuration.cpu);
    let begun = view.trials.iter().map(|t| t.started_at_unix_ms).max();
    vec![
        family(
            "loadline_recommended_memory_bytes",
            "Memory limit of the answer.",
            of_answer(answer.map(|r| r.recommended_memory().as_bytes() as f64)),
        ),
        family(
            "loadline_recommended_cpu_cores",
            "CPU limit of the answer.",
            of_answer(cpu.map(|cpu| f64::from(cpu.as_millis()) / 1000.0)),
        ),
        family(
            "loadline_proof_starts",
            "Fresh starts at the size of the answer.",
            of_answer(answer.map(|r| r.proof.starts as f64)),
        ),
        family(
            "loadline_proof_passes",
            "Fresh starts at the size of the answer that kept the SLO.",
            of_answer(answer.map(|r| r.proof.passes as f64)),
        ),
        family(
            "loadline_answer_soaked",
            "1 where a soak of the answer stayed within its budget.",
            of_answer(answer.map(|r| f64::from(AnswerClaim::new(view, r).is_proven()))),
        ),
        family(
            "loadline_measured_timestamp_seconds",
            "When the last trial was started, in seconds since 1970-01-01.",
            of_answer(begun.map(|ms| ms as f64 / 1000.0)),
        ),
        family(
            "loadline_trial_latency_seconds",
            "Latency of a trial from the intended send time; +Inf where it lies in failures.",
            latencies.collect(),
        ),
        family(
            "loadline_trial_peak_memory_bytes",
            "Highest memory of a trial, page cache included.",
            peaks.collect(),
        ),
    ]
}

fn trial_labels(view: &ResultView, trial: &TrialRecord) -> String {
    let number = view.trial_number(&trial.id).unwrap_or_default();
    let (verdict, cause) = figures::verdict_and_cause(trial.verdict);
    format!(",trial=\"{number}\",verdict=\"{verdict}\",cause=\"{cause}\"")
}

/// Escapes of the format: backslash, quote, line feed; other controls are gone.
fn label_value(text: &str) -> String {
    let text = text::one_line(text).replace('\\', "\\\\");
    text.replace('"', "\\\"")
}
