//! OpenJ9's shared class cache: a directory `scc` beside the application, or `/opt/scc`.
//!
//! Owns the choice. Used read-only and never fatally: the JVM starts without a cache it rejects.
//! Source: OpenJ9 documentation (-Xshareclasses, names of cache files); no OpenJ9 was at hand.

use std::path::{Path, PathBuf};

use loadline_sizing::Options;
use loadline_sizing::options::dimension::Dimension;

use crate::cache::Cache;
use crate::command::Target;

/// The name that loadline gives its caches; part of the file's name.
const NAME: &str = "loadline";

/// Finds a cache for what starts.
pub fn find(target: &Target, options: &Options) -> Option<Cache> {
    if options.freezing(Dimension::StartupCache).is_some() {
        return None;
    }
    let beside = match target {
        Target::Jar(jar) => Path::new(jar).parent().map(|parent| parent.join("scc")),
        _ => None,
    };
    let directories = beside.into_iter().chain([PathBuf::from("/opt/scc")]);
    let directory = directories
        .into_iter()
        .find(|directory| has_cache(directory))?;
    let directory = directory.display();
    Some(Cache {
        options: vec![format!(
            "-Xshareclasses:name={NAME},cacheDir={directory},readonly,nonfatal"
        )],
        reason: format!("{directory} holds a shared class cache"),
    })
}

/// Whether a file such as `C290M17F1A64P_loadline_G43L00` lies there.
fn has_cache(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let needle = format!("_{NAME}_");
    entries
        .map(|entry| entry.file_name())
        .any(|name| name.to_string_lossy().contains(&needle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_beside_the_application_is_used_unless_the_user_chose() {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::Jar(directory.path().join("app.jar").into());
        let scc = directory.path().join("scc");
        std::fs::create_dir(&scc).unwrap();
        assert_eq!(find(&target, &Options::none()), None);
        std::fs::write(scc.join("C290M17F1A64P_loadline_G43L00"), "").unwrap();
        let cache = find(&target, &Options::none()).unwrap();
        let expected = format!(
            "-Xshareclasses:name=loadline,cacheDir={},readonly,nonfatal",
            scc.display()
        );
        assert_eq!(cache.options, [expected]);
        let user = Options::from_words(["-Xshareclasses:none"]);
        assert_eq!(find(&target, &user), None);
    }
}
