//! Container clients: limits would apply to the client only.

use std::path::Path;

use loadline_sizing::options::words::has_word;

use super::super::checked::Checked;
use crate::error::ExperimentSource;

const CLIENTS: [&str; 6] = [
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "kubectl",
    "ctr",
];

pub(super) fn refuse_client_command(
    command: &[String],
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    // `sudo docker run` hides nothing.
    let mut words = command.iter().map(String::as_str);
    let program = words.find(|word| *word != "sudo" && !word.starts_with('-'));
    let name = program.and_then(|program| Path::new(program).file_name()?.to_str());
    let Some(client) = name.filter(|name| CLIENTS.contains(name)) else {
        return Ok(());
    };
    let problem = format!(
        "the command is a client of a container engine: limits would hold for `{client}`, not for the application, which another process starts"
    );
    let image = image_of_run(command).unwrap_or("IMAGE");
    Err(source.experiment_error(
        problem,
        format!("loadline starts images itself: --image {image} in place of the command, or app.image = \"{image}\" in a file; what follows -- are its arguments"),
    ))
}

/// Common flags of `run` that take the next word as their value.
const VALUED: &str = "-p --publish -e --env --env-file -v --volume --mount --name --network -m --memory --cpus -u \
    --user -w --workdir";

fn image_of_run(command: &[String]) -> Option<&str> {
    let words = command.iter();
    let mut words = words.map(String::as_str).skip_while(|word| *word != "run");
    words.next()?;
    while let Some(word) = words.next() {
        match word.starts_with('-') {
            false => return Some(word),
            true if has_word(VALUED, word) => drop(words.next()),
            true => {}
        }
    }
    None
}
