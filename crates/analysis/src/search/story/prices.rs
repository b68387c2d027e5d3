//! Stories of searches for the cheapest deployment, of options in it and of less memory.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus, JavaVersion, JdkRelease};

use super::{MISS, NOISE, PASS, ids, play, record_of_ask};
use crate::fixture;
use crate::offer::Offer;
use crate::price::InstanceSize;
use crate::record::{Configuration, PhaseSpan, TrialPhase, TrialPurpose, TrialVerdict};
use crate::search::TrialAsk;
use crate::search::lattice::{LatticeCell, LatticeParameters};
use crate::search::prices::{PriceAnswer, PriceSearch};
use crate::search::purchase::tests::purchase;
use crate::search::purchase::{Purchase, Variant};
use crate::search::refine::MemoryRefinement;

const LENGTH: Duration = Duration::from_secs(50);

fn example_purchase(variants: &[&str], budget: Option<Duration>) -> Purchase {
    let mut bought = purchase(budget);
    let price = bought.pricing.offer.price.clone();
    let cells = |variant: usize| {
        let price = price.clone();
        [
            (250, 256),
            (250, 512),
            (500, 512),
            (500, 1024),
            (1000, 512),
            (1000, 1024),
        ]
        .map(move |(millis, mib)| {
            let size = InstanceSize {
                cpu: Cpus::from_millis(millis),
                memory: Bytes::from_mib(mib),
            };
            LatticeCell {
                size,
                per_hour: price.per_hour(size),
                variant: variant as u32,
                regime: 0,
            }
        })
    };
    bought.cells = (0..variants.len()).flat_map(cells).collect();
    let variant = |label: &&str| Variant {
        configuration: Configuration {
            label: (*label).to_owned(),
            cpu: None,
            memory: None,
            ..fixture::configuration(1)
        },
        jdk: Some(JdkRelease::for_hotspot(JavaVersion::from_feature(17))),
    };
    bought.variants = variants.iter().map(variant).collect();
    bought.pricing.parameters = LatticeParameters {
        min_replicas: 1,
        max_replicas: 6,
        ..LatticeParameters::new(120.0)
    };
    bought
}

/// 100 requests a second of each CPU, a fifth more where the label begins with `b`; 200 MiB are needed,
/// and 400 for more than 60 a second.
fn truth(ask: &TrialAsk) -> (TrialVerdict, f64) {
    let configuration = &ask.configuration;
    let (cpu, rate) = (
        configuration.cpu.expect("a limit"),
        configuration.rate.expect("a rate"),
    );
    let factor = if configuration.label.starts_with('b') {
        1.2
    } else {
        1.0
    };
    let needs = if rate > 60.0 { 400 } else { 200 };
    let fits = configuration.memory >= Some(Bytes::from_mib(needs));
    let carries = rate <= 100.0 * factor * cpu.as_f64();
    (
        if fits && carries { PASS } else { MISS },
        true_cost(configuration),
    )
}

/// CPU seconds of ten seconds of load: the collector and the flags change it.
fn true_cost(configuration: &Configuration) -> f64 {
    let has = |text: &str| {
        configuration
            .jvm_options
            .iter()
            .any(|o| o.text.contains(text))
    };
    let part = |text, factor: f64| if has(text) { factor } else { 1.0 };
    6.0 * part("UseParallelGC", 0.8)
        * part("UseSerialGC", 0.9)
        * part("UseZGC", 1.4)
        * part("CICompilerCount", 0.93)
        * part("TieredStopAtLevel", 1.2)
        * part("MaxRAMPercentage=30", 1.05)
}

fn story(search: Purchase, mut world: impl FnMut(&TrialAsk) -> (TrialVerdict, f64)) -> String {
    let search = PriceSearch::new(search);
    let (story, priced) = play(&search, |ask| {
        let (verdict, cpu) = world(ask);
        let mut record = record_of_ask(ask, verdict, Bytes::from_mib(200));
        // From round to round the machine drifts, and within one a little.
        let drift = 1.0 + f64::from(ask.repeat % 5) / 100.0;
        record.evidence.cgroup.measure_cpu = Some(Duration::from_secs_f64(cpu * drift));
        record.evidence.phases = vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: u64::try_from(LENGTH.as_nanos()).expect("it fits"),
        }];
        record
    });
    story + &tell_prices(&priced)
}

fn tell_prices(priced: &PriceAnswer) -> String {
    let searched = &priced.searched;
    let records = searched.asked.iter().map(|asked| &asked.record);
    let mut text = format!(
        "= {:?}, {:?}: {}\n",
        searched.end,
        searched.spent,
        ids(records)
    );
    for why in &priced.left_out {
        text += &format!("left out: {why}\n");
    }
    let Some(found) = &priced.found else {
        return text;
    };
    text += &format!(
        "found {} proven {}\n",
        found.configuration.label, found.is_proven
    );
    if let Some(tuned) = &found.tuned {
        let label = &tuned.configuration.label;
        text += &format!("tuned {label} {}, {:?}\n", tuned.has_changed, tuned.spent);
        for c in &tuned.compared {
            let ratio = c.ratio.map_or("-".to_owned(), |r| format!("{r:.4}"));
            text += &format!(
                "  {} {}: {} pairs, {} of {}, {ratio}, adopted {}\n",
                c.stage.stage_name(),
                c.label,
                c.pairs,
                c.passes,
                c.trials,
                c.is_adopted
            );
        }
        text += &format!("  {}\n", ids(&tuned.trials));
    }
    match &found.refined {
        MemoryRefinement::Smaller(smaller) => {
            let label = &smaller.configuration.label;
            text += &format!(
                "smaller {label} {:?}: {}\n",
                smaller.answer,
                ids(&smaller.trials)
            );
        }
        MemoryRefinement::AsFound(why) => text += &format!("as found: {why:?}\n"),
    }
    text
}

#[test]
fn the_cheapest_is_found_and_then_less_memory_in_it() {
    insta::assert_snapshot!(story(example_purchase(&["as given"], None), truth));
}

#[test]
fn of_two_ways_the_better_is_found() {
    insta::assert_snapshot!(story(example_purchase(&["a", "b"], None), truth));
}

#[test]
fn options_are_compared_in_pairs_and_what_was_adopted_is_proven() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.compare = Some(6);
    insta::assert_snapshot!(story(search, truth));
}

#[test]
fn options_whose_starts_miss_are_given_up() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.compare = Some(6);
    insta::assert_snapshot!(story(search, |ask| {
        let is_tuned = !ask.configuration.jvm_options.is_empty();
        if ask.purpose == TrialPurpose::Prove && is_tuned {
            (MISS, 6.0)
        } else {
            truth(ask)
        }
    }));
}

#[test]
fn one_pair_adopts_nothing_and_options_of_the_user_stay() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.compare = Some(1);
    search.words = vec![
        "java".to_owned(),
        "-XX:+UseSerialGC".to_owned(),
        "-Xmx100m".to_owned(),
    ];
    insta::assert_snapshot!(story(search, truth));
}

#[test]
fn a_command_whose_jvm_is_not_known_is_not_compared() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.compare = Some(2);
    search.variants[0].jdk = None;
    insta::assert_snapshot!(story(search, truth));
}

#[test]
fn a_budget_ends_the_search_and_leaves_room_for_the_proof() {
    for minutes in [3, 8, 20, 29, 40] {
        let mut search = example_purchase(&["as given"], Some(Duration::from_secs(60 * minutes)));
        search.pricing.compare = Some(2);
        insta::assert_snapshot!(format!("of_{minutes}_minutes"), story(search, truth));
    }
}

#[test]
fn starts_that_miss_refute_an_answer_that_is_not_tuned_then() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.compare = Some(2);
    search.prove = 5;
    insta::assert_snapshot!(story(search, |ask| match ask.purpose {
        TrialPurpose::Prove if ask.repeat % 2 == 0 => (MISS, 6.0),
        _ => truth(ask),
    }));
}

#[test]
fn what_cannot_be_measured_is_left() {
    insta::assert_snapshot!(story(example_purchase(&["as given"], None), |ask| {
        let is_noisy = ask.configuration.rate > Some(50.0);
        let is_late = ask.purpose == TrialPurpose::Prove && ask.repeat == 1;
        if is_noisy || is_late {
            (NOISE, 6.0)
        } else {
            truth(ask)
        }
    }));
}

#[test]
fn where_nothing_carries_the_rate_there_is_no_answer() {
    insta::assert_snapshot!(story(example_purchase(&["as given"], None), |_| (
        MISS, 6.0
    )));
}

#[test]
fn memory_that_is_billed_in_steps_is_not_refined() {
    let mut search = example_purchase(&["as given"], None);
    search.pricing.offer = Offer::built_in("fargate", None).expect("built in");
    insta::assert_snapshot!(story(search, truth));
}

#[test]
fn less_memory_that_misses_its_proof_is_not_taken() {
    insta::assert_snapshot!(story(example_purchase(&["as given"], None), |ask| {
        let is_less = ask.configuration.memory < Some(Bytes::from_mib(256));
        if ask.purpose == TrialPurpose::Prove && is_less {
            (MISS, 6.0)
        } else {
            truth(ask)
        }
    }));
}

#[test]
fn as_many_proofs_are_asked_at_once_as_the_budget_has_room_for() {
    let mut search = example_purchase(&["as given"], Some(Duration::from_secs(180)));
    search.prove = 5;
    insta::assert_snapshot!(story(search, truth));
}
