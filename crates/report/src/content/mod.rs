//! What a report says, once, for every format: a verdict sentence and sections of words and tables.
//!
//! Owns the order of the page. Each section is a file here and a pure function of the view; the
//! writers (terminal, Markdown, HTML) only lay out. A section with nothing to say is left out.

mod answer;
pub(crate) mod budget;
pub(crate) mod claim;
pub(crate) mod dependencies;
mod distrust;
mod drill;
mod first_second;
pub mod groups;
pub(crate) mod growth;
mod headline;
pub(crate) mod instances;
pub(crate) mod jdks;
mod latency;
mod matrix;
pub(crate) mod memory;
mod metrics;
pub(crate) mod money;
pub(crate) mod node;
pub(crate) mod options;
pub(crate) mod pauses;
pub(crate) mod peak;
mod proven;
mod reproduce;
mod requests;
pub(crate) mod runs;
mod saving;
pub(crate) mod scaling;
mod section;
mod smaller;
mod start_cpu;
pub(crate) mod startup;
mod throttling;
mod toxics;
pub mod trials;
pub(crate) mod warm_up;

pub use answer::{AnswerFact, facts};
pub(crate) use distrust::left_out;
pub use growth::growth_of;
pub use headline::{Headline, headline, slo_words};
pub use reproduce::shell_quoted;
pub use section::{Section, SectionBlock};

use loadline_analysis::record::TrialPurpose;

use crate::view::ResultView;

/// The page, in order: one file each. A new section goes here, where the reader should meet it; it
/// gives `None` when the records do not hold what it needs. Its charts: [`crate::render_html`].
const PAGE: &[fn(&ResultView) -> Option<Section>] = &[
    money::money_section,
    smaller::smaller_section,
    budget::section,
    drill::drill_section,
    jdks::jdks_section,
    runs::section,
    matrix::matrix_section,
    scaling::scaling_section,
    instances::instances_section,
    startup::startup_section,
    latency::latency_section,
    requests::requests_section,
    peak::peak_section,
    metrics::section,
    pauses::pauses_section,
    warm_up::warm_up_section,
    memory::memory_section,
    growth::growth_section,
    dependencies::dependencies_section,
    toxics::toxics_section,
    options::options_section,
    trials::trials_section,
    distrust::distrust_section,
    reproduce::reproduce_section,
];

const LEADS: &[fn(&ResultView) -> Option<Section>] = &[
    money::money_section,
    drill::drill_section,
    jdks::jdks_section,
    scaling::scaling_section,
    instances::instances_section,
    runs::section,
    startup::startup_section,
    matrix::matrix_section,
];

pub fn lead_section(view: &ResultView) -> Option<Section> {
    LEADS.iter().find_map(|section| section(view))
}

pub fn soak_section(view: &ResultView) -> Option<Section> {
    let is_soak =
        !view.trials.is_empty() && view.trials.iter().all(|t| t.purpose == TrialPurpose::Soak);
    is_soak.then(|| growth::growth_section(view)).flatten()
}

pub fn sections(view: &ResultView) -> Vec<Section> {
    PAGE.iter().filter_map(|section| section(view)).collect()
}
