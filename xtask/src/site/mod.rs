//! `cargo xtask docs`: the documents as a site, in `build/site`, with search, for a browser without a
//! server.
//!
//! mdBook lays it out ([`pages`] gives it the documents as they lie in the checkout); [`links`] looks
//! whether every link of the pages leads somewhere.

mod links;
mod pages;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::error::Error;
use crate::process::{output_of, remove};

/// What lays the pages out; `scripts/setup.sh docs` installs it.
const MDBOOK: &str = "build/mdbook/bin/mdbook";

/// How the site is laid out. Nothing is taken from elsewhere; `{{` in a document is its own.
const BOOK: &str = "[book]\ntitle = \"loadline\"\nlanguage = \"en\"\n\n\
    [build]\nbuild-dir = \"../site\"\ncreate-missing = false\nuse-default-preprocessors = false\n\n\
    [output.html]\nno-section-label = true\npreferred-dark-theme = \"navy\"\n\
    additional-css = [\"wide.css\"]\n\n\
    [output.html.print]\nenable = false\n";

/// What the pages add to mdBook's style: tables and commands here are wide. A rem of it is 10 px.
const STYLE: &str = ":root { --content-max-width: 96rem; }\n\
    .content pre > code { white-space: pre-wrap; }\n\
    .content table { margin: 0; font-size: 1.45rem; }\n.content th, .content td { text-align: left; vertical-align: top; }\n";

pub struct Site {
    pub pages: usize,
    pub faults: Vec<String>,
}

pub fn run(root: &Path) -> Result<bool, Error> {
    let Some(site) = build(root)? else {
        eprintln!("xtask: error: mdbook is not here\nhint: scripts/setup.sh docs installs it");
        return Ok(false);
    };
    for fault in &site.faults {
        println!("{fault}");
    }
    println!("{} pages: build/site/index.html", site.pages);
    Ok(site.faults.is_empty())
}

/// Rebuilds it; `None` without mdBook.
pub fn build(root: &Path) -> Result<Option<Site>, Error> {
    let mdbook = root.join(MDBOOK);
    if !mdbook.is_file() {
        return Ok(None);
    }
    let (book, site) = (root.join("build/book"), root.join("build/site"));
    remove(&book)?;
    remove(&site)?;
    let pages = pages::Pages::read(root, "docs/SUMMARY.md")?;
    pages.write(root, &book.join("src"))?;
    for (name, text) in [("book.toml", BOOK), ("wide.css", STYLE)] {
        let path = book.join(name);
        fs::write(&path, text).map_err(Error::file(&path))?;
    }
    let output = output_of(Command::new(&mdbook).arg("build").arg(&book))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let is_fault = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    let mut faults: Vec<String> = said.lines().filter(is_fault).map(str::to_owned).collect();
    if !output.status.success() && faults.is_empty() {
        faults.push(said.into_owned());
    }
    if output.status.success() {
        faults.extend(links::dead(&site)?);
    }
    Ok(Some(Site {
        pages: pages.count(),
        faults,
    }))
}
