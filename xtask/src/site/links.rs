//! Whether the links of HTML pages lead somewhere: to a file, and in it to the place they name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::check::documents::resolve;
use crate::error::Error;
use crate::process::entries;

struct Page {
    ids: BTreeSet<String>,
    targets: Vec<String>,
}

/// Links of the pages below a directory that lead nowhere, each with its page.
pub fn dead(site: &Path) -> Result<Vec<String>, Error> {
    let mut pages = BTreeMap::new();
    read(site, site, &mut pages)?;
    let mut dead = Vec::new();
    for (path, page) in &pages {
        for target in &page.targets {
            if !is_alive(site, path, target, &pages) {
                dead.push(format!("{path}: `{target}` leads nowhere"));
            }
        }
    }
    Ok(dead)
}

fn read(site: &Path, at: &Path, pages: &mut BTreeMap<String, Page>) -> Result<(), Error> {
    for path in entries(at)? {
        // The page for missing addresses is shown anywhere: its links are the root's.
        if path.is_dir() {
            read(site, &path, pages)?;
        } else if path.extension().is_some_and(|e| e == "html") && !path.ends_with("404.html") {
            let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
            let name = path.strip_prefix(site).unwrap_or(&path);
            let targets = values(&text, "href").chain(values(&text, "src"));
            let page = Page {
                ids: values(&text, "id").collect(),
                targets: targets.filter(|target| is_own(target)).collect(),
            };
            pages.insert(name.display().to_string(), page);
        }
    }
    Ok(())
}

fn values<'a>(html: &'a str, attribute: &str) -> impl Iterator<Item = String> + use<'a> {
    let begin = format!(" {attribute}=\"");
    let found: Vec<String> = html
        .split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|value| value.replace("&amp;", "&").replace("&#39;", "'"))
        .collect();
    found.into_iter()
}

fn is_own(target: &str) -> bool {
    let elsewhere = ["http:", "https:", "mailto:", "data:", "javascript:"];
    !target.is_empty() && !elsewhere.iter().any(|scheme| target.starts_with(scheme))
}

fn is_alive(site: &Path, from: &str, target: &str, pages: &BTreeMap<String, Page>) -> bool {
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let to = match path {
        "" => from.to_owned(),
        _ => resolve(from, path),
    };
    match pages.get(&to) {
        Some(page) => fragment.is_empty() || page.ids.contains(fragment),
        None => site.join(&to).is_file(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_and_dead_places_are_found() {
        let site = tempfile::tempdir().expect("a directory");
        fs::create_dir(site.path().join("in")).expect("made");
        let index = "<a href=\"in/b.html#there\">b</a> <a href=\"in/b.html#gone\">b</a> \
                     <a href=\"c.html\">c</a> <a href=\"https://example.org/x\">x</a> <img src=\"x.png\">";
        let inner =
            "<h2 id=\"there\">x</h2><a href=\"../index.html\">up</a> <a href=\"#here\">x</a>";
        fs::write(site.path().join("index.html"), index).expect("written");
        fs::write(site.path().join("in/b.html"), inner).expect("written");
        fs::write(site.path().join("x.png"), "").expect("written");
        assert_eq!(
            dead(site.path()).expect("read"),
            [
                "in/b.html: `#here` leads nowhere",
                "index.html: `in/b.html#gone` leads nowhere",
                "index.html: `c.html` leads nowhere",
            ]
        );
    }
}
