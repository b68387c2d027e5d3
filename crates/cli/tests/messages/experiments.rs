//! Experiments as flags and as files, and what starts from them.

use super::{Row, USAGE};

pub const EXPERIMENTS: &[Row] = &[
    (
        "plan directory",
        USAGE,
        &[
            "directory is a directory, not an experiment",
            "directory/loadline.toml",
        ],
    ),
    (
        "plan utf16.toml",
        USAGE,
        &[
            "utf16.toml is non-UTF-8 text, not an experiment",
            "save it as UTF-8",
        ],
    ),
    (
        "plan pom.xml",
        USAGE,
        &[
            "pom.xml is a Maven project, not an experiment",
            "loadline init",
        ],
    ),
    (
        "size page.html",
        USAGE,
        &[
            "page.html is an HTML report, not an experiment",
            "open it in a browser",
        ],
    ),
    (
        "run Dockerfile",
        USAGE,
        &[
            "Dockerfile is a Dockerfile, not an experiment",
            "--image NAME",
        ],
    ),
    (
        "plan gc.log",
        USAGE,
        &[
            "gc.log is a GC log, not an experiment",
            "loadline gc gc.log",
        ],
    ),
    (
        "plan colon.toml",
        USAGE,
        &["colon.toml:1:6: key with no value", "TOML has `=`"],
    ),
    (
        "run none.toml",
        USAGE,
        &[
            "cannot read the experiment none.toml: No such file",
            "hint: ",
        ],
    ),
    (
        "run directory",
        USAGE,
        &["directory is a directory, not an experiment", "hint: "],
    ),
    (
        "run empty.toml",
        USAGE,
        &[
            "empty.toml:1:1: the key `slo` is missing",
            "hint: an experiment needs an SLO: slo = \"p99<50ms",
            "loadline init",
        ],
    ),
    (
        "plan empty.toml",
        USAGE,
        &["empty.toml:1:1: the key `slo` is missing", "hint: "],
    ),
    (
        "drill empty.toml",
        USAGE,
        &["empty.toml:1:1: the key `slo` is missing", "hint: "],
    ),
    (
        "run words.toml",
        USAGE,
        &[
            "words.toml:1:15: expected a list, not the text",
            "hint: write a list, word by word: [\"java\", \"-jar\", \"x\"]",
        ],
    ),
    (
        "run open.toml",
        USAGE,
        &["open.toml:1:6: unclosed array", "expected `]`"],
    ),
    (
        "run typo.toml",
        USAGE,
        &[
            "typo.toml:1:1: there is no key `sloo` here",
            "hint: did you mean `slo`?",
        ],
    ),
    (
        "verify",
        USAGE,
        &[
            "there is no loadline.toml",
            "hint: write it with `loadline init`",
        ],
    ),
    (
        "verify none.toml",
        USAGE,
        &["there is no none.toml", "hint: "],
    ),
    (
        "drill",
        USAGE,
        &[
            "the application's command is missing",
            "hint: put it last, after --",
        ],
    ),
    (
        "size --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["--slo is missing", "hint: for example: --slo 'p99<50ms"],
    ),
    (
        "size --slo p99<5ms --rate 1/s -- java -jar x",
        USAGE,
        &["--url is missing", "hint: for example: --url http"],
    ),
    (
        "size --slo p99<5ms --url http://localhost:1/ -- java -jar x",
        USAGE,
        &[
            "the load is not clear",
            "--rate 300/s",
            "closed",
            "requests",
        ],
    ),
    (
        "size --slo p99<5ms --url http://localhost:1/ --rate 1/s",
        USAGE,
        &[
            "the application's command is missing",
            "hint: or name an image",
        ],
    ),
    (
        "run --slo p95<250ms;errors<1% --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["commas separate objectives: `p95<250ms,errors<1%`"],
    ),
    (
        "run --slo 'p95<250ms errors<1%' --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["commas separate objectives: `p95<250ms,errors<1%`"],
    ),
    (
        "run --slo p99<250 --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["has no unit; did you mean `p99<250ms`?", "hint: "],
    ),
    (
        "run --slo p99=5ms --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["did you mean `p99<5ms`?", "hint: for example p99<50ms"],
    ),
    (
        "run --slo q99<5ms --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["the name is not one of p50..p99.999", "hint: "],
    ),
    (
        "run --slo errors<1 --rate 1/s --url http://localhost:1/ -- java -jar x",
        USAGE,
        &["did you mean `errors<1%`?", "hint: "],
    ),
    (
        "run --image 'Bad Image' --slo p99<5ms --rate 1/s --url http://localhost:1/",
        USAGE,
        &[
            "the image `Bad Image`: that is not an image name",
            "hint: write it as the engine lists it",
        ],
    ),
    (
        "cache",
        USAGE,
        &[
            "<COMMAND>...",
            "run `loadline cache --help` for all options",
        ],
    ),
    (
        "init none",
        USAGE,
        &[
            "there is no directory none",
            "hint: give the service's own directory",
        ],
    ),
    (
        "init directory",
        USAGE,
        &[
            "no jar, image, manifest or build file",
            "hint: go to the service's own directory",
        ],
    ),
    (
        "size app.jar",
        USAGE,
        &[
            "app.jar is a jar, not an experiment",
            "hint: put the application's command last, after --",
        ],
    ),
    (
        "size java -jar app.jar",
        USAGE,
        &[
            "unexpected argument",
            "hint: put the application's command last",
        ],
    ),
    (
        "size",
        USAGE,
        &[
            "the application's command is missing",
            "hint: put it last",
            "hint: or name an image",
            "hint: or name an experiment file",
        ],
    ),
    (
        "size --image",
        USAGE,
        &[
            "a value is required for '--image <REF>'",
            "run `loadline size --help` for all options",
        ],
    ),
    (
        "size -- java -jar x.jar",
        USAGE,
        &[
            "--url is missing",
            "hint: for example: --url http://localhost:8080/",
        ],
    ),
    (
        "plan none.toml",
        USAGE,
        &["cannot read the experiment none.toml", "hint: "],
    ),
    (
        "run typo.toml --file typo.toml",
        USAGE,
        &[
            "'[FILE]' cannot be used with '--file <FILE>'",
            "hint: usage: loadline run",
        ],
    ),
    (
        "verify typo.toml",
        USAGE,
        &[
            "typo.toml:1:1: there is no key `sloo` here",
            "hint: did you mean `slo`?",
        ],
    ),
    (
        "drill none.toml",
        USAGE,
        &["cannot read the experiment none.toml", "hint: "],
    ),
    (
        "run -",
        USAGE,
        &[
            "the key `slo` is missing",
            "hint: an experiment needs an SLO",
        ],
    ),
    (
        "cache build",
        USAGE,
        &[
            "unexpected argument 'build'",
            "hint: put the application's command last",
        ],
    ),
    (
        "cache -- java -jar none.jar",
        USAGE,
        &["cannot find the jar", "hint: build it first"],
    ),
];
