//! `loadline load --max-rate`: the search, and its table as it grows.

use std::time::Duration;

use loadline_analysis::slo::Slo;
use loadline_load::max_rate::{MaxRateSearch, TRIALS_HEAD, find_max_rate};
use loadline_load::{ArrivalPattern, LoadPlan};

use super::{LoadArguments, interrupted_error, pretty_json};
use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;
use crate::signals::Signals;

/// Source: SPECjbb2015 run rules, "critical-jOPS".
const CRITICAL: [&str; 5] = ["p99<10ms", "p99<25ms", "p99<50ms", "p99<75ms", "p99<100ms"];
const DEFAULT_TRIAL: Duration = Duration::from_secs(10);

/// Searches and prints; exit code 1 when an SLO is kept at no rate, 4 when the search could not be
/// finished, the signal's code when a signal ended it.
pub(super) fn run(
    arguments: &LoadArguments,
    plan: &LoadPlan,
    signals: &Signals,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let slos = if arguments.slo.is_empty() {
        let parsed: Result<Vec<Slo>, _> = CRITICAL.iter().map(|text| text.parse()).collect();
        parsed.map_err(Error::internal)?
    } else {
        arguments.slo.clone()
    };
    let search = MaxRateSearch {
        slos,
        trial: arguments.load.duration.map_or(DEFAULT_TRIAL, |time| time.0),
        arrivals: if arguments.load.poisson {
            ArrivalPattern::Poisson
        } else {
            ArrivalPattern::Uniform
        },
        is_strict: arguments.strict,
        curve_steps: arguments.curve.unwrap_or(0),
    };
    talk!("{TRIALS_HEAD}");
    let found = find_max_rate(plan, &search, signals.flag(), &mut |trial| {
        talk!("{}", trial.trial_row())
    })?;
    let text = if arguments.json {
        pretty_json(&found)?
    } else {
        found.to_string()
    };
    out.print_answer(&text)?;
    if signals.has_come() {
        return Err(interrupted_error(signals));
    }
    match &found.incomplete {
        Some(reason) => Err(Error::invalid(format!("not complete: {reason}"))),
        None if found.goals.iter().all(|g| g.rate.is_some()) => Ok(CommandOutcome::Done),
        None => Ok(CommandOutcome::SloMissed),
    }
}
