//! Fake cgroup and proc trees for tests, after the captured files in tests/data.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::CgroupError;
use crate::layout::{Layout, Privilege};
use crate::proc_text::cgroup_mounts;

pub(crate) const ROOT: Privilege = Privilege {
    root: true,
    systemd: false,
};

/// `/sys/fs/cgroup` and `/proc` below a temporary directory.
pub(crate) struct Fake {
    dir: TempDir,
}

impl Fake {
    /// The tree of one of the folders in tests/data: mount directories without files, and /proc.
    pub fn captured(folder: &str) -> Self {
        let data = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data")
            .join(folder);
        let read = |name| fs::read_to_string(data.join(name)).unwrap();
        Self::new(&read("mountinfo"), &read("cgroup"))
    }

    pub fn new(mountinfo: &str, cgroup: &str) -> Self {
        let fake = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fake.put("proc/self/mountinfo", mountinfo);
        fake.put("proc/self/cgroup", cgroup);
        for mount in cgroup_mounts(mountinfo) {
            if let Some(below) = mount.mount_point.strip_prefix("/sys/fs/cgroup") {
                fs::create_dir_all(fake.root().join(below.trim_start_matches('/'))).unwrap();
            }
        }
        fake
    }

    /// Makes a file, its directories included.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Makes empty files in a directory below the cgroup root.
    pub fn group(&self, dir: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.root().join(dir)).unwrap();
        for (name, text) in files {
            self.put(&format!("cgroup/{dir}/{name}"), text);
        }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("cgroup")
    }

    /// The text of a file below the cgroup root.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap()
    }

    pub fn layout(&self, privilege: Privilege) -> Layout {
        self.detect(privilege).unwrap()
    }

    pub fn detect(&self, privilege: Privilege) -> Result<Layout, CgroupError> {
        Layout::detect_as(&self.root(), &self.dir.path().join("proc"), privilege)
    }
}
