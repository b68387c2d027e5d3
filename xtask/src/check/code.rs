//! Rules over the Rust sources that are shipped.
//!
//! They read text, not syntax: enough to catch a slip, and short enough to be understood. The
//! lints in Cargo.toml say the same where a lint exists.

use super::tree::File;
use super::{Finding, Project};

/// Longest file, tests not counted, in lines.
const MAX_LINES: usize = 600;

const LONG_FOR_NOW: &[&str] = &[
    "crates/analysis/src/search/mod.rs",
    "crates/analysis/src/search/size.rs",
    "crates/report/src/content/headline.rs",
];

const CATCH_ALL: &[&str] = &["util", "utils", "common", "misc", "helper", "helpers"];
const PURE: &[&str] = &["analysis", "sizing", "report"];

const IMPURE: &str = "std::fs|std::net|std::process|std::env::|std::thread|fs::|File::open|\
    Instant::now|SystemTime|TcpStream";

/// Only `cli` prints. The launcher is a separate program: its run function has to say why it cannot
/// start, and what it would start when it is asked.
pub fn prints(project: &Project) -> Vec<Finding> {
    let allowed =
        |path: &str| path.starts_with("crates/cli/") || path == "crates/launcher/src/lib.rs";
    find(
        project,
        |file| !allowed(&file.path),
        "print!(|println!(|eprint!(|eprintln!(|io::stdout()|io::stderr()",
        "prints; return the value or take a writer, only crate cli prints",
    )
}

/// `println!` and `eprintln!` panic where the other end is gone or the disk is full; stderr is one
/// file's, which drops what cannot be written.
pub fn panicking_prints(project: &Project) -> Vec<Finding> {
    let mut findings = find(
        project,
        |file| file.path.starts_with("crates/cli/"),
        "print!(|println!(|eprint!(|eprintln!(|dbg!(",
        "panics where nobody reads it; use say!, talk! or say::print_data",
    );
    findings.extend(find(
        project,
        |file| file.path.starts_with("crates/cli/") && file.path != "crates/cli/src/say.rs",
        "io::stderr().write|io::stderr().lock|stderr().lock(",
        "writes to stderr; only crates/cli/src/say.rs does",
    ));
    findings
}

/// Nothing but a `main.rs` ends the process.
pub fn exits(project: &Project) -> Vec<Finding> {
    find(
        project,
        |file| !file.path.ends_with("src/main.rs"),
        "process::exit(|process::abort(",
        "ends the process; return an error to main",
    )
}

/// `thread::spawn` and `Scope::spawn` panic where the machine has no room for one more thread.
pub fn threads(project: &Project) -> Vec<Finding> {
    find(
        project,
        |_| true,
        "thread::spawn(|scope.spawn(",
        "panics where no thread can be had; use thread::Builder",
    )
}

/// `cgroup` and `host` write below the cgroup mount. A file elsewhere that names the
/// mount may read there, so it must not write anywhere; the launcher writes nowhere at all.
pub fn cgroup_writes(project: &Project) -> Vec<Finding> {
    let owns =
        |path: &str| path.starts_with("crates/cgroup/") || path.starts_with("crates/trial/src/");
    let names_mount = |file: &File| {
        file.code()
            .any(|(_, line)| line.contains("\"/sys/fs/cgroup"))
    };
    find(
        project,
        |file| {
            !owns(&file.path) && (file.path.starts_with("crates/launcher/") || names_mount(file))
        },
        "fs::write(|File::create|write(true)|append(true)|create_dir",
        "writes in a file that names the cgroup mount; go through crate cgroup",
    )
}

pub fn purity(project: &Project) -> Vec<Finding> {
    let is_pure = |file: &File| {
        let mut pure = PURE.iter();
        pure.any(|name| file.path.starts_with(&format!("crates/{name}/src/")))
    };
    let message = "does I/O or reads a clock; pass the value in";
    find(project, is_pure, IMPURE, message)
}

/// Unsafe code is in one crate, and in one file of the launcher, which may depend on no crate.
pub fn unsafe_code(project: &Project) -> Vec<Finding> {
    let allowed =
        |path: &str| path.starts_with("crates/sys/") || path == "crates/launcher/src/sys.rs";
    find(
        project,
        |file| !allowed(&file.path),
        "unsafe {|unsafe fn|unsafe impl",
        "unsafe code; put a safe function into crate sys",
    )
}

pub fn module_names(project: &Project) -> Vec<Finding> {
    let is_catch_all = |file: &&File| {
        let mut parts = file.path.split('/');
        let is_rust = file.path.ends_with(".rs");
        is_rust && parts.any(|part| CATCH_ALL.contains(&part.trim_end_matches(".rs")))
    };
    let message = "a catch-all module; name it after the thing it owns";
    let found = project.tree.files.iter().filter(is_catch_all);
    found
        .map(|file| Finding::new(&file.path, 0, message))
        .collect()
}

pub fn module_docs(project: &Project) -> Vec<Finding> {
    let files = project.tree.shipped();
    let silent = files.filter(|file| !file.text.starts_with("//!"));
    let message = "begins without `//!`: say what it owns and what it never does";
    silent
        .map(|file| Finding::new(&file.path, 1, message))
        .collect()
}

pub fn file_length(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in project.tree.shipped() {
        let lines = file.without_tests().count();
        if lines > MAX_LINES && !LONG_FOR_NOW.contains(&file.path.as_str()) {
            let message =
                format!("{lines} lines without its tests, more than {MAX_LINES}; split it");
            findings.push(Finding::new(&file.path, 0, message));
        }
    }
    findings
}

fn find(
    project: &Project,
    applies: impl Fn(&File) -> bool,
    words: &str,
    message: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in project.tree.shipped().filter(|file| applies(file)) {
        for (number, line) in file.code() {
            if let Some(word) = words.split('|').find(|word| contains_word(line, word)) {
                let message = format!("`{word}` {message}");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

fn contains_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::super::packages::Packages;
    use super::super::tree::sample;
    use super::*;

    fn places(rule: fn(&Project) -> Vec<Finding>, path: &str, text: &str) -> Vec<String> {
        let project = Project {
            tree: sample::tree(&[(path, text)]),
            packages: Packages::default(),
        };
        let found = rule(&project);
        found
            .iter()
            .map(|f| format!("{}:{}", f.path, f.line))
            .collect()
    }

    #[test]
    fn printing_is_found_outside_cli() {
        let text = "//! doc\nfn f() {\n    eprintln!(\"x\");\n}\n";
        assert_eq!(
            places(prints, "crates/load/src/lib.rs", text),
            ["crates/load/src/lib.rs:3"]
        );
        assert!(places(prints, "crates/cli/src/error.rs", text).is_empty());
        let blueprint = "//! doc\nblueprint!(x);\nstd::io::stdout().lock();\n";
        assert_eq!(
            places(prints, "crates/load/src/a.rs", blueprint),
            ["crates/load/src/a.rs:3"]
        );
    }

    #[test]
    fn printing_that_panics_is_found_in_cli() {
        let text = "eprintln!(\"x\");\nsay!(\"eprint!\");\nwriteln!(io::stderr().lock(), \"x\");\nstderr().is_terminal();\n";
        let file = "crates/cli/src/commands/run.rs";
        assert_eq!(
            places(panicking_prints, file, text),
            [format!("{file}:1"), format!("{file}:3")]
        );
        let own = "let _ = std::io::stderr().write_all(text);\n";
        assert!(places(panicking_prints, "crates/cli/src/say.rs", own).is_empty());
        assert_eq!(places(panicking_prints, file, own).len(), 1);
    }

    #[test]
    fn leaving_is_found_outside_main() {
        let text = "std::process::exit(3);\n";
        assert_eq!(places(exits, "crates/runner/src/plan.rs", text).len(), 1);
        assert!(places(exits, "crates/cli/src/main.rs", text).is_empty());
    }

    #[test]
    fn a_thread_that_cannot_be_refused_is_found() {
        let text = "std::thread::spawn(f);\nscope.spawn(f);\nthread::Builder::new().spawn(f)?;\n";
        let file = "crates/load/src/a.rs";
        assert_eq!(places(threads, file, text).len(), 2);
    }

    #[test]
    fn the_cgroup_mount_is_written_by_its_owners_only() {
        let read = "let p = \"/sys/fs/cgroup/x\";\n";
        let write = "let p = \"/sys/fs/cgroup/x\";\nstd::fs::write(p, \"1\");\n";
        assert_eq!(
            places(cgroup_writes, "crates/jvm/src/a.rs", write),
            ["crates/jvm/src/a.rs:2"]
        );
        assert!(places(cgroup_writes, "crates/jvm/src/a.rs", read).is_empty());
        assert!(places(cgroup_writes, "crates/cgroup/src/a.rs", write).is_empty());
        assert!(places(cgroup_writes, "crates/trial/src/a.rs", write).is_empty());
        assert_eq!(
            places(
                cgroup_writes,
                "crates/launcher/src/a.rs",
                "fs::write(a, b);\n"
            )
            .len(),
            1
        );
    }

    #[test]
    fn clocks_and_files_are_found_in_pure_crates_but_not_in_their_tests() {
        assert_eq!(
            places(
                purity,
                "crates/analysis/src/a.rs",
                "let t = Instant::now();\n"
            )
            .len(),
            1
        );
        assert_eq!(
            places(purity, "crates/report/src/a.rs", "use std::fs;\n").len(),
            1
        );
        assert!(places(purity, "crates/load/src/a.rs", "use std::fs;\n").is_empty());
        let test = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert!(places(purity, "crates/sizing/src/a.rs", test).is_empty());
        assert!(places(purity, "crates/sizing/src/a.rs", "let offs::x = 1;\n").is_empty());
    }

    #[test]
    fn unsafe_has_two_places() {
        assert_eq!(
            places(unsafe_code, "crates/load/src/a.rs", "unsafe { f() }\n").len(),
            1
        );
        assert!(places(unsafe_code, "crates/sys/src/a.rs", "unsafe { f() }\n").is_empty());
    }

    #[test]
    fn names_headers_and_lengths_are_checked() {
        assert_eq!(places(module_names, "crates/load/src/util.rs", "").len(), 1);
        assert_eq!(
            places(module_names, "crates/load/src/common/a.rs", "").len(),
            1
        );
        assert!(places(module_names, "crates/load/src/utility_bill.rs", "").is_empty());
        assert_eq!(
            places(module_docs, "crates/load/src/a.rs", "use x;\n").len(),
            1
        );
        assert!(places(module_docs, "crates/load/src/a.rs", "//! Owns x.\n").is_empty());
        let long = "x\n".repeat(MAX_LINES + 1);
        assert_eq!(places(file_length, "crates/load/src/a.rs", &long).len(), 1);
        let tested = format!("x\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert!(places(file_length, "crates/load/src/a.rs", &tested).is_empty());
        let hidden = format!("#[cfg(test)]\nmod tests {{\n}}\n{long}");
        assert_eq!(
            places(file_length, "crates/load/src/a.rs", &hidden).len(),
            1
        );
    }
}
