//! Rules over every text file: no developer's paths, no dead links. Rules over pages: each opens with
//! the question it answers, and is in the table of contents.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use super::tree::File;
use super::{Finding, Project};

/// No absolute path of the machine that someone worked on. The forbidden words come from where
/// this checkout lies and from `$HOME`, so the rule knows every developer without a list. Of the
/// checkout it is the whole path: its first directory alone may be one that images have, too.
pub fn machine_paths(project: &Project) -> Vec<Finding> {
    let home = std::env::var("HOME").unwrap_or_default();
    let words = forbidden(&project.tree.root, &home);
    let mut findings = Vec::new();
    for file in &project.tree.files {
        for (index, line) in file.text.lines().enumerate() {
            let Some(word) = words.iter().find(|word| names_path(line, word)) else {
                continue;
            };
            findings.push(Finding {
                path: file.path.clone(),
                line: index + 1,
                message: format!("`{word}` is a path of a developer's machine; use a relative one"),
            });
        }
    }
    findings
}

fn forbidden(root: &Path, home: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut parts = root.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let (first, second) = (parts.next(), parts.next());
    if second.is_some() {
        words.push(format!("{}/", root.display()));
    }
    // Below /home the second directory is a person.
    if let (Some(homes @ ("home" | "Users")), Some(person)) = (first, second) {
        words.push(format!("/{homes}/{person}/"));
    }
    // /root alone is no secret; the hidden files below a home are somebody's.
    if home.len() > 1 {
        words.push(format!("{}/.", home.trim_end_matches('/')));
    }
    words
}

fn names_path(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-./}$)".contains(c))
    })
}

pub fn links(project: &Project) -> Vec<Finding> {
    let known: BTreeSet<&str> = project
        .tree
        .files
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let mut findings = Vec::new();
    for file in project
        .tree
        .files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
    {
        for (index, line) in file.text.lines().enumerate() {
            for target in targets(line) {
                let path = resolve(&file.path, target);
                let is_file = known.contains(path.as_str());
                let is_directory = known
                    .iter()
                    .any(|name| name.starts_with(&format!("{path}/")));
                if !is_file && !is_directory && !project.tree.root.join(&path).is_file() {
                    findings.push(Finding {
                        path: file.path.clone(),
                        line: index + 1,
                        message: format!("the link to `{target}` leads nowhere"),
                    });
                }
            }
        }
    }
    findings
}

const SUMMARY: &str = "docs/SUMMARY.md";

/// The first line of a page has at most this many words: a reader who searches skims it.
const OPENING_WORDS: usize = 25;

/// Every page in `docs` opens with one line that says which question it answers.
pub fn openings(project: &Project) -> Vec<Finding> {
    let finding = |page: &File| Finding {
        path: page.path.clone(),
        line: 3,
        message: format!(
            "say in one line of at most {OPENING_WORDS} words, below the heading, which question the page answers"
        ),
    };
    pages(project)
        .filter(|page| !has_opening(&page.text))
        .map(finding)
        .collect()
}

/// A heading, then one sentence as a paragraph of one line. No words are prescribed, so whether it
/// names the question is for a reviewer to see.
fn has_opening(page: &str) -> bool {
    let lines: Vec<&str> = page.lines().take(5).collect();
    let &[heading, "", opening, ref rest @ ..] = lines.as_slice() else {
        return false;
    };
    let is_alone = rest.first().is_none_or(|line| line.is_empty());
    let is_sentence = opening.starts_with(|c: char| c.is_alphanumeric() || c == '`')
        && opening.ends_with(['.', '?']);
    let is_short = opening.split_whitespace().count() <= OPENING_WORDS;
    heading.starts_with("# ") && is_alone && is_sentence && is_short
}

pub fn summary(project: &Project) -> Vec<Finding> {
    let files = project.tree.files.iter();
    let summary = files.clone().find(|file| file.path == SUMMARY);
    let lines = summary.map_or("", |file| file.text.as_str()).lines();
    let named: BTreeSet<String> = lines
        .flat_map(targets)
        .map(|target| resolve(SUMMARY, target))
        .collect();
    let finding = |page: &File| Finding {
        path: SUMMARY.to_owned(),
        line: 0,
        message: format!("it does not name {}", page.path),
    };
    pages(project)
        .filter(|page| !named.contains(&page.path))
        .map(finding)
        .collect()
}

fn pages(project: &Project) -> impl Iterator<Item = &File> {
    let is_page = |file: &&File| {
        file.path.starts_with("docs/") && file.path.ends_with(".md") && file.path != SUMMARY
    };
    project.tree.files.iter().filter(is_page)
}

/// Relative targets of `[text](target)` in a line, fragments cut off.
pub fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
        .filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
        .filter_map(|target| target.split('#').next())
        .filter(|target| !target.is_empty())
}

/// The path of a link, relative to the checkout.
pub fn resolve(from: &str, target: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::packages::Packages;
    use super::super::tree::sample;
    use super::*;

    fn project(files: &[(&str, &str)]) -> Project {
        Project {
            tree: sample::tree(files),
            packages: Packages::default(),
        }
    }

    #[test]
    fn the_checkouts_own_place_is_forbidden() {
        let found = machine_paths(&project(&[
            ("a.md", "fine\nsee /srv/checkout/build/x\n"),
            (
                "b.md",
                "https://example.org/srv/checkout/x and /srv/other\n",
            ),
        ]));
        let places: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.line)).collect();
        assert_eq!(places, [("a.md", 2)]);
    }

    #[test]
    fn the_forbidden_words_follow_the_machine() {
        assert_eq!(
            forbidden(Path::new("/home/ada/src/loadline"), "/home/ada"),
            ["/home/ada/src/loadline/", "/home/ada/", "/home/ada/."]
        );
        assert_eq!(
            forbidden(Path::new("/data7/loadline"), "/home/eve"),
            ["/data7/loadline/", "/home/eve/."]
        );
        assert!(forbidden(Path::new("/work"), "").is_empty());
        assert_eq!(forbidden(Path::new("/srv/x"), ""), ["/srv/x/"]);
        assert!(names_path("in \"/data7/x\"", "/data7/"));
        assert!(!names_path("in $HOME/data7/x", "/data7/"));
    }

    #[test]
    fn dead_links_are_found_and_live_ones_are_not() {
        let found = links(&project(&[
            (
                "docs/a.md",
                "[b](b.md#part) [up](../README.md) [dir](guides) [web](https://x.org/y)\n",
            ),
            ("docs/b.md", "[gone](gone.md) [self](#here)\n"),
            ("docs/guides/c.md", ""),
            ("README.md", ""),
        ]));
        let places: Vec<_> = found.iter().map(|f| f.to_string()).collect();
        assert_eq!(places, ["docs/b.md:1: the link to `gone.md` leads nowhere"]);
    }

    #[test]
    fn a_page_opens_with_one_short_sentence() {
        assert!(has_opening("# A\n\nWhat a size costs.\n\nMore.\n"));
        assert!(has_opening("# A\n\nDoes it hold?\n"));
        let long = format!("# A\n\n{}end.\n", "word ".repeat(OPENING_WORDS));
        for page in [
            "# A\n",
            "# A\n\n## B\n",
            "# A\n\n- a list.\n",
            "# A\n\nTwo lines\nof text.\n",
            "# A\n\n```\nloadline size\n```\n",
            long.as_str(),
        ] {
            assert!(!has_opening(page), "{page}");
        }
    }

    #[test]
    fn a_page_has_an_opening_and_a_place_in_the_summary() {
        let project = project(&[
            (
                "docs/SUMMARY.md",
                "# all\n\n[read me](../README.md)\n- [a](a.md)\n",
            ),
            ("docs/a.md", "# A\n\nWhat it is.\n"),
            ("docs/guides/b.md", "# B\n\n```\nb\n```\n"),
            ("README.md", "# loadline\n"),
        ]);
        let found: Vec<_> = openings(&project).into_iter().map(|f| f.path).collect();
        assert_eq!(found, ["docs/guides/b.md"]);
        let found: Vec<_> = summary(&project).into_iter().map(|f| f.message).collect();
        assert_eq!(found, ["it does not name docs/guides/b.md"]);
    }
}
