//! What the application is called, and a level that puts another one in its place.

use loadline_analysis::record::{Application, LONGEST_VERSION, version_name};

use super::{Checked, client, image};
use crate::experiment::error::Source;
use crate::experiment::said::Said;
use crate::experiment::wire::{AppTable, LevelTable};

/// What the user calls the version.
pub(super) fn version(app: &AppTable, source: &Source<'_>) -> Checked<Option<String>> {
    let Some(said) = &app.version else {
        return Ok(None);
    };
    let Some(name) = version_name(said.get()) else {
        let problem = format!(
            "that is no name of a version: it has 1 to {LONGEST_VERSION} characters, none of which moves the cursor"
        );
        return Err(source.at(said.origin(), problem, "write version = \"1.4.2\""));
    };
    Ok(Some(name.to_owned()))
}

/// The application of a level, if it names one.
pub(super) fn of_level<T>(
    table: &LevelTable,
    entry: &Said<T>,
    source: &Source<'_>,
) -> Checked<Option<Application>> {
    let said = |text: &Option<String>| text.as_ref().map(|text| entry.here(text.clone()));
    let (reference, engine) = (said(&table.image), said(&table.engine));
    let image = image::image((reference.as_ref(), engine.as_ref()), source)?;
    let Some(first) = table.command.first() else {
        return Ok(image.map(|_| application(table)));
    };
    if image.is_none() && first.is_empty() {
        let problem = format!("the command of the level `{}` is empty", table.label);
        let hint = "name a program: command = [\"build/native/orders\"]";
        return Err(source.at(entry.origin(), problem, hint));
    }
    if image.is_none() {
        client::check(&table.command, source)?;
    }
    Ok(Some(application(table)))
}

fn application(table: &LevelTable) -> Application {
    Application {
        command: table.command.clone(),
        image: table.image.clone(),
        engine: table.engine.clone(),
    }
}
