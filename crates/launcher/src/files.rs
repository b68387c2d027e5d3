//! Reading files, carefully: nothing that is read may stop a start.
//!
//! Owns the one way files are read: regular files only, never blocking, never more than a cap,
//! never a write.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use loadline_sizing::cache::Checksum;
use loadline_sizing::limits::{FileSource, UnreadableFile};

/// The most that is read of one file: mountinfo of a busy host has some 100 KB.
const CAP: u64 = 1 << 20;

pub struct FileSystem {
    root: PathBuf,
}

impl FileSystem {
    pub fn from_root() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    pub fn below_root(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }
}

impl FileSource for FileSystem {
    fn read(&self, path: &str) -> Result<String, UnreadableFile> {
        let bytes = read_bytes(&self.root.join(path.trim_start_matches('/')), CAP)?;
        String::from_utf8(bytes).map_err(|_| UnreadableFile::Refused)
    }
}

/// At most `cap` bytes of a regular file.
/// Errors: [`UnreadableFile`]; a FIFO, a device or a directory counts as refused.
pub fn read_bytes(path: &Path, cap: u64) -> Result<Vec<u8>, UnreadableFile> {
    let file = open_file(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => UnreadableFile::Missing,
        _ => UnreadableFile::Refused,
    })?;
    let mut bytes = Vec::new();
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file && file.take(cap).read_to_end(&mut bytes).is_ok() {
        Ok(bytes)
    } else {
        Err(UnreadableFile::Refused)
    }
}

fn open_file(path: &Path) -> std::io::Result<File> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    File::options().read(true).custom_flags(flags).open(path)
}

/// The text of a file a user wrote (profile, argument file); invalid UTF-8 is replaced.
pub fn read_text(path: &Path) -> Result<String, UnreadableFile> {
    let bytes = read_bytes(path, CAP)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Checksum of a whole regular file, in pieces; `None` when it cannot be read.
pub fn checksum(path: &Path) -> Option<u64> {
    /// Large enough that the system calls do not count, small enough for the L2 cache.
    const PIECE: usize = 256 << 10;
    let mut file = open_file(path).ok()?;
    let mut sum = Checksum::default();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Some(sum.final_checksum()),
            Ok(length) => sum.add_bytes(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that may lie where a limit file is expected.
    #[test]
    fn nothing_that_lies_there_blocks_or_fails() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("text"), "512\n").unwrap();
        std::fs::write(at("binary"), [0xff, 0xfe, 0]).unwrap();
        std::fs::write(at("large"), vec![b'1'; 3 << 20]).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        let fifo = std::process::Command::new("mkfifo")
            .arg(at("fifo"))
            .status();
        assert!(fifo.unwrap().success());
        let files = FileSystem::below_root(directory.path());
        assert_eq!(files.read("/text"), Ok("512\n".to_owned()));
        assert_eq!(files.read("/none"), Err(UnreadableFile::Missing));
        assert_eq!(files.read("/text/none"), Err(UnreadableFile::Missing));
        for refused in ["/binary", "/directory", "/device", "/fifo", "/loop"] {
            assert_eq!(
                files.read(refused),
                Err(UnreadableFile::Refused),
                "{refused}"
            );
        }
        assert_eq!(files.read("/large").unwrap().len(), 1 << 20);
    }
}
