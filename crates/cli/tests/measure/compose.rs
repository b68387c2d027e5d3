//! Services of a compose file, started by real engines: the application, its dependencies, and
//! refusals.

use std::fs;

use crate::engines::{Engine, IMAGE};
use crate::lab::Lab;
use crate::runner::{Case, Outcome};
use crate::traces::assert_nothing_left;

pub const CASES: [Case; 3] = [
    ("compose_services_are_measured_by_podman", by_podman),
    ("compose_services_are_measured_by_docker", by_docker),
    ("wrong_compose_files_are_refused", refused),
];

const SECRET: &str = "hunter22-of-a-compose-file";

/// The workload, and a server of the zoo that it depends on.
/// Its check is tried this many times, once a second.
fn shop(check: &str, tries: u32) -> String {
    format!(
        r#"
services:
  orders:
    image: {IMAGE}
    environment: {{ DB_PASSWORD: {SECRET} }}
    ports: ["80:8080"]
    depends_on: {{ db: {{ condition: service_healthy }} }}
  db:
    image: {IMAGE}
    command: [/bin/measure, zoo, serve, port=9000]
    environment: {{ DB_PASSWORD: {SECRET} }}
    expose: [9000]
    healthcheck: {{ test: {check}, interval: 1s, retries: {tries} }}
    mem_limit: 64m
"#
    )
}

fn by_podman() -> Outcome {
    Engine::podman().map_or_else(Some, |engine| measured(&engine))
}

fn by_docker() -> Outcome {
    Engine::docker().map_or_else(Some, |engine| measured(&engine))
}

fn measured(engine: &Engine) -> Outcome {
    let lab = Lab::new();
    let run = |check: &str, tries| {
        fs::write(lab.path().join("compose.yaml"), shop(check, tries)).expect("a file");
        let flags = [
            "--compose=compose.yaml",
            "--service=orders",
            "--full",
            "--engine",
            engine.name,
        ];
        engine.environment(lab.measure("run")).args(&flags)
    };
    let ended = run("[CMD, /usr/bin/env]", 60).into_end().expect_code(0);
    ended
        .says(&["started by", engine.name, "PASS"])
        .prints(&["What it depended on", "db"]);
    let trial = lab.trial();
    let db = &trial["evidence"]["dependencies"][0];
    assert_eq!(db["memory_limit_bytes"], 64 << 20, "{db}");
    assert!(db["ready_ns"].as_u64() > Some(0), "{db}");
    for file in lab.files() {
        let bytes = fs::read(&file).expect("a file of the store");
        let holds = bytes.windows(SECRET.len()).any(|p| p == SECRET.as_bytes());
        assert!(!holds, "{} holds the credential", file.display());
    }
    // A check that needs what the image lacks.
    let mut running = run("[CMD, /usr/bin/env, no-such-program]", 3).start();
    let text =
        "the dependency db: it was not ready within 3 s (its command ended with exit status: 127)";
    running.until("the dependency is never ready", |said| {
        said.contains("INVALID dependency") && said.contains(text)
    });
    // It would be tried twice more.
    running.signal(rustix::process::Signal::INT);
    running.end();
    assert_nothing_left(&lab, &[], &Default::default());
    assert_eq!(engine.containers(), Vec::<String>::new());
    None
}

fn refused() -> Outcome {
    let lab = Lab::new();
    let with = |text: &str, service: &str| {
        fs::write(lab.path().join("compose.yaml"), text).expect("a file");
        let flag = format!("--service={service}");
        let call = lab.measure("size").args(&["--compose=compose.yaml", &flag]);
        call.into_end().expect_code(2)
    };
    let good = shop("[CMD, /bin/true]", 3);
    with(&good, "order").says(&[
        "it has no service `order`",
        "hint: its services are db, orders",
    ]);
    let same = good.replace("    expose: [9000]", "    ports: [\"80:9000\"]");
    with(&same, "orders").says(&[
        "`orders` and `db` publish port 80",
        "hint: change one of the ports",
    ]);
    let own = good.replace("    mem_limit: 64m", "    privileged: true");
    with(&own, "orders").says(&[
        "it has `privileged`, which loadline does not support",
        "hint: ",
    ]);
    with("a: [", "orders").says(&["compose.yaml", "hint: write it as YAML"]);
    let alone = lab.measure("size").arg("--compose=compose.yaml");
    alone.into_end().expect_code(2).says(&["--service"]);
    None
}
