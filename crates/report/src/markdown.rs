//! The report as GitHub-flavoured Markdown: for a pull request or a ticket.
//!
//! Owns escaping for Markdown. The content is that of every other format ([`crate::content`]).

use crate::content::{self, Block, Section};
use crate::text;
use crate::view::ResultView;

/// The whole report as Markdown. Long parts fold away.
pub fn markdown(view: &ResultView) -> String {
    let headline = content::headline(view);
    page(
        &headline.sentence,
        &headline.details,
        &content::sections(view),
    )
}

/// A page: its sentence, what is said below it, its sections.
pub(crate) fn page(sentence: &str, details: &[String], sections: &[Section]) -> String {
    let mut out = format!("**{}**\n", escape(&text::one_line(sentence)));
    for detail in details {
        out.push_str(&format!("\n{}\n", escape(&text::one_line(detail))));
    }
    for section in sections {
        section_text(&mut out, section);
    }
    out
}

/// One section of the report, without its heading, for a document that has its own.
///
/// # Errors
/// The ids of the sections there are, when it is none of them.
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
    if section.folds {
        out.push_str(&format!(
            "\n<details><summary>{}</summary>\n",
            escape(&section.title)
        ));
    } else {
        out.push_str(&format!("\n### {}\n", escape(&section.title)));
    }
    blocks(out, section);
    if section.folds {
        out.push_str("\n</details>\n");
    }
}

fn blocks(out: &mut String, section: &Section) {
    for block in &section.blocks {
        out.push('\n');
        match block {
            Block::Paragraph(words) => {
                out.push_str(&escape(&text::one_line(words)));
                out.push('\n');
            }
            Block::Table(table) => out.push_str(&table.markdown()),
            Block::List(items) => {
                for item in items {
                    out.push_str(&format!("- {}\n", escape(&text::one_line(item))));
                }
            }
            Block::Verbatim(verbatim) => out.push_str(&fence(&text::clean_file(verbatim))),
        }
    }
}

/// Text in which nothing is markup, a mention or a link.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // An empty comment keeps `@name` from notifying somebody.
            '@' => out.push_str("@<!-- -->"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Text as a code span: a fence longer than any run of backticks in it. A pipe ends a table cell
/// even in code, so it is escaped.
pub fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Text as a fenced block.
fn fence(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            escape("a|b <img> @me *x*"),
            "a\\|b &lt;img&gt; @<!-- -->me \\*x\\*"
        );
        assert_eq!(code("a`b|c"), "``a`b\\|c``");
        assert_eq!(code("`x`"), "`` `x` ``");
        assert!(fence("```\nx").starts_with("````text\n"));
    }
}
