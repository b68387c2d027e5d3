//! Any bytes as a HAR file: its profile is written and read again unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::har::read_har;
use loadline_load::profile::LoadProfile;

fuzz_target!(|data: &[u8]| {
    loadline_fuzz::limited();
    let Ok(recorded) = read_har(data, "fuzz") else {
        return;
    };
    let left_out: u64 = recorded.left_out.values().sum();
    assert!(left_out < recorded.requests);
    if let Ok(text) = recorded.profile.toml_text() {
        let again = LoadProfile::parse_load_profile(&text);
        assert_eq!(again.ok().as_ref(), Some(&recorded.profile));
    }
});
