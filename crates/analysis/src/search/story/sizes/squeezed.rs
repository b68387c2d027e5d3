//! Stories of searches on hosts that can lower a limit: R, A and F.

use std::collections::BTreeSet;
use std::time::Duration;

use loadline_sizing::Bytes;

use super::{MISS, NOISE, PASS, ask_mib, example_search, tell_sizes};
use crate::budget::{HeapPolicy, named_heap};
use crate::fixture;
use crate::record::{
    AppKo, GcEvidence, JvmProcess, LoadEvidence, MemoryParts, PhaseSpan, RunEvidence,
    SecondEvidence, SqueezeEnd, SqueezeEvidence, SqueezeStep, TrialPhase, TrialPurpose,
    TrialRecord, TrialVerdict,
};
use crate::search::TrialAsk;
use crate::search::size::{SizeAnswer, SizeSearch, SmallestMemory};
use crate::search::story::{play, record_of_ask};

/// A service that needs 140 MiB outside its heap and has a live set of 25 MiB.
fn service(ask: &TrialAsk, verdict: TrialVerdict) -> TrialRecord {
    let mut record = record_of_ask(ask, verdict, Bytes::from_mib(200));
    let heap = named_heap(&ask.configuration).unwrap_or(Bytes::from_mib(60));
    let parts = MemoryParts {
        requests: 20_000,
        heap,
        heap_committed: Some(heap),
        live_set: Some(Bytes::from_mib(25)),
        code_cache: Bytes::from_mib(20),
        malloc: Bytes::from_mib(50),
        metaspace: Bytes::from_mib(70),
        files: Bytes::from_mib(40),
        ..MemoryParts::default()
    };
    record.evidence.gc = Some(GcEvidence {
        heap_max: Some(Bytes::from_mib(256)),
        ..fixture::empty_gc_log()
    });
    if ask.purpose == TrialPurpose::Squeeze {
        record.evidence.squeeze = Some(squeeze(&parts, SqueezeEnd::Storm));
    }
    record.evidence.cgroup.peak_anon = Some(parts.unreclaimable());
    record.evidence.memory = Some(parts);
    record
}

/// 12 MiB of room are calm, 10 are not.
fn squeeze(aged: &MemoryParts, end: SqueezeEnd) -> SqueezeEvidence {
    let step = |room, refaults_per_second| SqueezeStep {
        at_ns: 0,
        length_ns: 1,
        limit: aged.unreclaimable().saturating_add(Bytes::from_mib(room)),
        unreclaimable: aged.unreclaimable(),
        file: None,
        refaults_per_second,
        full_pressure: None,
        offered: Some(50),
        achieved: Some(50),
    };
    SqueezeEvidence {
        aged: Some(aged.clone()),
        burst_requests: aged.requests,
        steps: vec![step(40, 0.0), step(12, 0.0), step(10, 32_503.0)],
        end,
        read_ahead: Some(Bytes::from_kib(128)),
        limit_after: None,
    }
}

fn story(search: SmallestMemory, world: impl FnMut(&TrialAsk) -> TrialRecord) -> String {
    let search = SizeSearch {
        bases: vec![search],
        prove: 3,
        is_counted: false,
    };
    let (story, sized) = play(&search, world);
    let best = sized.best.as_ref();
    let options = best
        .into_iter()
        .flat_map(|best| &best.configuration.jvm_options);
    let options: Vec<&str> = options.map(|option| option.text.as_str()).collect();
    format!("{story}{}{}", tell_sizes(&sized), options.join(" "))
}

#[test]
fn five_starts_are_enough_where_all_are_far_from_every_bound() {
    insta::assert_snapshot!(story(example_search(""), |ask| service(ask, PASS)));
}

#[test]
fn an_application_that_cannot_start_is_tried_twice() {
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let mut record = service(ask, TrialVerdict::AppKo(AppKo::Crash));
        record.evidence.start.ready = None;
        record.evidence.last_output = ["one", "two", "no such file: shop.yml", "exit"]
            .map(str::to_owned)
            .into();
        record
    }));
}

#[test]
fn a_squeezed_start_that_misses_gets_more_room_once() {
    let misses = |times: u32| {
        let mut left = times;
        story(example_search(""), move |ask| {
            let is_missed = ask.purpose == TrialPurpose::Squeeze && left > 0;
            left -= u32::from(is_missed);
            service(ask, if is_missed { MISS } else { PASS })
        })
    };
    insta::assert_snapshot!(format!("{}\n\n{}", misses(1), misses(2)));
}

#[test]
fn where_no_limit_can_be_lowered_sizes_are_tried_with_the_heap() {
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let mut record = service(ask, if ask_mib(ask) >= 216 { PASS } else { MISS });
        if let Some(squeeze) = &mut record.evidence.squeeze {
            squeeze.end = SqueezeEnd::NotPossible("an engine apart".to_owned());
        }
        record
    }));
}

#[test]
fn a_kill_without_a_calm_step_is_no_wall() {
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let mut record = service(ask, if ask_mib(ask) >= 216 { PASS } else { MISS });
        if let Some(squeeze) = &mut record.evidence.squeeze {
            squeeze.steps.truncate(1);
            squeeze.end = SqueezeEnd::Killed;
            record.verdict = TrialVerdict::AppKo(AppKo::CgroupOom);
        }
        record
    }));
}

#[test]
fn an_aged_start_that_misses_moves_the_answer_up() {
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let mut record = service(ask, PASS);
        if ask.purpose == TrialPurpose::Squeeze {
            record.evidence.load.push(LoadEvidence {
                phase: TrialPhase::Again,
                ok: 0,
                unfinished: 3000,
                ..fixture::steady_load()
            });
        }
        record
    }));
}

#[test]
fn a_fresh_start_that_misses_moves_it_up_and_one_near_a_bound_asks_for_more() {
    let mut proofs = 0;
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let is_proof = ask.purpose == TrialPurpose::Prove;
        proofs += u32::from(is_proof);
        let mut record = service(ask, if is_proof && proofs == 2 { MISS } else { PASS });
        let strays = Bytes::from_mib(3 * u64::from(proofs % 3));
        record.evidence.cgroup.peak_anon = record
            .evidence
            .cgroup
            .peak_anon
            .map(|anon| anon.saturating_add(strays));
        record
    }));
}

/// The second fresh start's burst takes 30 MiB more than the squeezed start had.
#[test]
fn a_burst_near_the_limit_moves_it_up_by_what_it_lacks() {
    let mut proofs = 0;
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let mut record = service(ask, PASS);
        let judged = record.evidence.cgroup.peak_anon;
        proofs += u64::from(ask.purpose == TrialPurpose::Prove);
        let more = Bytes::from_mib(if proofs == 2 { 30 } else { 0 });
        record.evidence.phases.push(PhaseSpan {
            phase: TrialPhase::Age,
            start: 20,
            end: 30,
        });
        record.evidence.seconds.push(SecondEvidence {
            at_ns: 25,
            anon: judged.map(|judged| judged.saturating_add(more)),
            ..SecondEvidence::default()
        });
        record
    }));
}

#[test]
fn noise_voids_no_wall_and_no_proof() {
    insta::assert_snapshot!(story(example_search(""), |ask| {
        let is_noisy = ask.purpose == TrialPurpose::Squeeze || ask.repeat == 2;
        service(ask, if is_noisy { NOISE } else { PASS })
    }));
}

#[test]
fn the_heap_is_as_it_was_asked_for() {
    let of = |heap| {
        let search = SmallestMemory {
            heap,
            keeps_direct: false,
            ..example_search("")
        };
        story(search, |ask| service(ask, PASS))
    };
    let heap = |mib| HeapPolicy::Fixed(Bytes::from_mib(mib));
    let all = [
        HeapPolicy::Keep,
        HeapPolicy::Grow,
        heap(96),
        heap(20),
        heap(2048),
    ]
    .map(of);
    insta::assert_snapshot!(all.join("\n\n"));
}

/// The heaps that a search of a run asks for. Its second JVM has a live set of 60 MiB, not 25.
fn heaps_of_run(
    variable: Option<&str>,
    second: (u64, u64),
    heap_max: Option<Bytes>,
) -> (BTreeSet<u64>, SizeAnswer) {
    let mut base = example_search("");
    base.is_squeezable = false;
    base.base.options_variable = variable.map(str::to_owned);
    let search = SizeSearch {
        bases: vec![base],
        prove: 3,
        is_counted: true,
    };
    let jvm = |(from, until), after| JvmProcess {
        main: "Main".to_owned(),
        parent: None,
        from: Duration::from_secs(from),
        until: Duration::from_secs(until),
        heap_max,
        heap_option: None,
        heap_committed: None,
        heap_after: Some(Bytes::from_mib(after)),
        rss: Bytes::from_mib(150),
    };
    let mut heaps = BTreeSet::new();
    let (_, sized) = play(&search, |ask| {
        heaps.extend(named_heap(&ask.configuration).map(|heap| heap.as_bytes() >> 20));
        let verdict = if ask_mib(ask) >= 300 { PASS } else { MISS };
        let mut record = record_of_ask(ask, verdict, Bytes::from_mib(200));
        record.evidence.gc = Some(GcEvidence {
            heap_max: Some(Bytes::from_mib(256)),
            heap_after_max: Some(Bytes::from_mib(25)),
            ..fixture::empty_gc_log()
        });
        record.evidence.run = Some(RunEvidence {
            jvms: vec![jvm((0, 9), 25), jvm(second, 60)],
            ..RunEvidence::default()
        });
        record
    });
    (heaps, sized)
}

#[test]
fn the_heap_of_a_run_follows_its_limit_where_one_jvm_runs_at_a_time() {
    let (together, after) = ((3, 5), (10, 12));
    let heaps = |variable, second| heaps_of_run(Some(variable), second, None).0;
    assert_eq!(heaps("MAVEN_OPTS", together), [52].into());
    assert!(heaps("MAVEN_OPTS", after).len() > 2);
    // Every JVM gets it, so it holds the largest live set.
    assert_eq!(heaps("JAVA_TOOL_OPTIONS", together), [120].into());
}

#[test]
fn a_heap_that_no_jvm_of_the_run_takes_is_no_answer() {
    let other = Some(Bytes::from_mib(512));
    let (_, sized) = heaps_of_run(Some("SPARK_SUBMIT_OPTS"), (3, 5), other);
    insta::assert_snapshot!(tell_sizes(&sized), @"= `` no JVM of the run took the heap of 52Mi from SPARK_SUBMIT_OPTS: the largest allowed itself 512Mi; 12s, 140s: t1 t2");
}
