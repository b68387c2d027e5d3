//! Colours of verdicts on a terminal.
//!
//! Owns when there are any: `--color`, else as NO_COLOR (no-color.org) and TERM say. The words are
//! there without them, too.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ColorChoice;

const GREEN: u8 = 32;
const RED: u8 = 31;
const YELLOW: u8 = 33;

const WORDS: [(&str, u8); 6] = [
    ("PASS", GREEN),
    ("SLO MISS", RED),
    ("SLO_MISS", RED),
    ("APP_KO", RED),
    ("KO", RED),
    ("INVALID", YELLOW),
];

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// What `--color` says; the first call counts.
pub fn choose(choice: ColorChoice) {
    let _ = CHOICE.set(choice);
}

/// The text with its verdicts in colour, where this stream is to have colours.
pub fn paint_for(stream: &impl IsTerminal, text: &str) -> String {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_painted = match CHOICE.get().copied().unwrap_or_default() {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => stream.is_terminal() && !is_set("NO_COLOR") && !is_dumb,
    };
    // JSON stays what programs read.
    if is_painted && !text.starts_with(['{', '[']) {
        paint(text)
    } else {
        text.to_owned()
    }
}

fn paint(text: &str) -> String {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut rest, mut before) = (String::new(), text, ' ');
    while let Some(c) = rest.chars().next() {
        let whole = |(word, _): &&(&str, u8)| {
            let after = rest.strip_prefix(word);
            !is_letter(before) && after.is_some_and(|after| !after.starts_with(is_letter))
        };
        let length = match WORDS.iter().find(whole) {
            Some((word, colour)) => {
                out.push_str(&format!("\u{1b}[{colour}m{word}\u{1b}[0m"));
                word.len()
            }
            None => {
                out.push(c);
                c.len_utf8()
            }
        };
        before = rest[..length].chars().next_back().unwrap_or(' ');
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_painted_and_nothing_else() {
        let painted = paint("1Gi  PASS  BYPASS\nKO hang, SLO MISS ü INVALID");
        assert_eq!(
            painted,
            "1Gi  \u{1b}[32mPASS\u{1b}[0m  BYPASS\n\u{1b}[31mKO\u{1b}[0m hang, \u{1b}[31mSLO MISS\u{1b}[0m ü \u{1b}[33mINVALID\u{1b}[0m"
        );
    }
}
