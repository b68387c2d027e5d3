//! Units, signs, flags and places of keys that people guess, and programs that are not there.

use super::{ENVIRONMENT, Row, USAGE};

pub const GUESSES: &[Row] = &[
    (
        "plan --slo p99<1s --rate 5/s --url http://localhost:1/ -- sh -c true -Xmx1g -Xmx2g",
        USAGE,
        &[
            "the largest heap is given twice: -Xmx1g and -Xmx2g",
            "leave one out",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --heap 64m --jvm -Xmx1g --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "--heap 64Mi: the application's own -Xmx1g would win",
            "--heap keep",
        ],
    ),
    (
        "size --slo p99=250 --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["has no unit; did you mean `p99<250ms`?"],
    ),
    (
        "size --slo errors<1 --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["did you mean `errors<1%`?"],
    ),
    (
        "size --slo start<20 --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["did you mean `start<20s`?"],
    ),
    (
        "size --slo p99<1s, --rate 5/s --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["it is empty: there is nothing before or after a comma"],
    ),
    (
        "size --slo 'lag: mx<9' --probe lag=true -- sh -c true",
        USAGE,
        &["`lag: mx<9`", "a metric has max, p99, p90, avg"],
    ),
    (
        "size --slo lag<9 --probe lag=true -- sh -c true",
        USAGE,
        &["a metric has its name before: `lag: max<1000`"],
    ),
    (
        "size --slo 'load pass' --drive true --ready tcp:1 -- sh -c true",
        USAGE,
        &["did you mean `load passes`?"],
    ),
    (
        "size --job --slo exit<1 -- sh -c true",
        USAGE,
        &["0 to 255: exit=3"],
    ),
    (
        "size --job --slo time=60s -- sh -c true",
        USAGE,
        &["did you mean `time<60s`?"],
    ),
    (
        "plan --slo 'lag: max<9' --probe lag= -- sh -c true",
        USAGE,
        &["there is nothing after the `=`", "hint: write lag=..."],
    ),
    (
        "plan --slo 'lag: max<9' --probe 'lag=./lag.sh | tail -1' -- sh -c true",
        USAGE,
        &[
            "`|` needs a shell, but the command runs without one",
            "sh -c './a.sh | tail -1'",
        ],
    ),
    (
        "plan --job --reset 'rm -rf x && mkdir x' -- sh -c true",
        USAGE,
        &["`&&` needs a shell"],
    ),
    (
        "plan --slo p99<1s --load './attack.sh $RATE' --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["`$RATE` needs a shell"],
    ),
    (
        "plan --slo 'lag: max<9' --probe lag=true --drive '' -- sh -c true",
        USAGE,
        &["it is empty", "hint: write 'k6 run checkout.js'"],
    ),
    (
        "plan --slo 'lag: max<9' --probe lag=./none.sh -- sh -c true",
        ENVIRONMENT,
        &["the probe lag: cannot find the program `./none.sh`"],
    ),
    (
        "plan --slo 'lag: max<9' --probe lag=true --drive ./none.sh -- sh -c true",
        ENVIRONMENT,
        &["the drive command: cannot find the program"],
    ),
    (
        "plan --slo 'lag: max<9' --probe lag=true --backlog ./none.sh -- sh -c true",
        ENVIRONMENT,
        &["the backlog command: cannot find the program"],
    ),
    (
        "plan --slo p99<1s --load ./none.sh --url http://localhost:1/ -- sh -c true",
        ENVIRONMENT,
        &["the load command: cannot find the program"],
    ),
    (
        "plan --job --reset ./none.sh -- sh -c true",
        ENVIRONMENT,
        &["the reset command: cannot find the program"],
    ),
    (
        "plan --job --fresh none -- sh -c true",
        ENVIRONMENT,
        &["--fresh none: there is no such directory", "--fresh ."],
    ),
    (
        "plan --job --fresh text -- sh -c true",
        ENVIRONMENT,
        &["--fresh text: there is no such directory"],
    ),
    (
        "plan --job --ready /health -- sh -c true",
        USAGE,
        &[
            "a job is never ready: it ends",
            "hint: leave out ready (--ready)",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --metrics http://localhost:1/m --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "--metrics: no metric to read there is named",
            "--metric 'lag=records_lag'",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s -X 'BAD METHOD' --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "`BAD METHOD` is not an HTTP method",
            "hint: write GET or POST",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s -H 'a b: c' --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["`a b` is not a header name", "'Accept: text/html'"],
    ),
    (
        "plan --slo p99<1s --load true -H 'a: c' --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["--header: a command makes the load"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --connections 0 --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "--connections: at least 1 is needed",
            "hint: write 1 to 10000",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --jvm Xmx1g --url http://localhost:1/ -- sh -c true",
        USAGE,
        &[
            "--jvm: `Xmx1g` is not a JVM option",
            "--jvm '-Xmx256m -XX:+UseSerialGC'",
        ],
    ),
    (
        "plan --slo p99<1s --rate 5/s --cpu Auto --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["auto and none have to be alone: --cpu auto"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --cpu none,1 --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["auto and none have to be alone: --cpu auto"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --min-memory 2Gi --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["hint: raise it with --max-memory 4Gi"],
    ),
    (
        "plan --slo p99<1s --rate 5/s --ready 9092 --url http://localhost:1/ -- sh -c true",
        USAGE,
        &["`9092` starts neither with a slash nor with a port"],
    ),
    (
        "load --rate 1k/s http://localhost:1/",
        USAGE,
        &["did you mean 1000/s?"],
    ),
    (
        "run --min-memory 64Mi --slo p99<1s",
        USAGE,
        &["other commands have it: loadline size --help"],
    ),
    (
        "plan text.toml other.toml",
        USAGE,
        &["to size several in turn: loadline size A.toml B.toml"],
    ),
    (
        "emit result.json.gz --rbac 'Bad NS'",
        USAGE,
        &["--rbac: `Bad NS` is not a namespace name"],
    ),
    (
        "plan misplaced.toml",
        USAGE,
        &[
            "there is no key `headroom` here",
            "hint: it belongs in [search]",
        ],
    ),
    (
        "plan jvm.toml",
        USAGE,
        &["hint: write JVM options into the command"],
    ),
    (
        "plan ready.toml",
        USAGE,
        &[
            "expected a table, not",
            "hint: write ready = { http = \"/health\" }",
        ],
    ),
    (
        "plan variable.toml",
        USAGE,
        &["`A B` in env is not a variable name"],
    ),
    ("plan negative.toml", USAGE, &["expected a whole number"]),
    (
        "plan words-in-one.toml",
        USAGE,
        &["`-Xmx1g -Xms1g` is several options"],
    ),
    (
        "plan bracket.toml",
        USAGE,
        &[
            "bracket.toml:2:1: expected a list, not a table",
            "double brackets, once for each: [[dependency]]",
        ],
    ),
    (
        "plan late.toml",
        USAGE,
        &["there is no key `warm_up` here", "it belongs in [load]"],
    ),
    (
        "run open.toml",
        USAGE,
        &["unclosed array", "close it: a list ends with ]"],
    ),
    (
        "plan one-word.toml",
        USAGE,
        &[
            "cannot find the program `java -jar app.jar`",
            "each word as its own",
        ],
    ),
    (
        "load --profile interval.toml http://localhost:1/",
        USAGE,
        &[
            "line 2: expected a number, not the text \"60\"",
            "`loadline profile` writes one",
        ],
    ),
    (
        "load --profile rats.toml http://localhost:1/",
        USAGE,
        &[
            "line 1: there is no key `rats` here",
            "known here: schema, origin, interval-seconds",
        ],
    ),
    (
        "profile unplaced.har",
        USAGE,
        &[
            "it is not a complete HAR file, from line 1 column 35 on",
            "save the recording again",
        ],
    ),
    (
        "merge result.json.gz",
        USAGE,
        &[
            "result.json.gz is a packed file, not a part",
            "loadline show result.json.gz",
        ],
    ),
    (
        "predict --memory 1Gi --jdk 17 --jvm '--add-opens java.base/java.lang=ALL-UNNAMED'",
        USAGE,
        &[
            "it does not start with -",
            "write --add-opens=java.base/java.lang=ALL-UNNAMED",
        ],
    ),
    (
        "predict --memory 1Gi --jdk 17 --jvm -Xgcpolicy:gencon",
        USAGE,
        &["-Xgcpolicy:gencon: HotSpot 17 does not know this flag"],
    ),
    (
        "predict --memory 1Gi --jdk 17 --jvm -XX:MaxHeapFreeRatio=30",
        USAGE,
        &["MinHeapFreeRatio (40) is above MaxHeapFreeRatio (30)"],
    ),
    (
        "predict --memory 4Gi --cpu 2 --jdk 17 --jvm -XX:-UseG1GC",
        USAGE,
        &["-XX:-UseG1GC: expected another collector to be on"],
    ),
    (
        "run --heap 64m --slo p99<1s",
        USAGE,
        &["other commands have it: loadline size --help"],
    ),
    (
        "verify --prove 5",
        USAGE,
        &["other commands have it: loadline size --help"],
    ),
    (
        "soak --job",
        USAGE,
        &[
            "other commands have it: loadline init --help, loadline verify --help, loadline size --help",
        ],
    ),
    (
        "size --config text",
        USAGE,
        &["leave the flag out: loadline size FILE"],
    ),
    (
        "show flipped.json.gz",
        USAGE,
        &[
            "flipped.json.gz is damaged: it cannot be unpacked",
            "hint: export it again",
        ],
    ),
];
