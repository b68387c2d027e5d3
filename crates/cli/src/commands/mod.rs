//! The subcommands, one file each: its arguments with their help, and what it does.

mod cache;
mod compare;
mod doctor;
mod drill;
mod emit;
mod explain;
mod fleet;
mod footprint;
mod gc;
pub mod help;
mod init;
mod judge;
mod lint;
mod load;
mod merge;
mod pages;
mod parts;
mod plan;
mod pod_part;
mod predict;
mod profile;
pub mod resume;
mod run;
mod schema;
mod serve;
mod show;
mod size;
mod soak;
mod store;
mod verify;

use clap::Subcommand;

use crate::error::{CommandOutcome, Error};
use crate::output::AnswerPrinter;

/// All subcommands; the help groups them (`help`).
#[derive(Subcommand)]
pub enum LoadlineCommand {
    /// Show what this machine can measure, and what to fix
    Doctor(doctor::DoctorArguments),
    /// Write loadline.toml for the project in this directory, from the files in it
    Init(init::InitArguments),
    /// Check that the shipped size still keeps the SLO and costs no more than before
    Verify(verify::VerifyArguments),
    /// Find the smallest memory that keeps the SLO, and prove it
    Size(size::SizeArguments),
    /// Run a recommended size for hours and report what grows
    Soak(soak::SoakArguments),
    /// Run every configuration of an experiment
    Run(run::RunArguments),
    /// Take a dependency away under load and report how the application copes
    Drill(run::RunArguments),
    /// Check manifests on paper: limits, requests, JVM options, probes
    Lint(lint::LintArguments),
    /// Run advice from a manifest or a rule under the same SLO
    Judge(judge::JudgeArguments),
    /// Show what would run and how long it takes
    ///
    /// `loadline plan size ...` and `loadline plan run ...` name the command; otherwise the flags and
    /// the file decide.
    Plan(plan::PlanArguments),
    /// Show which workloads of a cluster to measure first, from Prometheus data
    Fleet(fleet::FleetArguments),
    /// Send HTTP load to a URL and measure the latency
    Load(load::LoadArguments),
    /// Turn access logs into a load profile to replay
    Profile(profile::ProfileArguments),
    /// Combine the results of a load that was sent in parts
    Merge(merge::MergeArguments),
    /// Explain why a trial paused: collection, CPU throttling or something else
    Explain(explain::ExplainArguments),
    /// Build and verify a start-up cache: AppCDS, the AOT cache of JDK 25, or OpenJ9's
    Cache(cache::CacheArguments),
    /// Summarise HotSpot and OpenJ9 GC logs: pauses, heap, CPU, safepoints, what stands out
    ///
    /// Reads HotSpot's unified logs (JDK 9 and later) and classic logs (JDK 8 and earlier) of every
    /// collector, and OpenJ9's verbose GC logs, plain or gzip. Files that differ only in a rotation
    /// number are one log.
    Gc(gc::GcArgs),
    /// Show what the JVM would choose under given limits
    Predict(predict::PredictArguments),
    /// Show where a running JVM's memory goes, and write the launcher's profile
    Footprint(footprint::FootprintArguments),
    /// Continue a run that was stopped
    Resume(resume::ResumeArguments),
    /// List results
    List(store::ListArguments),
    /// Show a result or a trial
    Show(show::ShowArguments),
    /// Show the current run, all results and their trends in a browser
    Serve(serve::ServeArguments),
    /// Write a result's report as one offline HTML file
    Report(store::ReportArguments),
    /// Write the files that ship a recommendation: options, Dockerfile, Compose, Kubernetes
    Emit(emit::EmitArguments),
    /// Show what changed between two results
    ///
    /// Exit code 1 if the second is worse: it costs more (if both have prices from one offer), needs
    /// more CPU or memory, or breaks an SLO that the first kept; 4 if they cannot be compared: a
    /// different SLO, load or machine, or one measured nothing.
    Compare(compare::CompareArguments),
    /// Export a result as JSON, CSV, Parquet, JUnit XML or Markdown
    Export(store::ExportArguments),
    /// Print the JSON schema of a command's --json output
    Schema(schema::SchemaArguments),
    /// Remove leftovers of a killed loadline and, with --older, old results
    ///
    /// Leftovers are cgroups, containers and files of trials; with --kubernetes, Jobs in a cluster.
    /// Results stay, except those selected by --older.
    Clean(store::clean::CleanArguments),
    /// The first processes of a trial; started by loadline itself.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    InitPart,
    /// One load generator process of a trial; started by loadline itself.
    #[command(hide = true)]
    LoadPart,
    /// The dependencies that trials share; started by loadline itself.
    #[command(hide = true)]
    KeeperPart,
    /// The proxy before the dependencies of a trial; started by loadline itself.
    #[command(hide = true)]
    ProxyPart,
    /// One whole trial; started by loadline itself.
    #[command(hide = true)]
    TrialPart,
    /// Print completions for a shell: bash, zsh, fish, elvish, powershell
    Completion(pages::CompletionArguments),
    /// Man pages and completions; called by the chore that makes releases.
    #[command(hide = true)]
    Pages(pages::PagesArguments),
    /// One whole trial in a pod of Kubernetes; started by loadline itself.
    #[command(hide = true)]
    PodPart(pod_part::PodPartArguments),
    /// A look from inside an image in a pod of Kubernetes; started by loadline itself.
    #[command(hide = true)]
    PodLook(pod_part::PodLookArguments),
    /// A load generator in a pod of Kubernetes; started by loadline itself.
    #[command(hide = true)]
    PodGenerator(pod_part::PodGeneratorArguments),
    /// The busy neighbour of a trial; started by loadline itself.
    #[command(hide = true)]
    Neighbour(parts::NeighbourArguments),
}

pub fn run(command: LoadlineCommand, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    match command {
        LoadlineCommand::Doctor(arguments) => doctor::run(arguments, out),
        LoadlineCommand::Init(arguments) => init::run(&arguments),
        LoadlineCommand::Verify(arguments) => verify::run(arguments, out),
        LoadlineCommand::Size(arguments) => size::run(arguments, out),
        LoadlineCommand::Soak(arguments) => soak::run(arguments, out),
        LoadlineCommand::Run(arguments) => run::run(arguments, out),
        LoadlineCommand::Drill(arguments) => drill::run(arguments, out),
        LoadlineCommand::Lint(arguments) => lint::run(arguments, out),
        LoadlineCommand::Judge(arguments) => judge::run(arguments, out),
        LoadlineCommand::Plan(arguments) => plan::run(arguments, out),
        LoadlineCommand::Fleet(arguments) => fleet::run(&arguments),
        LoadlineCommand::Cache(arguments) => cache::run(arguments),
        LoadlineCommand::Load(arguments) => load::run_load(&arguments, out),
        LoadlineCommand::Profile(arguments) => profile::run(&arguments),
        LoadlineCommand::Merge(arguments) => merge::run(&arguments, out),
        LoadlineCommand::Resume(arguments) => resume::run(arguments, out),
        LoadlineCommand::List(arguments) => store::list_results(arguments, out),
        LoadlineCommand::Show(arguments) => show::run(arguments, out),
        LoadlineCommand::Serve(arguments) => serve::run(&arguments),
        LoadlineCommand::Report(arguments) => store::write_report(arguments),
        LoadlineCommand::Emit(arguments) => emit::run(arguments, out),
        LoadlineCommand::Compare(arguments) => compare::run(&arguments, out),
        LoadlineCommand::Export(arguments) => store::export(arguments),
        LoadlineCommand::Schema(arguments) => schema::run(&arguments, out),
        LoadlineCommand::Clean(arguments) => store::clean::run(arguments, out),
        LoadlineCommand::Explain(arguments) => explain::run(&arguments, out),
        LoadlineCommand::Gc(arguments) => gc::run(&arguments, out),
        LoadlineCommand::Predict(arguments) => predict::run(&arguments, out),
        LoadlineCommand::Footprint(arguments) => footprint::run(&arguments),
        #[cfg(target_os = "linux")]
        LoadlineCommand::InitPart => parts::run_init(),
        LoadlineCommand::LoadPart => parts::run_load(),
        LoadlineCommand::KeeperPart => parts::run_keeper(),
        LoadlineCommand::ProxyPart => parts::run_proxy(),
        LoadlineCommand::TrialPart => parts::run_trial(),
        LoadlineCommand::Completion(arguments) => pages::complete_shell(&arguments),
        LoadlineCommand::Pages(arguments) => pages::run(&arguments),
        LoadlineCommand::PodPart(arguments) => pod_part::run(arguments),
        LoadlineCommand::PodLook(arguments) => pod_part::inspect_image(arguments),
        LoadlineCommand::PodGenerator(arguments) => pod_part::generate(arguments),
        LoadlineCommand::Neighbour(arguments) => parts::keep_busy(&arguments),
    }
}
