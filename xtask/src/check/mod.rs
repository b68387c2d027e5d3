//! `cargo xtask check`: the invariants of ARCHITECTURE.md, as rules over the project's files.
//!
//! A rule is a pure function from the files (or the dependency graph) to findings; a finding
//! names file, line and what to do. Adding one: write the function, name it in [`RULES`].

mod circles;
mod code;
pub mod documents;
mod downloads;
mod names;
pub mod packages;
mod source;
mod tree;
mod words;

use std::fmt;
use std::path::Path;

use crate::error::Error;
use packages::Packages;
use tree::Tree;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

pub struct Project {
    tree: Tree,
    packages: Packages,
}

type Rule = fn(&Project) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("only crate cli prints", code::prints),
    (
        "nothing that is printed can end the process",
        code::panicking_prints,
    ),
    ("only main ends the process", code::exits),
    ("a thread that cannot be had is an error", code::threads),
    (
        "only crates trial and cgroup write below the cgroup mount",
        code::cgroup_writes,
    ),
    (
        "analysis, sizing and report do no I/O and read no clock",
        code::purity,
    ),
    (
        "unsafe code stands in crate sys and the launcher's sys.rs",
        code::unsafe_code,
    ),
    ("no module is a catch-all", code::module_names),
    ("every module says what it owns", code::module_docs),
    (
        "no file is longer than a reader's patience",
        code::file_length,
    ),
    ("names explain themselves", names::explain),
    ("a name means one thing", names::repeated),
    ("no circle of files is large", circles::small),
    (
        "no file names a developer's machine",
        documents::machine_paths,
    ),
    ("links in documents lead somewhere", documents::links),
    ("every page is listed with its question", words::questions),
    ("documents are short", words::lengths),
    ("house phrases are rare", words::phrases),
    ("what scripts fetch is pinned", downloads::pinned),
    (
        "sizing depends on nothing, the launcher on sizing and libc",
        packages::trees,
    ),
    ("dependencies are few", packages::cap),
    ("dependencies come from crates.io", packages::sources),
    (
        "dependencies have a licence that Apache-2.0 can ship with",
        packages::licences,
    ),
];

pub fn run(root: &Path) -> Result<bool, Error> {
    let project = Project {
        tree: Tree::read(root)?,
        packages: Packages::read(root)?,
    };
    let mut count = 0;
    for (sentence, rule) in RULES {
        let findings = rule(&project);
        let mark = if findings.is_empty() { "ok  " } else { "FAIL" };
        println!("{mark} {sentence}");
        for finding in &findings {
            println!("     {finding}");
        }
        count += findings.len();
    }
    println!("{} rules, {count} findings", RULES.len());
    Ok(count == 0)
}
