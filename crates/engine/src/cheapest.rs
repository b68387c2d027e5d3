//! `size --prices`: the cheapest size times replicas that carries the rate, proven.
//!
//! Owns the driving of the search: which configuration a question becomes, what does not fit this
//! machine, and when the budget ends. The rules are `loadline_analysis::search::cheapest`'s. One
//! instance runs at a time, at its share of the rate: replicas do not share a machine.

use std::collections::HashMap;
use std::time::Duration;

use loadline_analysis::deployment::Asked;
use loadline_analysis::price::Size;
use loadline_analysis::record::{Configuration, Purpose};
use loadline_analysis::search::Outcome;
use loadline_analysis::search::cheapest::{Ask, Cheapest, End, Step};
use loadline_analysis::search::lattice::Cell;
use loadline_sizing::hotspot::collector::{SERVER_CLASS_CPUS, SERVER_CLASS_MEMORY};
use loadline_sizing::{Bytes, Cpus};

use crate::experiment::{Experiment, Pricing};
use crate::plan::trial_length;
use crate::session::{Session, SessionError};

/// Share of the machine's memory that a container may get: the rest is for everybody else.
const USABLE_MEMORY: (u64, u64) = (4, 5);

/// A search that ended, or whose budget did.
#[derive(Debug)]
pub struct Searched {
    /// The search at its end.
    pub search: Cheapest,
    /// How it ended.
    pub end: End,
    /// Every trial, in order.
    pub asked: Vec<Asked>,
    /// What was left out before it began.
    pub left_out: Vec<String>,
}

/// The lattice of an experiment on a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Ground {
    /// The cells of every variant.
    pub cells: Vec<Cell>,
    /// What does not fit the machine.
    pub left_out: Vec<String>,
}

/// The cells that can be measured here: every size of the offer that fits the machine, for every
/// variant.
pub fn ground(
    experiment: &Experiment,
    pricing: &Pricing,
    variants: &[Configuration],
    cpus: u32,
    memory: Option<Bytes>,
) -> Ground {
    let largest = memory.map(|m| m.mul_ratio(USABLE_MEMORY.0, USABLE_MEMORY.1));
    let fits = |size: &Size| {
        size.cpu <= Cpus::from_whole(cpus) && largest.is_none_or(|largest| size.memory <= largest)
    };
    let sizes: Vec<Size> = pricing.offer.billables.iter().map(|b| b.limits).collect();
    let (fitting, too_large): (Vec<Size>, Vec<Size>) = sizes.into_iter().partition(fits);
    let cells = (0..).zip(variants).flat_map(|(variant, base)| {
        let is_pinned = names_collector(experiment, base);
        fitting.iter().map(move |size| Cell {
            size: *size,
            per_hour: pricing.offer.per_hour(*size),
            variant,
            regime: if is_pinned { 0 } else { regime(*size) },
        })
    });
    let left_out = too_large.first().map(|first| {
        format!(
            "{} of the offer's sizes do not fit this machine ({cpus} CPUs), from {first} on",
            too_large.len()
        )
    });
    Ground {
        cells: cells.collect(),
        left_out: left_out.into_iter().collect(),
    }
}

/// Runs the search.
///
/// # Errors
/// [`SessionError`]; what was finished is in the store and is not run again by the next call.
pub fn search(
    session: &mut Session<'_>,
    pricing: &Pricing,
    variants: &[Configuration],
) -> Result<Searched, SessionError> {
    let machine = session.backend.machine();
    let ground = ground(
        session.experiment,
        pricing,
        variants,
        machine.cpus,
        machine.memory,
    );
    let prove = session.experiment.search.prove;
    let mut search = Cheapest::new(ground.cells, pricing.parameters.clone(), prove);
    let mut repeats: HashMap<(usize, u32, Purpose), u32> = HashMap::new();
    let mut asked: Vec<Asked> = Vec::new();
    while let Step::Try(ask) = search.next() {
        let is_proof = ask.purpose == Purpose::Prove;
        let each = typical_length(session.experiment, &asked);
        if is_over(
            pricing.budget,
            session.spent,
            each,
            search.proofs_left(),
            is_proof,
        ) {
            if is_proof {
                break;
            }
            search.close();
            continue;
        }
        let repeat = repeats
            .entry((ask.cell, ask.replicas, ask.purpose))
            .or_default();
        *repeat += 1;
        let configuration = configuration(&search, variants, &ask);
        let record = session.trial(&configuration, ask.purpose, *repeat)?;
        search.record(Outcome::from(record.verdict));
        asked.push(Asked { ask, record });
    }
    Ok(Searched {
        end: search.end(),
        search,
        asked,
        left_out: ground.left_out,
    })
}

/// The configuration of one replica: the variant at a cell's size and its share of the rate.
pub fn configuration(search: &Cheapest, variants: &[Configuration], ask: &Ask) -> Configuration {
    let cell = search.lattice().cells()[ask.cell];
    let base = &variants[cell.variant as usize];
    let size = cell.size;
    let label = match base.label.as_str() {
        "" | "as given" => format!("{} {}", size.cpu, size.memory),
        label => format!("{label} {} {}", size.cpu, size.memory),
    };
    Configuration {
        label,
        cpu: Some(size.cpu),
        memory: Some(size.memory),
        rate: Some(ask.rate),
        ..base.clone()
    }
}

/// Length of one trial: the mean of those that ran, a guess before.
fn typical_length(experiment: &Experiment, asked: &[Asked]) -> Duration {
    let all: Duration = asked.iter().map(|a| a.record.length()).sum();
    match u32::try_from(asked.len()) {
        Ok(n) if n > 0 => all / n,
        _ => trial_length(experiment),
    }
}

/// Whether the budget has no room for one more trial. The search leaves room for the proof of what it
/// has found; while that is nothing, there is nothing to leave room for.
fn is_over(
    budget: Option<Duration>,
    spent: Duration,
    each: Duration,
    proofs_left: u32,
    is_proof: bool,
) -> bool {
    let reserve = if is_proof { 0 } else { proofs_left };
    budget.is_some_and(|budget| spent + each * (reserve + 1) > budget)
}

/// Whether the user names the collector: then it is the same at every size.
fn names_collector(experiment: &Experiment, base: &Configuration) -> bool {
    let names = |text: &str| {
        text.split_whitespace().any(|word| {
            word.strip_prefix("-XX:+Use")
                .is_some_and(|rest| rest.ends_with("GC"))
        })
    };
    let app = &experiment.app;
    let options = base.jvm_options.iter().map(|o| o.text.as_str());
    let texts = app
        .command
        .iter()
        .chain(base.args.iter())
        .map(String::as_str);
    let environment = app
        .env
        .values()
        .chain(base.env.values())
        .map(String::as_str);
    options.chain(texts).chain(environment).any(names)
}

/// HotSpot takes Serial below its server class, G1 from there on: capacity may fall at the border.
fn regime(size: Size) -> u32 {
    let is_server = size.cpu.ceil() >= SERVER_CLASS_CPUS && size.memory >= SERVER_CLASS_MEMORY;
    u32::from(is_server)
}
