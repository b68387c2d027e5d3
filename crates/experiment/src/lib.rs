//! An experiment: the application, the load, the SLO, and the factors.
//!
//! Owns the typed form. A file or a command line becomes an [`ExperimentFile`] (the schema people
//! write), and [`Experiment::resolve`] turns that into types with every value checked. Reads
//! nothing from the machine except the load profile that a file names.

pub mod advice;
mod application;
mod checked;
mod cluster;
pub mod compose;
mod definition;
mod dependency;
mod enough;
mod error;
mod level;
pub mod load;
pub mod manifest;
mod outage;
pub mod program;
pub mod project;
pub mod references;
mod resolve;
mod said;
mod search;
mod services;
pub mod shipped;
mod stub;
#[cfg(test)]
mod tests;
mod toxic;
pub mod variables;
pub mod wire;

use std::path::{Path, PathBuf};

use loadline_analysis::record::Configuration;
use loadline_load::LoadError;
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

pub use application::ExperimentImage;
pub use cluster::{ClusterSettings, MOST_SLOTS, Slots, TRIAL_IMAGE, TemplateWorkload, TrialCpu};
pub use definition::{AppUnderTest, Experiment, FIRST_MEMORY, SearchSettings};
pub use dependency::{ExperimentDependency, OrderedDependencies, seen_by};
pub use enough::ThinPercentile;
pub use error::{ExperimentError, SurroundingsError};
pub use level::{ExperimentFactor, FactorLevel};
pub use load::{ExperimentLoad, TrainingSettings};
pub use loadline_analysis::search::purchase::PricingTerms;
pub use resolve::{AUTO_CPU, NO_CPU_LIMIT};
pub use said::{ValueOrigin, ValueWithOrigin};
pub use search::SHORTEST_SOAK;
pub use stub::ExperimentStub;
pub use wire::ExperimentFile;

impl Experiment {
    /// Reads the text of an experiment file. `path` is for messages and for `app.directory`, which
    /// is relative to the file; without it the application runs in `called_in`.
    pub fn from_file_text(
        text: &str,
        path: &Path,
        called_in: &Path,
    ) -> Result<Self, ExperimentError> {
        let mut file = ExperimentFile::from_toml(text, path)?;
        let source = error::ExperimentSource::from_file(text, path);
        let beside = called_in.join(path.parent().unwrap_or(Path::new("")));
        let settled = file.settle_files(&beside);
        settled.map_err(|error| load::load_refusal(&error, &source))?;
        file.settle_stubs(&beside)?;
        let settled = file.settle_compose(&beside);
        settled.map_err(|refusal| source.experiment_error(&refusal, &refusal.hint))?;
        let shipped = file.settle_manifest(&beside);
        shipped.map_err(|refusal| source.experiment_error(&refusal, &refusal.hint))?;
        let mut experiment = Self::resolve(&file, &source)?;
        experiment.app.directory = match &file.app.directory {
            Some(directory) => join_inside(&beside, directory),
            None => called_in.to_owned(),
        };
        Ok(experiment)
    }

    /// Reads the text of a record, which is untrusted data: opens none of the named files. A stored
    /// experiment is complete, because its files were embedded. Its own directory is relative to
    /// `directory`.
    pub fn from_record_text(
        text: &str,
        name: &Path,
        directory: &Path,
    ) -> Result<Self, ExperimentError> {
        let file = ExperimentFile::from_toml(text, name)?;
        let source = error::ExperimentSource::from_file(text, name);
        let mut experiment = Self::resolve(&file, &source)?;
        let own = file.app.directory.as_deref().unwrap_or(Path::new(""));
        experiment.app.directory = join_inside(directory, own);
        Ok(experiment)
    }

    /// Checks an experiment made from flags, called in a directory; `under` is the text and path
    /// of the experiment file that they lie over.
    pub fn from_flags(
        file: &ExperimentFile,
        under: Option<(&str, &Path)>,
        called_in: &Path,
    ) -> Result<Self, ExperimentError> {
        let mut experiment = Self::resolve(file, &error::ExperimentSource::over_flags(under))?;
        let directory = file.app.directory.as_deref();
        experiment.app.directory = join_inside(called_in, directory.unwrap_or(Path::new("")));
        Ok(experiment)
    }

    /// Those that are listed, else every combination of the factors' levels, the last factor
    /// varying fastest.
    pub fn configurations(&self) -> Vec<Configuration> {
        let mut all = self.combined_levels();
        for configuration in &mut all {
            if let Some(cpu) = configuration
                .cpu
                .filter(|_| configuration.start_cpu.is_some())
            {
                configuration.pin_cpu_count(cpu);
            }
        }
        all
    }

    fn combined_levels(&self) -> Vec<Configuration> {
        if !self.listed.is_empty() {
            return self.listed.clone();
        }
        let mut all = vec![self.base.clone()];
        for factor in &self.factors {
            let step = |base: &Configuration| {
                let base = base.clone();
                factor
                    .levels
                    .iter()
                    .map(move |level| level.apply(&base))
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(step).collect();
        }
        if let [only] = all.as_mut_slice()
            && only.label.is_empty()
        {
            only.label = "as given".to_owned();
        }
        all
    }
}

/// Without `.` segments: a trial mounts each directory of the path separately.
fn join_inside(base: &Path, directory: &Path) -> PathBuf {
    base.join(directory).components().collect()
}

impl ExperimentFile {
    /// Longest text that is read, in bytes.
    pub const LARGEST: usize = 1 << 20;

    /// Parses TOML; unknown keys and wrong types are refused with their line.
    /// Errors: [`ExperimentError`] with file, line and the nearest known key.
    pub fn from_toml(text: &str, path: &Path) -> Result<Self, ExperimentError> {
        let source = error::ExperimentSource::from_file(text, path);
        if text.len() > Self::LARGEST {
            return Err(source.experiment_error(
                "the file is larger than 1 MiB",
                "an experiment is a page of text; is this the right file?",
            ));
        }
        toml::from_str(text).map_err(|e| source.syntax_error(&e))
    }

    /// Makes the paths of files and references absolute, and embeds the load profile; all are
    /// relative to `base`. Errors: [`loadline_load::LoadError`] when the load profile cannot be read.
    pub fn settle_files(&mut self, base: &Path) -> Result<(), LoadError> {
        self.load.resolve_files(base)?;
        references::settle_references(&mut self.app.env, base);
        for dependency in &mut self.dependency {
            references::settle_references(&mut dependency.env, base);
            if let Some(directory) = &mut dependency.directory {
                *directory = base.join(&*directory);
            }
            for toxic in &mut dependency.toxic {
                let recorded = toxic.recorded.as_ref();
                toxic::settle_recorded(recorded, &mut toxic.histogram, base)?;
            }
        }
        Ok(())
    }

    /// The experiment as a file says it.
    /// Errors: When a text cannot be written as TOML, which no parsed experiment has.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string_pretty(self)
    }

    /// The JSON schema of the file, for editors and the reference.
    pub fn schema() -> String {
        let settings = SchemaSettings::default().with_transform(RecursiveTransform(without_nulls));
        let schema = settings.into_generator().into_root_schema_for::<Self>();
        serde_json::to_string_pretty(schema.as_value()).unwrap_or_default()
    }
}

/// A key that is left out has no value: a default of null would say no more.
fn without_nulls(schema: &mut Schema) {
    match schema.get_mut("default") {
        Some(Value::Object(keys)) => keys.retain(|_, value| !value.is_null()),
        Some(Value::Null) => drop(schema.remove("default")),
        _ => {}
    }
}
