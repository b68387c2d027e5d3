//! The report as one HTML file that works from file://, offline, forever.
//!
//! Owns the page and its safety: every text is escaped, no inline handlers or styles, a content
//! security policy that allows exactly our scripts and style by hash (CSP Level 3). The content is
//! the same as in every other format ([`crate::content`]); only charts are added. [`parts`] has the
//! building blocks of every page, [`page`] the report.

pub(crate) mod assets;
mod charts;
mod drawings;
mod page;
pub(crate) mod parts;

pub use page::{render_html, render_mail};
