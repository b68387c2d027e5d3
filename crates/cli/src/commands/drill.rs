//! `loadline drill`: a dependency goes away under load and comes back; shows how the application
//! copes. A matrix like `run`, over an experiment with an outage.

use super::run::{self, RunArguments};
use crate::error::{CommandOutcome, Error};
use crate::experiment::LoadedExperiment;
use crate::output::AnswerPrinter;

const HINT: &str = "add [[outage]] with dependency = \"db\", at = \"20s\", for = \"10s\"; loadline run measures without one";

pub fn run(arguments: RunArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let given = arguments.read_experiment()?;
    if !given.experiment.has_outages() {
        let why = "this experiment has no outage to drill";
        return Err(Error::usage(why).with_hint(HINT));
    }
    run::measure(given, &arguments, out)
}

pub fn refuse_search(given: &LoadedExperiment) -> Result<(), Error> {
    if !given.experiment.has_outages() {
        return Ok(());
    }
    let why = "`size` needs an undisturbed load, but this experiment has an outage";
    let hint = "size without it, then run: loadline drill";
    Err(Error::usage(why).with_hint(hint))
}
