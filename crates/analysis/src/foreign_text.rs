//! Foreign text made harmless: what applications, users and kernels wrote.
//!
//! Owns the removal of control characters and the shortening of long text. Never escapes for a
//! format; each writer does that for its own. Why: escape sequences in a log line can move the
//! cursor, rename the terminal or reverse the reading direction (CVE-2021-25743, CVE-2021-42574).

/// Longest foreign text in a sentence, in characters; the rest is counted.
const LONGEST: usize = 2_000;
const LONGEST_LABEL: usize = 80;
const LONGEST_CELL: usize = 400;
const LONGEST_FILE: usize = 64_000;

/// Removes escape sequences, C0 and C1 controls (all but newline and tab), bidirectional controls
/// and line separators; shortens texts over 2000 characters with a note.
pub fn clean(text: &str) -> String {
    clean_up_to(text, LONGEST)
}

/// What a terminal is shown, however long: [`clean`]; JSON keeps its values, with escapes.
pub fn harmless(text: &str) -> String {
    if !text.starts_with(['{', '[']) {
        return clean_up_to(text, usize::MAX);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_shown(c) {
            out.push(c)
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        }
    }
    out
}

/// [`clean`] for whole files: 64 000 characters.
pub fn clean_file(text: &str) -> String {
    clean_up_to(text, LONGEST_FILE)
}

fn clean_up_to(text: &str, longest: usize) -> String {
    let mut out = String::with_capacity(text.len().min(longest.saturating_mul(4)));
    let mut kept = 0usize;
    let mut dropped = 0usize;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' || c == '\u{9b}' {
            skip_escape(c, &mut chars);
        } else if is_shown(c) {
            if kept < longest {
                out.push(c);
                kept += 1;
            } else {
                dropped += 1;
            }
        } else if matches!(c, '\u{2028}' | '\u{2029}') && kept < longest {
            out.push(' ');
            kept += 1;
        }
    }
    if dropped > 0 {
        out.push_str(&format!("… ({dropped} more characters)"));
    }
    out
}

/// [`one_line`] for the name of a line in a chart or an entry of a list: 80 characters.
pub fn label(text: &str) -> String {
    line_up_to(text, LONGEST_LABEL).trim().to_owned()
}

/// [`one_line`] for a table cell: 400 characters.
pub fn cell(text: &str) -> String {
    line_up_to(text, LONGEST_CELL).trim().to_owned()
}

/// [`clean`], and on one line: newlines and tabs become spaces.
pub fn one_line(text: &str) -> String {
    indented_line(text).trim().to_owned()
}

/// [`one_line`] that keeps its indentation, as lines of a stack trace have it.
pub fn indented_line(text: &str) -> String {
    line_up_to(text, LONGEST)
}

fn line_up_to(text: &str, longest: usize) -> String {
    clean_up_to(text, longest).replace(['\n', '\t'], " ")
}

fn is_shown(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        // Bidirectional marks, embeddings, overrides and isolates; line separators; byte order mark.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            false
        }
        '\u{feff}' | '\u{fff9}'..='\u{fffb}' => false,
        _ => true,
    }
}

/// Skips the rest of an escape sequence (ECMA-48: CSI ends at 0x40-0x7e, OSC and the other strings
/// at BEL or ST). A sequence that never ends must not swallow the text: at most 64 characters.
fn skip_escape(first: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let is_short = first == '\u{9b}';
    let Some(kind) = is_short.then_some('[').or_else(|| chars.next()) else {
        return;
    };
    let is_string = matches!(kind, ']' | 'P' | 'X' | '^' | '_');
    if kind != '[' && !is_string {
        return;
    }
    for _ in 0..64 {
        let Some(&c) = chars.peek() else { return };
        if c == '\n' {
            return;
        }
        chars.next();
        let ends = if is_string {
            matches!(c, '\u{7}' | '\u{9c}' | '\\')
        } else {
            ('\u{40}'..='\u{7e}').contains(&c)
        };
        if ends {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_go_and_the_text_stays() {
        assert_eq!(clean("\u{1b}[31mred\u{1b}[0m"), "red");
        assert_eq!(clean("\u{1b}]0;title\u{7}text"), "text");
        assert_eq!(clean("a\rb\u{8}\u{9b}2Jc"), "abc");
        assert_eq!(clean("user\u{202e}txt.exe"), "usertxt.exe");
        assert_eq!(clean("tab\tline\n"), "tab\tline\n");
        assert_eq!(one_line(" a\nb\u{2028}c "), "a b c");
    }

    #[test]
    fn an_escape_sequence_without_an_end_does_not_swallow_the_rest() {
        let text = format!("\u{1b}]0;{}\nthe reason", "x".repeat(20));
        assert_eq!(clean(&text), "\nthe reason");
    }

    #[test]
    fn long_text_is_cut_and_the_rest_counted() {
        let cut = clean(&"x".repeat(1_000_000));
        assert!(cut.ends_with("… (998000 more characters)"), "{}", cut.len());
        assert!(cut.len() < 2_100);
    }

    /// Any characters, including many that a terminal or a browser interprets: `any::<String>()`
    /// has no such bias.
    fn hostile_text() -> impl Strategy<Value = String> {
        let hostile = [
            '\u{1b}', '\u{9b}', '\u{7}', '\u{202e}', '\u{2028}', '\r', '\n', '[', ']', ';', 'm',
        ];
        let one = prop_oneof![any::<char>(), prop::sample::select(hostile.to_vec())];
        prop::collection::vec(one, 0..200).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn no_control_character_survives(text in hostile_text()) {
            let cleaned = clean(&text);
            let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
            prop_assert!(!cleaned.chars().any(is_control));
            prop_assert_eq!(clean(&cleaned), cleaned);
        }
    }
}
