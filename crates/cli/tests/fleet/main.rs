//! `loadline fleet` against a real Prometheus with a day of series of a small cluster.

// Helpers of tests, too, may fail by a panic and say SKIP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod api_server;
mod cluster;
mod server;

use std::path::Path;
use std::process::{Command, Output};

use server::Served;

fn loadline(served: &Served, arguments: &[&str]) -> Output {
    let at = cluster::END.to_string();
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["fleet", "--prometheus", &served.url, "--at", &at])
        .args(["--window", "1d", "--state"])
        .arg(served.directory.path().join("state"))
        .args(arguments)
        .output()
        .expect("it starts")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// All tests share one server: it takes seconds to fill.
#[test]
fn a_fleet_is_ranked_by_what_is_at_stake() {
    let Some(served) = Served::start("a_fleet_is_ranked_by_what_is_at_stake", &cluster::text())
    else {
        return;
    };
    ranked(&served);
    in_numbers(&served);
    an_experiment(&served);
    promises(&served);
    manifests(&served);
    let missing = loadline(&served, &["--namespace", "nowhere"]);
    assert_eq!(missing.status.code(), Some(3), "{missing:?}");
    assert!(
        !served.directory.path().join("state").exists(),
        "it reads only"
    );
}

fn ranked(served: &Served) {
    let output = loadline(served, &[]);
    assert!(output.status.success(), "{output:?}");
    insta::assert_snapshot!(out(&output), @r#"
    6 workloads in 1d: 1 to fix, 3 to measure, 2 to leave; $80.19 of $115 a month at stake (own-nodes of 2020-02-12)

    workload                 first        at  pods  memory used /   CPU used /  why
                                       stake                asked        asked
    ───────────────────────  ───────  ──────  ────  ─────────────  ───────────  ────────────────────────
    shop/orders              measure  $41.30     2    300Mi / 1Gi     200m / 1  its heap is 25 % of the
                                                                                limit, HotSpot's
                                                                                default; 71 % of its
                                                                                memory never used; 80 %
                                                                                of its CPU never used
    shop/billing             measure  $24.62     1  510Mi / 512Mi     800m / 1  killed for memory (3
                                                                                times)
    ops/reports              fix       $9.04     1      700Mi / -     300m / -  no memory limit: a JVM's
                                                                                heap goes by its node,
                                                                                and nothing bounds a
                                                                                leak
    shop/search              measure   $5.23     1  450Mi / 512Mi  450m / 500m  throttled in 40 % of the
                                                                                CFS periods
    ops/audit                leave     $0.00     1  450Mi / 512Mi  450m / 500m
    shop/orders/istio-proxy  leave     $0.00     1    50Mi / 64Mi   20m / 100m  no JVM or requests are
                                                                                seen

    left out: 1 pod of jobs and nodes

    next: loadline fleet ... --toml shop/orders -o loadline.toml, then loadline size loadline.toml
    "#);
}

fn in_numbers(served: &Served) {
    let read = json(&loadline(served, &["--json"]));
    let all = read["workloads"].as_array().expect("workloads");
    let of = |name: &str| {
        let found = all.iter().find(|w| w["name"]["container"] == name);
        found.unwrap_or_else(|| panic!("{name}")).clone()
    };
    let orders = of("orders");
    assert_eq!(orders["name"]["kind"], "Deployment");
    assert_eq!(orders["name"]["name"], "orders", "the ReplicaSet's owner");
    assert_eq!(orders["replicas"], 2);
    assert_eq!(orders["limit"]["memory_bytes"], 1u64 << 30);
    assert_eq!(orders["peak"]["memory_bytes"], 300u64 << 20);
    // One instance serves 5/s at first and 20/s in the last hour.
    let peak = orders["traffic"]["peak_per_second"]
        .as_f64()
        .expect("a rate");
    assert!((peak - 20.0).abs() < 0.5, "{peak}");
    let shares = orders["traffic"]["mix"].as_array().expect("a mix");
    let share: f64 = shares.iter().map(|k| k["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-9, "{share}");
    let throttled = of("search")["throttled"].as_f64().expect("a share");
    assert!((throttled - 0.4).abs() < 0.01, "{throttled}");
    assert_eq!(of("billing")["oom_kills"], 3);
    assert_eq!(read["left_out_pods"], 1, "the job's");
}

fn an_experiment(served: &Served) {
    let output = loadline(served, &["--toml", "shop/orders"]);
    let text = out(&output);
    insta::assert_snapshot!(text, @r#"
    # shop/orders: what Prometheus saw in 1d. Keys: docs/reference/experiment.schema.json.

    slo = "p99<250ms,errors<1%" # write what you promise; production's p99 was 175ms

    [app]
    image = "registry.example/orders:1.4"
    # ready = { http = "/actuator/health/readiness" }

    [load]
    url = "http://localhost:8080/" # its port, and a path where no request below has one
    rate = "20/s" # one instance in its busiest 5 min; 3.6 times the mean

    [[load.request]] # 72.0 %
    weight = 72.000
    path = "/orders"

    # [[load.request]] # 20.0 %; say which: {rand:1:100}, {csv:FILE:COLUMN}
    # weight = 20.000
    # path = "/orders/{id}"

    # [[load.request]] # 8.0 %; say its body
    # weight = 8.000
    # method = "POST"
    # path = "/orders"
    # body-file = "body.json"

    [limits]
    cpu = "1" # its limit
    memory = "1Gi" # its limit
    "#);
    // What it writes is an experiment.
    let path = served.directory.path().join("loadline.toml");
    std::fs::write(&path, &text).expect("it is written");
    let plan = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["plan", "--json"])
        .arg(&path)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&plan.stderr);
    assert!(
        plan.status.success() || said.contains("image") || said.contains("podman"),
        "{said}"
    );
    let place = served.directory.path().join("experiments");
    let directory = place.display().to_string();
    let several = ["--toml-dir", &directory, "--top", "2"];
    for warns in [false, true] {
        let output = loadline(served, &several);
        let (written, said) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(output.status.success(), "{said}");
        assert_eq!(written.lines().count(), 2, "{written}");
        for path in written.lines() {
            assert!(
                path.ends_with(".toml") && Path::new(path).is_file(),
                "{path}"
            );
        }
        assert!(said.contains("loadline size "), "{said}");
        assert_eq!(said.contains("stays unchanged"), warns, "{said}");
    }
    let none = loadline(served, &["--toml", "shop/nothing"]);
    assert_eq!(none.status.code(), Some(2));
}

/// The manifests of the cluster add to Prometheus.
fn manifests(served: &Served) {
    let kubeconfig = api_server::start(served.directory.path());
    let with = |arguments: &[&str]| {
        let at = cluster::END.to_string();
        Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["fleet", "--prometheus", &served.url, "--at", &at])
            .args(["--window", "1d", "--kubernetes"])
            .args(arguments)
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .expect("it starts")
    };
    let output = with(&["--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("1 container of the cluster unknown"),
        "{said}"
    );
    let read = json(&output);
    let first = &read["workloads"][0];
    assert_eq!(first["name"]["name"], "orders");
    assert_eq!(first["advice"]["step"], "fix");
    let problem = "over-committed: the heap may take 1Gi and everything else 250Mi: 1274Mi in a limit of 1Gi (for a typical service)";
    assert_eq!(first["objections"][0]["problem"], problem, "{first}");
    let others = read["workloads"].as_array().into_iter().flatten().skip(1);
    for other in others {
        assert_eq!(other["objections"], serde_json::json!([]), "{other}");
    }
    let text = out(&with(&[]));
    assert!(text.contains("its manifest:"), "{text}");
    assert!(text.contains("over-committed: the heap"), "{text}");
    let refused = with(&["--namespace", "shop"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr);
    for part in [
        "cannot list resource",
        "needs the verb list",
        "--namespace NAME",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let nowhere = with(&["--context", "nowhere"]);
    let said = String::from_utf8_lossy(&nowhere.stderr);
    assert!(
        said.contains("it has: test; choose one with --context"),
        "{said}"
    );
}

fn promises(served: &Served) {
    let record = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../records/2026-11-20-spring-web-size/result.json.gz"
    );
    let measured = format!("shop/orders={record}");
    let output = loadline(served, &["--measured", &measured]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    insta::assert_snapshot!(out(&output), @r#"
    1 of 1 workload not as promised

    workload     figure                            promised  production
    ───────────  ────────────────────────────────  ────────  ──────────  ──────
    shop/orders  memory limit, MiB                      232        1024  drifts
    shop/orders  memory peak, MiB                       215         300  drifts
    shop/orders  CPU a request, ms                     4.21        35.6  drifts
    shop/orders  p99, ms                               8.45         175  drifts
    shop/orders  busiest rate of an instance, 1/s       100          20  holds

    next: loadline verify with the rate and the requests of today (loadline fleet --toml)
    "#);
}
