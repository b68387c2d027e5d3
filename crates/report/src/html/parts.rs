//! What pages are made of: the document, the box with the verdict, sections that fold.
//!
//! Escapes every text. A page says what its policy allows; these parts need the style only.

use super::assets;
use crate::content::{AnswerFact, Section, SectionBlock};
use crate::escape;
use crate::table::Tone;

pub(crate) fn without_script(title: &str, version: &str, body: &str) -> String {
    let policy = format!("style-src {}", assets::policy_hash(assets::REPORT_CSS));
    html_document(title, version, (&policy, assets::REPORT_CSS), body)
}

pub(super) fn html_document(
    title: &str,
    version: &str,
    (policy, style): (&str, &str),
    body: &str,
) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {policy}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"loadline {}\">\n\
         <title>{} – loadline</title>\n<style>{style}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#verdict\">Skip to the verdict</a>\n{body}</body>\n</html>\n",
        escape::escape_html(version),
        escape::escape_html(title),
    )
}

pub(crate) struct VerdictBox<'a> {
    pub tone: Tone,
    pub badge: &'a str,
    pub sentence: &'a str,
    pub facts: &'a [AnswerFact],
    /// Whatever else there is to say; folded away below facts. What a fact says is left out.
    pub details: &'a [String],
}

impl VerdictBox<'_> {
    pub(crate) fn to_section(&self, is_open: bool) -> String {
        let class = match self.tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            _ => "muted",
        };
        let mut out = format!(
            "<section id=\"verdict\" class=\"verdict {class}\" aria-label=\"Verdict\"><p class=\"badge\">{}</p><p class=\"sentence\">{}</p>\n",
            escape::escape_html(self.badge),
            escape::escape_html(self.sentence)
        );
        if !self.facts.is_empty() {
            out.push_str("<dl class=\"facts\">\n");
            for fact in self.facts {
                let name = escape::escape_html(fact.name);
                let words = escape::html_sentence(&fact.words);
                out.push_str(&format!("<div><dt>{name}</dt><dd>{words}</dd></div>\n"));
            }
            out.push_str("</dl>\n");
        }
        let is_fact = |detail: &&String| self.facts.iter().any(|fact| fact.words == **detail);
        let rest = self.details.iter().filter(|detail| !is_fact(detail));
        let rest = rest.map(|detail| format!("<p>{}</p>\n", escape::html_sentence(detail)));
        let rest: String = rest.collect();
        if self.facts.is_empty() || rest.is_empty() {
            out.push_str(&rest)
        } else {
            out.push_str(&format!(
            "<details{}><summary>How it was found, and on which machine</summary>\n{rest}</details>\n",
            open_attribute(is_open)
        ))
        }
        out.push_str("</section>\n");
        out
    }
}

pub(crate) fn folding(id: &str, title: &str, is_open: bool, content: &str) -> String {
    format!(
        "<section id=\"{id}\">\n<details{}><summary><h2>{}</h2></summary>\n{content}</details>\n</section>\n",
        open_attribute(is_open),
        escape::escape_html(title)
    )
}

fn open_attribute(is_open: bool) -> &'static str {
    if is_open { " open" } else { "" }
}

pub(crate) fn blocks(section: &Section) -> String {
    let mut out = String::new();
    for block in &section.blocks {
        match block {
            SectionBlock::Paragraph(words) => {
                out.push_str(&format!("<p>{}</p>\n", escape::html_sentence(words)))
            }
            SectionBlock::Table(table) => out.push_str(&table.to_html(&section.title)),
            SectionBlock::List(items) => {
                out.push_str("<ul>\n");
                for item in items {
                    out.push_str(&format!("<li>{}</li>\n", escape::html_sentence(item)));
                }
                out.push_str("</ul>\n");
            }
            SectionBlock::Verbatim(text) => {
                let text = escape::html_file(text);
                out += &format!("<pre tabindex=\"0\">{text}</pre>\n");
            }
        }
    }
    out
}

/// An SVG with its caption; nothing when there is nothing to draw. It scrolls where it is wider than
/// the page, so the keyboard can reach it.
pub(crate) fn drawing(svg: Option<String>, caption: &str) -> String {
    svg.map_or_else(String::new, |svg| {
        format!(
            "<figure class=\"drawing\" tabindex=\"0\"><figcaption>{}</figcaption>\n{svg}</figure>\n",
            escape::escape_html(caption)
        )
    })
}
