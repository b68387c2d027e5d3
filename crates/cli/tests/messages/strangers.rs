//! Files of other kinds and words of other tools, given to each command: the answer says what they
//! are and what takes them.

use super::{ENVIRONMENT, Row, USAGE};

pub const STRANGERS: &[Row] = &[
    // What lint and judge are given.
    (
        "lint compose.yaml",
        USAGE,
        &[
            "compose.yaml is a compose file, not a Kubernetes manifest",
            "--compose compose.yaml",
        ],
    ),
    (
        "lint shop.jar",
        USAGE,
        &[
            "it is a jar, not a Kubernetes manifest",
            "-- java -jar shop.jar",
        ],
    ),
    (
        "lint pom.xml",
        USAGE,
        &["is a Maven project", "loadline init"],
    ),
    (
        "lint Dockerfile",
        USAGE,
        &["is a Dockerfile", "--image NAME"],
    ),
    (
        "lint utf16.toml",
        USAGE,
        &["it is non-UTF-8 text", "save it as UTF-8"],
    ),
    (
        "lint result.json.gz",
        USAGE,
        &["it is a packed file", "loadline show result.json.gz"],
    ),
    (
        "lint gc.log",
        USAGE,
        &["it is a GC log", "loadline gc gc.log"],
    ),
    (
        "lint access.log",
        USAGE,
        &["is an access log", "loadline profile access.log"],
    ),
    (
        "lint ci.yaml",
        USAGE,
        &["is a workflow of a CI system", "hint: "],
    ),
    (
        "lint values.yaml",
        USAGE,
        &[
            "is values of a Helm chart",
            "helm template CHART -f values.yaml",
        ],
    ),
    (
        "lint Chart.yaml",
        USAGE,
        &["is the head of a Helm chart", "helm template CHART"],
    ),
    (
        "lint application.yaml",
        USAGE,
        &["is a configuration of Spring Boot", "loadline init"],
    ),
    (
        "lint kustomization.yaml",
        USAGE,
        &[
            "is a kustomization",
            "kubectl kustomize DIR | loadline lint -",
        ],
    ),
    ("lint program", USAGE, &["it is a program", "-- program"]),
    (
        "lint comments.yaml",
        USAGE,
        &["comments.yaml: it has no document", "hint: "],
    ),
    (
        "lint vpa.yaml",
        USAGE,
        &["is advice of an autoscaler", "judge --advice"],
    ),
    (
        "lint deploy.yaml --prices nope",
        USAGE,
        &["there is no offer `nope`", "hint: fargate, "],
    ),
    (
        "judge --manifest pom.xml",
        USAGE,
        &["is a Maven project, not a Kubernetes manifest"],
    ),
    (
        "judge deploy.yaml",
        USAGE,
        &[
            "deploy.yaml is a Kubernetes manifest",
            "--manifest FILE or --advice FILE",
        ],
    ),
    (
        "judge --advice gc.log --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["it is a GC log", "loadline gc gc.log"],
    ),
    (
        "judge --advice 75 --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["cannot read 75", "did you mean percent=75"],
    ),
    // Experiments.
    (
        "plan access.log",
        USAGE,
        &["is an access log, not an experiment", "loadline profile"],
    ),
    ("plan ci.yaml", USAGE, &["is a workflow of a CI system"]),
    (
        "plan application.yaml",
        USAGE,
        &["is a configuration of Spring Boot", "loadline init"],
    ),
    (
        "plan build.gradle",
        USAGE,
        &["is a Gradle project", "loadline init"],
    ),
    ("plan values.yaml", USAGE, &["is values of a Helm chart"]),
    ("plan program", USAGE, &["is a program", "-- program"]),
    ("plan run.sh", USAGE, &["is a script", "-- ./run.sh"]),
    (
        "plan test.js",
        USAGE,
        &["is a script of k6", "--load 'k6 run test.js'"],
    ),
    (
        "plan x.har",
        USAGE,
        &["is a HAR file", "loadline profile x.har"],
    ),
    (
        "plan rates.toml",
        USAGE,
        &["is a load profile", "--profile rates.toml"],
    ),
    (
        "plan vary.toml",
        USAGE,
        &["there is no key `vary` here", "did you mean `factor`?"],
    ),
    (
        "plan aplication.toml",
        USAGE,
        &["there is no key `aplication` here", "did you mean `app`?"],
    ),
    (
        "plan --compose deploy.yaml --service a --slo p99<1s --rate 5/s --url http://localhost:1/",
        USAGE,
        &[
            "it is a Kubernetes manifest, not a compose file",
            "hint: check it: loadline lint ",
            "/deploy.yaml; or start from it: loadline init --manifest ",
        ],
    ),
    (
        "plan --compose old.yaml --service a --slo p99<1s --rate 5/s --url http://localhost:1/",
        USAGE,
        &["it has no `services`", "compose 1"],
    ),
    (
        "plan --compose listed.yaml --service a --slo p99<1s --rate 5/s --url http://localhost:1/",
        USAGE,
        &["its service `a` is not a table of keys", "image: NAME:TAG"],
    ),
    (
        "plan --compose extended.yaml --service a --slo p99<1s --rate 5/s --url http://localhost:1/",
        USAGE,
        &[
            "`extends` takes keys of another service",
            "docker compose config",
        ],
    ),
    // Results.
    ("show pom.xml", USAGE, &["is a Maven project, not a result"]),
    ("show shop.jar", USAGE, &["is a jar, not a result"]),
    (
        "show utf16.toml",
        USAGE,
        &["is non-UTF-8 text, not a result", "save it as UTF-8"],
    ),
    ("show x.har", USAGE, &["is a HAR file, not a result"]),
    (
        "show vary.toml",
        USAGE,
        &["is an experiment, not a result", "loadline size vary.toml"],
    ),
    (
        "explain gc.log",
        USAGE,
        &["is a GC log, not a result", "loadline gc gc.log"],
    ),
    (
        "explain directory",
        USAGE,
        &["directory is a directory, not a result", "hint: "],
    ),
    (
        "compare result.json.gz deploy.yaml",
        USAGE,
        &["is a Kubernetes manifest, not a result"],
    ),
    (
        "compare pom.xml Dockerfile",
        USAGE,
        &["is a Maven project, not a result"],
    ),
    (
        "export deploy.yaml",
        USAGE,
        &["is a Kubernetes manifest, not a result"],
    ),
    (
        "export result.json.gz -o x.xlsx",
        USAGE,
        &["writes no .xlsx", "-o FILE.csv"],
    ),
    (
        "export result.json.gz -o x.html",
        USAGE,
        &["writes no .html", "loadline report"],
    ),
    (
        "report result.json.gz -o x.pdf",
        USAGE,
        &["writes no .pdf", "a browser prints"],
    ),
    (
        "report result.json.gz -o x.csv",
        USAGE,
        &["writes no .csv", "loadline export"],
    ),
    (
        "emit deploy.yaml --to x",
        USAGE,
        &["is a Kubernetes manifest, not a result"],
    ),
    (
        "emit result.json.gz --to x --manifest collectors.yaml",
        USAGE,
        &["-XX:+UseG1GC and -XX:+UseZGC are both on", "keep one"],
    ),
    (
        "emit result.json.gz --to x --manifest compose.yaml",
        USAGE,
        &["is a compose file, not a Kubernetes manifest"],
    ),
    (
        "emit result.json.gz --to x --values pom.xml",
        USAGE,
        &["is a Maven project, not values"],
    ),
    (
        "emit result.json.gz --to x --values deploy.yaml",
        USAGE,
        &["is a Kubernetes manifest, not values of a Helm chart"],
    ),
    (
        "emit result.json.gz --to x --replicas two",
        USAGE,
        &["it is not a whole number"],
    ),
    (
        "fleet --prometheus http://localhost:1 --top x",
        USAGE,
        &["it is not a whole number"],
    ),
    // Logs and loads.
    (
        "profile gc.log",
        USAGE,
        &["is a GC log, not an access log", "loadline gc gc.log"],
    ),
    (
        "profile deploy.yaml",
        USAGE,
        &["is a Kubernetes manifest, not an access log"],
    ),
    (
        "profile postman.json",
        USAGE,
        &[
            "is a Postman collection, not an access log",
            "it has no rates",
        ],
    ),
    (
        "profile openapi.json",
        USAGE,
        &["is an OpenAPI description, not an access log"],
    ),
    (
        "profile result.json.gz",
        USAGE,
        &["is a result, not an access log", "loadline show"],
    ),
    (
        "profile --format apache access.log",
        USAGE,
        &["`apache` is not a known format", "common, combined"],
    ),
    (
        "profile --interval 0s access.log",
        USAGE,
        &["it is not a number", "hint: "],
    ),
    (
        "profile --interval 0 access.log",
        USAGE,
        &["must be above 0", "--interval 60"],
    ),
    (
        "profile --busiest 90s access.log",
        USAGE,
        &["a multiple of --interval", "--busiest 120s"],
    ),
    (
        "gc pom.xml",
        USAGE,
        &["it is a Maven project", "loadline init"],
    ),
    ("gc shop.jar", USAGE, &["it is a jar", "hint: "]),
    (
        "gc access.log",
        USAGE,
        &["it is an access log", "loadline profile access.log"],
    ),
    (
        "load --profile pom.xml http://localhost:1/",
        USAGE,
        &["is a Maven project, not a load profile"],
    ),
    (
        "load --profile access.log http://localhost:1/",
        USAGE,
        &[
            "is an access log, not a load profile",
            "loadline profile access.log",
        ],
    ),
    (
        "load --profile result.json.gz http://localhost:1/",
        USAGE,
        &["is a packed file, not a load profile"],
    ),
    // JVMs.
    (
        "predict --memory 4096 --jdk 17",
        USAGE,
        &["--memory: no JVM starts in 4096 bytes", "write 4096Mi"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -XMX512m",
        USAGE,
        &["does not know this option; did you mean -Xmx512m?"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -XX:MaxRamPercentage=75",
        USAGE,
        &["did you mean -XX:MaxRAMPercentage=75?"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -XX:+MaxRAMPercentage=75",
        USAGE,
        &["expected -XX:+NAME, -XX:-NAME or -XX:NAME=VALUE"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 11 --jvm -XX:+UseCGroupMemoryLimitForHeap",
        USAGE,
        &["HotSpot 11 does not know this flag"],
    ),
    (
        "predict --memory 1Gi --jdk 17 --jvm --Xmx512m",
        USAGE,
        &["--Xmx512m: the JVM does not know this option; did you mean -Xmx512m?"],
    ),
    (
        "predict --memory 1Gi --jdk 9 --jvm -XX:MaxRAMPercentage=50.0",
        USAGE,
        &["HotSpot 9 does not know this flag"],
    ),
    (
        "predict --memory 1Gi --jdk 8u131 --jvm -XX:+UseCGroupMemoryLimitForHeap",
        USAGE,
        &[
            "experimental in HotSpot 8u131",
            "-XX:+UnlockExperimentalVMOptions",
        ],
    ),
    (
        "predict --memory 4Gi --jdk 11 --jvm -XX:+UseZGC",
        USAGE,
        &["experimental in HotSpot 11"],
    ),
    (
        "predict --memory 4Gi --jdk 17 --jvm '-XX:+PrintGCDateStamps -Xloggc:gc.log'",
        USAGE,
        &["-XX:+PrintGCDateStamps: HotSpot 17 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --jdk 17 --jvm -XX:MaxPermSize=256m",
        USAGE,
        &["HotSpot 17 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --jdk 17 --jvm '\"-XX:+UseG1GC -Xmx1g\"'",
        USAGE,
        &["expected -XX:+NAME, -XX:-NAME or -XX:NAME=VALUE"],
    ),
    // Flags as other tools call them.
    (
        "explain --trial 3",
        USAGE,
        &["leave the flag out: loadline explain ID"],
    ),
    (
        "explain --trail 3",
        USAGE,
        &["leave the flag out: loadline explain ID"],
    ),
    (
        "serve --port 80",
        USAGE,
        &["did you mean --listen 127.0.0.1:7007?"],
    ),
    (
        "gc --file x",
        USAGE,
        &["leave the flag out: loadline gc FILE"],
    ),
    (
        "lint --manifests x",
        USAGE,
        &["leave the flag out: loadline lint FILE"],
    ),
    (
        "footprint --pid 1",
        USAGE,
        &["leave the flag out: loadline footprint PID"],
    ),
    (
        "load --target http://localhost:1/",
        USAGE,
        &["leave the flag out: loadline load URL"],
    ),
    ("size --rps 10", USAGE, &["did you mean --rate 100/s?"]),
    (
        "size --concurrency 5",
        USAGE,
        &["did you mean --connections 20?"],
    ),
    ("size --ram 1Gi", USAGE, &["did you mean --max-memory 1Gi?"]),
    ("run --ram 1Gi", USAGE, &["did you mean --memory 512Mi?"]),
    ("run --xmx 1g", USAGE, &["did you mean --jvm '-Xmx512m'?"]),
    ("size --cores 2", USAGE, &["did you mean --cpu 1?"]),
    ("soak --duration 1h", USAGE, &["did you mean --for 30m?"]),
    (
        "fleet --prom http://x",
        USAGE,
        &["did you mean --prometheus"],
    ),
    ("emit --out x", USAGE, &["did you mean --to DIR?"]),
    ("size --data-raw x", USAGE, &["did you mean --body TEXT?"]),
    (
        "fleet http://localhost:9090",
        USAGE,
        &["name the server with its flag: --prometheus"],
    ),
    (
        "emit kubernetes result.json.gz",
        USAGE,
        &["one result at a time", "--for kubernetes"],
    ),
    (
        "compare list.json list.json",
        USAGE,
        &["list.json: this is not an exported result: it is no JSON object"],
    ),
    (
        "plan backslash.toml",
        USAGE,
        &["write 'C:\\java' with single quotes"],
    ),
    (
        "predict --memory 1Gi --jdk 17 --jvm -Xmx512",
        USAGE,
        &["a number without a unit is bytes; change --jvm: -Xmx512m"],
    ),
    (
        "predict --java 17 --memory 1Gi",
        USAGE,
        &["did you mean --jdk 21?"],
    ),
    (
        "predict --jdk 17 --memory 1Gi -Xmx1g",
        USAGE,
        &["give JVM options as one argument: --jvm '-Xmx1g'"],
    ),
    // The rest.
    (
        "init --manifest compose.yaml",
        USAGE,
        &["it is a compose file, not a Kubernetes manifest"],
    ),
    (
        "init --manifest cronjob.yaml --url /",
        USAGE,
        &[
            "CronJob/nightly: it runs to its end, and nothing calls it: --url is for a service",
            "leave out --url",
        ],
    ),
    (
        "init --manifest gc.log",
        USAGE,
        &["it is a GC log, not a Kubernetes manifest"],
    ),
    (
        "init pom.xml",
        USAGE,
        &[
            "pom.xml is a file",
            "hint: give the service's own directory",
        ],
    ),
    (
        "resume result.json.gz",
        USAGE,
        &["result.json.gz is a file", "hint: "],
    ),
    (
        "serve --listen localhost",
        USAGE,
        &["it is not an address", "127.0.0.1:7007"],
    ),
    (
        "clean --older yesterday",
        USAGE,
        &["is neither an age nor a date", "7d"],
    ),
    (
        "completion tcsh",
        USAGE,
        &["invalid value 'tcsh'", "bash, elvish, fish"],
    ),
    (
        "footprint abc",
        USAGE,
        &["it is not a process id", "pgrep -a java"],
    ),
    (
        "fleet --prometheus http://localhost:1",
        ENVIRONMENT,
        &["Prometheus at http://localhost:1", "kubectl port-forward"],
    ),
];
