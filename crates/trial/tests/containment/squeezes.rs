//! Many squeezes over all JDKs and collectors: none kills the application. A long form.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_analysis::record::SqueezeEnd;
use loadline_protocol::StudyGoal;

use crate::java::{javas, studied};
use crate::lab::Lab;
use crate::runner::Case;

pub const CASES: [Case; 1] = [(NAME, squeezes_kill_nothing)];

const NAME: &str = "squeezes_kill_nothing";

/// How many squeezes.
const COUNT: &str = "LOADLINE_SQUEEZES";

const COLLECTORS: [&str; 5] = ["Serial", "Parallel", "G1", "Shenandoah", "Z"];

/// User-mode Linux has too few addresses for the other heaps.
pub const GUEST: [&str; 3] = ["Serial", "Parallel", "G1"];

fn squeezes_kill_nothing() {
    match std::env::var(COUNT) {
        Ok(count) => squeeze_starts(count.parse().expect("a number of squeezes"), &COLLECTORS),
        Err(_) => println!("SKIP {NAME}: long; {COUNT}=COUNT squeezes COUNT starts"),
    }
}

/// The guest's own disk.
const DISK: &str = "/dev/ubda";

/// How the squeezes of one collector on one JDK ended.
#[derive(Default)]
struct SqueezeEnds {
    walls: usize,
    without_room: usize,
    others: Vec<String>,
    kills: u64,
    died: usize,
    least_room_mib: Option<f64>,
}

/// Copies of the JDKs.
fn own_javas(directory: &Path) -> Vec<PathBuf> {
    if Path::new(DISK).exists() {
        let script = "mkfs.ext4 -q \"$0\" && mount \"$0\" \"$1\"";
        let mut mount = Command::new("sh");
        mount.args(["-c", script, DISK]).arg(directory);
        assert!(mount.status().is_ok_and(|status| status.success()));
    }
    let javas = javas().into_iter();
    javas.map(|java| copy_jdk(&java, directory)).collect()
}

/// A copy of a JDK; its `java`. Another JVM of this machine would pay for the file pages that it shares,
/// and a squeeze would find no room instead of a wall.
pub fn copy_jdk(java: &Path, directory: &Path) -> PathBuf {
    let home = java.ancestors().nth(2).expect("bin/java of a JDK");
    let own = directory.join(home_of(java));
    // Its links to missing packages fail.
    let _ = Command::new("cp").arg("-rL").arg(home).arg(&own).output();
    let copied = own.join("bin/java");
    assert!(copied.is_file(), "{home:?}");
    copied
}

fn home_of(java: &Path) -> String {
    let home = java.ancestors().nth(2).and_then(Path::file_name);
    home.unwrap_or_default().to_string_lossy().into_owned()
}

/// Squeezes this many starts, in turn over collectors and JDKs, and prints a table.
/// Panics: the kernel killed an application, or one ended.
pub fn squeeze_starts(count: usize, collectors: &[&str]) {
    let mut lab = Lab::new();
    let javas = own_javas(lab.scratch.path());
    let mut all: BTreeMap<(String, &str), SqueezeEnds> = BTreeMap::new();
    let kinds = javas
        .iter()
        .flat_map(|java| collectors.iter().map(move |collector| (java, *collector)));
    for (java, collector) in kinds.cycle().take(count) {
        let option = format!("-XX:+Use{collector}GC");
        let evidence = studied(&mut lab, java, &[&option], StudyGoal::Wall);
        let ends = all.entry((home_of(java), collector)).or_default();
        ends.kills += evidence.cgroup.oom_kills.expect("kills are counted");
        ends.died += usize::from(evidence.exit.before_stop);
        let squeeze = evidence.squeeze.expect("it was ordered");
        match squeeze.end {
            SqueezeEnd::Storm | SqueezeEnd::Pressure | SqueezeEnd::Busy => ends.walls += 1,
            SqueezeEnd::NoRoom => ends.without_room += 1,
            other => ends.others.push(format!("{other:?}")),
        }
        let rooms = squeeze.steps.iter().map(|step| {
            let room = step.limit.as_mib() - step.unreclaimable.as_mib();
            room.max(0.0)
        });
        let known = ends.least_room_mib.into_iter();
        ends.least_room_mib = known.chain(rooms).min_by(f64::total_cmp);
    }
    println!(
        "| JDK | collector | walls | no room left | others | kills | ended | least room, MiB |"
    );
    println!("|---|---|---:|---:|---|---:|---:|---:|");
    for ((home, collector), ends) in &all {
        println!(
            "| {home} | {collector} | {} | {} | {} | {} | {} | {:.1} |",
            ends.walls,
            ends.without_room,
            ends.others.join(", "),
            ends.kills,
            ends.died,
            ends.least_room_mib.unwrap_or_default(),
        );
    }
    let sum = |of: fn(&SqueezeEnds) -> u64| all.values().map(of).sum::<u64>();
    let (kills, died) = (sum(|ends| ends.kills), sum(|ends| ends.died as u64));
    println!("{count} squeezes, {kills} kills, {died} applications that ended");
    assert_eq!((kills, died), (0, 0));
    // Outside of a guest it is not mounted.
    let _ = Command::new("umount").arg(DISK).output();
    lab.assert_clean();
}
