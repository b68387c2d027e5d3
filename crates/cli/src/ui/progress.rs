//! One line a trial: what runs, its phase, live p99 and rate; then its verdict and why.
//!
//! On a terminal the running trial is a line that changes; elsewhere only finished trials are
//! printed, one plain line each.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use loadline_analysis::record::{Configuration, Phase, Purpose, TrialRecord};
use loadline_engine::backend::{self, Observer};
use loadline_engine::session::Watcher;
use loadline_report::text::one_line as safe;

use super::text::{latency, span};
use crate::signals::Signals;

/// The progress display; also hands Ctrl-C to the engine.
pub struct Progress {
    signals: Signals,
    line: Option<ProgressBar>,
    began: Instant,
    finished: u32,
    expected: Option<u32>,
    each: Duration,
    head: String,
}

impl Progress {
    /// A display for trials of about this length; `expected` where their number is known.
    pub fn new(signals: Signals, expected: Option<u32>, each: Duration) -> Self {
        Self {
            signals,
            line: None,
            began: Instant::now(),
            finished: 0,
            expected,
            each,
            head: String::new(),
        }
    }

    fn left(&self) -> String {
        let Some(expected) = self.expected else {
            return String::new();
        };
        let each = if self.finished > 0 {
            self.began.elapsed() / self.finished
        } else {
            self.each
        };
        format!(
            ", about {} left",
            span(each * expected.saturating_sub(self.finished))
        )
    }
}

impl Observer for Progress {
    fn progress(&mut self, progress: backend::Progress) {
        let Some(line) = &self.line else { return };
        let mut text = format!(
            "{} {} {}",
            self.head,
            progress.phase,
            span(progress.elapsed)
        );
        if let Some(p99) = progress.p99 {
            text += &format!(", p99 {}", latency(p99));
        }
        if let Some(rate) = progress.rate {
            text += &format!(", {rate:.0}/s");
        }
        line.set_message(text + &self.left());
    }

    fn interrupted(&self) -> bool {
        self.signals.came()
    }
}

impl Watcher for Progress {
    fn trial_begins(
        &mut self,
        configuration: &Configuration,
        purpose: Purpose,
        repeat: u32,
        attempt: u32,
    ) {
        self.head = format!("{} {}", purpose_name(purpose), safe(&configuration.label));
        if repeat > 1 {
            self.head += &format!(" #{repeat}");
        }
        if attempt > 1 {
            self.head += &format!(" (attempt {attempt})");
        }
        if stderr().is_terminal() {
            let line = ProgressBar::new_spinner();
            // The template is a constant; a wrong one would be seen in the first run.
            line.set_style(
                ProgressStyle::with_template("{spinner} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            line.set_message(format!("{} {}", self.head, Phase::Prepare));
            line.enable_steady_tick(Duration::from_millis(120));
            self.line = Some(line);
        }
    }

    fn training_begins(&mut self, configuration: &Configuration) {
        eprintln!("{:<8} {}", "train", safe(&configuration.label));
    }

    fn trial_ends(&mut self, record: &TrialRecord, reused: bool) {
        if let Some(line) = self.line.take() {
            line.finish_and_clear();
        }
        if !reused {
            self.finished += 1;
        }
        let note = if reused { " (from the store)" } else { "" };
        eprintln!(
            "{:<8} {:<24} {:<20} {}{note}",
            purpose_name(record.purpose),
            format!("{} #{}", safe(&record.configuration.label), record.repeat),
            record.verdict,
            safe(&record.reason.to_string()),
        );
    }
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Matrix => "run",
        Purpose::Search => "search",
        Purpose::Confirm => "confirm",
        Purpose::Prove => "prove",
        Purpose::Neighbour => "below",
        Purpose::Compare => "pair",
    }
}
