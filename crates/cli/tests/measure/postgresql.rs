//! The Spring Boot workload with a real PostgreSQL as its dependency, over JDBC: sized, slowed down,
//! killed. Debian's server, never as root, a new cluster for each trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::lab::{Lab, recommended};
use crate::process::Call;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_killed_whole, assert_nothing_left, processes};

pub const CASES: [Case; 4] = [
    ("postgresql_that_dies_under_load_is_told", dies),
    ("kill_9_leaves_no_postgresql", killed),
    ("spring_comes_through_an_outage", drilled),
    ("a_starved_postgresql_is_never_springs_fault", starved),
];

/// A service that has just started keeps up with its load only where it has a CPU.
pub const TIMED: [Case; 1] = [("spring_is_sized_with_its_postgresql_behind_latency", sized)];

const SECRET: &str = "hunter22-of-this-test";

/// The project.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::canonicalize(root).expect("it is there")
}

fn missing() -> Outcome {
    let jar = root().join("build/workloads/spring-web.jar");
    if !jar.is_file() {
        return Some("build/workloads/spring-web.jar is not there: make workloads".to_owned());
    }
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut servers = versions.map(|version| version.path().join("bin/postgres"));
    if servers.any(|server| server.is_file()) {
        None
    } else {
        Some("PostgreSQL is not installed (package postgresql)".to_owned())
    }
}

/// An experiment; `db` is added to the table of the database, `load` to the load's table. Uses the
/// first compiler only, because it starts in half the time; two sizes are enough to search between.
fn write(lab: &Lab, db: &str, load: &str) {
    let root = root().display().to_string();
    let mark = lab.path().display();
    let text = format!(
        r#"
slo = "p90<2s"
[app]
command = ["java", "-XX:TieredStopAtLevel=1", "-Dlab={mark}", "-jar", "{root}/build/workloads/spring-web.jar", "--workload.owners=50", "--spring.datasource.url=jdbc:postgresql://localhost:5432/owners", "--spring.datasource.username=owners"]
env = {{ SPRING_DATASOURCE_PASSWORD = "{{env:DB_PASSWORD}}" }}
start-deadline = "150s"
[[dependency]]
name = "db"
command = ["{root}/workloads/spring-web/postgresql.sh", "-c", "cluster_name={mark}"]
ready = {{ log = "ready to accept connections" }}
seed = ["createdb", "-h", "localhost", "-U", "owners", "owners"]
env = {{ PGPASSWORD = "{{env:DB_PASSWORD}}" }}
start-deadline = "150s"
{db}
[load]
url = "http://localhost:8080/owners?lastName=Da"
warm-up = "1s"
{load}
[limits]
cpu = "1"
memory = "512Mi"
[run]
accept-noise = true
[search]
min-memory = "384Mi"
max-memory = "512Mi"
step = "128Mi"
confirm = 1
prove = 1
"#
    );
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
}

/// Lets the database compile what it reads with, however cheap that is.
fn compile_each_search(lab: &Lab) {
    let file = lab.path().join("exp.toml");
    let text = fs::read_to_string(&file).expect("it was written");
    let always = r#""-c", "jit=on", "-c", "jit_above_cost=1", "-c", "jit_inline_above_cost=1", "-c", "jit_optimize_above_cost=1", "-c", "cluster_name"#;
    fs::write(file, text.replace(r#""-c", "cluster_name"#, always)).expect("a file");
}

fn call(lab: &Lab, subcommand: &str) -> Call {
    let set = format!("DB_PASSWORD={SECRET}");
    lab.with_variable(subcommand, &set)
        .args(&["--wait", "--full", "--file=exp.toml"])
}

/// Each answer of the database comes 20 ms later: the service does not know, the answer shows it.
/// All trials share the database: a second seed would fail, because its tables exist.
fn sized() -> Outcome {
    if let Some(reason) = missing() {
        return Some(reason);
    }
    let lab = Lab::new();
    let reset = "reset = [\"psql\", \"-h\", \"localhost\", \"-U\", \"owners\", \"-c\", \"drop schema public cascade; create schema public\"]";
    let toxic = "port = 5432\n[[dependency.toxic]]\ntype = \"latency\"\nlatency = \"20ms\"";
    let db = format!("scope = \"result\"\n{reset}\n{toxic}");
    write(&lab, &db, "rate = \"40/s\"\nduration = \"3s\"");
    call(&lab, "size").into_end().expect_code(0).prints(&[
        "On the way to db (latency 20ms downstream), as the experiment sets it.",
        "The trials share db: seeded once, reset between two of them",
        "What was wrong on the way",
        "What it depended on",
    ]);
    let result = lab.result("last");
    let size = recommended(&result).expect("a size");
    assert!((384 << 20..=512 << 20).contains(&size), "{size}");
    let trials = result["trials"].as_array().expect("trials").clone();
    for (index, trial) in trials.iter().enumerate() {
        let db = &trial["evidence"]["dependencies"][0];
        assert_eq!(db["shared"]["trials"], index, "{db}");
        assert_eq!(db["shared"]["reset_ns"].is_u64(), index > 0, "{db}");
    }
    let passed = trials.iter().filter(|t| t["verdict"]["class"] == "pass");
    for trial in passed {
        let evidence = &trial["evidence"];
        let db = &evidence["dependencies"][0];
        let used = db["cpu_ns"].as_u64().unwrap_or(0);
        assert!(used > 1_000_000, "it was queried: {db}");
        let link = &db["link"];
        let trips = link["total"]["exchanges"].as_u64();
        assert!(trips.is_some_and(|trips| trips >= 50), "{link}");
        assert!(
            evidence["proxy"]["cpu_ns"]
                .as_u64()
                .is_some_and(|ns| ns > 0)
        );
        // Every answer waits for one of the database at least.
        let fastest = evidence["seconds"].as_array().expect("seconds").iter();
        let fastest = fastest.filter_map(|second| second["p50_ns"].as_u64()).min();
        assert!(fastest.is_some_and(|ns| ns >= 20_000_000), "{fastest:?}");
    }
    for file in lab.files() {
        let bytes = fs::read(&file).expect("a file of the store");
        let holds = bytes
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes());
        assert!(!holds, "{} holds the password", file.display());
    }
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

/// The database is away for 4 s: some requests fail then, none before, and the recovery is
/// reported.
fn drilled() -> Outcome {
    if let Some(reason) = missing() {
        return Some(reason);
    }
    let lab = Lab::new();
    write(
        &lab,
        "port = 5432\n[[outage]]\ndependency = \"db\"\nat = \"4s\"\nfor = \"4s\"",
        "rate = \"20/s\"\nduration = \"14s\"",
    );
    let file = lab.path().join("exp.toml");
    let text = fs::read_to_string(&file).expect("it was written");
    let text = text.replace("p90<2s", "p90<2s,recovers<30s,errors<100% during");
    fs::write(&file, text).expect("a file");
    // The outcome depends on the machine; its report does not.
    call(&lab, "drill")
        .into_end()
        .prints(&["Around the outage", "before", "during", "after"]);
    let result = lab.result("last");
    let evidence = &result["trials"][0]["evidence"];
    let measured = evidence["load"].as_array().expect("phases").last().cloned();
    let seconds = measured.expect("a phase")["by_second"].clone();
    let failed = |from: usize, to: usize| -> u64 {
        let all = seconds.as_array().expect("seconds");
        all[from..to]
            .iter()
            .filter_map(|s| s["failed"].as_u64())
            .sum()
    };
    assert!(
        failed(4, 8) > 0,
        "nothing failed while it was away: {seconds}"
    );
    let link = &evidence["dependencies"][0]["link"]["total"];
    assert!(link["reset"].as_u64() >= Some(1), "{link}");
    assert!(link["refused"].as_u64() >= Some(1), "{link}");
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn starved() -> Outcome {
    if let Some(reason) = missing() {
        return Some(reason);
    }
    let lab = Lab::new();
    // Each search is compiled by LLVM first: tens of milliseconds of CPU, whatever the machine, while
    // making the cluster and filling it takes no more than else.
    write(&lab, "cpu = \"300m\"", "rate = \"50/s\"\nduration = \"4s\"");
    compile_each_search(&lab);
    let texts = [
        "INVALID dependency",
        "the dependency db was at its limit",
        "it was throttled in",
        "(limit 300m CPU)",
    ];
    let mut running = call(&lab, "run").start();
    running.until("the fault is the database's", |said| {
        texts.iter().all(|text| said.contains(text))
    });
    // It would be tried twice more.
    running.signal(rustix::process::Signal::INT);
    running.end();
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn dies() -> Outcome {
    if let Some(reason) = missing() {
        return Some(reason);
    }
    let lab = Lab::new();
    write(&lab, "", "rate = \"20/s\"\nduration = \"60s\"");
    let mut running = call(&lab, "run").start();
    running.until_it_measures();
    // Each of the attempts loses its database.
    let mut seen = BTreeSet::new();
    let begin = Instant::now();
    while !running.has_ended() && begin.elapsed() < Duration::from_secs(400) {
        if let Some(pid) = postmaster(&lab).filter(|pid| !seen.contains(pid)) {
            std::thread::sleep(Duration::from_secs(2));
            seen.insert(pid);
            let pid = rustix::process::Pid::from_raw(pid).expect("a process");
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    running.end().says(&[
        "INVALID dependency",
        "the dependency db: it ended",
        "signal 9",
    ]);
    None
}

fn killed() -> Outcome {
    if let Some(reason) = missing() {
        return Some(reason);
    }
    let lab = Lab::new();
    let toxic = "port = 5432\n[[dependency.toxic]]\ntype = \"latency\"\nlatency = \"1ms\"";
    write(&lab, toxic, "rate = \"20/s\"\nduration = \"60s\"");
    let mut victim = call(&lab, "run").start();
    victim.until_it_measures();
    let begin = Instant::now();
    while postmaster(&lab).is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it never starts");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_killed_whole(&lab, victim);
    None
}

/// The first process of the lab's PostgreSQL, once it is one.
fn postmaster(lab: &Lab) -> Option<i32> {
    let is_it = |process: &PathBuf| {
        let program = fs::read_link(process.join("exe")).unwrap_or_default();
        program.ends_with("postgres")
    };
    let found = processes(lab).into_iter().filter(is_it);
    let pids = found.filter_map(|process| process.file_name()?.to_str()?.parse().ok());
    pids.min()
}
