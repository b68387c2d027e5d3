//! The report as plain text for a terminal.
//!
//! Owns indentation and line width only. The content is that of every other format
//! ([`crate::content`]); what folds away elsewhere or is for a second look is left out.

use crate::content::{self, Block, Section};
use crate::table::wrap;
use crate::text;
use crate::view::ResultView;

/// Narrowest width that is laid out for; a narrower terminal wraps by itself.
const NARROWEST: usize = 40;

/// The report in `width` terminal cells.
pub fn terminal(view: &ResultView, width: usize) -> String {
    let headline = content::headline(view);
    page(
        &headline.sentence,
        &headline.details,
        &content::sections(view),
        width,
    )
}

/// A page: its sentence, what is said below it, its sections.
pub(crate) fn page(
    sentence: &str,
    details: &[String],
    sections: &[Section],
    width: usize,
) -> String {
    let width = width.max(NARROWEST);
    let mut out = String::new();
    paragraph(&mut out, sentence, width);
    for detail in details {
        paragraph(&mut out, detail, width);
    }
    for section in sections.iter().filter(|s| !s.folds && !s.in_depth) {
        out.push_str(&format!("\n{}\n", section.title));
        for block in &section.blocks {
            match block {
                Block::Paragraph(words) => paragraph(&mut out, words, width),
                Block::Table(table) => {
                    out.push('\n');
                    out.push_str(&table.terminal(width));
                }
                Block::List(items) => {
                    for item in items {
                        list_item(&mut out, item, width);
                    }
                }
                Block::Verbatim(verbatim) => {
                    for line in text::clean_file(verbatim).lines() {
                        out.push_str(&format!("    {line}\n"));
                    }
                }
            }
        }
    }
    out
}

fn paragraph(out: &mut String, words: &str, width: usize) {
    for line in wrap(&text::one_line(words), width) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

fn list_item(out: &mut String, item: &str, width: usize) {
    for (i, line) in wrap(&text::one_line(item), width - 2).iter().enumerate() {
        out.push_str(if i == 0 { "- " } else { "  " });
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
