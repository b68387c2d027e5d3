//! Any text as one of the files of the kernel that say what a container may use and uses, and any texts
//! as all those that the launcher reads.

#![no_main]

use std::cell::RefCell;
use std::slice::Iter;

use libfuzzer_sys::fuzz_target;
use loadline_cgroup::parsers;
use loadline_sizing::Bytes;
use loadline_sizing::limits::{FileSource, SystemCallFacts, UnreadableFile, discover};

const HOST: SystemCallFacts = SystemCallFacts {
    memory: Bytes::from_mib(1024),
    affinity: 4,
    address_space: None,
    processes: None,
};

/// As many inputs are for the launcher as for so many files.
const LAUNCHERS: usize = 6;

/// Each file asked for is the next of the texts.
struct Texts<'a>(RefCell<Iter<'a, &'a str>>);

impl FileSource for Texts<'_> {
    fn read(&self, _: &str) -> Result<String, UnreadableFile> {
        let next = self.0.borrow_mut().next().ok_or(UnreadableFile::Missing)?;
        Ok((*next).to_owned())
    }
}

fuzz_target!(|input: (u8, Vec<&str>)| {
    loadline_fuzz::limited();
    // One file for an input: all of them take far longer. The highest numbers are the launcher's.
    let (choice, texts) = input;
    match parsers().nth(usize::from(choice) % (parsers().count() + LAUNCHERS)) {
        Some(parse) => texts.into_iter().for_each(parse),
        None => _ = discover(&Texts(RefCell::new(texts.iter())), HOST),
    }
});
