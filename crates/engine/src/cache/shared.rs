//! The shared class cache of OpenJ9: filled with room, made anew at the size that was full.
//!
//! Owns the directory in which the JVM looks for the file by a name of its own, and the starts that
//! only say something of it. Options and statistics are `loadline_jvm::cache::scc`'s.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loadline_analysis::record::Configuration;
use loadline_jvm::cache::CacheKind;
use loadline_jvm::cache::manifest::ManifestError;
use loadline_jvm::cache::scc::{self, Statistics};
use loadline_sizing::Bytes;
use loadline_trial::Order;

use super::{Built, CacheError, alone_without_limits, assemble_by, errand, last_lines, name_of};
use crate::host::Delivery;
use crate::logs::output_in;
use crate::runner::{Measurement, RunError};

/// The directory of the file, beside what is kept of its making.
const DIRECTORY: &str = "scc";

/// More than any name of a cache has, bytes.
const NAME: u64 = 256;

/// The size a cache is made with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// How much it may hold; 0 where it takes what it needs.
    pub size: Bytes,
    /// Whether it is the one that is used.
    pub is_final: bool,
}

impl Room {
    /// Of caches that are as large as what they hold.
    pub const ANY: Self = Self {
        size: Bytes::from_mib(0),
        is_final: true,
    };
}

/// The file of a cache whose place is this; `None` where there is none, or are several.
pub(super) fn file_of(place: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(place.with_file_name(DIRECTORY)).ok()?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files = files.filter(|file| scc::is_file_name(&name_of(file)));
    let file = files.next()?;
    files.next().is_none().then_some(file)
}

/// Takes the name from the begin of what was handed over; where the file is to lie, in a directory
/// that has nothing else.
pub(super) fn unwrapped(raw: &Path, place: &Path) -> Result<PathBuf, ManifestError> {
    let directory = place.with_file_name(DIRECTORY);
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ManifestError {
            action,
            path,
            source,
        }
    };
    let name = without_name(raw).map_err(failed("take", raw))?;
    make_anew(&directory).map_err(failed("make", &directory))?;
    Ok(directory.join(name))
}

fn make_anew(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o755).create(directory)?,
    }
    // Not by create: the umask would take bits away, and the JVM is another user.
    fs::set_permissions(directory, Permissions::from_mode(0o755))
}

fn without_name(raw: &Path) -> io::Result<String> {
    let mut from = BufReader::new(File::open(raw)?);
    let mut name = String::new();
    from.by_ref().take(NAME).read_line(&mut name)?;
    let name = name.trim_end_matches('\n').to_owned();
    if !scc::is_file_name(&name) {
        let text = "the JVM gave its shared class cache a name that loadline does not know";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let rest = raw.with_extension("rest");
    io::copy(&mut from, &mut File::create(&rest)?)?;
    fs::rename(&rest, raw)?;
    Ok(name)
}

/// A start with the cache that says of each class whether it was there.
pub(super) fn witness(
    of: &Measurement<'_>,
    with: Configuration,
    built: &Built,
) -> Result<(Configuration, Order, Delivery), RunError> {
    said_by(of, with, built, scc::witness)
}

/// A JVM that prints what the cache holds, and ends.
pub(crate) fn statistics(
    of: &Measurement<'_>,
    configuration: &Configuration,
    built: &Built,
) -> Result<(Configuration, Order, Delivery), RunError> {
    let mut with = alone_without_limits(configuration);
    with.label = "reading scc".to_owned();
    said_by(of, with, built, |directory| {
        vec![scc::print_statistics(directory)]
    })
}

/// What such a JVM printed.
pub(crate) fn statistics_in(delivery: &Delivery) -> Result<Statistics, CacheError> {
    let said = output_in(&delivery.log).unwrap_or_default();
    let _ = fs::remove_file(&delivery.log);
    let lines: Vec<String> = said.lines().map(str::to_owned).collect();
    Statistics::parse(&said).ok_or_else(|| CacheError::NotWritten {
        kind: CacheKind::Scc,
        why: "the JVM does not say what it holds".to_owned(),
        output: last_lines(&lines),
        hint: "the JVM must be an OpenJ9 with shared classes (module openj9.sharedclasses)",
    })
}

fn said_by(
    of: &Measurement<'_>,
    with: Configuration,
    built: &Built,
    options: impl Fn(&Path) -> Vec<String>,
) -> Result<(Configuration, Order, Delivery), RunError> {
    let assembled = assemble_by(of, &with, built, |seen| {
        options(seen.parent().unwrap_or(seen))
    })?;
    let directory = built.file.parent().unwrap_or(&built.file);
    let to = directory.with_file_name("said");
    let (order, delivery) = errand(of, &with, assembled, Vec::new(), (None, &to))?;
    Ok((with, order, delivery))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_jvm_gives_is_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let (raw, place) = (
            directory.path().join("raw"),
            directory.path().join("app.scc"),
        );
        fs::write(&raw, "../../etc/passwd\nroot").expect("a file");
        assert!(unwrapped(&raw, &place).is_err());
        fs::write(&raw, "no line at all").expect("a file");
        assert!(unwrapped(&raw, &place).is_err());
        let name = "C290M25F1A64P_loadline_G45L00";
        fs::write(&raw, format!("{name}\ncache\nbytes")).expect("a file");
        let file = unwrapped(&raw, &place).expect("a name");
        assert_eq!(file, directory.path().join("scc").join(name));
        assert_eq!(fs::read(&raw).expect("the rest"), b"cache\nbytes");
        assert_eq!(file_of(&place), None);
        fs::write(&file, "cache").expect("it is ours");
        fs::write(file.with_extension("manifest"), "").expect("it is ours");
        assert_eq!(file_of(&place), Some(file));
    }
}
