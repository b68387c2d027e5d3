//! The project's own text files: what git tracks, and what it would track.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::source::{blank_literals, test_items};
use crate::error::Error;
use crate::process::stdout_of;

pub struct File {
    /// Path relative to the checkout, with `/`.
    pub path: String,
    pub text: String,
    /// For Rust: the content with blanks for comments, literals and test-only items.
    pub plain: String,
    test_lines: Vec<RangeInclusive<usize>>,
}

pub struct Tree {
    pub root: PathBuf,
    pub files: Vec<File>,
    /// Paths without `.rs` of modules that are declared for tests only.
    test_modules: Vec<String>,
}

impl Tree {
    pub fn read(root: &Path) -> Result<Self, Error> {
        let mut git = Command::new("git");
        git.args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let list = stdout_of(git.current_dir(root))?;
        let mut paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let full = root.join(path);
            // Tracked but deleted here, or a symbolic link to a directory.
            if !full.is_file() {
                continue;
            }
            let bytes = fs::read(&full).map_err(Error::file(&full))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File::new(path, text));
            }
        }
        Ok(Self::new(root, files))
    }

    fn new(root: &Path, files: Vec<File>) -> Self {
        let test_modules = files.iter().flat_map(File::test_modules).collect();
        Self {
            root: root.to_owned(),
            files,
            test_modules,
        }
    }

    /// The Rust sources below `crates/*/src`: the shipped code. `tests.rs`, `tests/` and modules
    /// below `#[cfg(test)]` are tests.
    pub fn shipped(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            let mut parts = file.path.split('/');
            parts.next() == Some("crates")
                && parts.nth(1) == Some("src")
                && file.path.ends_with(".rs")
                && !parts.any(|part| part == "tests" || part == "tests.rs")
                && !self.is_test_module(&file.path)
        })
    }

    fn is_test_module(&self, path: &str) -> bool {
        let below = |module: &String| {
            path.strip_prefix(module.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        self.test_modules.iter().any(below)
    }
}

impl File {
    pub fn new(path: &str, text: String) -> Self {
        let is_rust = path.ends_with(".rs");
        let mut plain = match is_rust {
            true => blank_literals(&text),
            false => String::new(),
        };
        let line_at = |at: usize| text[..at].matches('\n').count() + 1;
        let mut test_lines = Vec::new();
        for item in test_items(&plain) {
            test_lines.push(line_at(item.start)..=line_at(item.end));
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            let blanks: String = plain[item.clone()].chars().map(blank).collect();
            plain.replace_range(item, &blanks);
        }
        Self {
            path: path.to_owned(),
            text,
            plain,
            test_lines,
        }
    }

    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.without_tests()
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Numbered lines outside test-only items.
    pub fn without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .map(|(index, line)| (index + 1, line))
            .filter(|(number, _)| !self.test_lines.iter().any(|item| item.contains(number)))
    }

    fn test_modules(&self) -> Vec<String> {
        let folder = match self.path.rsplit_once('/') {
            Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        let lines: Vec<&str> = self.text.lines().collect();
        let declared = self.test_lines.iter().filter_map(|item| {
            let last = lines.get(item.end() - 1)?.trim();
            let declaration = last.strip_suffix(';')?;
            let (_, name) = declaration.rsplit_once("mod ")?;
            let is_module = declaration.starts_with("mod ") || declaration.starts_with("pub");
            is_module.then(|| format!("{folder}/{name}"))
        });
        declared.collect()
    }
}

#[cfg(test)]
pub mod sample {
    //! Trees for tests of rules.

    use super::*;

    /// A tree of these (path, text) pairs.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter();
        let files = files.map(|(path, text)| File::new(path, (*text).to_owned()));
        Tree::new(Path::new("/srv/checkout"), files.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_without_comments_and_tests() {
        let tree = sample::tree(&[(
            "crates/a/src/lib.rs",
            "//! doc\nlet a = 1;\n// no\nlet b = 2;\n#[cfg(test)]\nmod tests {\n}\nlet c = 3;\n",
        )]);
        let lines: Vec<_> = tree.files[0].code().collect();
        assert_eq!(
            lines,
            [(2, "let a = 1;"), (4, "let b = 2;"), (8, "let c = 3;")]
        );
    }

    #[test]
    fn tests_and_examples_are_not_shipped() {
        let tree = sample::tree(&[
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/tests/x.rs", ""),
            ("crates/a/tests/src/y.rs", ""),
            ("crates/a/examples/z.rs", ""),
            ("crates/a/src/page.html", ""),
            ("xtask/src/main.rs", ""),
        ]);
        let paths: Vec<_> = tree.shipped().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/b/c.rs"]);
    }

    #[test]
    fn what_is_declared_for_tests_is_not_shipped() {
        let tree = sample::tree(&[
            (
                "crates/a/src/b/mod.rs",
                "#[cfg(test)]\nmod story;\nmod size;\n#[cfg(test)]\npub mod fake;\n",
            ),
            ("crates/a/src/b/story.rs", ""),
            ("crates/a/src/b/story/end.rs", ""),
            ("crates/a/src/b/size.rs", "#[cfg(test)]\nmod x;"),
            ("crates/a/src/b/size/x.rs", ""),
            ("crates/a/src/b/fake.rs", ""),
            ("crates/a/src/story.rs", ""),
        ]);
        let paths: Vec<_> = tree.shipped().map(|file| file.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "crates/a/src/b/mod.rs",
                "crates/a/src/b/size.rs",
                "crates/a/src/story.rs"
            ]
        );
    }

    #[test]
    fn a_test_only_import_does_not_end_the_code() {
        let tree = sample::tree(&[("x.rs", "#[cfg(test)]\nuse a::B;\nlet c = 3;\n")]);
        let lines: Vec<_> = tree.files[0].code().collect();
        assert_eq!(lines, [(3, "let c = 3;")]);
        assert_eq!(tree.files[0].plain.trim(), "let c = 3;");
    }
}
