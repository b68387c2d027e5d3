//! The bytes of a result file, line by line or record by record, bounded.
//!
//! A tool that was killed may have cut its last line: it is left out, whatever it says.

use std::io::{BufRead, Read};

use super::book::ReportBook;
use crate::csv::CsvRecord;
use crate::error::LoadError;

/// Longest line, in bytes; those of vegeta hold whole answers.
pub(super) const MOST_LINE: u64 = 4 << 20;

pub(super) fn refuse_results(why: impl Into<String>) -> LoadError {
    LoadError::plan("results", why)
}

pub(super) struct ReportInput<'a> {
    pub(super) text: &'a mut dyn BufRead,
    /// Where its requests are counted.
    pub(super) book: ReportBook,
    lines: u64,
}

impl<'a> ReportInput<'a> {
    pub(super) fn new(text: &'a mut dyn BufRead, book: ReportBook) -> Self {
        let lines = 0;
        Self { text, book, lines }
    }

    /// Appends bytes up to this one, which is left out; `false` at the end of the file.
    pub(super) fn append_until(&mut self, end: u8, piece: &mut Vec<u8>) -> Result<bool, LoadError> {
        let mut bounded = Read::take(&mut *self.text, MOST_LINE);
        let read = bounded.read_until(end, piece);
        read.map_err(|error| refuse_results(format!("it cannot be read: {error}")))?;
        self.lines += 1;
        if piece.last() == Some(&end) {
            piece.pop();
            return Ok(true);
        }
        match bounded.limit() {
            0 => Err(self.damage("is longer than 4 MiB; leave answers out (vegeta: -max-body=0)")),
            _ => Ok(false),
        }
    }

    pub(super) fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool, LoadError> {
        line.clear();
        let is_whole = self.append_until(b'\n', line)?;
        line.pop_if(|last| *last == b'\r');
        Ok(is_whole)
    }

    /// Hands each line that is not blank over. Errors: A line that is not taken (`None`).
    pub(super) fn each_line(
        &mut self,
        mut take: impl FnMut(&[u8], &mut ReportBook) -> Option<()>,
    ) -> Result<(), LoadError> {
        let mut line = Vec::new();
        while self.next_line(&mut line)? {
            if !line.trim_ascii().is_empty() && take(&line, &mut self.book).is_none() {
                return Err(
                    self.damage("is not a row of its format; did something else write there?")
                );
            }
        }
        Ok(())
    }

    /// The same for records of CSV (RFC 4180), which may have line breaks in quotes.
    pub(super) fn each_record(
        &mut self,
        mut take: impl FnMut(&CsvRecord, &mut ReportBook) -> Option<()>,
    ) -> Result<(), LoadError> {
        let (mut record, mut open) = (CsvRecord::default(), Vec::new());
        let mut is_open = false;
        self.each_line(|line, book| {
            open.extend_from_slice(line);
            is_open ^= line.iter().filter(|b| **b == b'"').count() % 2 == 1;
            if is_open && (open.len() as u64) < MOST_LINE {
                open.push(b'\n');
                return Some(());
            }
            record.split_line(&open);
            open.clear();
            is_open = false;
            take(&record, book)
        })
    }

    pub(super) fn damage(&self, what: &str) -> LoadError {
        refuse_results(format!("line {} {what}", self.lines))
    }
}
