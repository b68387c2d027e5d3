//! Responses in a log: by class and status, with number, delay and size.
//!
//! Owns the counts for a stub. Every method counts: a stub changes nothing. The number of distinct
//! classes bounds the memory.

use std::collections::BTreeMap;

use super::line::AccessLogLine;
use crate::histogram::{self, Histogram};

/// Most distinct classes with a status: about 150 KB each.
const MOST: usize = 500;

#[derive(Debug, Clone, PartialEq)]
pub struct ClassAnswers {
    pub class: String,
    pub status: u16,
    pub requests: u64,
    /// Mean length of the body, bytes; 0 where the log does not say.
    pub mean_bytes: u64,
    /// How late, ns; empty where the log does not say.
    pub durations: Histogram,
}

#[derive(Debug, Default)]
pub(super) struct AnswerCounter {
    all: BTreeMap<(Vec<u8>, u16), AnswerCount>,
    left_out: u64,
}

#[derive(Debug)]
struct AnswerCount {
    requests: u64,
    bytes: u64,
    durations: Histogram,
}

impl AnswerCounter {
    pub(super) fn count_answer(&mut self, class: &[u8], line: &AccessLogLine<'_>) {
        let Some(status) = line.status.filter(|status| (200..600).contains(status)) else {
            self.left_out += 1;
            return;
        };
        let key = (class.to_vec(), status);
        if self.all.len() >= MOST && !self.all.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let counted = self.all.entry(key).or_insert_with(|| AnswerCount {
            requests: 0,
            bytes: 0,
            durations: histogram::growing_histogram(),
        });
        counted.requests += 1;
        counted.bytes = counted.bytes.saturating_add(line.bytes.unwrap_or(0));
        if let Some(ns) = line.duration_ns {
            histogram::record_value(&mut counted.durations, ns.max(1));
        }
    }

    /// All classes, and the number of requests without one. Classes with a query come first,
    /// because a class without one also matches their requests; then the most frequent.
    pub(super) fn into_answers(self) -> (Vec<ClassAnswers>, u64) {
        let of = |((class, status), counted): ((Vec<u8>, u16), AnswerCount)| ClassAnswers {
            class: String::from_utf8_lossy(&class).into_owned(),
            status,
            requests: counted.requests,
            mean_bytes: counted.bytes / counted.requests.max(1),
            durations: counted.durations,
        };
        let mut all: Vec<ClassAnswers> = self.all.into_iter().map(of).collect();
        all.sort_by_key(|seen| (!seen.class.contains('?'), u64::MAX - seen.requests));
        (all, self.left_out)
    }
}
