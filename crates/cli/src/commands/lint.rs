//! `loadline lint`: manifests checked on paper. The rules are [`super::judge::paper`]'s.

use std::path::PathBuf;

use clap::Args;
use loadline_sizing::Bytes;

use super::judge::paper::PaperCheck;
use super::judge::{measured_figures, measured_view, offer};
use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;
use crate::say::one_line_json;

#[derive(Args)]
pub struct LintArguments {
    /// Kubernetes manifests: files, directories, or - for standard input; with --memory also
    /// gradle.properties, jvm.config and pom.xml
    #[arg(value_name = "FILE", required = true)]
    manifest: Vec<PathBuf>,

    /// Memory of the runner or container that a build runs in; the heaps in gradle.properties,
    /// .mvn/jvm.config and pom.xml are added up and compared with it
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,

    /// A result of this application, or a file written by `export`: its start time and memory are
    /// compared with the manifest
    #[arg(long, value_name = "RESULT")]
    measured: Option<String>,

    /// Offer that sets the prices
    #[arg(long, value_name = "OFFER", default_value = "fargate")]
    prices: String,

    /// Where results are kept
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: LintArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let measured = measured_view(arguments.measured.as_deref(), arguments.state.as_deref())?;
    let offer = offer(&arguments.prices)?;
    let given = (measured_figures(measured.as_ref()), arguments.memory);
    let paper = PaperCheck::check_manifests(&arguments.manifest, given, offer)?;
    out.print_answer(&if arguments.json {
        one_line_json(&paper.to_document())?
    } else {
        paper.to_text()
    })?;
    Ok(paper.outcome())
}
