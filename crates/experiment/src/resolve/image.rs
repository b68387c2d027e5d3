//! `app.image`: an application that an engine starts, and the factors that it excludes.

use super::super::checked::Checked;
use crate::Experiment;
use crate::error::ExperimentSource;

pub(super) fn refuse_image_settings(
    experiment: &Experiment,
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    for configuration in experiment.configurations() {
        if experiment.app_of(&configuration).image.is_none() {
            continue;
        }
        let label = &configuration.label;
        if let Some(jdk) = &configuration.jdk {
            return Err(source.experiment_error(
                format!("`{label}` names a JDK ({jdk}), and an image has its own"),
                "build an image with that JDK and measure it as well; `loadline compare` shows both",
            ));
        }
    }
    Ok(())
}
