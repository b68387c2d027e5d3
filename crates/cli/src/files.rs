//! Files that a command was asked to write, and the words for those that it cannot.
//!
//! How they come into their place is `loadline_files`'.

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use loadline_files::Refused;

use crate::error::{Error, ErrorKind};

/// Writes a file; what cannot be renamed to, such as `/dev/stdout`, is written to as it is.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    loadline_files::write(path, text.as_bytes()).map_err(|e| cannot_write(&e))
}

/// The same packed with gzip.
///
/// # Errors
/// As [`write()`].
pub fn write_packed(path: &Path, text: &str) -> Result<(), Error> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let packed = packer.write_all(text.as_bytes());
    let packed = packed
        .and_then(|()| packer.finish())
        .map_err(|e| Error::new(ErrorKind::Internal, e))?;
    loadline_files::write(path, &packed).map_err(|e| cannot_write(&e))
}

/// The error of a file that could not be written.
pub fn cannot_write(refused: &Refused) -> Error {
    Error::new(ErrorKind::Environment, format!("cannot write {refused}")).hint(&refused.hint)
}
