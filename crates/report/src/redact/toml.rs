//! Secrets taken out of an experiment file so that it stays one: what `export` writes is read again.
//!
//! Owns as much of TOML as tells keys, strings and the rest apart. What it does not understand is
//! taken line by line, as any other text. Source: TOML 1.0, "Keys", "String", "Array", "Inline
//! Table".

use loadline_analysis::text::join_words;

use super::text::{REDACTED, is_secret_name, redact_line};

/// The file without secrets: a value with a secret's key becomes the text `[redacted]`, and within
/// other texts the part after a secret's name. Comments too.
pub fn redact_experiment(file: &str) -> String {
    let mut reader = TomlReader {
        rest: file,
        out: String::with_capacity(file.len()),
        open: vec![TomlLevel::default()],
        last: String::new(),
    };
    while !reader.rest.is_empty() {
        if reader.take_token().is_none() {
            // Not TOML from here on: a hint of a secret ends its line.
            return reader.out + &join_words(reader.rest.split('\n').map(redact_line), "\n");
        }
    }
    reader.out
}

#[derive(Debug, Default, Clone)]
struct TomlLevel {
    is_secret: bool,
    /// The key of the next value names a secret.
    value_is_secret: bool,
    /// The last text was an option that names a secret: the next text is its value.
    names_secret: bool,
}

impl TomlLevel {
    /// The level below a key or header, which may name a secret.
    fn below(is_secret: bool) -> Self {
        Self {
            is_secret,
            value_is_secret: is_secret,
            names_secret: false,
        }
    }
}

struct TomlReader<'a> {
    rest: &'a str,
    out: String,
    open: Vec<TomlLevel>,
    last: String,
}

impl<'a> TomlReader<'a> {
    fn take_token(&mut self) -> Option<()> {
        match self.rest.chars().next()? {
            '#' => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                let comment = redact_line(self.rest.get(..end)?);
                self.replace(end, &comment);
            }
            '"' | '\'' => return self.take_string(),
            '=' => {
                let is_secret = self.last.split('.').any(|part| is_secret_name(part.trim()));
                self.last.clear();
                let level = self.level();
                level.value_is_secret = level.is_secret || is_secret;
                level.names_secret = false;
                self.copy_through(1);
            }
            '[' if self.begins_line() => self.take_header()?,
            '[' | '{' => {
                let is_secret = self.level().value_is_secret || self.level().is_secret;
                self.open.push(TomlLevel::below(is_secret));
                self.last.clear();
                self.copy_through(1);
            }
            ']' | '}' => {
                if self.open.len() < 2 {
                    return None;
                }
                self.open.pop();
                self.last.clear();
                self.copy_through(1);
            }
            ',' => {
                self.last.clear();
                self.copy_through(1);
            }
            '\n' => {
                if self.open.len() == 1 {
                    let level = self.level();
                    level.value_is_secret = level.is_secret;
                    self.last.clear();
                }
                self.copy_through(1);
            }
            c if c.is_whitespace() => self.copy_through(c.len_utf8()),
            _ => self.take_word(),
        }
        Some(())
    }

    /// `[table]` or `[[table]]`: all below it is its own level.
    fn take_header(&mut self) -> Option<()> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let header = self.rest.get(..end)?;
        let name = header.trim_start_matches('[');
        let name = name.split(']').next()?;
        let parts = name
            .split('.')
            .map(|part| part.trim().trim_matches(['"', '\'']));
        self.open = vec![TomlLevel::below(parts.into_iter().any(is_secret_name))];
        self.last.clear();
        let opens = header.len() - header.trim_start_matches('[').len();
        let closes = &header[header.find(']')?..];
        let closes = closes.len() - closes.trim_start_matches(']').len();
        self.copy_through(header.find(']')? + closes.min(opens));
        Some(())
    }

    fn take_word(&mut self) {
        let is_end = |c: char| c.is_whitespace() || "=,[]{}#\"'".contains(c);
        let end = self.rest.find(is_end).unwrap_or(self.rest.len()).max(1);
        let word = self.rest[..end].to_owned();
        let is_value = self.level().value_is_secret && !self.is_key(end);
        self.last.push_str(&word);
        if is_value {
            self.replace(end, &format!("\"{REDACTED}\""));
        } else {
            self.copy_through(end);
        }
    }

    fn take_string(&mut self) -> Option<()> {
        let (open, content, length) = token(self.rest)?;
        if self.is_key(length) {
            self.last.push_str(content);
            self.copy_through(length);
            return Some(());
        }
        let level = self.level();
        let is_option = content.starts_with('-');
        let shown = if level.value_is_secret || (level.names_secret && !is_option) {
            REDACTED.to_owned()
        } else {
            join_words(content.split('\n').map(redact_line), "\n")
        };
        let has_value = content.contains('=');
        level.names_secret = is_option && !has_value && is_secret_name(content);
        self.replace(length, &format!("{open}{shown}{open}"));
        Some(())
    }

    /// Whether what ends there is a key: `=` follows, or the next part of a dotted key.
    fn is_key(&self, end: usize) -> bool {
        let after = self.rest[end..].trim_start_matches([' ', '\t']);
        after.starts_with(['=', '.'])
    }

    fn begins_line(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        self.open.len() == 1 && line.trim().is_empty()
    }

    fn level(&mut self) -> &mut TomlLevel {
        if self.open.is_empty() {
            self.open.push(TomlLevel::default());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn copy_through(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.out.push_str(taken);
        self.rest = rest;
    }

    fn replace(&mut self, length: usize, text: &str) {
        self.out.push_str(text);
        self.rest = &self.rest[length..];
    }
}

fn token(text: &str) -> Option<(&str, &str, usize)> {
    let quote = text.get(..1)?;
    let escapes = quote == "\"";
    let three = text.get(..3).filter(|start| *start == quote.repeat(3));
    let (open, is_long) = (three.unwrap_or(quote), three.is_some());
    let mut at = open.len();
    while at < text.len() {
        let rest = text.get(at..)?;
        if rest.starts_with(open) {
            // Up to two quotes may stand before the three that end it.
            let quotes = rest.chars().take_while(|c| quote.starts_with(*c)).count();
            let extra = if is_long { quotes.min(5) - 3 } else { 0 };
            let end = at + extra;
            return Some((open, &text[open.len()..end], end + open.len()));
        }
        let c = rest.chars().next()?;
        if c == '\n' && !is_long {
            return None;
        }
        at += c.len_utf8();
        if escapes && c == '\\' {
            at += text.get(at..)?.chars().next()?.len_utf8();
        }
    }
    None
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
