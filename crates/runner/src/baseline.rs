//! Baselines as files of a repository: one file, or a directory with one for each kind of host.
//!
//! Owns where they are read and written, and which file of a directory applies.
//! `loadline_analysis::baseline` owns their content and comparison.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use loadline_analysis::baseline::{Baseline, MeasurementConditions, SCHEMA};
use loadline_protocol::RunRefusal;
use sha2::{Digest, Sha256};

/// Largest file: twenty starts are a few KiB.
const LARGEST: u64 = 1 << 20;

const MOST: usize = 1000;

/// Characters of the name of a file in a directory: of a few kinds of host, none is like another.
const NAME: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaselineLocation {
    File(PathBuf),
    Directory(PathBuf),
}

impl BaselineLocation {
    pub fn from_path(path: &Path) -> Self {
        let ends = path.as_os_str().to_string_lossy().ends_with('/');
        if path.is_dir() || ends {
            Self::Directory(path.to_owned())
        } else {
            Self::File(path.to_owned())
        }
    }

    pub fn check_readable(&self) -> Result<(), RunRefusal> {
        match self {
            Self::File(path) => read_baseline(path).map(|_| ()),
            Self::Directory(directory) => {
                let mut all = baseline_files(directory)?.into_iter();
                all.try_for_each(|path| read_baseline(&path).map(|_| ()))
            }
        }
    }

    /// The baseline for starts on this ground: in a directory the one for the same kind of host,
    /// else the first of another kind, which is only partly comparable. `None` if there is none
    /// yet. Errors: [`RunRefusal`] if a file cannot be read or is no baseline.
    pub fn read(&self, ground: &MeasurementConditions) -> Result<Option<Baseline>, RunRefusal> {
        match self {
            Self::File(path) => read_baseline(path),
            Self::Directory(directory) => {
                let own = read_baseline(&self.file_for_ground(ground))?;
                if own.is_some() {
                    return Ok(own);
                }
                let mut others = Vec::new();
                for path in baseline_files(directory)? {
                    others.extend(read_baseline(&path)?);
                }
                let memory = |b: &Baseline| {
                    loadline_analysis::baseline::find_comparison_gaps(&b.ground, ground).memory
                };
                let best = others.iter().position(|b| memory(b).is_none());
                Ok(others.into_iter().nth(best.unwrap_or(0)))
            }
        }
    }

    pub fn file_for_ground(&self, ground: &MeasurementConditions) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Directory(place) => place.join(format!("{}.json", ground_file_stem(ground))),
        }
    }
}

pub fn baseline_text(baseline: &Baseline) -> String {
    let mut text = serde_json::to_string_pretty(baseline).unwrap_or_default();
    text.push('\n');
    text
}

fn ground_file_stem(ground: &MeasurementConditions) -> String {
    let (model, cpus) = (&ground.cpu_model, ground.cpus);
    let kind = format!("{model}\n{cpus}\n{}\n{:?}", ground.cgroup, ground.jdks);
    let digest = Sha256::digest(kind);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.chars().take(NAME).collect()
}

fn baseline_files(directory: &Path) -> Result<Vec<PathBuf>, RunRefusal> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Ok(Vec::new());
    };
    let named = entries.take(MOST).flatten();
    let named = named.filter(|e| e.file_type().is_ok_and(|kind| kind.is_file()));
    let mut files: Vec<PathBuf> = named
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    files.sort();
    Ok(files)
}

fn read_baseline(path: &Path) -> Result<Option<Baseline>, RunRefusal> {
    let what = format!("the baseline {}", path.display());
    let mut text = String::new();
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let hint = "give a readable file: --baseline FILE";
            return Err(RunRefusal::new(what, error, hint));
        }
        Ok(file) => {
            let read = file.take(LARGEST).read_to_string(&mut text);
            let hint = "give a file written by `loadline verify --accept`";
            read.map_err(|error| RunRefusal::new(&what, error, hint))?;
        }
    }
    let baseline: Baseline = serde_json::from_str(&text).map_err(|error| {
        let why = format!("it is not a baseline: {error}");
        let hint =
            "give a file written by `loadline verify --accept`, or write a new one: --accept";
        RunRefusal::new(&what, why, hint)
    })?;
    if baseline.schema > SCHEMA {
        let why = format!("a newer loadline wrote it ({})", baseline.loadline);
        let hint = "use that loadline, or write a new one: --accept";
        return Err(RunRefusal::new(what, why, hint));
    }
    Ok(Some(baseline))
}

#[cfg(test)]
mod tests {
    use loadline_analysis::record::{Configuration, MachineDescription};

    use super::*;

    fn baseline(cpu_model: &str) -> Baseline {
        let machine = MachineDescription {
            cpu_model: cpu_model.to_owned(),
            ..MachineDescription::default()
        };
        Baseline {
            schema: SCHEMA,
            loadline: "1".to_owned(),
            result: "r".to_owned(),
            ground: MeasurementConditions::new(
                &machine,
                &Configuration::default(),
                "GET /".to_owned(),
            ),
            starts: Vec::new(),
        }
    }

    #[test]
    fn a_directory_has_one_for_each_kind_of_host() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = BaselineLocation::from_path(place.path());
        let (one, two) = (baseline("A"), baseline("B"));
        assert_eq!(directory.read(&one.ground), Ok(None));
        fs::write(directory.file_for_ground(&one.ground), baseline_text(&one)).expect("a file");
        assert_eq!(directory.read(&one.ground), Ok(Some(one.clone())));
        let other = directory.read(&two.ground).expect("it is read");
        assert_eq!(other.as_ref(), Some(&one), "of which memory carries over");
        fs::write(directory.file_for_ground(&two.ground), baseline_text(&two)).expect("a file");
        assert_eq!(directory.read(&two.ground), Ok(Some(two)));
        assert_eq!(directory.read(&one.ground), Ok(Some(one)));
    }

    #[test]
    fn what_is_no_baseline_is_refused_and_none_is_none() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("base.json");
        let of = BaselineLocation::from_path(&file);
        let ground = baseline("A").ground;
        assert_eq!(of.read(&ground), Ok(None));
        fs::write(&file, "{}").expect("a file");
        assert!(
            of.read(&ground)
                .expect_err("it is none")
                .hint
                .contains("--accept")
        );
        let newer = Baseline {
            schema: SCHEMA + 1,
            ..baseline("A")
        };
        fs::write(&file, baseline_text(&newer)).expect("a file");
        assert!(
            of.read(&ground)
                .expect_err("it is newer")
                .why
                .contains("newer")
        );
    }
}
