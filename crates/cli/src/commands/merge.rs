//! `loadline merge`: the sum of the parts of one load.

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_load::parts::{PartFile, merge};

use super::load::print_summary;
use crate::error::{CommandOutcome, Error, FailureKind};
use crate::files;
use crate::output::AnswerPrinter;

/// Arguments of `loadline merge`.
#[derive(Args)]
pub struct MergeArguments {
    /// Files written by `loadline load --part I/N --out FILE`: every part of one load, once each
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &MergeArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let parts: Result<Vec<PartFile>, Error> =
        arguments.files.iter().map(|path| read(path)).collect();
    print_summary(arguments.json, &merge(&parts?)?, out)
}

fn read(path: &Path) -> Result<PartFile, Error> {
    let name = files::display_name(path);
    let text = files::read(path).map_err(|e| {
        let problem = format!("cannot read {name}: {e}");
        let hint = "give the files written by `loadline load --part I/N --out FILE`";
        let unread = || Error::new(FailureKind::of_unreadable(&e), problem).with_hint(hint);
        files::other_kind(path, "a part").unwrap_or_else(unread)
    })?;
    PartFile::parse_part_file(&text)
        .map_err(|e| Error::usage(format!("{name}: {e}")).with_hint_if(e.load_hint()))
}
