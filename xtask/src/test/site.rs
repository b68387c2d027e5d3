//! The site of the documents builds, and every link in it leads somewhere.

use std::path::Path;

use super::output::Counts;
use crate::error::Error;

pub fn run(root: &Path) -> Result<Counts, Error> {
    let Some(site) = crate::site::build(root)? else {
        let reason = "mdbook is not installed (scripts/setup.sh docs)";
        return Ok(Counts::one_skipped("site", reason));
    };
    if site.faults.is_empty() {
        return Ok(Counts::one_passed());
    }
    eprintln!("{}", site.faults.join("\n"));
    Ok(Counts::one_failed("site"))
}
