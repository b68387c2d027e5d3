//! A command in one text, as compose splits it: words and quotes, no shell behind them.
//!
//! Facts: compose-spec, `command`; POSIX shell, "Quoting".

pub fn split_words(text: &str) -> Option<Vec<String>> {
    let (mut all, mut word) = (Vec::new(), None::<String>);
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (_, '\\') => word.get_or_insert_default().push(rest.next()?),
            (None, c) if c.is_whitespace() => all.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_a_shell_splits_them() {
        let split = |text: &str| split_words(text).map(|all| all.join("|"));
        assert_eq!(split(" a  b ").as_deref(), Some("a|b"));
        assert_eq!(
            split("a 'b \\ c' \"d 'e'\"f").as_deref(),
            Some("a|b \\ c|d 'e'f")
        );
        assert_eq!(split("a\\ b ''").as_deref(), Some("a b|"));
        assert_eq!(split("a 'b"), None);
        assert_eq!(split(""), Some(String::new()));
    }
}
