//! The manifest beside a cache: written when the cache is put in place, checked before it is used.
//!
//! Owns the two files' names and the order of writing: cache, then manifest, each whole or not at
//! all. What a manifest says is `loadline_sizing::cache`'s.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loadline_sizing::cache::{Checksum, Manifest};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct ManifestError {
    /// What was tried.
    pub action: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

impl ManifestError {
    /// Whether the disk is full.
    pub fn is_disk_full(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        )
    }
}

/// The manifest of a cache: `app.aot.manifest`.
pub fn path_of(cache: &Path) -> PathBuf {
    let mut name = cache.as_os_str().to_owned();
    name.push(".manifest");
    PathBuf::from(name)
}

/// Length and checksum of a file.
///
/// # Errors
/// When it cannot be read.
pub fn measure(path: &Path) -> Result<(u64, u64), ManifestError> {
    let read = || -> io::Result<(u64, u64)> {
        let mut file = File::open(path)?;
        let mut sum = Checksum::default();
        let (mut buffer, mut length) = (vec![0; 1 << 20], 0);
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok((length, sum.finish()));
            }
            sum.add(&buffer[..count]);
            length += count as u64;
        }
    };
    read().map_err(failed("read", path))
}

/// Copies a cache to `to` and writes its manifest, with length and checksum filled in. A cache
/// that was there is replaced; after a failure it is what it was, or there is none.
///
/// # Errors
/// With the file and the system's answer; what was half written is gone.
pub fn install(from: &Path, to: &Path, made: &Manifest) -> Result<Manifest, ManifestError> {
    let (size, checksum) = measure(from)?;
    let made = Manifest {
        size,
        checksum,
        ..made.clone()
    };
    let manifest = path_of(to);
    let parts = [part(to), part(&manifest)];
    let written = copy(from, &parts[0])
        .and_then(|()| write(&parts[1], made.to_text().as_bytes()))
        .and_then(|()| {
            // An old manifest must never stand beside a new cache.
            match fs::remove_file(&manifest) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    Err(failed("replace", &manifest)(e))
                }
                _ => Ok(()),
            }
        })
        .and_then(|()| fs::rename(&parts[0], to).map_err(failed("write", to)))
        .and_then(|()| fs::rename(&parts[1], &manifest).map_err(failed("write", &manifest)));
    if written.is_err() {
        for part in &parts {
            // The first error is the one to report; a part that was never made is not there.
            let _ = fs::remove_file(part);
        }
    }
    written.map(|()| made)
}

/// Tries whether a directory takes files, before an application is started for nothing.
///
/// # Errors
/// With the directory and the system's answer.
pub fn try_directory(directory: &Path) -> Result<(), ManifestError> {
    fs::create_dir_all(directory).map_err(failed("make", directory))?;
    let probe = directory.join(".loadline-cache-probe");
    let tried =
        write(&probe, b"x").and_then(|()| fs::remove_file(&probe).map_err(failed("write", &probe)));
    tried.map_err(|e| failed("write in", directory)(e.source))
}

fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

fn copy(from: &Path, to: &Path) -> Result<(), ManifestError> {
    let copied = || -> io::Result<()> {
        let mut input = File::open(from)?;
        let mut output = File::create(to)?;
        io::copy(&mut input, &mut output)?;
        // The application of the image is another user.
        output.set_permissions(fs::Permissions::from_mode(0o644))?;
        output.sync_all()
    };
    copied().map_err(failed("write", to))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ManifestError> {
    let written = || -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(failed("write", path))
}

fn failed<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> ManifestError + 'a {
    move |source| ManifestError {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use loadline_sizing::cache::Kind;

    use super::*;

    fn made() -> Manifest {
        Manifest {
            kind: Kind::AppCds,
            build: "17.0.15+6".to_owned(),
            collector: "G1".to_owned(),
            compressed_oops: true,
            compact_headers: false,
            size: 0,
            checksum: 0,
            class_path: Vec::new(),
        }
    }

    #[test]
    fn a_cache_and_its_manifest_are_put_in_place_together() {
        let directory = tempfile::tempdir().expect("a directory");
        let (from, to) = (
            directory.path().join("raw"),
            directory.path().join("app.jsa"),
        );
        fs::write(&from, vec![7; 100_000]).expect("a file");
        let manifest = install(&from, &to, &made()).expect("it is installed");
        assert_eq!(measure(&to).expect("a file"), (100_000, manifest.checksum));
        let text = fs::read_to_string(path_of(&to)).expect("a manifest");
        assert_eq!(Manifest::parse(&text), Some(manifest));
        fs::write(&from, "new").expect("a file");
        assert_eq!(install(&from, &to, &made()).expect("again").size, 3);
    }

    #[test]
    fn a_directory_that_takes_no_files_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        try_directory(&directory.path().join("new")).expect("it is made");
        // Not even root makes files in /proc.
        let error = try_directory(Path::new("/proc/self")).expect_err("no files in /proc");
        assert!(error.to_string().contains("write in /proc/self"), "{error}");
        assert!(!error.is_disk_full());
    }

    #[test]
    fn a_full_disk_leaves_no_half_cache() {
        let directory = tempfile::tempdir().expect("a directory");
        let from = directory.path().join("raw");
        fs::write(&from, vec![7; 100_000]).expect("a file");
        // Every write to it says ENOSPC.
        let to = directory.path().join("app.jsa");
        std::os::unix::fs::symlink("/dev/full", part(&to)).expect("a link");
        let error = install(&from, &to, &made()).expect_err("no space");
        assert!(error.is_disk_full(), "{error}");
        assert!(!to.exists() && !path_of(&to).exists() && !part(&to).is_symlink());
    }
}
