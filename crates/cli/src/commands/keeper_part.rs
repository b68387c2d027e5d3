//! `loadline keeper-part` (hidden): the dependencies that the trials of a result share. All of it is
//! in [`loadline_host::keeper`].

use loadline_host::{keeper, part};

use crate::error::{Error, ErrorKind, Outcome};

/// Reads requests from stdin, writes answers to stdout.
pub fn run() -> Result<Outcome, Error> {
    let parent = std::env::var(part::PARENT).ok();
    let parent = parent.and_then(|text| text.parse().ok());
    keeper::keeper_part(std::io::stdin(), std::io::stdout().lock(), parent)
        .map(|()| Outcome::Done)
        .map_err(|e| Error::new(ErrorKind::Environment, format!("the keeper: {e}")))
}
