//! A command's output files, and messages about failed writes.
//!
//! `loadline_files` puts them into their place.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use loadline_files::{FileKind, PathRefusal};

use crate::error::Error;
use crate::say::print_data;

pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

pub fn display_name(path: &Path) -> String {
    if is_standard(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// `pom.xml is a Maven project, not an experiment`: the refusal of a file of another kind.
pub fn other_kind(path: &Path, wanted: &str) -> Option<Error> {
    FileKind::other_than(path, wanted).map(|kind| refuse_kind(path, kind, wanted))
}

pub fn refuse_kind(path: &Path, kind: FileKind, wanted: &str) -> Error {
    let problem = format!("{} is {}, not {wanted}", path.display(), kind.name);
    Error::usage(problem).with_hint(kind.next_step(path))
}

pub fn read(path: &Path) -> std::io::Result<String> {
    if is_standard(path) {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    }
}

/// Writes a file, `-` to standard output; what cannot be renamed to, such as `/dev/stdout`, is written to as it is.
/// Errors: When it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    if is_standard(path) {
        return print_data(text);
    }
    write_bytes(path, text.as_bytes())
}

/// As [`write()`], for a file; what its name ends in decides whether it is packed with gzip.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    no_directory(path)?;
    if path.extension().is_none_or(|e| e != "gz") {
        return loadline_files::write(path, bytes).map_err(|e| cannot_write(&e));
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(bytes);
    let packed = packed.and_then(|()| packer.finish());
    let packed = packed.map_err(Error::internal)?;
    loadline_files::write(path, &packed).map_err(|e| cannot_write(&e))
}

fn no_directory(path: &Path) -> Result<(), Error> {
    if !path.is_dir() {
        return Ok(());
    }
    let what = format!("cannot write {}: it is a directory", path.display());
    let inside = path.join("FILE");
    Err(Error::environment(what).with_hint(format!("name a file in it: -o {}", inside.display())))
}

pub fn cannot_write(refused: &PathRefusal) -> Error {
    Error::environment(format!("cannot write {refused}")).with_hint(&refused.hint)
}
