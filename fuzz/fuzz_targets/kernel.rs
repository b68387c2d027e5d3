//! Any texts as the files of the kernel that say what a container may use: /proc and cgroup files,
//! as loadline reads them and as the launcher does.

#![no_main]

use std::cell::RefCell;
use std::slice::Iter;

use libfuzzer_sys::fuzz_target;
use loadline_sizing::Bytes;
use loadline_sizing::limits::{Files, Host, Unreadable, discover};

const HOST: Host = Host {
    memory: Bytes::from_mib(1024),
    affinity: 4,
    address_space: None,
    processes: None,
};

/// Each file asked for is the next of the texts.
struct Texts<'a>(RefCell<Iter<'a, &'a str>>);

impl Files for Texts<'_> {
    fn read(&self, _: &str) -> Result<String, Unreadable> {
        let next = self.0.borrow_mut().next().ok_or(Unreadable::Missing)?;
        Ok((*next).to_owned())
    }
}

fuzz_target!(|texts: Vec<&str>| {
    loadline_fuzz::limited();
    for text in &texts {
        loadline_cgroup::parse_anything(text);
    }
    discover(&Texts(RefCell::new(texts.iter())), HOST);
});
