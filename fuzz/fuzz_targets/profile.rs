//! Any text as a load profile: what is read and checked is written and read again as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::histogram;
use loadline_load::parts::PartFile;
use loadline_load::profile::LoadProfile;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let _ = PartFile::parse_part_file(text);
    let _ = histogram::decode_histogram(text);
    let Ok(profile) = LoadProfile::parse_load_profile(text) else {
        return;
    };
    if let Ok(text) = profile.toml_text() {
        let again = LoadProfile::parse_load_profile(&text);
        assert_eq!(again.ok().as_ref(), Some(&profile));
    }
});
