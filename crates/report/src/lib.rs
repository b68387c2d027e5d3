//! Reports from records alone: terminal text, Markdown, one offline HTML file, CSV,
//! Parquet, JSON, JUnit, OpenMetrics.
//!
//! Owns what people and CI read about a result. Pure functions of a [`ResultView`]; no file, no
//! clock, no network. Derives no figure that [`loadline_analysis`] derives. Read [`view`], then
//! [`content`], which says everything once; the writers only lay out and escape.

mod columns;
pub mod compare;
pub mod content;
mod csv;
pub mod emit;
mod escape;
mod export;
pub mod figures;
pub mod format;
mod html;
mod junit;
pub mod live;
mod markdown;
mod openmetrics;
mod parquet;
pub mod redact;
mod series;
mod svg;
pub mod table;
mod terminal;
pub mod text;
pub mod verified;
pub mod view;

pub use content::claim::answer_doubts;
pub use content::growth_of;
pub use content::node::node_sentences;
pub use csv::{render_csv, render_seconds};
pub use export::{ExportedResult, ReadError, read, render_json, render_json_lines};
pub use html::{render_html, render_mail};
pub use junit::render_junit;
pub use markdown::{markdown_section, render_markdown};
pub use openmetrics::render_openmetrics;
pub use parquet::render_parquet;
pub use terminal::{render_brief, render_terminal};
pub use view::{CurrentLimits, LoadWords, ResultView, TargetNode};
