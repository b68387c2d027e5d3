//! Which java: the file to start, and what its `release` file says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use loadline_sizing::jdk::OPENJ9_FILES;
use loadline_sizing::{JdkRelease, Vm};

use crate::environment::Environment;
use crate::files;

#[derive(Debug, Clone)]
pub struct Java {
    pub path: PathBuf,
    /// Its release; `None` without a `release` file.
    pub jdk: Option<JdkRelease>,
    /// `JAVA_RUNTIME_VERSION`: names the build, as start-up caches do; of an OpenJ9 that has none
    /// `JAVA_VERSION`, as `loadline cache` does.
    pub build: Option<String>,
}

/// Finds it: the word of the command when it is a path, else `LOADLINE_JAVA`, `JAVA_HOME`, `PATH`.
/// Never this launcher itself, which may be installed under the name `java`.
pub fn find_java(word: &OsStr, environment: &Environment) -> Option<Java> {
    let path = if word.as_bytes().contains(&b'/') {
        Some(PathBuf::from(word))
    } else {
        by_environment(environment)
    };
    path.map(describe_java)
}

fn by_environment(environment: &Environment) -> Option<PathBuf> {
    let own = std::fs::canonicalize("/proc/self/exe").ok();
    let set = environment.raw_value("LOADLINE_JAVA").map(PathBuf::from);
    let home = environment.raw_value("JAVA_HOME");
    let home = home.map(|home| Path::new(home).join("bin/java"));
    let path = environment.raw_value("PATH").map(std::env::split_paths);
    let path = path.into_iter().flatten().map(|place| place.join("java"));
    let mut candidates = set.into_iter().chain(home).chain(path);
    candidates.find(|candidate| {
        let real = std::fs::canonicalize(candidate).ok();
        real.is_some() && real != own && candidate.is_file()
    })
}

fn describe_java(path: PathBuf) -> Java {
    let (home, release) = find_java_home(&path).unzip();
    let release = release.unwrap_or_default();
    let value = |key: &str| {
        let mut lines = release.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        value.map(|value| value.trim_matches('"').to_owned())
    };
    let has = |home: &PathBuf| OPENJ9_FILES.iter().any(|file| home.join(file).exists());
    let is_openj9 = home.as_ref().is_some_and(has);
    let jdk = JdkRelease::from_release(&release).map(|jdk| {
        if is_openj9 {
            JdkRelease {
                vm: Vm::OpenJ9,
                ..jdk
            }
        } else {
            jdk
        }
    });
    let build =
        value("JAVA_RUNTIME_VERSION").or_else(|| value("JAVA_VERSION").filter(|_| is_openj9));
    Java { path, jdk, build }
}

/// The home with its `release` file: `bin/java` is below it; on a JDK 8 it may be `jre/bin/java`.
fn find_java_home(java: &Path) -> Option<(PathBuf, String)> {
    let real = std::fs::canonicalize(java).ok()?;
    let mut homes = real.ancestors().skip(2).take(2);
    homes.find_map(|home| {
        let text = files::read_text(&home.join("release")).ok()?;
        Some((home.to_owned(), text))
    })
}
