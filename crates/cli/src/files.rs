//! Files that a command was asked to write: whole or not at all, and nothing else is replaced.
//!
//! Owns the temporary names. loadline runs as root: a device, a pipe and the target of a link are
//! written to, never renamed over, and no name that another user may have made beforehand is opened.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind};

/// Temporary names that are tried; left over ones of processes that were killed stand in the way.
const NAMES: u32 = 1000;

/// Writes a file; what cannot be renamed to, such as `/dev/stdout`, is written to as it is.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    if path.file_name().is_none() {
        let problem = format!("{} is no file name", path.display());
        return Err(Error::new(Kind::Usage, problem));
    }
    let written = match fs::metadata(path) {
        Ok(there) if there.is_file() => fs::canonicalize(path).and_then(|p| replace(&p, text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound && !path.is_symlink() => replace(path, text),
        // A device or a pipe, or a link to a file that is not there yet.
        _ => write_into(path, text),
    };
    written.map_err(|e| cannot_write(path, &e))
}

/// The error of a file that could not be written.
pub fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let problem = format!("cannot write {}: {error}", path.display());
    Error::new(Kind::Environment, problem)
}

fn write_into(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.write_all(text.as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = part_of(path, text)?;
    fs::rename(&part, path).inspect_err(|_| {
        // What was half written is of no use to anyone; the error is the one to report.
        let _ = fs::remove_file(&part);
    })
}

/// Writes the text to a new file beside this one, to be renamed to it.
///
/// # Errors
/// When it cannot be written; then nothing is left.
pub fn part_of(path: &Path, text: &str) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let own = std::process::id();
    for number in 0..NAMES {
        let part = path.with_file_name(format!(".{name}.{own}-{number}.part"));
        // Never one that is there: as a link of another user it would name any file.
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        };
        return match file.write_all(text.as_bytes()) {
            Ok(()) => Ok(part),
            Err(e) => {
                // The error of the writing is the one to report.
                let _ = fs::remove_file(&part);
                Err(e)
            }
        };
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a directory").flatten();
        let mut names: Vec<_> = entries
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = place.path().join("report.html");
        for text in ["first, longer", "second"] {
            write(&file, text).expect("it is writable");
            assert_eq!(fs::read_to_string(&file).expect("a file"), text);
        }
        assert_eq!(names(place.path()), ["report.html"]);
    }

    #[test]
    fn a_link_stays_one_and_what_it_names_is_written() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (link, file) = (place.path().join("link"), place.path().join("file"));
        symlink("file", &link).expect("a link");
        for text in ["to a file that is not there", "to one that is"] {
            write(&link, text).expect("it is writable");
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&file).expect("a file"), text);
        }
        assert_eq!(names(place.path()), ["file", "link"]);
    }

    #[test]
    fn a_device_stays_one() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let link = place.path().join("null");
        symlink("/dev/null", &link).expect("a link");
        write(&link, "x").expect("it takes everything");
        assert!(link.is_symlink());
        let there = fs::metadata(&link).expect("it is there");
        assert!(there.file_type().is_char_device());
        assert_eq!(names(place.path()), ["null"]);
    }

    #[test]
    fn a_planted_name_is_not_opened() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (file, victim) = (place.path().join("a"), place.path().join("victim"));
        fs::write(&victim, "mine").expect("writable");
        let planted = place
            .path()
            .join(format!(".a.{}-0.part", std::process::id()));
        for name in [planted, place.path().join("a.part")] {
            symlink("victim", name).expect("a link");
        }
        write(&file, "x").expect("it is writable");
        assert_eq!(fs::read_to_string(&victim).expect("a file"), "mine");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "x");
        assert!(!file.is_symlink());
    }

    #[test]
    fn a_directory_is_refused_by_name() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let refused = write(place.path(), "x").expect_err("a directory");
        let text = format!("{refused:?}");
        assert!(text.contains(&place.path().display().to_string()), "{text}");
    }
}
