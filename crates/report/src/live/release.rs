//! A service over its releases: what each of its results says of size, headroom, CPU, start and p99.
//!
//! A release is a result of `size` or `verify`; a service is the results of one title. What trials
//! scatter is shown as their median with lowest and highest, never as one number.

use std::time::Duration;

use loadline_analysis::baseline;
use loadline_analysis::record::{Configuration, TrialRecord};
use loadline_sizing::Bytes;

use super::{LivePage, PageData, live_document};
use crate::figures::{self, SeenLatency, Spread, TrialFigures, headline_quantile, spread};
use crate::html::parts::drawing;
use crate::table::Table;
use crate::view::ResultView;
use crate::{format, svg, text};

#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRelease {
    pub id: String,
    /// When it was begun, milliseconds since 1970-01-01 UTC.
    pub begun_unix_ms: u64,
    pub short_version: Option<String>,
    pub version: Option<String>,
    /// The CPU model and number, by which results may be compared.
    pub machine: String,
    pub memory: Option<Bytes>,
    pub needed: Option<Spread<Bytes>>,
    pub cpu_per_request: Option<Spread<Duration>>,
    pub start: Option<Spread<Duration>>,
    pub p99: Option<Spread<SeenLatency>>,
}

impl ServiceRelease {
    /// Reads it from a result; `None` without a size (a matrix, a search without an answer, no
    /// valid trial).
    pub fn from_view(view: &ResultView, begun_unix_ms: u64) -> Option<Self> {
        let configuration = shipped_configuration(view)?;
        let is_of = |t: &&TrialRecord| is_same(&t.configuration, configuration);
        let starts: Vec<&TrialRecord> = view.evidence_trials().filter(is_of).collect();
        if starts.is_empty() {
            return None;
        }
        let quantile = headline_quantile(&[]);
        let all = || starts.iter().map(|t| TrialFigures::for_trial(t, quantile));
        let starts = || starts.iter();
        let costs = || starts().filter_map(|t| baseline::StartFigures::for_start(t));
        Some(Self {
            id: view.id.clone(),
            begun_unix_ms,
            short_version: view.machine.short_version().map(|v| text::label(&v)),
            version: view.machine.version_in_words().map(|v| text::cell(&v)),
            machine: format!("{} x{}", view.machine.cpu_model, view.machine.cpus),
            memory: configuration.memory,
            needed: spread(costs().filter_map(|c| c.memory)),
            cpu_per_request: spread(costs().filter_map(|c| c.cpu_per_request)),
            start: spread(all().filter_map(|f| f.sli.start)),
            p99: figures::spread(all().filter_map(|f| f.headline)),
        })
    }

    /// Share of the limit that is not needed, of the middle start.
    pub fn headroom(&self) -> Option<f64> {
        let (limit, needed) = (self.memory?, self.needed?.median);
        (limit.as_bytes() > 0).then(|| 1.0 - needed.as_bytes() as f64 / limit.as_bytes() as f64)
    }
}

fn shipped_configuration(view: &ResultView) -> Option<&Configuration> {
    if let Some(answer) = &view.recommendation {
        return Some(&answer.configuration);
    }
    let first = &view.trials.first()?.configuration;
    let is_one = view.trials.iter().all(|t| is_same(&t.configuration, first));
    is_one.then_some(first)
}

fn is_same(one: &Configuration, other: &Configuration) -> bool {
    let unlabelled = |c: &Configuration| Configuration {
        label: String::new(),
        ..c.clone()
    };
    unlabelled(one) == unlabelled(other)
}

/// The page of a service: the trend of each figure, and a table with all figures. Oldest first.
pub fn releases(service: &str, releases: &[ServiceRelease]) -> LivePage {
    let data = PageData::default();
    if releases.is_empty() {
        let main = "<p>No result of this service says something of a size yet: <code>loadline size</code> and <code>loadline verify</code> do.</p>\n";
        return live_document(service, main, &data);
    }
    let mut main = String::new();
    let machines = releases.iter().map(|r| &r.machine);
    if machines.clone().any(|m| *m != releases[0].machine) {
        main.push_str("<p>These were measured on unlike machines; the table names them. Only results of one machine compare.</p>\n");
    }
    for (title, svg) in svg::draw_releases(releases) {
        main.push_str(&drawing(Some(svg), title));
    }
    main.push_str(&releases_table(releases).to_html("All releases"));
    live_document(service, &main, &data)
}

fn releases_table(releases: &[ServiceRelease]) -> Table {
    let mut table = Table::new()
        .left("Result | Begun (UTC)")
        .wrapping("Version")
        .right("Memory limit | Needed | Headroom | CPU a request | Start | p99")
        .wrapping("Machine");
    for r in releases {
        let times = |s: Spread<Duration>| s.show(format::measured_time);
        let row = [
            format::short_id(&r.id).to_owned(),
            format::date(r.begun_unix_ms),
            format::or_none(r.version.clone()),
            format::bytes_or(r.memory),
            format::or_none(r.needed.map(|s| s.show(format::measured_bytes))),
            format::or_none(r.headroom().map(format::as_percent)),
            format::or_none(r.cpu_per_request.map(times)),
            format::or_none(r.start.map(times)),
            format::or_none(r.p99.map(|s| s.show(SeenLatency::show))),
            r.machine.clone(),
        ];
        table.add_row(row.map(Into::into));
    }
    table
}
