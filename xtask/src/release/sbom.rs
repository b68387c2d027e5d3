//! The content of the programs: a CycloneDX list of every crate that a program links, from
//! Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::Release;
use super::programs::Architecture;
use crate::error::Error;
use crate::process::stdout_of;

const PROGRAMS: [&str; 2] = ["loadline-cli", "loadline-launcher"];

pub fn write(release: &Release, architecture: Architecture, to: &Path) -> Result<(), Error> {
    let lock = release.root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(Error::file(lock))?;
    let platform = format!("{}-unknown-linux-musl", architecture.name());
    let mut cargo = release.command("cargo");
    cargo.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
        &platform,
    ]);
    let text = stdout_of(&mut cargo)?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| Error::Output {
        command: "cargo metadata".to_owned(),
        detail: error.to_string(),
    })?;
    let list = list(&metadata, &checksums(&lock), &release.version);
    fs::write(to, format!("{list:#}\n")).map_err(Error::file(to))
}

fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
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

fn list(metadata: &Value, checksums: &BTreeMap<(String, String), String>, version: &str) -> Value {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = items(&metadata["packages"])
        .into_iter()
        .map(|package| (text(&package["id"]), package))
        .collect();
    let linked: BTreeMap<String, BTreeSet<String>> = items(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let deps = items(&node["deps"]).into_iter();
            let normal = deps.filter(|dep| {
                items(&dep["dep_kinds"])
                    .iter()
                    .any(|kind| kind["kind"].is_null())
            });
            (
                text(&node["id"]),
                normal.map(|dep| text(&dep["pkg"])).collect(),
            )
        })
        .collect();
    let mut waiting: Vec<String> = packages
        .iter()
        .filter(|(_, package)| PROGRAMS.iter().any(|name| package["name"] == **name))
        .map(|(id, _)| id.clone())
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if seen.insert(id.clone()) {
            waiting.extend(linked.get(&id).into_iter().flatten().cloned());
        }
    }
    let reference = |id: &String| {
        let package = &packages[id];
        format!(
            "pkg:cargo/{}@{}",
            text(&package["name"]),
            text(&package["version"])
        )
    };
    let component = |id: &String| {
        let package = &packages[id];
        let name = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": "library", "bom-ref": reference(id), "name": name.0, "version": name.1,
            "purl": reference(id), "scope": "required",
            "licenses": [{ "expression": text(&package["license"]).replace('/', " OR ") }],
        });
        if let Some(sum) = checksums.get(&name) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    let depends = |id: &String| {
        let on: BTreeSet<String> = linked
            .get(id)
            .into_iter()
            .flatten()
            .map(reference)
            .collect();
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
        let list = list(&metadata, &checksums(lock), "0.1.0");
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
