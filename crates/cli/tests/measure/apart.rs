//! Remote engines: docker, and podman behind a service, with cgroups that loadline cannot see,
//! because an empty file system covers them. The measurement of an image, and leftovers.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::engines::{Engine, IMAGE};
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

/// A volume of a loadline on another machine.
const FOREIGN: &str = "loadline-ffffffff-1-1-1-foreign";

/// One image, all ends.
fn measured(engine: &Engine) -> Outcome {
    // A test that failed may have left these.
    let _ = engine.say(&["volume", "rm", FOREIGN]);
    clean(engine, &Lab::new());
    ends_of_all_kinds(engine);
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

/// Each kind of end is a level of one experiment: what loadline looks at before its first trial it
/// looks at once.
fn ends_of_all_kinds(engine: &Engine) {
    const LEVELS: [(&str, &str); 6] = [
        ("jvm", "jvm = ['-XX:+UseSerialGC', '-Xmx32m']"),
        (
            "slow",
            "command = ['/bin/measure', 'zoo', 'serve', 'slow_ms=700']",
        ),
        (
            "oom",
            "command = ['/bin/measure', 'zoo', 'oom', 'step_mib=8', 'step_ms=20']",
        ),
        ("deaf", "command = ['/bin/measure', 'zoo', 'never-ready']"),
        ("report", "command = ['/bin/measure', 'zoo', 'report']"),
        ("wrong", "command = ['/opt/jre/bin/java', '-NoSuchOption']"),
    ];
    let lab = Lab::new();
    let name = engine.name;
    let level = |(label, rest): &(&str, &str)| {
        format!("{{ label = '{label}', image = '{IMAGE}', engine = '{name}', {rest} }}")
    };
    let levels = LEVELS.iter().map(level).collect::<Vec<_>>().join(", ");
    let file = format!(
        "slo = 'p50<500ms,errors<50%'\n[app]\nimage = '{IMAGE}'\nengine = '{name}'\nstart-deadline = '8s'\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '1s'\nwarm-up = '0s'\n[limits]\ncpu = '1'\nmemory = '96Mi'\nshm = '96Mi'\n[run]\naccept-noise = true\n[[factor]]\nname = 'application'\nlevels = [{levels}]\n"
    );
    std::fs::write(lab.path().join("exp.toml"), file).expect("a file");
    let call = lab.without_cgroups_bare("run").arg("--state");
    let call = call.arg(lab.state()).args(&["--wait", "exp.toml"]);
    let ended = engine.environment(call).into_end();
    ended.expect_code(0).says(&[
        "a second container next to",
        "PASS",
        "SLO_MISS",
        "APP_KO cgroup_oom",
        "memory limit of 96Mi",
        "APP_KO never_ready",
        "within 8s",
        "nothing listens",
        "NoSuchOption",
    ]);
    let result = lab.result("last");
    let machine = &result["machine"];
    assert!(machine["apart"].is_string(), "{machine}");
    assert!(
        machine["jdks"][0].is_string(),
        "its JVM was found: {machine}"
    );
    let of = |label: &str| trial(&result, label);
    a_jvm_is_read(&of("jvm"));
    assert_eq!(of("slow")["verdict"]["class"], "slo_miss");
    assert_eq!(of("oom")["verdict"]["cause"], "cgroup_oom");
    assert_eq!(of("oom")["evidence"]["exit"]["signal"], 9);
    assert_eq!(of("deaf")["verdict"]["cause"], "never_ready");
    let said = of("report")["evidence"]["last_output"].to_string();
    assert!(said.contains("size-of-shm 98304k"), "{said}");
    assert_eq!(of("wrong")["verdict"]["class"], "app_ko");
    assert_eq!(engine.left_apart(), Vec::<String>::new());
}

/// The last trial with this label.
fn trial(result: &Value, label: &str) -> Value {
    let trials = result["trials"].as_array().expect("trials");
    // A busy machine may have voided those before.
    let mut found = trials
        .iter()
        .rev()
        .filter(|trial| trial["configuration"]["label"] == label);
    let trial = found.next().unwrap_or_else(|| panic!("{label}: {result}"));
    trial.clone()
}

fn a_jvm_is_read(trial: &Value) {
    let evidence = &trial["evidence"];
    assert_eq!(trial["verdict"]["class"], "pass", "{trial}");
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

const REMOVED_IMAGE: &str = "1 image of loadline itself";

/// What a killed loadline leaves goes with the next start; what of another machine's is there stays.
fn is_swept_after_a_kill(engine: &Engine) {
    let lab = Lab::new();
    for again in [true, false] {
        let mut victim = zoo(engine, &lab, &["--measure=60s"], &["serve"]).start();
        until_a_trial_runs(engine);
        victim.kill();
        assert_eq!(engine.left_apart().len(), 3, "two containers and a volume");
        let label = "--label=loadline.client=another";
        let volume = ["volume", "create", label, FOREIGN];
        engine.say(&volume).expect("it is made");
        if again {
            call(engine, &lab).into_end().expect_code(0)
        } else {
            let cleaned = clean(engine, &lab).expect_code(0);
            // Another test's `clean` may have been sooner.
            match cleaned.stdout.contains(REMOVED_IMAGE) {
                true => cleaned,
                false => {
                    call(engine, &lab).into_end().expect_code(0);
                    clean(engine, &lab).prints(&[REMOVED_IMAGE])
                }
            }
        };
        let own = [
            "images",
            "--quiet",
            "--filter",
            "label=loadline.apart=image",
        ];
        let own = engine.say(&own).expect("it lists");
        assert!(again || own.is_empty(), "loadline's own image: {own}");
        // The engine's containers outlive a killed loadline, as SECURITY.md says: until now.
        assert_dead(&lab, Duration::from_secs(10));
        assert_eq!(engine.left_apart(), [FOREIGN]);
        engine
            .say(&["volume", "rm", FOREIGN])
            .expect("it is removed");
    }
}
