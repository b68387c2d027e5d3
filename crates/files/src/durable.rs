//! Puts a file that was written as it came on disk: its content, and its name in the directory.

use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, fsync, openat};

/// Waits until a file and its name survive a power loss. No link is followed at its end, and a pipe
/// is not waited for.
/// Errors: What the system says. After a failed write-back the content is lost: asking again would
/// say that it is safe. Source: fsync(2).
pub fn sync(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    fsync(openat(CWD, path, flags, Mode::empty())?)?;
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(fsync(openat(CWD, directory, flags, Mode::empty())?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_on_disk_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| directory.path().join(name));
        std::fs::write(&file, "x").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(CWD, &pipe, fifo, Mode::RUSR, 0).expect("a pipe");
        sync(&file).expect("it is on disk");
        assert!(sync(&link).is_err() && sync(&pipe).is_err());
        let missing = sync(&directory.path().join("missing")).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
