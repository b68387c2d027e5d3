//! The files that `loadline load` writes.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loadline_load::{Second, export};

use super::Arguments;
use crate::error::{Error, Kind};

/// Files that get a row a second.
pub(super) struct Files<'a> {
    hlog: Option<(&'a Path, File)>,
    csv: Option<(&'a Path, File)>,
}

impl<'a> Files<'a> {
    pub(super) fn create(arguments: &'a Arguments) -> Result<Self, Error> {
        let open = |path: &'a Option<PathBuf>, head: &str| {
            path.as_deref()
                .map(|path| {
                    let mut file = create(path)?;
                    write_to(path, &mut file, head)?;
                    Ok((path, file))
                })
                .transpose()
        };
        Ok(Self {
            hlog: open(&arguments.hlog, &export::hlog_head(SystemTime::now()))?,
            csv: open(&arguments.csv, export::CSV_HEAD)?,
        })
    }

    pub(super) fn second(&mut self, second: &Second) -> Result<(), Error> {
        if let Some((path, file)) = &mut self.hlog {
            let offset = Duration::from_secs(second.index);
            write_to(path, file, &export::hlog_row(offset, second))?;
        }
        if let Some((path, file)) = &mut self.csv {
            write_to(path, file, &export::csv_row(second))?;
        }
        Ok(())
    }
}

pub(super) fn create(path: &Path) -> Result<File, Error> {
    File::create(path).map_err(|e| file_failed(path, &e))
}

pub(super) fn write_to(path: &Path, file: &mut File, text: &str) -> Result<(), Error> {
    file.write_all(text.as_bytes())
        .map_err(|e| file_failed(path, &e))
}

pub(super) fn file_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::Environment, format!("{}: {error}", path.display()))
}
