//! The toxics of a dependency: checked.
//!
//! Owns which keys belong to which type, their defaults and their ranges. What a toxic does is
//! `loadline-proxy`'s.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use loadline_load::{LoadError, histogram};
use loadline_proxy::{Delay, Toxic, ToxicEffect, ToxicSpan, ToxicStream};

use super::checked::Checked;
use super::error::ExperimentSource;
use super::said::{Text, ValueOrigin, ValueWithOrigin};
use super::wire::{AnswerTable, ToxicTable};

const LARGEST: u64 = 64 << 20;

/// Of a Pareto distribution without one: a hundredth is more than six times the least.
const SHAPE: f64 = 2.5;

pub(super) fn check_toxics(
    tables: &[ToxicTable],
    source: &ExperimentSource<'_>,
) -> Checked<Vec<Toxic>> {
    tables
        .iter()
        .map(|table| check_toxic(table, source))
        .collect()
}

/// Embeds the recorded histogram; `recorded` is relative to `base`. Errors:
/// [`LoadError::Histogram`] with the path.
pub(super) fn settle_recorded(
    recorded: Option<&Text>,
    histogram: &mut Option<String>,
    base: &Path,
) -> Result<(), LoadError> {
    let Some(recorded) = recorded.filter(|_| histogram.is_none()) else {
        return Ok(());
    };
    let path = base.join(recorded.as_str());
    let refused = |why: String| LoadError::Histogram(format!("{}: {why}", path.display()));
    let mut text = String::new();
    let read =
        std::fs::File::open(&path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    read.map_err(|error| refused(error.to_string()))?;
    let all = histogram::from_interval_log(&text).map_err(|error| refused(error.to_string()))?;
    *histogram = Some(histogram::encode_histogram(&all));
    Ok(())
}

fn check_toxic(table: &ToxicTable, source: &ExperimentSource<'_>) -> Checked<Toxic> {
    let effect = check_effect(table, source)?;
    refuse_others(table, &effect, source)?;
    Ok(Toxic {
        stream: check_stream(table, &effect, source)?,
        toxicity: check_toxicity(table, source)?,
        span: check_span(table, source)?,
        effect,
    })
}

fn check_effect(table: &ToxicTable, source: &ExperimentSource<'_>) -> Checked<ToxicEffect> {
    let kind = &table.kind;
    let lacks = |what: &str, hint: &str| {
        let problem = format!("`{kind}` does not say {what}");
        source.error_at(kind, problem, hint)
    };
    let or_zero =
        |text: &Option<Text>, name| source.time_or_zero(text.as_ref(), Duration::ZERO, name);
    Ok(match kind.as_str() {
        "latency" => {
            let said = check_delay(&DelayKeys::of_toxic(table), source)?;
            let hint = "latency = \"20ms\", or recorded = \"database.hlog\"";
            ToxicEffect::Latency(said.ok_or_else(|| lacks("how much", hint))?)
        }
        "bandwidth" => {
            let rate = table.rate.as_ref();
            let rate = rate.ok_or_else(|| lacks("how much", "rate = \"100KB/s\""))?;
            ToxicEffect::Bandwidth {
                rate: bytes_a_second(rate, source)?,
            }
        }
        "slow_close" => {
            let delay = table.delay.as_ref();
            let delay = delay.ok_or_else(|| lacks("how slowly", "delay = \"500ms\""))?;
            ToxicEffect::SlowClose {
                delay: source.positive_time(Some(delay), Duration::ZERO, "delay")?,
            }
        }
        "timeout" => ToxicEffect::Timeout {
            timeout: or_zero(&table.timeout, "timeout")?,
        },
        "reset_peer" => ToxicEffect::ResetPeer {
            timeout: or_zero(&table.timeout, "timeout")?,
        },
        "slicer" => {
            let size = table.average_size.as_ref();
            let size =
                size.ok_or_else(|| lacks("how small the pieces are", "average-size = 64"))?;
            let average = source.in_range(Some(size), 1, 1..1 << 30, "average-size")?;
            let variation = table.size_variation.as_ref();
            ToxicEffect::Slicer {
                average_size: average,
                size_variation: source.in_range(variation, 0, 0..average, "size-variation")?,
                delay: or_zero(&table.delay, "delay")?,
            }
        }
        "limit_data" => {
            let bytes = table.bytes.as_ref();
            let bytes = bytes.ok_or_else(|| lacks("after how many bytes", "bytes = 4096"))?;
            ToxicEffect::LimitData { bytes: **bytes }
        }
        "down" => ToxicEffect::Down,
        other => {
            let problem = format!("`{other}` is not a toxic");
            let hint = format!("known: {}", ToxicEffect::NAMES.join(", "));
            return Err(source.error_at(kind, problem, hint));
        }
    })
}

pub(super) struct DelayKeys<'a> {
    latency: Option<&'a Text>,
    jitter: Option<&'a Text>,
    distribution: Option<&'a Text>,
    shape: Option<&'a ValueWithOrigin<f64>>,
    recorded: Option<&'a Text>,
    histogram: Option<&'a String>,
}

impl<'a> DelayKeys<'a> {
    fn of_toxic(table: &'a ToxicTable) -> Self {
        Self {
            latency: table.latency.as_ref(),
            jitter: table.jitter.as_ref(),
            distribution: table.distribution.as_ref(),
            shape: table.shape.as_ref(),
            recorded: table.recorded.as_ref(),
            histogram: table.histogram.as_ref(),
        }
    }

    pub(super) fn of_answer(table: &'a AnswerTable) -> Self {
        Self {
            latency: table.latency.as_ref(),
            jitter: table.jitter.as_ref(),
            distribution: table.distribution.as_ref(),
            shape: table.shape.as_ref(),
            recorded: table.recorded.as_ref(),
            histogram: table.histogram.as_ref(),
        }
    }
}

pub(super) fn check_delay(
    keys: &DelayKeys<'_>,
    source: &ExperimentSource<'_>,
) -> Checked<Option<Delay>> {
    if let Some((name, histogram)) = keys.recorded.zip(keys.histogram) {
        let others = [keys.latency, keys.jitter, keys.distribution];
        if let Some(other) = others.into_iter().flatten().next() {
            let problem = "`recorded` cannot be combined with other delay keys";
            let hint = "leave out latency, jitter and distribution, or recorded";
            return Err(source.error_at(other, problem, hint));
        }
        let (name, histogram) = (name.to_string(), histogram.clone());
        return Ok(Some(Delay::Recorded { name, histogram }));
    }
    let Some(latency) = keys.latency else {
        let others = [keys.jitter, keys.distribution];
        return match others.into_iter().flatten().next() {
            None => Ok(None),
            Some(other) => {
                let problem = "it gives the variation of the latency, but not the latency";
                Err(source.error_at(other, problem, "latency = \"20ms\""))
            }
        };
    };
    let latency = source.time_or_zero(Some(latency), Duration::ZERO, "latency")?;
    let jitter = source.time_or_zero(keys.jitter, Duration::ZERO, "jitter")?;
    let shape = check_shape(keys.shape, source)?;
    match keys.distribution {
        None if jitter.is_zero() => Ok(Some(Delay::Fixed { latency })),
        None => Ok(Some(Delay::Uniform { latency, jitter })),
        Some(said) => match said.as_str() {
            "uniform" => Ok(Some(Delay::Uniform { latency, jitter })),
            "normal" => Ok(Some(Delay::Normal { latency, jitter })),
            "pareto" => Ok(Some(Delay::Pareto { latency, shape })),
            other => {
                let problem = format!("`{other}` is not a distribution of latencies");
                let hint = "uniform, normal or pareto; as recorded: recorded = \"database.hlog\"";
                Err(source.error_at(said, problem, hint))
            }
        },
    }
}

fn check_shape(said: Option<&ValueWithOrigin<f64>>, source: &ExperimentSource<'_>) -> Checked<f64> {
    match said {
        None => Ok(SHAPE),
        Some(shape) if **shape > 1.0 && shape.is_finite() => Ok(**shape),
        Some(shape) => {
            let problem = format!("a Pareto distribution of shape {shape} has no mean");
            Err(source.error_at(shape, problem, "a number above 1: shape = 2.5"))
        }
    }
}

fn bytes_a_second(text: &Text, source: &ExperimentSource<'_>) -> Checked<u64> {
    let units = [("KB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("B/s", 1.0)];
    let number = units.iter().find_map(|(unit, scale)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * scale)
    });
    match number.filter(|rate| (1.0..=1e12).contains(rate)) {
        // In its range a whole number of bytes.
        Some(rate) => Ok(rate as u64),
        None => {
            let problem = format!("`{text}` is not a rate of bytes");
            Err(source.error_at(text, problem, "rate = \"100KB/s\", at least 1B/s"))
        }
    }
}

fn check_stream(
    table: &ToxicTable,
    effect: &ToxicEffect,
    source: &ExperimentSource<'_>,
) -> Checked<ToxicStream> {
    let Some(said) = &table.stream else {
        return Ok(ToxicStream::Downstream);
    };
    let at = |problem: String, hint: &str| Err(source.error_at(said, problem, hint));
    match said.as_str() {
        _ if effect.is_of_both() => at(
            format!("`{}` affects whole connections", effect.effect_name()),
            "leave out stream",
        ),
        "upstream" => Ok(ToxicStream::Upstream),
        "downstream" => Ok(ToxicStream::Downstream),
        other => at(
            format!("`{other}` is not a direction"),
            "upstream (to the dependency) or downstream (from it)",
        ),
    }
}

fn check_toxicity(table: &ToxicTable, source: &ExperimentSource<'_>) -> Checked<f64> {
    match &table.toxicity {
        None => Ok(1.0),
        Some(share) if **share > 0.0 && **share <= 1.0 => Ok(**share),
        Some(share) => {
            let problem = format!("toxicity = {share} is not a share of connections");
            Err(source.error_at(share, problem, "above 0 and at most 1"))
        }
    }
}

fn check_span(table: &ToxicTable, source: &ExperimentSource<'_>) -> Checked<Option<ToxicSpan>> {
    match (&table.at, &table.lasts) {
        (None, None) => Ok(None),
        (at, Some(lasts)) => Ok(Some(ToxicSpan {
            at: source.time_or_zero(at.as_ref(), Duration::ZERO, "at")?,
            length: source.positive_time(Some(lasts), Duration::ZERO, "for")?,
        })),
        (Some(at), None) => {
            let hint = "for = \"10s\"; without both it is always on";
            Err(source.error_at(at, "`at` needs `for`", hint))
        }
    }
}

/// Refuses a key that this type has no use for: it would be believed to do something.
fn refuse_others(
    table: &ToxicTable,
    effect: &ToxicEffect,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    fn origin_of<T>(said: &Option<ValueWithOrigin<T>>) -> Option<&ValueOrigin> {
        said.as_ref().map(Into::into)
    }
    let keys = [
        ("latency", origin_of(&table.latency)),
        ("jitter", origin_of(&table.jitter)),
        ("distribution", origin_of(&table.distribution)),
        ("shape", origin_of(&table.shape)),
        ("recorded", origin_of(&table.recorded)),
        ("rate", origin_of(&table.rate)),
        ("delay", origin_of(&table.delay)),
        ("timeout", origin_of(&table.timeout)),
        ("average-size", origin_of(&table.average_size)),
        ("size-variation", origin_of(&table.size_variation)),
        ("bytes", origin_of(&table.bytes)),
    ];
    let known: &[&str] = match effect {
        ToxicEffect::Latency(_) => &["latency", "jitter", "distribution", "shape", "recorded"],
        ToxicEffect::Bandwidth { .. } => &["rate"],
        ToxicEffect::SlowClose { .. } => &["delay"],
        ToxicEffect::Timeout { .. } | ToxicEffect::ResetPeer { .. } => &["timeout"],
        ToxicEffect::Slicer { .. } => &["average-size", "size-variation", "delay"],
        ToxicEffect::LimitData { .. } => &["bytes"],
        ToxicEffect::Down => &[],
    };
    let mut said = keys
        .into_iter()
        .filter_map(|(key, origin)| Some((key, origin?)));
    match said.find(|(key, _)| !known.contains(key)) {
        None => Ok(()),
        Some((key, origin)) => {
            let problem = format!("`{}` has no {key}", effect.effect_name());
            let hint = match known {
                [] => "leave it out".to_owned(),
                known => format!("it has {}", known.join(", ")),
            };
            Err(source.error_at(origin, problem, hint))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Experiment;
    use super::*;

    /// An experiment with a database, what follows in its table, and an SLO; else the error and its
    /// hint.
    pub(crate) fn experiment(slo: &str, more: &str) -> Result<Experiment, String> {
        let text = format!(
            r#"
slo = "{slo}"
[app]
command = ["java", "-jar", "app.jar"]
[load]
url = "http://localhost:8080/"
rate = "100/s"
duration = "60s"
[[dependency]]
name = "db"
command = ["postgres"]
ready = {{ tcp = 5432 }}
{more}
"#
        );
        let parsed = Experiment::from_file_text(&text, Path::new("exp.toml"), Path::new("/x"));
        parsed.map_err(|error| {
            let hint = error.hint.clone().unwrap_or_default();
            format!("{error} | {hint}").replace('\n', " ")
        })
    }

    fn parse(toxic: &str) -> Result<Vec<Toxic>, String> {
        let parsed = experiment("p99<250ms", &format!("[[dependency.toxic]]\n{toxic}"));
        parsed.map(|experiment| experiment.dependencies[0].toxics.clone())
    }

    #[test]
    fn each_type_has_its_keys_and_defaults() {
        let good = [
            (
                "type = 'latency'\nlatency = '20ms'",
                "latency 20ms downstream",
            ),
            (
                "type = 'latency'\nlatency = '20ms'\njitter = '5ms'\nstream = 'upstream'",
                "latency 20ms ± 5ms upstream",
            ),
            (
                "type = 'latency'\nlatency = '5ms'\ndistribution = 'pareto'",
                "latency 5ms or more (Pareto, shape 2.5) downstream",
            ),
            (
                "type = 'bandwidth'\nrate = '1.5MB/s'",
                "bandwidth 1500 KB/s downstream",
            ),
            (
                "type = 'slow_close'\ndelay = '500ms'",
                "slow_close 500ms downstream",
            ),
            (
                "type = 'timeout'\nat = '20s'\nfor = '10s'",
                "timeout without an end downstream, at 20s for 10s",
            ),
            (
                "type = 'reset_peer'\ntimeout = '2s'\ntoxicity = 0.5",
                "reset_peer after 2s, on 50 % of connections",
            ),
            (
                "type = 'slicer'\naverage-size = 64",
                "slicer 64 ± 0 bytes, 0ns apart downstream",
            ),
            (
                "type = 'limit_data'\nbytes = 10",
                "limit_data 10 bytes downstream",
            ),
            ("type = 'down'\nat = '3s'\nfor = '1s'", "down, at 3s for 1s"),
        ];
        for (text, line) in good {
            let toxics = parse(text).expect(text);
            assert_eq!(toxics[0].to_string(), line);
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_what_to_write() {
        let bad = [
            (
                "type = 'lag'",
                "exp.toml:14:8: `lag` is not a toxic",
                "known: latency, bandwidth",
            ),
            (
                "type = 'latency'",
                "does not say how much",
                "latency = \"20ms\"",
            ),
            (
                "type = 'latency'\nlatency = '20'",
                "`20` is not a length of time for latency",
                "500ms",
            ),
            (
                "type = 'latency'\nlatency = '2ms'\ndistribution = 'gauss'",
                "`gauss` is not a distribution",
                "normal",
            ),
            (
                "type = 'latency'\nlatency = '2ms'\nshape = 1.0",
                "has no mean",
                "shape = 2.5",
            ),
            ("type = 'latency'\nrecorded = 'no.hlog'", "no.hlog", ""),
            (
                "type = 'bandwidth'\nrate = '100'",
                "`100` is not a rate of bytes",
                "100KB/s",
            ),
            (
                "type = 'down'\nlatency = '2ms'",
                "`down` has no latency",
                "leave it out",
            ),
            (
                "type = 'down'\nstream = 'upstream'",
                "affects whole connections",
                "leave out stream",
            ),
            (
                "type = 'timeout'\ndelay = '2ms'",
                "`timeout` has no delay",
                "it has timeout",
            ),
            (
                "type = 'timeout'\nstream = 'up'",
                "`up` is not a direction",
                "upstream",
            ),
            (
                "type = 'timeout'\nat = '2s'",
                "`at` needs `for`",
                "for = \"10s\"",
            ),
            (
                "type = 'timeout'\ntoxicity = 1.5",
                "not a share of connections",
                "at most 1",
            ),
            (
                "type = 'slicer'\naverage-size = 4\nsize-variation = 4",
                "size-variation = 4 is out of range",
                "below 4",
            ),
            (
                "type = 'slicer'",
                "does not say how small",
                "average-size = 64",
            ),
            (
                "type = 'latency'\nlatence = '2ms'",
                "there is no key `latence` here",
                "did you mean `latency`",
            ),
        ];
        for (text, problem, hint) in bad {
            let told = parse(text).expect_err(text);
            assert!(
                told.contains(problem) && told.contains(hint),
                "{text}: {told}"
            );
        }
    }

    #[test]
    fn a_recorded_latency_becomes_a_part_of_the_experiment() {
        let beside = tempfile::tempdir().expect("a directory");
        let mut seen = histogram::new();
        seen.record(3_000_000).expect("it is in its bounds");
        let log = format!(
            "#[StartTime: 0.0 (seconds since epoch)]\n0.0,1.0,3.0,{}\n",
            histogram::encode_histogram(&seen)
        );
        std::fs::write(beside.path().join("db.hlog"), log).expect("a file");
        let text = "type = 'latency'\nrecorded = 'db.hlog'";
        let mut table: ToxicTable = toml::from_str(text).expect("it is one");
        let recorded = table.recorded.clone();
        let mut settle =
            |base: &Path| settle_recorded(recorded.as_ref(), &mut table.histogram, base);
        settle(beside.path()).expect("it is read");
        // A stored experiment does not need the file.
        settle(Path::new("/nowhere")).expect("nothing is read");
        let held = histogram::decode_histogram(table.histogram.as_deref().expect("it is there"));
        assert_eq!(held.expect("a histogram").len(), 1);
    }
}
