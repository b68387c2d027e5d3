//! The other commands, and the command line itself.

use super::{ENVIRONMENT, Row, USAGE};

pub const TOOLS: &[Row] = &[
    (
        "nosuch",
        USAGE,
        &["unrecognized subcommand 'nosuch'", "usage: loadline"],
    ),
    (
        "lod",
        USAGE,
        &["unrecognized subcommand 'lod'", "did you mean `load`?"],
    ),
    ("help nosuch", USAGE, &["unrecognized subcommand 'nosuch'"]),
    (
        "doctor --nosuch",
        USAGE,
        &[
            "unexpected argument '--nosuch'",
            "run `loadline doctor --help` for all options",
        ],
    ),
    (
        "gc none",
        USAGE,
        &[
            "cannot read the GC log none: No such file",
            "hint: the JVM writes it with -Xlog:gc*",
        ],
    ),
    (
        "gc text",
        USAGE,
        &["no GC log of HotSpot", "hint: the JVM writes one"],
    ),
    ("gc empty.toml", USAGE, &["empty.toml is empty", "hint: "]),
    (
        "gc directory",
        USAGE,
        &["directory is a directory", "hint: name the files"],
    ),
    (
        "footprint 999999999",
        ENVIRONMENT,
        &["process 999999999", "hint: it has exited"],
    ),
    ("predict", USAGE, &["--memory <SIZE>", "--jdk <VERSION>"]),
    (
        "predict --memory 2XB --cpu 1 --jdk 17",
        USAGE,
        &["`2XB` is not an amount of memory", "such as 512Mi"],
    ),
    (
        "predict --memory 2Gi --cpu x --jdk 17",
        USAGE,
        &["`x` is not an amount of CPU", "1.5 or 250m"],
    ),
    (
        "predict --memory 2Gi --cpu 1 --jdk seven",
        USAGE,
        &["`seven` is not a JDK version", "such as 17"],
    ),
    (
        "predict --memory 0 --cpu 1 --jdk 17",
        USAGE,
        &["no JVM starts in 0 bytes", "write 512Mi"],
    ),
    (
        "sho",
        USAGE,
        &[
            "unrecognized subcommand 'sho'",
            "hint: did you mean `show`?",
            "run `loadline --help` for all options",
        ],
    ),
    (
        "-x",
        USAGE,
        &[
            "unexpected argument '-x'",
            "run `loadline --help` for all options",
        ],
    ),
    (
        "doctor x",
        USAGE,
        &[
            "unexpected argument 'x'",
            "run `loadline doctor --help` for all options",
        ],
    ),
    (
        "schema",
        USAGE,
        &["<FORM>", "hint: usage: loadline schema <FORM>"],
    ),
    (
        "schema nosuch",
        USAGE,
        &[
            "invalid value 'nosuch'",
            "hint: it is one of result, verify",
        ],
    ),
    (
        "gc -",
        USAGE,
        &["standard input is empty", "hint: the JVM writes it"],
    ),
    ("gc", USAGE, &["<FILE>...", "hint: usage: loadline gc"]),
    (
        "gc result.json.gz",
        USAGE,
        &["no GC log of HotSpot", "it is a packed file"],
    ),
    (
        "footprint",
        USAGE,
        &["<PID>", "hint: usage: loadline footprint"],
    ),
    (
        "footprint text",
        USAGE,
        &[
            "invalid value 'text' for '<PID>': it is not a process id",
            "`pgrep -a java`",
            "hint: ",
        ],
    ),
    ("footprint 0", USAGE, &["it is not a process id", "hint: "]),
    (
        "predict --memory 1Gi --cpu 0 --jdk 17",
        USAGE,
        &["`0` is too little CPU", "hint: "],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 5",
        USAGE,
        &["`5` is not a JDK version from 8 on", "hint: "],
    ),
    (
        "predict --memory 1Gi --node 0 --jdk 17",
        USAGE,
        &["0 is not in 1..=8192", "hint: "],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -XX:Nosuch",
        USAGE,
        &[
            "the JVM would not start: -XX:Nosuch: expected -XX:+NAME",
            "hint: ",
        ],
    ),
    (
        "predict --memory 1Gi --cpu 1 --jdk 17 --jvm -Xmx2",
        USAGE,
        &[
            "the JVM would not start: a heap of 2",
            "hint: ",
            "change --jvm",
        ],
    ),
    (
        "fleet --prometheus localhost:9090",
        USAGE,
        &["the address has no scheme", "hint: begin it with http://"],
    ),
    (
        "fleet --prometheus http://p/graph?g0",
        USAGE,
        &["the address of a page or a query", "hint: give the address"],
    ),
    (
        "fleet --prometheus http://p --window week",
        USAGE,
        &[
            "--window week: it is not a length of time",
            "hint: give 1h, 7d",
        ],
    ),
    (
        "fleet --prometheus http://no-such-host.invalid",
        ENVIRONMENT,
        &["unknown host", "hint: is it the cluster's own?"],
    ),
    (
        "fleet --prometheus http://127.0.0.1:9",
        ENVIRONMENT,
        &[
            "Prometheus at http://127.0.0.1:9",
            "hint: does it run there?",
        ],
    ),
    (
        "fleet --prometheus http://127.0.0.1:9 --cacert text",
        USAGE,
        &["is not encrypted", "hint: give an https address"],
    ),
    (
        "fleet --prometheus http://127.0.0.1:9 --bearer {env:LOADLINE_NO_SUCH}",
        USAGE,
        &["`LOADLINE_NO_SUCH` is not set"],
    ),
    (
        "fleet --prometheus http://127.0.0.1:9 --measured shop/orders",
        USAGE,
        &["it names no result", "hint: give NAMESPACE/NAME=RESULT"],
    ),
];
