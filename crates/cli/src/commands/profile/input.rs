//! The logs: files, or standard input, plain or compressed.
//!
//! Owns how they are opened (gzip and zstd by their magic numbers, not their names), and the
//! reading order: by their first requests, because rotated logs are named backwards.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use loadline_load::profile::AccessLogFormat;

use crate::error::{Error, FailureKind};

pub(super) const LOGS: &str =
    "give a server's access logs, plain or compressed (gzip, zstd); - is standard input";

/// How much of a log is looked at to know its format and its first request.
const PEEK: u64 = 64 << 10;
/// RFC 1952 §2.3.1.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// RFC 8878 §3.1.1.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub struct OpenedLog {
    pub path: PathBuf,
    pub head: Vec<u8>,
    /// What follows them; `None` for a file, which is opened again.
    rest: Option<Box<dyn Read>>,
}

impl OpenedLog {
    pub fn open_log(path: &Path) -> Result<Self, Error> {
        let failed = |error| cannot_read(path, &error);
        let mut text = open_decoded(path).map_err(failed)?;
        let mut head = Vec::new();
        let read = text.by_ref().take(PEEK).read_to_end(&mut head);
        read.map_err(failed)?;
        Ok(Self {
            rest: (!is_regular_file(path)).then_some(text),
            path: path.to_owned(),
            head,
        })
    }

    /// Its text, from the first line on.
    /// Errors: When it cannot be read, or was read before and is no file.
    pub fn text_reader(&mut self) -> Result<impl io::BufRead + use<>, Error> {
        let text: Box<dyn Read> = match self.rest.take() {
            Some(rest) => Box::new(Cursor::new(std::mem::take(&mut self.head)).chain(rest)),
            None => open_decoded(&self.path).map_err(|error| cannot_read(&self.path, &error))?,
        };
        Ok(BufReader::with_capacity(1 << 20, text))
    }

    pub fn can_reread(&self) -> bool {
        is_regular_file(&self.path)
    }
}

pub fn cannot_read(path: &Path, error: &io::Error) -> Error {
    let problem = format!("cannot read {}: {error}", path.display());
    Error::new(FailureKind::of_unreadable(error), problem).with_hint(LOGS)
}

pub fn sort(logs: &mut [OpenedLog], format: &AccessLogFormat) {
    let begin = |log: &OpenedLog| format.first_arrival(&log.head).unwrap_or(f64::MIN);
    logs.sort_by(|a, b| begin(a).total_cmp(&begin(b)));
}

fn is_regular_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| there.is_file())
}

fn open_decoded(path: &Path) -> io::Result<Box<dyn Read>> {
    let mut input: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(path)?),
    };
    let mut magic = Vec::new();
    input
        .by_ref()
        .take(ZSTD.len() as u64)
        .read_to_end(&mut magic)?;
    let kind = (magic.starts_with(&GZIP), magic.starts_with(&ZSTD));
    let whole = Cursor::new(magic).chain(input);
    Ok(match kind {
        (true, _) => Box::new(MultiGzDecoder::new(whole)),
        (_, true) => Box::new(zstd::Decoder::new(whole)?),
        (false, false) => Box::new(whole),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use loadline_load::profile::LogSource;

    fn line(hour: u32) -> String {
        format!("::1 - - [10/Oct/2000:{hour:02}:00:00 +0000] \"GET /{hour} HTTP/1.1\" 200 1\n")
    }

    #[test]
    fn what_a_log_begins_with_decides_how_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let text = line(7).repeat(3000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        let gzip = gzip.finish().unwrap();
        let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
        for (name, bytes, expected) in [
            ("plain.gz", text.clone().into_bytes(), text.clone()),
            ("gzip", gzip.clone(), text.clone()),
            // Members one after the other, as rotation by concatenation leaves them.
            ("twice", [gzip.clone(), gzip].concat(), text.repeat(2)),
            ("zstd", zstd.clone(), text.clone()),
            ("zstd twice", [zstd.clone(), zstd].concat(), text.repeat(2)),
            ("short", b"x".to_vec(), "x".to_owned()),
            ("empty", Vec::new(), String::new()),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let mut log = OpenedLog::open_log(&path).unwrap();
            let shown = expected.len().min(PEEK as usize);
            assert_eq!(log.head, expected.as_bytes()[..shown], "{name}");
            for _ in 0..2 {
                let mut read = String::new();
                log.text_reader()
                    .unwrap()
                    .read_to_string(&mut read)
                    .unwrap();
                assert!(read == expected, "{name}");
            }
        }
    }

    #[test]
    fn rotated_logs_are_read_in_the_order_of_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut logs = Vec::new();
        for (name, hour) in [("access.log", 9), ("access.log.1", 8), ("access.log.2", 7)] {
            let path = folder.path().join(name);
            std::fs::write(&path, "cut off\n".to_owned() + &line(hour)).unwrap();
            logs.push(OpenedLog::open_log(&path).unwrap());
        }
        sort(&mut logs, &AccessLogFormat::common_log(LogSource::Unsaid));
        let names: Vec<_> = logs.iter().map(|log| log.path.file_name()).collect();
        let expected = ["access.log.2", "access.log.1", "access.log"];
        assert_eq!(names, expected.map(|name| Some(name.as_ref())));
    }
}
