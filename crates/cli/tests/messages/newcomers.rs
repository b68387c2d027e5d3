//! Commands that newcomers typed in a review, and near relatives: the answer that they should have
//! had.

use super::{ENVIRONMENT, Row, USAGE};

pub const NEWCOMERS: &[Row] = &[
    // Who chooses the CPU.
    (
        "run --cpu auto --slo p99<1s --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &[
            "--cpu auto and --start-cpu auto choose the CPU, and only `size` does that",
            "--cpu 500m,1",
        ],
    ),
    (
        "size --cpu auto,1 --slo p99<1s --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["`auto` is not an amount", "CPUs such as 1.5 or 250m"],
    ),
    (
        "size --job --cpu auto -- sh -c true",
        USAGE,
        &["cpu is auto", "the application is a job", "--cpu 1"],
    ),
    (
        "size --job --cpu 1 --cpu-policy request -- sh -c true",
        USAGE,
        &["cpu-policy is request", "the application is a job"],
    ),
    (
        "size --job --cpu-policy both -- sh -c true",
        USAGE,
        &[
            "cpu-policy is both, which chooses a request next to a neighbour, but the application is a job",
            "--cpu 1",
        ],
    ),
    (
        "size --cpu auto --prices fargate --slo p99<1s --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["with prices", "leave"],
    ),
    (
        "size --cpu-policy none --slo p99<1s --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["`none` is not a CPU policy", "request gives no limit"],
    ),
    // The experiment file is an argument everywhere; other files are named for what they are.
    (
        "size none.toml",
        USAGE,
        &["cannot read the experiment none.toml"],
    ),
    (
        "judge --advice percent=75 none.toml",
        USAGE,
        &["cannot read the experiment none.toml"],
    ),
    (
        "plan none.toml",
        USAGE,
        &["cannot read the experiment none.toml"],
    ),
    (
        "plan deploy.yaml",
        USAGE,
        &[
            "deploy.yaml is a Kubernetes manifest",
            "hint: check it: loadline lint deploy.yaml",
        ],
    ),
    (
        "size deploy.yaml",
        USAGE,
        &[
            "is a Kubernetes manifest",
            "loadline init --manifest deploy.yaml",
        ],
    ),
    ("run deploy.yaml", USAGE, &["is a Kubernetes manifest"]),
    (
        "plan compose.yaml",
        USAGE,
        &["is a compose file", "--compose compose.yaml --service NAME"],
    ),
    ("size compose.yaml", USAGE, &["is a compose file"]),
    (
        "plan brace.json",
        USAGE,
        &["brace.json is JSON", "loadline show brace.json"],
    ),
    (
        "plan result.json.gz",
        USAGE,
        &["is a packed file", "loadline show result.json.gz"],
    ),
    // What another tool wrote, or another place has.
    (
        "load --profile test.js http://localhost:1/",
        USAGE,
        &[
            "a script of k6, not a load profile",
            "--load 'k6 run test.js'",
        ],
    ),
    (
        "size --slo p99<1s --profile plan.jmx --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["a script of JMeter", "--load 'jmeter -n -t ", "/plan.jmx'"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --budget 10m --soak 30m -- java -jar a.jar",
        USAGE,
        &[
            "--budget: a budget of 10m has no room for the soak",
            "hint: give it several minutes more",
        ],
    ),
    (
        "plan quoted.toml",
        USAGE,
        &["hint: write a list of numbers: [404]"],
    ),
    (
        "plan listed.toml",
        USAGE,
        &["hint: write the number without quotes: 404"],
    ),
    ("plan bare.toml", USAGE, &["hint: write a list: [404]"]),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --kubernetes --image x:1 --context nope",
        ENVIRONMENT,
        &["finding the cluster"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --rate 7/s --url http://localhost:1/ -- java -jar none.jar",
        USAGE,
        &["warning: --rate is given more than once: the last one counts"],
    ),
    (
        "size none.toml gone.toml",
        4,
        &[
            "cannot read the experiment none.toml",
            "cannot read the experiment gone.toml",
            "no answer for none.toml, gone.toml",
        ],
    ),
    (
        "size none.toml gone.toml --report x.html",
        USAGE,
        &["cannot be used with"],
    ),
    // Runs that end by themselves.
    (
        "size -- sh -c true",
        USAGE,
        &[
            "--url is missing",
            "a program that ends does not need it: --job",
            "--metric 'lag=records_lag', or --probe",
        ],
    ),
    (
        "size --probe lag=true --slo p99<50ms -- sh -c true",
        USAGE,
        &[
            "`p99<50ms` is about requests, but without a URL no requests are sent",
            "hint: write objectives about metrics",
        ],
    ),
    (
        "run --drive ./attack.sh --slo 'load passes, p99<50ms' -- sh -c true",
        USAGE,
        &[
            "`p99<50ms` is about requests, but without a URL no requests are sent",
            "'load passes' for a drive command",
        ],
    ),
    (
        "run --drive ./attack.sh --slo 'load passes' -- sh -c true",
        USAGE,
        &[
            "cannot tell when the application is ready",
            "hint: write ready = { log = \"Started\" }",
        ],
    ),
    (
        "run --slo 'load passes' --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "the SLO has `load passes`, the exit code of a load command, but there is no such command",
            "--load 'k6 run checkout.js'",
        ],
    ),
    (
        "run --slo 'load passes unless 0' --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["an exit code that means failure is 1 to 255"],
    ),
    (
        "size --probe lag=true --slo start<9s --rate 5/s -- sh -c true",
        USAGE,
        &[
            "--rate: it is about requests",
            "hint: leave it out, or write url",
        ],
    ),
    (
        "size --probe lag=true --slo start<9s --soak 30m -- sh -c true",
        USAGE,
        &[
            "without a URL no request is sent",
            "a soak, which counts requests",
        ],
    ),
    (
        "run --slo p99<50ms --url http://localhost:1/ --rate 1/s --drive true -- sh -c true",
        USAGE,
        &["'--url <URL>' cannot be used with '--drive <COMMAND>'"],
    ),
    (
        "run --slo heap<64Mi --url http://localhost:1/ --rate 1/s -- sh -c true",
        USAGE,
        &["the bound is not a percentage above 0 and at most 100"],
    ),
    (
        "size --job --slo p99<50ms -- sh -c true",
        USAGE,
        &[
            "has an objective about requests, and a run that ends gets none",
            "time<60s",
        ],
    ),
    (
        "size --slo time<60s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["`time<1m` is about a job", "(--job)"],
    ),
    (
        "size --slo p99<50ms --rate 5/s --reset x --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["reset is for a job", "(--job)"],
    ),
    (
        "size --job --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["--job", "cannot be used with"],
    ),
    (
        "size --job --rate 5/s -- sh -c true",
        USAGE,
        &["the application is a job, and a load is given"],
    ),
    (
        "run --slo 'peak start<1s' --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["only latencies and errors have a bound at the peak"],
    ),
    (
        "size --job --peak 2x -- sh -c true",
        USAGE,
        &["the application is a job, and a load is given"],
    ),
    (
        "size --probe lag=true --slo 'lag: max<9' --peak 2x -- sh -c true",
        USAGE,
        &[
            "--peak: it is about requests, but without a URL no requests are sent",
            "hint: leave it out",
        ],
    ),
    (
        "run --slo p99<50ms --closed --peak 2x --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &[
            "--peak: the load is closed, so it has no rate to rise above",
            "hint: give one: --rate 100/s",
        ],
    ),
    (
        "run --slo p99<50ms --load 'k6 run x' --peak 2x --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["--peak: a command makes the load", "hint: leave it out"],
    ),
    (
        "run --slo 'p99<50ms,peak p99<1s' --rate 5/s --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &[
            "--slo: `peak p99<1s` is about a peak, but the load has none",
            "hint: set its height: peak = \"2x\" in [load] (--peak 2x)",
        ],
    ),
    (
        "size --slo p99<50ms --rate 5/s --peak 9/s --prices fargate --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &[
            "the experiment asks for prices, which measure the load at many rates",
            "hint: say how many times the rate it is: peak = \"2x\"",
        ],
    ),
    (
        "size --slo p99<50ms --closed --headroom 20% --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &[
            "--headroom: headroom is a share of the rate, but the load has no rate",
            "hint: give one: rate = \"100/s\" (--rate 100/s)",
        ],
    ),
    (
        "size --job --soak 30m -- sh -c true",
        USAGE,
        &["the application is a job, and the experiment asks for a soak"],
    ),
    (
        "size --job --options-to launcher -- sh -c true",
        USAGE,
        &[
            "--options-to: `sh` is not a launcher that loadline knows",
            "hint: known are mvn, gradle, sbt and ant; name the variable that it reads: --options-to JAVA_OPTS",
        ],
    ),
    (
        "size --job --options-to Launcher -- mvn package",
        USAGE,
        &[
            "--options-to: `Launcher` is not a place for JVM options",
            "hint: write launcher, all, or a variable in capital letters: MAVEN_OPTS",
        ],
    ),
    (
        "size --job --options-to all -- java -jar batch.jar",
        USAGE,
        &["--options-to: options-to is for a program that starts its JVMs itself"],
    ),
    (
        "size --slo p99<50ms --rate 5/s --options-to all --url http://localhost:8080/ -- sh -c true",
        USAGE,
        &["options-to is for a job", "(--job)"],
    ),
    (
        "size --job --prices fargate --replicas 2 -- sh -c true",
        USAGE,
        &["the application is a job, and the experiment asks for replicas"],
    ),
    (
        "size --job --slo slower<0.1 -- sh -c true",
        USAGE,
        &["did you mean `slower<10%`?"],
    ),
    // Negative numbers.
    (
        "size --rate -5/s",
        USAGE,
        &["--rate: -5/s is negative", "hint: --rate 5/s"],
    ),
    ("size --cpu -1", USAGE, &["--cpu: -1 is negative"]),
    ("run --memory -1Gi", USAGE, &["--memory: -1Gi is negative"]),
    (
        "size --duration -5s",
        USAGE,
        &["--duration: -5s is negative"],
    ),
    ("size --prove -5", USAGE, &["--prove: -5 is negative"]),
    (
        "emit --to x --replicas -1",
        USAGE,
        &["--replicas: -1 is negative"],
    ),
    // Units of other notations.
    (
        "predict --memory 512MB --cpu 1 --jdk 17",
        USAGE,
        &["`512MB`", "did you mean 512Mi?"],
    ),
    (
        "predict --memory 512mb --cpu 1 --jdk 17",
        USAGE,
        &["did you mean 512Mi?"],
    ),
    (
        "predict --memory 0.5Gi --cpu 1 --jdk 17",
        USAGE,
        &["did you mean 512Mi?"],
    ),
    (
        "predict --memory '512 Mi b' --cpu 1 --jdk 17",
        USAGE,
        &["did you mean 512Mi?"],
    ),
    (
        "predict --memory 1,5g --cpu 1 --jdk 17",
        USAGE,
        &["did you mean 1536Mi?"],
    ),
    (
        "predict --memory 1Gi --cpu 500M --jdk 17",
        USAGE,
        &["did you mean 500m?"],
    ),
    (
        "predict --memory 1Gi --cpu 1,5 --jdk 17",
        USAGE,
        &["did you mean 1500m?"],
    ),
    (
        "predict --memory 1Gi --cpu '2 cores' --jdk 17",
        USAGE,
        &["did you mean 2?"],
    ),
    (
        "size --max-memory 512MB --slo p99<1s --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean 512Mi?"],
    ),
    // Objectives.
    (
        "size --slo avg<100ms --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["a mean hides slow requests", "did you mean `p50<100ms`?"],
    ),
    (
        "size --slo error<1% --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `errors<1%`?"],
    ),
    (
        "size --slo P99<250MS --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `p99<250ms`?"],
    ),
    (
        "size --slo 99%<250ms --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `p99<250ms`?"],
    ),
    (
        "size --slo p100<1s --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `max<1s`?"],
    ),
    (
        "size --slo p99≤250ms --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `p99<250ms`?"],
    ),
    (
        "size --slo p99=250ms --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `p99<250ms`?"],
    ),
    (
        "size --slo p99<0ms --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["the bound is not above 0"],
    ),
    (
        "size --slo 'startup<5s' --rate 5/s --url http://localhost:1/ -- java -jar a.jar",
        USAGE,
        &["did you mean `start<5s`?"],
    ),
    // Rates.
    (
        "load --rate 100rps http://localhost:1/",
        USAGE,
        &["`100rps` is not a rate", "did you mean 100/s?"],
    ),
    (
        "load --rate 100/sec http://localhost:1/",
        USAGE,
        &["did you mean 100/s?"],
    ),
    (
        "load --rate 1000000000000/s http://localhost:1/",
        USAGE,
        &["more than one generator can send"],
    ),
    (
        "load --rate '50 req/s' http://localhost:1/",
        USAGE,
        &["did you mean 50/s?"],
    ),
    // Commands of the application.
    (
        "size --slo p99<1s --rate 5/s --url http://localhost:1/ -- app.jar",
        USAGE,
        &["app.jar is a jar", "hint: -- java -jar app.jar"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ -- 'java -jar app.jar'",
        USAGE,
        &[
            "cannot find the program `java -jar app.jar`",
            "hint: give each word as its own: -- java -jar app.jar",
        ],
    ),
    (
        "run --memory 1Gi --slo p99<1s --rate 5/s --url http://localhost:1/ -- target/app.jar",
        USAGE,
        &["-- java -jar target/app.jar"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --ready health -- java -jar a.jar",
        USAGE,
        &[
            "starts neither with a slash nor with a port",
            ":9001/health",
        ],
    ),
    (
        "run --drive ./attack.sh --slo 'load passes' --ready grpc -- sh -c true",
        USAGE,
        &["starts neither with a slash nor with a port", "grpc:9090"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --jdk 99 -- java -jar a.jar",
        ENVIRONMENT,
        &["99"],
    ),
    // Answers and bodies.
    (
        "load --rate 5/s --expect-status 2xx http://localhost:1/",
        USAGE,
        &["it is not a status", "--expect-status 200"],
    ),
    (
        "load --rate 5/s --expect-status 9 http://localhost:1/",
        USAGE,
        &["it is not a status"],
    ),
    // Files that cannot be read back.
    (
        "show trials.csv",
        USAGE,
        &["trials.csv is a CSV, not a result", "result.json"],
    ),
    (
        "report page.html",
        USAGE,
        &["page.html is an HTML report, not a result"],
    ),
    ("show junit.xml", USAGE, &["junit.xml is XML, not a result"]),
    (
        "show cut.json",
        USAGE,
        &["cut.json is cut off", "hint: export it again"],
    ),
    (
        "show cut.json.gz",
        USAGE,
        &["cut.json.gz is cut off", "hint: export it again"],
    ),
    // The shipped manifest.
    (
        "emit result.json.gz --to x --image 'bad image name'",
        USAGE,
        &["it is not an image name", "registry.example/orders:1.4"],
    ),
    (
        "emit result.json.gz --to x --image ''",
        USAGE,
        &["it is not an image name"],
    ),
    (
        "emit result.json.gz --to x --image https://registry.example/orders:1",
        USAGE,
        &["it is not an image name"],
    ),
    (
        "emit result.json.gz --to x --image UPPER/case",
        USAGE,
        &["it is not an image name"],
    ),
    (
        "emit result.json.gz --to x --for helm",
        USAGE,
        &["--values values.yaml"],
    ),
    // Addresses.
    (
        "fleet --prometheus ftp://x",
        USAGE,
        &["ftp is not spoken here, only http and https"],
    ),
    ("serve --listen 7007", USAGE, &["write 127.0.0.1:7007"]),
    ("serve --listen :8080", USAGE, &["write 127.0.0.1:8080"]),
    // Words in other places.
    ("--slo p99<1s size", USAGE, &["flags follow the command"]),
    ("version", USAGE, &["loadline --version"]),
    ("schema foo", USAGE, &["foo"]),
    (
        "compare result.json.gz other.json.gz",
        4,
        &["not comparable: they have another", "hint: measure both"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 8u191 --jvm -XX:MaxRAMPercentage=50",
        USAGE,
        &["a percentage with a point", "50.0"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm Xmx1g",
        USAGE,
        &[
            "--jvm: `Xmx1g` is not an option",
            "hint: write options as in JAVA_TOOL_OPTIONS",
        ],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -Xmx1gb",
        USAGE,
        &["-Xmx1gb: expected an amount such as 512m or 1g"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -Xmx80%",
        USAGE,
        &["-Xmx80%: expected an amount"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 25 --jvm -XX:MaxRAMPercentage=75%",
        USAGE,
        &["expected a percentage from 0.0 to 100.0"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 25 --jvm '-Xms2g -Xmx1g'",
        USAGE,
        &["the initial heap (2Gi) is larger than the largest heap (1Gi)"],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk openjdk:17-jdk-slim",
        USAGE,
        &["is not a JDK version", "17.0.15"],
    ),
    (
        "lint crs.yaml",
        USAGE,
        &[
            "not checked: Kafka/k",
            "custom resources",
            "kubectl get pods",
        ],
    ),
    ("lint many.yaml", USAGE, &["too large or too complex"]),
    ("lint twice.yaml", USAGE, &["duplicate mapping key: a\n"]),
    (
        "lint others.yaml",
        USAGE,
        &["no container runs a JVM", "redis has no JVM"],
    ),
    (
        "emit result.json.gz --to x --manifest command.yaml",
        USAGE,
        &["-Xmx1g in command[0]", "hint: "],
    ),
    (
        "emit result.json.gz --to x --manifest cassandra.yaml",
        USAGE,
        &[
            "the heap may take 1Gi and everything else",
            "for a typical service",
            "raise the limit to 1232Mi",
            "-Xmx1G comes from MAX_HEAP_SIZE",
        ],
    ),
    (
        "emit result.json.gz --to x --manifest mounted.yaml",
        USAGE,
        &[
            "the heap may take 8Gi",
            "-Xmx8G comes from a mounted ConfigMap",
        ],
    ),
    // Images that no engine can start, refused before anything is planned.
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --image Foo/Bar:1",
        USAGE,
        &[
            "the image `Foo/Bar:1`: that is not an image name",
            "hint: write it as the engine lists it",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --image foo/bar:la:test",
        USAGE,
        &[
            "that is not an image name",
            "hint: write it as the engine lists it",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --image https://registry.example/foo:1",
        USAGE,
        &[
            "that is not an image name",
            "hint: write it as the engine lists it",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --image foo@sha256:xyz",
        USAGE,
        &[
            "that is not an image name",
            "hint: write it as the engine lists it",
        ],
    ),
    (
        "size --slo p99<1s --rate 5/s --url http://localhost:1/ --image Foo:1",
        USAGE,
        &["--image: the image `Foo:1`: that is not"],
    ),
    (
        "run --slo p99<1s --rate 5/s --url http://localhost:1/ --image Foo:1 --memory 1Gi",
        USAGE,
        &["that is not an image name"],
    ),
    (
        "judge --advice percent=75 --slo p99<1s --rate 5/s --url http://localhost:1/ --image Foo:1",
        USAGE,
        &["that is not an image name"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --kubernetes --image Foo:1",
        USAGE,
        &["that is not an image name"],
    ),
    (
        "plan image.toml",
        USAGE,
        &["image.toml:3:9: the image `Foo/Bar:1`: that is not"],
    ),
    ("init --image Foo:1", USAGE, &["it is not an image name"]),
    // Options, each as a JVM answers.
    (
        "predict --memory 4Gi --cpu 2 --jdk 8 --jvm=-Xlog:gc",
        USAGE,
        &["-Xlog:gc: HotSpot 8 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 8 --jvm=--add-opens=java.base/java.lang=ALL-UNNAMED",
        USAGE,
        &["HotSpot 8 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 11 --jvm=-Xmn0",
        USAGE,
        &["-Xmn0: expected an amount above 0"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-Xlog:gcs",
        USAGE,
        &["expected tags such as gc, gc* or gc+heap instead of `gcs`"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 21 --jvm=-Xlog:gc*:file=gc.log:times",
        USAGE,
        &["instead of `times`"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 21 --jvm=-Xlog:gc*=verbose",
        USAGE,
        &["a level of off, trace, debug, info, warning, error instead of `verbose`"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 25 --jvm=-Xlog:gc:file=gc.log::filesize=10MB",
        USAGE,
        &["instead of `filesize=10MB`"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-XX:G1HeapRegionSize=64m",
        USAGE,
        &["expected at most 32m"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 21 --jvm=-XX:G1HeapRegionSize=1g",
        USAGE,
        &["expected at most 512m"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 21 --jvm=-XX:+CMSClassUnloadingEnabled",
        USAGE,
        &["HotSpot 21 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 25 --jvm=-XX:+UseBiasedLocking",
        USAGE,
        &["HotSpot 25 does not know this flag"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-XX:+DebugNonSafepoints",
        USAGE,
        &["diagnostic in HotSpot 17; put -XX:+UnlockDiagnosticVMOptions before it"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-XX:NativeMemoryTracking=on",
        USAGE,
        &["expected one of off, summary, detail"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-XX:+UseG1gc",
        USAGE,
        &["did you mean -XX:+UseG1GC?"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm=-Xshare:of",
        USAGE,
        &["does not know this flag"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm '-XX:MaxRAMPercentage=150 -XX:MaxRAMPercentage=75'",
        USAGE,
        &["-XX:MaxRAMPercentage=150: expected a percentage"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 21 --jvm '-XX:+UseShenandoahGC -XX:ShenandoahGCMode=generational'",
        USAGE,
        &["expected one of satb"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk openj9-17 --jvm=-Xshareclass",
        USAGE,
        &["OpenJ9 has no option of this name"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk openj9-17 --jvm=-Xss512kb",
        USAGE,
        &["a size is digits and k, m, g or t"],
    ),
    // Lengths of time, objectives and keys as people write them.
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --duration 30 -- sh -c true",
        USAGE,
        &["at most a year, here 30s"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --duration '1 minute' -- sh -c true",
        USAGE,
        &["at most a year, here 1m"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ --time 30s -- sh -c true",
        USAGE,
        &["did you mean --duration 1m?"],
    ),
    (
        "plan --slo latency<250ms --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["for how many requests; did you mean `p99<250ms`?"],
    ),
    (
        "plan --slo 250ms --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["did you mean `p99<250ms`?"],
    ),
    (
        "plan --slo availability>99.9% --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["did you mean `errors<0.1%`?"],
    ),
    (
        "plan --job --slo 'time<1 hour' -- sh -c true",
        USAGE,
        &["did you mean `time<1h`?"],
    ),
    (
        "plan --job --slo 'exit code=3' -- sh -c true",
        USAGE,
        &["did you mean `exit=3`?"],
    ),
    (
        "plan --job --expect-output '' -- sh -c true",
        USAGE,
        &["--expect-output"],
    ),
    (
        "plan underscore.toml",
        USAGE,
        &[
            "there is no key `max_memory` here",
            "did you mean `max-memory`?",
        ],
    ),
    (
        "plan --compose cpus.yaml --service a --slo p99<1s --rate 5/s --url http://localhost:1/",
        USAGE,
        &[
            "cpus: `many` is not an amount of CPU",
            "hint: write cpus: \"0.5\"",
        ],
    ),
    // Flags, values and commands of other tools.
    (
        "plan -m 512m --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["did you mean --memory 512Mi?"],
    ),
    (
        "load http://localhost:1/ --rate 5/s -u user:pw",
        USAGE,
        &["did you mean --header 'Authorization: Basic TEXT'?"],
    ),
    (
        "load http://localhost:1/ --rate 5/s -k",
        USAGE,
        &["did you mean --insecure?"],
    ),
    (
        "emit --for docker-compose x --to y",
        USAGE,
        &["for a compose file: --for compose"],
    ),
    (
        "plan --cpu 0,5 --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["decimals have a point: 0.5"],
    ),
    (
        "judge --advice percent=75 --memory 512 --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["is less than 1 MiB of memory", "write 512Mi"],
    ),
    (
        "plan --slo rps>100 --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["a rate is offered, not judged: --rate 100/s"],
    ),
    (
        "plan --duration 1h30m --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["here 90m"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://::1:8080/ -- sh -c true",
        USAGE,
        &["an IPv6 address without brackets: http://[::1]:8080/"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ -- java -Xmx64m app.jar",
        USAGE,
        &[
            "java takes app.jar for the name of a class",
            "hint: -- java -jar app.jar",
        ],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm @/app/args",
        USAGE,
        &["give the options in the file: --jvm \"$(cat /app/args)\""],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 21 --jvm -XX:-UseBiasedLocking",
        USAGE,
        &["HotSpot 21 does not know this flag"],
    ),
];
