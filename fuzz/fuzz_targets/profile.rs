//! Any text as a load profile: what is read and checked is written and read again as it was.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::histogram;
use loadline_load::parts::PartFile;
use loadline_load::profile::Profile;

fuzz_target!(|text: &str| {
    loadline_fuzz::limited();
    let _ = PartFile::parse(text);
    let _ = histogram::decode(text);
    let Ok(profile) = Profile::parse(text) else {
        return;
    };
    if let Ok(text) = profile.text() {
        let again = Profile::parse(&text);
        assert_eq!(again.ok().as_ref(), Some(&profile));
    }
});
