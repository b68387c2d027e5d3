//! Searches that choose the CPU limit too.

use loadline_sizing::Cpus;

use super::*;
use crate::search::size::cpu::{CpuPolicy, CpuRange};

fn over_cpus(machine: u32) -> SmallestMemory {
    let mut search = example_search("");
    search.base.cpu = None;
    search.cpus = vec![CpuRange::of_machine(machine, CpuPolicy::Limit)];
    search
}

fn millis(ask: &TrialAsk) -> u32 {
    ask.configuration.cpu.map_or(0, Cpus::as_millis)
}

#[test]
fn the_smallest_cpu_is_found_with_room_and_the_memory_there() {
    insta::assert_snapshot!(story(vec![over_cpus(2)], |ask| {
        let is_enough = millis(ask) >= 400 && ask_mib(ask) >= 300;
        (if is_enough { PASS } else { MISS }, 300)
    }));
}

/// A request of 300m is enough, and a limit of 400m; next to the request a smaller one is not.
#[test]
fn a_request_is_found_and_the_limit_above_it() {
    let mut search = SizeSearch {
        bases: vec![over_cpus(2)],
        prove: 3,
        is_counted: true,
    };
    search.search_cpus(2, CpuPolicy::Both);
    let (story, sized) = play(&search, |ask| {
        let request = ask.configuration.cpu_request.map_or(0, Cpus::as_millis);
        let is_enough = request >= 300 && millis(ask) >= 400 && ask_mib(ask) >= 300;
        let verdict = if is_enough { PASS } else { MISS };
        record_of_ask(ask, verdict, Bytes::from_mib(300))
    });
    let best = sized.best.as_ref().map(|best| &best.configuration);
    let found = best.map(|c| {
        (
            c.cpu_request.map(Cpus::as_millis),
            c.cpu.map(Cpus::as_millis),
        )
    });
    assert_eq!(found, Some((Some(300), Some(400))), "{story}");
    insta::assert_snapshot!(story);
}

/// A limit that is given stays, and the request stays below it.
#[test]
fn a_request_is_found_below_a_given_limit() {
    let mut search = SizeSearch {
        bases: vec![over_cpus(2)],
        prove: 3,
        is_counted: true,
    };
    search.bases[0].base.cpu = Some(Cpus::from_millis(500));
    search.search_cpus(2, CpuPolicy::Both);
    let (story, sized) = play(&search, |ask| {
        let request = ask.configuration.cpu_request.map_or(0, Cpus::as_millis);
        assert_eq!(millis(ask), 500);
        assert!(request <= 500, "{request}");
        let is_enough = request >= 300 && ask_mib(ask) >= 300;
        let verdict = if is_enough { PASS } else { MISS };
        record_of_ask(ask, verdict, Bytes::from_mib(300))
    });
    let best = sized.best.and_then(|best| best.configuration.cpu_request);
    assert_eq!(best.map(Cpus::as_millis), Some(300), "{story}");
}

#[test]
fn starts_that_miss_with_memory_to_spare_get_more_cpu() {
    let search = SizeSearch {
        bases: vec![over_cpus(2)],
        prove: 3,
        is_counted: true,
    };
    let (story, sized) = play(&search, |ask| {
        let needed = match ask.purpose {
            TrialPurpose::Prove => 450,
            _ => 400,
        };
        let verdict = if millis(ask) >= needed && ask_mib(ask) >= 300 {
            PASS
        } else {
            MISS
        };
        let mut record = record_of_ask(ask, verdict, Bytes::from_mib(300));
        // Nothing says that memory lacked.
        record.evidence.gc = None;
        record.evidence.cgroup.file_refaults = Some(0);
        record
    });
    insta::assert_snapshot!(story + &tell_sizes(&sized));
}

#[test]
fn a_cpu_that_cannot_be_measured_counts_as_too_little() {
    insta::assert_snapshot!(story(vec![over_cpus(2)], |ask| {
        (if millis(ask) < 600 { NOISE } else { PASS }, 300)
    }));
}

#[test]
fn more_than_the_machine_has_is_no_answer() {
    insta::assert_snapshot!(story(vec![over_cpus(2)], |_| (MISS, 300)));
}
