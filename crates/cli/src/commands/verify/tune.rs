//! `verify --tune`: the search for the smallest memory from the shipped size on, and the patch.

use std::path::{Path, PathBuf};

use loadline_engine::experiment::{Experiment, ExperimentFile, Said, shipped};
use loadline_engine::store::ResultKind;
use loadline_report::verified::{Answer, Statement};

use crate::commands::{OutputFlags, emit, size};
use crate::error::{Error, ErrorKind, Outcome};
use crate::experiment::{Given, refused};
use crate::measuring::{MeasureFlags, Measuring};

/// What is searched, should it come to that.
pub struct Plan {
    given: Given,
    manifest: Option<Manifest>,
}

/// The container that the patch is for.
struct Manifest {
    path: PathBuf,
    workload: String,
    container: String,
}

impl Plan {
    /// The same experiment with a search that begins at its memory limit.
    ///
    /// # Errors
    /// Where nothing says what is shipped.
    pub fn of(given: &Given, path: &Path) -> Result<Self, Error> {
        let Some(memory) = given.experiment.base.memory else {
            return Err(Error::new(
                ErrorKind::Usage,
                "--tune searches from the memory limit that is shipped, and there is none",
            )
            .hint("name the manifest (manifest = \"deploy.yaml\") or write memory in [limits]"));
        };
        let text = std::fs::read_to_string(path).map_err(|e| Error::new(ErrorKind::Usage, e))?;
        let written = ExperimentFile::parse(&text, path).map_err(|e| refused(&e))?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let manifest = written.manifest.map(|table| {
            let file = beside.join(&table.file);
            let found = shipped::container(&file, &table);
            found.map(|(workload, container)| Manifest {
                path: file,
                workload,
                container,
            })
        });
        let manifest = manifest.transpose();
        let manifest = manifest.map_err(|r| Error::new(ErrorKind::Usage, &r).hint(&r.hint))?;
        let mut file = given.file.clone();
        file.search.begin = Some(Said::flag("--tune", memory.to_string()));
        let mut experiment: Experiment = given.experiment.clone();
        experiment.search.begin = Some(memory);
        let mut text = file.to_toml();
        let text = text
            .as_mut()
            .map(std::mem::take)
            .map_err(|e| Error::new(ErrorKind::Internal, e))?;
        Ok(Self {
            given: Given {
                experiment,
                text,
                file,
                title: given.title.clone(),
                lies_in: given.lies_in.clone(),
            },
            manifest,
        })
    }
}

/// Searches where there is reason to, and writes the patch.
///
/// # Errors
/// Those of the search and of the files.
pub fn tune(
    plan: Plan,
    statement: &Statement,
    flags: &MeasureFlags,
    to: &Path,
) -> Result<(), Error> {
    let needs_more =
        statement.answer == Answer::SloMissed || statement.memory_bytes.rose == Some(true);
    let has_too_much = statement.holds_too_well == Some(true);
    if statement.answer == Answer::NotMeasured {
        return Ok(());
    }
    if !needs_more && !has_too_much {
        let why = match statement.answer {
            Answer::Worse => "it takes more CPU, which no other memory limit cures",
            _ => "the shipped size holds, and not much of it could go",
        };
        eprintln!("nothing to tune: {why}");
        return Ok(());
    }
    talk!("searching from the shipped size on");
    let measuring = Measuring::begin(plan.given, ResultKind::Size, flags)?;
    let result = measuring.result.clone();
    let ended = size::sized(measuring, &OutputFlags::default())?;
    if ended == Outcome::SloMissed {
        eprintln!("no patch is written: the search proved no size");
        return Ok(());
    }
    match plan.manifest {
        Some(manifest) => {
            let arguments = emit::EmitArguments::patch(
                (result, flags.state.clone()),
                manifest.path,
                (manifest.workload, manifest.container),
                to.to_owned(),
            );
            emit::run(arguments)?;
        }
        None => talk!(
            "write the new size into [limits]; --tune writes a patch where the experiment names its manifest"
        ),
    }
    talk!("then: loadline verify --accept");
    Ok(())
}
