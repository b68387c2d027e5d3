//! Whether the disk has room for a run: a run that ends in the middle names a file, not the disk.
//!
//! Owns how much a run writes. Deletes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process::stdout_of;

/// What a run in a new clone writes below the target directory and `build`, bytes: programs and
/// libraries of tests, the same for fuzzing and for other systems, documents, images, results. Added up
/// from the parts of a target in which every step had run, rounded up.
const WRITTEN: u64 = 8 << 30;
const GIB: f64 = (1_u64 << 30) as f64;

/// Errors: [`Error::Usage`] when a run would fill the disk.
pub fn check_room(root: &Path) -> Result<(), Error> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let place = if target.is_dir() { &target } else { root };
    let disk = rustix::fs::statvfs(place).map_err(|error| Error::file(place)(error.into()))?;
    let mut du = Command::new("du");
    du.args(["--summarize", "--block-size=1"]).arg(place);
    let built = match place == root {
        true => 0,
        false => leading_number(&stdout_of(&mut du)?),
    };
    match refuse_run(disk.f_bavail.saturating_mul(disk.f_frsize), built) {
        Some(why) => Err(Error::Usage(format!("{}: {why}", place.display()))),
        None => Ok(()),
    }
}

fn leading_number(text: &str) -> u64 {
    let word = text.split_whitespace().next();
    word.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Why a run with this many bytes free, and this many built before, would not come to its end.
fn refuse_run(free: u64, built: u64) -> Option<String> {
    let needed = WRITTEN.saturating_sub(built);
    (free < needed).then(|| {
        format!(
            "{:.1} GiB are free on this disk, and a run may write {:.1} GiB\nhint: make room, or set CARGO_TARGET_DIR to a directory on a larger disk",
            free as f64 / GIB,
            needed as f64 / GIB
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_full_is_refused_before_anything_runs() {
        let gib = 1 << 30;
        assert_eq!(refuse_run(WRITTEN, 0), None);
        assert_eq!(refuse_run(gib, WRITTEN), None, "all is built already");
        let why = refuse_run(gib, WRITTEN - 2 * gib).expect("a reason");
        assert!(why.contains("1.0 GiB are free on this disk, and a run may write 2.0 GiB\nhint: "));
        assert_eq!(leading_number("4096\t/tmp\n"), 4096);
    }
}
