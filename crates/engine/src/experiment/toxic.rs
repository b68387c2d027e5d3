//! The toxics of a dependency: checked.
//!
//! Owns which keys belong to which type, their defaults and their ranges. What a toxic does is
//! `loadline-proxy`'s.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use loadline_load::{LoadError, histogram};
use loadline_proxy::{Delay, Effect, Span, Stream, Toxic};

use super::error::Source;
use super::resolve::Checked;
use super::said::{Origin, Said, Text};
use super::wire::{AnswerTable, ToxicTable};

/// Longest interval log that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// Of a Pareto distribution without one: a hundredth is more than six times the least.
const SHAPE: f64 = 2.5;

/// Checks the toxics of one dependency, in their order.
pub(super) fn toxics(tables: &[ToxicTable], source: &Source<'_>) -> Checked<Vec<Toxic>> {
    tables.iter().map(|table| toxic(table, source)).collect()
}

/// Makes what it names a part of it; `recorded` is relative to `base`. Whether that changed anything.
///
/// # Errors
/// [`LoadError::Histogram`] with the path.
pub(super) fn settle_recorded(
    recorded: Option<&Text>,
    histogram: &mut Option<String>,
    base: &Path,
) -> Result<bool, LoadError> {
    let Some(recorded) = recorded.filter(|_| histogram.is_none()) else {
        return Ok(false);
    };
    let path = base.join(recorded.get());
    let refused = |why: String| LoadError::Histogram(format!("{}: {why}", path.display()));
    let mut text = String::new();
    let read =
        std::fs::File::open(&path).and_then(|file| file.take(LARGEST).read_to_string(&mut text));
    read.map_err(|error| refused(error.to_string()))?;
    let all = histogram::of_log(&text).map_err(|error| refused(error.to_string()))?;
    *histogram = Some(histogram::encode(&all));
    Ok(true)
}

fn toxic(table: &ToxicTable, source: &Source<'_>) -> Checked<Toxic> {
    let effect = effect(table, source)?;
    refuse_others(table, &effect, source)?;
    Ok(Toxic {
        stream: stream(table, &effect, source)?,
        toxicity: toxicity(table, source)?,
        span: span(table, source)?,
        effect,
    })
}

fn effect(table: &ToxicTable, source: &Source<'_>) -> Checked<Effect> {
    let kind = &table.kind;
    let lacks = |what: &str, hint: &str| {
        let problem = format!("`{}` does not say {what}", kind.get());
        source.at(kind.origin(), problem, hint)
    };
    let or_zero =
        |text: &Option<Text>, name| source.time_or_zero(text.as_ref(), Duration::ZERO, name);
    Ok(match kind.get().as_str() {
        "latency" => {
            let said = delay(&DelayKeys::of_toxic(table), source)?;
            let hint = "latency = \"20ms\", or recorded = \"database.hlog\"";
            Effect::Latency(said.ok_or_else(|| lacks("how much", hint))?)
        }
        "bandwidth" => {
            let rate = table.rate.as_ref();
            let rate = rate.ok_or_else(|| lacks("how much", "rate = \"100KB/s\""))?;
            Effect::Bandwidth {
                rate: bytes_a_second(rate, source)?,
            }
        }
        "slow_close" => {
            let delay = table.delay.as_ref();
            let delay = delay.ok_or_else(|| lacks("how slowly", "delay = \"500ms\""))?;
            Effect::SlowClose {
                delay: source.time(Some(delay), Duration::ZERO, "delay")?,
            }
        }
        "timeout" => Effect::Timeout {
            timeout: or_zero(&table.timeout, "timeout")?,
        },
        "reset_peer" => Effect::ResetPeer {
            timeout: or_zero(&table.timeout, "timeout")?,
        },
        "slicer" => {
            let size = table.average_size.as_ref();
            let size =
                size.ok_or_else(|| lacks("how small the pieces are", "average-size = 64"))?;
            let average = source.in_range(Some(size), 1, 1..1 << 30, "average-size")?;
            let variation = table.size_variation.as_ref();
            Effect::Slicer {
                average_size: average,
                size_variation: source.in_range(variation, 0, 0..average, "size-variation")?,
                delay: or_zero(&table.delay, "delay")?,
            }
        }
        "limit_data" => {
            let bytes = table.bytes.as_ref();
            let bytes = bytes.ok_or_else(|| lacks("after how many bytes", "bytes = 4096"))?;
            Effect::LimitData {
                bytes: *bytes.get(),
            }
        }
        "down" => Effect::Down,
        other => {
            let problem = format!("`{other}` is no toxic");
            let hint = format!("known: {}", Effect::NAMES.join(", "));
            return Err(source.at(kind.origin(), problem, hint));
        }
    })
}

/// The keys that say how late something is, in whatever table they stand.
pub(super) struct DelayKeys<'a> {
    latency: Option<&'a Text>,
    jitter: Option<&'a Text>,
    distribution: Option<&'a Text>,
    shape: Option<&'a Said<f64>>,
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

/// How late something is; `None` where nothing is said.
pub(super) fn delay(keys: &DelayKeys<'_>, source: &Source<'_>) -> Checked<Option<Delay>> {
    if let Some((name, histogram)) = keys.recorded.zip(keys.histogram) {
        let others = [keys.latency, keys.jitter, keys.distribution];
        if let Some(other) = others.into_iter().flatten().next() {
            let problem = "a recorded latency is all there is to know of it";
            let hint = "leave out latency, jitter and distribution, or recorded";
            return Err(source.at(other.origin(), problem, hint));
        }
        let (name, histogram) = (name.get().clone(), histogram.clone());
        return Ok(Some(Delay::Recorded { name, histogram }));
    }
    let Some(latency) = keys.latency else {
        let others = [keys.jitter, keys.distribution];
        return match others.into_iter().flatten().next() {
            None => Ok(None),
            Some(other) => {
                let problem = "it says how latency varies, and not how much it is";
                Err(source.at(other.origin(), problem, "latency = \"20ms\""))
            }
        };
    };
    let latency = source.time_or_zero(Some(latency), Duration::ZERO, "latency")?;
    let jitter = source.time_or_zero(keys.jitter, Duration::ZERO, "jitter")?;
    let shape = shape(keys.shape, source)?;
    match keys.distribution {
        None if jitter.is_zero() => Ok(Some(Delay::Fixed { latency })),
        None => Ok(Some(Delay::Uniform { latency, jitter })),
        Some(said) => match said.get().as_str() {
            "uniform" => Ok(Some(Delay::Uniform { latency, jitter })),
            "normal" => Ok(Some(Delay::Normal { latency, jitter })),
            "pareto" => Ok(Some(Delay::Pareto { latency, shape })),
            other => {
                let problem = format!("`{other}` is no distribution of latencies");
                let hint =
                    "uniform, normal or pareto; as it was seen: recorded = \"database.hlog\"";
                Err(source.at(said.origin(), problem, hint))
            }
        },
    }
}

fn shape(said: Option<&Said<f64>>, source: &Source<'_>) -> Checked<f64> {
    let Some(shape) = said else {
        return Ok(SHAPE);
    };
    match *shape.get() > 1.0 && shape.get().is_finite() {
        true => Ok(*shape.get()),
        false => {
            let problem = format!("a Pareto distribution of shape {} has no mean", shape.get());
            Err(source.at(shape.origin(), problem, "a number above 1: shape = 2.5"))
        }
    }
}

/// `100KB/s`: decimal units, as networks and Toxiproxy have them.
fn bytes_a_second(text: &Text, source: &Source<'_>) -> Checked<u64> {
    let units = [("KB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("B/s", 1.0)];
    let number = units.iter().find_map(|(unit, scale)| {
        let number: f64 = text.get().trim().strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * scale)
    });
    match number.filter(|rate| (1.0..=1e12).contains(rate)) {
        // In its range a whole number of bytes.
        Some(rate) => Ok(rate as u64),
        None => {
            let problem = format!("`{}` is no rate of bytes", text.get());
            Err(source.at(text.origin(), problem, "rate = \"100KB/s\", from 1B/s on"))
        }
    }
}

fn stream(table: &ToxicTable, effect: &Effect, source: &Source<'_>) -> Checked<Stream> {
    let Some(said) = &table.stream else {
        return Ok(Stream::Downstream);
    };
    let at = |problem: String, hint: &str| Err(source.at(said.origin(), problem, hint));
    match said.get().as_str() {
        _ if effect.is_of_both() => at(
            format!("`{}` is about whole connections", effect.name()),
            "leave out stream",
        ),
        "upstream" => Ok(Stream::Upstream),
        "downstream" => Ok(Stream::Downstream),
        other => at(
            format!("`{other}` is no direction"),
            "upstream (to the dependency) or downstream (from it)",
        ),
    }
}

fn toxicity(table: &ToxicTable, source: &Source<'_>) -> Checked<f64> {
    match &table.toxicity {
        None => Ok(1.0),
        Some(share) if *share.get() > 0.0 && *share.get() <= 1.0 => Ok(*share.get()),
        Some(share) => {
            let problem = format!("toxicity = {} is no share of connections", share.get());
            Err(source.at(share.origin(), problem, "above 0 and at most 1"))
        }
    }
}

fn span(table: &ToxicTable, source: &Source<'_>) -> Checked<Option<Span>> {
    match (&table.at, &table.lasts) {
        (None, None) => Ok(None),
        (at, Some(lasts)) => Ok(Some(Span {
            at: source.time_or_zero(at.as_ref(), Duration::ZERO, "at")?,
            length: source.time(Some(lasts), Duration::ZERO, "for")?,
        })),
        (Some(at), None) => {
            let problem = "it begins, and does not say how long it lasts";
            Err(source.at(
                at.origin(),
                problem,
                "for = \"10s\"; without at and for it is always there",
            ))
        }
    }
}

/// Refuses a key that this type has no use for: it would be believed to do something.
fn refuse_others(table: &ToxicTable, effect: &Effect, source: &Source<'_>) -> Checked<()> {
    fn of<T>(said: &Option<Said<T>>) -> Option<&Origin> {
        said.as_ref().map(Said::origin)
    }
    let keys = [
        ("latency", of(&table.latency)),
        ("jitter", of(&table.jitter)),
        ("distribution", of(&table.distribution)),
        ("shape", of(&table.shape)),
        ("recorded", of(&table.recorded)),
        ("rate", of(&table.rate)),
        ("delay", of(&table.delay)),
        ("timeout", of(&table.timeout)),
        ("average-size", of(&table.average_size)),
        ("size-variation", of(&table.size_variation)),
        ("bytes", of(&table.bytes)),
    ];
    let known: &[&str] = match effect {
        Effect::Latency(_) => &["latency", "jitter", "distribution", "shape", "recorded"],
        Effect::Bandwidth { .. } => &["rate"],
        Effect::SlowClose { .. } => &["delay"],
        Effect::Timeout { .. } | Effect::ResetPeer { .. } => &["timeout"],
        Effect::Slicer { .. } => &["average-size", "size-variation", "delay"],
        Effect::LimitData { .. } => &["bytes"],
        Effect::Down => &[],
    };
    let mut said = keys
        .into_iter()
        .filter_map(|(key, origin)| Some((key, origin?)));
    match said.find(|(key, _)| !known.contains(key)) {
        None => Ok(()),
        Some((key, origin)) => {
            let problem = format!("`{}` has no {key}", effect.name());
            let hint = match known {
                [] => "leave it out".to_owned(),
                known => format!("it has {}", known.join(", ")),
            };
            Err(source.at(origin, problem, hint))
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Experiment;
    use super::*;

    /// An experiment with a database, what follows in its table, and an SLO; else the error and its
    /// hint.
    pub(in crate::experiment) fn experiment(slo: &str, more: &str) -> Result<Experiment, String> {
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
        let parsed = Experiment::parse(&text, Path::new("exp.toml"), Path::new("/x"));
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
                "exp.toml:14:8: `lag` is no toxic",
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
                "`gauss` is no distribution",
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
                "`100` is no rate of bytes",
                "100KB/s",
            ),
            (
                "type = 'down'\nlatency = '2ms'",
                "`down` has no latency",
                "leave it out",
            ),
            (
                "type = 'down'\nstream = 'upstream'",
                "about whole connections",
                "leave out stream",
            ),
            (
                "type = 'timeout'\ndelay = '2ms'",
                "`timeout` has no delay",
                "it has timeout",
            ),
            (
                "type = 'timeout'\nstream = 'up'",
                "`up` is no direction",
                "upstream",
            ),
            (
                "type = 'timeout'\nat = '2s'",
                "does not say how long it lasts",
                "for = \"10s\"",
            ),
            (
                "type = 'timeout'\ntoxicity = 1.5",
                "no share of connections",
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
                "unknown field `latence`",
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
            histogram::encode(&seen)
        );
        std::fs::write(beside.path().join("db.hlog"), log).expect("a file");
        let text = "type = 'latency'\nrecorded = 'db.hlog'";
        let mut table: ToxicTable = toml::from_str(text).expect("it is one");
        let recorded = table.recorded.clone();
        let mut settle =
            |base: &Path| settle_recorded(recorded.as_ref(), &mut table.histogram, base);
        assert!(settle(beside.path()).expect("it is read"));
        // What is stored needs the file no more.
        assert!(!settle(Path::new("/nowhere")).expect("nothing is read"));
        let held = histogram::decode(table.histogram.as_deref().expect("it is there"));
        assert_eq!(held.expect("a histogram").len(), 1);
    }
}
