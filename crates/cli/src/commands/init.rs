//! `loadline init`: writes `loadline.toml` for the project in a directory, and says what it is from.

use std::path::{Path, PathBuf};

use clap::Args;
use loadline_experiment::project::{Project, ProjectOverrides, StartMethod};

use crate::error::{CommandOutcome, Error};
use crate::say::print_data;
use crate::{called, files};

pub use crate::experiment::USUAL_FILE as FILE;

#[derive(Args)]
pub struct InitArguments {
    /// The project's directory
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Image to start [default: the jar that was built, else the manifest's image]
    #[arg(long, value_name = "REF", conflicts_with = "command", value_parser = super::emit::parse_image_name)]
    image: Option<String>,
    /// The request: a path such as /owners?lastName=Da, or a URL [default: the readiness path]
    #[arg(long, value_name = "PATH|URL")]
    url: Option<String>,
    /// Path that answers once the application is ready, e.g. /health or :9001/health [default: the
    /// manifest's probe, or the path of the health library that the build names]
    #[arg(long, value_name = "PATH")]
    ready: Option<String>,
    /// Requests a second [default: 50/s]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Service-level objectives [default: p99<250ms,errors<1%]
    #[arg(long, value_name = "SLO")]
    slo: Option<String>,
    /// CPU limit, if no manifest sets one [default: 1]
    #[arg(long, value_name = "CPUS")]
    cpu: Option<String>,
    /// Memory limit, if no manifest sets one [default: 512Mi]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Manifest that deploys the application, relative to DIR [default: the only manifest with a
    /// JVM]
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
    /// File to write; - is standard output [default: loadline.toml in DIR]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the file instead of writing it
    #[arg(long, conflicts_with = "output")]
    dry_run: bool,
    /// The application is a job that ends [default: if its manifest is a Job or CronJob]
    #[arg(long)]
    job: bool,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// The application's command, after --; relative to DIR
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub fn run(arguments: &InitArguments) -> Result<CommandOutcome, Error> {
    let directory = &arguments.directory;
    if !directory.is_dir() {
        let what = if directory.exists() {
            format!("{} is a file", directory.display())
        } else {
            format!("there is no directory {}", directory.display())
        };
        return Err(Error::usage(what).with_hint("give the service's own directory"));
    }
    let is_printed = arguments.dry_run || arguments.output.as_deref() == Some(Path::new("-"));
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None if directory == Path::new(".") => PathBuf::from(FILE),
        None => directory.join(FILE),
    };
    if !is_printed && path.symlink_metadata().is_ok() && !arguments.force {
        let what = format!("{} already exists", path.display());
        return Err(Error::usage(what)
            .with_hint("--force overwrites it, --dry-run shows what would be written"));
    }
    let project = Project::inspect_directory(directory, &project_flags(arguments));
    let project = project.map_err(Error::from_wrong_input)?;
    let text = project.to_toml();
    check_experiment(&text, directory)?;
    for line in project.describe_guesses() {
        talk!("{line}");
    }
    for what in &project.left_out {
        say!("not taken: {what}");
    }
    if is_printed {
        print_data(&text)?;
        return Ok(CommandOutcome::Done);
    }
    files::write(&path, &text)?;
    talk!("wrote {}; next: loadline size", path.display());
    Ok(CommandOutcome::Done)
}

fn project_flags(arguments: &InitArguments) -> ProjectOverrides {
    let command = (!arguments.command.is_empty()).then(|| arguments.command.clone());
    let image = arguments.image.clone().map(StartMethod::Image);
    ProjectOverrides {
        starts: command.map(StartMethod::Command).or(image),
        url: arguments.url.clone(),
        ready: arguments.ready.clone(),
        rate: arguments.rate.clone(),
        slo: arguments.slo.clone(),
        cpu: arguments.cpu.clone(),
        memory: arguments.memory.clone(),
        manifest: arguments.manifest.clone(),
        ends: arguments.job,
    }
}

/// The output is an experiment: a flag that makes it invalid is refused here.
fn check_experiment(text: &str, directory: &Path) -> Result<(), Error> {
    let path = directory.join(FILE);
    let here = called::working_directory()?;
    let parsed = loadline_experiment::Experiment::from_file_text(text, &path, &here);
    parsed.map(|_| ()).map_err(Error::from)
}
