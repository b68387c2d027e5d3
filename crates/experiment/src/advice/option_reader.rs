//! Who takes the text of JVM options apart, and so which options are in it.
//!
//! Owns three readers. Source: `loadline_sizing::options::words` for the JVM's own variables; `java`
//! takes its arguments as they are.

use loadline_sizing::options::words;

/// Variables that the JVM reads itself.
pub(super) const JVM_VARIABLES: [&str; 3] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"];

/// The JVM's variable that was meant by a name that neither it nor a script reads: `JAVA_TOOL_OPTS`.
pub(super) fn meant_variable(name: &str) -> Option<&'static str> {
    let mut begins = ["JAVA_TOOL", "JDK_JAVA_OPT"].iter().zip(JVM_VARIABLES);
    let (_, meant) = begins.find(|(begin, _)| name.starts_with(**begin))?;
    (name != meant).then_some(meant)
}

/// Who takes a text apart.
#[derive(Clone, Copy)]
pub(super) enum OptionReader {
    /// The JVM, with its own quotes.
    Jvm,
    /// `java` takes a word as it is, with its blanks.
    Word,
    Script,
}

impl OptionReader {
    pub(super) fn find_options(self, text: &str) -> Vec<String> {
        let words = match self {
            Self::Jvm => words::split_environment(text).ok(),
            Self::Word => Some(vec![text.to_owned()]),
            Self::Script => None,
        };
        let is_option = |word: &String| {
            let options = words::find_jvm_options(word);
            options
                .first()
                .is_some_and(|option| word.starts_with(option))
        };
        match words {
            Some(words) => words.into_iter().filter(is_option).collect(),
            None => words::find_jvm_options(text)
                .into_iter()
                .map(|option| option.replace(['"', '\''], ""))
                .collect(),
        }
    }
}
