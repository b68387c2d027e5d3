//! The report as GitHub-flavoured Markdown: for a pull request or a ticket.
//!
//! Owns escaping for Markdown. The content is the same as in every other format
//! ([`crate::content`]).

use crate::content::{self, Section, SectionBlock};
use crate::view::ResultView;
use crate::{escape, text};

pub fn render_markdown(view: &ResultView) -> String {
    let headline = content::headline(view);
    let sections = content::sections(view);
    page(&headline.sentence, &headline.details, &sections)
}

fn escaped_line(text: &str) -> String {
    escape::escape_markdown(&text::one_line(text))
}

pub(crate) fn page(sentence: &str, details: &[String], sections: &[Section]) -> String {
    let mut out = format!("**{}**\n", escaped_line(sentence));
    for detail in details {
        out += &format!("\n{}\n", escaped_line(detail));
    }
    for section in sections {
        section_text(&mut out, section);
    }
    out
}

/// One section of the report, without its heading, for another document. Errors: The ids of the
/// existing sections, for an unknown one.
pub fn markdown_section(view: &ResultView, id: &str) -> Result<String, Vec<&'static str>> {
    let sections = content::sections(view);
    let Some(section) = sections.iter().find(|s| s.id == id) else {
        return Err(sections.iter().map(|s| s.id).collect());
    };
    let mut out = String::new();
    blocks(&mut out, section);
    Ok(out.trim_start().to_owned())
}

fn section_text(out: &mut String, section: &Section) {
    let title = escape::escape_markdown(&section.title);
    *out += &if section.folds {
        format!("\n<details><summary>{title}</summary>\n")
    } else {
        format!("\n### {title}\n")
    };
    blocks(out, section);
    if section.folds {
        out.push_str("\n</details>\n");
    }
}

fn blocks(out: &mut String, section: &Section) {
    for block in &section.blocks {
        out.push('\n');
        match block {
            SectionBlock::Paragraph(words) => *out += &(escaped_line(words) + "\n"),
            SectionBlock::Table(table) => out.push_str(&table.to_markdown()),
            SectionBlock::List(items) => {
                let line = |item: &String| format!("- {}\n", escaped_line(item));
                out.extend(items.iter().map(line));
            }
            SectionBlock::Verbatim(verbatim) => {
                out.push_str(&escape::markdown_fence(&text::clean_file(verbatim)))
            }
        }
    }
}
