//! Applications that do not work: messages to the user, and how it ends.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_bind, mount_change};

use crate::disk::Mounted;
use crate::lab::Lab;
use crate::process::{Call, Ended, POLL, Running};
use crate::runner::{Case, Outcome};
use crate::traces::{assert_nothing_left, parts, processes};

pub const CASES: [Case; 9] = [
    ("it_answers_500", it_answers_500),
    ("it_exits_early_with_0", it_exits_early_with_0),
    ("it_never_listens", it_never_listens),
    ("it_is_killed_for_its_memory", it_is_killed_for_its_memory),
    ("the_jvm_refuses_its_options", the_jvm_refuses_its_options),
    ("a_real_jvm_passes", a_real_jvm_passes),
    (
        "under_sudo_it_has_its_own_account_and_sees_no_records",
        under_sudo,
    ),
    (
        "mounts_come_to_a_trial_and_none_of_it_comes_back",
        mounts_come_to_a_trial,
    ),
    ("a_cold_jvm_is_given_time", a_cold_jvm_is_given_time),
];

/// A trial that goes on until it is killed.
fn serving(lab: &Lab, call: Call) -> Running {
    let call = call.args(&["--wait", "--slo=errors<50%", "--rate=20/s", "--measure=1h"]);
    let call = call.args(&["--warm-up=0s", "--url=http://localhost:8080/"]);
    let mut running = call.zoo(lab, &["serve"]).start();
    running.until_it_measures();
    while parts(lab, "load-part").is_empty() && !running.has_ended() {
        std::thread::sleep(POLL);
    }
    running
}

/// The processes of an application that serves.
fn applications(lab: &Lab) -> Vec<PathBuf> {
    let serves = |process: &PathBuf| {
        let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
        words
            .windows(2)
            .any(|pair| pair == [b"zoo".as_slice(), b"serve"])
            && words[1] == b"zoo"
    };
    processes(lab).into_iter().filter(serves).collect()
}

/// The caller's account would read the caller's files and speak to the caller's session.
fn under_sudo() -> Outcome {
    let lab = Lab::new();
    let call = lab.call("run").env("SUDO_UID", "1000");
    let call = call.env("SUDO_GID", "1000").env("SUDO_USER", "someone");
    let mut running = serving(&lab, call);
    let application = applications(&lab).pop().expect("it serves");
    let owner = std::fs::metadata(&application).expect("it runs").uid();
    assert_eq!(owner, 64_999);
    let state = lab.state();
    assert!(state.join("loadline.db").exists());
    let seen = state.strip_prefix("/").expect("an absolute path");
    let seen = std::fs::read_dir(application.join("root").join(seen));
    assert_eq!(seen.into_iter().flatten().count(), 0, "it sees records");
    running.kill();
    running.end();
    None
}

/// A file system unmounted on the machine is gone in a trial too, and does not stay busy.
fn mounts_come_to_a_trial() -> Outcome {
    let lab = Lab::new();
    let place = lab.path().join("shared");
    std::fs::create_dir(&place).expect("a directory");
    mount_bind(&place, &place).expect("a mount");
    let _outer = Mounted(place.clone());
    mount_change(&place, MountPropagationFlags::SHARED).expect("it is shared");
    let disk = place.join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    let call = lab.call("run");
    let mut running = serving(&lab, call);
    let application = applications(&lab).pop().expect("it serves");
    let sees = |path: &Path| {
        let table = std::fs::read_to_string(application.join("mountinfo")).expect("its mounts");
        table.contains(&format!(" {} ", path.display()))
    };
    assert!(sees(&place) && !sees(&disk));
    mount("tmpfs", &disk, "tmpfs", MountFlags::empty(), c"size=1m").expect("a mount");
    let inner = Mounted(disk.clone());
    assert!(sees(&disk), "a new mount appears");
    drop(inner);
    assert!(!sees(&disk), "an unmounted one disappears");
    let table = std::fs::read_to_string(application.join("mountinfo")).expect("its mounts");
    assert!(!table.contains(" shared:"), "no mount comes back:\n{table}");
    running.kill();
    running.end();
    None
}

/// One trial of an application of the zoo.
fn run(lab: &Lab, flags: &[&str], application: &[&str]) -> Ended {
    lab.measure("run")
        .args(flags)
        .zoo(lab, application)
        .into_end()
}

fn verdict(lab: &Lab) -> serde_json::Value {
    lab.trial()["verdict"].clone()
}

fn it_answers_500() -> Outcome {
    let lab = Lab::new();
    run(&lab, &["--start-deadline=5s"], &["serve", "status=500"])
        .expect_code(1)
        .says(&["APP_KO never_ready", "not ready within 5s", "HTTP 500"])
        .prints(&["does not keep"]);
    None
}

fn it_exits_early_with_0() -> Outcome {
    let lab = Lab::new();
    run(&lab, &[], &["exit", "code=0"]).expect_code(1).says(&[
        "APP_KO crash",
        "exit code 0",
        "before it was ready",
    ]);
    let under_load = ["exit", "code=0", "after_ms=5000"];
    run(&lab, &["--measure=20s"], &under_load)
        .expect_code(1)
        .says(&["APP_KO crash", "exit code 0", "in the measure phase"]);
    None
}

fn it_never_listens() -> Outcome {
    let lab = Lab::new();
    run(&lab, &["--start-deadline=5s"], &["never-ready"])
        .expect_code(1)
        .says(&["APP_KO never_ready", "within 5s", "connection refused"]);
    None
}

fn it_is_killed_for_its_memory() -> Outcome {
    let lab = Lab::new();
    let file = format!(
        "slo = 'errors<50%'\n[app]\ncommand = {:?}\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '20s'\nwarm-up = '0s'\n[limits]\nmemory = '32Mi'\n",
        lab.application(&["oom", "step_mib=4", "step_ms=20"])
    );
    std::fs::write(lab.path().join("oom.toml"), file).expect("a file");
    lab.call("run")
        .args(&["--wait", "oom.toml"])
        .into_end()
        .expect_code(1)
        .says(&["APP_KO cgroup_oom", "memory limit of 32Mi"]);
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

fn the_jvm_refuses_its_options() -> Outcome {
    let jar = match ping() {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    java(&lab, &["-XX:+NoSuchFlag"], &jar)
        .expect_code(1)
        .says(&["APP_KO bad_flags", "Unrecognized VM option 'NoSuchFlag'"]);
    assert_eq!(verdict(&lab)["cause"], "bad_flags");
    None
}

fn a_real_jvm_passes() -> Outcome {
    let jar = match ping() {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let ended = java(&lab, &["-XX:+UseSerialGC", "-Xmx32m"], &jar).expect_code(0);
    ended.says(&["PASS"]).prints(&["1 of 1"]);
    let gc = lab.trial()["evidence"]["gc"].clone();
    assert_eq!(gc["collector"], "Serial", "the GC log was read");
    None
}

/// A JVM that is judged from its first request on gets a longer warm-up where a warm one is asked for.
fn a_cold_jvm_is_given_time() -> Outcome {
    let jar = match ping() {
        Ok(jar) => jar,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let search = ["--min-memory=96Mi", "--max-memory=128Mi", "--step=32Mi"];
    let ended = lab.measure("size").args(&search);
    let ended = ended.args(&[
        "--confirm=1",
        "--prove=1",
        "--measure=4s",
        "--question=steady",
    ]);
    let ended = ended.args(&["--", "java", "-jar"]).arg(&jar).into_end();
    ended
        .expect_code(0)
        .says(&["room     128Mi #1", "room     warm-up="])
        .prints(&["lengthened to"]);
    let result = lab.result("last");
    let answer = &result["recommendation"];
    assert_eq!(answer["question"], "steady");
    let warm_up = &answer["configuration"]["warm_up_ns"];
    assert!(warm_up.as_u64() >= Some(5_000_000_000), "{warm_up}");
    let grounds = answer["evidence"].as_array().expect("trials");
    let trials = result["trials"].as_array().expect("trials");
    let (long, short): (Vec<_>, Vec<_>) = trials
        .iter()
        .partition(|trial| trial["configuration"]["warm_up_ns"] == *warm_up);
    assert!(!short.is_empty(), "the first start is kept");
    for id in grounds {
        assert!(long.iter().any(|trial| trial["id"] == *id), "{id}");
    }
    None
}

fn java(lab: &Lab, options: &[&str], jar: &Path) -> Ended {
    lab.measure("run")
        .args(&["--", "java"])
        .args(options)
        .arg("-jar")
        .arg(jar)
        .into_end()
}

/// The smallest workload, or why it cannot run here.
pub fn ping() -> Result<PathBuf, String> {
    workload("ping")
}

/// A workload by its name, or why it cannot run here.
pub fn workload(name: &str) -> Result<PathBuf, String> {
    let file = format!("build/workloads/{name}.jar");
    let jar = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(&file);
    let jar = jar
        .canonicalize()
        .map_err(|_| format!("{file} is not there; `make workloads` builds it"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_java = std::env::split_paths(&path).any(|place| place.join("java").is_file());
    has_java.then_some(jar).ok_or("no java in PATH".to_owned())
}
