//! `loadline init`: the processes between loadline and the application. Hidden; see
//! `loadline_engine::backend::local::init`.

use loadline_engine::backend::local::init;

use crate::error::{Error, Kind, Outcome};

/// Becomes the holder of a trial's namespaces.
pub fn run() -> Result<Outcome, Error> {
    init::run()
        .map(|()| Outcome::Done)
        .map_err(|error| Error::new(Kind::Usage, error))
}
