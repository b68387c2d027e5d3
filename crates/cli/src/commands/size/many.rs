//! `loadline size A.toml B.toml`: several searches, one after the other, and one table of them.

use std::path::PathBuf;

use loadline_report::table::Table;

use super::{SizeArguments, size_one};
use crate::commands::store::answer_words;
use crate::error::{CommandOutcome, Error, FailureKind};
use crate::measuring::open_store_to_read;
use crate::output::AnswerPrinter;
use crate::say::width;
use crate::ui::text::short;

/// A file that cannot be measured does not keep the others from it; a signal ends all.
pub(super) fn size_each(
    mut arguments: SizeArguments,
    out: &mut AnswerPrinter,
) -> Result<CommandOutcome, Error> {
    let files = arguments.flags.experiment.iter().chain(&arguments.more);
    let files: Vec<PathBuf> = files.cloned().collect();
    let mut table = Table::new().left("file").left("result").wrapping("answer");
    let (mut failed, mut ends) = (Vec::new(), CommandOutcome::Done);
    for file in &files {
        let name = file.display().to_string();
        talk!("size {name}");
        arguments.flags.experiment = Some(file.clone());
        let (id, words) = match size_one(&mut arguments, out) {
            Ok((id, ended)) => {
                if ended != CommandOutcome::Done {
                    ends = ended;
                }
                let id = id.unwrap_or_default();
                let words = answer_of(&arguments, &id)?;
                (id, words)
            }
            Err(error) if matches!(error.failure_kind(), FailureKind::Interrupted(_)) => {
                return Err(error);
            }
            Err(error) => {
                error.report();
                failed.push(name.clone());
                (String::new(), "could not be measured".to_owned())
            }
        };
        table.add_texts([name.as_str(), short(&id), &words]);
    }
    if !arguments.output.json {
        out.print_answer(&format!("\n{}", table.to_terminal(width())))?;
    }
    if failed.is_empty() {
        return Ok(ends);
    }
    let refusal = format!("no answer for {}", failed.join(", "));
    Err(Error::invalid(refusal).with_hint("see their errors above"))
}

fn answer_of(arguments: &SizeArguments, id: &str) -> Result<String, Error> {
    let store = open_store_to_read(arguments.measure.state.as_deref())?;
    let row = store.result_by_prefix(id)?;
    let words = answer_words(&row);
    Ok(if words.is_empty() {
        "none: no size kept the SLO".to_owned()
    } else {
        words
    })
}
