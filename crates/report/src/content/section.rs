//! A part of the report, laid out by no format yet.

use crate::table::Table;

#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    pub id: &'static str,
    pub title: String,
    pub blocks: Vec<SectionBlock>,
    /// Long: HTML and Markdown fold it, the terminal leaves it out.
    pub folds: bool,
    /// For a second look: the terminal leaves it out.
    pub in_depth: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SectionBlock {
    Paragraph(String),
    Table(Table),
    List(Vec<String>),
    Verbatim(String),
}

impl Section {
    pub(crate) fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self {
            id,
            title: title.into(),
            blocks: Vec::new(),
            folds: false,
            in_depth: false,
        }
    }

    pub(super) fn in_depth(mut self) -> Self {
        self.in_depth = true;
        self
    }

    pub(super) fn folded(mut self) -> Self {
        self.folds = true;
        self
    }

    pub(crate) fn with_all(mut self, blocks: impl IntoIterator<Item = SectionBlock>) -> Self {
        self.blocks.extend(blocks);
        self
    }

    /// An empty paragraph is left out, as is an empty list.
    pub(crate) fn with_paragraph(self, words: impl Into<String>) -> Self {
        let words = Some(words.into()).filter(|words| !words.is_empty());
        self.with_all(words.map(SectionBlock::Paragraph))
    }

    pub(crate) fn with_table(self, table: Table) -> Self {
        self.with_all([SectionBlock::Table(table)])
    }

    pub(crate) fn with_list(self, items: Vec<String>) -> Self {
        let items = Some(items).filter(|items| !items.is_empty());
        self.with_all(items.map(SectionBlock::List))
    }

    pub(super) fn with_verbatim(self, text: impl Into<String>) -> Self {
        self.with_all([SectionBlock::Verbatim(text.into())])
    }
}
