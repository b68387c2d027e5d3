//! The reference in docs is the table in the source.

use std::path::Path;

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/launcher.md");
    let generated = loadline_launch::variables::reference();
    let page = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == generated,
        "docs/reference/launcher.md differs from the table; write the output of `loadline-launch variables` to it"
    );
}
