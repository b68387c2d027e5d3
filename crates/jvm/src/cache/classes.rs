//! `-Xlog:class+load`, of OpenJ9 `verboseIO`: where each class of a start came from.
//!
//! Owns the counting. Facts: lines of JDK 17.0.15, 25.0.3 and an OpenJ9 25; a dynamic archive is the
//! `top` layer over the JDK's own, an AOT cache has no layers and stands for both.

use std::collections::BTreeSet;

use loadline_sizing::cache::CacheKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadedClasses {
    pub loaded: u64,
    pub archived: u64,
    pub top: u64,
}

impl LoadedClasses {
    /// Counts the lines of a log; `None` when it has none.
    pub fn from_class_log(log: &str) -> Option<Self> {
        let sources = || log.lines().filter_map(|line| line.split_once(" source: "));
        let from = |place: &str| sources().filter(|(_, s)| s.starts_with(place)).count() as u64;
        let loaded = sources().count() as u64;
        (loaded > 0).then(|| Self {
            loaded,
            archived: from("shared objects file"),
            top: from("shared objects file (top)"),
        })
    }

    /// Counts the messages of an OpenJ9 about its shared class cache (`verboseIO`): classes that it
    /// looked for there, each once, though every class loader asks. `None` without such messages.
    pub fn of_shared(said: &str) -> Option<Self> {
        let named = |how: &'static str| {
            let lines = said.lines().filter_map(move |line| {
                let (name, rest) = line.trim().strip_prefix(how)?.split_once(' ')?;
                rest.starts_with("in shared cache").then_some(name)
            });
            lines.collect::<BTreeSet<_>>()
        };
        let found = named("Found class ");
        let missed = named("Failed to find class ");
        let loaded = found.union(&missed).count() as u64;
        let archived = found.len() as u64;
        (loaded > 0).then_some(Self {
            loaded,
            archived,
            top: archived,
        })
    }

    /// Whether a cache of this kind was used: a JVM that rejects an AOT cache uses none at all.
    pub fn is_used(&self, kind: CacheKind) -> bool {
        match kind {
            CacheKind::AppCds => self.top > 0,
            CacheKind::Aot | CacheKind::Scc => self.archived > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a Tomcat on 17.0.15 with a dynamic archive.
    const DYNAMIC: &str = "\
[0.026s][info][class,load] java.lang.Object source: shared objects file
[0.180s][info][class,load] java.lang.invoke.LambdaForm$MH/0x00007fd300000400 source: __JVM_LookupDefineClass__
[0.180s][info][class,load] java.lang.invoke.VarHandleByteArrayAsLongs$ArrayHandle$$Lambda$2/0x00007fd300043a78 source: java.lang.invoke.VarHandleByteArrayAsLongs
[0.187s][info][class,load] org.apache.catalina.startup.Tomcat source: shared objects file (top)
";

    #[test]
    fn a_class_of_openj9_counts_once_however_many_loaders_ask() {
        let said = "\
[-Xshareclasses verbose I/O output enabled]
Found class java/lang/Object in shared cache for class-loader id 0.
Failed to find class H in shared cache for class-loader id 0.
Failed to find class H in shared cache for class-loader id 1.
Failed to find class I in shared cache for class-loader id 0.
Found class I in shared cache for class-loader id 1 with URL /app/h.jar.
up
";
        let classes = LoadedClasses::of_shared(said).expect("classes");
        assert_eq!((classes.loaded, classes.archived), (3, 2));
        assert!(classes.is_used(CacheKind::Scc));
        assert_eq!(
            LoadedClasses::of_shared("JVMSHRC686I Failed to startup"),
            None
        );
    }

    #[test]
    fn each_class_is_counted_by_its_source() {
        let classes = LoadedClasses::from_class_log(DYNAMIC).expect("classes");
        let counts = (classes.loaded, classes.archived, classes.top);
        assert_eq!(counts, (4, 2, 1));
        assert!(classes.is_used(CacheKind::AppCds) && classes.is_used(CacheKind::Aot));
        let rejected = DYNAMIC.replace(" (top)", "");
        let rejected = LoadedClasses::from_class_log(&rejected).expect("classes");
        assert!(!rejected.is_used(CacheKind::AppCds));
        assert_eq!(
            LoadedClasses::from_class_log("Error occurred during initialization"),
            None
        );
    }
}
