//! Images, started by real engines: measurements, failures, and leftovers after every end.

use serde_json::Value;

use crate::engines::{Engine, IMAGE, OwnImage};
use crate::lab::{Lab, QUICK};
use crate::process::Ended;
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 7] = [
    (
        "images_that_cannot_start_are_refused",
        images_that_cannot_start_are_refused,
    ),
    (
        "an_image_is_measured_by_podman",
        an_image_is_measured_by_podman,
    ),
    (
        "an_image_is_measured_by_docker",
        an_image_is_measured_by_docker,
    ),
    (
        "an_image_that_ends_at_its_readiness_is_told_by_its_end",
        || Engine::podman().map_or_else(Some, |engine| ends_at_its_readiness(&engine)),
    ),
    ("an_image_gets_a_cache", || {
        Engine::podman().map_or_else(Some, |engine| gets_a_cache(&engine))
    }),
    ("an_image_of_docker_gets_a_cache", || {
        Engine::docker().map_or_else(Some, |engine| gets_a_cache(&engine))
    }),
    (
        "loadline_runs_from_its_own_image",
        loadline_runs_from_its_own_image,
    ),
];

fn images_that_cannot_start_are_refused() -> Outcome {
    let lab = Lab::new();
    let call = |flags: &[&str]| lab.measure("size").args(flags);
    let wrong: [(&[&str], i32, &[&str]); 4] = [
        (
            &["--image=--privileged"],
            2,
            &["not an image name", "hint: write it as"],
        ),
        (
            &["--engine=podman"],
            2,
            &["command is missing", "hint: or name an image"],
        ),
        (
            &["--image=a:1", "--engine=rkt"],
            2,
            &[
                "`rkt` is not a container engine",
                "hint: write podman or docker",
            ],
        ),
        (
            &["--image=a:1", "--jdk=17"],
            2,
            &["an image has its own", "hint: "],
        ),
    ];
    for (flags, code, texts) in wrong {
        refused(&lab, call(flags).into_end(), code, texts);
    }
    let unknown = call(&["--image=localhost/loadline-none:1"]).into_end();
    if !unknown.stderr.contains("neither podman nor docker") {
        let texts = [
            "no registry has an image of localhost's",
            "hint: check the name",
        ];
        refused(&lab, unknown, 2, &texts);
    }
    let blind = Lab::new();
    let hidden = blind.without_cgroups("run").zoo(&blind, &["serve"]);
    hidden.into_end().expect_code(3).says(&[
        "it is mounted, and something covers it",
        "from loadline's own image with --privileged --pid=host",
    ]);
    assert!(blind.results().is_empty(), "nothing was measured");
    let cache = lab.call("cache");
    let cache = cache.args(&["--image=a:1", "--jdk=17"]).into_end();
    refused(&lab, cache, 2, &["an image has its own", "hint: "]);
    for (engine, variable, host, hint) in [
        (
            "docker",
            "DOCKER_HOST",
            "tcp://127.0.0.1:1",
            "`docker info` must work first",
        ),
        (
            "docker",
            "DOCKER_HOST",
            "unix:///nonexistent.sock",
            "start it: systemctl start docker",
        ),
        (
            "podman",
            "CONTAINER_HOST",
            "unix:///nonexistent.sock",
            "`podman info` must work first",
        ),
    ] {
        let flag = format!("--engine={engine}");
        let ended = call(&["--image=a:1", &flag]).env(variable, host).into_end();
        if !ended.stderr.contains("is not on the path") {
            refused(&lab, ended, 3, &[hint]);
        }
    }
    None
}

#[track_caller]
fn refused(lab: &Lab, ended: Ended, code: i32, texts: &[&str]) {
    let ended = ended.expect_code(code).says(texts);
    let stored = lab.state().join("loadline.db").exists();
    assert!(!stored, "something was stored. {ended}");
}

fn an_image_is_measured_by_podman() -> Outcome {
    Engine::podman().map_or_else(Some, |engine| measured(&engine))
}

fn an_image_is_measured_by_docker() -> Outcome {
    Engine::docker().map_or_else(Some, |engine| measured(&engine))
}

/// One image, all ends.
fn measured(engine: &Engine) -> Outcome {
    passes_with_its_options(engine);
    options_that_do_not_arrive_are_no_measurement(engine);
    is_judged(engine);
    ends_of_all_kinds(engine);
    cannot_be_executed(engine);
    is_not_there(engine);
    has_an_image_for_a_dependency(engine);
    has_a_dependency_that_trials_share(engine);
    has_a_program_for_a_dependency(engine);
    has_toxics_before_a_dependency(engine);
    assert_eq!(engine.containers(), Vec::<String>::new());
    None
}

/// Trained in it, used by trials, and there in what the Dockerfile builds.
fn gets_a_cache(engine: &Engine) -> Outcome {
    const CACHED: &str = "localhost/loadline-test-cached:1";
    let lab = Lab::new();
    let flags = ["--wait", "--accept-noise", "--runs=1", "-o", "out"];
    let call = lab.call("cache").args(&flags);
    let call = call.arg("--warm=http://localhost:8080/");
    let ended = engine.call(call).into_end().expect_code(0);
    ended.says(&["training appcds"]).prints(&[
        "the class path of the image",
        &format!("Use it: {} build -t loadline-test:cached -f ", engine.name),
        "come from it and the JDK's archive",
    ]);
    let out = lab.path().join("out");
    let file = out.join("loadline-test.jsa.Dockerfile");
    let (file, out) = (file.display().to_string(), out.display().to_string());
    let built = engine.say(&["build", "-q", "-t", CACHED, "-f", &file, &out]);
    built.expect("it builds");
    let call = lab.measure("run").args(&["--image", CACHED]);
    let ended = engine.environment(call).into_end();
    engine
        .say(&["rmi", "--force", CACHED])
        .expect("it is there");
    ended.expect_code(0);
    let start = &lab.trial()["evidence"]["start"];
    let of = |figure: &str| start[figure].as_u64().expect("a number");
    assert!(
        of("classes_archived") * 10 > of("classes") * 9,
        "the image has its cache: {start}"
    );
    let without = engine.environment(lab.call("cache"));
    let without = without.args(&["--image", IMAGE, "--engine", engine.name, "--kind=aot"]);
    let ended = without.into_end().expect_code(2);
    ended.says(&["has no aot cache", "hint: an AOT cache needs JDK 25"]);
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

fn passes_with_its_options(engine: &Engine) {
    let lab = Lab::new();
    let options = "--jvm=small: -XX:+UseSerialGC -Xmx32m";
    let ended = engine
        .call(lab.measure("run"))
        .args(&[options, "--cpu=1"])
        .into_end();
    ended
        .expect_code(0)
        .says(&["started by", engine.name, "PASS"]);
    let machine = lab.result("last")["machine"].take();
    assert_eq!(machine["image"]["version"], "1.0-ping");
    // An image does not use loadline's working directory.
    assert_eq!(machine["version"], Value::Null);
    let trial = lab.trial();
    let evidence = &trial["evidence"];
    assert_eq!(
        evidence["gc"]["collector"], "Serial",
        "the GC log was read: {trial}"
    );
    assert!(
        evidence["start"]["classes"].as_u64() > Some(100),
        "its counters were read"
    );
    assert!(
        evidence["cgroup"]["peak_memory_bytes"].as_u64() > Some(10 << 20),
        "{}",
        evidence["cgroup"]
    );
    let machine = &lab.result("last")["machine"];
    assert_eq!(machine["image"]["reference"], IMAGE);
    assert_eq!(machine["image"]["engine"], engine.name);
    assert_nothing_left(&lab, &[], &Default::default());
}

fn options_that_do_not_arrive_are_no_measurement(engine: &Engine) {
    let lab = Lab::new();
    let without = [
        "/usr/bin/env",
        "-u",
        "JAVA_TOOL_OPTIONS",
        "/opt/jre/bin/java",
        "-jar",
        "/app/ping.jar",
    ];
    let options = "--jvm=small: -Xmx32m";
    let call = engine.call(lab.measure("run")).arg(options).arg("--");
    let ended = call.args(&without).into_end().expect_code(4);
    ended.says(&[
        "INVALID other_options",
        "runs without -Xmx32m",
        "sets JAVA_TOOL_OPTIONS itself",
    ]);
    let wins = ["/opt/jre/bin/java", "-Xmx48m", "-jar", "/app/ping.jar"];
    let lab = Lab::new();
    let call = engine.call(lab.measure("run")).arg(options).arg("--");
    let ended = call.args(&wins).into_end().expect_code(4);
    ended.says(&["runs with -Xmx48m, not with -Xmx32m"]);
}

/// Somebody else's numbers: of a manifest, and of a rule.
fn is_judged(engine: &Engine) {
    let lab = Lab::new();
    let manifest = "kind: Pod\nmetadata: {name: ping}\nspec: {containers: [{name: app, image: jdk, resources: {limits: {memory: 96Mi}}}]}\n";
    std::fs::write(lab.path().join("pod.yaml"), manifest).expect("a file");
    let flags = [
        "--manifest=pod.yaml",
        "--advice=percent=75",
        "--memory=128Mi",
    ];
    let call = engine.call(lab.measure("judge")).args(&flags);
    let ended = call.arg("--starts=1").into_end();
    ended.expect_code(0).says(&["started by", "PASS"]);
    let result = lab.result("last");
    assert_eq!(result["machine"]["image"]["reference"], IMAGE);
    let trials = result["trials"].as_array().expect("trials").clone();
    let memory = |trial: &Value| trial["configuration"]["memory_bytes"].as_u64();
    let mut sizes: Vec<_> = trials.iter().filter_map(memory).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [96 << 20, 128 << 20], "{trials:?}");
    let rule = trials.iter().find(|t| memory(t) == Some(128 << 20));
    let rule = rule.expect("it was tried").to_string();
    assert!(rule.contains("MaxRAMPercentage=75"), "{rule}");
    assert!(trials.iter().all(|t| t["verdict"]["class"] == "pass"));
    assert_nothing_left(&lab, &[], &Default::default());
}

/// With the engine's container its network is gone, and a later generator finds none: the message
/// is about the end of the application.
fn ends_at_its_readiness(engine: &Engine) -> Outcome {
    let lab = Lab::new();
    let name = engine.name;
    let file = format!(
        "slo = 'errors<50%'\n[app]\nimage = '{IMAGE}'\nengine = '{name}'\nready = {{ log = 'at your service' }}\ncommand = ['/bin/measure', 'zoo', 'say', 'text=at your service', 'code=3']\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '300ms'\nwarm-up = '0s'\n[run]\naccept-noise = true\nrepeats = 4\n"
    );
    std::fs::write(lab.path().join("ends.toml"), file).expect("a file");
    let call = lab.call("run").args(&["--wait", "ends.toml"]);
    let ended = engine.environment(call).into_end();
    ended.expect_code(1).says(&["APP_KO", "code 3"]);
    let result = lab.result("last");
    for trial in result["trials"].as_array().expect("trials") {
        assert_eq!(trial["verdict"]["class"], "app_ko", "{trial}");
        assert_eq!(trial["evidence"]["exit"]["code"], 3, "{trial}");
    }
    assert_nothing_left(&lab, &[], &Default::default());
    None
}

/// Ends of programs other than JVMs, and their view of their limits.
fn ends_of_all_kinds(engine: &Engine) {
    let lab = Lab::new();
    let level = |label: &str, rest: &str| {
        let name = engine.name;
        format!(
            "{{ label = '{label}', image = '{IMAGE}', engine = '{name}', command = ['/bin/measure', 'zoo', {rest}] }}"
        )
    };
    let levels = [
        level("oom", "'oom', 'step_mib=4', 'step_ms=20'"),
        level("deaf", "'never-ready'"),
        level("report", "'report'"),
    ];
    let file = format!(
        "slo = 'errors<50%'\n[app]\nimage = '{IMAGE}'\nstart-deadline = '3s'\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '20s'\nwarm-up = '0s'\n[limits]\nmemory = '32Mi'\nshm = '96Mi'\n[run]\naccept-noise = true\n[[factor]]\nname = 'application'\nlevels = [{}]\n",
        levels.join(", ")
    );
    std::fs::write(lab.path().join("ends.toml"), file).expect("a file");
    let call = lab.call("run").args(&["--wait", "ends.toml"]);
    let ended = engine.environment(call).into_end();
    ended.expect_code(1).says(&[
        "APP_KO cgroup_oom",
        "memory limit of 32Mi",
        "APP_KO never_ready",
        "within 3s",
        "connection refused",
    ]);
    let result = lab.result("last");
    let trials = result["trials"].as_array().expect("trials");
    let report = trials
        .iter()
        .find(|trial| trial["configuration"]["label"] == "report");
    let said = report.expect("it ran")["evidence"]["last_output"].to_string();
    assert!(said.contains("size-of-shm 98304k"), "{said}");
    assert_nothing_left(&lab, &[], &Default::default());
}

fn cannot_be_executed(engine: &Engine) {
    let lab = Lab::new();
    let call = engine
        .call(lab.measure("run"))
        .args(&["--", "/no/such/program"]);
    let ended = call.into_end().expect_code(3);
    ended.says(&["starting the application", "/no/such/program", "hint: "]);
    assert_nothing_left(&lab, &[], &Default::default());
}

fn is_not_there(engine: &Engine) {
    let lab = Lab::new();
    let image = ["--image=localhost:1/nosuch:1", "--engine", engine.name];
    let ended = engine
        .environment(lab.measure("run"))
        .args(&image)
        .into_end();
    refused(
        &lab,
        ended,
        3,
        &[
            "localhost:1/nosuch:1",
            "cannot be pulled",
            "hint: check the name",
        ],
    );
}

/// An experiment with an image as application that starts only if it reaches `db` by name.
fn with_a_dependency(engine: &Engine, lab: &Lab, dependency: &str) -> Ended {
    let table = format!("name = 'db'\nready = {{ tcp = 9000 }}\nmemory = '64Mi'\n{dependency}\n");
    with_dependencies(engine, lab, &[&table])
}

fn with_dependencies(engine: &Engine, lab: &Lab, tables: &[&str]) -> Ended {
    let tables: String = tables
        .iter()
        .map(|t| format!("[[dependency]]\n{t}\n"))
        .collect();
    let file = format!(
        "slo = 'errors<99%'\n[app]\nimage = '{IMAGE}'\ncommand = ['/bin/measure', 'zoo', 'serve', 'needs=db:9000', 'calls=9000']\n[load]\nurl = 'http://localhost:8080/'\nrate = '50/s'\nmeasure = '1s'\nwarm-up = '0s'\n{tables}"
    );
    std::fs::write(lab.path().join("exp.toml"), file).expect("a file");
    let call = lab
        .call("run")
        .args(&["--wait", "--file=exp.toml", "--accept-noise"]);
    let call = engine.environment(call);
    call.args(&["--engine", engine.name]).into_end()
}

fn has_an_image_for_a_dependency(engine: &Engine) {
    let lab = Lab::new();
    std::fs::write(lab.path().join("schema.sql"), "create").expect("a file");
    let zoo = "['/bin/measure', 'zoo', 'serve', 'port=9000', 'needs=/init/schema.sql']";
    // It runs in one more container of the image, in the network of the first.
    let seed = "['/bin/measure', 'zoo', 'exit', 'needs=db:9000,/init/schema.sql']";
    let tables = format!(
        "image = '{IMAGE}'\ncommand = {zoo}\nseed = {seed}\nvolumes = ['schema.sql:/init/schema.sql:ro']"
    );
    with_a_dependency(engine, &lab, &tables)
        .expect_code(0)
        .says(&["PASS"]);
    let db = &lab.trial()["evidence"]["dependencies"][0];
    assert!(db["image"].as_str().is_some_and(|id| id.len() > 12), "{db}");
    for figure in ["ready_ns", "seed_ns", "peak_memory_bytes"] {
        assert!(db[figure].as_u64().is_some_and(|n| n > 0), "{figure}: {db}");
    }
    assert_nothing_left(&lab, &[], &Default::default());
    let lab = Lab::new();
    let gone = tables.replace("schema.sql:", "schema.sq:");
    with_a_dependency(engine, &lab, &gone)
        .expect_code(3)
        .says(&["the dependency db: its volume", "schema.sq", "hint: "]);
    let lab = Lab::new();
    let failing = tables.replace("'needs=db:9000", "'needs=db:9001");
    std::fs::write(lab.path().join("schema.sql"), "create").expect("a file");
    with_a_dependency(engine, &lab, &failing)
        .says(&["the dependency db: its seed", "db:9001 is not there"]);
    assert_nothing_left(&lab, &[], &Default::default());
}

/// Two trials share an image's container: seeded in the first, reset before the second.
fn has_a_dependency_that_trials_share(engine: &Engine) {
    let lab = Lab::new();
    let run = "'/bin/measure', 'zoo'";
    let tables = format!(
        "image = '{IMAGE}'\nscope = 'result'\ncommand = [{run}, 'serve', 'port=9000']\nseed = [{run}, 'exit', 'needs=db:9000']\nreset = [{run}, 'exit', 'needs=db:9000']\n[run]\nrepeats = 2"
    );
    with_a_dependency(engine, &lab, &tables)
        .expect_code(0)
        .says(&["PASS"]);
    let trials = lab.result("last")["trials"].clone();
    for (index, trial) in trials.as_array().expect("trials").iter().enumerate() {
        let db = &trial["evidence"]["dependencies"][0];
        assert_eq!(db["shared"]["trials"], index, "{db}");
        assert_eq!(db["shared"]["reset_ns"].is_u64(), index > 0, "{db}");
        assert!(db["cpu_ns"].as_u64() > Some(0), "{db}");
    }
    assert_nothing_left(&lab, &[], &Default::default());
}

/// The proxy precedes one image of an engine, next to another image that the application reaches
/// directly; docker's application needs that one.
fn has_toxics_before_a_dependency(engine: &Engine) {
    let of = |name: &str, port: u16, rest: &str| {
        let zoo = format!("['/bin/measure', 'zoo', 'serve', 'port={port}']");
        format!(
            "name = '{name}'\nport = {port}\nready = {{ tcp = {port} }}\nimage = '{IMAGE}'\ncommand = {zoo}\n{rest}"
        )
    };
    let latency = "[[dependency.toxic]]\ntype = 'latency'\nlatency = '20ms'";
    let (plain, slow) = (of("cache", 9001, ""), of("db", 9000, latency));
    let lab = Lab::new();
    let ended = with_dependencies(engine, &lab, &[&plain, &slow]);
    ended.expect_code(0).says(&["PASS", "errors 0 %"]);
    let db = &lab.trial()["evidence"]["dependencies"][1];
    let total = &db["link"]["total"];
    let of = |figure: &str| total[figure].as_u64();
    let bytes = of("downstream_bytes");
    assert!(
        of("opened") > Some(0) && bytes > Some(0),
        "it was asked: {db}"
    );
    assert_nothing_left(&lab, &[], &Default::default());
    if engine.name == "docker" {
        let lab = Lab::new();
        let ended = with_dependencies(engine, &lab, &[&slow]);
        refused(
            &lab,
            ended,
            3,
            &["docker can only put a container into the network of another"],
        );
    }
}

/// podman's containers join any network, docker's only each other's.
fn has_a_program_for_a_dependency(engine: &Engine) {
    let lab = Lab::new();
    let zoo = lab.application(&["serve", "port=9000"]);
    let ended = with_a_dependency(engine, &lab, &format!("command = {zoo:?}"));
    match engine.name {
        "podman" => ended.expect_code(0).says(&["PASS"]),
        _ => {
            let texts = [
                "docker can only put a container into the network of another of its containers",
                "hint: make the first dependency a docker image",
            ];
            refused(&lab, ended, 3, &texts);
            return;
        }
    };
    assert_nothing_left(&lab, &[], &Default::default());
}

/// loadline's own image measures another one on the machine around it.
fn loadline_runs_from_its_own_image() -> Outcome {
    let engine = match Engine::podman() {
        Ok(engine) => engine,
        Err(reason) => return Some(reason),
    };
    let own = match OwnImage::build(&engine) {
        Ok(own) => own,
        Err(reason) => return Some(reason),
    };
    let lab = Lab::new();
    let state = lab.state().display().to_string();
    let refused = own.run(&["--network=none"], &["doctor"]);
    let said = refused.expect_err("it is alone");
    assert!(said.contains("it sees no process of the host"), "{said}");
    assert!(
        said.contains("hint: it needs access to the host: podman run"),
        "{said}"
    );
    let around = [
        "--privileged",
        "--pid=host",
        "--network=host",
        "--cgroupns=host",
        "--pids-limit=-1",
    ];
    let image = ["--image", IMAGE, "--engine=podman", "--cpu=1"];
    let measure = [&["run", "--state", &state], &QUICK[..], &image].concat();
    let said = own.run(&around, &measure);
    assert!(
        said.as_ref().is_ok_and(|out| out.contains("1 of 1")),
        "{said:?}"
    );
    let run = std::fs::read_dir("/run").expect("a directory").flatten();
    let left = run.filter(|entry| entry.file_name() == "loadline-image");
    assert_eq!(left.count(), 0, "it went there in memory");
    let trial = lab.trial();
    assert_eq!(trial["evidence"]["gc"]["collector"], "Serial", "{trial}");
    assert_nothing_left(&lab, &[], &Default::default());
    None
}
