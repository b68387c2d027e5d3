//! `loadline merge`: the sum of the parts of one load.

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_load::parts::{PartFile, merge};

use super::load::{load_error, print};
use crate::error::{Error, ErrorKind, Outcome};
use crate::files;

/// Arguments of `loadline merge`.
#[derive(Args)]
pub struct Arguments {
    /// Files that `loadline load --part I/N --out FILE` wrote: each part of one load, once
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Reads the files and prints their sum.
pub fn run(arguments: &Arguments) -> Result<Outcome, Error> {
    let parts: Result<Vec<PartFile>, Error> =
        arguments.files.iter().map(|path| read(path)).collect();
    print(arguments.json, &merge(&parts?).map_err(load_error)?)
}

fn read(path: &Path) -> Result<PartFile, Error> {
    let name = files::name(path);
    let text = files::read(path)
        .map_err(|e| Error::new(ErrorKind::Environment, format!("cannot read {name}: {e}")))
        .map_err(|e| e.hint("give the files that `loadline load --part I/N --out FILE` wrote"))?;
    PartFile::parse(&text)
        .map_err(|e| Error::new(ErrorKind::Usage, format!("{name}: {e}")).hint_if(e.hint()))
}
