//! `${NAME}` in a compose file, and the source of its value.
//!
//! Owns the forms: `$NAME`, `${NAME}`, with `:-` or `-` and a default, with `:?` or `?` and a
//! message, with `:+` or `+` and a replacement; `$$` is a dollar. Values come from loadline's own
//! environment, then from the file `.env` next to the compose file. Facts: compose-spec,
//! "Interpolation"; the format of environment files is compose's.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use loadline_protocol::RunRefusal;

use super::super::references;

const LARGEST: u64 = 1 << 20;

/// Most bytes that variables fill in: each value may repeat the one above it.
const MOST_FILLED: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FilledText {
    pub text: String,
    pub is_secret: bool,
}

#[derive(Debug, Clone, Default)]
pub struct ComposeVariables {
    file: BTreeMap<String, FilledText>,
    filled_bytes: Cell<usize>,
}

/// A variable of a file, or why its value cannot be filled.
type FilePair = (String, Result<FilledText, String>);

impl ComposeVariables {
    /// The variables of `.env` next to a compose file; a value that cannot be filled is none. Errors:
    /// [`RunRefusal`] for a file that exists and cannot be read.
    pub fn from_env_beside(compose: &Path) -> Result<Self, RunRefusal> {
        let path = compose.with_file_name(".env");
        let mut variables = Self::default();
        if path.exists() {
            let pairs = variables.read_pairs(&path)?.into_iter();
            let filled = pairs.filter_map(|(name, value)| Some((name, value.ok()?)));
            variables.file = filled.collect();
        }
        Ok(variables)
    }

    pub fn get_variable(&self, name: &str) -> Option<FilledText> {
        let own = std::env::var(name).ok().map(|text| FilledText {
            text,
            is_secret: false,
        });
        own.or_else(|| self.file.get(name).cloned())
    }

    /// The variables of a file. A value may have variables, also those of lines above it, unless single
    /// quotes stand around it; a name alone is the variable of who calls. Errors: [`RunRefusal`] when
    /// the file cannot be read.
    pub fn read_pairs(&self, path: &Path) -> Result<Vec<FilePair>, RunRefusal> {
        let failed = |error: io::Error| {
            let hint = "it is named by the compose file, relative to that";
            RunRefusal::new(
                format!("the file of variables {}", path.display()),
                error,
                hint,
            )
        };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(LARGEST)
            .read_to_string(&mut text)
            .map_err(failed)?;
        let lines = text.lines().map(str::trim);
        let mut known = self.clone();
        let mut pairs = Vec::new();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let (name, value) = match line.split_once('=') {
                Some((name, value)) => (name.trim(), known.fill_value(value.trim())),
                None => match known.get_variable(line) {
                    Some(value) => (line, Ok(value)),
                    None => continue,
                },
            };
            if let Ok(value) = &value {
                let earlier = known.file.entry(name.to_owned());
                earlier.or_insert_with(|| value.clone());
            }
            pairs.push((name.to_owned(), value));
        }
        self.filled_bytes.set(known.filled_bytes.get());
        Ok(pairs)
    }

    fn fill_value(&self, value: &str) -> Result<FilledText, String> {
        let text = unquote_value(value);
        if value.starts_with('\'') {
            Ok(FilledText {
                text: text.to_owned(),
                is_secret: false,
            })
        } else {
            self.fill_text(text)
        }
    }

    pub fn fill_text(&self, text: &str) -> Result<FilledText, String> {
        let mut filled = FilledText::default();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            filled.text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                filled.text.push('$');
                rest = after;
            } else if let Some(inner) = rest.strip_prefix('{') {
                let end = inner
                    .find('}')
                    .ok_or_else(|| format!("`${rest}` is not closed"))?;
                self.fill_one(&inner[..end], &mut filled)?;
                rest = &inner[end + 1..];
            } else {
                let length = name_length(rest);
                if length == 0 {
                    return Err("write a `$` that starts no variable as `$$`".to_owned());
                }
                self.fill_one(&rest[..length], &mut filled)?;
                rest = &rest[length..];
            }
        }
        filled.text.push_str(rest);
        Ok(filled)
    }

    fn fill_one(&self, inner: &str, filled: &mut FilledText) -> Result<(), String> {
        let (name, operation) = inner.split_at(name_length(inner));
        filled.is_secret |= references::is_secret_name(name);
        let found = self.get_variable(name);
        filled.is_secret |= found.as_ref().is_some_and(|found| found.is_secret);
        let value = found.map(|found| found.text);
        let (value, operation) = match operation.strip_prefix(':') {
            Some(operation) => (value.filter(|value| !value.is_empty()), operation),
            None => (value, operation),
        };
        let mut words = operation.chars();
        let text = match (words.next(), value) {
            (None, Some(value)) | (Some('-' | '?'), Some(value)) => value,
            (Some('-'), None) => words.as_str().to_owned(),
            (Some('+'), Some(_)) => words.as_str().to_owned(),
            (Some('+'), None) => String::new(),
            (Some('?'), None) => return Err(format!("{name}: {}", words.as_str())),
            (None, None) => {
                return Err(format!("the variable {name} is not set, here or in .env"));
            }
            _ => return Err(format!("`${{{inner}}}` is not a compose variable")),
        };
        let bytes = self.filled_bytes.get().saturating_add(text.len());
        if bytes > MOST_FILLED {
            return Err("variables expand to more than 16 MiB".to_owned());
        }
        self.filled_bytes.set(bytes);
        filled.text.push_str(&text);
        Ok(())
    }
}

fn name_length(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.find(|c: char| !is_name(c)).unwrap_or(text.len())
}

fn unquote_value(value: &str) -> &str {
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let value = value.strip_prefix(quote)?;
        value.split_once(quote).map(|(inside, _)| inside)
    });
    quoted.unwrap_or_else(|| value.split(" #").next().unwrap_or(value).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> FilledText {
        FilledText {
            text: text.to_owned(),
            is_secret: false,
        }
    }

    #[test]
    fn variables_are_filled_as_compose_fills_them() {
        let variables = ComposeVariables {
            file: [("SET", "x"), ("EMPTY", ""), ("DB_PASSWORD", "hunter22")]
                .map(|(name, value)| (name.to_owned(), plain(value)))
                .into(),
            ..ComposeVariables::default()
        };
        let fill = |text: &str| variables.fill_text(text).map(|filled| filled.text);
        for (text, meant) in [
            ("a$SET.b", "ax.b"),
            ("${SET}${LOADLINE_UNSET:-y}", "xy"),
            ("${EMPTY:-y}${EMPTY-z}", "y"),
            ("${SET:+on}${LOADLINE_UNSET+off}", "on"),
            ("$$SET", "$SET"),
            ("${SET:?no}", "x"),
        ] {
            assert_eq!(fill(text).as_deref(), Ok(meant), "{text}");
        }
        for (text, problem) in [
            ("${LOADLINE_UNSET}", "is not set"),
            ("${LOADLINE_UNSET:?say it}", "LOADLINE_UNSET: say it"),
            ("${SET", "is not closed"),
            ("5$ ", "as `$$`"),
            ("${SET%x}", "not a compose variable"),
        ] {
            let error = fill(text).expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
        let secret = variables.fill_text("a${DB_PASSWORD}").expect("it is set");
        assert!(secret.is_secret && secret.text == "ahunter22");
    }

    #[test]
    fn a_file_of_variables_is_read_line_by_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("db.env");
        let text = "# of the database\nA=1\nexport B = 'two words' # said\n\nC=\"x=y\"\nD=e # f\n\
            E=${A}$B\nF='pa$$w${A}'\nG=${C:-z}$LOADLINE_UNSET\nLOADLINE_UNSET\nH_TOKEN=x\nI=$H_TOKEN\n";
        std::fs::write(&path, text).expect("a file");
        let variables = ComposeVariables::default();
        let read = variables
            .read_pairs(&path)
            .expect("it is there")
            .into_iter();
        let said = |(name, value): FilePair| {
            let value = value.unwrap_or_else(|why| plain(&why));
            let secret = if value.is_secret { " (secret)" } else { "" };
            format!("{name}={}{secret}", value.text)
        };
        assert_eq!(
            read.map(said).collect::<Vec<_>>(),
            [
                "A=1",
                "B=two words",
                "C=x=y",
                "D=e",
                "E=1two words",
                "F=pa$$w${A}",
                "G=the variable LOADLINE_UNSET is not set, here or in .env",
                "H_TOKEN=x",
                "I=x (secret)",
            ]
        );
        // Each value is the one above it, twice.
        let double = |n: usize| format!("A{}=$A{n}$A{n}\n", n + 1);
        let bomb = String::from("A0=xxxxxxxx\n") + &(0..40).map(double).collect::<String>();
        std::fs::write(&path, bomb).expect("a file");
        let read = variables.read_pairs(&path).expect("it is there");
        let refused = read.iter().find_map(|(_, value)| value.as_ref().err());
        assert_eq!(
            refused.map(String::as_str),
            Some("variables expand to more than 16 MiB")
        );
        let none = directory.path().join("none");
        let gone = variables.read_pairs(&none).expect_err("it is not there");
        assert!(gone.hint.contains("relative to"), "{gone}");
    }
}
