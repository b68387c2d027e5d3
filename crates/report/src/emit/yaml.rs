//! YAML, written by hand: strings plain where every parser reads a string, else in double quotes; a
//! comment above the value it explains.
//!
//! Owns quoting and indentation, of keys that are foreign text as well. A double-quoted YAML scalar takes
//! the escapes of JSON (YAML 1.2, 5.7), so nothing in a value can end it.

use crate::text;

#[derive(Debug, Clone, PartialEq)]
pub enum Yaml {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
    /// Nothing: in a patch and in Helm's values it takes a field away.
    Null,
    Map(Vec<YamlEntry>),
    List(Vec<Yaml>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct YamlEntry {
    key: String,
    pub value: Yaml,
    because: Option<String>,
}

pub fn yaml_entry(key: impl Into<String>, value: impl Into<Yaml>) -> YamlEntry {
    YamlEntry {
        key: key.into(),
        value: value.into(),
        because: None,
    }
}

impl YamlEntry {
    pub fn key_name(&self) -> &str {
        &self.key
    }

    pub fn entries(&mut self) -> Option<&mut Vec<YamlEntry>> {
        match &mut self.value {
            Yaml::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn because(mut self, why: impl Into<String>) -> Self {
        self.because = Some(why.into());
        self
    }
}

pub fn yaml_map(entries: impl IntoIterator<Item = YamlEntry>) -> Yaml {
    Yaml::Map(entries.into_iter().collect())
}

pub fn yaml_list(values: impl IntoIterator<Item = impl Into<Yaml>>) -> Yaml {
    Yaml::List(values.into_iter().map(Into::into).collect())
}

impl<const N: usize> From<[YamlEntry; N]> for Yaml {
    fn from(entries: [YamlEntry; N]) -> Self {
        Self::Map(entries.into())
    }
}

impl From<Vec<YamlEntry>> for Yaml {
    fn from(entries: Vec<YamlEntry>) -> Self {
        Self::Map(entries)
    }
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Yaml {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Yaml {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<&serde_json::Value> for Yaml {
    fn from(value: &serde_json::Value) -> Self {
        use serde_json::Value;
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Flag(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => yaml_list(items),
            Value::Object(fields) => {
                yaml_map(fields.iter().map(|(key, value)| yaml_entry(key, value)))
            }
        }
    }
}

impl From<bool> for Yaml {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl Yaml {
    pub fn to_document(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out
    }

    /// The same with comments that a reader of a diff can take in; `evidence.md` has the rest.
    pub fn with_short_comments(self) -> Self {
        let shorter = |entry: YamlEntry| YamlEntry {
            because: entry.because.as_deref().map(shorten_reason),
            value: entry.value.with_short_comments(),
            ..entry
        };
        match self {
            Self::Map(entries) => yaml_map(entries.into_iter().map(shorter)),
            Self::List(values) => yaml_list(values.into_iter().map(Self::with_short_comments)),
            scalar => scalar,
        }
    }

    /// Keys with a reason, and the reasons, from the top down.
    pub fn reasons(&self) -> Vec<(&str, &str)> {
        let mut all = Vec::new();
        match self {
            Self::Map(entries) => {
                for entry in entries {
                    let why = entry.because.as_deref();
                    all.extend(why.map(|why| (entry.key.as_str(), why)));
                    all.extend(entry.value.reasons());
                }
            }
            Self::List(values) => all.extend(values.iter().flat_map(Self::reasons)),
            _ => {}
        }
        all
    }

    /// Writes a map or list at this depth; scalars follow their key.
    fn write(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        match self {
            Self::Map(entries) => {
                for entry in entries {
                    if let Some(why) = &entry.because {
                        out.push_str(&format!("{indent}# {}\n", text::one_line(why)));
                    }
                    out.push_str(&format!("{indent}{}:", key_scalar(&entry.key)));
                    entry.value.write_beside_key(out, depth + 1);
                }
            }
            Self::List(values) => {
                for value in values {
                    out.push_str(&format!("{indent}-"));
                    value.in_list(out, depth + 1);
                }
            }
            Self::Text(_) | Self::Number(_) | Self::Flag(_) | Self::Null => {
                self.write_beside_key(out, depth);
            }
        }
    }

    fn write_beside_key(&self, out: &mut String, depth: usize) {
        match self {
            Self::Text(text) => out.push_str(&format!(" {}\n", text_scalar(text))),
            Self::Number(number) => out.push_str(&format!(" {number}\n")),
            Self::Flag(flag) => out.push_str(&format!(" {flag}\n")),
            Self::Null => out.push_str(" null\n"),
            Self::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
            Self::List(values) if values.is_empty() => out.push_str(" []\n"),
            Self::Map(_) | Self::List(_) => {
                out.push('\n');
                self.write(out, depth);
            }
        }
    }

    /// Writes a value after `-`: the first key of a map is on the same line, unless a comment
    /// precedes it.
    fn in_list(&self, out: &mut String, depth: usize) {
        let first_is_plain = matches!(self, Self::Map(entries) if entries.first().is_some_and(|e| e.because.is_none()));
        if !first_is_plain {
            self.write_beside_key(out, depth);
            return;
        }
        let mut inner = String::new();
        self.write(&mut inner, depth);
        out.push(' ');
        out.push_str(inner.trim_start());
    }
}

fn key_scalar(text: &str) -> String {
    if is_plain(text, "_-./") {
        text.to_owned()
    } else {
        quoted_scalar(text)
    }
}

/// A text; also plain: `registry.example/orders:1.4`, `/health` and `212Mi`.
fn text_scalar(text: &str) -> String {
    let mut units = ["Ki", "Mi", "Gi"].iter();
    let amount = units.find_map(|unit| text.strip_suffix(unit));
    let is_amount = amount.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
    let path = text.strip_prefix('/').unwrap_or(text);
    if is_amount || (is_plain(path, "_-./:@") && !text.ends_with(':')) {
        text.to_owned()
    } else {
        quoted_scalar(text)
    }
}

fn is_plain(text: &str, others: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_part = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && text.chars().all(is_part)
}

pub fn quoted_scalar(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Outside the printable set of YAML 1.2 (5.1), or a line break to older parsers.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Where the reasons stand in full.
pub const EVIDENCE_FILE: &str = "evidence.md";
/// Longest comment of a YAML file in bytes; a longer one is cut where a clause ends.
const LONGEST: usize = 100;

/// A comment that fits on a line of YAML.
fn shorten_reason(why: &str) -> String {
    if why.len() <= LONGEST {
        return why.to_owned();
    }
    let clauses = why.match_indices("; ").map(|(at, _)| at);
    let end = clauses.filter(|at| *at <= LONGEST).last();
    let cut = |at: usize| why.get(..at).unwrap_or_default();
    let kept = match end {
        Some(end) => cut(end).to_owned(),
        None => crate::table::wrap(why, LONGEST).swap_remove(0) + " ...",
    };
    format!("{kept}; see {EVIDENCE_FILE}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_document_is_indented_and_commented() {
        let document = yaml_map([
            yaml_entry("a", "x"),
            yaml_entry(
                "list",
                yaml_list([
                    yaml_map([yaml_entry("b", 1_u64), yaml_entry("c", true)]),
                    "y".into(),
                ]),
            )
            .because("two\nlines"),
            yaml_entry("empty", yaml_map([])),
            yaml_entry(
                "deep",
                yaml_map([yaml_entry(
                    "d",
                    yaml_map([yaml_entry("e", "f").because("why")]),
                )]),
            ),
        ]);
        insta::assert_snapshot!(document.to_document(), @r#"
        a: x
        # two lines
        list:
          - b: 1
            c: true
          - "y"
        empty: {}
        deep:
          d:
            # why
            e: f
        "#);
    }

    #[test]
    fn a_part_of_another_file_stays_what_it_is() {
        let value =
            serde_json::json!({"a": [1, 1.5, true, null, "x"], "b c": {"y": "no"}, "1": -7});
        let back: serde_json::Value =
            serde_saphyr::from_str(&Yaml::from(&value).to_document()).expect("it is YAML");
        assert_eq!(back, value);
    }

    #[test]
    fn a_reason_ends_with_a_clause_and_says_where_the_rest_is() {
        assert_eq!(shorten_reason("as asked for"), "as asked for");
        let long = "heap 64Mi and everything else 143Mi = 207Mi of 212Mi; trials 1-4; 195Mi is too small (trial 22)";
        let long = format!("{long}: p99 lies in failures");
        assert_eq!(
            shorten_reason(&long),
            "heap 64Mi and everything else 143Mi = 207Mi of 212Mi; trials 1-4; see evidence.md"
        );
        let words = "word ".repeat(40);
        assert!(shorten_reason(words.trim()).len() < 125);
    }

    proptest! {
        #[test]
        fn any_text_reads_back_through_another_parser(
            text in prop::collection::vec(any::<char>(), 0..100).prop_map(String::from_iter),
        ) {
            let document = yaml_map([yaml_entry("a", text.clone()).because(text.clone())]).to_document();
            let back: std::collections::BTreeMap<String, String> =
                serde_saphyr::from_str(&document).expect("it is YAML");
            prop_assert_eq!(back.get("a"), Some(&text));
        }
    }
}
