//! The report as plain text for a terminal.
//!
//! Owns indentation and line width only. The content is the same as in every other format
//! ([`crate::content`]); folded and in-depth parts are left out.

use crate::content::{self, Section, SectionBlock};
use crate::table::wrap;
use crate::text;
use crate::view::ResultView;

const NARROWEST: usize = 40;
/// Lines of the first screen; with the lines below it at most 30.
const SCREEN: usize = 27;

/// Lines of the shortest table on it, with what stands around it.
const TABLE: usize = 9;

pub fn render_terminal(view: &ResultView, width: usize) -> String {
    let (headline, sections) = (content::headline(view), content::sections(view));
    page(&headline.sentence, &headline.details, &sections, width)
}

/// The first screen: the headline and the lead table, a line each, and whether something was left
/// out. For a soak its growth section, in full.
pub fn render_brief(view: &ResultView, width: usize) -> String {
    let width = width.max(NARROWEST);
    let mut headline = content::headline(view);
    let left_out = content::left_out(view);
    let below = left_out
        .as_ref()
        .map_or(0, |words| wrap(words, width).len());
    let mut out = page(&headline.sentence, &headline.details, &[], width);
    // In a narrow terminal what matters least stands last, and gives way to the table.
    while out.lines().count() + below + TABLE > SCREEN && headline.details.pop().is_some() {
        out = page(&headline.sentence, &headline.details, &[], width);
    }
    if let Some(section) = content::soak_section(view) {
        write_section(&mut out, &section, width);
        return out;
    }
    loop {
        let mut screen = out.clone();
        write_lead_table(&mut screen, view, width, below);
        if let Some(words) = &left_out {
            paragraph(&mut screen, words, width);
        }
        // Titles of the table that wrap take lines too.
        if screen.lines().count() <= SCREEN || headline.details.pop().is_none() {
            return screen;
        }
        out = page(&headline.sentence, &headline.details, &[], width);
    }
}

fn write_lead_table(out: &mut String, view: &ResultView, width: usize, below: usize) {
    let Some(section) = content::lead_section(view) else {
        return;
    };
    out.push_str(&format!("\n{}\n", section.title));
    for block in &section.blocks {
        let lines = out.lines().count() + below;
        let room = SCREEN.saturating_sub(lines);
        if let SectionBlock::Table(table) = block
            && room > 0
        {
            out.push_str(&table.to_brief(width, room));
        }
    }
}

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
        write_section(&mut out, section, width);
    }
    out
}

fn write_section(out: &mut String, section: &Section, width: usize) {
    out.push_str(&format!("\n{}\n", section.title));
    for block in &section.blocks {
        match block {
            SectionBlock::Paragraph(words) => paragraph(out, words, width),
            SectionBlock::Table(table) => {
                out.push('\n');
                out.push_str(&table.to_terminal(width));
            }
            SectionBlock::List(items) => {
                for item in items {
                    list_item(out, item, width);
                }
            }
            SectionBlock::Verbatim(verbatim) => {
                for line in text::clean_file(verbatim).lines() {
                    out.push_str(&format!("    {line}\n"));
                }
            }
        }
    }
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
