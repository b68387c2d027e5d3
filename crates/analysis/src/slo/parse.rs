//! The text of an SLO, as people write it, and what they meant where it is none.
//!
//! Owns the order of the forms, and the hints; the forms of one kind are its own file's.

use std::str::FromStr;
use std::time::Duration;

use loadline_sizing::units::with_points;

use super::duration::{meant_duration, parse_duration, parse_percent, round_printed};
use super::{
    DEFAULT_ERROR_BOUND, JvmObjective, MetricObjective, Objective, OutageObjective, ParseSloError,
    Quantile, RequestObjective, RunObjective, Slo, exit, metric, peak,
};

impl FromStr for Slo {
    type Err = ParseSloError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        read_slo(text).map_err(|error| {
            let meant = with_points(text);
            if meant != text && read_slo(&meant).is_ok() {
                ParseSloError::new(text, &format!("did you mean `{meant}`?"))
            } else {
                error
            }
        })
    }
}

fn read_slo(text: &str) -> Result<Slo, ParseSloError> {
    let (mut objectives, mut by_request) = (Vec::new(), Vec::new());
    let (mut outage, mut peak) = (Vec::new(), Vec::new());
    for part in split_objectives(text) {
        if let Some(objective) = parse_outage_objective(part)? {
            outage.push(objective);
            continue;
        }
        if let Some(objective) = peak::parse_peak_objective(part)? {
            peak.push(objective);
            continue;
        }
        match parse_request_objective(part)? {
            Some(named) => by_request.push(named),
            None => objectives.push(parse_objective(part)?),
        }
    }
    let has_own = |o: &Objective| matches!(o, Objective::Errors { .. } | Objective::Run(_));
    if !objectives.iter().any(has_own) {
        let bound = DEFAULT_ERROR_BOUND;
        objectives.push(Objective::Errors { bound });
    }
    Ok(Slo {
        objectives,
        by_request,
        outage,
        peak,
    })
}

/// The objectives of a text. A name of a request may hold a comma; every objective has a `<` after
/// it, but for an exit code and some of metrics.
fn split_objectives(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut begin = 0;
    for (comma, _) in text.match_indices(',') {
        let part = &text[begin..comma];
        let is_metric = |(_, rest)| MetricObjective::parse(rest).is_some();
        if part.contains('<')
            || part.trim_start().starts_with("exit")
            || part.trim_start().starts_with(exit::LOAD_PASSES)
            || part.rsplit_once(':').is_some_and(is_metric)
        {
            parts.push(&text[begin..comma]);
            begin = comma + 1;
        }
    }
    parts.push(&text[begin..]);
    parts
}

fn parse_outage_objective(text: &str) -> Result<Option<OutageObjective>, ParseSloError> {
    let text = text.trim();
    let error = |why: &str| ParseSloError::new(text, why);
    if let Some(during) = text.strip_suffix("during") {
        return match parse_objective(during)? {
            Objective::Errors { bound } => Ok(Some(OutageObjective::Errors { bound })),
            _ => Err(error("only errors have a bound during an outage")),
        };
    }
    match text.split_once('<') {
        Some((name, bound)) if name.trim() == "recovers" => {
            let bound = parse_duration(bound.trim().trim_start_matches('='));
            let bound = bound.ok_or_else(|| error("the bound is not a duration (10s)"))?;
            Ok(Some(OutageObjective::Recovers { bound }))
        }
        _ => Ok(None),
    }
}

/// An objective with the name of a request before it; `None` when there is no name.
fn parse_request_objective(text: &str) -> Result<Option<RequestObjective>, ParseSloError> {
    let Some((request, rest)) = text.rsplit_once(':') else {
        return Ok(None);
    };
    let request = request.trim().to_owned();
    let meant = || MetricObjective::meant_objective(rest);
    let error = |why: &str| ParseSloError::new(text, why);
    let refuse = |why: String| match meant() {
        Some(meant) => error(&format!("did you mean `{request}: {meant}`?")),
        None => error(&why),
    };
    let objective = match MetricObjective::parse(rest) {
        Some(metric) => Objective::Metric(metric.map_err(refuse)?),
        None => parse_objective(rest)
            .map_err(|refused| refuse(format!("{}; {}", refused.why, metric::FORM)))?,
    };
    if request.is_empty() {
        return Err(error("no request is named before the `:`"));
    }
    use Objective::{Jvm, LoadPasses, Run, Start};
    if matches!(
        objective,
        Start { .. } | Jvm(_) | Run(_) | LoadPasses { .. }
    ) {
        return Err(error(
            "the start, the JVM, the run and the load command are those of the application, not of a request",
        ));
    }
    Ok(Some(RequestObjective { request, objective }))
}

/// The objective that was meant, with the reason: people write other names and signs, another order of the
/// parts, a bound without its unit. `None` where nothing is near.
fn meant_objective(text: &str) -> Option<String> {
    let plain = text.to_ascii_lowercase().replace([' ', ','], "");
    if plain.starts_with("load") && !plain.starts_with("loadpasses") {
        return Some(format!("did you mean `{}`?", exit::LOAD_PASSES));
    }
    let signs = ['<', '>', '=', '≤'];
    // A time alone is a latency's.
    let (name, bound) = plain.split_once(signs).unwrap_or(("latency", &plain));
    let bound = bound.trim_start_matches(signs);
    if ["exitcode", "exit_code", "rc"].contains(&name) {
        return Some(format!("did you mean `exit={bound}`?"));
    }
    if ["rps", "qps", "tps", "rate", "throughput"].contains(&name) {
        let rate = bound.trim_end_matches("/s").parse::<f64>().ok()?;
        return Some(format!("a rate is offered, not judged: --rate {rate}/s"));
    }
    if ["availability", "success", "successrate", "success_rate"].contains(&name) {
        let kept = bound.trim_end_matches('%').parse::<f64>().ok();
        let lost = round_printed(100.0 - kept.filter(|kept| *kept < 100.0)?);
        return Some(format!("did you mean `errors<{lost}%`?"));
    }
    let by_percent = || {
        let number = name.strip_suffix('%').or(name.strip_suffix("th"))?;
        Some(format!("p{number}"))
    };
    let (mut reason, name) = match name {
        "error" | "err" | "failures" | "errorrate" | "error_rate" => ("", "errors".to_owned()),
        "p100" | "maximum" | "worst" => ("", "max".to_owned()),
        "avg" | "average" | "mean" => ("a mean hides slow requests; ", "p50".to_owned()),
        "median" => ("", "p50".to_owned()),
        "latency" | "responsetime" | "response_time" | "rt" | "duration" => {
            ("it does not say for how many requests; ", "p99".to_owned())
        }
        "startup" | "boot" => ("", "start".to_owned()),
        other => ("", by_percent().unwrap_or_else(|| other.to_owned())),
    };
    let mut bounds = vec![bound.to_owned()];
    bounds.extend(meant_duration(bound).filter(|_| bound.contains(char::is_alphabetic)));
    if let Ok(number) = bound.parse::<f64>() {
        reason = "the bound has no unit; ";
        // Below 1 it is a fraction, or of seconds.
        let is_small = number < 1.0;
        let is_long = is_small || matches!(name.as_str(), "start" | "time" | "cpu");
        let percent = round_printed(number * if is_small { 100.0 } else { 1.0 });
        let unit = if is_long { "s" } else { "ms" };
        bounds = vec![format!("{bound}{unit}"), format!("{percent}%")];
    }
    let mut meant = bounds.iter().map(|bound| format!("{name}<{bound}"));
    let meant = meant.find(|meant| meant != text && read_objective(meant).is_ok())?;
    Some(format!("{reason}did you mean `{meant}`?"))
}

/// Objectives that something else than commas separates, with commas; `None` where it is one.
fn with_commas(text: &str) -> Option<String> {
    let between = |c: char| c == ';' || c == '&' || c == '|' || c.is_whitespace();
    let parts = text.split(between);
    let parts: Vec<&str> = parts.filter(|p| !p.is_empty() && *p != "and").collect();
    let is_each = parts.iter().all(|part| part.contains('<'));
    (parts.len() > 1 && is_each).then(|| parts.join(","))
}

pub(super) fn parse_objective(text: &str) -> Result<Objective, ParseSloError> {
    let text = text.trim();
    read_objective(text).map_err(|error| match meant_objective(text) {
        // What it says already is nearer.
        Some(why) if !error.why.contains("commas") => ParseSloError { why, ..error },
        _ => error,
    })
}

const NO_NAME: &str = "the name is not one of p50..p99.999, max, errors, start, heap, gc; a run has time, cpu, slower, exit; a metric has its name before: `lag: max<1000`";

fn read_objective(text: &str) -> Result<Objective, ParseSloError> {
    let error = |why: &str| ParseSloError::new(text, why);
    if let Some(run) = RunObjective::parse(text) {
        return run.map(Objective::Run).map_err(|why| error(&why));
    }
    if let Some(jvm) = JvmObjective::parse(text) {
        return jvm.map(Objective::Jvm).map_err(|why| error(&why));
    }
    if let Some(passes) = exit::parse_load_passes(text) {
        return passes.map_err(error);
    }
    if text.is_empty() {
        let why = "it is empty: there is nothing before or after a comma";
        return Err(error(why));
    }
    let parts = text.split_once('<');
    let (name, bound) = parts.ok_or_else(|| error("there is no `<`"))?;
    let (name, bound) = (name.trim(), bound.trim().trim_start_matches('='));
    if let Some(several) = with_commas(text) {
        return Err(error(&format!("commas separate objectives: `{several}`")));
    }
    let time = || match parse_duration(bound) {
        Some(Duration::ZERO) => Err(error("the bound is not above 0")),
        Some(bound) => Ok(bound),
        None => Err(error("the bound is not a duration (50ms, 1.5s)")),
    };
    match name {
        "max" => Ok(Objective::MaxLatency { bound: time()? }),
        "start" => Ok(Objective::Start { bound: time()? }),
        "errors" => {
            let percent = parse_percent(bound).map(round_printed);
            let percent = percent.ok_or_else(|| error("the bound is not a percentage (0.1%)"))?;
            if !(percent > 0.0 && percent <= 100.0) {
                return Err(error(
                    "the percentage is not above 0 and at most 100; for no error at all: errors<0.001%",
                ));
            }
            let bound = percent / 100.0;
            Ok(Objective::Errors { bound })
        }
        _ => {
            let percentile = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
            let percentile = percentile.map(round_printed);
            let quantile = percentile.filter(|p| *p > 0.0 && *p < 100.0);
            let quantile = quantile.and_then(|p| Quantile::from_fraction(p / 100.0));
            let quantile = quantile.ok_or_else(|| error(NO_NAME))?;
            let bound = time()?;
            Ok(Objective::Latency { quantile, bound })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_signs_that_people_write_are_understood_as_meant() {
        let why = |text: &str| {
            text.parse::<Slo>()
                .map_err(|e| e.why)
                .err()
                .unwrap_or_default()
        };
        for (text, meant) in [
            ("error<1%", "errors<1%"),
            ("P99<250MS", "p99<250ms"),
            ("99%<250ms", "p99<250ms"),
            ("p100<1s", "max<1s"),
            ("p99≤250ms", "p99<250ms"),
            ("avg<100ms", "p50<100ms"),
            ("p99=250ms", "p99<250ms"),
        ] {
            let said = why(text);
            assert!(
                said.contains(&format!("did you mean `{meant}`?")),
                "{text}: {said}"
            );
        }
        assert_eq!(why("p99<0ms"), "the bound is not above 0");
        assert!(why("nonsense<1s").contains("not one of p50"));
    }

    #[test]
    fn what_was_meant_is_shown() {
        let why = |text: &str| text.parse::<Slo>().map_err(|e| e.why).err();
        for between in [";", "&", "|", " ", " and "] {
            let text = format!("p95<250ms{between}errors<1%");
            let wanted = "commas separate objectives: `p95<250ms,errors<1%`";
            assert_eq!(why(&text).as_deref(), Some(wanted), "{text}");
        }
        for (text, meant) in [
            ("p99 < 250", "p99<250ms"),
            ("p99=250", "p99<250ms"),
            ("p99<0.25", "p99<0.25s"),
            ("start<20", "start<20s"),
            ("time<60", "time<60s"),
            ("errors<1", "errors<1%"),
            ("errors<0.01", "errors<1%"),
            ("slower<0.1", "slower<10%"),
            ("heap<80", "heap<80%"),
        ] {
            let wanted = format!("the bound has no unit; did you mean `{meant}`?");
            assert_eq!(why(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
        for (text, meant) in [
            ("p99>250ms", "p99<250ms"),
            ("heap<=80%", "heap<80%"),
            ("time=60s", "time<60s"),
            (",p99<250ms", "p99<250ms"),
            ("load pass", "load passes"),
        ] {
            let wanted = format!("did you mean `{meant}`?");
            assert_eq!(why(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
        for text in ["", "p99<250ms,"] {
            assert!(why(text).is_some_and(|why| why.starts_with("it is empty")));
        }
        assert!(why("exit<1").is_some_and(|why| why.contains("exit=3")));
        for (text, meant) in [
            ("lag: max<1k", "lag: max<1000"),
            ("lag: max < 1.5M", "lag: max<1500000"),
            ("mem: avg<=512Mi", "mem: avg<=536870912"),
            ("lag: max<1_000", "lag: max<1000"),
            ("done: rate>=2k/s", "done: rate>=2000"),
            ("lag: max<1,000", "lag: max<1000"),
            ("p99<1,5s,errors<0,1%", "p99<1.5s,errors<0.1%"),
        ] {
            let wanted = format!("did you mean `{meant}`?");
            assert_eq!(why(text).as_deref(), Some(wanted.as_str()), "{text}");
        }
        for text in [
            "lag: p50<1000",
            "lag: mx<1000",
            "lag: max<much",
            "lag: p99<5x",
        ] {
            assert!(why(text).is_some_and(|why| why.ends_with(metric::FORM)));
        }
        let wanted = "the bound is not a duration (50ms, 1.5s)";
        assert_eq!(why("p99<fast").as_deref(), Some(wanted));
        assert_eq!(why("p99 < 250ms, errors < 1 %"), None);
        for text in ["errors<0%", "errors<100.1%"] {
            assert!(why(text).is_some_and(|why| why.contains("above 0 and at most 100;")));
        }
        let wanted = "an exit code that means failure is 1 to 255: load passes unless 99";
        for text in [
            "load passes unless 0",
            "load passes unless 256",
            "load passes 99",
        ] {
            assert_eq!(why(text).as_deref(), Some(wanted), "{text}");
        }
        let wanted = NO_NAME;
        for text in ["p0<1s", "p-1<1s", "q99<1s"] {
            assert_eq!(why(text).as_deref(), Some(wanted), "{text}");
        }
    }

    #[test]
    fn errors_are_bounded_even_when_nobody_says_so() {
        assert_eq!(
            "p99<50ms".parse::<Slo>().map(|s| s.to_string()),
            Ok("p99<50ms,errors<1%".to_owned())
        );
    }

    #[test]
    fn what_is_no_objective_is_refused_with_the_reason() {
        for text in [
            "",
            "p99",
            "p99<50",
            "p101<5ms",
            "q<5ms",
            "errors<5",
            "errors<0%",
            "p99<-5ms",
            "recovers<10",
            "p99<5ms during",
        ] {
            assert!(text.parse::<Slo>().is_err(), "{text}");
        }
    }
}
