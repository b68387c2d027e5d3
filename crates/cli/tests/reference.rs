//! The generated parts of the documentation are what the program says today.
//!
//! `LOADLINE_UPDATE=1 cargo test -p loadline-cli --test reference` writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const EXIT_CODES: &str = "
## Exit codes

| code | meaning |
| --- | --- |
| 0 | done, and the SLO was met |
| 1 | the SLO was not met, or nothing is feasible |
| 2 | wrong arguments or a wrong file |
| 3 | this machine cannot: control groups, JDK, disk, permissions |
| 4 | the measurement is not valid |
| 70 | a defect of loadline |
| 129, 130, 143 | stopped by SIGHUP, SIGINT, SIGTERM; `loadline resume` goes on |
";

fn loadline(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    let output = command
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "loadline {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("help is text")
}

/// Compares with the file in docs/reference, or writes it.
fn check(name: &str, text: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let path = folder.join(name);
    if std::env::var_os("LOADLINE_UPDATE").is_some() {
        fs::create_dir_all(&folder).expect("the folder can be made");
        fs::write(&path, text).expect("the reference can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let how = "LOADLINE_UPDATE=1 cargo test -p loadline-cli --test reference";
    assert!(
        written == text,
        "docs/reference/{name} is not what the program says; {how}"
    );
}

/// Names of the subcommands, from the help itself.
fn subcommands() -> Vec<String> {
    let help = loadline(&["--help"]);
    let commands = help.lines().skip_while(|l| *l != "Commands:").skip(1);
    let names = commands
        .take_while(|l| !l.is_empty())
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next());
    names.filter(|n| *n != "help").map(str::to_owned).collect()
}

#[test]
fn the_command_line_reference_is_up_to_date() {
    let mut text = String::from("# Command line\n\nWritten by the program; a test compares.\n");
    write!(text, "\n```\n{}```\n", loadline(&["--help"])).unwrap();
    let names = subcommands();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        let help = loadline(&[&name, "--help"]);
        write!(text, "\n## loadline {name}\n\n```\n{help}```\n").unwrap();
    }
    text += EXIT_CODES;
    check("cli.md", &text);
}

#[test]
fn the_schema_of_experiment_files_is_up_to_date() {
    let schema = loadline(&["plan", "--schema"]);
    assert!(schema.contains("start-deadline"));
    check("experiment.schema.json", &schema);
}
