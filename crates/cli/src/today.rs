//! Today's shipped size, for comparison with an answer.
//!
//! Owns the flags; the report owns the sentence.

use std::path::PathBuf;

use clap::Args;
use loadline_experiment::shipped;
use loadline_report::{CurrentLimits, ResultView};

use crate::error::Error;

/// Flags of commands that show an answer.
#[derive(Args, Debug, Default, Clone)]
pub struct TodayFlags {
    /// What ships today, as CPUs/memory (2/4Gi) or memory alone, to show what the answer saves
    #[arg(long, value_name = "[CPUS/]SIZE", conflicts_with = "manifest")]
    today: Option<CurrentLimits>,
    /// The same, from the manifest that ships today: the limits of its JVM, else its requests
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

impl TodayFlags {
    /// Tells a result what ships today.
    /// Errors: When the manifest does not say it, or there is no answer to hold it against.
    pub fn tell_today(&self, view: &mut ResultView) -> Result<(), Error> {
        view.today = match &self.manifest {
            None => self.today,
            Some(path) => {
                let size = shipped::container_size(path);
                let hint = "or give it as: --today 2/4Gi";
                let (cpu, memory) = size.map_err(|e| Error::usage(&e).with_hint(hint))?;
                Some(CurrentLimits { cpu, memory })
            }
        };
        if view.today.is_some() && view.recommendation.is_none() {
            let what = "the result has no answer to compare today's size with";
            let hint = "leave --today and --manifest out, or name a result of `loadline size`";
            return Err(Error::usage(what).with_hint(hint));
        }
        Ok(())
    }
}
