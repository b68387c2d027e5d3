//! Targets whose form is deep: an input must pass a version, a checksum or a table before what is behind
//! them is reached. Each says whether that was, and a test asks it of the inputs that are kept.

use std::path::Path;

use loadline_experiment::{Experiment, ExperimentFile};
use loadline_load::histogram;
use loadline_load::parts::PartFile;
use loadline_load::profile::LoadProfile;
use loadline_protocol::log::{EventLogReader, LogEntry};
use loadline_trial::pod::append_line;

/// Whether an exported result was read: what is read is written and read again.
pub fn record(text: &str) -> bool {
    let Ok(view) = loadline_report::read(text) else {
        return false;
    };
    let again = loadline_report::read(&loadline_report::render_json(&view));
    assert!(again.is_ok(), "{:?}", again.err());
    true
}

/// Whether a load profile was read: it is written and read again as it was.
pub fn profile(text: &str) -> bool {
    let _ = PartFile::parse_part_file(text);
    let _ = histogram::decode_histogram(text);
    let Ok(profile) = LoadProfile::parse_load_profile(text) else {
        return false;
    };
    if let Ok(text) = profile.toml_text() {
        let again = LoadProfile::parse_load_profile(&text);
        assert_eq!(again.ok().as_ref(), Some(&profile));
    }
    true
}

/// Whether an event of a trial was read: an end or an error, no panic.
pub fn event_log(bytes: &[u8]) -> bool {
    loadline_trial::samples::decode_rows(bytes);
    let mut has_event = false;
    let mut log = EventLogReader::new(bytes);
    while let Ok(Some(record)) = log.next_entry() {
        match record {
            LogEntry::Piece(piece) => drop(piece.unpacked_bytes()),
            LogEntry::Event(_) => has_event = true,
        }
    }
    has_event
}

/// Whether the log of a container had an event of the trial in its lines.
pub fn pod_log(text: &str) -> bool {
    let (mut log, mut written) = (Vec::new(), 0);
    for line in text.lines() {
        if append_line(&mut log, line, &mut written).is_err() {
            break;
        }
    }
    assert_eq!(log.len() as u64, written);
    event_log(&log)
}

/// Whether an experiment came out; else the error names the file. Nothing that it names is opened.
pub fn experiment(text: &str) -> bool {
    let path = Path::new("fuzzed.toml");
    if let Err(error) = ExperimentFile::from_toml(text, path) {
        assert!(error.to_string().contains("fuzzed.toml"), "{error}");
        return false;
    }
    Experiment::from_record_text(text, path, Path::new("/")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    /// What a target begins with: its seeds, and what is kept of earlier runs.
    fn kept(name: &str, seeds: &str) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let place = tempfile::tempdir().unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("--extract").arg("--directory").arg(place.path());
        let archive = root.join(format!("fuzz/corpus/{name}.tar.gz"));
        assert!(
            unpack
                .arg("--file")
                .arg(archive)
                .status()
                .unwrap()
                .success()
        );
        let files = |directory: PathBuf| fs::read_dir(directory).unwrap().flatten();
        let all = files(root.join(seeds)).chain(files(place.path().to_owned()));
        let paths = all.map(|entry| entry.path()).filter(|path| path.is_file());
        paths.map(|path| fs::read(path).unwrap()).collect()
    }

    type Reaches = fn(&[u8]) -> bool;

    fn text(bytes: &[u8], reaches: fn(&str) -> bool) -> bool {
        std::str::from_utf8(bytes).is_ok_and(reaches)
    }

    #[test]
    fn what_is_kept_reaches_what_each_target_is_for() {
        crate::limited();
        let targets: [(&str, &str, Reaches); 5] = [
            ("record", "fuzz/seeds/record", |b| text(b, record)),
            ("profile", "fuzz/seeds/profile", |b| text(b, profile)),
            ("event_log", "fuzz/seeds/event_log", event_log),
            ("pod_log", "fuzz/seeds/pod_log", |b| text(b, pod_log)),
            ("experiment", "experiments", |b| text(b, experiment)),
        ];
        for (name, seeds, reaches) in targets {
            let inputs = kept(name, seeds);
            let deep = inputs.iter().filter(|input| reaches(input)).count();
            println!("{name}: {deep} of {} inputs", inputs.len());
            assert!(deep > 0, "{name}: none of {} inputs", inputs.len());
        }
    }
}
