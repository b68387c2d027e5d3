//! The generated parts of the documentation match the program.
//!
//! `LOADLINE_UPDATE=1 cargo test -p loadline-cli --test reference` writes them again.

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
| 129, 130, 143 | stopped by SIGHUP, SIGINT, SIGTERM; `loadline resume` goes on with a result |
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
    let commands = help.lines().skip(3).take_while(|l| *l != "Options:");
    let names = commands
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next());
    names.filter(|n| *n != "help").map(str::to_owned).collect()
}

#[test]
fn the_command_line_reference_is_up_to_date() {
    let mut text = String::from(
        "# Command line\n\nEvery command and every flag.\n\nWritten by the program; a test compares.\n",
    );
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
    let schema = loadline(&["schema", "experiment"]);
    assert!(schema.contains("start-deadline"));
    check("experiment.schema.json", &schema);
}

/// Fields of the structs of `record.rs`, from the source itself: stored name, type, comment.
fn record_fields(source: &str) -> Vec<(String, String, Vec<[String; 3]>)> {
    let mut structs: Vec<(String, String, Vec<[String; 3]>)> = Vec::new();
    let (mut comment, mut renamed, mut inside) = (String::new(), None, false);
    for line in source.lines() {
        let text = line.trim();
        if let Some(said) = text.strip_prefix("///") {
            comment = format!("{comment} {}", said.trim()).trim().to_owned();
        } else if text.starts_with("#[serde(") {
            let name = text
                .split_once("rename = \"")
                .and_then(|(_, rest)| rest.split_once('"'));
            renamed = name.map(|(name, _)| name.to_owned()).or(renamed);
        } else if text.starts_with("#[") {
        } else if let Some(name) = text.strip_prefix("pub struct ") {
            let name = name.trim_end_matches([' ', '{']).to_owned();
            structs.push((name, std::mem::take(&mut comment), Vec::new()));
            inside = true;
        } else if let (true, Some(field)) = (inside, text.strip_prefix("pub ")) {
            let (name, kind) = field.split_once(": ").expect("a field has a type");
            let name = renamed.take().unwrap_or_else(|| name.to_owned());
            let kind = kind.trim_end_matches(',').to_owned();
            let row = [name, kind, std::mem::take(&mut comment)];
            structs.last_mut().expect("inside a struct").2.push(row);
        } else {
            inside &= text != "}";
            (comment, renamed) = (String::new(), None);
        }
    }
    structs
}

/// A Rust type as in JSON: the names carry the units.
fn json_type(kind: &str) -> String {
    let inner = kind
        .strip_prefix("Option<")
        .and_then(|k| k.strip_suffix('>'));
    if let Some(inner) = inner {
        return format!("{} or null", json_type(inner));
    }
    match kind {
        "Duration" | "Bytes" | "Cpus" | "u64" | "u32" | "i32" => "whole number".to_owned(),
        "f64" => "number".to_owned(),
        "bool" => "true or false".to_owned(),
        "String" | "Purpose" | "Phase" | "Provenance" | "Invalid" | "AppKo" | "Slo"
        | "Objective" | "Reason" | "CpuSets" | "CacheKind" => "text".to_owned(),
        other => {
            let item = other.strip_prefix("Vec<").and_then(|k| k.strip_suffix('>'));
            item.map_or_else(
                || other.to_owned(),
                |item| format!("list of {}", json_type(item)),
            )
        }
    }
}

#[test]
fn the_reference_of_records_is_up_to_date() {
    let read = |name: &str| {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../analysis/src");
        let source = fs::read_to_string(path.join(name)).expect("the source is there");
        let source = source.split("#[cfg(test)]").next().unwrap_or_default();
        record_fields(source)
    };
    let parts = [
        "record.rs",
        "record/configuration.rs",
        "record/instance.rs",
        "record/phase.rs",
        "record/load.rs",
        "record/cgroup.rs",
        "record/gc.rs",
        "record/start.rs",
    ];
    let structs = parts.map(read).concat();
    let mut text = String::from(
        "# Records\n\nWhat a program finds in a stored result, field by field.\n\nWritten from the comments in `crates/analysis/src/record.rs`; a test compares. \
         `loadline export` writes a result: `schema`, `result`, `title`, `question`, `command`, \
         `experiment` (TOML), `load`, `slo`, `machine`, `recommendation`, `warnings`, and `trials`, \
         each a `TrialRecord`. Units stand in the names: `_ns` nanoseconds, `_bytes` bytes, \
         `_millicpus` thousandths of a CPU. Null means that this kernel, JVM or phase gave no such \
         number; it never means zero. Secrets are taken out.\n",
    );
    assert!(structs.len() > 10 && structs.iter().all(|s| !s.2.is_empty()));
    // The trial first; what it consists of in the order of the source.
    let (first, rest): (Vec<_>, Vec<_>) = structs.iter().partition(|s| s.0 == "TrialRecord");
    for (name, comment, fields) in first.into_iter().chain(rest) {
        write!(
            text,
            "\n## {name}\n\n{comment}\n\n| field | type | meaning |\n| --- | --- | --- |\n"
        )
        .unwrap();
        for [field, kind, meaning] in fields {
            let kind = json_type(kind).replace('|', "\\|");
            writeln!(
                text,
                "| `{field}` | {kind} | {} |",
                meaning.replace('|', "\\|")
            )
            .unwrap();
        }
    }
    check("record.md", &text);
}

#[test]
fn the_schemas_of_what_is_printed_are_up_to_date() {
    let help = loadline(&["schema", "--help"]);
    let forms: Vec<(&str, &str)> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once(':'))
        .collect();
    assert!(forms.len() > 10, "{help}");
    let mut text = String::from(
        "# What `--json` prints\n\nWhat a script gets from `--json`, command by command.\n\nWritten by the program; a test compares, and others run each \
         command and hold what it prints against its schema. `loadline schema FORM` prints one. \
         Fields are added within a schema version, never changed. Units stand in the names; null \
         is what was not measured or does not exist, never zero. What the fields of a result mean \
         is also in [record.md](record.md).\n\n| form | of | schema |\n| --- | --- | --- |\n",
    );
    for (form, of) in forms {
        let name = format!("{form}.schema.json");
        check(&name, &loadline(&["schema", form]));
        let of = of.trim().replace('|', "\\|");
        writeln!(text, "| `{form}` | {of} | [{name}]({name}) |").unwrap();
    }
    check("json.md", &text);
}
