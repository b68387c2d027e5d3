//! The raw samples of a trial on disk: an append-only file of framed, checksummed chunks.
//!
//! Owns the format. A chunk is written with one call and never changed; there is no fsync while
//! the trial measures, because it would disturb it. A file that was cut anywhere (kill -9, full
//! disk) is readable up to its last whole chunk. The finished file keeps this form: columns of
//! varint deltas under zstd are as small as Parquet and need no second writer.
//!
//! ```text
//! file  := "LLSF1\n" , chunk*
//! chunk := u32le length , u32le crc32(length, payload) , payload
//! payload := zstd( u16le columns , u32le rows , column* )
//! column := rows x LEB128( zigzag( value - previous ) ), previous starts at 0
//! ```
//! Column names stand in the first chunk's place as JSON: it is a chunk whose payload is the
//! JSON array of names, compressed the same way.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"LLSF1\n";
const LEVEL: i32 = 3;
/// A chunk larger than this is damage, not data.
const LARGEST_CHUNK: u32 = 64 << 20;

/// A failure to write or read samples.
#[derive(Debug, thiserror::Error)]
#[error("sample file {}: {why}", path.display())]
pub struct SampleError {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub why: String,
    /// Whether the disk was full.
    pub disk_full: bool,
}

/// Writes the samples of a running trial.
#[derive(Debug)]
pub struct SampleWriter {
    path: PathBuf,
    file: File,
    columns: usize,
}

/// Samples as they were read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// Names of the columns.
    pub names: Vec<String>,
    /// One vector a column, all of the same length.
    pub columns: Vec<Vec<i64>>,
    /// Whether the file ended inside a chunk.
    pub is_cut: bool,
}

impl SampleWriter {
    /// Makes the file; it must not exist.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn create(path: &Path, names: &[&str]) -> Result<Self, SampleError> {
        let open = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = open.map_err(|e| refuse(path, &e))?;
        let mut writer = Self {
            path: path.to_owned(),
            file,
            columns: names.len(),
        };
        let json = serde_json::to_vec(names).map_err(|e| refuse(path, &e.into()))?;
        writer.file.write_all(MAGIC).map_err(|e| refuse(path, &e))?;
        writer.frame(&json)?;
        Ok(writer)
    }

    /// Appends rows as one chunk; each row has one value a column, in the order of the names.
    ///
    /// # Errors
    /// [`SampleError`]; what was appended before stays readable.
    pub fn append(&mut self, rows: &[Vec<i64>]) -> Result<(), SampleError> {
        if rows.is_empty() {
            return Ok(());
        }
        if rows.iter().any(|row| row.len() != self.columns) {
            let why = io::Error::other(format!("a row has not {} values", self.columns));
            return Err(refuse(&self.path, &why));
        }
        self.frame(&encode(rows, self.columns))
    }

    /// Makes the file durable. Called after the measured window.
    ///
    /// # Errors
    /// [`SampleError`].
    pub fn finish(self) -> Result<(), SampleError> {
        self.file.sync_all().map_err(|e| refuse(&self.path, &e))
    }

    fn frame(&mut self, payload: &[u8]) -> Result<(), SampleError> {
        let packed = zstd::encode_all(payload, LEVEL).map_err(|e| refuse(&self.path, &e))?;
        let length =
            u32::try_from(packed.len()).map_err(|e| refuse(&self.path, &io::Error::other(e)))?;
        let mut frame = Vec::with_capacity(packed.len() + 8);
        frame.extend(length.to_le_bytes());
        frame.extend(checksum(length, &packed).to_le_bytes());
        frame.extend(packed);
        self.file
            .write_all(&frame)
            .map_err(|e| refuse(&self.path, &e))
    }
}

/// Reads a sample file; a cut or damaged tail is left out and said.
///
/// # Errors
/// [`SampleError`] when the file cannot be read or is no sample file.
pub fn read(path: &Path) -> Result<Samples, SampleError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut f| f.read_to_end(&mut bytes))
        .map_err(|e| refuse(path, &e))?;
    decode(&bytes).ok_or_else(|| {
        refuse(
            path,
            &io::Error::other("it is not a sample file of loadline"),
        )
    })
}

/// The samples in a file's bytes; `None` when they are no sample file. Never panics.
pub fn decode(bytes: &[u8]) -> Option<Samples> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let names: Vec<String> = serde_json::from_slice(&next_chunk(&mut rest)?).ok()?;
    let mut columns = vec![Vec::new(); names.len()];
    while let Some(chunk) = next_chunk(&mut rest) {
        let Some(more) = decode_columns(&chunk, names.len()) else {
            break;
        };
        for (column, more) in columns.iter_mut().zip(more) {
            column.extend(more);
        }
    }
    Some(Samples {
        names,
        columns,
        is_cut: !rest.is_empty(),
    })
}

fn next_chunk(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let (length, tail) = rest.split_first_chunk::<4>()?;
    let (crc, tail) = tail.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length);
    let payload = tail.get(..length as usize)?;
    if length > LARGEST_CHUNK || u32::from_le_bytes(*crc) != checksum(length, payload) {
        return None;
    }
    let mut unpacked = Vec::new();
    let decoder = zstd::Decoder::new(payload).ok()?;
    decoder
        .take(u64::from(LARGEST_CHUNK) * 8)
        .read_to_end(&mut unpacked)
        .ok()?;
    *rest = &tail[length as usize..];
    Some(unpacked)
}

fn checksum(length: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn encode(rows: &[Vec<i64>], columns: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * columns * 2);
    out.extend((columns as u16).to_le_bytes());
    out.extend((rows.len() as u32).to_le_bytes());
    for column in 0..columns {
        let mut previous = 0i64;
        for row in rows {
            let delta = row[column].wrapping_sub(previous);
            leb128(&mut out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
            previous = row[column];
        }
    }
    out
}

fn decode_columns(bytes: &[u8], expected: usize) -> Option<Vec<Vec<i64>>> {
    let (columns, rest) = bytes.split_first_chunk::<2>()?;
    let (rows, mut rest) = rest.split_first_chunk::<4>()?;
    let rows = u32::from_le_bytes(*rows) as usize;
    // Every value takes at least a byte, so a larger count is damage.
    if usize::from(u16::from_le_bytes(*columns)) != expected
        || rows.checked_mul(expected)? > rest.len()
    {
        return None;
    }
    let mut all = Vec::with_capacity(expected);
    for _ in 0..expected {
        let mut previous = 0i64;
        let mut column = Vec::with_capacity(rows);
        for _ in 0..rows {
            let zigzag = read_leb128(&mut rest)?;
            let delta = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
            previous = previous.wrapping_add(delta);
            column.push(previous);
        }
        all.push(column);
    }
    Some(all)
}

fn leb128(out: &mut Vec<u8>, mut value: u64) {
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

fn refuse(path: &Path, error: &io::Error) -> SampleError {
    let disk_full = error.kind() == io::ErrorKind::StorageFull;
    SampleError {
        path: path.to_owned(),
        why: error.to_string(),
        disk_full,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_codec_matches_its_published_vector() {
        let rows: Vec<Vec<i64>> = [100, 101, 99, 99, 1_000_000].map(|v| vec![v]).to_vec();
        assert_eq!(
            encode(&rows, 1)[6..],
            [0xc8, 0x01, 0x02, 0x03, 0x00, 0xba, 0x87, 0x7a]
        );
    }

    #[test]
    fn a_file_cut_at_any_byte_gives_its_whole_chunks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let mut writer = SampleWriter::create(&path, &["at_ns", "usage_ns"]).unwrap();
        let chunk = |from: i64| {
            (from..from + 50)
                .map(|i| vec![i * 1_000_000, i * i])
                .collect::<Vec<_>>()
        };
        writer.append(&chunk(0)).unwrap();
        let after_first = std::fs::metadata(&path).unwrap().len() as usize;
        writer.append(&chunk(50)).unwrap();
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap().columns[1][99], 99 * 99);
        for cut in after_first..bytes.len() {
            let samples = decode(&bytes[..cut]).unwrap();
            assert_eq!(samples.columns[0].len(), 50, "cut at {cut}");
            assert_eq!(samples.is_cut, cut != after_first);
        }
    }

    proptest! {
        #[test]
        fn any_rows_come_back(rows in prop::collection::vec(prop::collection::vec(any::<i64>(), 3), 1..60)) {
            let columns = decode_columns(&encode(&rows, 3), 3).unwrap();
            for (i, row) in rows.iter().enumerate() {
                prop_assert_eq!(row, &columns.iter().map(|c| c[i]).collect::<Vec<_>>());
            }
        }

        #[test]
        fn damage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
            if magic {
                bytes.splice(0..0, MAGIC.iter().copied());
            }
            decode(&bytes);
        }
    }
}
