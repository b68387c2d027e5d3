//! The content of the programs: a CycloneDX list of every crate that a program links, from
//! Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Release;
use super::programs::Architecture;
use crate::check::packages::{Package, Packages};
use crate::error::Error;

const PROGRAMS: [&str; 2] = ["loadline-cli", "loadline-launcher"];

pub fn write(release: &Release, architecture: Architecture, to: &Path) -> Result<(), Error> {
    let lock = release.root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(Error::file(lock))?;
    let platform = format!("{}-unknown-linux-musl", architecture.name());
    let mut cargo = release.command("cargo");
    let packages = Packages::from_cargo(&mut cargo, &["--filter-platform", &platform])?;
    let list = list(&packages, &checksums(&lock), &release.version);
    fs::write(to, format!("{list:#}\n")).map_err(Error::file(to))
}

fn checksums(lock: &str) -> Checksums {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_matches([' ', '=', '"']).to_owned())
    };
    let blocks = lock.split("[[package]]");
    let found = blocks.filter_map(|block| {
        let package = (value(block, "name")?, value(block, "version")?);
        Some((package, value(block, "checksum")?))
    });
    found.collect()
}

type Checksums = BTreeMap<(String, String), String>;

fn list(Packages(packages): &Packages, checksums: &Checksums, version: &str) -> Value {
    let is_program = |package: &Package| PROGRAMS.contains(&package.name.as_str());
    let programs = packages.iter().filter(|(_, package)| is_program(package));
    let mut waiting: Vec<&String> = programs.map(|(id, _)| id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id) {
            waiting.extend(&packages[id].dependencies);
        }
    }
    let reference = |id: &String| {
        let package = &packages[id];
        format!("pkg:cargo/{}@{}", package.name, package.version)
    };
    let component = |id: &&String| {
        let package = &packages[*id];
        let name = (package.name.clone(), package.version.clone());
        let licence = package.licence.as_deref().unwrap_or_default();
        let mut component = json!({
            "type": "library", "bom-ref": reference(id), "name": name.0, "version": name.1,
            "purl": reference(id), "scope": "required",
            "licenses": [{ "expression": licence.replace('/', " OR ") }],
        });
        if let Some(sum) = checksums.get(&name) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    let depends = |id: &&String| {
        let on: BTreeSet<String> = packages[*id].dependencies.iter().map(reference).collect();
        json!({ "ref": reference(id), "dependsOn": on })
    };
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": { "component": {
            "type": "application", "bom-ref": "loadline", "name": "loadline", "version": version,
            "licenses": [{ "expression": "Apache-2.0" }],
        } },
        "components": seen.iter().map(component).collect::<Vec<_>>(),
        "dependencies": seen.iter().map(depends).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_listed_and_what_builds_or_tests_is_not() {
        let package = |name: &str| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0" });
        let dep = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = ["loadline-cli", "linked", "deep", "tested", "built"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "loadline-cli", "deps": [
                    dep("linked", Value::Null), dep("tested", json!("dev")), dep("built", json!("build")),
                ] },
                { "id": "linked", "deps": [dep("deep", Value::Null)] },
            ] },
        });
        let lock = "[[package]]\nname = \"deep\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n";
        let packages = Packages::from_metadata(&metadata);
        let list = list(&packages, &checksums(lock), "0.1.0");
        let names: Vec<_> = list["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|component| component["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["deep", "linked", "loadline-cli"]);
        assert_eq!(list["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(
            list["components"][0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(
            list["dependencies"][1]["dependsOn"],
            json!(["pkg:cargo/deep@1.0.0"])
        );
    }
}
