//! The logs of a finished trial: packed and kept, because every figure in a record must be
//! derivable again from what the application wrote.
//!
//! Owns the move from a trial's scratch directory to the store, the end of the former, and reading
//! a kept log again.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use loadline_analysis::span::Span;
use loadline_files::{Directory, Refused};

use crate::backend::{instance_path, local};

const LEVEL: i32 = 3;

/// Name of the kept GC log.
const GC_LOG: &str = "gc.log.zst";

/// Longest log that is kept, bytes; a trial of minutes writes far less.
const LARGEST: u64 = 256 << 20;

/// A log that could not be kept, or a directory that could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct LogError {
    path: PathBuf,
    why: String,
}

impl LogError {
    fn left_in(self, scratch: &Path) -> Self {
        let why = format!("{}; the logs stay in {}", self.why, scratch.display());
        Self { why, ..self }
    }
}

impl From<Refused> for LogError {
    fn from(refused: Refused) -> Self {
        Self {
            path: refused.path,
            why: refused.why,
        }
    }
}

fn failed(path: &Path, source: io::Error) -> LogError {
    LogError {
        path: path.to_owned(),
        why: source.to_string(),
    }
}

/// Packs the GC log and the output of a trial into `to` and removes the scratch directory. A
/// trial without logs leaves nothing.
///
/// # Errors
/// [`LogError`]; logs that could not be packed stay where they are, because they are the evidence.
pub fn keep(scratch: &Path, to: &Path) -> Result<(), LogError> {
    let packed = pack(&local::gc_log(scratch), to, GC_LOG).and(pack(
        &local::output_log(scratch),
        to,
        "output.log.zst",
    ));
    packed.map_err(|error| error.left_in(scratch))?;
    match fs::remove_dir_all(scratch) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(scratch, e)),
        _ => Ok(()),
    }
}

/// The same for a trial of several instances; the logs of the second lie in a directory `2`.
///
/// # Errors
/// As [`keep`], the first of them.
pub fn keep_all(scratch: &Path, to: &Path, instances: u32) -> Result<(), LogError> {
    (0..instances)
        .map(|index| match index {
            0 => keep(scratch, to),
            _ => keep(
                &instance_path(scratch, index),
                &to.join((index + 1).to_string()),
            ),
        })
        .fold(Ok(()), Result::and)
}

/// On disk under a name of its own before it has the real one: a log that is there is whole, also
/// after a power loss.
fn pack(from: &Path, to: &Path, name: &str) -> Result<(), LogError> {
    let input = match File::open(from) {
        Ok(input) => input.take(LARGEST),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(from, e)),
    };
    let directory = Directory::own(to)?;
    let part = directory.part(name, 0o600, |output| {
        zstd::stream::copy_encode(input, output, LEVEL)
    })?;
    Ok(part.put()?)
}

/// The kept GC log of a trial; `None` where there is none or it cannot be read.
pub fn gc_log(kept: &Path) -> Option<String> {
    let file = File::open(kept.join(GC_LOG)).ok()?;
    let mut bytes = Vec::new();
    let decoder = zstd::Decoder::new(file).ok()?;
    decoder.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines of a log with CLOCK_MONOTONIC stamps (`[123ns]`) that tell of pauses and safepoints
/// that overlap a span: a line is written at the end of what it tells of.
pub fn lines_within(log: &str, span: Span) -> Vec<&str> {
    let tells = |line: &&str| {
        let is_pause =
            line.contains("[gc ") || line.contains("[gc]") || line.contains("[gc,phases");
        (is_pause && line.contains(" Pause ") && line.ends_with("ms"))
            || line.contains("Safepoint \"")
            || line.contains(" Stall (")
    };
    let stamp = |line: &&str| {
        let stamp = line.strip_prefix('[')?.split_once("ns]")?.0;
        stamp.parse::<u64>().ok()
    };
    // Logging takes its time: a line may come a little after the end of the pause.
    let late = span.end.saturating_add(1_000_000);
    let is_within = |line: &&str| stamp(line).is_some_and(|at| span.start < at && at <= late);
    log.lines().filter(is_within).filter(tells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_behind_a_pause_are_those_that_end_in_it() {
        let log = "\
[100000000ns][info][gc          ] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 56.205ms
[105000000ns][info][gc,start    ] GC(1) Pause Young (Normal) (G1 Evacuation Pause)
[150000000ns][info][gc          ] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 19M->11M(256M) 45.205ms
[150100000ns][info][safepoint   ] Safepoint \"G1CollectForAllocation\", Time since last: 1 ns, Total: 45300000 ns
[150200000ns][info][gc,cpu      ] GC(1) User=0.02s Sys=0.00s Real=0.06s
garbage
[990000000ns][info][safepoint   ] Safepoint \"Cleanup\", Total: 5 ns";
        let lines = lines_within(log, Span::new(101_000_000, 150_000_000));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("GC(1) Pause") && lines[1].contains("Safepoint"));
    }

    #[test]
    fn a_kept_log_is_read_again() {
        let directory = tempfile::tempdir().expect("a directory");
        assert_eq!(gc_log(directory.path()), None);
        let packed = zstd::encode_all("hello".as_bytes(), LEVEL).expect("it is packed");
        fs::write(directory.path().join(GC_LOG), packed).expect("it is written");
        assert_eq!(gc_log(directory.path()).as_deref(), Some("hello"));
    }

    #[test]
    fn logs_that_cannot_be_packed_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let (scratch, to) = (
            directory.path().join("scratch"),
            directory.path().join("to"),
        );
        let log = local::output_log(&scratch);
        fs::create_dir_all(log.parent().expect("it lies in a directory")).expect("a directory");
        fs::write(&log, "said").expect("it is written");
        // No directory can be made there.
        fs::write(&to, "in the way").expect("it is written");
        let refused = keep(&scratch, &to).expect_err("no directory").to_string();
        assert!(refused.contains("the logs stay in "), "{refused}");
        assert_eq!(fs::read_to_string(&log).expect("it is there"), "said");
        fs::remove_file(&to).expect("it was ours");
        keep(&scratch, &to).expect("nothing is in the way");
        let kept: Vec<_> = fs::read_dir(&to)
            .expect("a directory")
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(kept, ["output.log.zst"]);
        assert!(!scratch.exists());
    }
}
