//! The report as GitHub-flavoured Markdown: for a pull request or a ticket.
//!
//! Owns escaping for Markdown. The content is that of every other format ([`crate::content`]).

use crate::content::{self, Block, Section};
use crate::text;
use crate::view::ResultView;

/// The whole report as Markdown. Long parts fold away.
pub fn markdown(view: &ResultView) -> String {
    let headline = content::headline(view);
    let mut out = format!("**{}**\n", escape(&text::one_line(&headline.sentence)));
    for detail in &headline.details {
        out.push_str(&format!("\n{}\n", escape(&text::one_line(detail))));
    }
    for section in content::sections(view) {
        section_text(&mut out, &section);
    }
    out
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
    if section.folds {
        out.push_str("\n</details>\n");
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
