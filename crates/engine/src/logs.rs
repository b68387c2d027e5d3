//! The logs of a finished trial: packed and kept, because every figure in a record must be
//! derivable again from what the application wrote.
//!
//! Owns the move from a trial's scratch directory to the store, and the end of the former.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::backend::local;

const LEVEL: i32 = 3;

/// Longest log that is kept, bytes; a trial of minutes writes far less.
const LARGEST: u64 = 256 << 20;

/// A log that could not be kept, or a directory that could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct LogError {
    path: PathBuf,
    source: io::Error,
}

/// Packs the GC log and the output of a trial into `to` and removes the scratch directory. A
/// trial without logs leaves nothing.
///
/// # Errors
/// [`LogError`]; the scratch directory is gone all the same if it can be.
pub fn keep(scratch: &Path, to: &Path) -> Result<(), LogError> {
    let packed = pack(&local::gc_log(scratch), to, "gc.log.zst").and(pack(
        &local::output_log(scratch),
        to,
        "output.log.zst",
    ));
    let at = |path: &Path, source| LogError {
        path: path.to_owned(),
        source,
    };
    match fs::remove_dir_all(scratch) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at(scratch, e)),
        _ => packed,
    }
}

fn pack(from: &Path, to: &Path, name: &str) -> Result<(), LogError> {
    let at = |path: &Path, source| LogError {
        path: path.to_owned(),
        source,
    };
    let input = match File::open(from) {
        Ok(input) => input.take(LARGEST),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(at(from, e)),
    };
    let path = to.join(name);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(to)
        .map_err(|e| at(to, e))?;
    let output = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| at(&path, e))?;
    zstd::stream::copy_encode(input, output, LEVEL).map_err(|e| at(&path, e))
}
