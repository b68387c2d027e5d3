//! A command's output files, and messages about failed writes.
//!
//! `loadline_files` puts them into their place.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use loadline_files::PathRefusal;

use crate::error::{Error, FailureKind};
use crate::say::print_data;

pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

pub fn display_name(path: &Path) -> String {
    match is_standard(path) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

pub fn read(path: &Path) -> std::io::Result<String> {
    match is_standard(path) {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    }
}

/// Writes a file, `-` to standard output; what cannot be renamed to, such as `/dev/stdout`, is written to as it is.
/// Errors: When it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    if is_standard(path) {
        return print_data(text);
    }
    no_directory(path)?;
    loadline_files::write(path, text.as_bytes()).map_err(|e| cannot_write(&e))
}

pub fn write_packed(path: &Path, text: &str) -> Result<(), Error> {
    no_directory(path)?;
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes());
    let packed = packed
        .and_then(|()| packer.finish())
        .map_err(|e| Error::new(FailureKind::Internal, e))?;
    loadline_files::write(path, &packed).map_err(|e| cannot_write(&e))
}

fn no_directory(path: &Path) -> Result<(), Error> {
    if !path.is_dir() {
        return Ok(());
    }
    let what = format!("cannot write {}: it is a directory", path.display());
    let inside = path.join("FILE");
    Err(Error::new(FailureKind::Environment, what)
        .with_hint(format!("name a file in it: -o {}", inside.display())))
}

pub fn cannot_write(refused: &PathRefusal) -> Error {
    Error::new(FailureKind::Environment, format!("cannot write {refused}")).with_hint(&refused.hint)
}
