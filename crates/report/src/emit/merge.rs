//! Merges measured JVM options with a container's own.
//!
//! Owns which of the container's options stay. An option that conflicts with a measured one, or
//! does not fit into the size, is replaced and named. If a patch cannot reach it, it is refused.
//! Everything else in a variable stays as written. The rule itself is
//! `loadline_sizing::options::conflict`.

use loadline_sizing::hotspot::MachineSize;
use loadline_sizing::options::conflict::{is_sizing, replaces};
use loadline_sizing::options::dimension::{OptionDimension, of_flag};
use loadline_sizing::options::words;
use loadline_sizing::regions::heap::{HeapOverrun, check_container};
use loadline_sizing::{Bytes, JavaVersion, JdkRelease, JvmOptionSet};
use serde_json::Value;

use super::error::EmitError;
use super::jvm_options::TOOL_OPTIONS;
use crate::{redact, text};

#[derive(Debug, Clone, Copy)]
pub struct HeapRoom {
    pub machine: MachineSize,
    /// Memory outside the heap; a typical service's where none was measured.
    pub rest: Option<Bytes>,
}

impl HeapRoom {
    fn overrun(&self, option: &str) -> Option<HeapOverrun> {
        let jdk = JdkRelease::for_hotspot(JavaVersion::from_feature(USUAL_JDK));
        let options = JvmOptionSet::from_words([option]);
        // The largest heap is at least the first one.
        let is_heap =
            |name: &str| of_flag(name) == Some(OptionDimension::Heap) || name == "InitialHeapSize";
        let decides = options.settings().any(|(name, _)| is_heap(name));
        check_container(jdk, self.machine, &options, (self.rest, Bytes::default()))
            .filter(|_| decides)
    }
}

const USUAL_JDK: u32 = 17;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedOptions {
    pub value: String,
    /// Replacements, and parts that were not measured; a sentence each.
    pub notes: Vec<String>,
}

/// The measured options behind those of `there`, the value that a file of the user has. `escaped`
/// writes an option as that file takes it.
/// Errors: [`EmitError::Manifest`] when the value is none that a JVM reads, or holds a secret;
/// [`EmitError::ToolOptions`] when a measured option cannot be said in a variable.
pub fn merge_options(
    there: &str,
    measured: &[String],
    room: HeapRoom,
    escaped: impl Fn(&str) -> String,
) -> Result<MergedOptions, EmitError> {
    if redact::redact_line(there) != there {
        return Err(EmitError::Manifest {
            why: "its JVM options hold a secret, and no file of loadline does".to_owned(),
            hint: "put the secret into a separate variable from a Secret, and write $(NAME) in the options".to_owned(),
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
            None if room.overrun(&word).is_some() => notes.push(taken_out(&word)),
            None => {
                if is_sizing(&word) {
                    notes.push(not_measured(&word, TOOL_OPTIONS));
                }
                if word.contains("$(") {
                    let word = redacted_option(&word);
                    notes.push(format!(
                        "{word} stays; what it stands for was not looked at."
                    ));
                }
                kept.push(raw.to_owned());
            }
        }
    }
    for option in measured {
        let option = words::quote_option(option).ok_or(EmitError::ToolOptions)?;
        kept.push(escaped(&option));
    }
    Ok(MergedOptions {
        value: kept.join(" "),
        notes,
    })
}

type ReplacedVariables = (Vec<(String, String)>, Vec<String>);

/// Other variables of a container with JVM options that conflict with the measured ones, replaced,
/// and notes about the rest. Command and arguments cannot be patched word by word: they are
/// refused.
///
/// # Errors
///
/// [`EmitError::Manifest`] with the line to change.
pub fn replace_in_place(
    container: &Value,
    measured: &[String],
    room: HeapRoom,
) -> Result<ReplacedVariables, EmitError> {
    let (mut changes, mut notes) = (Vec::new(), Vec::new());
    let mut left = count_option_words(container);
    for place in ["command", "args"] {
        for (at, text) in words_at(container, place).enumerate() {
            if left == 0 {
                break;
            }
            left -= 1;
            let words = changed_words(text, measured, room);
            if let Some((old, new)) = words.into_iter().find(|(_, new)| new.is_some()) {
                let place = format!("{place}[{at}]");
                return Err(wrong_place_error(&place, old, new.flatten()));
            }
            notes.extend(unmeasured_options(text, measured, place));
        }
    }
    for (name, value) in variables(container).filter(|(name, _)| *name != TOOL_OPTIONS) {
        let text = value.as_str().unwrap_or_default();
        let mut value = String::new();
        let own = words::find_jvm_options(text).into_iter();
        let own = own.filter(|own| measured.iter().any(|m| m == own));
        let mut said: Vec<&str> = own.collect();
        let mut at = 0;
        for (old, new) in changed_words(text, measured, room) {
            let Some(new) = new else { continue };
            if redact::redact_line(text) != text {
                return Err(wrong_place_error(name, old, new));
            }
            let begin = old.as_ptr().addr() - text.as_ptr().addr();
            value.push_str(&text[at..begin]);
            at = begin + old.len();
            notes.push(match new {
                Some(new) => format!(
                    "{} in {name} is replaced by {}, which was measured.",
                    redacted_option(old),
                    redacted_option(new)
                ),
                None => taken_out(old),
            });
            match new.filter(|new| !said.contains(&new.as_str())) {
                Some(new) => {
                    value.push_str(new);
                    said.push(new);
                }
                None => at += text[at..].len() - text[at..].trim_start_matches([' ', '\t']).len(),
            }
        }
        if at > 0 {
            value.push_str(&text[at..]);
            changes.push((name.to_owned(), value.trim_end().to_owned()));
        } else {
            notes.extend(unmeasured_options(text, measured, name));
        }
    }
    Ok((changes, notes))
}

fn words_at<'a>(container: &'a Value, place: &str) -> impl Iterator<Item = &'a str> {
    let items = container.get(place).and_then(Value::as_array);
    let items = items.into_iter().flatten();
    items.map(|item| item.as_str().unwrap_or_default())
}

/// How many words of command and arguments may have JVM options: words behind the jar are the
/// application's.
fn count_option_words(container: &Value) -> usize {
    let command = words_at(container, "command");
    let all: Vec<&str> = command.chain(words_at(container, "args")).collect();
    match all.split_first() {
        Some((program, arguments)) if program.rsplit('/').next() == Some("java") => {
            1 + words::count_java_words(arguments)
        }
        _ => all.len(),
    }
}

/// The JVM options of a text: `Some` where one cannot stay, with the measured one for it, if any.
type ChangedWord<'t, 'm> = (&'t str, Option<Option<&'m String>>);

fn changed_words<'t, 'm>(
    text: &'t str,
    measured: &'m [String],
    room: HeapRoom,
) -> Vec<ChangedWord<'t, 'm>> {
    let change = |word: &'t str| {
        let new = measured.iter().find(|new| replaces(new, word));
        let same = new.is_some_and(|new| new == word);
        let changed = new.is_some() || room.overrun(word).is_some();
        (word, (changed && !same).then_some(new))
    };
    let words = words::find_jvm_options(text).into_iter();
    words.map(change).collect()
}

fn unmeasured_options(text: &str, measured: &[String], place: &str) -> Vec<String> {
    let words = words::find_jvm_options(text).into_iter();
    let words = words.filter(|word| is_sizing(word) && !measured.iter().any(|m| m == word));
    words.map(|word| not_measured(word, place)).collect()
}

fn wrong_place_error(place: &str, old: &str, new: Option<&String>) -> EmitError {
    let old = redacted_option(old);
    let (why, hint) = match new.map(|new| redacted_option(new)) {
        Some(new) => (
            format!("{old} in {place} wins over {TOOL_OPTIONS}, and {new} was measured"),
            format!("change {old} in {place} to {new}, and emit again"),
        ),
        None => (
            format!("{old} in {place} does not fit into the measured size, and was not measured"),
            format!("take {old} out of {place}, and emit again"),
        ),
    };
    EmitError::Manifest { why, hint }
}

fn taken_out(option: &str) -> String {
    let option = redacted_option(option);
    format!(
        "{option} is taken out: it does not fit into the measured size, and the trials did not have it."
    )
}

/// Names and values of a container's variables; `null` for a reference.
pub fn variables(container: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = container.get("env").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|variable| {
        let name = variable.get("name")?.as_str()?;
        Some((name, variable.get("value").unwrap_or(&Value::Null)))
    })
}

fn not_measured(option: &str, place: &str) -> String {
    let option = redacted_option(option);
    format!("{option} in {place} stays, and was not measured: the size may not hold with it.")
}

fn redacted_option(option: &str) -> String {
    text::label(&redact::redact_line(option))
}

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
        merge_options(there, &measured, room(), str::to_owned)
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

    /// 232Mi with 170Mi outside the heap.
    fn room() -> HeapRoom {
        HeapRoom {
            machine: MachineSize {
                memory: Bytes::from_mib(4096),
                cpus: 1,
            },
            rest: Some(Bytes::from_mib(170)),
        }
    }

    fn replaced(container: &Value, measured: &[&str], mib: u64) -> Result<String, EmitError> {
        let measured: Vec<String> = measured.iter().map(|o| (*o).to_owned()).collect();
        let mut room = room();
        room.machine.memory = Bytes::from_mib(mib);
        let (changes, notes) = replace_in_place(container, &measured, room)?;
        let changes = changes
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        Ok(changes.chain(notes).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn options_that_win_are_replaced_in_place() {
        let container = json!({"env": [
            {"name": "KAFKA_HEAP_OPTS", "value": "-Xmx1g -Xms1g -Da=b"},
            {"name": "JAVA_OPTS", "value": "-Xss1m '-Dx=y z' -XX:+UseG1GC"},
            {"name": "X", "value": "-Xss2m"}]});
        let said = [
            replaced(&container, &["-Xmx200m", "-XX:+UseSerialGC"], 512),
            replaced(&container, &[], 232),
            replaced(&container, &["-Xmx1g"], 2048),
        ];
        let said = said.map(|said| said.expect("it can be said"));
        insta::assert_snapshot!(said.join("\n\n"), @"
        KAFKA_HEAP_OPTS=-Xmx200m -Da=b
        JAVA_OPTS=-Xss1m '-Dx=y z' -XX:+UseSerialGC
        -Xmx1g in KAFKA_HEAP_OPTS is replaced by -Xmx200m, which was measured.
        -Xms1g in KAFKA_HEAP_OPTS is replaced by -Xmx200m, which was measured.
        -XX:+UseG1GC in JAVA_OPTS is replaced by -XX:+UseSerialGC, which was measured.
        -Xss2m in X stays, and was not measured: the size may not hold with it.

        KAFKA_HEAP_OPTS=-Da=b
        -Xmx1g is taken out: it does not fit into the measured size, and the trials did not have it.
        -Xms1g is taken out: it does not fit into the measured size, and the trials did not have it.
        -Xss1m in JAVA_OPTS stays, and was not measured: the size may not hold with it.
        -XX:+UseG1GC in JAVA_OPTS stays, and was not measured: the size may not hold with it.
        -Xss2m in X stays, and was not measured: the size may not hold with it.

        KAFKA_HEAP_OPTS=-Xmx1g -Da=b
        -Xms1g in KAFKA_HEAP_OPTS is replaced by -Xmx1g, which was measured.
        -Xss1m in JAVA_OPTS stays, and was not measured: the size may not hold with it.
        -XX:+UseG1GC in JAVA_OPTS stays, and was not measured: the size may not hold with it.
        -Xss2m in X stays, and was not measured: the size may not hold with it.
        ");
    }

    #[test]
    fn what_no_patch_reaches_is_refused_with_the_line() {
        let container = json!({"command": ["sh", "-c", "exec java -Xmx1g -jar a.jar"]});
        let said = |measured: &[&str], mib| {
            let error = replaced(&container, measured, mib).expect_err("the command wins");
            format!("{error}\n{}", error.emit_hint())
        };
        insta::assert_snapshot!([said(&["-Xmx200m"], 512), said(&[], 232)].join("\n"), @"
        -Xmx1g in command[2] wins over JAVA_TOOL_OPTIONS, and -Xmx200m was measured
        change -Xmx1g in command[2] to -Xmx200m, and emit again
        -Xmx1g in command[2] does not fit into the measured size, and was not measured
        take -Xmx1g out of command[2], and emit again
        ");
        assert_eq!(replaced(&container, &["-Xmx1g"], 2048).as_deref(), Ok(""));
        let behind = json!({"command": ["java", "-jar"], "args": ["a.jar", "-Xmx1g"]});
        assert_eq!(replaced(&behind, &["-Xmx200m"], 512).as_deref(), Ok(""));
        let secret = json!({"env": [{"name": "A", "value": "-Xmx1g -Dpassword=hunter2"}]});
        let error = replaced(&secret, &["-Xmx200m"], 512).expect_err("a secret");
        assert!(!format!("{error} {}", error.emit_hint()).contains("hunter2"));
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
