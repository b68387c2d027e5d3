//! Rules over the dependency graph, as `cargo metadata` tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Finding, Project};
use crate::error::Error;
use crate::process::stdout_of;

/// Packages with an exceptional licence, as `deny.toml` has them. The list of root certificates is
/// data, and is not linked on Linux; libFuzzer is only linked to the targets of fuzzing.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("webpki-root-certs", "CDLA-Permissive-2.0"),
    ("libfuzzer-sys", "(MIT OR Apache-2.0) AND NCSA"),
];

/// Most external packages in Cargo.lock, tests and other platforms included, without those that
/// only the way to a cluster brings. The last 25 came with `parquet`, which has no optional part:
/// 13 are built on Linux, the others are for other platforms. No maintained writer has fewer.
const CAP: usize = 228;

/// The crate that speaks to clusters, the crate that links it, and most packages that only these
/// need.
const CLUSTER: (&str, &str, usize) = ("loadline-kubernetes", "loadline-cli", 130);
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

const LICENCES: &str = "0BSD, Apache-2.0, Apache-2.0 WITH LLVM-exception, BSD-2-Clause, \
    BSD-3-Clause, BSL-1.0, CC0-1.0, ISC, MIT, MIT-0, Unicode-3.0, Unlicense, Zlib";

const TREES: &[(&str, &[&str])] = &[
    ("loadline-sizing", &[]),
    ("loadline-launcher", &["loadline-sizing", "libc"]),
];

#[derive(Default)]
pub struct Package {
    pub name: String,
    pub version: String,
    source: Option<String>,
    pub licence: Option<String>,
    pub dependencies: Vec<String>,
    built_with: Vec<String>,
}

#[derive(Default)]
pub struct Packages(pub BTreeMap<String, Package>);

impl Packages {
    pub fn read(root: &Path) -> Result<Self, Error> {
        Self::from_cargo(Command::new("cargo").current_dir(root), &[])
    }

    pub fn from_cargo(cargo: &mut Command, more: &[&str]) -> Result<Self, Error> {
        cargo.args(["metadata", "--format-version=1", "--locked"]);
        let text = stdout_of(cargo.args(more))?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|error| Error::output("cargo metadata", error))?;
        Ok(Self::from_metadata(&metadata))
    }

    pub fn from_metadata(metadata: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut packages = BTreeMap::new();
        for package in items(&metadata["packages"]) {
            let told = Package {
                name: text(&package["name"]).unwrap_or_default(),
                version: text(&package["version"]).unwrap_or_default(),
                source: text(&package["source"]),
                licence: text(&package["license"]),
                ..Package::default()
            };
            packages.insert(text(&package["id"]).unwrap_or_default(), told);
        }
        for node in items(&metadata["resolve"]["nodes"]) {
            let of = |wanted: Option<&str>| {
                items(&node["deps"])
                    .filter(|dep| items(&dep["dep_kinds"]).any(|k| k["kind"].as_str() == wanted))
                    .filter_map(|dep| text(&dep["pkg"]))
                    .collect::<Vec<_>>()
            };
            if let Some(package) = packages.get_mut(node["id"].as_str().unwrap_or_default()) {
                package.dependencies = of(None);
                package.built_with = of(Some("build"));
            }
        }
        Self(packages)
    }

    fn foreign(&self) -> impl Iterator<Item = &Package> {
        self.0.values().filter(|package| package.source.is_some())
    }

    /// Names of all that a package links, itself not counted; `None` when it does not exist.
    fn tree(&self, name: &str) -> Option<BTreeSet<&str>> {
        self.reached(name, |package| package.dependencies.clone())
    }

    fn needs(&self, name: &str) -> BTreeSet<&str> {
        let both = |package: &Package| [&package.dependencies[..], &package.built_with].concat();
        self.reached(name, both).unwrap_or_default()
    }

    fn reached(&self, name: &str, next: fn(&Package) -> Vec<String>) -> Option<BTreeSet<&str>> {
        let mut waiting = vec![self.0.values().find(|package| package.name == name)?];
        let mut names = BTreeSet::new();
        while let Some(package) = waiting.pop() {
            for id in next(package) {
                if let Some(next) = self.0.get(&id)
                    && names.insert(next.name.as_str())
                {
                    waiting.push(next);
                }
            }
        }
        Some(names)
    }
}

pub fn trees(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, allowed) in TREES {
        let folder = name.trim_start_matches("loadline-");
        for extra in project.packages.tree(name).unwrap_or_default() {
            if !allowed.contains(&extra) {
                let message = format!("{name} links {extra}; it may link only {allowed:?}");
                let path = format!("crates/{folder}/Cargo.toml");
                findings.push(Finding::new(&path, 0, message));
            }
        }
    }
    findings
}

pub fn cap(project: &Project) -> Vec<Finding> {
    let (cluster, linked_by, most) = CLUSTER;
    let of_cluster = project.packages.needs(cluster);
    let own = project
        .packages
        .0
        .values()
        .filter(|package| package.source.is_none());
    let others = own.filter(|package| package.name != cluster && package.name != linked_by);
    let others: BTreeSet<&str> = others
        .flat_map(|package| project.packages.needs(&package.name))
        .collect();
    let is_only = |package: &&Package| {
        let name = package.name.as_str();
        of_cluster.contains(name) && !others.contains(name)
    };
    let (only, rest): (Vec<_>, Vec<_>) = project.packages.foreign().partition(is_only);
    let over = |what: &str, count: usize, most: usize| {
        let text = format!("{count} packages {what}, more than {most}; does the last one pay?");
        (count > most).then(|| lock(text))
    };
    let counts = [
        over("from outside", rest.len(), CAP),
        over("for clusters alone", only.len(), most),
    ];
    counts.into_iter().flatten().collect()
}

pub fn sources(project: &Project) -> Vec<Finding> {
    let foreign = project.packages.foreign();
    foreign
        .filter(|package| package.source.as_deref() != Some(CRATES_IO))
        .map(|package| {
            let (name, source) = (&package.name, package.source.as_deref());
            let source = source.unwrap_or_default();
            lock(format!("{name} {} comes from {source}", package.version))
        })
        .collect()
}

pub fn licences(project: &Project) -> Vec<Finding> {
    let foreign = project.packages.foreign();
    foreign
        .filter(|package| !package.licence.as_deref().is_some_and(is_allowed))
        .filter(|package| {
            let licence = package.licence.as_deref().unwrap_or_default();
            !EXCEPTIONS.contains(&(package.name.as_str(), licence))
        })
        .map(|package| {
            let licence = package.licence.as_deref().unwrap_or("no licence");
            lock(format!("{} {}: {licence}", package.name, package.version))
        })
        .collect()
}

/// Whether an SPDX expression can be met: all parts of an AND, one part of an OR. `/` is the old
/// form of OR.
fn is_allowed(expression: &str) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    // Parentheses are only ever around an OR inside an AND; AND binds less tightly then.
    if expression.contains('(') {
        return plain.split(" AND ").all(any_allowed);
    }
    plain
        .split(" OR ")
        .any(|part| part.split(" AND ").all(one_allowed))
}

fn any_allowed(choice: &str) -> bool {
    choice.split(" OR ").any(one_allowed)
}

fn one_allowed(licence: &str) -> bool {
    LICENCES.split(", ").any(|known| known == licence.trim())
}

fn lock(message: String) -> Finding {
    Finding::new("Cargo.lock", 0, message)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::tree::sample;
    use super::*;
    use serde_json::json;

    fn project(metadata: &Value) -> Project {
        Project {
            tree: sample::tree(&[]),
            packages: Packages::from_metadata(metadata),
        }
    }

    fn package(id: &str, source: Option<&str>, licence: &str) -> Value {
        json!({"id": id, "name": id, "version": "1.0.0", "source": source, "license": licence})
    }

    #[test]
    fn a_promised_tree_is_followed_through_normal_dependencies_only() {
        let node = |id: &str, dep: &str, kind: Value| {
            json!({"id": id, "deps": [
            {"pkg": dep, "dep_kinds": [{"kind": kind}]}]})
        };
        let metadata = json!({
            "packages": [
                package("loadline-launcher", None, "Apache-2.0"),
                package("loadline-sizing", None, "Apache-2.0"),
                package("serde", Some(CRATES_IO), "MIT"),
                package("proptest", Some(CRATES_IO), "MIT"),
            ],
            "resolve": {"nodes": [
                node("loadline-launcher", "loadline-sizing", Value::Null),
                node("loadline-sizing", "serde", Value::Null),
                node("serde", "proptest", json!("dev")),
            ]},
        });
        let found: Vec<_> = trees(&project(&metadata))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "crates/sizing/Cargo.toml: loadline-sizing links serde; it may link only []",
                "crates/launcher/Cargo.toml: loadline-launcher links serde; it may link only \
                 [\"loadline-sizing\", \"libc\"]",
            ]
        );
    }

    #[test]
    fn other_sources_and_licences_are_found() {
        let metadata = json!({"packages": [
            package("own", None, "Apache-2.0"),
            package("good", Some(CRATES_IO), "MIT/Apache-2.0"),
            package("forked", Some("git+https://example.org/x"), "MIT"),
            package("viral", Some(CRATES_IO), "GPL-3.0"),
        ]});
        let project = project(&metadata);
        assert_eq!(sources(&project).len(), 1);
        assert_eq!(licences(&project).len(), 1);
        assert!(cap(&project).is_empty());
    }

    #[test]
    fn licence_expressions_are_read() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "Unlicense/MIT",
            "(MIT OR GPL-2.0) AND Unicode-3.0",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR Apache-2.0) AND OpenSSL",
            "",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }
}
