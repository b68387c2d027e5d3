//! The application of each configuration, and the images of an experiment.
//!
//! Owns how a level replaces the application, and which engine is asked for an image. Reads nothing
//! from the machine except through its engines.

use std::borrow::Cow;

use loadline_analysis::record::{Configuration, LevelApplication};
use loadline_protocol::{EngineKind, RunRefusal};
use loadline_trial::oci;

use super::advice::image_jdk::is_image_reference;
use super::checked::Checked;
use super::error::ExperimentSource;
use super::said::Text;
use super::{AppUnderTest, Experiment};

#[derive(Debug, Clone)]
pub struct ExperimentImage {
    pub reference: String,
    pub engine: Option<EngineKind>,
    pub found: Option<oci::image::EngineImage>,
}

impl ExperimentImage {
    fn from_application(application: &LevelApplication) -> Option<Self> {
        let engine = application.engine.as_ref();
        Some(Self {
            reference: application.image.clone()?,
            engine: engine.and_then(|name| name.parse().ok()),
            found: None,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.reference, self.engine) == (&other.reference, other.engine)
    }

    /// The image as the engine found it. Errors: [`RunRefusal`] before any look-up.
    pub fn found_image(&self) -> Result<&oci::image::EngineImage, RunRefusal> {
        self.found.as_ref().ok_or_else(|| {
            let hint =
                "measure it: loadline size, run and judge look for it; this command does not";
            let what = format!("the image {}", self.reference);
            RunRefusal::new(what, "it was not looked for", hint)
        })
    }
}

pub(super) fn check_image(
    (reference, engine): (Option<&Text>, Option<&Text>),
    source: &ExperimentSource<'_>,
) -> Checked<Option<ExperimentImage>> {
    let hint = "write podman or docker; without it the engine that has the image starts it";
    let kind = engine.map(|text| source.parse_text::<EngineKind>(text, hint));
    let kind = kind.transpose()?;
    let Some(reference) = reference else {
        let Some(engine) = engine else {
            return Ok(None);
        };
        let problem = "an engine is named, and no image for it to start";
        let hint = "name the image: image = \"registry/name:tag\", or --image";
        return Err(source.error_at(engine, problem, hint));
    };
    if !is_image_reference(reference) {
        let problem = format!("the image `{reference}`: that is not an image name");
        let hint = "write it as the engine lists it, in small letters: registry.example/orders:1.4";
        return Err(source.error_at(reference, problem, hint));
    }
    Ok(Some(ExperimentImage {
        reference: reference.to_string(),
        engine: kind,
        found: None,
    }))
}

impl Experiment {
    pub fn app_of(&self, configuration: &Configuration) -> Cow<'_, AppUnderTest> {
        let Some(other) = &configuration.application else {
            return Cow::Borrowed(&self.app);
        };
        let image = ExperimentImage::from_application(other).map(|wanted| {
            let mut known = self.level_images.iter();
            known
                .find(|image| image.is_same(&wanted))
                .cloned()
                .unwrap_or(wanted)
        });
        Cow::Owned(AppUnderTest {
            command: other.command.clone(),
            image,
            ..self.app.clone()
        })
    }

    pub(super) fn with_level_images(mut self) -> Self {
        for configuration in self.configurations() {
            let image = configuration.application.as_ref();
            let image = image.and_then(ExperimentImage::from_application);
            if let Some(image) = image
                && !self.level_images.iter().any(|known| known.is_same(&image))
            {
                self.level_images.push(image);
            }
        }
        self
    }

    pub fn images(&self) -> impl Iterator<Item = &ExperimentImage> {
        let of_dependencies = self.dependencies.iter().filter_map(|d| d.image.as_ref());
        let of_application = self.app.image.iter().chain(&self.level_images);
        of_application.chain(of_dependencies)
    }

    /// Looks for the images: they must be there before anything is assembled. Those of dependencies
    /// are the application's engine's unless they say otherwise: engines share no networks.
    pub fn find_images(&mut self) -> Result<(), oci::image::ImageNotFound> {
        let mut common = None;
        let of_dependencies = self.dependencies.iter_mut();
        let of_dependencies = of_dependencies.filter_map(|d| d.image.as_mut());
        let of_application = self.app.image.iter_mut().chain(&mut self.level_images);
        for image in of_application.chain(of_dependencies) {
            let found =
                oci::image::EngineImage::find_image(&image.reference, image.engine.or(common))?;
            common = common.or(Some(found.engine.kind));
            image.found = Some(found);
        }
        Ok(())
    }
}
