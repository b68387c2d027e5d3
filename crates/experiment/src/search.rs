//! The `[search]` table, from texts to types: sizes, proof, and what the search costs and buys.
//!
//! Owns the defaults of both searches of `loadline size`. Prices come with the program or with the
//! experiment, never from the network.

use std::time::Duration;

use loadline_analysis::budget::HeapPolicy;
use loadline_analysis::margin::default_margin;
use loadline_analysis::offer::{Offer, OfferError};
use loadline_analysis::price::InstanceSize;
use loadline_analysis::proof::DISTANT_STARTS;
use loadline_analysis::search::lattice::LatticeParameters;
use loadline_analysis::search::purchase::PricingTerms;
use loadline_analysis::search::size::cpu::CpuPolicy;
use loadline_analysis::warming::JvmQuestion;
use loadline_load::LoadModel;
use loadline_sizing::Bytes;

use super::checked::{Checked, check_cpu, check_given, check_memory};
use super::error::ExperimentSource;
use super::load::ExperimentLoad;
use super::said::{Text, ValueWithOrigin};
use super::wire::{LimitsTable, SearchTable};
use super::{ExperimentFactor, SearchSettings};

const CONFIRM: u32 = 2;
/// Fresh starts that prove a size where they are far from every bound.
const DEFAULT_PROVE: u32 = DISTANT_STARTS;
/// With prices many answers are refuted before one holds; a miss asks for more (`Cheapest`).
const PROVE_PRICED: u32 = 5;
/// Shorter soaks have too few lows to say anything: responses are counted once a second.
pub const SHORTEST_SOAK: Duration = Duration::from_secs(60);

const PAIRS: u32 = 6;

/// Most CPUs of a host that may be asked for: what the kernel can be built for.
const NODE_MAX: u32 = 8192;

const REPLICAS_MAX: u32 = 10_000;

pub(super) fn check_search(
    table: &SearchTable,
    limits: &LimitsTable,
    load: &ExperimentLoad,
    factors: &[ExperimentFactor],
    source: &ExperimentSource<'_>,
) -> Checked<SearchSettings> {
    let run_offer = check_run_offer(table, load, source)?;
    let pricing = match run_offer {
        Some(_) => None,
        None => check_pricing(table, &load.model, source)?,
    };
    if pricing.is_some() {
        free_sizes(limits, factors, source)?;
    }
    let size = |text: Option<&Text>, default| text.map_or(Ok(default), |t| check_memory(t, source));
    let soak = check_soak(table.soak.as_ref(), source)?;
    let budget = check_budget(table, soak, source)?;
    let search = SearchSettings {
        min_memory: size(table.min_memory.as_ref(), Bytes::from_mib(64))?,
        max_memory: check_given(&table.max_memory, |t| check_memory(t, source))?,
        step: size(table.step.as_ref(), Bytes::from_mib(4))?,
        confirm: source.in_range(table.confirm.as_ref(), CONFIRM, 1..101, "confirm")?,
        margin: table.margin.as_ref().map_or(Ok(default_margin()), |t| {
            check_percentage(t, "margin", source)
        })?,
        prove: table.prove.unwrap_or(if pricing.is_some() {
            PROVE_PRICED
        } else {
            DEFAULT_PROVE
        }),
        is_counted: table.prove.is_some() || pricing.is_some(),
        heap: heap_policy(table, pricing.is_some(), source)?,
        question: check_question(table.question.as_ref(), pricing.is_some(), source)?,
        soak,
        budget: budget.filter(|_| pricing.is_none()),
        node: check_node_cpus(table.node.as_ref(), source)?,
        pricing,
        run_offer,
        cpu_policy: cpu_policy(table.cpu_policy.as_ref(), source)?,
        is_cpu_asked: super::resolve::is_auto(limits.cpu.as_ref()),
        is_start_cpu_asked: super::resolve::is_auto(limits.start_cpu.as_ref()),
    };
    let largest = search.first_memory();
    if search.min_memory >= largest {
        let problem = format!(
            "the search range is empty: from {} to {largest}",
            search.min_memory
        );
        return Err(source.experiment_error(
            problem,
            format!(
                "raise it with --max-memory {}, or lower search.min-memory (--min-memory)",
                Bytes::from_bytes(search.min_memory.as_bytes().saturating_mul(2))
            ),
        ));
    }
    Ok(search)
}

fn cpu_policy(text: Option<&Text>, source: &ExperimentSource<'_>) -> Checked<CpuPolicy> {
    let Some(text) = text else {
        return Ok(CpuPolicy::default());
    };
    match text.as_str() {
        "limit" => Ok(CpuPolicy::Limit),
        "request" => Ok(CpuPolicy::Request),
        "both" => Ok(CpuPolicy::Both),
        other => {
            let hint = "limit gives a limit and a request of its size; request gives no limit; both gives each its own size; a request is measured next to a busy neighbour";
            Err(source.error_at(text, format!("`{other}` is not a CPU policy"), hint))
        }
    }
}

fn heap_policy(
    table: &SearchTable,
    is_priced: bool,
    source: &ExperimentSource<'_>,
) -> Checked<HeapPolicy> {
    let Some(text) = &table.heap else {
        return Ok(HeapPolicy::default());
    };
    if is_priced {
        let problem =
            "`heap` cannot be combined with `prices`, which compare options at the size found";
        let hint = "leave it out; --compare 6 tries heaps, and the application's own -Xmx stays";
        return Err(source.error_at(text, problem, hint));
    }
    let size = match text.as_str() {
        "auto" => return Ok(HeapPolicy::Auto),
        "keep" => return Ok(HeapPolicy::Keep),
        "grow" => return Ok(HeapPolicy::Grow),
        size => size.parse::<Bytes>().ok(),
    };
    let Some(heap) = size.filter(|size| *size >= Bytes::from_mib(1)) else {
        let problem = format!("`{text}` is not a heap");
        let hint = "auto chooses one, keep leaves it to the application, grow lets it give memory back; or write a size: 96m";
        return Err(source.error_at(text, problem, hint));
    };
    let largest = check_given(&table.max_memory, |text| check_memory(text, source))?;
    if let Some(largest) = largest.filter(|largest| *largest <= heap) {
        let problem = format!("a heap of {heap} does not fit a limit of {largest}");
        let hint = "give a smaller heap, or more memory (--max-memory)";
        return Err(source.error_at(text, problem, hint));
    }
    Ok(HeapPolicy::Fixed(heap))
}

fn check_question(
    text: Option<&Text>,
    is_priced: bool,
    source: &ExperimentSource<'_>,
) -> Checked<JvmQuestion> {
    let Some(text) = text else {
        return Ok(JvmQuestion::default());
    };
    let question = JvmQuestion::of_name(text).ok_or_else(|| {
        let problem = format!("`{text}` is not a question");
        let hint = "start judges fresh starts after the warm-up given, as after a deployment; steady lengthens the warm-up until the JVM is warm";
        source.error_at(text, problem, hint)
    })?;
    if is_priced && question != JvmQuestion::Start {
        let problem = "`question` cannot be combined with `prices`";
        let hint =
            "give the warm-up that a warm JVM needs (--warm-up 30s), and leave the question out";
        return Err(source.error_at(text, problem, hint));
    }
    Ok(question)
}

fn check_node_cpus(
    cpus: Option<&ValueWithOrigin<u32>>,
    source: &ExperimentSource<'_>,
) -> Checked<Option<u32>> {
    let Some(cpus) = cpus else { return Ok(None) };
    let checked = source.in_range(Some(cpus), 1, 1..NODE_MAX + 1, "node");
    checked.map(Some)
}

fn check_soak(text: Option<&Text>, source: &ExperimentSource<'_>) -> Checked<Option<Duration>> {
    let Some(text) = text else { return Ok(None) };
    let length = source.positive_time(Some(text), Duration::ZERO, "soak")?;
    if length < SHORTEST_SOAK {
        let problem = format!(
            "a soak of {text} is too short: it takes a minute to have enough lows to compare"
        );
        let hint = "30m finds fast leaks, 4h a leak that fills the limit in a week; 1m at least";
        return Err(source.error_at(text, problem, hint));
    }
    Ok(Some(length))
}

fn check_pricing(
    table: &SearchTable,
    load: &LoadModel,
    source: &ExperimentSource<'_>,
) -> Checked<Option<PricingTerms>> {
    let Some(named) = table.prices.as_ref().or(table.price_list.as_ref()) else {
        return without_prices(table, source).map(|()| None);
    };
    let Some(rate) = load.mean_rate() else {
        let hint = "give the rate of all replicas together: rate = \"300/s\" (--rate 300/s)";
        let problem = "the cheapest deployment needs a rate to carry";
        return Err(source.error_at(named, problem, hint));
    };
    let parameters = LatticeParameters {
        headroom: check_headroom(table, source)?,
        spare: table.spare.unwrap_or(0),
        ..LatticeParameters::new(rate)
    };
    let parameters = match &table.replicas {
        Some(text) => check_replicas(text, parameters, source)?,
        None => parameters,
    };
    if parameters.spare >= parameters.max_replicas {
        return Err(source.experiment_error(
            format!(
                "all of {} replicas may be lost: no replica is left to carry the rate",
                parameters.max_replicas
            ),
            "search.spare (--spare) must be below the most replicas (--replicas 2..16)",
        ));
    }
    let compare = table.compare.as_ref();
    Ok(Some(PricingTerms {
        offer: check_offer(table, named, source)?,
        parameters,
        compare: compare
            .map(|n| source.in_range(Some(n), PAIRS, PAIRS..101, "compare"))
            .transpose()?,
        budget: check_budget(table, None, source)?,
    }))
}

/// What a run is priced at: Fargate's list price unless an offer is named. `None` for a service.
fn check_run_offer(
    table: &SearchTable,
    load: &ExperimentLoad,
    source: &ExperimentSource<'_>,
) -> Checked<Option<Offer>> {
    if !load.is_absent() {
        return Ok(None);
    }
    let Some(named) = table.prices.as_ref().or(table.price_list.as_ref()) else {
        without_prices(table, source)?;
        let offer = Offer::built_in("fargate", None);
        return offer
            .map(Some)
            .map_err(|error| source.experiment_error(&error, error.offer_hint()));
    };
    let hint = "leave it out: a job is priced by the size and the time of its run";
    let of_replicas = [
        (table.replicas.is_some(), "replicas", hint),
        (table.spare.is_some(), "spare replicas", hint),
        (table.headroom.is_some(), "headroom", hint),
        (table.compare.is_some(), "compared options", hint),
    ];
    source.refuse_asked("the application is a job", &of_replicas)?;
    check_offer(table, named, source).map(Some)
}

/// The time for all trials. A soak has to fit into it.
fn check_budget(
    table: &SearchTable,
    soak: Option<Duration>,
    source: &ExperimentSource<'_>,
) -> Checked<Option<Duration>> {
    let Some(text) = &table.budget else {
        return Ok(None);
    };
    let budget = source.positive_time(Some(text), Duration::ZERO, "budget")?;
    if soak.is_some_and(|soak| budget <= soak) {
        let hint = "give it several minutes more than the soak, or leave one of the two out";
        let problem = format!("a budget of {text} has no room for the soak");
        return Err(source.error_at(text, problem, hint));
    }
    Ok(Some(budget))
}

fn check_headroom(table: &SearchTable, source: &ExperimentSource<'_>) -> Checked<f64> {
    let share = table.headroom.as_ref();
    share.map_or(Ok(0.0), |t| check_percentage(t, "headroom", source))
}

/// The load with the headroom added to its rate. With prices each size has its own rate.
pub(super) fn with_headroom(
    load: ExperimentLoad,
    (table, factors): (&SearchTable, &[ExperimentFactor]),
    source: &ExperimentSource<'_>,
) -> Checked<ExperimentLoad> {
    let Some(text) = table.headroom.as_ref() else {
        return Ok(load);
    };
    if table.prices.is_some() || table.price_list.is_some() {
        return Ok(load);
    }
    let share = check_headroom(table, source)?;
    let levels = factors.iter().flat_map(|factor| &factor.levels);
    let is_varied = levels.into_iter().any(|level| level.change.rate.is_some());
    match load.model.mean_rate().filter(|_| !is_varied) {
        Some(rate) => Ok(ExperimentLoad {
            model: load.model.at_rate(rate * (1.0 + share)),
            ..load
        }),
        None => Err(source.error_at(
            text,
            "headroom is a share of the rate, but the load has no rate, or several",
            "give one: rate = \"100/s\" (--rate 100/s), or leave headroom out",
        )),
    }
}

fn without_prices(table: &SearchTable, source: &ExperimentSource<'_>) -> Checked<()> {
    let given = [
        ("region", table.region.is_some()),
        ("sizes", !table.sizes.is_empty()),
        ("replicas", table.replicas.is_some()),
        ("compare", table.compare.is_some()),
        ("spare", table.spare.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(source.experiment_error(
            format!("{name} (--{name}) needs prices"),
            "add prices = \"fargate\" (--prices fargate), or leave it out",
        )),
        None => Ok(()),
    }
}

/// Refuses levels of what the search chooses: they would be ignored silently, and two variants
/// would be one configuration.
fn free_sizes(
    limits: &LimitsTable,
    factors: &[ExperimentFactor],
    source: &ExperimentSource<'_>,
) -> Checked<()> {
    let levels = || factors.iter().flat_map(|f| &f.levels).map(|l| &l.change);
    if levels().any(|c| c.application.is_some()) {
        let problem = "a level runs another application, but with prices only one is sized";
        let hint =
            "leave its command or image out, and search the price of each application separately";
        return Err(source.experiment_error(problem, hint));
    }
    let sizes = "give the sizes to choose from: sizes = [\"0.5/1Gi\"] (--sizes 0.5/1Gi)";
    let chosen = [
        (
            "cpu",
            limits.cpu.is_some() || levels().any(|c| c.cpu.is_some()),
            sizes,
        ),
        (
            "memory",
            limits.memory.is_some() || levels().any(|c| c.memory.is_some()),
            sizes,
        ),
        (
            "rate",
            levels().any(|c| c.rate.is_some()),
            "search for each rate separately: --rate 300/s is that of all replicas together",
        ),
    ];
    match chosen.iter().find(|(_, is_given, _)| *is_given) {
        Some((name, _, hint)) => Err(source.experiment_error(
            format!("{name} is given, but with prices the search chooses it"),
            format!("leave it out; {hint}"),
        )),
        None => Ok(()),
    }
}

fn check_offer(table: &SearchTable, named: &Text, source: &ExperimentSource<'_>) -> Checked<Offer> {
    let region = table.region.as_deref().map(String::as_str);
    let found = match &table.price_list {
        Some(list) => {
            let name = table.prices.as_deref().map_or("own list", String::as_str);
            Offer::of_list(name, list, region)
        }
        None => Offer::built_in(named, region),
    };
    let refuse = |error: &OfferError, at: &Text| source.error_at(at, error, error.offer_hint());
    let offer = found.map_err(|error| refuse(&error, named))?;
    let sizes = table.sizes.iter().map(|text| check_size(text, source));
    let sizes = sizes.collect::<Checked<Vec<_>>>()?;
    offer.with_sizes(&sizes).map_err(|error| {
        let is_meant =
            |one: &InstanceSize| matches!(&error, OfferError::NotSold { size, .. } if size == one);
        let meant = sizes.iter().position(is_meant);
        refuse(&error, meant.map_or(named, |index| &table.sizes[index]))
    })
}

fn check_size(text: &Text, source: &ExperimentSource<'_>) -> Checked<InstanceSize> {
    let part = |part: &str| text.with_same_origin(part.to_owned());
    let Some((cpus, bytes)) = text.split_once('/') else {
        let problem = format!("`{text}` is not a size");
        return Err(source.error_at(text, problem, "write CPUs and memory: 0.5/1Gi"));
    };
    Ok(InstanceSize {
        cpu: check_cpu(&part(cpus), source)?,
        memory: check_memory(&part(bytes), source)?,
    })
}

/// `2..16`, or `3` for exactly three.
fn check_replicas(
    text: &Text,
    parameters: LatticeParameters,
    source: &ExperimentSource<'_>,
) -> Checked<LatticeParameters> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    let parse = |text: &str| {
        let number = text.trim().trim_start_matches('=').parse::<u32>().ok();
        number.filter(|n| (1..=REPLICAS_MAX).contains(n))
    };
    match (parse(low), parse(high)) {
        (Some(min_replicas), Some(max_replicas)) if min_replicas <= max_replicas => {
            Ok(LatticeParameters {
                min_replicas,
                max_replicas,
                ..parameters
            })
        }
        _ => {
            let problem = format!("`{text}` is not a range of replicas");
            Err(source.error_at(text, problem, "write fewest and most: 2..16"))
        }
    }
}

/// A share as a percentage; `what` names it in the refusal.
fn check_percentage(text: &Text, what: &str, source: &ExperimentSource<'_>) -> Checked<f64> {
    let percent = text.trim().strip_suffix('%');
    let percent = percent.and_then(|p| p.trim().parse::<f64>().ok());
    let percent = percent.filter(|p| (0.0..=100.0).contains(p));
    percent.map(|p| p / 100.0).ok_or_else(|| {
        let hint = "write a percentage from 0% to 100%: 8%";
        source.error_at(text, format!("`{text}` is not a {what}"), hint)
    })
}
