//! Which tests run together: tests that judge a time have the machine to themselves.
//!
//! Owns the groups. Tests are identified by their binaries, which the directories `tests` of the
//! crates name, and by the path in their names; a test without a group is untimed.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Error;
use crate::process::entries;

const GUESTS: &str = "uml::";
const WITH_GUESTS: [&str; 4] = ["containment", "layouts", "measure", "real"];

/// What names of tests have that run real trials and judge no time of theirs; the binary has them all.
const TRIALS: &str = "beside::";
/// The same with images, which podman and docker keep for the whole machine.
const ENGINES: &str = "engines::";
/// The same with PostgreSQL.
const DATABASES: &str = "databases::";
const WITH_TRIALS: &str = "measure";

/// The binary of crate trial's trials: judged by what happens, under any load of the machine.
const CONTAINED: &str = "containment";

const TIMED: [&str; 6] = [
    "hiccup", "max_rate", "measure", "omission", "replay", "warmup",
];

const PROGRAMS: [&str; 3] = ["loadline", "loadline-zoo", "xtask"];
const OTHERS: [&str; 8] = [
    "--skip", GUESTS, "--skip", TRIALS, "--skip", ENGINES, "--skip", DATABASES,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Guests,
    /// They run trials of loadline, which wait for each other, and no time matters to them.
    Trials,
    /// The same, with images.
    Engines,
    /// The same, with PostgreSQL.
    Databases,
    /// They run trials that wait for no lock, and no time matters to them.
    Contained,
    Untimed,
    Timed,
}

impl Group {
    pub fn arguments(self, root: &Path) -> Result<Vec<String>, Error> {
        let (timed, untimed) = binaries(root)?;
        let (libraries, names, own): (&[&str], _, &[&str]) = match self {
            Self::Guests => (&[], WITH_GUESTS.map(str::to_owned).into(), &[GUESTS]),
            Self::Trials => (&[], [WITH_TRIALS.to_owned()].into(), &[TRIALS]),
            Self::Engines => (&[], [WITH_TRIALS.to_owned()].into(), &[ENGINES]),
            Self::Databases => (&[], [WITH_TRIALS.to_owned()].into(), &[DATABASES]),
            Self::Contained => (&[], [CONTAINED.to_owned()].into(), &["--skip", GUESTS]),
            Self::Untimed => (&["--lib"], untimed, &["--skip", GUESTS]),
            Self::Timed => (&[], timed, &OTHERS),
        };
        let mut words = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
        words.extend(libraries);
        if self == Self::Untimed {
            words.extend(PROGRAMS.iter().flat_map(|name| ["--bin", name]));
        }
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let tests = names.into_iter();
        words.extend(tests.flat_map(|name| ["--test".to_owned(), name]));
        words.push("--".to_owned());
        words.extend(own.iter().map(|word| (*word).to_owned()));
        words.push("--show-output".to_owned());
        Ok(words)
    }
}

/// The names of all test binaries: measuring ones, and the others. For a name in two crates cargo
/// has one binary.
fn binaries(root: &Path) -> Result<(BTreeSet<String>, BTreeSet<String>), Error> {
    let (mut timed, mut untimed) = (BTreeSet::new(), BTreeSet::new());
    for package in entries(&root.join("crates"))? {
        let tests = package.join("tests");
        if !tests.is_dir() {
            continue;
        }
        for entry in entries(&tests)? {
            let is_file = entry.extension().is_some_and(|e| e == "rs");
            if !is_file && !entry.join("main.rs").is_file() {
                continue;
            }
            let name = entry.file_stem().unwrap_or_default().to_string_lossy();
            if TIMED.contains(&&*name) {
                timed.insert(name.into_owned())
            } else {
                untimed.insert(name.into_owned())
            };
        }
    }
    untimed.remove(CONTAINED);
    Ok((timed, untimed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_binary_is_in_one_group() {
        let root = crate::root();
        let (timed, untimed) = binaries(&root).expect("they are read");
        assert!(timed.is_disjoint(&untimed));
        for name in TIMED {
            assert!(timed.contains(name), "{name} is gone");
        }
        let lists = timed.iter().chain(&untimed).map(String::as_str);
        let all: BTreeSet<&str> = lists.chain([CONTAINED]).collect();
        for name in WITH_GUESTS.iter().chain(&[WITH_TRIALS]) {
            assert!(all.contains(*name), "{name} is gone");
        }
        // As cargo sees them.
        let metadata = std::process::Command::new("cargo")
            .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
            .current_dir(&root)
            .output()
            .expect("cargo");
        let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
        let packages = metadata["packages"].as_array().expect("packages");
        let targets = packages
            .iter()
            .flat_map(|package| package["targets"].as_array().expect("targets"));
        let tested: Vec<_> = targets.filter(|target| target["test"] == true).collect();
        let named = |kind: &str| -> BTreeSet<&str> {
            let of_kind = tested.iter().filter(|target| target["kind"][0] == kind);
            of_kind
                .filter_map(|target| target["name"].as_str())
                .collect()
        };
        assert_eq!(all, named("test"));
        assert_eq!(BTreeSet::from(PROGRAMS), named("bin"));
    }
}
