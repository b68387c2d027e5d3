//! Logs on disk: plain or gzip, one file or a rotated set.
//!
//! Owns the refusals (directories, empty files, other files) and the caps against gzip bombs. Opens
//! files for reading only.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use loadline_files::FileKind;

use super::lines;
use super::unified::Decorations;
use super::{GcLog, GcLogBuilder};

/// Real logs shrink to a tenth or a fiftieth; what grows more than this is no log.
const GZIP_RATIO: u64 = 250;

/// The ratio counts only above this many bytes of text.
const GZIP_FREE: u64 = 64 << 20;
const GZIP_LIMIT: u64 = 64 << 30;
const PEEK: u64 = 64 << 10;

/// JVMs rotate among at most 1000 files.
const ROTATION_DIGITS: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum GcLogError {
    #[error("cannot read the GC log {path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{path} is a directory")]
    Directory { path: PathBuf },
    #[error("{path} is empty")]
    Empty { path: PathBuf },
    #[error("{path}: no GC log of HotSpot or OpenJ9 in its {lines} lines{what}")]
    NotALog {
        path: PathBuf,
        lines: u64,
        what: String,
    },
}

const GC_LOG: &str = "a GC log";
const WRITTEN_BY: &str = "-Xlog:gc*,safepoint:file=gc.log:tn,u,l,tg:filecount=0";

impl GcLogError {
    pub fn gc_log_hint(&self) -> String {
        match self {
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => format!("the JVM writes it with {WRITTEN_BY}"),
                io::ErrorKind::PermissionDenied => {
                    "run it as the account that owns the file".to_owned()
                }
                _ => "copy the file to a disk of this machine and read the copy".to_owned(),
            },
            Self::Directory { path } => {
                format!("name the files, such as {}/gc.log*", path.display())
            }
            Self::Empty { .. } => format!("the JVM writes it with {WRITTEN_BY}"),
            Self::NotALog { path, .. } => match FileKind::other_than(path, GC_LOG) {
                Some(kind) => kind.next_step(path),
                None => format!(
                    "the JVM writes one with {WRITTEN_BY} (JDK 8: -Xloggc:gc.log -XX:+PrintGCDetails, OpenJ9: -Xverbosegclog:gc.log)"
                ),
            },
        }
    }
}

/// Reads one log: a file, or the files of a rotated set in any order. Errors: When a file cannot be
/// read at all, or contains no part of a GC log. A truncated or damaged log is no error:
/// [`super::GcLogInput`] reports the gaps.
pub fn read(paths: &[PathBuf], keep: usize) -> Result<GcLog, GcLogError> {
    let mut builder = GcLogBuilder::new(keep);
    for path in in_order(paths)? {
        builder.read(open_log(&path)?);
    }
    let log = builder.finish_log();
    if log.input.is_gc_log {
        return Ok(log);
    }
    let path = paths.first().cloned().unwrap_or_default();
    if log.input.counts.bytes == 0 && log.input.stopped.is_none() {
        return Err(GcLogError::Empty { path });
    }
    Err(GcLogError::NotALog {
        what: resemblance(&path, &log),
        path,
        lines: log.input.counts.lines,
    })
}

/// Groups files into logs: files that differ only in a rotation number (`gc.log`, `gc.log.0`,
/// `gc.log.1.current`, `gc.log.2.gz`) are one log. Keeps the order of the first files.
pub fn group_files(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<(PathBuf, Vec<PathBuf>)> = Vec::new();
    for path in paths {
        let stem = stem(path);
        match groups.iter_mut().find(|(known, _)| *known == stem) {
            Some((_, group)) if group.contains(path) => {}
            Some((_, group)) => group.push(path.clone()),
            None => groups.push((stem, vec![path.clone()])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The name without `.gz`, `.current` and a rotation number. A longer number is a process id
/// (`gc.log.%p`): another JVM's log.
fn stem(path: &Path) -> PathBuf {
    let name = path.to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let name = name.strip_suffix(".current").unwrap_or(name);
    let stem = match name.rsplit_once('.') {
        Some((stem, number))
            if (1..=ROTATION_DIGITS).contains(&number.len())
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            stem
        }
        _ => name,
    };
    PathBuf::from(stem)
}

/// Files of a set by the time of their first line: the number of the oldest one varies. A file
/// without a time goes last.
fn in_order(paths: &[PathBuf]) -> Result<Vec<PathBuf>, GcLogError> {
    if paths.len() < 2 {
        return Ok(paths.to_vec());
    }
    let mut dated = Vec::new();
    for path in paths {
        dated.push((first_time(open_log(path)?), path.clone()));
    }
    // The clocks do not mix: only a clock that all files have can order them.
    let clocks: [fn(&super::LogTime) -> Option<i128>; 3] = [
        |at| at.monotonic_ns.map(i128::from),
        |at| at.unix_ms.map(i128::from),
        |at| at.uptime_ns.map(i128::from),
    ];
    let common = clocks.into_iter().find(|clock| {
        dated
            .iter()
            .all(|(at, _)| at.as_ref().and_then(clock).is_some())
    });
    if let Some(clock) = common {
        dated.sort_by_key(|(at, _)| at.as_ref().and_then(clock));
    } else {
        dated.sort_by_key(|(at, path)| (at.is_none(), path.clone()));
    }
    Ok(dated.into_iter().map(|(_, path)| path).collect())
}

fn first_time(reader: impl Read) -> Option<super::LogTime> {
    let mut found = None;
    let mut counts = lines::LineCounts::default();
    // A file that cannot be read here is reported when it is read for good.
    let _ = lines::for_each(reader.take(PEEK), &mut counts, |line| {
        if found.is_none() {
            let line = &*loadline_files::unframe_line(line);
            let at = Decorations::split_line(line).map(|(decorations, _)| decorations.at);
            let at = at.or_else(|| super::openj9::time_of(line));
            let at = at.unwrap_or_else(|| super::classic::time_of(line));
            found = Some(at).filter(|at| *at != super::LogTime::default());
        }
    });
    found
}

fn open_log(path: &Path) -> Result<Box<dyn Read>, GcLogError> {
    let unreadable = |source| GcLogError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(GcLogError::Directory {
            path: path.to_owned(),
        });
    }
    let mut magic = Vec::with_capacity(2);
    (&mut file)
        .take(2)
        .read_to_end(&mut magic)
        .map_err(unreadable)?;
    let is_gzip = magic == [0x1f, 0x8b];
    // Not by seeking: the log may come through a pipe.
    let whole = io::Cursor::new(magic).chain(file);
    Ok(if is_gzip {
        Box::new(GzipReader::new(whole))
    } else {
        Box::new(whole)
    })
}

struct GzipReader<R: Read> {
    decoder: MultiGzDecoder<CountingReader<R>>,
    produced: u64,
}

struct CountingReader<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<R: Read> GzipReader<R> {
    fn new(inner: R) -> Self {
        Self {
            decoder: MultiGzDecoder::new(CountingReader { inner, bytes: 0 }),
            produced: 0,
        }
    }
}

impl<R: Read> Read for GzipReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(into)?;
        self.produced += read as u64;
        let consumed = self.decoder.get_ref().bytes;
        let grows = self.produced > GZIP_FREE && self.produced / GZIP_RATIO > consumed;
        if grows || self.produced > GZIP_LIMIT {
            return Err(io::Error::other(format!(
                "the gzip stream grows from {consumed} to over {} bytes, which no log does",
                self.produced
            )));
        }
        Ok(read)
    }
}

fn resemblance(path: &Path, log: &GcLog) -> String {
    if let Some(why) = &log.input.stopped {
        return format!("; reading stopped: {why}");
    }
    let mut begin = Vec::new();
    // A pipe cannot be read twice.
    if path.is_file()
        && let Ok(reader) = open_log(path)
    {
        // Nothing to say about a file that cannot be read twice.
        let _ = reader.take(4096).read_to_end(&mut begin);
    }
    let has = |text: &[u8]| memchr::memmem::find(&begin, text).is_some();
    let what = if has(b"<af ") || has(b"<GC(") {
        "; it is a log of IBM's JVM before J9 2.6, which loadline does not read"
    } else if has(b"[memory ]") || has(b"[memory  ]") {
        "; it is a log of JRockit, which loadline does not read"
    } else {
        let kind = FileKind::other_than(path, GC_LOG);
        return kind.map_or_else(String::new, |kind| format!("; it is {}", kind.name));
    };
    what.to_owned()
}

#[cfg(test)]
mod tests;
