//! `loadline plan`: what would run, how long it takes and whether it can, before anything runs. The
//! JSON form is in [`json`].

pub mod json;
pub mod outlook;

use std::path::Path;

use clap::{Args, ValueEnum};
use loadline_cgroup::host::MachineMemory;
use loadline_experiment::{Experiment, PricingTerms};
use loadline_report::format::{count_of, measured_bytes};
use loadline_report::table::{Table, TableCell};
use loadline_runner::agenda::{Agenda, trial_length};
use loadline_runner::searches::{bases, lattice_on_machine};

use super::size::TOGETHER;
use crate::enough;
use crate::error::{CommandOutcome, Error};
use crate::experiment::{
    ExperimentFlags, ExtraFlags, LoadedExperiment, MatrixFlags, SearchFlags, load_experiment,
};
use crate::measuring::can_plan;
use crate::output::AnswerPrinter;
use crate::say::{one_line_json, width};
use crate::ui::text::format_span;

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum PlannedCommand {
    Size,
    Run,
}

#[derive(Args)]
pub struct PlanArguments {
    #[arg(long, value_enum, hide = true)]
    of: Option<PlannedCommand>,
    #[command(flatten)]
    flags: ExperimentFlags,
    #[command(flatten)]
    matrix: MatrixFlags,
    #[command(flatten)]
    search: SearchFlags,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Where results are kept; the estimate uses how long earlier starts of this application took
    #[arg(long, value_name = "DIR")]
    state: Option<std::path::PathBuf>,
}

pub fn run(arguments: PlanArguments, out: &mut AnswerPrinter) -> Result<CommandOutcome, Error> {
    let more = ExtraFlags {
        search: Some(&arguments.search),
        matrix: Some(&arguments.matrix),
    };
    let mut given = load_experiment(&arguments.flags, more)?;
    let is_search = match arguments.of {
        Some(of) => of == PlannedCommand::Size,
        None => !arguments.matrix.is_given() && is_search(&given),
    };
    if is_search && arguments.matrix.is_given() {
        let problem = "--memory and --repeats: `size` takes neither";
        let hint = "bound its search with --max-memory, or plan `run`: loadline plan run ...";
        return Err(Error::usage(problem).with_hint(hint));
    }
    if is_search {
        given = given.with_chosen_cpu()?;
    }
    can_plan(&mut given.experiment, is_search)?;
    for doubt in beyond_this_machine(&given.experiment) {
        say!("warning: {doubt}");
    }
    let text = plan_text(&given, &arguments, is_search)?;
    out.print_answer(&text)?;
    Ok(CommandOutcome::Done)
}

fn plan_text(
    given: &LoadedExperiment,
    arguments: &PlanArguments,
    is_search: bool,
) -> Result<String, Error> {
    let experiment = &given.experiment;
    if let Some(pricing) = &experiment.search.pricing {
        return deployments(experiment, pricing, arguments.json);
    }
    if is_search {
        enough::check_request_count(experiment)?;
        for note in enough::notes(given, TOGETHER) {
            talk!("{note}");
        }
        let told = outlook::outlook_from_state(experiment, arguments.state.as_deref());
        return if arguments.json {
            one_line_json(&json::PlanDocument::for_search(&told, bases(experiment)))
        } else {
            Ok(outlook::search_text(experiment, &told))
        };
    }
    let agenda = Agenda::new(experiment).on_machine(enough::trial_cpus(experiment));
    if arguments.json {
        one_line_json(&json::PlanDocument::for_matrix(&agenda))
    } else {
        Ok(agenda_text(&agenda))
    }
}

/// What is asked for and is not here; a trial would refuse it, or measure something else.
fn beyond_this_machine(experiment: &Experiment) -> Vec<String> {
    let cpus = enough::missing_cpus(experiment);
    let configurations = experiment.configurations();
    let most = configurations.iter().filter_map(|c| c.memory);
    let most = most.chain(experiment.search.max_memory).max();
    let machine = MachineMemory::read(Path::new("/proc")).ok();
    let total = machine
        .filter(|_| experiment.cluster.is_none())
        .map(|m| m.total);
    let beyond = most.zip(total).filter(|(most, total)| most > total);
    let memory = beyond.map(|(most, total)| {
        let total = measured_bytes(total);
        format!("{most} is more than the {total} of this machine: such a trial is refused")
    });
    cpus.into_iter().chain(memory).collect()
}

/// Whether the experiment asks for a search: it says how to search, or there is nothing to compare
/// and no memory to measure with.
fn is_search(given: &LoadedExperiment) -> bool {
    let experiment = &given.experiment;
    let configurations = experiment.configurations();
    let is_one = matches!(configurations.as_slice(), [one] if one.memory.is_none());
    given.file.search != Default::default() || (is_one && experiment.repeats == 1)
}

fn agenda_text(agenda: &Agenda) -> String {
    let mut table = Table::new()
        .right("#")
        .left("configuration")
        .right("cpu | memory")
        .left("jdk")
        .wrapping("JVM options");
    for (i, trial) in agenda.matrix.cells.iter().enumerate() {
        let c = &trial.configuration;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let options: Vec<&str> = c.jvm_options.iter().map(|o| o.text.as_str()).collect();
        let label = match trial.repeat {
            repeat if repeat > 1 => format!("{} #{repeat}", c.label),
            _ => c.label.clone(),
        };
        table.add_row([
            TableCell::from((i + 1).to_string()),
            TableCell::from(label),
            TableCell::from(or_none(c.cpu.map(|c| c.to_string()))),
            TableCell::from(or_none(c.memory.map(|m| m.to_string()))),
            TableCell::from(or_none(c.jdk.clone())),
            TableCell::from(options.join(" ")),
        ]);
    }
    let ladders = if agenda.matrix.cells.iter().any(|t| t.ladder.is_some()) {
        "at most "
    } else {
        ""
    };
    let total = format!(
        "`run`: {ladders}{}, about {} each, {ladders}{} in all",
        count_of(agenda.matrix.cells.len(), "trial"),
        format_span(agenda.each),
        format_span(agenda.matrix_length())
    );
    let left_out = agenda.left_out.iter();
    let left_out = left_out.map(|(label, why)| format!("\nleft out: {label}: {why}"));
    let left_out: String = left_out.collect();
    format!("{}\n{total}{left_out}", table.to_terminal(width()))
}

/// Trials of a search, as simulated searches need them: crate simulated, `tests/cheapest_truth.rs`.
const TRIALS_OF_A_SEARCH: u32 = 40;

fn deployments(
    experiment: &Experiment,
    pricing: &PricingTerms,
    as_json: bool,
) -> Result<String, Error> {
    let variants = bases(experiment);
    let cpus = enough::trial_cpus(experiment);
    let ground = lattice_on_machine(experiment, pricing, &variants, cpus, None);
    let parameters = &pricing.parameters;
    let each = trial_length(experiment);
    let guess = each * TRIALS_OF_A_SEARCH * variants.len() as u32;
    let longest = pricing.budget.map_or(guess, |budget| budget.min(guess));
    if as_json {
        let (each, longest) = (each.as_secs_f64(), longest.as_secs_f64());
        return one_line_json(&json::PlanDocument::for_deployments(&ground, each, longest));
    }
    let mut table = Table::new().right("CPU | memory | $/month of one");
    for cell in ground.cells.iter().filter(|c| c.variant == 0) {
        table.add_texts([
            cell.size.cpu.to_string(),
            cell.size.memory.to_string(),
            format!("{:.2}", cell.per_hour * 730.0),
        ]);
    }
    let fewest = parameters.min_replicas.max(parameters.spare + 1);
    let mut lines = vec![
        table.to_terminal(width()).trim_end().to_owned(),
        format!(
            "{} sizes, {} variants; {} to {} replicas: one instance at {:.1}/s down to {:.1}/s",
            ground.cells.len() / variants.len().max(1),
            variants.len(),
            fewest,
            parameters.max_replicas,
            parameters.rate_of_each(fewest),
            parameters.rate_of_each(parameters.max_replicas),
        ),
        format!(
            "about {} each; a search takes about {TRIALS_OF_A_SEARCH} trials a variant, most are spared: about {}{}",
            format_span(each),
            format_span(longest),
            if pricing.budget.is_some_and(|b| b < guess) {
                ", the budget; the result names what that leaves out"
            } else {
                ""
            },
        ),
    ];
    let left_out = ground.left_out.iter();
    lines.extend(left_out.map(|line| format!("left out: {line}")));
    Ok(lines.join("\n"))
}
