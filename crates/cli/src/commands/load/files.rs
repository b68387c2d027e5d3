//! The files that `loadline load` writes.
//!
//! Owns that they never cost a result: all are opened before the load, and a file that can no
//! longer be written is skipped and reported at the end.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loadline_load::parts::PartFile;
use loadline_load::{LoadOutcome, LoadPlan, LoadSecond, clock_ns, export};

use super::{LoadArguments, pretty_json};
use crate::error::Error;
use crate::files::cannot_write;

pub(super) struct LoadFiles<'a> {
    hlog: OutputFile<'a>,
    has_hlog_head: bool,
    csv: OutputFile<'a>,
    hgrm: OutputFile<'a>,
    out: OutputFile<'a>,
}

impl<'a> LoadFiles<'a> {
    pub(super) fn create_all(arguments: &'a LoadArguments) -> Result<Self, Error> {
        let mut csv = OutputFile::create(&arguments.csv)?;
        csv.write(export::CSV_HEAD);
        Ok(Self {
            hlog: OutputFile::create(&arguments.hlog)?,
            has_hlog_head: false,
            csv,
            hgrm: OutputFile::create(&arguments.hgrm)?,
            out: OutputFile::create(&arguments.out)?,
        })
    }

    pub(super) fn write_second(&mut self, second: &LoadSecond) {
        if !self.has_hlog_head {
            self.has_hlog_head = true;
            self.hlog.write(&export::hlog_head(load_start(second)));
        }
        let offset = Duration::from_secs(second.index);
        self.hlog.write(&export::hlog_rows(offset, second));
        self.csv.write(&export::csv_rows(second));
    }

    pub(super) fn write_end(
        mut self,
        plan: &LoadPlan,
        outcome: &LoadOutcome,
        url: &str,
    ) -> Result<(), Error> {
        if self.hgrm.is_wanted() {
            let totals = &outcome.measure;
            let failed = totals.failed_requests() + totals.unfinished;
            self.hgrm.write(&export::to_hgrm(&totals.latency, failed));
        }
        if self.out.is_wanted() {
            let text = pretty_json(&PartFile::new(plan, outcome, url))?;
            self.out.write(&text);
        }
        let all = [self.hlog, self.csv, self.hgrm, self.out];
        all.into_iter()
            .try_for_each(|output| output.state.map(drop))
    }
}

fn load_start(second: &LoadSecond) -> SystemTime {
    let since_its_end = Duration::from_nanos(clock_ns().saturating_sub(second.at_ns));
    SystemTime::now() - since_its_end - second.length - Duration::from_secs(second.index)
}

struct OutputFile<'a> {
    path: &'a Path,
    state: Result<Option<File>, Error>,
}

impl<'a> OutputFile<'a> {
    fn create(path: &'a Option<PathBuf>) -> Result<Self, Error> {
        let file = path.as_deref().map(|path| {
            loadline_files::create(path).map_err(|e| {
                cannot_write(&e).with_hint("nothing was sent: files are opened before the load")
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
            self.state = Err(error.with_hint("the file is incomplete, the summary is complete"));
        }
    }
}

pub(super) fn file_failed(path: &Path, error: &std::io::Error) -> Error {
    Error::environment(format!("{}: {error}", path.display()))
}
