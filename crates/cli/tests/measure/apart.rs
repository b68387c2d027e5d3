//! Engines apart: docker, and podman behind a service, whose cgroups are out of loadline's sight,
//! because an empty file system covers them. What is measured of an image, and what is left.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engines::Engine;
use crate::lab::Lab;
use crate::process::{Call, Ended, POLL};
use crate::runner::{Case, Outcome};
use crate::traces::assert_dead;

pub const CASES: [Case; 2] = [
    ("docker_apart_measures_an_image", || {
        Engine::docker().map_or_else(Some, |engine| measured(&engine))
    }),
    ("podman_apart_measures_an_image", || {
        Engine::podman_service().map_or_else(Some, |engine| measured(&engine))
    }),
];

/// One image, all ends.
fn measured(engine: &Engine) -> Outcome {
    passes(engine);
    misses_its_slo(engine);
    is_killed_for_its_memory(engine);
    never_gets_ready(engine);
    ends_at_once(engine);
    cannot_be_executed(engine);
    is_told_to_stop(engine);
    is_swept_after_a_kill(engine);
    assert_eq!(engine.left_apart(), Vec::<String>::new());
    None
}

/// loadline where no cgroup can be seen, with this engine.
fn call(engine: &Engine, lab: &Lab) -> Call {
    engine.call(lab.without_cgroups("run"))
}

fn clean(engine: &Engine, lab: &Lab) -> Ended {
    let call = lab
        .without_cgroups_bare("clean")
        .arg("--state")
        .arg(lab.state());
    engine.environment(call).into_end()
}

fn zoo(engine: &Engine, lab: &Lab, flags: &[&str], application: &[&str]) -> Call {
    let call = call(engine, lab).args(flags);
    let call = call.args(&["--", "/bin/measure", "zoo"]).args(application);
    call.arg(format!("mark={}", lab.path().display()))
}

fn trial(lab: &Lab) -> Value {
    lab.result("last")["trials"][0].clone()
}

fn passes(engine: &Engine) {
    let lab = Lab::new();
    let options = "--jvm=small: -XX:+UseSerialGC -Xmx32m";
    let limits = ["--cpu=1", "--memory=96Mi"];
    let ended = call(engine, &lab).arg(options).args(&limits).into_end();
    ended
        .expect_code(0)
        .says(&["a second container beside", "PASS"]);
    let machine = lab.result("last")["machine"].take();
    assert!(machine["apart"].is_string(), "{machine}");
    assert!(
        machine["jdks"][0].is_string(),
        "its JVM was found: {machine}"
    );
    let evidence = &trial(&lab)["evidence"];
    assert_eq!(evidence["gc"]["collector"], "Serial", "{evidence}");
    assert!(
        evidence["start"]["classes"].as_u64() > Some(100),
        "{evidence}"
    );
    let peak = evidence["cgroup"]["peak_memory_bytes"].as_u64();
    assert!(peak > Some(10 << 20) && peak <= Some(96 << 20), "{peak:?}");
    assert!(
        evidence["start"]["cpu_ns"].as_u64() > Some(1_000_000),
        "{evidence}"
    );
    assert!(evidence["failure"].is_null(), "{evidence}");
    assert_eq!(engine.left_apart(), Vec::<String>::new());
}

fn misses_its_slo(engine: &Engine) {
    let lab = Lab::new();
    let slow = ["serve", "slow_ms=60"];
    let ended = zoo(engine, &lab, &["--slo=p50<20ms"], &slow).into_end();
    ended.expect_code(1).says(&["SLO_MISS"]);
}

fn is_killed_for_its_memory(engine: &Engine) {
    let lab = Lab::new();
    let flags = ["--memory=32Mi", "--measure=20s", "--slo=errors<50%"];
    let oom = ["oom", "step_mib=4", "step_ms=20"];
    let ended = zoo(engine, &lab, &flags, &oom).into_end();
    ended
        .expect_code(1)
        .says(&["APP_KO cgroup_oom", "memory limit of 32Mi"]);
    assert_eq!(trial(&lab)["evidence"]["exit"]["signal"], 9);
}

fn never_gets_ready(engine: &Engine) {
    let lab = Lab::new();
    let ended = zoo(engine, &lab, &["--start-deadline=3s"], &["never-ready"]).into_end();
    ended
        .expect_code(1)
        .says(&["APP_KO never_ready", "within 3s", "nothing listens"]);
}

fn ends_at_once(engine: &Engine) {
    let lab = Lab::new();
    let end = ["--", "/opt/jre/bin/java", "-NoSuchOption"];
    let ended = call(engine, &lab).args(&end).into_end();
    ended.expect_code(1).says(&["APP_KO", "NoSuchOption"]);
}

fn cannot_be_executed(engine: &Engine) {
    let lab = Lab::new();
    let ended = call(engine, &lab)
        .args(&["--", "/no/such/program"])
        .into_end();
    let ended = ended.expect_code(3);
    ended.says(&["starting the application", "/no/such/program", "hint: "]);
    assert_eq!(engine.left_apart(), Vec::<String>::new());
}

fn is_told_to_stop(engine: &Engine) {
    let lab = Lab::new();
    let running = zoo(engine, &lab, &["--measure=60s"], &["serve"]).start();
    until_a_trial_runs(engine);
    running.signal(rustix::process::Signal::INT);
    running.end().expect_code(130);
    assert_eq!(engine.left_apart(), Vec::<String>::new());
}

/// Waits until both containers of a trial run.
fn until_a_trial_runs(engine: &Engine) {
    let begin = Instant::now();
    let running = [
        "ps",
        "--filter",
        "label=loadline.apart=trial",
        "--format",
        "{{.Names}}",
    ];
    while engine.say(&running).expect("it lists").lines().count() < 2 {
        assert!(begin.elapsed() < Duration::from_secs(60), "no trial runs");
        std::thread::sleep(POLL);
    }
}

/// What a killed loadline leaves goes with the next start; what of another machine's is there stays.
fn is_swept_after_a_kill(engine: &Engine) {
    let lab = Lab::new();
    for again in [true, false] {
        let mut victim = zoo(engine, &lab, &["--measure=60s"], &["serve"]).start();
        until_a_trial_runs(engine);
        victim.kill();
        assert_eq!(engine.left_apart().len(), 3, "two containers and a volume");
        let foreign = "loadline-ffffffff-1-1-1-foreign";
        let label = "--label=loadline.client=another";
        let volume = ["volume", "create", label, foreign];
        engine.say(&volume).expect("it is made");
        match again {
            true => call(engine, &lab).into_end().expect_code(0),
            false => clean(engine, &lab)
                .expect_code(0)
                .prints(&["1 image of loadline itself"]),
        };
        // The engine's containers outlive a killed loadline, as SECURITY.md says: until now.
        assert_dead(&lab, Duration::from_secs(10));
        assert_eq!(engine.left_apart(), [foreign]);
        engine
            .say(&["volume", "rm", foreign])
            .expect("it is removed");
    }
}
