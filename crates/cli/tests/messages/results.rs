//! Results: what reads, exports, ships and compares them.

use super::{ENVIRONMENT, Row, USAGE};

pub const RESULTS: &[Row] = &[
    (
        "show none.json",
        USAGE,
        &["there is no file none.json", "hint: `loadline export"],
    ),
    (
        "show text",
        USAGE,
        &[
            "text: this is not an exported result",
            "hint: `loadline export",
        ],
    ),
    (
        "show brace.json",
        USAGE,
        &["missing field `schema`", "hint: `loadline export"],
    ),
    (
        "show empty.toml",
        USAGE,
        &["empty.toml: this is not an exported result", "hint: "],
    ),
    (
        "show directory",
        USAGE,
        &[
            "directory is a directory, not a result",
            "hint: name a file",
            "--state DIR",
        ],
    ),
    (
        "show",
        USAGE,
        &[
            "there are no results in",
            "hint: create one with `loadline size` or `loadline run`",
        ],
    ),
    (
        "show 0199",
        USAGE,
        &[
            "there is no result `0199`",
            "hint: list the results: loadline list",
        ],
    ),
    (
        "report none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "report directory",
        USAGE,
        &["is a directory, not a result", "hint: "],
    ),
    (
        "report result.json.gz -o /none/x",
        ENVIRONMENT,
        &[
            "cannot write /none/x",
            "/none: No such file",
            "hint: give a path",
        ],
    ),
    (
        "report result.json.gz -o directory",
        ENVIRONMENT,
        &["directory: it is a directory", "hint: name a file in it"],
    ),
    (
        "export none.json.gz",
        USAGE,
        &["there is no file none.json.gz", "hint: "],
    ),
    (
        "export result.json.gz --format parquet",
        USAGE,
        &[
            "--format parquet cannot go to standard output",
            "hint: name a file: -o trials.parquet",
        ],
    ),
    (
        "export result.json.gz --format xml",
        USAGE,
        &[
            "invalid value 'xml'",
            "json, csv, seconds, jsonl, junit, markdown",
        ],
    ),
    (
        "export result.json.gz --section sizes",
        USAGE,
        &[
            "--section is for Markdown only",
            "hint: add --format markdown",
        ],
    ),
    (
        "export result.json.gz --format markdown --section x",
        USAGE,
        &["no section `x`", "hint: it has slo, sizes"],
    ),
    (
        "export result.json.gz -o /none/x.json.gz",
        ENVIRONMENT,
        &["cannot write /none/x.json.gz", "hint: "],
    ),
    (
        "emit none.json --to deploy",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "emit text --to deploy",
        USAGE,
        &["text: this is not an exported result", "hint: "],
    ),
    (
        "emit result.json.gz --to text",
        ENVIRONMENT,
        &["Not a directory", "hint: give a path"],
    ),
    (
        "emit result.json.gz --to deploy --format x",
        USAGE,
        &["unexpected argument '--format'", "did you mean `--for`?"],
    ),
    (
        "compare result.json.gz",
        USAGE,
        &["<SECOND>", "usage: loadline compare"],
    ),
    (
        "compare result.json.gz none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "compare text text",
        USAGE,
        &["text: this is not an exported result", "hint: "],
    ),
    (
        "explain none.json",
        USAGE,
        &["there is no file none.json", "hint: "],
    ),
    (
        "explain text",
        USAGE,
        &["text: this is not an exported result", "hint: "],
    ),
    (
        "explain result.json.gz",
        USAGE,
        &[
            "has nothing to explain",
            "hint: trials of several instances and of older versions",
        ],
    ),
    (
        "explain nosuch",
        USAGE,
        &[
            "there is no result `nosuch`",
            "hint: list the results: loadline list",
        ],
    ),
    (
        "explain result.json.gz --try",
        USAGE,
        &[
            "result.json.gz is a file",
            "can only be added to results of this machine",
            "hint: give an id",
        ],
    ),
    (
        "soak result.json.gz",
        USAGE,
        &[
            "result.json.gz is a file",
            "hint: give an id from `loadline list`",
        ],
    ),
    (
        "resume result.json.gz",
        USAGE,
        &[
            "result.json.gz is a file",
            "hint: give an id from `loadline list`",
        ],
    ),
    (
        "resume nosuch",
        USAGE,
        &[
            "there is no result `nosuch`",
            "hint: list the results: loadline list",
        ],
    ),
    (
        "list x",
        USAGE,
        &[
            "unexpected argument 'x'",
            "run `loadline list --help` for all options",
        ],
    ),
    (
        "clean x",
        USAGE,
        &[
            "unexpected argument 'x'",
            "run `loadline clean --help` for all options",
        ],
    ),
    (
        "show --ful",
        USAGE,
        &[
            "unexpected argument '--ful'",
            "hint: did you mean `--full`?",
            "run `loadline show --help` for all options",
        ],
    ),
    (
        "show result.json.gz --json --full",
        USAGE,
        &[
            "'--json' cannot be used with '--full'",
            "hint: usage: loadline show",
        ],
    ),
    (
        "show result.json.gz -o directory",
        ENVIRONMENT,
        &[
            "cannot write directory: it is a directory",
            "hint: name a file in it: -o directory/FILE",
        ],
    ),
    (
        "export result.json.gz -o directory",
        ENVIRONMENT,
        &[
            "cannot write directory: it is a directory",
            "hint: name a file in it",
        ],
    ),
    (
        "export result.json.gz --fromat csv",
        USAGE,
        &[
            "unexpected argument '--fromat'",
            "hint: did you mean `--format`?",
        ],
    ),
    (
        "export result.json.gz --format markdwon",
        USAGE,
        &[
            "invalid value 'markdwon'",
            "hint: it is one of json, csv",
            "hint: did you mean `markdown`?",
        ],
    ),
    (
        "report result.json.gz x",
        USAGE,
        &[
            "unexpected argument 'x'",
            "run `loadline report --help` for all options",
        ],
    ),
    (
        "emit result.json.gz",
        USAGE,
        &["--to <DIR>", "hint: usage: loadline emit"],
    ),
    (
        "emit result.json.gz --to deploy --for nomad",
        USAGE,
        &[
            "invalid value 'nomad'",
            "hint: it is one of kubernetes, docker",
        ],
    ),
    (
        "emit consumer.json.gz --to deploy --for alerts",
        USAGE,
        &[
            "--for: the application takes no requests",
            "hint: leave out alerts",
        ],
    ),
    (
        "emit consumer.json.gz --to deploy --max-replicas 3 --max-rate 5",
        USAGE,
        &[
            "--max-rate: the application takes no requests",
            "hint: leave it out",
        ],
    ),
    (
        "emit result.json.gz --to deploy --replicas 0",
        USAGE,
        &["invalid value '0' for '--replicas <N>'", "hint: "],
    ),
    (
        "emit result.json.gz --to deploy --manifest none.yaml",
        USAGE,
        &["cannot read none.yaml: No such file", "hint: give a file"],
    ),
    (
        "emit result.json.gz --to deploy --manifest text",
        USAGE,
        &["text: no document in it has a kind", "hint: "],
    ),
    (
        "compare - -",
        USAGE,
        &[
            "standard input holds one result",
            "hint: name the file or the id",
        ],
    ),
    (
        "compare result.json.gz brace.json",
        USAGE,
        &["brace.json: this is not an exported result", "hint: "],
    ),
    (
        "show -",
        USAGE,
        &[
            "standard input: this is not an exported result",
            "hint: `loadline export",
        ],
    ),
    (
        "explain result.json.gz --at 5",
        USAGE,
        &[
            "unexpected argument '--at'",
            "run `loadline explain --help` for all options",
        ],
    ),
    (
        "soak",
        USAGE,
        &[
            "there are no results in",
            "hint: create one with `loadline size`",
        ],
    ),
    (
        "soak nosuch --for 5m",
        USAGE,
        &[
            "there is no result `nosuch`",
            "hint: list the results: loadline list",
        ],
    ),
    (
        "soak --for x",
        USAGE,
        &[
            "--for: `x` is not a length of time",
            "hint: write 30m or 4h",
        ],
    ),
    (
        "list --verdict good",
        USAGE,
        &[
            "invalid value 'good'",
            "hint: it is one of tested, not-tested",
        ],
    ),
    (
        "list --verdict",
        USAGE,
        &[
            "a value is required for '--verdict <WORD>'",
            "hint: it is one of tested",
        ],
    ),
    (
        "list --since yesterday",
        USAGE,
        &[
            "`yesterday` is neither an age nor a date",
            "hint: write 12h",
            "hint: ",
        ],
    ),
    (
        "list --before 2026-02-30",
        USAGE,
        &["`2026-02-30` is neither an age nor a date", "hint: "],
    ),
    (
        "clean --older x",
        USAGE,
        &[
            "`x` is neither an age nor a date",
            "hint: write 12h",
            "hint: ",
        ],
    ),
    (
        "clean --yes",
        USAGE,
        &["--older <WHEN>", "hint: usage: loadline clean"],
    ),
    (
        "serve --listen x",
        USAGE,
        &["invalid value 'x' for '--listen <ADDRESS>'", "hint: "],
    ),
    (
        "serve --token x",
        USAGE,
        &[
            "unexpected argument '--token'",
            "hint: did you mean `--token-file`?",
        ],
    ),
    (
        "show result.json.gz --today 4",
        USAGE,
        &["write CPUs and memory, 2/4Gi", "hint: "],
    ),
    (
        "show result.json.gz --today 1/2/3",
        USAGE,
        &[
            "invalid value '1/2/3'",
            "hint: write CPUs and memory, 2/4Gi",
        ],
    ),
    (
        "show result.json.gz --manifest none.yaml",
        USAGE,
        &[
            "cannot read none.yaml",
            "hint: or give it as: --today 2/4Gi",
        ],
    ),
    (
        "report result.json.gz --manifest service.yaml -o -",
        USAGE,
        &["no workload in it has containers", "hint: or give it as"],
    ),
];
