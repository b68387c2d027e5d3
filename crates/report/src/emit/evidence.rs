//! `evidence.md`: why each value of the YAML files is what it is, in full. Their comments are short.

use std::collections::BTreeSet;

use loadline_analysis::text::join_words;

use super::facts::EmitFacts;
use super::kubernetes;
use super::yaml::Yaml;
use crate::escape::escape_markdown;
use crate::table::{Table, TableCell, Tone};

pub fn evidence(facts: &EmitFacts<'_>) -> String {
    let documents = kubernetes::documents(facts);
    let mut reasons: Vec<(&str, &str)> = documents.iter().flat_map(Yaml::reasons).collect();
    let options = facts.options.iter();
    reasons.extend(options.map(|o| (o.value.as_str(), o.because.as_str())));
    let mut table = Table::new().left("value").wrapping("because");
    let mut told = BTreeSet::new();
    for (name, why) in reasons {
        if told.insert((name, why)) {
            table.add_row([TableCell::new(name, Tone::Code), why.into()]);
        }
    }
    let claim = facts.origin.iter().map(|line| escape_markdown(line));
    let (claim, table) = (join_words(claim, "\n\n"), table.to_markdown());
    format!("# Evidence for {}\n\n{claim}\n\n{table}", facts.slug)
}
