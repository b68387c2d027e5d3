//! What the application is called, and a level that puts another one in its place.

use loadline_analysis::record::{LONGEST_VERSION, LevelApplication, version_name};

use super::super::application::check_image;
use super::super::checked::Checked;
use super::client;
use crate::error::ExperimentSource;
use crate::said::ValueWithOrigin;
use crate::wire::{AppTable, LevelTable};

pub(super) fn check_version(
    app: &AppTable,
    source: &ExperimentSource<'_>,
) -> Checked<Option<String>> {
    let Some(said) = &app.version else {
        return Ok(None);
    };
    let Some(name) = version_name(said) else {
        let problem = format!(
            "that is not a version: write 1 to {LONGEST_VERSION} characters without control characters"
        );
        return Err(source.error_at(said, problem, "write version = \"1.4.2\""));
    };
    Ok(Some(name.to_owned()))
}

pub(super) fn of_level<T>(
    table: &LevelTable,
    entry: &ValueWithOrigin<T>,
    source: &ExperimentSource<'_>,
) -> Checked<Option<LevelApplication>> {
    let said = |text: &Option<String>| {
        text.as_ref()
            .map(|text| entry.with_same_origin(text.clone()))
    };
    let (reference, engine) = (said(&table.image), said(&table.engine));
    let image = check_image((reference.as_ref(), engine.as_ref()), source)?;
    let Some(first) = table.command.first() else {
        return Ok(image.map(|_| level_application(table)));
    };
    if image.is_none() && first.is_empty() {
        let problem = format!("the command of the level `{}` is empty", table.label);
        let hint = "name a program: command = [\"build/native/orders\"]";
        return Err(source.error_at(entry, problem, hint));
    }
    if image.is_none() {
        client::refuse_client_command(&table.command, source)?;
    }
    Ok(Some(level_application(table)))
}

fn level_application(table: &LevelTable) -> LevelApplication {
    LevelApplication {
        command: table.command.clone(),
        image: table.image.clone(),
        engine: table.engine.clone(),
    }
}
