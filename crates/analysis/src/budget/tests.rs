use std::time::Duration;

use super::*;
use crate::fixture;
use crate::record::{
    Evidence, GcEvidence, HeapAfter, MemoryParts, PhaseSpan, SecondEvidence, SqueezeEnd,
    SqueezeEvidence, SqueezeStep, TrialPhase,
};

const SECOND: u64 = 1_000_000_000;

fn mib(value: f64) -> Bytes {
    Bytes::from_bytes((value * 1_048_576.0) as u64)
}

fn step(limit: f64, unreclaimable: f64, refaults_per_second: f64) -> SqueezeStep {
    SqueezeStep {
        at_ns: 0,
        length_ns: SECOND,
        limit: mib(limit),
        unreclaimable: mib(unreclaimable),
        file: Some(mib(limit - unreclaimable)),
        refaults_per_second,
        full_pressure: Some(0.0),
        offered: Some(50),
        achieved: Some(if refaults_per_second > 1e4 { 21 } else { 50 }),
    }
}

/// A start of a pre-touched heap of 64 or 72 MiB: code, malloc, metaspace, stacks, rest and kernel.
fn parts(
    heap: f64,
    requests: u64,
    [code, malloc, meta, stacks, rest, kernel]: [f64; 6],
) -> MemoryParts {
    MemoryParts {
        requests,
        heap: mib(heap),
        code_cache: mib(code),
        malloc: mib(malloc),
        metaspace: mib(meta),
        stacks: mib(stacks),
        other: mib(rest),
        kernel: mib(kernel),
        files: mib(40.0),
        ..MemoryParts::default()
    }
}

/// The same, aged: anonymous memory second by second, and the squeeze.
fn squeezed(aged: MemoryParts, anon: &[f64], steps: Vec<SqueezeStep>, end: SqueezeEnd) -> Evidence {
    let second = |(at, anon): (u64, &f64)| SecondEvidence {
        at_ns: at * SECOND,
        anon: Some(mib(*anon)),
        ..SecondEvidence::default()
    };
    Evidence {
        phases: vec![PhaseSpan {
            phase: TrialPhase::Age,
            start: 0,
            end: 100 * SECOND,
        }],
        seconds: (1..).zip(anon).map(second).collect(),
        squeeze: Some(SqueezeEvidence {
            burst_requests: aged.requests,
            aged: Some(aged),
            steps,
            end,
            read_ahead: Some(Bytes::from_mib(8)),
            limit_after: None,
        }),
        ..fixture::passing_evidence()
    }
}

/// As measured: spring-web (17, Serial, C1) and Zipkin (C1 and C2), 8 MiB of read-ahead.
fn services() -> [(Evidence, f64, f64); 2] {
    let web = parts(64.0, 13_691, [20.0, 50.9, 68.5, 4.8, 10.9, 2.1]);
    let zipkin = parts(64.0, 20_564, [20.4, 65.1, 56.1, 19.3, 11.2, 6.4]);
    let of = |aged: MemoryParts, calm: f64, before: f64| {
        let own = aged.unreclaimable().as_mib();
        let steps = vec![
            step(300.0, own, 0.0),
            step(calm, own, 0.0),
            step(calm * 0.99, own, 32_503.0),
        ];
        squeezed(
            aged,
            &[before, own - 1.0, own - 0.5, own, own],
            steps,
            SqueezeEnd::Storm,
        )
    };
    // Resident memory after 40 minutes, kernel memory, and the room that every fresh start had.
    [
        (of(web, 230.0, 209.0), 64.0, 212.2 + 2.1 + 23.0),
        (of(zipkin, 252.0, 225.0), 64.0, 230.6 + 6.4 + 23.0),
    ]
}

#[test]
fn measured_services_get_at_most_8_percent_too_much() {
    for (evidence, heap, need) in services() {
        let budget = answer_budget(&evidence, Some(mib(heap)), Bytes::from_mib(4)).expect("a wall");
        let over = budget.limit().as_mib() / need - 1.0;
        assert!((0.0..0.08).contains(&over), "{over} {budget:?}");
        assert!(budget.total_need() <= budget.limit());
        let after = limit_after_squeeze(&evidence).expect("a wall");
        let growth = budget
            .lines()
            .iter()
            .filter(|line| line.part != MemoryPart::Files);
        let growth = growth.fold(Bytes::default(), |sum, line| {
            sum.saturating_add(line.growth)
        });
        assert_eq!(after.saturating_add(growth), budget.total_need());
    }
}

#[test]
fn every_line_says_why_it_grows() {
    let (evidence, heap, _) = &services()[0];
    let budget = answer_budget(evidence, Some(mib(*heap)), Bytes::from_mib(4)).expect("a wall");
    let line = |line: &BudgetLine| {
        let (measured, growth) = (line.measured.as_mib(), line.growth.as_mib());
        let cap = line.cap.as_deref().unwrap_or_default();
        format!(
            "{} {measured:.1} + {growth:.1} {} {cap}",
            line.part, line.reason
        )
        .trim()
        .to_owned()
    };
    let lines: Vec<String> = budget.lines().iter().map(line).collect();
    insta::assert_snapshot!(format!("{}\n= {}", lines.join("\n"), budget.limit()));
}

#[test]
fn parts_that_exceed_a_limit_are_no_budget() {
    let (evidence, heap, _) = &services()[0];
    let at = |heap: f64, limit| budget_at(evidence, Some(mib(heap)), Bytes::from_mib(limit), None);
    assert!(at(*heap, 256).is_some_and(|budget| budget.is_ok()));
    let error = at(120.0, 256)
        .and_then(Result::err)
        .expect("it is over-committed");
    assert!(error.need > error.limit, "{error}");
}

#[test]
fn a_heap_that_is_not_touched_is_growth() {
    let (evidence, ..) = &services()[0];
    let budget = answer_budget(evidence, Some(mib(96.0)), Bytes::from_mib(4)).expect("a wall");
    let heap = &budget.lines()[0];
    assert_eq!((heap.measured, heap.growth), (mib(64.0), mib(32.0)));
    assert_eq!(heap.cap.as_deref(), Some("-Xmx96m"));
}

#[test]
fn the_wall_of_a_killed_squeeze_is_where_it_was_killed() {
    let aged = parts(128.0, 20_000, [10.0, 40.0, 50.0, 5.0, 50.0, 2.0]);
    let steps = vec![
        step(310.0, 288.0, 0.0),
        step(300.0, 290.0, 49.0),
        step(297.3, 294.6, 49.0),
    ];
    let killed = squeezed(aged.clone(), &[], steps.clone(), SqueezeEnd::Killed);
    let wall = MemoryWall::of_start(&killed).expect("a wall");
    assert_eq!(
        (wall.calm.limit, wall.storm.map(|s| s.limit)),
        (mib(300.0), Some(mib(297.3)))
    );
    let at_once = squeezed(aged.clone(), &[], steps[..1].to_vec(), SqueezeEnd::Killed);
    assert!(MemoryWall::of_start(&at_once).is_none());
    let why = SqueezeEnd::NotPossible("an engine apart".to_owned());
    assert_eq!(limit_after_squeeze(&squeezed(aged, &[], steps, why)), None);
}

/// WireMock under POSTs: in one of three searches the burst's own rise was in the second half of the
/// seconds, and 9 MiB of code were expected instead of 1.
#[test]
fn code_grows_by_what_the_burst_added_whenever_memory_rose() {
    let growth = |anon: &[f64]| {
        let aged = parts(32.0, 24_880, [15.2, 79.3, 24.1, 3.2, 12.6, 1.9]);
        let own = aged.unreclaimable().as_mib();
        let steps = vec![step(180.0, own, 0.0)];
        let mut evidence = squeezed(aged, anon, steps, SqueezeEnd::Storm);
        evidence.memory = Some(parts(32.0, 2_000, [14.1, 28.8, 24.0, 2.4, 12.6, 1.6]));
        let budget = answer_budget(&evidence, Some(mib(32.0)), Bytes::from_mib(1)).expect("a wall");
        let code = budget
            .lines()
            .iter()
            .find(|l| l.part == MemoryPart::CodeCache);
        code.map(|line| line.growth.as_mib().round())
    };
    assert_eq!(
        growth(&[115.0, 116.0, 117.0, 160.0, 176.0, 177.0]),
        Some(1.0)
    );
    assert_eq!(
        growth(&[115.0, 175.0, 176.0, 177.0, 177.0, 177.0]),
        Some(1.0)
    );
}

#[test]
fn a_short_burst_that_had_not_settled_leaves_more_to_come() {
    let growth = |requests, anon: &[f64]| {
        let aged = parts(64.0, requests, [17.7, 54.9, 56.0, 19.4, 11.2, 6.4]);
        let own = aged.unreclaimable().as_mib();
        let steps = vec![step(260.0, own, 0.0)];
        let evidence = squeezed(aged, anon, steps, SqueezeEnd::OutOfTime);
        let budget = answer_budget(&evidence, Some(mib(64.0)), Bytes::from_mib(1)).expect("a wall");
        let lines = budget
            .lines()
            .iter()
            .filter(|line| line.part == MemoryPart::Malloc);
        lines.map(|line| line.growth.as_mib()).sum::<f64>()
    };
    let settled = [200.0, 222.0, 223.0, 223.0, 223.0];
    // 8 % of malloc: starts differ by as much.
    assert!((4.3..4.5).contains(&growth(20_000, &settled)));
    assert!(growth(5_000, &[200.0, 210.0, 217.0, 220.0, 222.0]) > 4.0);
    assert!(growth(1_000, &settled) > 10.0, "too few requests");
    assert!(growth(5_000, &[]) > 8.0, "not inspected");
}

#[test]
fn what_is_held_for_a_while_behind_the_burst_is_part_of_the_limit() {
    let malloc = |behind: &[f64]| {
        let mut aged = parts(64.0, 30_000, [17.7, 54.9, 56.0, 19.4, 11.2, 6.4]);
        let own = aged.unreclaimable().as_mib();
        aged.at_ns = (3 + behind.len() as u64) * SECOND;
        let anon: Vec<f64> = [120.0, 150.0, 180.0]
            .iter()
            .chain(behind)
            .copied()
            .collect();
        let mut evidence = squeezed(
            aged,
            &anon,
            vec![step(own + 12.0, own, 0.0)],
            SqueezeEnd::Storm,
        );
        evidence.phases[0].end = 3 * SECOND;
        let budget = answer_budget(&evidence, Some(mib(64.0)), Bytes::from_mib(1)).expect("a wall");
        let line = budget
            .lines()
            .iter()
            .find(|line| line.part == MemoryPart::Malloc);
        let line = line.expect("every budget has it");
        format!("{:.1} {}", line.growth.as_mib(), line.reason)
    };
    const STILL: &str = "4.4 starts differ";
    // A fresh start's room, 11 MiB more than that of a warm one, is free by then.
    let still = [220.0; 5];
    assert_eq!(malloc(&still), STILL);
    let peak = [260.0, 220.0, 220.0, 220.0, 220.0, 220.0];
    assert_eq!(
        malloc(&peak),
        "29.0 it held more for a while behind the burst"
    );
    let small = [225.0, 220.0, 220.0, 220.0, 220.0, 220.0];
    assert_eq!(malloc(&small), STILL);
    // Tika: what was freed again in the last seconds is no growth.
    let freed = [220.0, 226.0, 226.0, 226.0, 220.0];
    assert_eq!(malloc(&freed), STILL);
    let rising = [200.0, 205.0, 210.0, 215.0, 220.0];
    assert!(
        malloc(&rising).contains("rose by 20.0 MiB"),
        "{}",
        malloc(&rising)
    );
}

#[test]
fn starts_need_more_room_where_the_disk_reads_ahead() {
    let room = |kib| (start_room(Bytes::from_kib(kib)).as_mib() * 10.0).round() / 10.0;
    assert_eq!(
        [room(128), room(1024), room(8192), room(4), room(65_536)],
        [8.0, 15.5, 23.0, 8.0, 23.0]
    );
}

#[test]
fn a_start_needs_no_more_room_than_it_has_files() {
    let mut aged = parts(0.0, 20_000, [0.0, 0.0, 30.0, 1.0, 0.0, 1.0]);
    aged.files = mib(5.0);
    let steps = vec![step(36.0, 32.0, 0.0)];
    let mut evidence = squeezed(aged, &[], steps, SqueezeEnd::NoRoom);
    let room = |evidence: &Evidence| MemoryWall::of_start(evidence).map(|wall| wall.start_room);
    evidence.cgroup.peak_memory = None;
    assert_eq!(room(&evidence), Some(mib(23.0)));
    evidence.cgroup.peak_memory = Some(mib(38.0));
    assert_eq!(room(&evidence), Some(mib(6.0)));
}

#[test]
fn a_soak_that_refutes_a_size_raises_it() {
    let after = Duration::from_secs(680);
    let outgrew = SoakOutcome::Outgrew {
        after,
        most: mib(210.0),
        allowed: mib(190.0),
    };
    assert_eq!(outgrew.raised_size(mib(256.0)), Some(mib(281.0)));
    let died = SoakOutcome::Died { after };
    assert_eq!(died.raised_size(mib(256.0)), Some(mib(320.0)));
    let lasted = SoakOutcome::Lasted { length: after };
    assert_eq!(lasted.raised_size(mib(256.0)), None);
}

/// A heap after full collections once in two seconds, 100 requests in each.
fn heaps(after: impl Fn(u64) -> f64, is_full: bool) -> Evidence {
    let heap = |at: u64| HeapAfter {
        at_ns: at * 2 * SECOND,
        bytes: mib(after(at)),
        committed: None,
        is_full,
    };
    let second = |n: u64| SecondEvidence {
        at_ns: n * SECOND,
        achieved: Some(300),
        ..SecondEvidence::default()
    };
    Evidence {
        phases: vec![PhaseSpan {
            phase: TrialPhase::Measure,
            start: 0,
            end: 60 * SECOND,
        }],
        seconds: (1..=60).map(second).collect(),
        gc: Some(GcEvidence {
            heaps_after: (1..=24).map(heap).collect(),
            ..fixture::empty_gc_log()
        }),
        ..fixture::passing_evidence()
    }
}

#[test]
fn a_live_set_that_rises_is_told_with_its_end() {
    let trend = |evidence: Evidence| live_set_trend(&evidence, Some(Bytes::from_mib(96)));
    let rising = trend(heaps(|at| 30.0 + 0.5 * at as f64, true)).expect("it rises");
    // Half a MiB in two seconds.
    assert_eq!(rising.per_minute.as_mib().round(), 15.0);
    assert_eq!(rising.lasts.map(|time| time.as_secs() / 10), Some(21));
    let noisy = |at: u64| 30.0 + [0.0, 2.0, 1.0, 3.0][at as usize % 4];
    assert_eq!(trend(heaps(noisy, true)), None);
    assert_eq!(trend(heaps(|_| 30.0, true)), None);
    assert_eq!(
        trend(heaps(|at| 30.0 + 0.05 * at as f64, true)),
        None,
        "too little"
    );
    let filled = |at: u64| 30.0 + 0.8 * at.min(12) as f64;
    assert_eq!(trend(heaps(filled, true)), None, "it has ended");
    // Young collections leave what died in the old generation.
    assert_eq!(trend(heaps(|at| 30.0 + 0.5 * at as f64, false)), None);
    assert!(trend(heaps(|at| 30.0 + 2.0 * at as f64, false)).is_some());
}

#[test]
fn what_a_burst_sent_counts_as_judged_time() {
    let mut evidence = heaps(|at| 30.0 + 0.5 * at as f64, true);
    for second in &mut evidence.seconds {
        second.achieved = Some(3000);
    }
    let trend = live_set_trend(&evidence, None).expect("it rises");
    assert_eq!((trend.per_minute.as_mib() * 10.0).round(), 15.0);
}
