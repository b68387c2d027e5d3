//! JSON, written: the one line at the start needs no library.

use std::fmt::Write as _;

pub enum Json {
    Null,
    Number(u64),
    Text(String),
    Switch(bool),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn from_texts<'a>(texts: impl IntoIterator<Item = &'a String>) -> Self {
        let texts = texts.into_iter().map(Self::from_text);
        Self::List(texts.collect())
    }

    pub fn to_json_line(&self) -> String {
        let mut line = String::new();
        self.write(&mut line);
        line
    }

    fn write(&self, line: &mut String) {
        match self {
            Self::Null => line.push_str("null"),
            Self::Switch(value) => line.push_str(if *value { "true" } else { "false" }),
            // Writing to a String cannot fail.
            Self::Number(number) => drop(write!(line, "{number}")),
            Self::Text(text) => quote(text, line),
            Self::List(values) => {
                line.push('[');
                for (i, value) in values.iter().enumerate() {
                    separate(i, line);
                    value.write(line);
                }
                line.push(']');
            }
            Self::Object(members) => {
                line.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    separate(i, line);
                    quote(name, line);
                    line.push(':');
                    value.write(line);
                }
                line.push('}');
            }
        }
    }
}

fn separate(i: usize, line: &mut String) {
    if i > 0 {
        line.push(',');
    }
}

fn quote(text: &str, line: &mut String) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            c if (c as u32) < 0x20 => drop(write!(line, "\\u{:04x}", c as u32)),
            c => line.push(c),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_order_is_kept() {
        let json = Json::Object(vec![
            ("b", Json::from_text("a\"\\\n\u{1}é")),
            (
                "a",
                Json::List(vec![Json::Number(1), Json::Null, Json::Switch(true)]),
            ),
        ]);
        assert_eq!(
            json.to_json_line(),
            r#"{"b":"a\"\\\n\u0001é","a":[1,null,true]}"#
        );
    }
}
