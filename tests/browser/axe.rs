//! axe-core in an open page: what it finds there that keeps people out.
//!
//! Included beside `devtools.rs`. `scripts/setup.sh` puts axe-core into `build/npm`; where it could
//! not, tests say so by name and skip.

use std::path::Path;

use serde_json::Value;

use super::devtools::Page;

/// Why there is nothing to look with.
pub const LACKS: &str = "no axe-core in build/npm (scripts/setup.sh puts it there, with npm)";

/// Runs all rules; a finding is its rule, how bad it is, and where.
const RUN: &str = "axe.run(document, {resultTypes: ['violations']}).then(found => JSON.stringify(
    found.violations.map(v => [v.impact, v.id, v.help, v.nodes.map(n => n.target.join(' ')).slice(0, 5)])))";

/// The serious and critical findings in a page as it stands; `None` without axe-core.
pub fn serious(page: &mut Page) -> Option<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/npm/axe-core/axe.min.js");
    let source = std::fs::read_to_string(path).ok()?;
    page.evaluate(&format!("{source}; 0"));
    let found = page.evaluate(RUN);
    let found: Vec<Value> = serde_json::from_str(found.as_str()?).expect("findings");
    let is_serious = |finding: &&Value| {
        let impact = finding[0].as_str();
        matches!(impact, Some("serious" | "critical"))
    };
    Some(
        found
            .iter()
            .filter(is_serious)
            .map(Value::to_string)
            .collect(),
    )
}
