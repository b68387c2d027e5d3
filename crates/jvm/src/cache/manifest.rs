//! The manifest next to a cache: written when the cache is put in place, checked before it is used.
//!
//! Owns the two files' names; they appear whole or not at all. `loadline_sizing::cache` owns the
//! content of a manifest.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use loadline_sizing::cache::{CacheManifest, Checksum};

use super::destination::OutputDirectory;

#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct ManifestError {
    pub action: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl ManifestError {
    pub fn is_disk_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        full.contains(&self.source.kind())
    }
}

pub fn path_of(cache: &Path) -> PathBuf {
    let mut name = cache.as_os_str().to_owned();
    name.push(".manifest");
    PathBuf::from(name)
}

pub fn length_and_checksum(path: &Path) -> Result<(u64, u64), ManifestError> {
    let read = || -> io::Result<(u64, u64)> {
        let mut file = File::open(path)?;
        let mut sum = Checksum::default();
        let (mut buffer, mut length) = (vec![0; 1 << 20], 0);
        loop {
            let count = file.read(&mut buffer)?;
            if count == 0 {
                return Ok((length, sum.final_checksum()));
            }
            sum.add_bytes(&buffer[..count]);
            length += count as u64;
        }
    };
    read().map_err(manifest_error("read", path))
}

/// Copies a cache to `name` in a directory and writes its manifest, with length and checksum filled
/// in. Replaces an earlier cache; after a failure there is the old one, or none. Errors: With the
/// file and the system's answer; partial files are removed.
pub fn install(
    from: &Path,
    to: &OutputDirectory,
    name: &str,
    made: &CacheManifest,
) -> Result<CacheManifest, ManifestError> {
    let (size, checksum) = length_and_checksum(from)?;
    let made = CacheManifest {
        size,
        checksum,
        ..made.clone()
    };
    let cache = File::open(from).map_err(manifest_error("read", from))?;
    let text = made.to_text();
    // A new cache must never have an old manifest: the old one goes first, and the new one comes
    // last.
    let manifest = path_of(Path::new(name)).display().to_string();
    to.put_pair((name, cache), (&manifest, text.as_bytes()))?;
    Ok(made)
}

pub(super) fn manifest_error<'a>(
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
    use std::fs;

    use loadline_sizing::cache::CacheKind;

    use super::*;

    fn made() -> CacheManifest {
        CacheManifest {
            kind: CacheKind::AppCds,
            build: "17.0.15+6".to_owned(),
            collector: "G1".to_owned(),
            compressed_oops: true,
            compact_headers: false,
            size: 0,
            checksum: 0,
            cpu: Vec::new(),
            class_path: Vec::new(),
            shared: None,
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
        let there = OutputDirectory::open_for_caller(directory.path(), None).expect("it is ours");
        let install = || install(&from, &there, "app.jsa", &made());
        let manifest = install().expect("it is installed");
        assert_eq!(
            length_and_checksum(&to).expect("a file"),
            (100_000, manifest.checksum)
        );
        let text = fs::read_to_string(path_of(&to)).expect("a manifest");
        assert_eq!(CacheManifest::parse_manifest(&text), Some(manifest));
        fs::write(&from, "new").expect("a file");
        assert_eq!(install().expect("again").size, 3);
    }
}
