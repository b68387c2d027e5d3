//! No size keeps the SLO: the best result, and the obstacle.

use loadline_analysis::record::{AppKo, ObjectiveResult, TrialPurpose, TrialVerdict};
use loadline_analysis::slo::Objective;
use loadline_report::ResultView;
use loadline_sizing::Cpus;

use crate::fixture;

/// Trials that miss the first objective by these factors at these rates; below 1 it is kept.
fn view(trials: &[(f64, f64)]) -> ResultView {
    let plain = fixture::search();
    let objective = plain.slo.objectives[0];
    let trials = trials.iter().enumerate().map(|(i, (factor, rate))| {
        let mut trial = plain.trials[0].clone();
        trial.id = format!("trial-{i}");
        trial.purpose = TrialPurpose::Search;
        trial.configuration.rate = Some(*rate);
        trial.configuration.cpu = Some(Cpus::from_whole(1));
        let is_kept = *factor < 1.0;
        trial.verdict = if is_kept {
            TrialVerdict::Pass
        } else {
            TrialVerdict::SloMiss
        };
        trial.reason = "p99 was too long".to_owned().into();
        trial.objectives = vec![ObjectiveResult {
            request: None,
            is_peak: false,
            objective,
            measured: Some(bound(objective) * factor),
            met: is_kept,
        }];
        trial
    });
    ResultView {
        recommendation: None,
        trials: trials.collect(),
        ..plain.clone()
    }
}

fn bound(objective: Objective) -> f64 {
    match objective {
        Objective::Latency { bound, .. } => bound.as_secs_f64(),
        other => panic!("the fixture promises a latency first, not {other}"),
    }
}

#[test]
fn the_best_attained_and_the_binding_objective_are_named() {
    let text = loadline_report::render_terminal(&view(&[(3.0, 100.0), (1.5, 50.0)]), 300);
    assert!(text.contains("The best attained: 1 CPU and"), "{text}");
    let binding = "at 50/s (trial 2). What prevents more is p99<";
    assert!(text.contains(binding), "{text}");
    assert!(
        text.contains("it is 1.50 times what the SLO allows"),
        "{text}"
    );
}

#[test]
fn a_rate_that_was_kept_is_the_best_attained() {
    let text = loadline_report::render_terminal(&view(&[(3.0, 100.0), (0.5, 50.0)]), 300);
    assert!(text.contains("kept the SLO at 50/s (trial 2)"), "{text}");
}

#[test]
fn not_found_is_not_said_to_be_impossible() {
    let undecided = ResultView {
        incomplete: Some("no answer was found before the budget was spent".to_owned()),
        warnings: vec!["the budget ended with 3 cells open".to_owned()],
        ..view(&[(3.0, 100.0), (0.5, 50.0)])
    };
    let text = loadline_report::render_terminal(&undecided, 300);
    assert!(text.contains("No size was found that keeps"), "{text}");
    assert!(text.contains("kept the SLO at 50/s (trial 2)."), "{text}");
    assert!(text.contains("the budget was spent"), "{text}");
    assert!(!text.contains("as many replicas as are allowed"), "{text}");
    assert!(!text.contains("fails too"), "{text}");
}

#[test]
fn what_no_memory_cures_says_so_and_with_which_words_it_ended() {
    let says = |purpose, verdict, lines: &[&str]| {
        let mut view = fixture::search();
        view.recommendation = None;
        view.trials.truncate(1);
        let trial = &mut view.trials[0];
        (trial.purpose, trial.verdict) = (purpose, verdict);
        trial.reason = "it failed".to_owned().into();
        trial.evidence.last_output = lines.iter().map(|line| (*line).to_owned()).collect();
        loadline_report::content::headline(&view).details.join(" ")
    };
    let (room, crash) = (TrialPurpose::Room, TrialVerdict::AppKo(AppKo::Crash));
    let lines = [
        "one",
        "no such file: shop.yml",
        "\tat Shop.main",
        "",
        "two",
        "exit",
    ];
    let had_room = "it failed; it had room, so more memory does not cure it";
    let crashed = says(room, crash, &lines);
    let last = format!("{had_room}; it said last: no such file: shop.yml | two | exit.");
    assert!(crashed.starts_with(&last), "{crashed}");
    let squeezed = says(TrialPurpose::Squeeze, TrialVerdict::SloMiss, &[]);
    assert!(squeezed.starts_with(had_room), "{squeezed}");
    for text in [&crashed, &squeezed] {
        assert!(!text.contains("--max-memory"), "{text}");
    }
    for verdict in [TrialVerdict::SloMiss, TrialVerdict::AppKo(AppKo::CgroupOom)] {
        let small = says(room, verdict, &[]);
        assert!(small.starts_with("it failed. Larger sizes were"), "{small}");
    }
}
