//! What a log cannot hold: bodies and headers of requests, by method and path.
//!
//! Owns which template a class of requests has. A pattern is a method and a path: `*` stands for
//! what lies between two slashes (also as the method), `**` for everything. The path is that of
//! the class, as `loadline profile` prints it: `POST /orders/{id}/items`; keys of a query count only
//! where the pattern has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Request;
use crate::error::LoadError;

/// Templates, in the order of their file; the first that matches counts.
#[derive(Debug, Clone, Default)]
pub struct Templates(Vec<Template>);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    request: Vec<Template>,
}

/// The fields of a [`Request`] that no log has.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Template {
    r#match: String,
    /// Sent instead of the logged paths.
    path: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    body_file: Option<PathBuf>,
}

impl Templates {
    /// Reads the TOML form, whose files of bodies lie relative to `folder`; a profile that will
    /// lie in `beside` names them from there.
    ///
    /// # Errors
    /// [`LoadError::Plan`] with the template and what is wrong: also when a file of a body cannot
    /// be read, because nobody wants to learn that when the load starts.
    pub fn parse(text: &str, folder: &Path, beside: &Path) -> Result<Self, LoadError> {
        let refuse = |why: String| LoadError::Plan {
            field: "templates",
            why,
        };
        let file: File = toml::from_str(text).map_err(|e| refuse(e.to_string()))?;
        let mut templates = file.request;
        for template in &mut templates {
            let pattern = &template.r#match;
            let is_one = pattern
                .split_once(' ')
                .is_some_and(|(method, path)| !method.is_empty() && path.starts_with('/'));
            let is_any = pattern.ends_with(" **");
            if !is_one && !is_any {
                return Err(refuse(format!(
                    "match = \"{pattern}\" is no method and path, such as \"POST /orders/*\""
                )));
            }
            template.body_file = template.body_file.take().map(|file| folder.join(file));
            let mut request = Request::default();
            template.fill(&mut request);
            request.body()?;
            if let Some(file) = &mut template.body_file {
                let seen = seen_from(beside, file);
                *file = seen.map_err(|e| refuse(format!("{}: {e}", file.display())))?;
            }
        }
        Ok(Self(templates))
    }

    /// The template of a class such as `POST /orders/{id}?page`.
    pub(super) fn find(&self, class: &[u8]) -> Option<usize> {
        let path = memchr::memchr(b'?', class).map_or(class, |at| &class[..at]);
        self.0.iter().position(|template| {
            let pattern = template.r#match.as_bytes();
            let has_query = pattern.contains(&b'?');
            matches(pattern, if has_query { class } else { path })
        })
    }

    pub(super) fn fill(&self, index: usize, request: &mut Request) {
        self.0[index].fill(request);
    }

    /// The patterns of those that no class had.
    pub(super) fn without(&self, used: &[usize]) -> Vec<String> {
        let all = self.0.iter().enumerate();
        let unused = all.filter(|(index, _)| !used.contains(index));
        unused.map(|(_, t)| t.r#match.clone()).collect()
    }
}

impl Template {
    fn fill(&self, request: &mut Request) {
        if let Some(path) = &self.path {
            request.path.clone_from(path);
        }
        request.headers.clone_from(&self.headers);
        request.body.clone_from(&self.body);
        request.body_file.clone_from(&self.body_file);
    }
}

/// A file that is there, as one names it in this folder. Both are followed to where they really
/// are, because `..` behind a link leads elsewhere.
fn seen_from(folder: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let here = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let (from, to) = (here.canonicalize()?, file.canonicalize()?);
    let common = from.ancestors().find(|above| to.starts_with(above));
    let common = common.unwrap_or(Path::new("/"));
    let up = from.strip_prefix(common).unwrap_or(&from).components();
    let up = up.map(|_| Path::new(".."));
    let down = to.strip_prefix(common).unwrap_or(&to);
    Ok(up.chain([down]).collect())
}

/// `*` is anything without a slash or space, `**` anything.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where to go on when what follows a star does not fit: one more byte belongs to the star.
    let (mut at, mut from) = (0, 0);
    let mut retry: Option<(usize, usize, bool)> = None;
    loop {
        let is_all = pattern[at..].starts_with(b"**");
        if is_all || pattern.get(at) == Some(&b'*') {
            at += if is_all { 2 } else { 1 };
            retry = Some((at, from, is_all));
        } else if from < text.len() && pattern.get(at) == text.get(from) {
            at += 1;
            from += 1;
        } else if at == pattern.len() && from == text.len() {
            return true;
        } else {
            let Some((after, taken, is_all)) = retry else {
                return false;
            };
            let is_end = !is_all && matches!(text.get(taken), Some(b'/' | b' ' | b'?'));
            if taken == text.len() || is_end {
                return false;
            }
            (at, from) = (after, taken + 1);
            retry = Some((after, taken + 1, is_all));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Templates, LoadError> {
        Templates::parse(text, Path::new("/nowhere"), Path::new("/"))
    }

    #[test]
    fn stars_match_one_stretch_or_all() {
        for (pattern, class, is_match) in [
            ("POST /orders", "POST /orders", true),
            ("POST /orders", "POST /orders/{id}", false),
            ("POST /orders/*", "POST /orders/{id}", true),
            ("POST /orders/*", "POST /orders/{id}/items", false),
            ("POST /orders/*/items", "POST /orders/{id}/items", true),
            ("POST /orders/**", "POST /orders/{id}/items", true),
            ("POST /**/items", "POST /a/b/items", true),
            ("* /orders", "PUT /orders", true),
            ("*T /orders", "PUT /orders", true),
            ("* **", "DELETE /a/b?c", true),
            ("POST /orders", "POST /orders?dry", true),
            ("POST /orders?dry", "POST /orders?dry", true),
            ("POST /orders?dry", "POST /orders", false),
            ("POST /orders/{id}", "POST /orders/{id}", true),
            ("POST /o*s/*", "POST /orders/7", true),
            ("POST /o", "POST /", false),
        ] {
            let text = format!("[[request]]\nmatch = \"{pattern}\"\nbody = \"x\"");
            let found = parse(&text).unwrap().find(class.as_bytes());
            assert_eq!(found.is_some(), is_match, "{pattern} {class}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "request"),
            ("[[request]]\nmatch = \"/orders\"", "no method and path"),
            ("[[request]]\nmatch = \"POST orders\"", "no method and path"),
            ("[[request]]\nmatch = \"POST /a\"\nbdoy = \"x\"", "bdoy"),
            (
                "[[request]]\nmatch = \"POST /a\"\nbody-file = \"b.json\"",
                "/nowhere/b.json",
            ),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
