//! A hundred trials over the whole zoo: 0 processes, groups, mounts, files and descriptors left.

use std::time::{Duration, Instant};

use loadline_analysis::record::Phase;

use crate::lab::Lab;
use crate::oracle::num_cgroups;
use crate::runner::Case;

pub const CASES: [Case; 1] = [("hundred_hostile_trials", hundred_hostile_trials)];

/// How many trials.
const TRIALS: usize = 100;

/// Each mode with settings that make it quick.
const ZOO: [&[&str]; 21] = [
    &["serve"],
    &["daemons", "count=20"],
    &["fork-bomb"],
    &["ignore-term"],
    &["oom", "step_mib=16", "step_ms=1"],
    &["oom-child"],
    &["flood", "mib=40"],
    &["binary"],
    &["no-newline"],
    &["squat"],
    &["exit"],
    &["exit", "code=7"],
    &["signal", "number=11"],
    &["stop-self"],
    &["descriptors"],
    &["threads"],
    &["fill-disk", "mib=8"],
    &["deep-tree", "levels=2000"],
    &["re-exec"],
    &["plant"],
    &["hang"],
];

fn hundred_hostile_trials() {
    let mut lab = Lab::new();
    let groups_before = num_cgroups();
    let begin = Instant::now();
    let mut slowest = Duration::ZERO;
    for number in 0..TRIALS {
        let mut spec = lab.spec(ZOO[number % ZOO.len()]);
        // Ready or not, dead or alive: the trial must come to its end.
        spec.start_deadline = Duration::from_secs(1);
        spec.stop_grace = Duration::from_millis(200);
        let trial = Instant::now();
        let evidence = lab.run(&spec, None).evidence;
        let stop = evidence.phases.iter().find(|p| p.phase == Phase::Stop);
        let stop = stop.map_or(0, |stop| stop.end - stop.start);
        slowest = slowest.max(Duration::from_nanos(stop));
        assert_eq!(evidence.failure, None, "{:?}", ZOO[number % ZOO.len()]);
        assert!(
            trial.elapsed() < Duration::from_secs(20),
            "{:?}",
            spec.command
        );
        lab.assert_clean();
    }
    let dying = num_cgroups() - groups_before;
    println!(
        "{TRIALS} trials in {:.1} s; slowest stop {slowest:?}; memory groups of the kernel {dying:+}",
        begin.elapsed().as_secs_f64()
    );
    // Other programs on the machine make groups too; ours must not stay behind one by one.
    assert!(
        dying < TRIALS as i64 / 2,
        "{dying} groups are left in the kernel"
    );
}
