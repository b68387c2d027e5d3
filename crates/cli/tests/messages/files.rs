//! Experiment files with one mistake each: the replaced text of a correct file, its replacement,
//! and `plan`'s message.

use super::{USAGE, check, loadline, place};

/// A file that is right, but for a jar that is not there.
const RIGHT: &str = r#"slo = "p99<250ms"
[app]
command = ["java", "-jar", "none.jar"]
[load]
url = "http://localhost:8080/"
rate = "100/s"
"#;

const END: &str = "rate = \"100/s\"\n";

/// Replaced text, replacement, expected parts of stderr.
type Mistake = (&'static str, &'static str, &'static [&'static str]);

const MISTAKES: &[Mistake] = &[
    (
        "none.jar",
        "none.jar",
        &["cannot find the jar", "hint: build it first"],
    ),
    (
        "\"p99<250ms\"",
        "p99<250ms",
        &[
            "1:7: string values must be quoted",
            "hint: put the text in quotes",
        ],
    ),
    (
        "\"p99<250ms\"",
        "[\"p99<250ms\"]",
        &[
            "1:7: expected a string, not a list",
            "hint: write one text, its parts with commas",
        ],
    ),
    (
        "p99<250ms",
        "p99<250",
        &["did you mean `p99<250ms`?", "hint: for example p99<50ms"],
    ),
    (
        "slo = \"p99<250ms\"",
        "slo: p99<250ms",
        &[
            "1:6: key with no value",
            "hint: TOML has `=` between a key and its value",
        ],
    ),
    (
        "url = \"http://localhost:8080/\"\n",
        "",
        &[
            "[load]",
            "url = ",
            "hint: write url = \"http://localhost:8080/\" (--url)",
        ],
    ),
    (
        "http://localhost",
        "ftp://localhost",
        &["`ftp://localhost:8080/` is not an http URL", "hint: "],
    ),
    (
        "rate = \"100/s\"\n",
        "",
        &[
            "4:2: the load is not clear",
            "--rate 300/s",
            "--closed",
            "--requests 1000",
        ],
    ),
    ("100/s", "100/q", &["`100/q` is not a rate", "hint: "]),
    (
        "command = [\"java\", \"-jar\", \"none.jar\"]\n",
        "",
        &[
            "the application's command is empty",
            "hint: app.command = [\"java\"",
        ],
    ),
    (
        "[\"java\", \"-jar\", \"none.jar\"]",
        "[]",
        &["the application's command is empty", "hint: "],
    ),
    (
        "[\"java\", \"-jar\", \"none.jar\"]",
        "\"java -jar x\"",
        &[
            "3:11: expected a list, not the text",
            "hint: write a list, word by word: [\"java\", \"-jar\", \"x\"]",
        ],
    ),
    (
        "command = [\"java\", \"-jar\", \"none.jar\"]",
        "image = \"A b\"",
        &["the image `A b`: that is not an image name", "hint: "],
    ),
    (
        "[load]",
        "jvm = \"-Xmx64m\"\n[load]",
        &[
            "there is no key `jvm` here",
            "hint: write JVM options into the command",
        ],
    ),
    (
        "[load]",
        "env = [\"A=b\"]\n[load]",
        &[
            "expected a table, not a list",
            "hint: write a table: { NAME = \"value\" }",
        ],
    ),
    (
        "[load]",
        "ready = { http = \"health\" }\n[load]",
        &[
            "starts neither with a slash nor with a port",
            "hint: write ready",
        ],
    ),
    (
        "[load]",
        "ready = { path = \"/health\" }\n[load]",
        &["there is no key `path` here", "hint: known here: http, tcp"],
    ),
    (
        "[load]",
        "user = \"bob\"\n[load]",
        &["`bob` is not an account", "hint: write numbers"],
    ),
    (
        "[load]",
        "network = \"bridge\"\n[load]",
        &["`bridge` is not a network", "hint: write own"],
    ),
    (
        "[load]",
        "start-deadline = 5\n[load]",
        &[
            "expected a string, not the number `5`",
            "hint: write it as text, in quotes",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\nmeasure = \"10\"\n",
        &[
            "`10` is not a length of time",
            "hint: write 500ms, 10s, 2m or 1.5h",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\nprofile = \"none.toml\"\n",
        &["none.toml cannot be read", "hint: a path is relative"],
    ),
    (
        END,
        "rate = \"100/s\"\nrequest = \"x\"\n",
        &["expected a list", "hint: write a list"],
    ),
    (
        END,
        "rate = \"100/s\"\n[[load.request]]\nname = \"a\"\nweight = -1\npath = \"/\"\n",
        &["the weight of `a` is -1", "hint: "],
    ),
    (
        END,
        "rate = \"100/s\"\n[load]\nrate = \"6/s\"\n",
        &[
            "duplicate key",
            "hint: a table or a key may appear only once",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[limits]\nmemory = 512\n",
        &[
            "expected a string, not the number `512`",
            "hint: write it as text, in quotes and with its unit",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[limits]\nmemory = \"512MB\"\n",
        &[
            "`512MB` is not an amount; did you mean 512Mi?",
            "hint: memory with a unit",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[limits]\ncpu = 0.5\n",
        &[
            "expected a string, not the number `0.5`",
            "hint: write it as text",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[limit]\ncpu = \"1\"\n",
        &[
            "there is no key `limit` here",
            "hint: did you mean `limits`?",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[run]\nrepeats = 0\n",
        &["repeats = 0 is out of range", "hint: from 1"],
    ),
    (
        END,
        "rate = \"100/s\"\n[run]\naccept-noise = \"yes\"\n",
        &[
            "expected true or false, not the text",
            "hint: write true or false",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[[factor]]\nname = \"cpu\"\n",
        &["the key `levels` is missing", "hint: "],
    ),
    (
        END,
        "rate = \"100/s\"\n[[factor]]\nname = \"cpu\"\nlevels = []\n",
        &["factor `cpu` has no levels", "hint: levels ="],
    ),
    (
        END,
        "rate = \"100/s\"\n[[factor]]\nname = \"cpu\"\nlevels = [\"1\", \"1\"]\n",
        &["`1` is given twice", "hint: give it once"],
    ),
    (
        END,
        "rate = \"100/s\"\n[[factor]]\nname = \"c\"\nlevels = [{ label = \"a\", cpu = \"1\" }, { label = \"a\", cpu = \"2\" }]\n",
        &["two levels are called `a`", "hint: give each level"],
    ),
    (
        END,
        "rate = \"100/s\"\n[[factor]]\nname = \"hue\"\nlevels = [\"red\"]\n",
        &["what a plain level of `hue` changes", "hint: write { label"],
    ),
    (
        END,
        "rate = \"100/s\"\n[search]\nmin-memory = \"1Gi\"\nmax-memory = \"512Mi\"\n",
        &[
            "the search range is empty: from 1Gi to 512Mi",
            "hint: raise it with --max-memory 2Gi",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[search]\nmargin = \"2\"\n",
        &["`2` is not a margin", "hint: write a percentage"],
    ),
    (
        END,
        "rate = \"100/s\"\n[search]\nregion = \"us-east-1\"\n",
        &["region (--region) needs prices", "hint: add prices"],
    ),
    (
        END,
        "rate = \"100/s\"\n[[dependency]]\nname = \"db\"\n",
        &[
            "the command of `db` is empty",
            "hint: command = [\"redis-server\"",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[[dependency]]\nname = \"db\"\ncommand = [\"x\"]\n",
        &[
            "`db` does not say when it is ready",
            "hint: write ready = { tcp",
        ],
    ),
    (
        END,
        "rate = \"100/s\"\n[[dependency]]\nname = \"db\"\nports = [1]\n",
        &["there is no key `ports` here", "hint: did you mean `port`?"],
    ),
    (
        "slo =",
        "manifest = \"none.yaml\"\nslo =",
        &["none.yaml: No such file", "hint: give a file"],
    ),
];

/// As a row of the other tables is counted.
pub const COUNT: usize = MISTAKES.len();

#[test]
fn of_files() {
    let place = place();
    let mut wrong = Vec::new();
    for (from, to, wanted) in MISTAKES {
        assert!(RIGHT.contains(from), "{from}");
        let text = RIGHT.replacen(from, to, 1);
        std::fs::write(place.path().join("wrong.toml"), &text).expect("writable");
        let ended = loadline(place.path(), "plan wrong.toml");
        wrong.extend(check(&text, &ended, USAGE, wanted));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
