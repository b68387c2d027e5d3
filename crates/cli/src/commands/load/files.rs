//! The files that `loadline load` writes.
//!
//! Owns that no result is lost with them: all are opened before the load, and one that cannot be
//! written any more is left alone and told of at the end.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loadline_load::parts::PartFile;
use loadline_load::{Outcome as LoadOutcome, Plan, Second, export, now_ns};

use super::{Arguments, json};
use crate::error::{Error, ErrorKind};
use crate::files::cannot_write;

/// The files asked for.
pub(super) struct Files<'a> {
    hlog: Output<'a>,
    has_hlog_head: bool,
    csv: Output<'a>,
    hgrm: Output<'a>,
    out: Output<'a>,
}

impl<'a> Files<'a> {
    /// Opens all of them, empty.
    pub(super) fn create(arguments: &'a Arguments) -> Result<Self, Error> {
        let mut csv = Output::create(&arguments.csv)?;
        csv.write(export::CSV_HEAD);
        Ok(Self {
            hlog: Output::create(&arguments.hlog)?,
            has_hlog_head: false,
            csv,
            hgrm: Output::create(&arguments.hgrm)?,
            out: Output::create(&arguments.out)?,
        })
    }

    /// Writes what there is of each second.
    pub(super) fn second(&mut self, second: &Second) {
        if !self.has_hlog_head {
            self.has_hlog_head = true;
            self.hlog.write(&export::hlog_head(start(second)));
        }
        let offset = Duration::from_secs(second.index);
        self.hlog.write(&export::hlog_rows(offset, second));
        self.csv.write(&export::csv_rows(second));
    }

    /// Writes what there is at the end; an error of any file.
    pub(super) fn finish(
        mut self,
        plan: &Plan,
        outcome: &LoadOutcome,
        url: &str,
    ) -> Result<(), Error> {
        if self.hgrm.is_wanted() {
            let totals = &outcome.measure;
            let failed = totals.failed() + totals.unfinished;
            self.hgrm.write(&export::hgrm(&totals.latency, failed));
        }
        if self.out.is_wanted() {
            let text = json(&PartFile::new(plan, outcome, url))?;
            self.out.write(&text);
        }
        let all = [self.hlog, self.csv, self.hgrm, self.out];
        all.into_iter()
            .try_for_each(|output| output.state.map(drop))
    }
}

/// When the load began that a second belongs to: connecting and waiting for `--start-at` are over.
fn start(second: &Second) -> SystemTime {
    let since_its_end = Duration::from_nanos(now_ns().saturating_sub(second.at_ns));
    SystemTime::now() - since_its_end - second.length - Duration::from_secs(second.index)
}

/// A file that may be written, or was not asked for, or has failed.
struct Output<'a> {
    path: &'a Path,
    state: Result<Option<File>, Error>,
}

impl<'a> Output<'a> {
    fn create(path: &'a Option<PathBuf>) -> Result<Self, Error> {
        let file = path.as_deref().map(|path| {
            loadline_files::create(path).map_err(|e| {
                cannot_write(&e).hint("nothing was sent: files are opened before the load")
            })
        });
        Ok(Self {
            path: path.as_deref().unwrap_or(Path::new("")),
            state: Ok(file.transpose()?),
        })
    }

    fn is_wanted(&self) -> bool {
        matches!(self.state, Ok(Some(_)))
    }

    fn write(&mut self, text: &str) {
        let Ok(Some(file)) = &mut self.state else {
            return;
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            let error = file_failed(self.path, &error);
            self.state = Err(error.hint("the file is not complete; the summary is"));
        }
    }
}

pub(super) fn file_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::new(
        ErrorKind::Environment,
        format!("{}: {error}", path.display()),
    )
}
