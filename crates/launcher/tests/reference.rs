//! The reference names the settings that the source reads.

use std::collections::BTreeSet;
use std::path::Path;

/// Every `LOADLINE_NAME` of a text, but for the version that the build sets.
fn settings(text: &str) -> BTreeSet<String> {
    let is_end = |c: char| !(c.is_ascii_uppercase() || c == '_');
    let words = text.split(is_end).filter(|word| {
        let name = word.strip_prefix("LOADLINE_").unwrap_or_default();
        !name.is_empty() && name != "VERSION"
    });
    words.map(str::to_owned).collect()
}

#[test]
fn the_reference_names_every_setting_and_no_other() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(folder).expect("the source");
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let read: BTreeSet<String> = texts.flat_map(|text| settings(&text)).collect();
    assert_eq!(settings(loadline_launch::REFERENCE), read);
}
