//! A level that puts another application in the place of the experiment's.

use loadline_analysis::record::Application;

use super::{Checked, client, image};
use crate::experiment::error::Source;
use crate::experiment::said::Said;
use crate::experiment::wire::LevelTable;

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
