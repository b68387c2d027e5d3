//! Stories of searches for the smallest memory.

use std::time::Duration;

use loadline_sizing::{Bytes, Cpus};

use super::{MISS, NOISE, PASS, ids, play, record_of_ask};
use crate::fixture;
use crate::record::{
    AppKo, Configuration, JvmOption, SecondEvidence, TrialPurpose, TrialVerdict, ValueProvenance,
};
use crate::search::TrialAsk;
use crate::search::min_memory::MemoryParameters;
use crate::search::size::{SizeAnswer, SizeEnd, SizeSearch, SizedLevel, SmallestMemory};

mod cpus;
mod squeezed;

fn ask_mib(ask: &TrialAsk) -> u64 {
    ask.configuration.memory.expect("it has one").as_bytes() >> 20
}

fn example_search(label: &str) -> SmallestMemory {
    let mib = Bytes::from_mib;
    SmallestMemory {
        base: Configuration {
            label: label.to_owned(),
            memory: None,
            ..fixture::configuration(1)
        },
        level: None,
        parameters: MemoryParameters {
            retries: 0,
            ..MemoryParameters::new(mib(64), mib(1024))
        },
        start_deadline: Duration::from_secs(60),
        warm_up: None,
        heap: Default::default(),
        keeps_direct: false,
        is_squeezable: true,
        cpus: Vec::new(),
        has_more_cpu: false,
    }
}

fn with_option(label: &str, text: &str) -> SmallestMemory {
    let mut search = example_search(label);
    search.base.jvm_options = vec![JvmOption {
        text: text.to_owned(),
        provenance: ValueProvenance::User,
    }];
    search
}

fn story(
    bases: Vec<SmallestMemory>,
    world: impl FnMut(&TrialAsk) -> (TrialVerdict, u64),
) -> String {
    cold_story(bases, world, |_| true)
}

/// The same; only starts that `may_be_cold` are judged too early.
fn cold_story(
    bases: Vec<SmallestMemory>,
    mut world: impl FnMut(&TrialAsk) -> (TrialVerdict, u64),
    may_be_cold: impl Fn(&TrialAsk) -> bool,
) -> String {
    let search = SizeSearch {
        bases,
        prove: 3,
        is_counted: true,
    };
    let (story, sized) = play(&search, |ask| {
        let (verdict, needs) = world(ask);
        let mut record = record_of_ask(ask, verdict, Bytes::from_mib(needs));
        // Cold for 8 s: a request takes twice the CPU time.
        let is_short = |warm_up| warm_up < Duration::from_secs(8);
        if ask.configuration.warm_up.is_some_and(is_short) && may_be_cold(ask) {
            let second = |cpu| SecondEvidence {
                offered: Some(1),
                achieved: Some(1),
                cpu: Some(Duration::from_secs(cpu)),
                ..SecondEvidence::default()
            };
            record.evidence.seconds = vec![second(2), second(1)];
        }
        record
    });
    story + &tell_sizes(&sized)
}

fn tell_sizes(sized: &SizeAnswer) -> String {
    let mut text = String::new();
    for searched in &sized.searched {
        let label = &searched.base.label;
        let (deadline, spent) = (searched.start_deadline, searched.spent);
        let end = match &searched.end {
            SizeEnd::Found(found) => format!("{found:?}"),
            end => end.why_none(),
        };
        text += &format!(
            "= `{label}` {end}; {deadline:?}, {spent:?}: {}\n",
            ids(&searched.trials)
        );
    }
    if let Some(best) = &sized.best {
        let label = &best.configuration.label;
        text += &format!("best {label} {:?}: {}", best.answer, ids(&best.trials));
        text += &format!("; others: {}\n", ids(&best.others));
    }
    for level in &sized.by_level {
        let best = level.best.as_ref().map(|best| &best.configuration.label);
        text += &format!("{:?}: {best:?}\n", level.level);
    }
    text
}

/// Starts pass from this many MiB on.
fn from(needs: u64) -> impl FnMut(&TrialAsk) -> (TrialVerdict, u64) {
    move |ask| (if ask_mib(ask) >= needs { PASS } else { MISS }, needs)
}

#[test]
fn one_base_is_found_confirmed_and_proven() {
    insta::assert_snapshot!(story(vec![example_search("")], from(300)));
}

#[test]
fn what_is_small_enough_for_the_smallest_size_has_no_neighbour_but_one_below() {
    insta::assert_snapshot!(story(vec![example_search("as given")], from(8)));
}

#[test]
fn one_step_is_a_size_below_which_nothing_is_asked() {
    let mut search = example_search("");
    search.parameters.low = Bytes::from_mib(4);
    search.parameters.high = Bytes::from_mib(64);
    insta::assert_snapshot!(story(vec![search.clone()], from(5)));
    search.parameters.low = Bytes::from_mib(0);
    insta::assert_snapshot!(story(vec![search], from(1)));
}

#[test]
fn of_two_ways_to_one_answer_the_cheaper_is_proven() {
    let bases = vec![
        with_option("a", "-XX:+UseSerialGC"),
        with_option("b", "-XX:+UseParallelGC"),
    ];
    insta::assert_snapshot!(story(bases, |ask| {
        let needs = if ask.configuration.label.starts_with('a') {
            420
        } else {
            210
        };
        from(needs)(ask)
    }));
}

#[test]
fn the_way_that_was_cheaper_at_first_is_left_where_its_starts_miss() {
    let mut bases = vec![example_search("half"), example_search("whole")];
    bases[0].base.cpu = Some(Cpus::from_millis(500));
    insta::assert_snapshot!(story(bases, |ask| {
        let is_half = ask.configuration.label.starts_with("half");
        if ask.purpose == TrialPurpose::Prove && is_half && ask.repeat > 1 {
            (MISS, 200)
        } else {
            from(200)(ask)
        }
    }));
}

#[test]
fn jdks_are_questions_of_their_own() {
    let bases = ["17", "25"].map(|jdk| {
        let mut search = example_search(jdk);
        search.base.jdk = Some(jdk.to_owned());
        search.level = Some(SizedLevel {
            jdk: Some(jdk.to_owned()),
            ..SizedLevel::default()
        });
        search
    });
    insta::assert_snapshot!(story(bases.into(), |ask| {
        let is_first = ask.configuration.jdk.as_deref() == Some("17");
        from(if is_first { 300 } else { 240 })(ask)
    }));
}

#[test]
fn a_level_without_an_answer_says_how_it_ended() {
    let bases = [500, 1000].map(|millis| {
        let mut search = example_search(&format!("{millis}m"));
        let cpu = Some(Cpus::from_millis(millis));
        search.base.cpu = cpu;
        search.level = Some(SizedLevel {
            cpu,
            ..SizedLevel::default()
        });
        search
    });
    insta::assert_snapshot!(story(bases.into(), |ask| {
        if ask.configuration.cpu == Some(Cpus::from_millis(500)) {
            (MISS, 2000)
        } else {
            from(300)(ask)
        }
    }));
}

#[test]
fn starts_that_miss_at_the_size_that_was_found_move_it_up() {
    let mut proofs = 0;
    insta::assert_snapshot!(story(vec![example_search("")], |ask| {
        let is_wall = ask.purpose == TrialPurpose::Prove && ask_mib(ask) < 372;
        proofs += u32::from(is_wall);
        if is_wall && proofs % 2 == 0 {
            (MISS, 300)
        } else {
            from(300)(ask)
        }
    }));
}

#[test]
fn what_no_memory_cures_ends_at_the_largest_size_that_is_tested() {
    insta::assert_snapshot!(story(vec![example_search("")], |ask| {
        if ask.purpose == TrialPurpose::Prove && ask.repeat % 3 == 2 {
            (MISS, 300)
        } else {
            from(300)(ask)
        }
    }));
}

#[test]
fn crashes_and_noise_are_told_from_misses() {
    insta::assert_snapshot!(story(vec![example_search("")], |ask| {
        match (ask_mib(ask), ask.repeat) {
            (256, 1) => (TrialVerdict::AppKo(AppKo::Crash), 300),
            (_, 2) if ask.purpose == TrialPurpose::Confirm => (MISS, 300),
            (_, 2) if ask.purpose == TrialPurpose::Prove => (NOISE, 300),
            _ => from(300)(ask),
        }
    }));
}

#[test]
fn a_size_that_cannot_be_measured_leaves_the_smallest_that_passed() {
    insta::assert_snapshot!(story(vec![example_search("")], |ask| match ask_mib(ask) {
        ..512 => (NOISE, 300),
        _ => (PASS, 300),
    }));
}

#[test]
fn a_search_of_a_warm_jvm_begins_again_with_a_longer_warm_up() {
    let mut search = example_search("as given");
    search.warm_up = Some(Duration::from_secs(2));
    search.base.warm_up = Some(Duration::from_secs(2));
    insta::assert_snapshot!(story(vec![search], from(300)));
}

#[test]
fn fresh_starts_that_were_judged_too_early_begin_it_again() {
    let mut search = example_search("as given");
    search.warm_up = Some(Duration::from_secs(5));
    search.base.warm_up = Some(Duration::from_secs(5));
    insta::assert_snapshot!(cold_story(vec![search], from(300), |ask| {
        ask.purpose == TrialPurpose::Prove
    }));
}
