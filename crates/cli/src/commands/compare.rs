//! `loadline compare`: what changed between two results.

use std::path::PathBuf;

use clap::Args;
use loadline_report::compare;

use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;
use crate::result::view_by_id;
use crate::say::width;
use crate::ui::next::next_command as next;

#[derive(Args)]
pub struct CompareArguments {
    /// Id of the first result, or a file written by `export`
    first: String,
    /// The second result
    second: String,
    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print as one HTML page
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    html: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CompareArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let state = arguments.state.as_deref();
    if arguments.first == "-" && arguments.second == "-" {
        let what = "standard input holds one result, but both are named -";
        return Err(Error::usage(what).with_hint("name the file or the id of the other"));
    }
    let first = view_by_id(&arguments.first, state)?;
    let second = view_by_id(&arguments.second, state)?;
    let comparison = compare::compare(&first, &second);
    out.print_answer(&match arguments {
        CompareArguments { markdown: true, .. } => compare::comparison_markdown(&comparison),
        CompareArguments { html: true, .. } => compare::comparison_html(&comparison),
        CompareArguments { json: true, .. } => compare::comparison_json(&comparison),
        _ => compare::comparison_terminal(&comparison, width()),
    })?;
    if let Some(why) = comparison.cannot_say {
        let cannot = format!("not comparable: {why}");
        return Err(Error::invalid(cannot).with_hint(format!(
            "measure both with the same SLO, load and machine, or resume the one that was stopped: {}",
            next("resume")
        )));
    }
    Ok(CommandOutcome::for_slo(!comparison.is_worse))
}
