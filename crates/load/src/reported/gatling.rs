//! Gatling's binary simulation.log: requests with begin and end in ms since the run began.
//!
//! Source: gatling-core, `LogFileDataWriter.scala` of 3.14, and a log of 3.14.3. Gatling promises
//! nothing about the layout, so another version is refused. Numbers are big-endian; a name comes
//! whole once and has a number from then on. The log is cut where Gatling was killed.

use std::collections::HashMap;
use std::io::Read;

use super::book::{ReportedRow, RowTime};
use super::input::{ReportInput, refuse_results};
use crate::error::LoadError;

const VERSION: &str = "3.14.";

/// Longest string, and all names together, in bytes.
const MOST_STRING: usize = 1 << 20;
const MOST_NAMES: usize = 16 << 20;
/// What an empty name takes.
const ENTRY: usize = 64;

/// Scenarios, assertions, and groups in each other.
const MOST_ITEMS: i32 = 10_000;

pub(super) fn is_log(head: &[u8]) -> bool {
    matches!(head, [0, 0, 0, 0, 3..=20, b'1'..=b'9', ..])
}

/// Why a log is read no further.
enum LogStop {
    /// It is over or cut.
    End,
    /// No log of this version has that.
    Damage,
}

struct LogReader<'a, 'b> {
    input: &'a mut ReportInput<'b>,
    names: HashMap<i32, Vec<u8>>,
    held: usize,
}

impl LogReader<'_, '_> {
    fn read_bytes<const N: usize>(&mut self) -> Result<[u8; N], LogStop> {
        let mut bytes = [0; N];
        let read = self.input.text.read_exact(&mut bytes);
        read.map(|()| bytes).map_err(|_| LogStop::End)
    }

    fn read_int(&mut self) -> Result<i32, LogStop> {
        self.read_bytes().map(i32::from_be_bytes)
    }

    fn read_count(&mut self) -> Result<i32, LogStop> {
        let count = self.read_int()?;
        let is_sane = (0..=MOST_ITEMS).contains(&count);
        is_sane.then_some(count).ok_or(LogStop::Damage)
    }

    fn read_blob(&mut self) -> Result<Vec<u8>, LogStop> {
        let length = usize::try_from(self.read_int()?).map_err(|_| LogStop::Damage)?;
        if length > MOST_STRING {
            return Err(LogStop::Damage);
        }
        let mut bytes = Vec::new();
        let mut part = Read::take(&mut *self.input.text, length as u64);
        match part.read_to_end(&mut bytes) {
            Ok(read) if read == length => Ok(bytes),
            _ => Err(LogStop::End),
        }
    }

    /// A string of the JVM: Latin-1, or two bytes for each character.
    fn read_string(&mut self) -> Result<Vec<u8>, LogStop> {
        let bytes = self.read_blob()?;
        if bytes.is_empty() {
            return Ok(bytes);
        }
        let [coder] = self.read_bytes()?;
        let wide = bytes
            .chunks_exact(2)
            .map(|two| u16::from(two[1]) << 8 | u16::from(two[0]));
        let text: String = match coder {
            0 => bytes.iter().copied().map(char::from).collect(),
            _ => char::decode_utf16(wide).map(|c| c.unwrap_or('?')).collect(),
        };
        Ok(text.into_bytes())
    }

    fn read_name(&mut self) -> Result<i32, LogStop> {
        let number = self.read_int()?;
        if number < 0 {
            return Ok(number.saturating_neg());
        }
        let name = self.read_string()?;
        self.held += name.len() + ENTRY;
        if self.held > MOST_NAMES {
            Err(LogStop::Damage)
        } else {
            self.names.insert(number, name);
            Ok(number)
        }
    }

    fn read_groups(&mut self) -> Result<(), LogStop> {
        (0..self.read_count()?).try_for_each(|_| self.read_name().map(drop))
    }

    /// When the run began, ms since 1970.
    fn read_head(&mut self) -> Result<i64, LogStop> {
        self.read_string()?;
        let begin = self.read_bytes().map(i64::from_be_bytes)?;
        self.read_string()?;
        (0..self.read_count()?).try_for_each(|_| self.read_string().map(drop))?;
        (0..self.read_count()?).try_for_each(|_| self.read_blob().map(drop))?;
        Ok(begin)
    }

    fn read_record(&mut self, begin: i64) -> Result<(), LogStop> {
        match self.read_bytes()? {
            [1] => {
                self.read_groups()?;
                let name = self.read_name()?;
                let (start, end) = (self.read_int()?, self.read_int()?);
                let [is_ok] = self.read_bytes()?;
                self.read_name()?;
                let name = self.names.get(&name).ok_or(LogStop::Damage)?;
                self.input.book.count_row(&ReportedRow {
                    at: RowTime::Unix((begin as f64 + f64::from(start)) / 1e3),
                    latency: (f64::from(end) - f64::from(start)) / 1e3,
                    is_ok: is_ok == 1,
                    name,
                });
            }
            // A user.
            [2] => drop(self.read_bytes::<9>()?),
            [3] => {
                self.read_groups()?;
                self.read_bytes::<13>()?;
            }
            [4] => {
                self.read_name()?;
                self.read_int()?;
            }
            _ => return Err(LogStop::Damage),
        }
        Ok(())
    }
}

pub(super) fn read_log(input: &mut ReportInput<'_>) -> Result<(), LoadError> {
    let mut log = LogReader {
        input,
        names: HashMap::new(),
        held: 0,
    };
    let damaged = || refuse_results("it is a damaged log of Gatling; has only one run written it?");
    let version = log.read_bytes::<1>().and_then(|_| log.read_string());
    let version = version.map_err(|_| damaged())?;
    let version = String::from_utf8_lossy(&version).into_owned();
    if !version.starts_with(VERSION) {
        return Err(refuse_results(format!(
            "it is a log of Gatling {version:?}, loadline reads 3.14; let the simulation write lines such as {{\"time\": 1795738504.25, \"latency\": 0.0123, \"ok\": true}}"
        )));
    }
    let mut read = log.read_head().and_then(|begin| {
        loop {
            log.read_record(begin)?;
        }
    });
    match &mut read {
        Ok(()) | Err(LogStop::End) => Ok(()),
        Err(LogStop::Damage) => Err(damaged()),
    }
}
