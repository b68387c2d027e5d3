//! The statement of `verify`: whether the shipped size still holds, by how much, and its headroom.
//!
//! Owns its words and forms (terminal, Markdown of at most a screen, JSON). Judges nothing:
//! [`loadline_analysis::search::verify`] has the answer.

use std::fmt::Write;

use loadline_analysis::baseline::{self, Baseline, StartFigures};
use loadline_analysis::interval::{failure_upper_bound, median};
use loadline_analysis::margin::default_margin;
use loadline_analysis::proof::{CONFIDENCE, could_still};
use loadline_analysis::record::{Configuration, TrialRecord, TrialVerdict};
use loadline_analysis::search::verify::{SloStanding, VerifyOutcome};
use loadline_analysis::shift::{FigureShift, ShiftStanding};
use loadline_analysis::text::join_words;
use loadline_sizing::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::content::{dependencies, peak};
use crate::figures::unique;
use crate::redact::redact_line;
use crate::{format, text};

/// A size is too large if this share could go and a margin would remain.
const TOO_WELL: f64 = 0.20;

/// Everything that is said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerifyStatement {
    /// The result with the trials.
    pub result: String,
    /// What is shipped, in words.
    pub size: String,
    /// `holds`, `slo_missed`, `worse` or `not_measured`.
    pub answer: VerifyAnswer,
    /// The answer in a sentence.
    pub sentence: String,
    /// Starts that could be measured.
    pub starts: usize,
    /// Starts that kept the SLO.
    pub kept: usize,
    /// With 95 % confidence the probability of a failing start is below this, in [0, 1].
    pub failure_upper_bound: f64,
    /// Missed objectives with their measured values; each text once.
    pub missed: Vec<String>,
    /// CPU time a request, in seconds.
    pub cpu_per_request_s: BaselineFigure,
    /// Memory that it cannot do without, in bytes.
    pub memory_bytes: BaselineFigure,
    /// The headroom.
    pub headroom: Headroom,
    /// Whether a smaller size should do; `None` if unknown.
    pub holds_too_well: Option<bool>,
    /// What the starts showed at the peak; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak: Option<String>,
    /// Which dependencies the starts share; absent where each had fresh ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyAnswer {
    /// The SLO is kept, and nothing rose against the baseline.
    Holds,
    /// The SLO is not kept.
    SloMissed,
    /// The SLO is kept, and a figure rose.
    Worse,
    /// Too many starts could not be measured.
    NotMeasured,
}

/// A figure next to the baseline's; medians of the starts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct BaselineFigure {
    /// Of today.
    pub now: Option<f64>,
    /// Of the baseline.
    pub before: Option<f64>,
    /// Now over before.
    pub ratio: Option<f64>,
    /// Lower and upper end of what it may be.
    pub interval: Option<[f64; 2]>,
    /// Whether it rose; `None` where it was not compared, or the starts did not decide.
    pub rose: Option<bool>,
    /// Why it was not compared.
    pub not_compared: Option<String>,
}

/// Unused part of the limits, as shares.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Headroom {
    /// Share of the memory limit beyond unreclaimable memory.
    pub memory: Option<f64>,
    /// The same of the baseline.
    pub memory_before: Option<f64>,
    /// Of the CPU limit, on average over the measure phase.
    pub cpu: Option<f64>,
    /// The same of the baseline.
    pub cpu_before: Option<f64>,
    /// Requests a second at which the CPU limit would be full at today's CPU time a request;
    /// computed, not measured: latency breaks before.
    pub full_rate_per_second: Option<f64>,
    /// The same of the baseline.
    pub full_rate_before_per_second: Option<f64>,
}

impl VerifyStatement {
    pub fn new(
        result: &str,
        size: String,
        configuration: &Configuration,
        verified: &VerifyOutcome,
        baseline: Option<&Baseline>,
    ) -> Self {
        let starts = &verified.starts;
        let kept = starts.iter().filter(|s| s.kept).count();
        let before = baseline.map_or(&[][..], |b| &b.starts);
        let answer = match verified.slo {
            SloStanding::NotMeasured => VerifyAnswer::NotMeasured,
            SloStanding::Broken => VerifyAnswer::SloMissed,
            // A rise ends it before the SLO is decided.
            SloStanding::Holds | SloStanding::Open if verified.has_risen() => VerifyAnswer::Worse,
            SloStanding::Holds => VerifyAnswer::Holds,
            SloStanding::Open => VerifyAnswer::NotMeasured,
        };
        let why = |unlike: &Option<String>| match baseline {
            Some(_) => unlike.clone(),
            None => Some("there is no baseline".to_owned()),
        };
        let compared = |of: fn(&[StartFigures]) -> Vec<f64>, shift: Option<FigureShift>, unlike| {
            BaselineFigure {
                now: median(&of(starts)),
                before: median(&of(before)),
                ratio: shift.map(|s| s.ratio.estimate),
                interval: shift.map(|s| [s.ratio.low, s.ratio.high]),
                rose: shift.and_then(|s| match s.standing {
                    ShiftStanding::Rose => Some(true),
                    ShiftStanding::Held => Some(false),
                    ShiftStanding::Open => None,
                }),
                not_compared: why(unlike),
            }
        };
        let headroom = headroom(configuration, starts, baseline);
        // The share that could go if only the need and a margin remained.
        let spare = |left: f64| left - default_margin() / (1.0 + default_margin());
        let left = headroom.memory.filter(|_| answer == VerifyAnswer::Holds);
        let unlike = &verified.unlike;
        let trials = || verified.trials.iter().map(AsRef::as_ref);
        let failures = (starts.len() - kept) as u64;
        let mut statement = Self {
            result: result.to_owned(),
            size,
            answer,
            sentence: String::new(),
            starts: starts.len(),
            kept,
            failure_upper_bound: failure_upper_bound(failures, starts.len() as u64, CONFIDENCE),
            missed: missed_reasons(&verified.trials),
            cpu_per_request_s: compared(baseline::cpu_per_request, verified.cpu, &unlike.cpu),
            memory_bytes: compared(baseline::memory_needs, verified.memory, &unlike.memory),
            holds_too_well: left.map(|left| spare(left) > TOO_WELL),
            headroom,
            peak: peak::starts_sentence(trials()),
            shared: dependencies::shared_sentence(trials()),
        };
        statement.sentence = statement.answer_sentence(baseline.is_some());
        statement
    }

    fn answer_sentence(&self, is_known: bool) -> String {
        let size = &self.size;
        let keeps = if is_known {
            "no longer keeps"
        } else {
            "does not keep"
        };
        let of = format!("{} of {} starts", self.kept, self.starts);
        match self.answer {
            VerifyAnswer::Holds => format!("{size} holds: {of} kept the SLO."),
            VerifyAnswer::SloMissed => match self.missed.first() {
                Some(why) => format!("{size} {keeps} the SLO: {of} kept it; {why}."),
                None => format!("{size} {keeps} the SLO: {of} kept it."),
            },
            VerifyAnswer::Worse => {
                let rose = join_words(self.risen_figures(), ", and ");
                format!("{size} costs more: {rose}; {of} kept the SLO.")
            }
            VerifyAnswer::NotMeasured => {
                let starts = self.starts;
                format!("{size} could not be measured: only {starts} starts could.")
            }
        }
    }

    fn risen_figures(&self) -> impl Iterator<Item = String> {
        let figures = [
            ("CPU time a request", &self.cpu_per_request_s),
            ("the memory it needs", &self.memory_bytes),
        ];
        figures.into_iter().filter_map(|(name, compared)| {
            let by = signed_change(compared)?;
            (compared.rose == Some(true)).then(|| format!("{name} rose by {by}"))
        })
    }

    fn table_rows(&self) -> Vec<[String; 4]> {
        let cpu = |v: f64| {
            let time = std::time::Duration::try_from_secs_f64(v).ok();
            format::time_or(time)
        };
        let memory = |v: f64| format::measured_bytes(Bytes::from_bytes(v.max(0.0) as u64));
        let row = |name: &str, compared: &BaselineFigure, show: &dyn Fn(f64) -> String| {
            let shown = |v: Option<f64>| format::or_none(v.map(show));
            let (rose, by) = (compared.rose, signed_change(compared));
            let word = match (rose, by, &compared.not_compared) {
                (_, _, Some(why)) => format!("not compared: {}", text::one_line(why)),
                (Some(true), Some(by), _) => format!("more: {by}"),
                (Some(false), Some(by), _) => format!("no rise shown: {by}"),
                (None, Some(by), _) => format!("the starts do not decide: {by}"),
                _ => "too few starts".to_owned(),
            };
            let (now, before) = (shown(compared.now), shown(compared.before));
            [name.to_owned(), now, before, word]
        };
        let left = &self.headroom;
        let plain = |name: &str, values: [Option<f64>; 2], show: fn(f64) -> String, word: &str| {
            let [now, before] = values.map(|value| format::or_none(value.map(show)));
            [name.to_owned(), now, before, word.to_owned()]
        };
        let memory_left = [left.memory, left.memory_before];
        let cpu_left = [left.cpu, left.cpu_before];
        let full = [left.full_rate_per_second, left.full_rate_before_per_second];
        let percent = format::as_percent;
        let computed = "computed; latency breaks before";
        let rows = [
            row("CPU time a request", &self.cpu_per_request_s, &cpu),
            row("Memory it needs", &self.memory_bytes, &memory),
            plain("Memory left", memory_left, percent, "of the limit"),
            plain("CPU left", cpu_left, percent, "of the limit, on average"),
            plain("Rate at a full CPU", full, format::as_rate, computed),
        ];
        // A job has no requests.
        let has_figure = |row: &[String; 4]| row[1..3].iter().any(|cell| cell != format::NONE);
        rows.into_iter().filter(has_figure).collect()
    }

    pub fn to_text(&self) -> String {
        let mut out = format!("{}\n\n", self.sentence);
        let rows = self.table_rows();
        let width = |i: usize, head: &str| {
            let longest = rows.iter().map(|r| r[i].chars().count()).max();
            longest.unwrap_or(0).max(head.len())
        };
        let widths = [width(0, ""), width(1, "now"), width(2, "baseline")];
        let head = ["", "now", "baseline", ""].map(str::to_owned);
        let [a, b, c] = widths;
        for [name, now, before, word] in std::iter::once(&head).chain(&rows) {
            let line = format!("{name:<a$}  {now:>b$}  {before:>c$}  {word}");
            let _ = writeln!(out, "{}", line.trim_end());
        }
        for line in self.notes() {
            let _ = write!(out, "\n{line}");
        }
        out
    }

    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", text::one_line(&self.sentence));
        out += "| | now | baseline | |\n|---|---:|---:|---|\n";
        for row in self.table_rows() {
            let cells = row.map(|cell| text::cell(&cell));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        for line in self.notes() {
            let _ = write!(out, "\n{}\n", text::one_line(&line));
        }
        out
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "{} of {} fresh starts missed the SLO; {}.",
            self.starts - self.kept,
            self.starts,
            could_still(self.failure_upper_bound),
        )];
        let said = usize::from(self.answer == VerifyAnswer::SloMissed);
        let missed = self.missed.iter().skip(said).take(3);
        notes.extend(missed.map(|missed| format!("Missed: {missed}.")));
        notes.extend(self.peak.iter().chain(&self.shared).cloned());
        if self.holds_too_well == Some(true) {
            let more = "More is shipped than it needs: `loadline verify --tune` looks for less.";
            notes.push(more.to_owned());
        }
        notes
    }
}

fn signed_change(compared: &BaselineFigure) -> Option<String> {
    let signed = |ratio: f64| {
        let share = ratio - 1.0;
        let sign = if share < 0.0 { "-" } else { "+" };
        format!("{sign}{}", format::as_percent(share.abs()))
    };
    let [low, high] = compared.interval?.map(signed);
    let ratio = signed(compared.ratio?);
    Some(format!("{ratio} ({low} to {high})"))
}

fn missed_reasons(trials: &[std::sync::Arc<TrialRecord>]) -> Vec<String> {
    let bad = trials.iter();
    let bad = bad.filter(|t| t.verdict.is_evidence() && t.verdict != TrialVerdict::Pass);
    unique(bad.map(|trial| {
        let why = redact_line(&text::one_line(&trial.reason.to_string()));
        why.trim_end_matches('.').to_owned()
    }))
}

fn headroom(
    configuration: &Configuration,
    now: &[StartFigures],
    baseline: Option<&Baseline>,
) -> Headroom {
    let memory = |limit: Option<Bytes>, starts: &[StartFigures]| {
        let needed = median(&baseline::memory_needs(starts))?;
        Some(1.0 - needed / limit?.as_bytes() as f64)
    };
    let instances = f64::from(configuration.instances);
    let cpu = |limit: Option<loadline_sizing::Cpus>, starts: &[StartFigures]| {
        let used: Vec<f64> = starts.iter().filter_map(|s| s.cpus_used).collect();
        Some(1.0 - median(&used)? / (limit?.as_f64() * instances))
    };
    let full = |limit: Option<loadline_sizing::Cpus>, starts: &[StartFigures]| {
        let each = median(&baseline::cpu_per_request(starts))?;
        Some(limit?.as_f64() * instances / each).filter(|r| r.is_finite())
    };
    let was = baseline.map(|b| (&b.ground, &b.starts));
    Headroom {
        memory: memory(configuration.memory, now),
        memory_before: was.and_then(|(g, s)| memory(g.memory, s)),
        cpu: cpu(configuration.cpu, now),
        cpu_before: was.and_then(|(g, s)| cpu(g.cpu, s)),
        full_rate_per_second: full(configuration.cpu, now),
        full_rate_before_per_second: was.and_then(|(g, s)| full(g.cpu, s)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use loadline_analysis::baseline::{ComparisonGaps, MeasurementConditions, SCHEMA};
    use loadline_analysis::record::MachineDescription;
    use loadline_analysis::shift::{CPU, MEMORY, measure_shift};

    use super::*;

    fn start(cpu_ms: f64, mib: u64) -> StartFigures {
        StartFigures {
            kept: true,
            cpu_per_request: Some(Duration::from_secs_f64(cpu_ms / 1e3)),
            memory: Some(Bytes::from_mib(mib)),
            cpus_used: Some(cpu_ms / 10.0),
            requests: 2_000,
            rate_per_second: Some(100.0),
        }
    }

    fn configuration() -> Configuration {
        Configuration {
            cpu: "1".parse().ok(),
            memory: Some(Bytes::from_mib(232)),
            ..Configuration::default()
        }
    }

    fn baseline() -> Baseline {
        Baseline {
            schema: SCHEMA,
            loadline: "1".to_owned(),
            result: "r".to_owned(),
            ground: MeasurementConditions::new(
                &MachineDescription::default(),
                &configuration(),
                "GET /".to_owned(),
            ),
            starts: [start(4.0, 200), start(4.1, 201), start(3.9, 199)].into(),
        }
    }

    fn said(
        starts: Vec<StartFigures>,
        baseline: Option<&Baseline>,
        unlike: ComparisonGaps,
    ) -> VerifyStatement {
        let before = baseline.map_or(&[][..], |b| &b.starts);
        let cpu = measure_shift(
            &baseline::cpu_per_request(before),
            &baseline::cpu_per_request(&starts),
            CPU,
        );
        let memory = measure_shift(
            &baseline::memory_needs(before),
            &baseline::memory_needs(&starts),
            MEMORY,
        );
        let verified = VerifyOutcome {
            trials: Vec::new(),
            slo: SloStanding::Holds,
            cpu: cpu.filter(|_| unlike.cpu.is_none()),
            memory,
            starts,
            unlike,
        };
        let size = "1 CPU and 232Mi".to_owned();
        VerifyStatement::new("r", size, &configuration(), &verified, baseline)
    }

    #[test]
    fn a_job_has_no_rows_about_requests() {
        let mut job = start(4.0, 200);
        (job.cpu_per_request, job.cpus_used, job.rate_per_second) = (None, None, None);
        let statement = said(vec![job; 3], None, ComparisonGaps::default());
        let rows = statement.table_rows();
        let names: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(names, ["Memory it needs", "Memory left"]);
    }

    #[test]
    fn a_rise_is_named_with_its_number_and_fits_a_screen() {
        let more = vec![start(4.8, 200), start(4.9, 201), start(4.7, 200)];
        let statement = said(more, Some(&baseline()), ComparisonGaps::default());
        assert_eq!(statement.answer, VerifyAnswer::Worse);
        insta::assert_snapshot!(statement.to_text(), @"
        1 CPU and 232Mi costs more: CPU time a request rose by +20.0 % (+10.7 % to +30.1 %); 3 of 3 starts kept the SLO.

                               now  baseline
        CPU time a request  4.80ms       4ms  more: +20.0 % (+10.7 % to +30.1 %)
        Memory it needs      200Mi     200Mi  no rise shown: +0.17 % (-3.30 % to +3.76 %)
        Memory left         13.8 %    13.8 %  of the limit
        CPU left              52 %      60 %  of the limit, on average
        Rate at a full CPU   208/s     250/s  computed; latency breaks before

        0 of 3 fresh starts missed the SLO; up to 63.2 % could still (95 % confidence).
        ");
        let markdown = statement.to_markdown();
        assert!(markdown.lines().count() < 25, "{markdown}");
        assert!(
            markdown.starts_with("**1 CPU and 232Mi costs more:"),
            "{markdown}"
        );
    }

    #[test]
    fn what_is_not_compared_says_why_and_what_is_too_much_says_so() {
        let unlike = ComparisonGaps {
            cpu: Some("the CPU was A and is B".to_owned()),
            memory: None,
        };
        let small = vec![start(9.0, 100); 4];
        let statement = said(small.clone(), Some(&baseline()), unlike);
        assert_eq!(statement.answer, VerifyAnswer::Holds, "CPU is not compared");
        assert!(
            statement
                .to_text()
                .contains("not compared: the CPU was A and is B")
        );
        assert_eq!(statement.holds_too_well, Some(true));
        assert!(statement.to_text().contains("--tune"));
        let first = said(small, None, ComparisonGaps::default());
        assert!(
            first.to_text().contains("there is no baseline"),
            "{}",
            first.to_text()
        );
        assert_eq!(
            said(vec![start(4.0, 200); 4], None, ComparisonGaps::default()).holds_too_well,
            Some(false)
        );
    }
}
