//! The project's own text files: what git tracks, and what it would track.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process::stdout_of;

/// A text file.
pub struct File {
    /// Path relative to the checkout, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// All text files of the project.
pub struct Tree {
    /// Where the checkout is.
    pub root: PathBuf,
    /// Sorted by path. Binary files are left out.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads every file that git tracks or would track.
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
                files.push(File {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        Ok(Self {
            root: root.to_owned(),
            files,
        })
    }

    /// The Rust sources below `crates/*/src`: what is shipped. `tests.rs` and `tests/` in there
    /// are test modules that are too long to stand in the file they test.
    pub fn shipped(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            let mut parts = file.path.split('/');
            parts.next() == Some("crates")
                && parts.nth(1) == Some("src")
                && file.path.ends_with(".rs")
                && !parts.any(|part| part == "tests" || part == "tests.rs")
        })
    }
}

impl File {
    /// Numbered lines of code: comments are left out, and so is all from the first
    /// `#[cfg(test)]` module on (tests stand at the end of a file).
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.tests_start();
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .take_while(move |(number, _)| *number < tests)
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Number of the line with which the tests begin, or one past the last line.
    pub fn tests_start(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        lines
            .windows(2)
            .position(|pair| {
                pair[0].trim() == "#[cfg(test)]" && pair[1].trim_start().starts_with("mod ")
            })
            .map_or(lines.len() + 1, |index| index + 1)
    }
}

#[cfg(test)]
pub mod sample {
    //! Trees for tests of rules.

    use super::*;

    /// A tree of these (path, text) pairs.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        Tree {
            root: PathBuf::from("/srv/checkout"),
            files: files
                .iter()
                .map(|(path, text)| File {
                    path: (*path).to_owned(),
                    text: (*text).to_owned(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_without_comments_and_tests() {
        let tree = sample::tree(&[(
            "crates/a/src/lib.rs",
            "//! doc\nlet a = 1;\n// no\nlet b = 2;\n#[cfg(test)]\nmod tests {\n}\n",
        )]);
        let lines: Vec<_> = tree.files[0].code().collect();
        assert_eq!(lines, [(2, "let a = 1;"), (4, "let b = 2;")]);
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
    fn a_test_only_import_does_not_end_the_code() {
        let tree = sample::tree(&[("x.rs", "#[cfg(test)]\nuse a::B;\nlet c = 3;\n")]);
        assert_eq!(tree.files[0].code().count(), 3);
    }
}
