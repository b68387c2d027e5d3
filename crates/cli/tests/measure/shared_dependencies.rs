//! Dependencies that the trials of a result share: seeded once, reset between trials, restarted
//! when they end, and gone with loadline.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::dependencies::{dependency, experiment, run, until_it_runs};
use crate::lab::Lab;
use crate::runner::{Case, Outcome};
use crate::traces::{assert_killed_whole, assert_nothing_left};

pub const CASES: [Case; 3] = [
    ("trials_share_a_redis_until_its_reset_fails", redis),
    ("a_shared_dependency_that_ends_is_started_anew", ends),
    ("a_killed_loadline_leaves_no_shared_dependency", killed),
];

/// What the record of each trial says of the dependency that it shared.
fn shared(lab: &Lab) -> Vec<Value> {
    let trials = lab.result("last")["trials"].clone();
    let trials = trials.as_array().expect("an array").iter();
    let of = |trial: &Value| trial["evidence"]["dependencies"][0].clone();
    trials.map(of).collect()
}

/// Debian's own: a second seed, or one reset more or less, would be seen by Redis itself.
fn redis() -> Outcome {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|place| place.join("redis-server").is_file()) {
        return Some("no redis-server in PATH (Debian package redis-server)".to_owned());
    }
    let lab = Lab::new();
    let seed = "test $(redis-cli -h cache incr seeds) = 1 && redis-cli -h cache set resets 0";
    let reset = "n=$(redis-cli -h cache incr resets); test $(redis-cli -h cache get seeds) = 1 || exit 9; test $n -lt 3 || { echo reset number $n; exit 7; }";
    let tables = format!(
        "[[dependency]]\nname = \"cache\"\nscope = \"result\"\ncommand = [\"redis-server\", \"--save\", \"\", \"--dir\", \"/tmp\"]\nready = {{ log = \"Ready to accept connections\" }}\nseed = [\"/bin/sh\", \"-c\", {seed:?}]\nreset = [\"/bin/sh\", \"-c\", {reset:?}]\nmemory = \"64Mi\""
    );
    let text = experiment(&lab, &tables)
        .replace("\"serve\"", "\"serve\", \"needs=cache:6379\"")
        .replace("accept-noise = true", "accept-noise = true\nrepeats = 4");
    let ended = run(&lab, &text);
    assert_ne!(ended.code, Some(0), "{ended}");
    ended.says(&[
        "the dependency cache: its reset: exit code 7, it said: reset number 3",
        "hint: run it by hand",
    ]);
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    let seen = shared(&lab);
    assert_eq!(seen.len(), 3, "two resets passed");
    for (index, cache) in seen.iter().enumerate() {
        let shared = &cache["shared"];
        assert_eq!(shared["trials"], index, "{cache}");
        assert_eq!(shared["reset_ns"].is_u64(), index > 0, "{cache}");
        assert_eq!(cache["seed_ns"], seen[0]["seed_ns"], "seeded once: {cache}");
        assert!(cache["cpu_ns"].as_u64() > Some(0), "sampled: {cache}");
        assert!(cache["peak_memory_bytes"].as_u64() > Some(0), "{cache}");
        assert_eq!(cache["oom_kills"], 0, "{cache}");
    }
    // Another process has another one, with its own seed.
    lab.call("resume")
        .args(&["--wait", "--full", "last"])
        .into_end()
        .expect_code(0)
        .prints(&["The trials share cache: seeded once, reset between two of them"]);
    let seen = shared(&lab);
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[3]["shared"]["trials"], 0, "{}", seen[3]);
    assert_ne!(seen[3]["seed_ns"], seen[0]["seed_ns"]);
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn ends() -> Outcome {
    let lab = Lab::new();
    let exits = ["exit", "code=3", "after_ms=1500", "port=9000"];
    let tables = dependency(&lab, &exits, "scope = \"result\"\nready = { tcp = 9000 }");
    let text = experiment(&lab, &tables).replace("\"1s\"", "\"20s\"");
    run(&lab, &text).says(&[
        "INVALID dependency",
        "the dependency db: it ended during the trial (exit code 3)",
    ]);
    let seen = shared(&lab);
    assert_eq!(seen.len(), 3, "each attempt has a fresh one");
    for (index, db) in seen.iter().enumerate() {
        assert_eq!(db["ended"], "exit code 3", "{db}");
        assert_eq!(db["shared"]["trials"], 0, "{db}");
        let anew = &db["shared"]["anew"];
        match index {
            0 => assert!(anew.is_null(), "{db}"),
            _ => assert_eq!(anew, "db had ended (exit code 3)", "{db}"),
        }
    }
    assert_nothing_left(&lab, &[], &BTreeMap::new());
    None
}

fn killed() -> Outcome {
    let lab = Lab::new();
    let daemons = ["daemons", "count=3", "port=9000"];
    let tables = dependency(&lab, &daemons, "scope = \"result\"\nready = { tcp = 9000 }");
    let text = experiment(&lab, &tables).replace("\"1s\"", "\"60s\"");
    fs::write(lab.path().join("exp.toml"), text).expect("a file");
    let mut victim = lab.call("run").args(&["--wait", "exp.toml"]).start();
    victim.until_it_measures();
    // Each in a group with a separate owner.
    until_it_runs(&lab, "port=9000");
    until_it_runs(&lab, "serve");
    assert_killed_whole(&lab, victim);
    None
}
