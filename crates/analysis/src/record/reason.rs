//! Why a trial has its verdict: sentences, first what broke, then what lies behind it.
//!
//! Owns their text form, which is what records store: the sentences, separated by `; `. Never
//! judges; `verdict` and `app_ko` write the sentences.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SEPARATOR: &str = "; ";

/// Sentences that say why, in the order of what they explain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct VerdictReason(Vec<String>);

impl VerdictReason {
    /// Adds a sentence. One that quotes an application may hold the separator; a comma then stands
    /// for it, so that the text reads back as the same sentences.
    pub fn push(&mut self, sentence: &str) {
        self.0.push(sentence.replace(SEPARATOR, ", "));
    }

    pub fn prefixed(mut self, words: &str) -> Self {
        if let Some(first) = self.0.first_mut() {
            first.insert_str(0, words);
        }
        self
    }

    /// Without its middle: the first thing that broke, and its explanation. The table of all trials
    /// has the full text.
    pub fn in_short(&self) -> String {
        match self.0.as_slice() {
            [first, .., last] => format!("{first}{SEPARATOR}{last}"),
            all => all.concat(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<S: AsRef<str>> FromIterator<S> for VerdictReason {
    fn from_iter<I: IntoIterator<Item = S>>(sentences: I) -> Self {
        let mut reason = Self::default();
        reason.extend(sentences);
        reason
    }
}

impl<S: AsRef<str>> Extend<S> for VerdictReason {
    fn extend<I: IntoIterator<Item = S>>(&mut self, sentences: I) {
        for sentence in sentences {
            self.push(sentence.as_ref());
        }
    }
}

impl From<String> for VerdictReason {
    fn from(text: String) -> Self {
        if text.is_empty() {
            Self::default()
        } else {
            Self(text.split(SEPARATOR).map(str::to_owned).collect())
        }
    }
}

impl From<VerdictReason> for String {
    fn from(reason: VerdictReason) -> Self {
        reason.to_string()
    }
}

impl fmt::Display for VerdictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.join(SEPARATOR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_reason_reads_back_as_the_same_sentences() {
        let mut reason = VerdictReason::from("p99 was 83ms".to_owned());
        assert_eq!(reason.in_short(), "p99 was 83ms");
        reason.extend(["it said `a; b`", "GC took 30 % of the CPU"]);
        let text = reason.to_string();
        assert_eq!(
            text,
            "p99 was 83ms; it said `a, b`; GC took 30 % of the CPU"
        );
        assert_eq!(VerdictReason::from(text), reason);
        assert_eq!(reason.in_short(), "p99 was 83ms; GC took 30 % of the CPU");
        assert_eq!(VerdictReason::from(String::new()), VerdictReason::default());
    }
}
