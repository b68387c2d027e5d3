//! Data that a log cannot hold: bodies and headers of requests, by method and path.
//!
//! Owns which template a class of requests has, by its pattern ([`super::Pattern`]). The path is
//! the class's, as `loadline profile` prints it: `POST /orders/{id}/items`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{MixRequest, Pattern};
use crate::error::{LoadError, toml_refusal};

#[derive(Debug, Clone, Default)]
pub struct RequestTemplates(Vec<RequestTemplate>);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplatesFile {
    request: Vec<RequestTemplate>,
}

/// The fields of a [`MixRequest`] that no log has.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RequestTemplate {
    r#match: Pattern,
    path: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
    body_file: Option<PathBuf>,
    #[serde(default, rename = "first")]
    is_first: bool,
}

impl RequestTemplates {
    /// Reads the TOML form; files of bodies are relative to `folder`, and a profile in `beside`
    /// refers to them from there. Errors: [`LoadError::Plan`] with the template and the problem,
    /// including an unreadable body file, so that it is found before the load starts.
    pub fn parse_templates(text: &str, folder: &Path, beside: &Path) -> Result<Self, LoadError> {
        let refuse = |why: String| LoadError::plan("templates", why);
        let file = toml::from_str::<TemplatesFile>(text);
        let file = file.map_err(|e| refuse(toml_refusal(text, &e)))?;
        let mut templates = file.request;
        for template in &mut templates {
            template.body_file = template.body_file.take().map(|file| folder.join(file));
            let mut request = MixRequest::default();
            template.fill_fields(&mut request);
            request.read_body()?;
            if let Some(file) = &mut template.body_file {
                let seen = seen_from(beside, file);
                *file = seen.map_err(|e| refuse(format!("{}: {e}", file.display())))?;
            }
        }
        Ok(Self(templates))
    }

    pub(super) fn find_template(&self, class: &[u8]) -> Option<usize> {
        self.0.iter().position(|t| t.r#match.fits_request(class))
    }

    pub(super) fn fill_request(&self, index: usize, request: &mut MixRequest) {
        self.0[index].fill_fields(request);
    }

    pub(super) fn unused_patterns(&self, used: &[usize]) -> Vec<String> {
        let all = self.0.iter().enumerate();
        let unused = all.filter(|(index, _)| !used.contains(index));
        unused.map(|(_, t)| t.r#match.to_string()).collect()
    }
}

impl RequestTemplate {
    fn fill_fields(&self, request: &mut MixRequest) {
        if let Some(path) = &self.path {
            request.path.clone_from(path);
        }
        request.headers.clone_from(&self.headers);
        request.body.clone_from(&self.body);
        request.body_file.clone_from(&self.body_file);
        request.is_first = self.is_first;
    }
}

/// An existing file, relative to this folder. Both are resolved first, because `..` behind a link
/// leads elsewhere.
fn seen_from(folder: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let (from, to) = (here.canonicalize()?, file.canonicalize()?);
    let common = from.ancestors().find(|above| to.starts_with(above));
    let common = common.unwrap_or(Path::new("/"));
    let up = from.strip_prefix(common).unwrap_or(&from).components();
    let up = up.map(|_| Path::new(".."));
    let down = to.strip_prefix(common).unwrap_or(&to);
    Ok(up.chain([down]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RequestTemplates, LoadError> {
        RequestTemplates::parse_templates(text, Path::new("/nowhere"), Path::new("/"))
    }

    #[test]
    fn what_is_no_template_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "request"),
            ("[[request]]\nmatch = \"/orders\"", "not a method and path"),
            (
                "[[request]]\nmatch = \"POST orders\"",
                "not a method and path",
            ),
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
