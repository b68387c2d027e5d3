//! One line a trial: what runs, its phase, live p99 and rate; then its verdict and why.
//!
//! On a terminal each running trial is a line that changes, one for each slot of the host;
//! elsewhere only finished trials are printed, one plain line each.

use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use loadline_analysis::record::{Configuration, PhaseSpan, TrialPhase, TrialPurpose, TrialRecord};
use loadline_analysis::search::TrialAsk;
use loadline_protocol::TrialProgress as Figure;
use loadline_report::text::one_line as safe;
use loadline_runner::left::TimeLeft;
use loadline_runner::runner::TrialWatcher;

use super::colour;
use super::text::{format_latency, format_span};
use crate::say::{is_quiet, write_stderr};
use crate::signals::Signals;

/// A wait for a quiet machine is said this often.
const SAY_AGAIN: Duration = Duration::from_secs(30);

pub struct ProgressDisplay {
    signals: Signals,
    screen: MultiProgress,
    running: BTreeMap<usize, SlotLine>,
    began: Instant,
    left: TimeLeft,
    said_waiting: Option<Instant>,
}

struct SlotLine {
    head: String,
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
}

impl ProgressDisplay {
    pub fn new(signals: Signals, expected: Option<u32>, each: Duration) -> Self {
        Self {
            signals,
            screen: MultiProgress::new(),
            running: BTreeMap::new(),
            began: Instant::now(),
            left: TimeLeft::new(expected, each),
            said_waiting: None,
        }
    }

    fn begin_line(&mut self, slot: usize, head: String) {
        let is_shown = stderr().is_terminal() && !is_quiet();
        let bar = is_shown.then(|| {
            let bar = self.screen.add(ProgressBar::new_spinner());
            // The template is a constant; a wrong one would be seen in the first run.
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar.set_message(format!("{head} {}", TrialPhase::Prepare));
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        self.running.insert(slot, SlotLine { head, bar });
    }

    fn print_line(&self, line: &str) {
        // `suspend` panics where the terminal is gone.
        let line = colour::paint_for(&stderr(), line);
        if !is_quiet() && self.screen.clear().is_ok() {
            let write = || write_stderr(format_args!("{line}\n"));
            self.screen.suspend(write);
        }
    }

    fn time_left(&self) -> String {
        let left = self.left.remaining_at(self.began.elapsed());
        left.map_or_else(String::new, |left| {
            format!(", about {} left", format_span(left))
        })
    }
}

impl TrialWatcher for ProgressDisplay {
    fn trial_begins(&mut self, slot: usize, ask: &TrialAsk, attempt: u32) {
        let label = safe(&ask.configuration.label);
        let mut head = format!("{} {label}", purpose_name(ask.purpose));
        if ask.repeat > 1 {
            head += &format!(" #{}", ask.repeat);
        }
        if attempt > 1 {
            head += &format!(" (attempt {attempt})");
        }
        self.begin_line(slot, head);
    }

    fn training_begins(&mut self, slot: usize, configuration: &Configuration) {
        let head = format!("{:<8} {}", "train", safe(&configuration.label));
        self.print_line(&head);
        self.begin_line(slot, head);
    }

    fn slot_waits(&mut self, slot: usize, why: &str) {
        let Some(line) = self.running.get(&slot) else {
            let is_old = |said: Instant| said.elapsed() > SAY_AGAIN;
            if self.said_waiting.is_none_or(is_old) {
                self.print_line(&format!("waiting: {}", safe(why)));
                self.said_waiting = Some(Instant::now());
            }
            return;
        };
        let text = format!("{} waits: {}", line.head, safe(why));
        match &line.bar {
            Some(bar) => bar.set_message(text),
            None => self.print_line(&text),
        }
    }

    fn trial_progress(&mut self, slot: usize, figure: Figure) {
        let Some(line) = self.running.get(&slot) else {
            return;
        };
        let Some(bar) = &line.bar else { return };
        let elapsed = format_span(figure.elapsed);
        let mut text = format!("{} {} {elapsed}", line.head, figure.phase);
        if let Some(p99) = figure.p99 {
            text += &format!(", p99 {}", format_latency(p99));
        }
        if let Some(rate) = figure.rate {
            text += &format!(", {rate:.0}/s");
        }
        bar.set_message(text + &self.time_left());
    }

    fn trial_ends(&mut self, slot: Option<usize>, record: &TrialRecord) {
        match slot {
            Some(slot) => {
                self.slot_ends(slot);
                let is_measured = record.verdict.is_evidence();
                self.left.trial_ends(self.began.elapsed(), is_measured);
            }
            None => self.left.trial_found(),
        }
        let note = match slot {
            Some(_) => "",
            None => " (from the store)",
        };
        self.print_line(&format!(
            "{:<8} {:<24} {:<20} {}{note}",
            purpose_name(record.purpose),
            format!("{} #{}", safe(&record.configuration.label), record.repeat),
            record.verdict,
            safe(&record.reason.to_string()),
        ));
        if crate::say::is_verbose() {
            self.print_line(&details(record));
        }
    }

    fn slot_ends(&mut self, slot: usize) {
        if let Some(bar) = self.running.remove(&slot).and_then(|line| line.bar) {
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.signals.has_come()
    }
}

fn details(record: &TrialRecord) -> String {
    let phase = |phase: &PhaseSpan| {
        let took = Duration::from_nanos(phase.end.saturating_sub(phase.start));
        format!("{} {}, ", phase.phase, format_span(took))
    };
    let phases: String = record.evidence.phases.iter().map(phase).collect();
    let show = super::next::next_command(&format!("show {}", record.id));
    format!("{:<8} {phases}{show}", "")
}

fn purpose_name(purpose: TrialPurpose) -> &'static str {
    match purpose {
        TrialPurpose::Matrix => "run",
        TrialPurpose::Search => "search",
        TrialPurpose::Confirm => "confirm",
        TrialPurpose::Prove => "prove",
        TrialPurpose::Neighbour => "below",
        TrialPurpose::Compare => "pair",
        TrialPurpose::Soak => "soak",
        TrialPurpose::Room => "room",
        TrialPurpose::Squeeze => "squeeze",
    }
}
