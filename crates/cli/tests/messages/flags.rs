//! Values of flags that are wrong, with all others right.

use super::{ENVIRONMENT, USAGE, check, loadline, place};

/// What stands before the flags of a row, and after them.
const RIGHT: (&str, &str) = (
    "--slo p99<250ms --rate 100/s --url http://localhost:8080/",
    "-- java -jar none.jar",
);

/// Command, flags, exit code, what stderr contains.
type Wrong = (&'static str, &'static str, i32, &'static [&'static str]);

const WRONG: &[Wrong] = &[
    (
        "run",
        "",
        USAGE,
        &["cannot find the jar", "hint: build it first"],
    ),
    (
        "run",
        "--start-cpu 2",
        USAGE,
        &[
            "start-cpu of `as given` is 2, and there is no CPU limit to go back to",
            "hint: give it one: cpu = \"1\" (--cpu 1)",
        ],
    ),
    (
        "run",
        "--cpu 2 --start-cpu 2",
        USAGE,
        &["is 2, which is not above its CPU limit, 2", "--start-cpu 4"],
    ),
    (
        "run",
        "--cpu 1 --start-cpu two",
        USAGE,
        &["--start-cpu: `two` is not an amount of CPU", "1.5 or 250m"],
    ),
    (
        "run",
        "--cpu 1 --start-cpu auto",
        USAGE,
        &[
            "--start-cpu auto choose the CPU, and only `size` does that",
            "hint: give a CPU limit",
        ],
    ),
    (
        "size",
        "--cpu 1 --cpu-policy request --start-cpu 2",
        USAGE,
        &[
            "with cpu-policy request there is no CPU limit to go back to",
            "hint: cpu-policy = \"both\" (--cpu-policy both) gives a limit too",
        ],
    ),
    (
        "size",
        "--cpu auto --cpu-policy request --start-cpu 2",
        USAGE,
        &["with cpu-policy request there is no CPU limit to go back to"],
    ),
    (
        "size",
        "--cpu 4096",
        ENVIRONMENT,
        &[
            "the CPU limit of 4096 is more than the",
            "hint: allow at most",
        ],
    ),
    (
        "size",
        "--cpu 500m --start-cpu 4096",
        ENVIRONMENT,
        &["the CPU limit of 4096 is more than the"],
    ),
    (
        "size",
        "--start-cpu auto",
        USAGE,
        &[
            "start-cpu is auto, which chooses it for the answer, and the experiment asks for no CPU limit",
            "hint: give it one: cpu = \"1\" (--cpu 1)",
        ],
    ),
    (
        "size",
        "--cpu 1,2 --start-cpu auto",
        USAGE,
        &[
            "asks for several configurations",
            "hint: size one configuration",
        ],
    ),
    (
        "size",
        "--cpu 1 --start-cpu auto --kubernetes --image a:1",
        USAGE,
        &["asks for trials in a cluster, and their pods keep their limits"],
    ),
    (
        "size",
        "--peak 100",
        USAGE,
        &[
            "--peak: the peak is 100/s, and the load reaches 100/s already",
            "hint: write a higher one: 2x",
        ],
    ),
    (
        "run",
        "--peak 2x:0s",
        USAGE,
        &["`0s` is zero", "500ms, 10s, 2m or 1.5h"],
    ),
    (
        "run",
        "--peak 2y",
        USAGE,
        &["`2y` is not a rate", "hint: did you mean 2/s?"],
    ),
    (
        "run",
        "--memory 5XB",
        USAGE,
        &["--memory: `5XB` is not an amount of memory", "hint: "],
    ),
    (
        "run",
        "--memory 512",
        USAGE,
        &[
            "`512` is less than 1 MiB",
            "hint: is the unit missing? write 512Mi",
        ],
    ),
    (
        "run",
        "--cpu 0",
        USAGE,
        &["--cpu: `0` is too little CPU", "hint: give at least 50m"],
    ),
    (
        "run",
        "--cpu 1,x",
        USAGE,
        &[
            "--cpu: `x` is not an amount of CPU",
            "hint: CPUs such as 1.5",
        ],
    ),
    (
        "run",
        "--repeats 0",
        USAGE,
        &["--repeats: repeats = 0 is out of range", "hint: from 1"],
    ),
    (
        "run",
        "--repeats many",
        USAGE,
        &[
            "invalid value 'many' for '--repeats <N>'",
            "run `loadline run --help` for all options",
        ],
    ),
    (
        "run",
        "--jdk 99",
        ENVIRONMENT,
        &["no JDK `99` here", "hint: "],
    ),
    (
        "run",
        "--ready health",
        USAGE,
        &["--ready: `health` starts neither", "hint: write ready"],
    ),
    (
        "run",
        "--ready tcp:http",
        USAGE,
        &[
            "'--ready <WHEN>': `http` is not a port",
            "hint: write tcp:9090",
        ],
    ),
    (
        "run",
        "--ready log:",
        USAGE,
        &["'--ready <WHEN>': it names no text", "hint: write 'log:"],
    ),
    (
        "run",
        "--ready command:",
        USAGE,
        &["'--ready <WHEN>': it is empty"],
    ),
    (
        "run",
        "--start-deadline 5",
        USAGE,
        &[
            "--start-deadline: `5` is not a length of time",
            "hint: write 500ms",
        ],
    ),
    (
        "run",
        "--network bridge",
        USAGE,
        &["--network: `bridge` is not a network", "hint: write own"],
    ),
    (
        "run",
        "--user bob",
        USAGE,
        &["--user: `bob` is not an account", "hint: write numbers"],
    ),
    (
        "run",
        "--engine lxc --image a",
        USAGE,
        &[
            "--engine: `lxc` is not a container engine",
            "hint: write podman or docker",
        ],
    ),
    (
        "run",
        "--compose none.yaml",
        USAGE,
        &["--service <NAME>", "hint: usage: loadline run"],
    ),
    (
        "run",
        "--env-file none",
        USAGE,
        &[
            "environment variables",
            "No such file",
            "hint: it has one NAME=VALUE per line",
        ],
    ),
    (
        "run",
        "--env =x",
        USAGE,
        &[
            "--env `=x`: that is not a variable",
            "hint: write --env NAME=VALUE",
        ],
    ),
    (
        "run",
        "--state text",
        USAGE,
        &["cannot find the jar", "hint: "],
    ),
    (
        "run",
        "--cacert text",
        USAGE,
        &[
            "the URL is http, where no certificate is checked",
            "hint: write https://",
        ],
    ),
    (
        "size",
        "--memory 512Mi",
        USAGE,
        &[
            "unexpected argument '--memory'",
            "hint: `size` finds the memory",
            "loadline run --memory",
        ],
    ),
    (
        "size",
        "--min-memory 2Gi --max-memory 1Gi",
        USAGE,
        &["the search range is empty: from 2Gi to 1Gi", "hint: "],
    ),
    (
        "size",
        "--question maybe",
        USAGE,
        &[
            "--question: `maybe` is not a question",
            "hint: start judges",
        ],
    ),
    (
        "size",
        "--prices nosuch",
        USAGE,
        &["--prices: there is no offer `nosuch`", "hint: fargate"],
    ),
    (
        "size",
        "--prices none.csv",
        USAGE,
        &[
            "cannot read the price list none.csv",
            "hint: built-in offers",
        ],
    ),
    (
        "size",
        "--prices fargate --region mars",
        USAGE,
        &["no `fargate` in `mars`", "hint: it has"],
    ),
    (
        "size",
        "--prices fargate --replicas 5..2",
        USAGE,
        &[
            "`5..2` is not a range of replicas",
            "hint: write fewest and most",
        ],
    ),
    (
        "size",
        "--prices fargate --headroom 5",
        USAGE,
        &["`5` is not a headroom", "hint: write a percentage"],
    ),
    (
        "size",
        "--prices fargate --sizes 1x2",
        USAGE,
        &[
            "`1x2` is not a size",
            "hint: write CPUs and memory: 0.5/1Gi",
        ],
    ),
    (
        "size",
        "--prices fargate --compare 2",
        USAGE,
        &["compare = 2 is out of range", "hint: from 6"],
    ),
    (
        "size",
        "--prices fargate --try",
        USAGE,
        &["cannot be used with", "hint: usage: loadline size"],
    ),
    (
        "size",
        "--replicas 5",
        USAGE,
        &["replicas (--replicas) needs prices", "hint: add prices"],
    ),
    ("size", "--budget 5", USAGE, &["--budget: `5`", "hint:"]),
    (
        "size",
        "--margin 200",
        USAGE,
        &[
            "--margin: `200` is not a margin",
            "hint: write a percentage",
        ],
    ),
    (
        "size",
        "--step 0",
        USAGE,
        &["--step: `0` is less than 1 MiB", "hint: "],
    ),
    (
        "size",
        "--node 0",
        USAGE,
        &["--node: node = 0 is out of range", "hint: from 1"],
    ),
    (
        "size",
        "--soak 5",
        USAGE,
        &["--soak: `5` is not a length of time", "hint: write 500ms"],
    ),
    (
        "size",
        "--fast --confirm 3",
        USAGE,
        &[
            "'--fast' cannot be used with '--confirm <N>'",
            "hint: usage: ",
        ],
    ),
    (
        "size",
        "--prove -3",
        USAGE,
        &["--prove: -3 is negative", "hint: --prove 3"],
    ),
    ("size", "--image", USAGE, &["--image", "hint: "]),
    (
        "judge",
        "--advice nosuch",
        USAGE,
        &[
            "cannot read nosuch: it is neither a rule nor an existing file",
            "hint: name a rule (defaults",
        ],
    ),
    (
        "judge",
        "--containers x",
        USAGE,
        &[
            "unexpected argument '--containers'",
            "run `loadline judge --help` for all options",
        ],
    ),
    (
        "run",
        "--container x",
        USAGE,
        &[
            "--kubernetes --from <KIND/NAME>",
            "run `loadline run --help` for all options",
        ],
    ),
    (
        "run",
        "--kubernetes --from orders",
        USAGE,
        &[
            "`orders` is not a workload: write deployment/NAME",
            "hint: ",
        ],
    ),
    (
        "size",
        "--kubernetes --from deployment/orders --image orders:1",
        USAGE,
        &["--image", "cannot be used with", "hint: "],
    ),
    (
        "run",
        "--kubernetes --slots 0",
        USAGE,
        &["--slots", "hint: "],
    ),
    (
        "run",
        "--slots auto",
        USAGE,
        &[
            "trials on this machine run one after the other",
            "hint: leave --slots out, or run trials as pods: --kubernetes",
        ],
    ),
    (
        "run",
        "--kubernetes --slots many",
        USAGE,
        &["not a number of slots: write at least 1, or auto", "hint: "],
    ),
    (
        "run",
        "--runtime-class gvisor",
        USAGE,
        &["--kubernetes", "hint: "],
    ),
    (
        "run",
        "--in-cluster",
        USAGE,
        &[
            "--in-cluster: its trials run on this machine",
            "hint: run them as pods: --kubernetes",
        ],
    ),
    (
        "size",
        "--kubernetes --in-cluster --reuse",
        USAGE,
        &["earlier results are on this machine", "hint: leave one out"],
    ),
    (
        "run",
        "--kubernetes --in-cluster --json",
        USAGE,
        &[
            "this returns before there is a result",
            "hint: pass --report and --json to `loadline resume`",
        ],
    ),
    (
        "run",
        "--kubernetes --in-cluster --env NOT_SET_ANYWHERE",
        USAGE,
        &[
            "refers to the variable `NOT_SET_ANYWHERE`, which is not set",
            "hint: set it in loadline's environment; it is sent along as a Secret",
        ],
    ),
    (
        "run",
        "--kubernetes --in-cluster --env A={file:/etc/hostname}",
        USAGE,
        &[
            "--in-cluster: the experiment refers to a file of this machine: {file:/etc/hostname}",
            "hint: use a variable, which is sent along: --env NAME",
        ],
    ),
    (
        "run",
        "--kubernetes --in-cluster --body-file text",
        USAGE,
        &[
            "--in-cluster: the load reads the file ",
            "hint: only a profile",
        ],
    ),
    (
        "run",
        "--kubernetes --in-cluster",
        USAGE,
        &[
            "a cluster runs images, not commands",
            "hint: build an image",
        ],
    ),
    (
        "run",
        "--kubernetes --trial-cpu 0",
        USAGE,
        &["its own container needs CPU", "hint: "],
    ),
    ("run", "--generators 2", USAGE, &["--kubernetes", "hint: "]),
    (
        "run",
        "--kubernetes --generators 0",
        USAGE,
        &["--generators", "hint: "],
    ),
];

/// As a row of the other tables is counted.
pub const COUNT: usize = WRONG.len();

#[test]
fn of_flags() {
    let place = place();
    let mut wrong = Vec::new();
    for (command, flags, code, wanted) in WRONG {
        let words = [command, RIGHT.0, flags, RIGHT.1];
        let row: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
        let row = row.join(" ");
        let ended = loadline(place.path(), &row);
        wrong.extend(check(&row, &ended, *code, wanted));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
