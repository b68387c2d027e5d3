//! Inputs that people handed in: each gives the right answer. They are next to the checkout;
//! without them, the test reports it. Our own inputs of the same kinds are in the tests of the
//! crates that read them.

#[path = "messages/words.rs"]
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder, the arguments (`@` is the folder), the exit code, what the output has, and what it has not.
type Case = (
    &'static str,
    &'static str,
    i32,
    &'static [&'static str],
    &'static [&'static str],
);

const CASES: &[Case] = &[
    (
        "02-kafka-heap-opts",
        "lint @/kafka.yaml",
        1,
        &[
            "over-committed",
            "1Gi",
            "768Mi",
            "less than the heap of 1Gi it starts with",
        ],
        &[],
    ),
    (
        "03-nexus-install4j",
        "lint @/nexus.yaml",
        1,
        &[
            "nexus nexus: error: over-committed",
            "nexus-proxy: skipped",
            "QoS class Burstable",
        ],
        &["BestEffort"],
    ),
    (
        "04-es-heap-no-limit",
        "lint @/es.yaml",
        1,
        &["-Xmx256m bounds the heap"],
        &["quarter"],
    ),
    (
        "04-es-heap-no-limit",
        "lint @/es-java-opts.yaml",
        1,
        &["-Xmx256m bounds the heap"],
        &["quarter"],
    ),
    (
        "05-openshift-template",
        "lint @/template.yaml",
        1,
        &[
            "DeploymentConfig/orders orders: error: over-committed",
            "512Mi",
        ],
        &["${NAME}"],
    ),
    (
        "06-envfrom-configmap",
        "lint @/app.yaml",
        1,
        &["over-committed", "1200Mi"],
        &[],
    ),
    (
        "07-sh-c-java",
        "lint @/cronjob.yaml",
        1,
        &["the heap may take 2Gi", "limit of 1536Mi"],
        &["no problems found"],
    ),
    (
        "08-strimzi-crs",
        "lint @/all.yaml",
        0,
        &["not checked: KafkaNodePool/dual-role, Kafka/my-cluster"],
        &[],
    ),
    (
        "08-strimzi-crs",
        "lint @/kafka.yaml",
        2,
        &["not checked: KafkaNodePool/dual-role, Kafka/my-cluster"],
        &["spec.template"],
    ),
    (
        "10-whole-limit-heap",
        "lint @/app.yaml",
        1,
        &["may take 512Mi", "may take 1Gi", "may take 2Gi"],
        &["no problems found"],
    ),
    (
        "11-fractional-cpu-serial",
        "lint @/app.yaml",
        0,
        &["no problems found"],
        &["GC threads"],
    ),
    (
        "12-pod-level-resources",
        "lint @/pod.yaml",
        0,
        &["no problems found"],
        &["BestEffort", "quarter", "no memory limit"],
    ),
    (
        "14-graylog-compose",
        "plan --compose @/trimmed.yaml --service graylog --slo p99<1s --rate 5/s --url http://localhost:9000/",
        2,
        &["GRAYLOG_PASSWORD_SECRET"],
        &["5140", "is not a port"],
    ),
    (
        "15-datahub-compose",
        "plan --compose @/trimmed.yaml --service gms --slo p99<1s --rate 5/s --url http://localhost:8080/health",
        2,
        &["`gms`", "UI_VERSION"],
        &["is not a time"],
    ),
    (
        "31-cms-promotion-failure-heap",
        "gc @/gc.log",
        0,
        &["stood still for 20.0 s at once", "concurrent mode failure"],
        &[],
    ),
    (
        "32-zgc-gc-only",
        "gc @/gc.log",
        0,
        &["cannot show pauses", "-Xlog:gc*,safepoint"],
        &[],
    ),
    (
        "32-zgc-gc-only",
        "gc @/genz-dev.log",
        0,
        &["cannot show pauses"],
        &[],
    ),
    (
        "33-traefik-quotes",
        "profile @/access.log",
        0,
        &[
            "format: traefik",
            "5 requests, 0 lines rejected",
            "max 95.0 ms",
        ],
        &[],
    ),
    (
        "33-traefik-quotes",
        "profile @/nine-and-ping.log",
        0,
        &["10 requests, 0 lines rejected"],
        &["not understood"],
    ),
    (
        "33-traefik-quotes",
        "profile @/nine.log",
        0,
        &["9 requests, 0 lines rejected"],
        &[],
    ),
    (
        "34-httpd-custom-msec",
        "profile @/access.log",
        2,
        &["closest is", "column 4", "[2022-08-23"],
        &[],
    ),
    (
        "37-istio-mixed",
        "profile @/access.log",
        0,
        &["format: istio", "max 30"],
        &["5725"],
    ),
    (
        "37-istio-mixed",
        "profile @/new.log",
        0,
        &["format: istio", "1 lines rejected"],
        &[],
    ),
    (
        "39-tomcat-trailing-ms",
        "profile @/access.log",
        0,
        &["--server decides"],
        &[],
    ),
    (
        "39-tomcat-trailing-ms",
        "profile --server tomcat9 @/access.log",
        0,
        &["max 40.0 ms"],
        &[],
    ),
    (
        "42-jdk8-limit-unseen",
        "predict --node 16 --node-memory 64Gi --memory 128Mi --jdk 8u131",
        0,
        &["heap of 16Gi", "16 processors", "has no container support"],
        &[],
    ),
    (
        "42-jdk8-limit-unseen",
        "predict --node 16 --node-memory 64Gi --memory 128Mi --jdk 8u131 --jvm '-XX:+UnlockExperimentalVMOptions -XX:+UseCGroupMemoryLimitForHeap'",
        0,
        &["heap of 64Mi", "Parallel"],
        &["not checked"],
    ),
    (
        "42-jdk8-limit-unseen",
        "predict --node 16 --node-memory 64Gi --memory 128Mi --jdk 8u181",
        0,
        &["heap of 16Gi"],
        &[],
    ),
    (
        "42-jdk8-limit-unseen",
        "predict --node 16 --node-memory 64Gi --memory 128Mi --jdk 9",
        0,
        &["heap of 16Gi", "G1"],
        &[],
    ),
    (
        "47-cgroup2-unseen",
        "predict --cpu 2 --node 8 --memory 1791Mi --jdk 8u212",
        0,
        &["448Mi", "cgroup v2"],
        &[],
    ),
    (
        "47-cgroup2-unseen",
        "predict --cpu 4 --node 16 --memory 2Gi --jdk 21",
        0,
        &["512Mi", "4 processors"],
        &["cgroup v2"],
    ),
    (
        "48-integer-percentage-jdk8",
        "predict --cpu 1 --memory 512Mi --jdk 8u191 --jvm -XX:MaxRAMPercentage=50",
        2,
        &["50.0"],
        &[],
    ),
    (
        "48-integer-percentage-jdk8",
        "predict --cpu 1 --memory 1Gi --jdk 8u372 --jvm -XX:MaxRAMPercentage=50",
        2,
        &["50.0"],
        &[],
    ),
    (
        "48-integer-percentage-jdk8",
        "predict --cpu 1 --memory 512Mi --jdk 10 --jvm -XX:MaxRAMPercentage=50",
        2,
        &["50.0"],
        &[],
    ),
    (
        "57-keycloak-metaspace",
        "predict --cpu 2 --memory 2Gi --jdk 21 --jvm '-XX:MetaspaceSize=96M -XX:MaxMetaspaceSize=256m'",
        0,
        &["512Mi"],
        &["not checked"],
    ),
];

/// The arguments with the folder in the place of `@`.
fn at_folder(arguments: &str, folder: &Path) -> String {
    arguments.replace('@', &folder.display().to_string())
}

fn check((folder, arguments, code, wanted, unwanted): &Case, all: &Path) -> Option<String> {
    let ended = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(words::words(&at_folder(arguments, &all.join(folder))))
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let missing: Vec<_> = wanted
        .iter()
        .filter(|word| !said.contains(**word))
        .collect();
    let wrong: Vec<_> = unwanted
        .iter()
        .filter(|word| said.contains(**word))
        .collect();
    let holds = ended.status.code() == Some(*code) && missing.is_empty() && wrong.is_empty();
    let status = ended.status;
    (!holds).then(|| {
        format!("{folder}: {arguments}: {status}, without {missing:?}, with {wrong:?}:\n{said}")
    })
}

#[test]
fn every_input_that_was_handed_in_gives_the_right_answer() {
    let all = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    if !all.is_dir() {
        println!("SKIP every_input_that_was_handed_in_gives_the_right_answer: no shared/cases");
        return;
    }
    let wrong: Vec<String> = CASES.iter().filter_map(|case| check(case, &all)).collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
