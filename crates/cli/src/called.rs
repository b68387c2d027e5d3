//! How loadline was called: its words, and where.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::Error;

pub fn called_words() -> Vec<String> {
    let words = std::env::args_os();
    words.map(|w| w.to_string_lossy().into_owned()).collect()
}

/// The words to parse: `plan size ...` is `plan --of=size ...`.
pub fn parsed_words() -> Vec<OsString> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let called = words.iter().skip(1).position(|word| !is_flag(word));
    if let Some([plan, of]) = called.and_then(|at| words.get_mut(at + 1..at + 3))
        && plan == "plan"
        && (of == "size" || of == "run")
    {
        *of = OsString::from(format!("--of={}", of.to_string_lossy()));
    }
    words
}

/// The directory that loadline was called in; results name it.
/// Errors: When it cannot be read, or its name is no text.
pub fn working_directory() -> Result<PathBuf, Error> {
    let here = std::env::current_dir().map_err(|e| {
        let problem = format!("cannot read the working directory: {e}");
        Error::environment(problem)
    })?;
    let hint = "run loadline in another directory";
    must_be_text(&here, "the working directory", hint)?;
    Ok(here)
}

pub fn must_be_text(path: &Path, what: &str, hint: &str) -> Result<(), Error> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => {
            let problem = format!("{what} is not UTF-8: {}", path.display());
            Err(Error::usage(problem).with_hint(hint))
        }
    }
}
