//! The raw samples of a running trial on disk: which columns there are, and when they are written.
//!
//! Owns the choice of columns; the format is [`crate::samples`]'. Rows are written a chunk at a
//! time, without fsync: nothing waits for the disk while a trial measures.

use std::path::Path;

use loadline_cgroup::{MemorySample, Pressure, PressureSample, Sample};
use loadline_sizing::Bytes;

use crate::samples::{SampleError, SampleWriter};

/// Most rows of a chunk.
const ROWS: usize = 1000;

/// Most time in a chunk, ns: so much is lost at most when loadline is killed.
const CHUNK: i64 = 10_000_000_000;

/// CPUs whose usage has a column of its own; a sum of all is always there.
const MOST_CPUS: usize = 64;

/// Stands for a number that this kernel does not give, or that was not read this time.
const NONE: i64 = -1;

/// Each column's name, its unit at the end, and its value.
type Column = (&'static str, fn(&Sample) -> Option<i64>);

const COLUMNS: [Column; 18] = [
    ("at_ns", |s| Some(s.at_ns.cast_signed())),
    ("cpu_ns", |s| s.cpu.usage.map(nanos)),
    ("cpu_user_ns", |s| s.cpu.user.map(nanos)),
    ("nr_periods", |s| s.cpu.nr_periods.map(u64::cast_signed)),
    ("nr_throttled", |s| s.cpu.nr_throttled.map(u64::cast_signed)),
    ("throttled_ns", |s| s.cpu.throttled_time.map(nanos)),
    ("memory_bytes", |s| memory(s, |m| m.usage)),
    ("memory_peak_bytes", |s| memory(s, |m| m.peak)),
    ("anon_bytes", |s| memory(s, |m| m.anon)),
    ("anon_huge_bytes", |s| memory(s, |m| m.anon_huge)),
    ("file_bytes", |s| memory(s, |m| m.file)),
    ("inactive_file_bytes", |s| memory(s, |m| m.inactive_file)),
    ("refault_file", |s| {
        s.memory?.refault_file.map(u64::cast_signed)
    }),
    ("pgmajfault", |s| s.memory?.pgmajfault.map(u64::cast_signed)),
    ("cpu_some_ns", |s| some(s, |p| p.cpu)),
    ("memory_some_ns", |s| some(s, |p| p.memory)),
    ("io_some_ns", |s| some(s, |p| p.io)),
    ("tasks", |s| s.pids_current.map(u64::cast_signed)),
];

fn nanos(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn memory(sample: &Sample, get: fn(&MemorySample) -> Option<Bytes>) -> Option<i64> {
    get(&sample.memory?).map(|bytes| bytes.as_bytes().cast_signed())
}

fn some(sample: &Sample, get: fn(&PressureSample) -> Option<Pressure>) -> Option<i64> {
    get(&sample.pressure?).map(|pressure| nanos(pressure.some))
}

/// The file of one trial. Dropping it writes what is left.
pub struct SampleFile {
    writer: SampleWriter,
    rows: Vec<Vec<i64>>,
    /// Columns of single CPUs.
    cpus: usize,
}

impl SampleFile {
    /// Makes the file, with a column for the usage of each of the first `cpus` CPUs of the
    /// machine; it must not exist.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn create(path: &Path, cpus: usize) -> Result<Self, SampleError> {
        let cpus = cpus.min(MOST_CPUS);
        let single: Vec<String> = (0..cpus).map(|cpu| format!("cpu{cpu}_ns")).collect();
        let names = COLUMNS.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.chain(single.iter().map(String::as_str)).collect();
        Ok(Self {
            writer: SampleWriter::create(path, &names)?,
            rows: Vec::new(),
            cpus,
        })
    }

    /// Adds a sample.
    ///
    /// # Errors
    /// A chunk that could not be written, a full disk among others; its rows are lost.
    pub fn add(&mut self, sample: &Sample) -> Result<(), SampleError> {
        self.rows.push(row(sample, self.cpus));
        let first = self.rows.first().map_or(0, |row| row[0]);
        if self.rows.len() < ROWS && sample.at_ns.cast_signed() - first < CHUNK {
            return Ok(());
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), SampleError> {
        let rows = std::mem::take(&mut self.rows);
        self.writer.append(&rows)
    }
}

impl Drop for SampleFile {
    fn drop(&mut self) {
        // The last seconds of a trial that is over; its record does not depend on them.
        let _ = self.flush();
    }
}

fn row(sample: &Sample, cpus: usize) -> Vec<i64> {
    let value = |(_, get): &Column| get(sample).unwrap_or(NONE);
    let single = |cpu| {
        sample
            .cpu
            .usage_percpu
            .get(cpu)
            .copied()
            .map_or(NONE, nanos)
    };
    let columns = COLUMNS.iter().map(value);
    columns.chain((0..cpus).map(single)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn samples_are_read_back_with_their_units_and_gaps() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("trial.samples");
        let mut file = SampleFile::create(&path, 2).expect("it is new");
        assert!(
            SampleFile::create(&path, 2).is_err(),
            "it must not be overwritten"
        );
        for n in 0..250u64 {
            let mut sample = Sample {
                at_ns: n * 100,
                ..Sample::default()
            };
            sample.cpu.usage = Some(Duration::from_micros(n));
            sample.cpu.usage_percpu = vec![Duration::from_micros(n)];
            sample.memory = (n % 2 == 0).then(|| MemorySample {
                usage: Some(Bytes::from_kib(n)),
                ..MemorySample::default()
            });
            file.add(&sample).expect("there is space");
        }
        drop(file);
        let read = crate::samples::read(&path).expect("it is whole");
        let column = |name: &str| {
            let index = read.names.iter().position(|n| n == name);
            &read.columns[index.expect("the column is there")]
        };
        assert!(!read.is_cut);
        assert_eq!(column("at_ns").len(), 250);
        assert_eq!(column("cpu_ns")[249], 249_000);
        assert_eq!(column("cpu0_ns")[249], 249_000);
        assert!(column("cpu1_ns").iter().all(|value| *value == NONE));
        assert_eq!(column("memory_bytes")[248..], [248 * 1024, NONE]);
        assert!(column("throttled_ns").iter().all(|value| *value == NONE));
    }
}
