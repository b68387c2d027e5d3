//! The raw samples of a trial as pieces of its event log: how rows become bytes and rows again.
//!
//! Owns the columns, their names and units. A piece can be read alone, without the earlier ones:
//!
//! ```text
//! piece  := u32le length of names , names , u32le rows , column*
//! names  := JSON array of the columns' names
//! column := rows x LEB128( zigzag( value - previous ) ), previous starts at 0
//! ```
//!
//! A reader goes by names: it skips unknown columns, and a missing one has no values. The log packs
//! pieces; columns of differences shrink to a few bytes a row.

use std::io::Read;
use std::time::Duration;

use loadline_analysis::estimate;
use loadline_cgroup::{CgroupSample, MemorySample};
use loadline_protocol::log::{ChunkContent, EventLogReader};
use loadline_sizing::Bytes;

/// Most CPUs with a separate column; the sum of all is always recorded.
const MOST_CPUS: usize = 512;

/// Stands for a number that this kernel does not give, or that was not read this time.
const NONE: i64 = -1;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleRow {
    pub at_ns: u64,
    pub cpu: Option<Duration>,
    pub per_cpu_ns: Vec<u64>,
    pub nr_periods: Option<u64>,
    pub nr_throttled: Option<u64>,
    pub throttled: Option<Duration>,
    pub memory: Option<MemorySample>,
}

impl SampleRow {
    pub fn from_sample(sample: &CgroupSample) -> Self {
        let cpu = &sample.cpu;
        let single = cpu.usage_percpu.iter().take(MOST_CPUS);
        Self {
            at_ns: sample.at_ns,
            cpu: cpu.usage,
            per_cpu_ns: single.map(|d| d.to_column().cast_unsigned()).collect(),
            nr_periods: cpu.nr_periods,
            nr_throttled: cpu.nr_throttled,
            throttled: cpu.throttled_time,
            memory: sample.memory,
        }
    }

    /// The counters that the estimators of throttling read; `None` where the kernel has no quota to
    /// account for.
    pub fn throttling_counters(&self) -> Option<estimate::CounterSample> {
        Some(estimate::CounterSample {
            at: self.at_ns,
            usage: self.cpu?.to_column().cast_unsigned(),
            per_cpu: self.per_cpu_ns.clone(),
            throttled: self.throttled?.to_column().cast_unsigned(),
        })
    }
}

/// A column: its name with the unit at the end, how a row gives its value and how it takes it.
struct SampleColumn {
    name: &'static str,
    get: fn(&SampleRow) -> Option<i64>,
    set: fn(&mut SampleRow, i64),
}

trait ColumnValue {
    fn to_column(self) -> i64;
    fn from_column(value: i64) -> Self;
}

impl ColumnValue for u64 {
    fn to_column(self) -> i64 {
        self.cast_signed()
    }

    fn from_column(value: i64) -> Self {
        value.cast_unsigned()
    }
}

impl ColumnValue for Bytes {
    fn to_column(self) -> i64 {
        self.as_bytes().cast_signed()
    }

    fn from_column(value: i64) -> Self {
        Self::from_bytes(value.cast_unsigned())
    }
}

impl ColumnValue for Duration {
    fn to_column(self) -> i64 {
        i64::try_from(self.as_nanos()).unwrap_or(i64::MAX)
    }

    fn from_column(value: i64) -> Self {
        Self::from_nanos(value.cast_unsigned())
    }
}

macro_rules! memory {
    ($name:literal, $field:ident) => {
        SampleColumn {
            name: $name,
            get: |row| row.memory?.$field.map(ColumnValue::to_column),
            set: |row, value| {
                row.memory.get_or_insert_default().$field = Some(ColumnValue::from_column(value));
            },
        }
    };
}

macro_rules! counter {
    ($name:literal, $field:ident) => {
        SampleColumn {
            name: $name,
            get: |row| row.$field.map(ColumnValue::to_column),
            set: |row, value| row.$field = Some(ColumnValue::from_column(value)),
        }
    };
}

const COLUMNS: [SampleColumn; 13] = [
    SampleColumn {
        name: "at_ns",
        get: |row| Some(row.at_ns.to_column()),
        set: |row, value| row.at_ns = value.cast_unsigned(),
    },
    counter!("cpu_ns", cpu),
    counter!("nr_periods", nr_periods),
    counter!("nr_throttled", nr_throttled),
    counter!("throttled_ns", throttled),
    memory!("memory_bytes", usage),
    memory!("memory_peak_bytes", peak),
    memory!("anon_bytes", anon),
    memory!("anon_huge_bytes", anon_huge),
    memory!("inactive_file_bytes", inactive_file),
    memory!("refault_file", refault_file),
    memory!("pgmajfault", pgmajfault),
    memory!("oom_kill", oom_kill),
];

#[derive(Debug)]
pub struct SampleRows<R> {
    log: EventLogReader<R>,
    instance: u32,
    batch: std::vec::IntoIter<SampleRow>,
}

impl<R: Read> SampleRows<R> {
    /// Of an instance, from 0.
    pub fn new(log: EventLogReader<R>, instance: u32) -> Self {
        Self {
            log,
            instance,
            batch: Vec::new().into_iter(),
        }
    }
}

impl<R: Read> Iterator for SampleRows<R> {
    type Item = SampleRow;

    fn next(&mut self) -> Option<SampleRow> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(row);
            }
            let piece = self.log.next_chunk().ok()??;
            if piece.content == ChunkContent::Samples && piece.instance == self.instance {
                self.batch = decode_rows(&piece.unpacked_bytes().ok()?)?.into_iter();
            }
        }
    }
}

pub fn encode_rows(rows: &[SampleRow]) -> Vec<u8> {
    let cpus = rows.first().map_or(0, |row| row.per_cpu_ns.len());
    let single: Vec<String> = (0..cpus).map(|cpu| format!("cpu{cpu}_ns")).collect();
    let names = COLUMNS.iter().map(|column| column.name);
    let names: Vec<&str> = names.chain(single.iter().map(String::as_str)).collect();
    // Strings are always JSON.
    let names = serde_json::to_vec(&names).unwrap_or_default();
    let mut out = Vec::with_capacity(names.len() + 8 + rows.len() * (COLUMNS.len() + cpus) * 2);
    out.extend((names.len() as u32).to_le_bytes());
    out.extend(names);
    out.extend((rows.len() as u32).to_le_bytes());
    for column in &COLUMNS {
        let values = rows.iter().map(|row| (column.get)(row).unwrap_or(NONE));
        encode_column(&mut out, values);
    }
    for cpu in 0..cpus {
        let value = |row: &SampleRow| row.per_cpu_ns.get(cpu).map_or(NONE, |ns| ns.cast_signed());
        encode_column(&mut out, rows.iter().map(value));
    }
    out
}

/// The rows of a piece; `None` when it is none. Never panics.
pub fn decode_rows(piece: &[u8]) -> Option<Vec<SampleRow>> {
    let (length, rest) = piece.split_first_chunk::<4>()?;
    let (names, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let names: Vec<String> = serde_json::from_slice(names).ok()?;
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    // Every value takes at least a byte, so a larger count is damage.
    if count.checked_mul(names.len().max(1))? > rest.len() {
        return None;
    }
    let mut rows = vec![SampleRow::default(); count];
    for name in &names {
        let known = COLUMNS.iter().find(|column| column.name == name);
        let is_cpu = name.starts_with("cpu") && name != "cpu_ns";
        let mut previous = 0i64;
        for row in &mut rows {
            let zigzag = read_leb128(&mut rest)?;
            let delta = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
            previous = previous.wrapping_add(delta);
            match known {
                _ if previous == NONE => {}
                Some(column) => (column.set)(row, previous),
                None if is_cpu => row.per_cpu_ns.push(previous.cast_unsigned()),
                None => {}
            }
        }
    }
    Some(rows)
}

fn encode_column(out: &mut Vec<u8>, values: impl Iterator<Item = i64>) {
    let mut previous = 0i64;
    for value in values {
        let delta = value.wrapping_sub(previous);
        write_leb128(out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
        previous = value;
    }
}

fn write_leb128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_leb128(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_codec_matches_its_published_vector() {
        let mut out = Vec::new();
        encode_column(&mut out, [100, 101, 99, 99, 1_000_000].into_iter());
        assert_eq!(out, [0xc8, 0x01, 0x02, 0x03, 0x00, 0xba, 0x87, 0x7a]);
    }

    #[test]
    fn samples_are_read_back_with_their_units_and_gaps() {
        let row = |n: u64| {
            let mut sample = CgroupSample {
                at_ns: n * 100,
                ..CgroupSample::default()
            };
            sample.cpu.usage = Some(Duration::from_micros(n));
            sample.cpu.usage_percpu = vec![Duration::from_micros(n), Duration::ZERO];
            sample.memory = n.is_multiple_of(2).then(|| MemorySample {
                usage: Some(Bytes::from_kib(n)),
                oom_kill: Some(1),
                ..MemorySample::default()
            });
            SampleRow::from_sample(&sample)
        };
        let rows: Vec<SampleRow> = (0..250).map(row).collect();
        let back = decode_rows(&encode_rows(&rows)).unwrap();
        assert_eq!(back, rows);
        assert_eq!(back[249].per_cpu_ns, [249_000, 0]);
        assert_eq!((back[249].memory, back[249].throttled), (None, None));
        assert_eq!(
            back[249].throttling_counters(),
            None,
            "no quota to account for"
        );
    }

    proptest! {
        #[test]
        fn any_counters_come_back(
            values in prop::collection::vec((any::<u32>(), any::<u32>(), prop::option::of(0_u64..1 << 62)), 0..60),
        ) {
            let row = |(at, cpu, periods): &(u32, u32, Option<u64>)| SampleRow {
                at_ns: u64::from(*at),
                cpu: Some(Duration::from_nanos(u64::from(*cpu))),
                nr_periods: *periods,
                ..SampleRow::default()
            };
            let rows: Vec<SampleRow> = values.iter().map(row).collect();
            prop_assert_eq!(decode_rows(&encode_rows(&rows)), Some(rows));
        }

        #[test]
        fn damage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..400), names in 0_usize..3) {
            let head = [&b"\x02\0\0\0[]"[..], b"\x09\0\0\0[\"at_ns\"]", b""][names];
            bytes.splice(0..0, head.iter().copied());
            decode_rows(&bytes);
        }
    }
}
