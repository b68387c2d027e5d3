//! The text of an experiment file.

use std::io::ErrorKind;
use std::path::Path;

use crate::error::Error;
use crate::files;

const FORMAT: &str = "examples are in experiments/; the format is in docs/reference/experiment.schema.json (loadline schema experiment)";

pub(super) fn read_experiment(path: &Path) -> Result<String, Error> {
    if let Some(other) = files::other_kind(path, "an experiment") {
        return Err(other);
    }
    let name = path.display();
    files::read(path).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => {
            let problem = format!("{name} is a directory, not an experiment");
            let inside = path.join("loadline.toml");
            Error::usage(problem).with_hint(format!("name the file in it: {}", inside.display()))
        }
        _ => {
            let problem = format!("cannot read the experiment {name}: {error}");
            Error::usage(problem).with_hint(FORMAT)
        }
    })
}
