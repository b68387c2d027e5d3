//! Measured JVM options beside those that a container has already.
//!
//! Owns which of them stay: what cannot stand beside a measured option goes, and is named. An option
//! that would win over a measured one from where no patch reaches is refused. What a variable holds
//! is kept as it is written. The rule itself is `loadline_sizing::options::conflict`.

use loadline_sizing::options::conflict::{is_sizing, replaces};
use loadline_sizing::options::words;
use serde_json::Value;

use super::error::EmitError;
use super::jvm_options::{TOOL_OPTIONS, tool_option};
use crate::redact;
use crate::text;

/// Places whose options win over `JAVA_TOOL_OPTIONS`, besides command and arguments.
const STRONGER: [&str; 4] = [
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_OPTIONS",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedOptions {
    pub value: String,
    /// What was replaced, and what was not measured; a sentence each.
    pub notes: Vec<String>,
}

/// The measured options behind those of `there`, the value that a file of the user has. `escaped`
/// writes an option as that file takes it.
/// Errors: [`EmitError::Manifest`] when the value is none that a JVM reads, or holds a secret;
/// [`EmitError::ToolOptions`] when a measured option cannot be said in a variable.
pub fn merge_options(
    there: &str,
    measured: &[String],
    escaped: impl Fn(&str) -> String,
) -> Result<MergedOptions, EmitError> {
    if redact::redact_line(there) != there {
        return Err(EmitError::Manifest {
            why: "its JVM options hold a secret, and no file of loadline does".to_owned(),
            hint: "put the secret into a variable of its own from a Secret, and write $(NAME) in the options".to_owned(),
        });
    }
    let mut kept = Vec::new();
    let mut notes = Vec::new();
    for raw in raw_words(there)? {
        let word = words::split_environment(raw).unwrap_or_default().concat();
        match measured.iter().find(|new| replaces(new, &word)) {
            Some(new) if *new != word => notes.push(format!(
                "{} of the file is replaced by {}, which was measured.",
                redacted_option(&word),
                redacted_option(new)
            )),
            Some(_) => {}
            None => {
                if is_sizing(&word) {
                    notes.push(not_measured(&word, TOOL_OPTIONS));
                }
                if word.contains("$(") {
                    notes.push(format!(
                        "{} stays; what it stands for was not looked at.",
                        redacted_option(&word)
                    ));
                }
                kept.push(raw.to_owned());
            }
        }
    }
    for option in measured {
        let option = tool_option(option).ok_or(EmitError::ToolOptions)?;
        kept.push(escaped(&option));
    }
    Ok(MergedOptions {
        value: kept.join(" "),
        notes,
    })
}

/// Options of a container that win over `JAVA_TOOL_OPTIONS`: refused where they contradict a
/// measured one, named where they decide what was not measured.
pub fn stronger_options(container: &Value, measured: &[String]) -> Result<Vec<String>, EmitError> {
    let mut notes = Vec::new();
    for (place, word) in stronger_words(container) {
        let same = measured.contains(&word);
        if let Some(new) = measured.iter().find(|new| !same && replaces(new, &word)) {
            return Err(EmitError::Manifest {
                why: format!(
                    "{} in {place} wins over {TOOL_OPTIONS}, and {} was measured",
                    redacted_option(&word),
                    redacted_option(new)
                ),
                hint: format!("take it out of {place}, and emit again"),
            });
        }
        if is_sizing(&word) && !same {
            notes.push(not_measured(&word, &place));
        }
    }
    Ok(notes)
}

/// Options in command, arguments and other variables, with their place.
fn stronger_words(container: &Value) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for place in ["command", "args"] {
        let items = container.get(place).and_then(Value::as_array);
        for item in items.into_iter().flatten().filter_map(Value::as_str) {
            // `sh -c "exec java -Xmx1g ..."` has the options in one word.
            all.extend(
                item.split_whitespace()
                    .map(|w| (place.to_owned(), w.to_owned())),
            );
        }
    }
    for (name, value) in variables(container) {
        if let (true, Some(value)) = (STRONGER.contains(&name), value.as_str()) {
            let words = words::split_environment(value).unwrap_or_default();
            all.extend(words.into_iter().map(|word| (name.to_owned(), word)));
        }
    }
    all.retain(|(_, word)| word.starts_with("-X") || word.starts_with("-D"));
    all
}

/// Names and values of a container's variables; one that comes from elsewhere has `null`.
pub fn variables(container: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = container.get("env").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        Some((name, variable.get("value").unwrap_or(&Value::Null)))
    })
}

fn not_measured(option: &str, place: &str) -> String {
    format!(
        "{} in {place} stays, and was not measured: the size may not hold with it.",
        redacted_option(option)
    )
}

fn redacted_option(option: &str) -> String {
    text::label(&redact::redact_line(option))
}

/// The words of a variable as they are written, quotes and all.
fn raw_words(text: &str) -> Result<Vec<&str>, EmitError> {
    let (mut all, mut begin, mut quote) = (Vec::new(), None, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, c) if c.is_ascii_whitespace() || c == '\x0b' => {
                all.extend(begin.take().map(|begin| &text[begin..at]));
            }
            (None, c) => {
                begin.get_or_insert(at);
                if matches!(c, '"' | '\'') {
                    quote = Some(c);
                }
            }
        }
    }
    all.extend(begin.map(|begin| &text[begin..]));
    match quote {
        None => Ok(all),
        Some(quote) => Err(EmitError::Manifest {
            why: format!("a quote {quote} in its JVM options is never closed"),
            hint: "a JVM refuses such a variable; close it".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(there: &str, measured: &[&str]) -> Result<MergedOptions, EmitError> {
        let measured: Vec<String> = measured.iter().map(|o| (*o).to_owned()).collect();
        merge_options(there, &measured, str::to_owned)
    }

    #[test]
    fn what_was_there_stays_unless_it_contradicts() {
        let there = "-Xmx512m  '-Da=b c' -XX:+UseG1GC -XX:MaxMetaspaceSize=1g $(MORE)";
        let merged = merged(there, &["-Xmx200m", "-XX:+UseSerialGC", "-Dx=y z"]);
        let merged = merged.expect("it can be said");
        assert_eq!(
            merged.value,
            "'-Da=b c' -XX:MaxMetaspaceSize=1g $(MORE) -Xmx200m -XX:+UseSerialGC \"-Dx=y z\""
        );
        insta::assert_snapshot!(merged.notes.join("\n"), @"
        -Xmx512m of the file is replaced by -Xmx200m, which was measured.
        -XX:+UseG1GC of the file is replaced by -XX:+UseSerialGC, which was measured.
        -XX:MaxMetaspaceSize=1g in JAVA_TOOL_OPTIONS stays, and was not measured: the size may not hold with it.
        $(MORE) stays; what it stands for was not looked at.
        ");
    }

    #[test]
    fn what_cannot_be_merged_is_refused() {
        assert!(merged("-Da='b", &[]).is_err());
        let secret = merged("-Dpassword=hunter2", &[]).expect_err("a secret");
        assert!(!format!("{secret} {}", secret.emit_hint()).contains("hunter2"));
        assert_eq!(merged("", &["-Da='\""]), Err(EmitError::ToolOptions));
    }

    #[test]
    fn options_that_win_are_refused_or_named() {
        let container = json!({"command": ["sh", "-c", "exec java -Xmx1g -jar a.jar"],
            "env": [{"name": "JAVA_OPTS", "value": "-Xss1m -Da=b"}, {"name": "X", "value": "-Xss2m"}]});
        let of = |measured: &[&str]| {
            let measured: Vec<String> = measured.iter().map(|o| (*o).to_owned()).collect();
            stronger_options(&container, &measured)
        };
        let refused = of(&["-Xmx200m"]).expect_err("the command wins");
        assert_eq!(
            refused.to_string(),
            "-Xmx1g in command wins over JAVA_TOOL_OPTIONS, and -Xmx200m was measured"
        );
        let notes = of(&["-Xmx1g"]).expect("they say the same");
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(
            notes[0].starts_with("-Xss1m in JAVA_OPTS stays"),
            "{notes:?}"
        );
    }

    proptest! {
        #[test]
        fn no_option_is_lost_in_silence(
            there in prop::collection::vec(
                prop::sample::select(&["-Xmx1g", "-Xms1g", "-Da=1", "-Db=\"x y\"", "-XX:+UseG1GC", "-Xss1m", "-ea"][..]), 0..8),
            new in prop::collection::vec(
                prop::sample::select(&["-Xmx2g", "-Xms1g", "-Da=2", "-XX:+UseZGC", "-Dc='d'"][..]), 0..5),
        ) {
            let merged = merged(&there.join(" "), &new).expect("it can be said");
            let words = words::split_environment(&merged.value).expect("a JVM reads it");
            prop_assert!(words.ends_with(&new.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>()));
            for old in &there {
                let plain = old.replace('"', "");
                let named = merged.notes.iter().any(|note| note.starts_with(&plain));
                prop_assert!(words.contains(&plain) || named, "{old} {merged:?}");
            }
        }
    }
}
