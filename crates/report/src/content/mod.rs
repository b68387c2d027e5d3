//! What a report says, once, for every format: a verdict sentence and sections of words and tables.
//!
//! Owns the order of the page. Each section is a file here and a pure function of the view; the
//! writers (terminal, Markdown, HTML) only lay out. A section with nothing to say is left out.

mod distrust;
pub mod groups;
mod headline;
mod latency;
mod matrix;
pub(crate) mod options;
mod reproduce;
mod smaller;
pub mod trials;

pub use headline::{Headline, headline};

use crate::table::Table;
use crate::view::ResultView;

/// A part of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Name in links; the HTML writer hangs charts on it.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Its text.
    pub blocks: Vec<Block>,
    /// Long: Markdown folds it, the terminal leaves it out.
    pub folds: bool,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Sentences.
    Paragraph(String),
    /// A table.
    Table(Table),
    /// One sentence each.
    List(Vec<String>),
    /// Text as it is: commands, files, log lines.
    Verbatim(String),
}

impl Section {
    fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self {
            id,
            title: title.into(),
            blocks: Vec::new(),
            folds: false,
        }
    }

    fn folded(mut self) -> Self {
        self.folds = true;
        self
    }

    fn with(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

/// All sections that have something to say, in the order of the page.
pub fn sections(view: &ResultView) -> Vec<Section> {
    let candidates = [
        smaller::section(view),
        matrix::section(view),
        latency::section(view),
        options::section(view),
        trials::section(view),
        distrust::section(view),
        reproduce::section(view),
    ];
    candidates.into_iter().flatten().collect()
}
