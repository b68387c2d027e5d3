//! The documents of the checkout as the source of a book: the same files at the same places.
//!
//! `docs/SUMMARY.md` has the order. A Markdown file that a page links to and the summary does not
//! name becomes a page too, after the others; any other linked file is copied; a link to a
//! directory leads to its README, or to a list of its content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::check::documents::{resolve, targets};
use crate::error::Error;
use crate::process::entries;

#[derive(Default)]
pub struct Pages {
    summary: String,
    texts: BTreeMap<String, String>,
    files: BTreeSet<String>,
}

impl Pages {
    pub fn read(root: &Path, summary: &str) -> Result<Self, Error> {
        let full = root.join(summary);
        let text = fs::read_to_string(&full).map_err(Error::file(&full))?;
        let mut pages = Self {
            summary: at_root(&text, summary),
            ..Self::default()
        };
        let named = text.lines().flat_map(targets);
        let named: Vec<String> = named.map(|target| resolve(summary, target)).collect();
        let mut waiting = named.clone();
        while let Some(path) = waiting.pop() {
            if !pages.texts.contains_key(&path) {
                waiting.extend(pages.take(root, &path)?);
            }
        }
        let more = pages.texts.keys().filter(|path| !named.contains(path));
        let mut lines = String::from("\n# Linked to\n\n");
        for path in more {
            let name = path.trim_end_matches("/index.md");
            lines.push_str(&format!("- [{name}]({path})\n"));
        }
        pages.summary.push_str(&lines);
        Ok(pages)
    }

    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// Takes a page, or the list of a directory; gives the pages that it links to.
    fn take(&mut self, root: &Path, path: &str) -> Result<Vec<String>, Error> {
        let full = root.join(path);
        let text = match path.strip_suffix("/index.md") {
            Some(directory) if !full.is_file() => list(&root.join(directory), directory)?,
            _ => fs::read_to_string(&full).map_err(Error::file(&full))?,
        };
        let mut next = Vec::new();
        let mut lines = Vec::new();
        for line in text.lines() {
            let mut line = line.to_owned();
            for target in targets(&line.clone()) {
                let mut to = resolve(path, target);
                if root.join(&to).is_dir() {
                    let has_readme = root.join(&to).join("README.md").is_file();
                    let page = if has_readme { "README.md" } else { "index.md" };
                    let within = format!("{}/{page}", target.trim_end_matches('/'));
                    line = line.replace(&format!("]({target})"), &format!("]({within})"));
                    to = format!("{to}/{page}");
                }
                match to.ends_with(".md") {
                    true => next.push(to),
                    false => drop(self.files.insert(to)),
                }
            }
            lines.push(line);
        }
        self.texts.insert(path.to_owned(), lines.join("\n") + "\n");
        Ok(next)
    }

    pub fn write(&self, root: &Path, to: &Path) -> Result<(), Error> {
        for file in &self.files {
            let (from, to) = (root.join(file), to.join(file));
            parent(&to)?;
            fs::copy(&from, &to).map_err(Error::file(&from))?;
        }
        let summary = ("SUMMARY.md".to_owned(), self.summary.clone());
        for (path, text) in self.texts.clone().into_iter().chain([summary]) {
            let to = to.join(path);
            parent(&to)?;
            fs::write(&to, text).map_err(Error::file(&to))?;
        }
        Ok(())
    }
}

fn parent(path: &Path) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(Error::file(parent))
}

fn at_root(text: &str, file: &str) -> String {
    let moved = |line: &str| {
        // The question behind a link is for readers of the file.
        let line = line.find("): ").map_or(line, |end| &line[..=end]);
        targets(line).fold(line.to_owned(), |line, target| {
            let there = format!("]({})", resolve(file, target));
            line.replace(&format!("]({target})"), &there)
        })
    };
    let lines: Vec<String> = text.lines().map(moved).collect();
    lines.join("\n") + "\n"
}

fn list(directory: &Path, name: &str) -> Result<String, Error> {
    let paths = entries(directory)?;
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    let lines = names.map(|name| format!("- [{name}]({name})\n"));
    Ok(format!("# {name}\n\n") + &lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_goes_along_and_directories_are_listed() {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in [
            ("docs/SUMMARY.md", "# all\n\n- [a](a.md): how?\n"),
            (
                "docs/a.md",
                "[b](../b.md#part) [runs](../runs) [x](x.json)\n",
            ),
            ("docs/x.json", "{}"),
            ("b.md", "nothing\n"),
            ("runs/one.csv", "1"),
            ("left.md", "nobody links here\n"),
        ] {
            let full = root.path().join(path);
            parent(&full).expect("made");
            fs::write(full, text).expect("written");
        }
        let pages = Pages::read(root.path(), "docs/SUMMARY.md").expect("read");
        let texts: Vec<&str> = pages.texts.keys().map(String::as_str).collect();
        assert_eq!(texts, ["b.md", "docs/a.md", "runs/index.md"]);
        let files: Vec<&str> = pages.files.iter().map(String::as_str).collect();
        assert_eq!(files, ["docs/x.json", "runs/one.csv"]);
        assert!(pages.texts["docs/a.md"].contains("[runs](../runs/index.md)"));
        assert_eq!(
            pages.summary,
            "# all\n\n- [a](docs/a.md)\n\n# Linked to\n\n- [b.md](b.md)\n- [runs](runs/index.md)\n"
        );
    }
}
