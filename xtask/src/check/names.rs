//! Rules over names: that they explain themselves, and that each means one thing.
//!
//! The limits are those that projects of this size keep without effort. jj: 7 % of the types are a
//! single word, 7 % share their name with another; firecracker: 11 % and 10 %.

use std::collections::BTreeMap;

use super::{Finding, Project};

const ONE_WORD_TYPES: usize = 30;
const SHARED_TYPES: usize = 12;
const ONE_WORD_FUNCTIONS: usize = 35;
const DEFINITIONS: usize = 5;

/// Names that the standard library, serde or protox prescribes.
const GIVEN: &str = "new fmt from from_str try_from default drop next deref deref_mut eq cmp partial_cmp hash \
    serialize deserialize main as_ref index into_iter clone source expecting open_file visit_str \
    run read write";

/// Methods of a trait of ours, which has more implementations than [`DEFINITIONS`].
const OF_TRAITS: &[&str] = &[
    // Whatever carries out a trial: this machine, an engine, a cluster, a simulation.
    "stop_trial",
    // Whatever a figure shows the middle of: counts, bytes, lengths of time.
    "midpoint_with",
];

/// Where names are defined: each with `path:line` of its definitions.
type Definitions<'a> = BTreeMap<&'a str, Vec<(&'a str, usize)>>;

pub fn explain(project: &Project) -> Vec<Finding> {
    let (types, functions) = (types(project), functions(project));
    let mut findings = Vec::new();
    let mut limit =
        |what: &str, most: usize, of: &Definitions<'_>, counts: fn(&str, usize) -> bool| {
            let all: usize = of.values().map(Vec::len).sum();
            let counted = of
                .iter()
                .filter(|(name, places)| counts(name, places.len()));
            let count: usize = counted.map(|(_, places)| places.len()).sum();
            if count * 100 > all * most {
                let message = format!("{count} of {all} {what}, more than {most} %");
                findings.push(Finding::new("crates", 0, message));
            }
        };
    let is_one_word = |name: &str, _| name.chars().filter(|c| c.is_ascii_uppercase()).count() == 1;
    let what = "types have a name of one word";
    limit(what, ONE_WORD_TYPES, &types, is_one_word);
    let what = "types share their name with another";
    limit(what, SHARED_TYPES, &types, |_, count| count > 1);
    let is_one_word = |name: &str, _| !name.contains('_');
    let what = "functions have a name of one word";
    limit(what, ONE_WORD_FUNCTIONS, &functions, is_one_word);
    findings
}

/// No name is defined so often that a search for it finds everything.
pub fn repeated(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, places) in types(project).into_iter().chain(functions(project)) {
        if places.len() <= DEFINITIONS || OF_TRAITS.contains(&name) {
            continue;
        }
        let message = format!(
            "`{name}` has {} definitions, more than {DEFINITIONS}; name what this one does",
            places.len()
        );
        let all = places.iter();
        findings.extend(all.map(|(path, line)| Finding::new(path, *line, message.as_str())));
    }
    findings
}

fn types(project: &Project) -> Definitions<'_> {
    let mut found = Definitions::new();
    for file in project.tree.shipped() {
        for (index, line) in file.plain.lines().enumerate() {
            let mut words =
                words(line).skip_while(|word| matches!(*word, "pub" | "crate" | "super" | "in"));
            if matches!(words.next(), Some("struct" | "enum" | "trait"))
                && let Some(name) = words.next()
            {
                found.entry(name).or_default().push((&file.path, index + 1));
            }
        }
    }
    found
}

fn functions(project: &Project) -> Definitions<'_> {
    let mut found = Definitions::new();
    for file in project.tree.shipped() {
        for (index, line) in file.plain.lines().enumerate() {
            // `fn(A) -> B` is a type.
            let behind = line.split("fn ").skip(1).zip(line.split("fn "));
            for (rest, before) in behind {
                let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
                let name = words(rest).next().unwrap_or_default();
                if is_word && !name.is_empty() && !GIVEN.split(' ').any(|given| given == name) {
                    found.entry(name).or_default().push((&file.path, index + 1));
                }
            }
        }
    }
    found
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::packages::Packages;
    use super::super::tree::sample;
    use super::*;

    fn messages(rule: fn(&Project) -> Vec<Finding>, text: &str) -> Vec<String> {
        let project = Project {
            tree: sample::tree(&[("crates/a/src/lib.rs", text)]),
            packages: Packages::default(),
        };
        rule(&project).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_that_say_too_little_are_counted() {
        let text = "pub struct Kept;\npub(crate) enum SearchEnd {}\nmod b { trait SearchEnd {} }\nfn of(a: fn(B)) {}\nconst fn take_one() {}\nfn new() {}\n";
        assert_eq!(
            messages(explain, text),
            [
                "crates: 1 of 2 types have a name of one word, more than 30 %",
                "crates: 1 of 2 functions have a name of one word, more than 35 %",
            ]
        );
        let text = "struct SearchEnd;\nstruct SearchEnd;\nfn take_one() {}\n";
        assert_eq!(
            messages(explain, text),
            ["crates: 2 of 2 types share their name with another, more than 12 %"]
        );
        let test = "#[cfg(test)]\nmod tests { struct A; fn of() {} }\n// struct B;\n";
        assert!(messages(explain, test).is_empty());
    }

    #[test]
    fn a_name_with_too_many_definitions_is_shown_at_each() {
        let text = "fn is_over() {}\n".repeat(DEFINITIONS);
        assert!(messages(repeated, &text).is_empty());
        let text = "fn is_over() {}\n".repeat(DEFINITIONS + 1);
        let found = messages(repeated, &text);
        assert_eq!(found.len(), DEFINITIONS + 1);
        assert_eq!(
            found[1],
            "crates/a/src/lib.rs:2: `is_over` has 6 definitions, more than 5; name what this one does"
        );
        assert!(messages(repeated, &text.replace("is_over", "stop_trial")).is_empty());
    }
}
