//! Commands that hand the application to somebody else: limits would hold for the client only.

use std::path::Path;

use super::Checked;
use crate::experiment::error::Source;

/// Clients of container engines, and what of theirs starts an application.
const CLIENTS: [&str; 6] = [
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "kubectl",
    "ctr",
];

/// Refuses a command that starts a client.
pub(super) fn check(command: &[String], source: &Source<'_>) -> Checked<()> {
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
    Err(source.whole(
        problem,
        format!("give the command that the image runs, as -- java -jar app.jar ({client} inspect IMAGE shows it as Entrypoint and Cmd); loadline does not start images yet"),
    ))
}
