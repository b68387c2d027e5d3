//! Load, profiles and the parts of a load.

use super::{ENVIRONMENT, Row, USAGE};

pub const LOADS: &[Row] = &[
    ("load", USAGE, &["<URL>...", "usage: loadline load"]),
    (
        "load ftp://localhost --rate 5/s",
        USAGE,
        &[
            "`ftp://localhost` is not an http URL",
            "write for example http://",
        ],
    ),
    (
        "load http://no-such-host.invalid/ --rate 1/s",
        ENVIRONMENT,
        &[
            "no-such-host.invalid: unknown host",
            "hint: check the spelling",
        ],
    ),
    (
        "load http://localhost:1/ --rate 1/s",
        ENVIRONMENT,
        &[
            "localhost:1: Connection refused",
            "hint: is the server running",
        ],
    ),
    (
        "load http://localhost:2/a.B/C --rate 1/s --proto http://localhost:1",
        USAGE,
        &[
            "proto: http://localhost:1: Connection refused",
            "hint: check that one instance listens there, or name its .proto file",
        ],
    ),
    (
        "load http://localhost:2/a.B/C --rate 1/s --proto localhost:1",
        USAGE,
        &["localhost:1: No such file", "starts with http://"],
    ),
    (
        "load http://localhost:1/ --rate 5/q",
        USAGE,
        &["`5/q` is not a rate", "did you mean 5/s?"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --duration 1x",
        USAGE,
        &["`1x` is not a length of time", "500ms, 10s, 2m or 1.5h"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --warm-up x",
        USAGE,
        &["`x` is not a length of time", "500ms"],
    ),
    (
        "load http://localhost:1/ --rate 5/s --closed",
        USAGE,
        &["'--rate <RATE>' cannot be used with '--closed'"],
    ),
    (
        "load http://localhost:1/ --closed --pacing fast",
        USAGE,
        &["`fast` is not one of auto, exact, spin"],
    ),
    (
        "load http://localhost:1/ --closed -H nocolon",
        USAGE,
        &["there is no colon", "'Accept: text/html'"],
    ),
    (
        "load http://localhost:1/ --closed --body a --body-file b",
        USAGE,
        &["'--body <BODY>' cannot be used with '--body-file"],
    ),
    (
        "load http://localhost:1/ -n 0",
        USAGE,
        &["invalid value '0' for '--requests <N>'"],
    ),
    (
        "load http://localhost:1/ --durration 5s",
        USAGE,
        &[
            "unexpected argument '--durration'",
            "did you mean `--duration`?",
        ],
    ),
    (
        "merge none",
        USAGE,
        &[
            "cannot read none: No such file",
            "hint: give the files written by `loadline load --part",
        ],
    ),
    (
        "merge directory",
        USAGE,
        &[
            "cannot read directory: Is a directory",
            "hint: give the files",
        ],
    ),
    (
        "merge text",
        USAGE,
        &[
            "text: part: ",
            "hint: only files that `loadline load --out` wrote",
        ],
    ),
    ("merge", USAGE, &["<FILES>...", "usage: loadline merge"]),
    (
        "profile none.log",
        USAGE,
        &[
            "cannot read none.log: No such file",
            "hint: give a server's access logs",
        ],
    ),
    (
        "profile directory",
        USAGE,
        &[
            "cannot read directory: Is a directory",
            "hint: give a server's access logs",
        ],
    ),
    (
        "profile text",
        USAGE,
        &[
            "unknown access-log format",
            "hint: give the server's own log format",
        ],
    ),
    (
        "load http://localhost:1/",
        USAGE,
        &[
            "the load is not clear",
            "--rate 300/s",
            "--closed",
            "--requests 1000",
        ],
    ),
    (
        "load localhost:1 --rate 5/s",
        ENVIRONMENT,
        &[
            "localhost:1: Connection refused",
            "hint: is the server running",
        ],
    ),
    (
        "load http:// --rate 5/s",
        USAGE,
        &["`http://` has no host", "hint: write for example http://"],
    ),
    (
        "load http://localhost:99999/ --rate 5/s",
        USAGE,
        &[
            "has a port that is no number from 1 to 65535",
            "hint: write for example",
        ],
    ),
    (
        "load http://user:pw@localhost/ --rate 5/s",
        USAGE,
        &["contains a user name", "hint: "],
    ),
    (
        "load http://localhost:1/ --rate 5/s --cacert text",
        USAGE,
        &[
            "the URL is http, where no certificate is checked",
            "hint: write https://",
        ],
    ),
    (
        "load http://localhost:1/ --rate 5/s --timeout 0s",
        USAGE,
        &[
            "`0s` is zero",
            "hint: write 500ms",
            "run `loadline load --help` for all options",
        ],
    ),
    (
        "load http://localhost:1/ --rate 5/s --hdr-out x",
        USAGE,
        &[
            "unexpected argument '--hdr-out'",
            "run `loadline load --help` for all options",
        ],
    ),
    (
        "load http://localhost:1/ --max-rate --slo p99<5",
        USAGE,
        &["did you mean `p99<5ms`?", "hint: "],
    ),
    (
        "load http://localhost:1/ --profile none.toml",
        USAGE,
        &["none.toml cannot be read: No such file", "hint: "],
    ),
    (
        "load http://localhost:1/ --rate 5/s --part 4/4",
        USAGE,
        &["the first of four is 0/4", "hint: "],
    ),
    (
        "load http://localhost:1/ --rate 5/s --cpus x",
        USAGE,
        &[
            "it is not a list of CPUs",
            "hint: write for example 1",
            "hint: ",
        ],
    ),
    (
        "load http://localhost:1/a http://localhost:1/b --rate 5/s",
        USAGE,
        &[
            "is not another instance",
            "hint: for several paths use --profile",
        ],
    ),
    (
        "load http://localhost:1/ --rate 5/s --connections 0",
        USAGE,
        &["connections", "hint: "],
    ),
    (
        "merge -",
        USAGE,
        &[
            "standard input: ",
            "hint: only files that `loadline load --out` wrote",
        ],
    ),
    (
        "profile -",
        USAGE,
        &["the logs are empty", "hint: give a server's access logs"],
    ),
    (
        "profile text --format nosuch",
        USAGE,
        &[
            "`nosuch` is not a known format",
            "hint: --format also takes common",
        ],
    ),
    (
        "profile text --template x",
        USAGE,
        &[
            "unexpected argument '--template'",
            "hint: did you mean `--templates`?",
        ],
    ),
    (
        "profile brace.json",
        USAGE,
        &[
            "unknown access-log format",
            "hint: give the server's own log format",
        ],
    ),
];
