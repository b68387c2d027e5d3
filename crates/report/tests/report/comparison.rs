//! Two results side by side, and the exported form they are read from.

use std::time::Duration;

use crate::{fixture, hostile};
use loadline_analysis::record::Verdict;
use loadline_report::compare::{
    Change, compare, comparison_json, comparison_markdown, comparison_terminal,
};
use loadline_report::{ReadError, ResultView, json, read};
use loadline_sizing::Bytes;

/// The search, with an application that starts twice as slowly.
fn slower() -> ResultView {
    let mut view = fixture::search();
    for trial in &mut view.trials {
        trial.evidence.start.ready = trial.evidence.start.ready.map(|t| t * 2);
    }
    view
}

/// The search, with an answer of another size.
fn sized(mib: u64) -> ResultView {
    let mut view = fixture::search();
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    recommendation.memory = Bytes::from_mib(mib);
    view
}

#[test]
fn a_result_is_read_back_from_its_export() {
    for view in [fixture::search(), fixture::matrix()] {
        let back = read(&json(&view)).expect("it was just written");
        assert_eq!(json(&back), json(&view));
        assert_eq!(back.trials, view.trials);
        assert_eq!(back.recommendation, view.recommendation);
    }
    let other = json(&fixture::search()).replacen("\"schema\":1", "\"schema\":99", 1);
    assert_eq!(read(&other), Err(ReadError::Newer { found: 99 }));
    assert!(matches!(read("{}"), Err(ReadError::Form { .. })));
    // A rate that is no number is null in JSON: refused, not read as zero.
    let broken = read(&json(&hostile::view()));
    assert!(matches!(broken, Err(ReadError::Form { .. })));
}

#[test]
fn a_result_with_itself_has_no_change() {
    let view = fixture::search();
    let same = compare(&view, &view);
    assert!(!same.is_worse);
    assert!(
        same.sentence
            .starts_with("No change that counts: 212Mi and 212Mi")
    );
    assert!(!same.recommended.is_empty());
    for figure in &same.recommended {
        assert!(
            matches!(figure.change, Change::NotShown | Change::TooFew),
            "{figure:?}"
        );
    }
}

#[test]
fn a_slower_start_is_seen_and_its_interval_holds_the_truth() {
    let changed = compare(&fixture::search(), &slower());
    let start = changed.recommended.iter().find(|f| f.key == "start_s");
    let start = start.expect("starts were measured");
    assert_eq!(start.change, Change::More);
    let ratio = start.ratio.expect("eight starts on each side");
    assert!(ratio.contains(2.0), "{ratio:?}");
    let latency = changed.recommended.iter().find(|f| f.key == "latency_s");
    assert_eq!(latency.map(|f| f.change), Some(Change::NotShown));
}

#[test]
fn a_larger_answer_is_worse_and_a_smaller_one_is_not() {
    let base = fixture::search();
    let larger = compare(&base, &sized(260));
    assert!(larger.is_worse);
    assert!(
        larger
            .sentence
            .starts_with("It needs more: 260Mi instead of 212Mi, 22.6 %")
    );
    let smaller = compare(&base, &sized(180));
    assert!(!smaller.is_worse);
    assert!(
        smaller.sentence.starts_with("It needs less: 180Mi"),
        "{}",
        smaller.sentence
    );
    assert!(!compare(&base, &sized(220)).is_worse);
}

#[test]
fn a_configuration_that_lost_the_slo_is_named() {
    let before = fixture::matrix();
    let mut after = before.clone();
    let lost = after.trials.iter_mut().find(|t| t.verdict == Verdict::Pass);
    lost.expect("one kept it").verdict = Verdict::SloMiss;
    let changed = compare(&before, &after);
    assert!(changed.is_worse);
    assert!(
        changed.sentence.contains("no longer kept at "),
        "{}",
        changed.sentence
    );
    let back = compare(&after, &before);
    assert!(!back.is_worse, "{}", back.sentence);
}

#[test]
fn what_differs_besides_is_said_first() {
    let mut other = fixture::search();
    other.load = "GET /slow, open model, 10/s for 5 s".to_owned();
    other.machine.cpus = 64;
    let lines = compare(&fixture::search(), &other).differences;
    assert!(lines[0].starts_with("The load differs: "), "{lines:?}");
    assert!(lines[1].starts_with("The machine differs: "), "{lines:?}");
}

#[test]
fn the_comparison_as_text() {
    let mut slower = slower();
    slower
        .trials
        .retain(|t| t.evidence.start.ready != Some(Duration::ZERO));
    let text = comparison_terminal(&compare(&fixture::search(), &slower), 100);
    insta::assert_snapshot!(text, @"
    No change that counts: 212Mi and 212Mi; two searches of one service differ by up to 8 %.
    First: spring-web 01936f2a-ffff. Second: spring-web 01936f2a-ffff.
    1 of 22 trials of the first were not valid and are left out.
    1 of 22 trials of the second were not valid and are left out.

    At the recommended sizes
    Medians of the trials. The ratio is the second over the first, with its 95 % interval (bootstrap
    over trials); a change counts when the whole interval lies beyond 2 %.

    Figure                           First, 212Mi  Second, 212Mi  Ratio             Change
    ───────────────────────────────  ────────────  ─────────────  ────────────────  ──────────
    Latency at the SLO's percentile        16.3ms         16.3ms  1 (0.95 to 1.05)  none shown
    Start time                              5.38s          10.8s  2 (1.96 to 2.05)  more
    Achieved rate                           300/s          300/s  1 (1 to 1)        none shown
    CPUs used                                0.44           0.44  1 (1.00 to 1.00)  none shown
    Time stopped by GC                     1.34 %         1.34 %  1 (0.96 to 1.04)  none shown
    CFS periods throttled                  1.33 %         1.33 %  1 (1 to 1)        none shown
    Heap after GC, largest                   47Mi           47Mi  1 (1 to 1)        none shown
    Peak working set                        189Mi          189Mi  1 (1 to 1)        none shown
    Peak anonymous memory                   157Mi          157Mi  1 (1 to 1)        none shown

    Configurations that both ran

    Configuration  Kept the SLO, first  second  Latency, first  second  Ratio
    ─────────────  ───────────────────  ──────  ──────────────  ──────  ────────────────
    1Gi            1 of 1               1 of 1          17.1ms  17.1ms  –
    256Mi          1 of 1               1 of 1          16.9ms  16.9ms  –
    128Mi          0 of 1               0 of 1               –       –  –
    181Mi          0 of 1               0 of 1           152ms   152ms  –
    215Mi          1 of 1               1 of 1          17.1ms  17.1ms  –
    197Mi          6 of 6               6 of 6          16.3ms  16.3ms  1 (0.98 to 1.02)
    189Mi          0 of 1               0 of 1           128ms   128ms  –
    212Mi          8 of 8               8 of 8          16.3ms  16.3ms  1 (0.95 to 1.05)
    195Mi          0 of 1               0 of 1           109ms   109ms  –
    ");
}

#[test]
fn hostile_results_stay_text_in_a_comparison() {
    let comparison = compare(&hostile::view(), &fixture::search());
    let texts = [
        comparison_terminal(&comparison, 100),
        comparison_markdown(&comparison),
        comparison_json(&comparison),
    ];
    for text in &texts {
        assert!(!text.contains('\u{1b}') && !text.contains("hunter2"));
    }
    assert!(!texts[1].contains("<script"), "{}", texts[1]);
    let parsed: serde_json::Value = serde_json::from_str(&texts[2]).expect("JSON");
    assert_eq!(parsed["schema"], 1);
}
