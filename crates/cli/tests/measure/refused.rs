//! What a user can get wrong: told what, where and what to do; nothing is started or stored.

use crate::lab::Lab;
use crate::process::Ended;
use crate::runner::{Case, Outcome};

pub const CASES: [Case; 5] = [
    ("wrong_loads_are_refused", wrong_loads_are_refused),
    ("wrong_commands_are_refused", wrong_commands_are_refused),
    ("wrong_flags_are_refused", wrong_flags_are_refused),
    ("wrong_files_are_refused", wrong_files_are_refused),
    ("unknown_results_are_refused", unknown_results_are_refused),
];

/// The call ended with this code and these texts, and nothing was stored.
#[track_caller]
fn refused(lab: &Lab, ended: Ended, code: i32, texts: &[&str]) {
    let ended = ended.expect_code(code).says(texts);
    assert_eq!(ended.stdout, "", "{ended}");
    let stored = lab.state().join("loadline.db").exists();
    assert!(!stored, "something was stored. {ended}");
}

fn wrong_commands_are_refused() -> Outcome {
    let lab = Lab::new();
    let run = |command: &[&str]| lab.measure("run").arg("--").args(command).into_end();
    let jar = lab.path().join("nosuch.jar").display().to_string();
    let ended = run(&["java", "-jar", "nosuch.jar"]);
    refused(
        &lab,
        ended,
        2,
        &["cannot find the jar", &jar, "hint: build it"],
    );
    let ended = run(&["nosuchprogram"]);
    let texts = [
        "cannot find the program `nosuchprogram`",
        "hint: check the spelling",
    ];
    refused(&lab, ended, 2, &texts);
    for subcommand in ["run", "size"] {
        let ended = lab.measure(subcommand).into_end();
        let texts = [
            "the application's command is missing",
            "hint: put it last, after --",
        ];
        refused(&lab, ended, 2, &texts);
    }
    let ended = lab
        .measure("run")
        .arg("--jdk=99")
        .args(&["--", "java", "-version"])
        .into_end();
    refused(&lab, ended, 3, &["no JDK `99` here", "hint: "]);
    None
}

fn wrong_flags_are_refused() -> Outcome {
    let lab = Lab::new();
    let base = |subcommand: &str| lab.call(subcommand).arg("--wait");
    let wrong: [(&[&str], &[&str]); 9] = [
        (
            &["--slo=p99<1s", "--rate=fast", "--url=http://localhost/"],
            &["`fast` is not a rate", "--rate", "write requests a second"],
        ),
        (
            &["--slo=p99=50ms", "--rate=50/s", "--url=http://localhost/"],
            &[
                "`p99=50ms` is not an objective",
                "did you mean `p99<50ms`",
                "hint: ",
            ],
        ),
        (
            &["--slo=p99<50", "--rate=50/s", "--url=http://localhost/"],
            &[
                "`p99<50`",
                "the bound has no unit; did you mean `p99<50ms`?",
            ],
        ),
        (
            &["--slo=p99<1s", "--rate=50/s", "--url=http://example.com/"],
            &["example.com", "hint: write it as the application sees it"],
        ),
        (
            &["--slo=p99<1s", "--rate=50/s", "--url=https://localhost/"],
            &[
                "no certificate is trusted",
                "hint: name the root certificates: cacert",
            ],
        ),
        (
            &["--slo=p99<1s", "--rate=50/s"],
            &["--url is missing", "hint: for example"],
        ),
        (
            &["--slo=p99<1s", "--url=http://localhost/"],
            &["--rate: the load is not clear", "--rate 300/s"],
        ),
        (
            &[
                "--slo=p99<1s",
                "--rate=50/s",
                "--url=http://localhost/",
                "--max-memory=512",
            ],
            &[
                "`512` is less than 1 MiB",
                "hint: is the unit missing? write 512Mi",
            ],
        ),
        (
            &[
                "--slo=p99<1s",
                "--rate=50/s",
                "--url=http://localhost/",
                "--cpu=0",
            ],
            &["`0` is too little CPU", "hint: "],
        ),
    ];
    for (flags, texts) in wrong {
        let ended = base("size").args(flags).zoo(&lab, &["serve"]).into_end();
        refused(&lab, ended, 2, texts);
    }
    let ended = base("run").arg("--frobnicate").into_end();
    refused(&lab, ended, 2, &["--frobnicate", "--help"]);
    None
}

/// What a load names is looked for before anything is started.
fn wrong_loads_are_refused() -> Outcome {
    let lab = Lab::new();
    let empty = lab.path().join("empty.toml").display().to_string();
    std::fs::write(&empty, "interval-seconds = 1\n").expect("a file");
    let profile = format!("--profile={empty}");
    let wrong: [(&[&str], &[&str]); 7] = [
        (
            &["--rate=50/s", "--body-file=nosuch.json"],
            &["body-file: ", "nosuch.json cannot be read", "relative to"],
        ),
        (
            &["--rate=50/s", "--bearer={env:LOADLINE_NO_SUCH}"],
            &["bearer: ", "`LOADLINE_NO_SUCH` is not set", "sudo"],
        ),
        (
            &["--rate=50/s", "--bearer=t0ken"],
            &["--bearer: the token", "would be stored", "{env:NAME}"],
        ),
        (
            &["--rate=50/s", "--slo=POST /x: p99<1s"],
            &["`POST /x`, which is not a request of the load", "hint: "],
        ),
        (
            &["--rate=50/s", "--measure=4s", "--prove=3"],
            &[
                "p99 at 50/s needs 20s of measuring",
                "--duration 20s",
                "--prove 5",
            ],
        ),
        (&[&profile], &["neither [[request]] nor rates"]),
        (
            &["--profile=nosuch.toml"],
            &["profile: ", "nosuch.toml cannot be read"],
        ),
    ];
    let good = ["--wait", "--slo=p99<1s", "--url=http://localhost/"];
    for (flags, texts) in wrong {
        let call = lab.call("size").args(&good).args(flags);
        refused(&lab, call.zoo(&lab, &["serve"]).into_end(), 2, texts);
    }
    let docker = ["--rate=50/s", "--", "docker", "run", "x"];
    let ended = lab.call("size").args(&good).args(&docker).into_end();
    let texts = [
        "client of a container engine",
        "hint: loadline starts images itself: --image x",
    ];
    refused(&lab, ended, 2, &texts);
    None
}

fn wrong_files_are_refused() -> Outcome {
    let lab = Lab::new();
    let good =
        "slo = \"p99<1s\"\n[app]\ncommand = [\"java\"]\n[load]\nurl = \"http://localhost:8080/\"\n";
    let wrong: [(String, &[&str]); 4] = [
        (
            format!("{good}rte = \"5/s\"\n"),
            &["wrong.toml:6:1", "`rte`", "hint: did you mean `rate`?"],
        ),
        (
            format!("{good}rate = \"5/s\"\nmeasure = \"5 parsecs\"\n"),
            &[
                "wrong.toml:7:11",
                "`5 parsecs` is not a length of time",
                "write 500ms",
            ],
        ),
        (
            format!(
                "{good}rate = \"5/s\"\n[[factor]]\nname = \"memory\"\nlevels = [\"12 elephants\"]\n"
            ),
            &["wrong.toml:9:11", "12 elephants"],
        ),
        ("slo = \"p99<1s\n".to_owned(), &["wrong.toml:1:"]),
    ];
    for (text, texts) in wrong {
        std::fs::write(lab.path().join("wrong.toml"), text).expect("a file");
        let ended = lab.call("run").args(&["--wait", "wrong.toml"]).into_end();
        refused(&lab, ended, 2, texts);
    }
    let ended = lab.call("run").args(&["--wait", "nosuch.toml"]).into_end();
    refused(
        &lab,
        ended,
        2,
        &["cannot read the experiment nosuch.toml", "hint: "],
    );
    None
}

fn unknown_results_are_refused() -> Outcome {
    let lab = Lab::new();
    for subcommand in ["show", "resume", "export", "report"] {
        lab.call(subcommand)
            .arg("0123-nosuch")
            .into_end()
            .expect_code(2)
            .says(&[
                "there is no result `0123-nosuch`",
                "hint: list the results: loadline list",
            ]);
    }
    lab.call("list")
        .into_end()
        .expect_code(0)
        .says(&["no results in"]);
    None
}
