//! Rules over every text file: no developer's paths, no dead links.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use super::{Finding, Project};

/// No absolute path of a developer's machine. The forbidden words come from the checkout's place
/// and from `$HOME`, so the rule knows every developer without a list. For the checkout it is the
/// whole path: its first directory alone may exist in images, too.
pub fn machine_paths(project: &Project) -> Vec<Finding> {
    let home = std::env::var("HOME").unwrap_or_default();
    let words = forbidden(&project.tree.root, &home);
    let mut findings = Vec::new();
    for file in &project.tree.files {
        for (index, line) in file.text.lines().enumerate() {
            let Some(word) = words.iter().find(|word| names_path(line, word)) else {
                continue;
            };
            let message =
                format!("`{word}` is a path of a developer's machine; use a relative one");
            findings.push(Finding::new(&file.path, index + 1, message));
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
    // /root alone is no secret; the hidden files below a home are a user's.
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
    let files = &project.tree.files;
    let known: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            for target in targets(line) {
                let path = resolve(&file.path, target);
                let is_file = known.contains(path.as_str());
                let is_directory = known
                    .iter()
                    .any(|name| name.starts_with(&format!("{path}/")));
                if !is_file && !is_directory && !project.tree.root.join(&path).is_file() {
                    let message = format!("the link to `{target}` leads nowhere");
                    findings.push(Finding::new(&file.path, index + 1, message));
                }
            }
        }
    }
    findings
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
}
