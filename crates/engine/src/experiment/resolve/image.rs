//! `app.image`: an application that an engine starts, and what cannot be varied of it.

use loadline_protocol::EngineKind;

use super::super::checked::Checked;
use crate::experiment::error::ExperimentSource;
use crate::experiment::said::Text;
use crate::experiment::{Experiment, ExperimentImage};

/// The image that a table names, if it does.
pub(in crate::experiment) fn check_image(
    (reference, engine): (Option<&Text>, Option<&Text>),
    source: &ExperimentSource<'_>,
) -> Checked<Option<ExperimentImage>> {
    let hint = "write podman or docker; without it the engine that has the image starts it";
    let kind = engine.map(|text| source.parse_text::<EngineKind>(text, hint));
    let kind = kind.transpose()?;
    let Some(reference) = reference else {
        return match engine {
            None => Ok(None),
            Some(text) => Err(source.error_at(
                text.origin(),
                "an engine is named, and no image for it to start",
                "name the image: image = \"registry/name:tag\", or --image",
            )),
        };
    };
    Ok(Some(ExperimentImage {
        reference: reference.inner_value().clone(),
        engine: kind,
        found: None,
    }))
}

/// Refuses what an image brings itself.
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
