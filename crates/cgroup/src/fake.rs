//! Fake cgroup and proc trees for tests, after the captured files in tests/data.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::CgroupError;
use crate::layout::{CgroupLayout, Privilege};

pub(crate) const ROOT: Privilege = Privilege {
    root: true,
    systemd: false,
};

/// `/sys/fs/cgroup` and `/proc` below a temporary directory.
pub(crate) struct FakeCgroupTree {
    dir: TempDir,
}

impl FakeCgroupTree {
    /// The tree of one of the folders in tests/data: mount directories without files, and /proc.
    pub fn from_captured(folder: &str) -> Self {
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
        fake.put_file("proc/self/mountinfo", mountinfo);
        fake.put_file("proc/self/cgroup", cgroup);
        for mount in loadline_sizing::limits::parse_mounts(mountinfo) {
            if let Some(below) = mount.point.strip_prefix("/sys/fs/cgroup") {
                fs::create_dir_all(fake.cgroup_root().join(below.trim_start_matches('/'))).unwrap();
            }
        }
        fake
    }

    pub fn put_file(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn add_group(&self, dir: &str, files: &[(&str, &str)]) {
        fs::create_dir_all(self.cgroup_root().join(dir)).unwrap();
        for (name, text) in files {
            self.put_file(&format!("cgroup/{dir}/{name}"), text);
        }
    }

    pub fn cgroup_root(&self) -> PathBuf {
        self.dir.path().join("cgroup")
    }

    pub fn read_text(&self, path: &str) -> String {
        fs::read_to_string(self.cgroup_root().join(path)).unwrap()
    }

    pub fn detected_layout(&self, privilege: Privilege) -> CgroupLayout {
        self.try_detect(privilege).unwrap()
    }

    pub fn try_detect(&self, privilege: Privilege) -> Result<CgroupLayout, CgroupError> {
        let proc = self.dir.path().join("proc");
        CgroupLayout::detect_from(&proc.join("self"), &self.cgroup_root(), &proc, privilege)
    }
}
