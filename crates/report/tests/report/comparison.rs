//! Two results side by side, and the exported form they are read from.

use std::time::Duration;

use loadline_analysis::record::{
    ApplicationVersion, InvalidReason, MOST_MEMORY, TrialRecord, TrialVerdict, memory_of_json,
};
use loadline_report::compare::{
    FigureChange, compare, comparison_json, comparison_markdown, comparison_terminal,
};
use loadline_report::{ReadError, ResultView, read, render_json};
use loadline_sizing::{Bytes, Cpus};

use crate::{drawings, fixture, hostile};

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
    recommendation.configuration.memory = Some(Bytes::from_mib(mib));
    view
}

#[test]
fn a_result_is_read_back_from_its_export() {
    for view in [fixture::search(), fixture::matrix()] {
        let back = read(&render_json(&view)).expect("it was just written");
        assert_eq!(render_json(&back), render_json(&view));
        assert_eq!(back.trials, view.trials);
        assert_eq!(back.recommendation, view.recommendation);
    }
    let other = render_json(&fixture::search()).replacen("\"schema\":1", "\"schema\":99", 1);
    assert_eq!(read(&other), Err(ReadError::Newer { found: 99 }));
    assert!(matches!(read("{}"), Err(ReadError::Form { .. })));
    // A newer form may differ in anything.
    let verdict = other.replacen("\"class\":\"pass\"", "\"class\":\"perhaps\"", 1);
    assert_ne!(verdict, other);
    assert_eq!(read(&verdict), Err(ReadError::Newer { found: 99 }));
}

#[test]
fn a_short_text_that_takes_much_memory_is_refused() {
    let seconds = r#"{"at_ns":0},"#.repeat(6_000_000);
    let text = format!(r#"{{"schema":1,"trials":[{{"evidence":{{"seconds":[{seconds}"#);
    assert_eq!(read(&text), Err(ReadError::Large));
    for view in [fixture::search(), fixture::matrix()] {
        let text = render_json(&view);
        // The largest file that is read has 256 MiB.
        assert!(memory_of_json(text.as_bytes()) < text.len() as u64 * (MOST_MEMORY / (256 << 20)));
    }
}

#[test]
fn a_rate_that_is_no_number_is_none_after_an_export_too() {
    let back = read(&render_json(&hostile::view())).expect("it was just written");
    let loads = back.trials.iter().flat_map(|t| &t.evidence.load);
    let rates: Vec<f64> = loads.map(|load| load.achieved_rate).collect();
    assert!(
        !rates.is_empty() && rates.iter().all(|rate| rate.is_nan()),
        "{rates:?}"
    );
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
            matches!(figure.change, FigureChange::NotShown | FigureChange::TooFew),
            "{figure:?}"
        );
    }
}

#[test]
fn a_slower_start_is_seen_and_its_interval_holds_the_truth() {
    let changed = compare(&fixture::search(), &slower());
    let start = changed.recommended.iter().find(|f| f.key == "start_s");
    let start = start.expect("starts were measured");
    assert_eq!(start.change, FigureChange::More);
    let ratio = start.ratio.expect("eight starts on each side");
    assert!(ratio.contains(2.0), "{ratio:?}");
    let latency = changed.recommended.iter().find(|f| f.key == "latency_s");
    assert_eq!(latency.map(|f| f.change), Some(FigureChange::NotShown));
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
    let lost = after
        .trials
        .iter_mut()
        .find(|t| t.verdict == TrialVerdict::Pass);
    lost.expect("one kept it").verdict = TrialVerdict::SloMiss;
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

/// The search, with the first trial at this memory that passed turned into a miss.
fn missed_at(mib: u64) -> ResultView {
    let mut view = fixture::search();
    let memory = Some(Bytes::from_mib(mib));
    let is_it =
        |t: &&mut TrialRecord| t.configuration.memory == memory && t.verdict == TrialVerdict::Pass;
    let trial = view.trials.iter_mut().find(is_it);
    trial.expect("one passed").verdict = TrialVerdict::SloMiss;
    view
}

#[test]
fn between_two_searches_the_border_below_the_answer_says_nothing() {
    let base = fixture::search();
    let border = compare(&base, &missed_at(197));
    assert!(!border.is_worse, "{}", border.sentence);
    assert!(
        border
            .sentence
            .starts_with("No change that counts: 212Mi and 212Mi")
    );
    for mib in [212, 215] {
        let lost = compare(&base, &missed_at(mib));
        assert!(lost.is_worse, "{}", lost.sentence);
        let named = format!("The SLO is no longer kept at {mib}Mi.");
        assert!(lost.sentence.contains(&named), "{}", lost.sentence);
    }
}

/// The deployment with this many replicas, each at the same price.
fn deployed(replicas: u32) -> ResultView {
    let mut view = drawings::cheapest();
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    let chosen = &mut recommendation.deployment.as_mut().expect("priced").chosen;
    chosen.cost.per_month *= f64::from(replicas) / f64::from(chosen.replicas);
    chosen.replicas = replicas;
    view
}

#[test]
fn deployments_are_compared_by_price() {
    let worse = compare(&deployed(2), &deployed(6));
    assert!(worse.is_worse, "{}", worse.sentence);
    assert!(
        worse
            .sentence
            .starts_with("It costs more: 6 x 500m vCPU, 1Gi, $"),
        "{}",
        worse.sentence
    );
    assert!(
        worse.sentence.contains(" instead of 2 x 500m vCPU, 1Gi, $"),
        "{}",
        worse.sentence
    );
    assert!(
        worse.sentence.ends_with(", 200 % more."),
        "{}",
        worse.sentence
    );
    let json: serde_json::Value = serde_json::from_str(&comparison_json(&worse)).expect("JSON");
    assert_eq!(json["replicas"], serde_json::json!([2, 6]));
    let better = compare(&deployed(6), &deployed(2));
    assert!(!better.is_worse && better.sentence.starts_with("It costs less: 2 x"));

    let mut elsewhere = deployed(6);
    let recommendation = elsewhere.recommendation.as_mut().expect("a recommendation");
    recommendation
        .deployment
        .as_mut()
        .expect("priced")
        .offer
        .region = "far".to_owned();
    let other = compare(&deployed(2), &elsewhere);
    assert!(!other.is_worse, "{}", other.sentence);
    assert!(
        other
            .sentence
            .starts_with("The prices are those of different offers")
    );
    assert!(
        other
            .differences
            .iter()
            .any(|d| d.starts_with("The offer differs: "))
    );
}

/// The search, with an answer of another CPU limit.
fn with_cpu(millis: u32, mib: u64) -> ResultView {
    let mut view = sized(mib);
    let recommendation = view.recommendation.as_mut().expect("a recommendation");
    recommendation.configuration.cpu = Some(Cpus::from_millis(millis));
    view
}

#[test]
fn another_cpu_limit_is_another_size() {
    let more = compare(&with_cpu(500, 212), &with_cpu(2000, 212));
    assert!(more.is_worse, "{}", more.sentence);
    assert_eq!(
        more.sentence,
        "It needs more: 2 CPUs and 212Mi instead of 500m CPU and 212Mi."
    );
    let less = compare(&with_cpu(2000, 212), &with_cpu(500, 424));
    assert!(!less.is_worse && less.sentence.starts_with("It needs less: "));
    let even = compare(&with_cpu(1000, 212), &with_cpu(990, 220));
    assert!(!even.is_worse, "{}", even.sentence);
    assert!(even.sentence.contains("another size, about as much in all"));
}

#[test]
fn what_was_not_measured_is_neither_worse_nor_the_same() {
    let base = fixture::search();
    let mut empty = ResultView {
        recommendation: None,
        ..fixture::search()
    };
    for trial in &mut empty.trials {
        trial.verdict = TrialVerdict::Invalid(InvalidReason::Noise);
    }
    let invalid = compare(&base, &empty);
    assert_eq!(
        invalid.sentence,
        "Not comparable: no trial of the second was valid."
    );
    assert!(!invalid.is_worse && invalid.cannot_say.is_some());
    empty.trials.clear();
    let none = compare(&base, &empty);
    assert_eq!(none.cannot_say.as_deref(), Some("the second has no trial"));
    assert!(compare(&empty, &base).cannot_say.is_some());
    let cut = ResultView {
        recommendation: None,
        incomplete: Some("interrupted after 4 trials".to_owned()),
        ..fixture::search()
    };
    assert!(compare(&base, &cut).cannot_say.is_some());
    let infeasible = ResultView {
        incomplete: None,
        ..cut
    };
    let infeasible = compare(&base, &infeasible);
    assert!(infeasible.is_worse && infeasible.cannot_say.is_none());
}

#[test]
fn what_differs_besides_is_said_first() {
    let mut other = fixture::search();
    other.load =
        loadline_report::LoadWords::without_rate("GET /slow, open model, 10/s for 5 s".to_owned());
    other.machine.cpus = 64;
    other.machine.version = Some(ApplicationVersion {
        name: Some("1.4.2".to_owned()),
        commit: None,
    });
    let lines = compare(&fixture::search(), &other).differences;
    assert!(
        lines.contains(&"The version differs: not known; 1.4.2.".to_owned()),
        "{lines:?}"
    );
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
    The first recommends 1 CPU and 212Mi; the second 1 CPU and 212Mi.
    Medians of the trials. The ratio is the second over the first, with its 95 % interval (bootstrap
    over trials); a change counts when the whole interval lies beyond 2 %.

    Figure                           First, 212Mi  Second, 212Mi             Ratio  Change
    ───────────────────────────────  ────────────  ─────────────  ────────────────  ──────────
    Latency at the SLO's percentile        16.3ms         16.3ms  1 (0.95 to 1.05)  none shown
    Start time                              5.38s          10.8s  2 (1.96 to 2.05)  more
    Achieved rate                           300/s          300/s        1 (1 to 1)  none shown
    CPUs used                                0.44           0.44  1 (1.00 to 1.00)  none shown
    Time stopped by GC                     1.34 %         1.34 %  1 (0.96 to 1.04)  none shown
    CFS periods throttled                  1.33 %         1.33 %        1 (1 to 1)  none shown
    Heap after GC, largest                   47Mi           47Mi        1 (1 to 1)  none shown
    Peak working set                        189Mi          189Mi        1 (1 to 1)  none shown
    Peak anonymous memory                   157Mi          157Mi        1 (1 to 1)  none shown

    Configurations that both ran

    Configuration  Kept the SLO, first  second  Latency, first  second             Ratio
    ─────────────  ───────────────────  ──────  ──────────────  ──────  ────────────────
    1Gi                         1 of 1  1 of 1          17.1ms  17.1ms                 –
    256Mi                       1 of 1  1 of 1          16.9ms  16.9ms                 –
    128Mi                       0 of 1  0 of 1               –       –                 –
    181Mi                       0 of 1  0 of 1           152ms   152ms                 –
    215Mi                       1 of 1  1 of 1          17.1ms  17.1ms                 –
    197Mi                       6 of 6  6 of 6          16.3ms  16.3ms  1 (0.98 to 1.02)
    189Mi                       0 of 1  0 of 1           128ms   128ms                 –
    212Mi                       8 of 8  8 of 8          16.3ms  16.3ms  1 (0.95 to 1.05)
    195Mi                       0 of 1  0 of 1           109ms   109ms                 –
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

/// The search, where most starts at the answer left half of their requests unanswered.
fn failing() -> ResultView {
    let mut view = fixture::search();
    let size = view
        .recommendation
        .as_ref()
        .expect("a recommendation")
        .recommended_memory();
    let of_size = |t: &&mut TrialRecord| t.configuration.memory == Some(size);
    for trial in view.trials.iter_mut().filter(of_size).skip(2) {
        for load in &mut trial.evidence.load {
            load.scheduled *= 2;
            load.unfinished = load.scheduled / 2;
        }
    }
    view
}

#[test]
fn latencies_in_failures_are_no_better_than_those_that_were_measured() {
    let (good, bad) = (fixture::search(), failing());
    let changed = compare(&good, &bad);
    let latency = changed.recommended.iter().find(|f| f.key == "latency_s");
    let latency = latency.expect("it was measured");
    assert_eq!(latency.shown[1], "in failures");
    assert_eq!(
        (latency.ratio, latency.change),
        (None, FigureChange::InFailures)
    );
    let text = comparison_terminal(&changed, 200);
    assert!(text.contains("requests failed: no ratio"), "{text}");
    assert!(comparison_json(&changed).contains("\"change\": \"in_failures\""));

    let page = loadline_report::render_terminal(&bad, 200);
    assert!(page.contains("p99 was in failures ("), "{page}");
    let (_, table) = page.split_once("Latency by percentile").expect("a section");
    let row = table.lines().find(|l| l.trim_start().starts_with("212Mi"));
    let cells: Vec<&str> = row.expect("a row").split_whitespace().collect();
    // The percentiles above the half lie in the requests that failed.
    assert!(cells.ends_with(&["–", "–", "–", "–"]), "{cells:?}");
}
