//! Foreign text inserted into HTML or Markdown without any effect as markup.
//!
//! Owns the escaping of both formats, separately from their writers, because tables and drawings
//! write both. [`text`] handles control characters.

use crate::text;

/// A text as HTML, for elements and quoted attributes; control characters are gone.
pub fn escape_html(foreign: &str) -> String {
    html_clean(&text::clean(foreign))
}

/// As [`escape_html`]; what stands between two backticks becomes code.
pub fn html_sentence(words: &str) -> String {
    let escaped = escape_html(words);
    let (mut out, mut rest) = (String::new(), escaped.as_str());
    while let Some((before, opened)) = rest.split_once('`')
        && let Some((code, after)) = opened.split_once('`')
    {
        out += &format!("{before}<code>{code}</code>");
        rest = after;
    }
    out + rest
}

pub fn html_file(foreign: &str) -> String {
    html_clean(&text::clean_file(foreign))
}

fn html_clean(text: &str) -> String {
    let by = |c: char| match c {
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        '&' => Some("&amp;"),
        '"' => Some("&quot;"),
        '\'' => Some("&#39;"),
        _ => None,
    };
    replace_each(text, by)
}

/// JSON that may stand inside a script element: it cannot end the element or start a comment.
pub fn json_in_script(json: &str) -> String {
    let by = |c: char| match c {
        '<' => Some("\\u003c"),
        '>' => Some("\\u003e"),
        '&' => Some("\\u0026"),
        '\u{2028}' => Some("\\u2028"),
        '\u{2029}' => Some("\\u2029"),
        _ => None,
    };
    replace_each(json, by)
}

fn replace_each(text: &str, by: fn(char) -> Option<&'static str>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match by(c) {
            Some(other) => out.push_str(other),
            None => out.push(c),
        }
    }
    out
}

pub fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // An empty comment keeps `@name` from notifying a user.
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

/// Text as a code span of Markdown: a fence longer than any run of backticks in it. A pipe ends a table cell
/// even in code, so it is escaped.
pub fn markdown_code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    let fence = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

pub fn markdown_fence(text: &str) -> String {
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
    fn text_cannot_become_markup() {
        assert_eq!(
            escape_html("\"><img onerror='x'>\u{1b}[31m"),
            "&quot;&gt;&lt;img onerror=&#39;x&#39;&gt;"
        );
        assert_eq!(
            json_in_script("\"</script>\u{2028}\""),
            "\"\\u003c/script\\u003e\\u2028\""
        );
    }

    #[test]
    fn backticks_become_code_in_pairs() {
        assert_eq!(
            html_sentence("run `a <b>`, then `c`; a ` alone stays"),
            "run <code>a &lt;b&gt;</code>, then <code>c</code>; a ` alone stays"
        );
    }

    #[test]
    fn in_markdown_nothing_is_markup() {
        assert_eq!(
            escape_markdown("a|b <img> @me *x*"),
            "a\\|b &lt;img&gt; @<!-- -->me \\*x\\*"
        );
        assert_eq!(markdown_code("a`b|c"), "``a`b\\|c``");
        assert_eq!(markdown_code("`x`"), "`` `x` ``");
        assert!(markdown_fence("```\nx").starts_with("````text\n"));
    }
}
