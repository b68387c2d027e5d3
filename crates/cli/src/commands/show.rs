//! `loadline show`: a result or a trial as text, and what other commands print at their end.

use clap::Args;
use loadline_report::ResultView;
use loadline_runner::store::Store;

use crate::error::{CommandOutcome, Error};
use crate::files;
use crate::measuring::open_store_to_read;
use crate::output::{AnswerPrinter, OutputFlags};
use crate::result::{self, ResultFlags};
use crate::say::width;
use crate::today::TodayFlags;
use crate::ui::next::next_command as next;
use crate::ui::text::short;

#[derive(Args)]
pub struct ShowArguments {
    #[command(flatten)]
    result: ResultFlags,
    #[command(flatten)]
    today: TodayFlags,
    /// Print the experiment as it was given
    #[arg(long)]
    experiment: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(arguments: ShowArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let mut view = match arguments.result.read_view() {
        Ok(view) => view,
        Err(no_result) => return show_trial(&arguments.result, out).map_err(|_| no_result),
    };
    arguments.today.tell_today(&mut view)?;
    if arguments.experiment {
        out.print_answer(&view.experiment)?;
    } else {
        print_view(&view, &arguments.result.id, &arguments.output, out)?;
    }
    Ok(CommandOutcome::Done)
}

fn show_trial(flags: &ResultFlags, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let store = open_store_to_read(flags.state.as_deref())?;
    let record = store.trial_by_prefix(&flags.id)?;
    let text = serde_json::to_string_pretty(&record).map_err(Error::internal)?;
    out.print_answer(&text)?;
    Ok(CommandOutcome::Done)
}

pub fn print_result(
    store: &Store,
    id: &str,
    output: &OutputFlags,
    out: &mut AnswerPrinter,
) -> Result<(), Error> {
    let row = store.result_by_prefix(id)?;
    print_view(&result::stored_view(store, &row)?, short(id), output, out)
}

fn print_view(
    view: &ResultView,
    name: &str,
    output: &OutputFlags,
    out: &mut AnswerPrinter,
) -> Result<(), Error> {
    let text = match output.json {
        true => loadline_report::render_json(view),
        false if output.full => loadline_report::render_terminal(view, width()),
        false => loadline_report::render_brief(view, width()),
    };
    out.print_answer(&text)?;
    if !output.json && output.full {
        // The last lines are what stays on the screen.
        let answer = loadline_report::content::headline(view).sentence;
        talk!("answer: {}", loadline_report::text::one_line(&answer));
    }
    if !output.json && !output.full {
        talk!("all of it: {}", next(&format!("show {name} --full")));
    }
    if let Some(path) = &output.report {
        files::write(path, &loadline_report::render_html(view))?;
        talk!("report: {}", path.display());
    } else {
        talk!("report: {}", next(&format!("report {name} -o report.html")));
    }
    if view.recommendation.is_some() {
        talk!("files to ship: {}", next(&format!("emit {name} --to DIR")));
    }
    Ok(())
}
