//! `verify --tune`: the search for the smallest memory that the service needs now, and the patch.

use std::path::{Path, PathBuf};

use loadline_experiment::{ExperimentFile, shipped};
use loadline_report::verified::{VerifyAnswer, VerifyStatement};
use loadline_runner::store::ResultKind;

use crate::commands::{emit, size};
use crate::error::{CommandOutcome, Error};
use crate::experiment::LoadedExperiment;
use crate::measuring::{MeasureFlags, MeasuringSession};
use crate::output::{AnswerPrinter, OutputFlags};

pub struct TunePlan {
    given: LoadedExperiment,
    manifest: Option<PatchTarget>,
}

struct PatchTarget {
    path: PathBuf,
    workload: String,
    container: String,
}

impl TunePlan {
    /// Errors: A manifest that cannot be read.
    pub fn from_experiment(given: &LoadedExperiment, path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::usage)?;
        let written = ExperimentFile::from_toml(&text, path)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        let manifest = written.manifest.map(|table| {
            let file = beside.join(&table.file);
            let found = shipped::find_workload_container(&file, &table);
            found.map(|(workload, container)| PatchTarget {
                path: file,
                workload,
                container,
            })
        });
        let manifest = manifest.transpose().map_err(Error::from_wrong_input)?;
        Ok(Self {
            given: given.clone(),
            manifest,
        })
    }
}

/// Searches if there is reason to, and writes the patch. Errors: The search's and the files'.
pub fn tune(
    plan: TunePlan,
    statement: &VerifyStatement,
    flags: &MeasureFlags,
    to: &Path,
    out: &mut AnswerPrinter,
) -> Result<(), Error> {
    let needs_more =
        statement.answer == VerifyAnswer::SloMissed || statement.memory_bytes.rose == Some(true);
    let has_too_much = statement.holds_too_well == Some(true);
    if statement.answer == VerifyAnswer::NotMeasured {
        return Ok(());
    }
    if !needs_more && !has_too_much {
        let why = match statement.answer {
            VerifyAnswer::Worse => "it takes more CPU, which no memory limit can fix",
            _ => "the shipped size holds, and little can be saved",
        };
        say!("nothing to tune: {why}");
        return Ok(());
    }
    talk!("searching for the size that it needs now");
    let measuring = MeasuringSession::begin_result(plan.given, ResultKind::Size, flags)?;
    let result = measuring.result.clone();
    let ended = size::run_size_search(measuring, &OutputFlags::default(), out)?;
    if ended == CommandOutcome::SloMissed {
        say!("no patch is written: the search proved no size");
        return Ok(());
    }
    match plan.manifest {
        Some(manifest) => {
            let target = (manifest.workload, manifest.container);
            let (result, to) = ((result, flags.state.clone()), to.to_owned());
            let arguments = emit::EmitArguments::for_patch(result, manifest.path, target, to);
            emit::run(arguments, out)?;
        }
        None => talk!(
            "write the new size into [limits]; --tune writes a patch if the experiment names its manifest"
        ),
    }
    talk!("then: loadline verify --accept");
    Ok(())
}
