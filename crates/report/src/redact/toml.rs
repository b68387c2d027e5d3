//! Secrets taken out of an experiment file so that it stays one: what `export` writes is read again.
//!
//! Owns which values of TOML are secrets. Text that is no TOML is also taken line by line, as any other
//! text.

use std::collections::BTreeMap;
use std::ops::Range;

use loadline_analysis::text::join_words;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::{REDACTED, is_secret_name, redact_line};

/// The file without secrets: a value with a secret's key becomes the text `[redacted]`, and within
/// other texts the part after a secret's name. Comments too.
pub fn redact_experiment(file: &str) -> String {
    let (table, errors) = DeTable::parse_recoverable(file);
    let mut pieces = TomlPieces {
        file,
        shown: BTreeMap::new(),
    };
    pieces.add_table(table.get_ref(), false);
    let shown = pieces.join();
    if errors.is_empty() {
        shown
    } else {
        redact_lines(&shown)
    }
}

fn redact_lines(text: &str) -> String {
    join_words(text.split('\n').map(redact_line), "\n")
}

struct TomlPieces<'a> {
    file: &'a str,
    /// Keys and values by their begin: their end, and the text to show.
    shown: BTreeMap<usize, (usize, String)>,
}

impl TomlPieces<'_> {
    fn add_table(&mut self, table: &DeTable<'_>, is_secret: bool) {
        for (key, value) in table {
            let span = key.span();
            self.show(&span, self.file[span.clone()].to_owned());
            let mut parts = key.get_ref().split('.');
            self.add_value(
                value,
                is_secret || parts.any(|part| is_secret_name(part.trim())),
            );
        }
    }

    fn add_value(&mut self, value: &Spanned<DeValue<'_>>, is_secret: bool) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_table(table, is_secret),
            DeValue::Array(values) => {
                // The last text was an option that names a secret: the next text is its value.
                let mut names_secret = false;
                for value in values {
                    let option = value
                        .get_ref()
                        .as_str()
                        .filter(|text| text.starts_with('-'));
                    self.add_value(value, is_secret || (names_secret && option.is_none()));
                    names_secret = option.is_some_and(|o| !o.contains('=') && is_secret_name(o));
                }
            }
            DeValue::String(_) => self.add_string(&value.span(), is_secret),
            _ if is_secret => self.show(&value.span(), format!("\"{REDACTED}\"")),
            _ => {}
        }
    }

    fn add_string(&mut self, span: &Range<usize>, is_secret: bool) {
        let text = &self.file[span.clone()];
        let all = ["\"\"\"", "'''", "\"", "'"];
        let quotes = all.into_iter().find(|quotes| text.starts_with(quotes));
        let quotes = quotes.unwrap_or_default();
        let content = text.strip_prefix(quotes);
        // Without an end it is no TOML.
        if let Some(content) = content.and_then(|rest| rest.strip_suffix(quotes)) {
            let shown = if is_secret {
                REDACTED.to_owned()
            } else {
                redact_lines(content)
            };
            self.show(span, format!("{quotes}{shown}{quotes}"));
        }
    }

    fn show(&mut self, span: &Range<usize>, shown: String) {
        self.shown.insert(span.start, (span.end, shown));
    }

    fn join(self) -> String {
        let (mut out, mut at) = (String::with_capacity(self.file.len()), 0);
        for (begin, (end, shown)) in self.shown {
            if let Some(between) = self.file.get(at..begin) {
                out += &redact_comments(between);
                out += &shown;
                at = end;
            }
        }
        out + &redact_comments(&self.file[at..])
    }
}

/// Text without values: a `#` begins a comment.
fn redact_comments(between: &str) -> String {
    let of_line = |line: &str| match line.find('#') {
        Some(at) => line[..at].to_owned() + &redact_line(&line[at..]),
        None => line.to_owned(),
    };
    join_words(between.split('\n').map(of_line), "\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = r#"# token: abc
slo = "p99<50ms"
[app]
command = ["java", "-Ddb.password=hunter2", "-jar", "a.jar", "--password", "hunter2", "--port=1"]
env = { DB_PASSWORD = "hunter2", PLAIN = "x = y", "api.key" = 'hunter2', PIN_TOKEN = 1234 }
[app.secrets] # key: hunter2]
a = """
hunter2"""
[load]
url = "http://localhost/?a=1&token=hunter2"
note = '''
password = hunter2
'''
rate = "300/s"
[[factor]]
levels = [
  { label = "a", env = { TOKEN = "hunter2" } }, # key=hunter2
]
"#;

    const SHOWN: &str = r#"# token: [redacted]
slo = "p99<50ms"
[app]
command = ["java", "-Ddb.password=[redacted]", "-jar", "a.jar", "--password", "[redacted]", "--port=1"]
env = { DB_PASSWORD = "[redacted]", PLAIN = "x = y", "api.key" = '[redacted]', PIN_TOKEN = "[redacted]" }
[app.secrets] # key: [redacted]
a = """[redacted]"""
[load]
url = "http://localhost/?a=1&token=[redacted]"
note = '''
password = [redacted]
'''
rate = "300/s"
[[factor]]
levels = [
  { label = "a", env = { TOKEN = "[redacted]" } }, # key=[redacted]
]
"#;

    #[test]
    fn what_is_shown_is_toml_still_and_has_no_secret() {
        assert_eq!(redact_experiment(FILE), SHOWN);
    }

    #[test]
    fn a_file_without_secrets_stays_as_it_is() {
        let file =
            "a = \"x\\\"y\" # note\nb = '''it's''''\n[c.\"d e\"]\nf = [1, 2.5, 1979-05-27]\n";
        assert_eq!(redact_experiment(file), file);
    }

    #[test]
    fn what_is_no_toml_is_taken_line_by_line() {
        let file = "a = 1\nb = \"open\npassword = hunter2\n]]\ntoken: hunter2";
        let shown = redact_experiment(file);
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.starts_with("a = 1\nb = \"open\n"), "{shown}");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[\\[\\]{}=,.\"'#\\\\\n a-z-]{0,60}") {
            redact_experiment(&text);
        }
    }
}
