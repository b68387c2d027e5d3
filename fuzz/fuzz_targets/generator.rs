//! Any bytes at the port of a generator, and at that of its client: messages one after the other.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline_load::remote::frame::{MOST, MOST_OF_STRANGERS, read, write};
use loadline_load::remote::{FromGenerator, ToGenerator};

fuzz_target!(|bytes: &[u8]| {
    loadline_fuzz::limited();
    let mut rest = bytes;
    while let Ok(Some(message)) = read::<ToGenerator>(&mut rest, MOST) {
        let mut again = Vec::new();
        write(&mut again, &message).expect("it is as short as it came");
        let back = read::<ToGenerator>(again.as_slice(), MOST);
        assert!(back.is_ok_and(|back| back.is_some()));
    }
    let mut rest = bytes;
    while let Ok(Some(_)) = read::<FromGenerator>(&mut rest, MOST) {}
    let mut rest = bytes;
    while let Ok(Some(_)) = read::<serde_json::Value>(&mut rest, MOST_OF_STRANGERS) {}
});
