//! The outlook of a search holds on the simulated host.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
#![allow(
    clippy::print_stdout,
    reason = "the figures are worth seeing when it passes too"
)]

mod rig;

use std::time::Duration;

use loadline_analysis::interval::median;
use loadline_analysis::random::RandomStream;
use loadline_analysis::search::outlook::Outlook;
use loadline_analysis::search::size::SizeSearch;
use loadline_experiment::Experiment;
use loadline_runner::agenda::Agenda;
use loadline_runner::left::TimeLeft;
use loadline_runner::searches::size_search;
use loadline_simulated::World;
use loadline_simulated::world::MemoryWall;

/// The simulated host cannot lower a limit, which is unknown before it runs.
fn one_by_one(experiment: &Experiment) -> SizeSearch {
    let mut search = size_search(experiment, None);
    for base in &mut search.bases {
        base.is_squeezable = false;
    }
    search
}

#[test]
fn searches_take_as_many_starts_as_was_told() {
    let tables = "[search]\nmin-memory = \"64Mi\"\nmax-memory = \"1Gi\"\n";
    let experiment = rig::experiment(tables, "200/s");
    let search = one_by_one(&experiment);
    let told = Outlook::for_search(&search, &experiment.slo, Duration::from_secs(18));
    let starts: Vec<f64> = (0..20)
        .map(|seed| {
            let world = World {
                wall: MemoryWall::draw_wall(&mut RandomStream::from_seed(3000).derive(seed)),
                ..World::default()
            };
            let (_, watch, _) = rig::answer(world, seed, 1, &experiment, &search);
            f64::from(watch.begun)
        })
        .collect();
    let half = median(&starts).unwrap();
    let beyond = starts.iter().filter(|n| **n > f64::from(told.starts_95));
    let beyond = beyond.count();
    println!("{half} starts of 20 searches, {beyond} beyond the 95 %; told: {told:?}");
    assert!((half / f64::from(told.starts) - 1.0).abs() < 0.15);
    assert!(beyond <= 4, "one in twenty is expected");
}

/// At the end of each trial from the third on, the error of the predicted end, as a share of the
/// whole run.
fn told_at(lengths: &[(Duration, bool)], expected: u32) -> Vec<f64> {
    let total: Duration = lengths.iter().map(|(length, _)| *length).sum();
    let mut left = TimeLeft::new(Some(expected), Duration::from_secs(18));
    let mut now = Duration::ZERO;
    let mut errors = Vec::new();
    for (ended, (length, is_measured)) in (1..).zip(lengths) {
        now += *length;
        left.trial_ends(now, *is_measured);
        if ended >= 3 && now < total {
            let end = now + left.remaining_at(now).unwrap_or_default();
            errors.push(end.as_secs_f64() / total.as_secs_f64() - 1.0);
        }
    }
    errors
}

#[test]
fn from_the_third_trial_on_the_end_is_told_within_30_percent() {
    let tables = "[search]\nmin-memory = \"64Mi\"\nmax-memory = \"1Gi\"\n";
    let search_of = rig::experiment(tables, "200/s");
    let search = one_by_one(&search_of);
    let told = Outlook::for_search(&search, &search_of.slo, Duration::from_secs(18));
    let world = |seed| World {
        wall: MemoryWall::draw_wall(&mut RandomStream::from_seed(3100).derive(seed)),
        ..World::default()
    };
    let mut of_searches = Vec::new();
    for seed in 0..40 {
        let (_, watch, _) = rig::answer(world(seed), seed, 1, &search_of, &search);
        of_searches.extend(told_at(&watch.lengths, told.starts));
    }
    let matrix_of = rig::experiment(
        "[run]\nrepeats = 6\n[[factor]]\nname = \"memory\"\nlevels = [\"512Mi\", \"1Gi\", \"2Gi\"]",
        "200/s",
    );
    let matrix = Agenda::new(&matrix_of).matrix;
    let (_, watch, _) = rig::answer(World::default(), 1, 1, &matrix_of, &matrix);
    let of_matrix = told_at(&watch.lengths, 18);
    let near = |errors: &[f64]| {
        let near = errors.iter().filter(|e| e.abs() <= 0.3).count();
        near as f64 / errors.len() as f64
    };
    let (searches, matrix) = (near(&of_searches), near(&of_matrix));
    println!(
        "within 30 %: {searches:.3} of {} of searches, {matrix:.3} of a matrix",
        of_searches.len()
    );
    assert!(matrix >= 1.0);
    assert!(searches >= 0.9);
}
