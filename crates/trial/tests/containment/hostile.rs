//! Trials over all kinds of hostile programs: 0 processes, groups, mounts, files, keys and
//! descriptors left, and each kind told by the right verdict.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use loadline_analysis::record::{Evidence, TrialPhase};
use loadline_analysis::verdict::{VerdictThresholds, judge_trial};

use crate::kinds::{KINDS, Kind};
use crate::lab::{Lab, load};
use crate::oracle::{keys, num_cgroups};
use crate::runner::Case;

pub const CASES: [Case; 1] = [("each_hostile_kind_is_told_and_leaves_nothing", each_kind)];

/// How many trials, where not each kind once.
pub const TRIALS: &str = "LOADLINE_HOSTILE";

/// Half of the requests are answered: a neighbour on the machine does not change the verdict.
const SLO: &str = "errors<50%";

/// Where the trials run.
pub struct Machine {
    /// When each trial must have ended, a busy machine included.
    pub ends_within: Duration,
    /// In which every server that gets ready does.
    pub start_deadline: Duration,
    /// What every server answers, 1/s.
    pub rate: f64,
    /// In which a process that grows next to its server reaches the limit.
    pub measured: Duration,
}

const THIS: Machine = Machine {
    ends_within: Duration::from_secs(20),
    start_deadline: Duration::from_secs(30),
    rate: 50.0,
    measured: Duration::from_millis(300),
};

/// One slow CPU, which takes seconds to start a few programs: so much is asked of it that its verdicts
/// are those of a machine.
pub const GUEST: Machine = Machine {
    ends_within: Duration::from_secs(300),
    start_deadline: Duration::from_secs(200),
    rate: 5.0,
    measured: Duration::from_secs(3),
};

fn each_kind() {
    let wanted = std::env::var(TRIALS).ok();
    trials(
        wanted
            .and_then(|text| text.parse().ok())
            .unwrap_or(KINDS.len()),
        &THIS,
    );
}

/// So many trials, the kinds in turn, each of which ends in time.
pub fn trials(count: usize, machine: &Machine) {
    let mut lab = Lab::new();
    let (groups, keys_before) = (num_cgroups(), keys(0));
    let begin = Instant::now();
    let mut told = BTreeMap::<(String, String), Told>::new();
    let mut wrong = Vec::new();
    for number in 0..count {
        let kind = &KINDS[number % KINDS.len()];
        let evidence = run(&mut lab, kind, machine);
        let (verdict, why) = verdict(&lab, kind, &evidence);
        if !kind.verdicts.contains(&verdict.as_str()) {
            wrong.push(format!("{}: {verdict}: {why}", kind.name()));
        }
        told.entry((kind.name(), verdict))
            .or_default()
            .add(&evidence);
    }
    let dying = num_cgroups() - groups;
    let more_keys = keys(0) - keys_before;
    let slowest = told.values().map(|told| told.slowest_stop).max();
    let slowest = slowest.unwrap_or_default().as_secs_f64();
    println!("| kind | verdict | trials | slowest stop, ms |\n|---|---|---:|---:|");
    for ((kind, verdict), told) in &told {
        let (trials, stop) = (told.trials, told.slowest_stop.as_millis());
        println!("| `{kind}` | {verdict} | {trials} | {stop} |");
    }
    println!(
        "{count} trials of {} kinds on cgroup {} in {:.0} s; slowest stop {slowest:.1} s; left: nothing; memory groups of the kernel {dying:+}, keys of root {more_keys:+}",
        KINDS.len().min(count),
        lab.site.describe_machine().cgroup,
        begin.elapsed().as_secs_f64()
    );
    assert!(wrong.is_empty(), "told wrongly:\n{}", wrong.join("\n"));
    // Other programs on the machine make groups and keys too; ours must not stay one by one.
    let most = (count / 2).max(20) as i64;
    assert!(dying < most, "{dying} groups are left in the kernel");
    assert!(more_keys < most, "{more_keys} keys are left in the kernel");
}

/// The verdict on one kind.
#[derive(Default)]
struct Told {
    trials: u32,
    slowest_stop: Duration,
}

impl Told {
    fn add(&mut self, evidence: &Evidence) {
        let stop = evidence.phases.iter().find(|p| p.phase == TrialPhase::Stop);
        let stop = stop.map_or(0, |stop| stop.end - stop.start);
        self.trials += 1;
        self.slowest_stop = self.slowest_stop.max(Duration::from_nanos(stop));
    }
}

/// One trial, after which nothing is left.
fn run(lab: &mut Lab, kind: &Kind, machine: &Machine) -> Evidence {
    let mut spec = lab.spec(kind.words);
    kind.set(&mut spec, machine.start_deadline);
    let begin = Instant::now();
    let evidence = lab
        .run(&spec, Some(&load(machine.rate, machine.measured)))
        .evidence;
    let took = begin.elapsed();
    assert!(
        took < machine.ends_within,
        "{}: it took {took:?}",
        kind.name()
    );
    lab.assert_clean_after(&kind.name());
    evidence
}

/// The verdict and its reason, whatever else the machine did.
fn verdict(lab: &Lab, kind: &Kind, evidence: &Evidence) -> (String, String) {
    let spec = crate::lab::spec(lab.scratch.path(), "judged", kind.words);
    let slo = SLO.parse().expect("an SLO");
    let thresholds = VerdictThresholds::default().accepting_neighbours();
    let judgement = judge_trial(&spec.configuration, &slo, evidence, &thresholds);
    (judgement.verdict.to_string(), judgement.reason.to_string())
}
