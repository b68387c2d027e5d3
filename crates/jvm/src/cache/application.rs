//! The class path of a java command: the files that a cache is bound to.
//!
//! Owns the reading of `-jar` and `-cp`, and the neighbours that a jar's manifest names. Never
//! reads a class.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use loadline_sizing::cache::ClassPathFile;

use super::jar::Jar;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaApplication {
    /// Files of the class path in order, absolute.
    pub files: Vec<PathBuf>,
    pub main_class: Option<String>,
    pub has_nested_jars: bool,
    /// The jar that loadline took its jar out of ([`super::extracted`]).
    pub extracted_from: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplicationError {
    /// No `-jar` and no class path.
    #[error("the command has no -jar and no -cp")]
    None,
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    /// A directory: HotSpot archives classes of jars only.
    #[error("{path} is a directory of the class path, and HotSpot caches classes of jars only")]
    Directory { path: String },
}

impl ApplicationError {
    pub fn application_hint(&self) -> &'static str {
        match self {
            Self::None => "give the application's own command: -- java -jar app.jar",
            Self::Unreadable { .. } => "check the path, and that it is a jar",
            Self::Directory { .. } => "pack its classes into a jar",
        }
    }
}

impl JavaApplication {
    pub fn from_arguments(
        arguments: &[String],
        directory: &Path,
    ) -> Result<Self, ApplicationError> {
        let named = named_class_path(arguments).ok_or(ApplicationError::None)?;
        let mut all = Self {
            files: Vec::new(),
            main_class: None,
            has_nested_jars: false,
            extracted_from: None,
        };
        for name in &named {
            all.add_class_path_entry(&directory.join(name))?;
        }
        if all.files.is_empty() {
            Err(ApplicationError::None)
        } else {
            Ok(all)
        }
    }

    /// The same inside an image. Its files are not listed: they cannot change while the image id
    /// stays. `open` opens a file of the image.
    pub fn in_image(arguments: &[String], open: impl Fn(&Path) -> Option<File>) -> Self {
        let named = named_class_path(arguments).unwrap_or_default();
        let jar = |name: &String| Jar::from_jar_file(&mut open(Path::new(name))?).ok();
        let first = named.first().and_then(jar).unwrap_or_default();
        Self {
            files: Vec::new(),
            main_class: first.main_class,
            has_nested_jars: first.has_nested_jars,
            extracted_from: None,
        }
    }

    fn add_class_path_entry(&mut self, path: &Path) -> Result<(), ApplicationError> {
        let shown = path.display().to_string();
        if path.is_dir() {
            return Err(ApplicationError::Directory { path: shown });
        }
        let jar = Jar::read(path).map_err(|e| ApplicationError::Unreadable {
            path: shown,
            why: e.to_string(),
        })?;
        if self.files.is_empty() {
            self.main_class = jar.main_class;
            self.extracted_from = jar.extracted_from;
        }
        self.files.push(path.to_owned());
        self.has_nested_jars |= jar.has_nested_jars;
        let beside = path.parent().unwrap_or(Path::new("/"));
        // A manifest may name files that are not there; the JVM passes them over as well.
        let neighbours = jar.class_path.iter().map(|name| beside.join(name));
        for file in neighbours.filter(|file| file.is_file()) {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        Ok(())
    }

    pub fn main(&self) -> &Path {
        self.files.first().map_or(Path::new(""), PathBuf::as_path)
    }

    pub fn class_path(&self) -> Result<Vec<ClassPathFile>, ApplicationError> {
        let home = self.main().parent().unwrap_or(Path::new("/"));
        let entry = |path: &PathBuf| {
            let unreadable = |e: std::io::Error| ApplicationError::Unreadable {
                path: path.display().to_string(),
                why: e.to_string(),
            };
            let metadata = path.metadata().map_err(unreadable)?;
            let modified = metadata.modified().map_err(unreadable)?;
            let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            let path = path.strip_prefix(home).unwrap_or(path);
            Ok(ClassPathFile {
                path: path.display().to_string(),
                size: metadata.len(),
                modified: modified.as_secs(),
            })
        };
        self.files.iter().map(entry).collect()
    }
}

fn named_class_path(arguments: &[String]) -> Option<Vec<String>> {
    let after = |option: &str| {
        let at = arguments.iter().position(|a| a == option)?;
        arguments.get(at + 1).cloned()
    };
    if let Some(jar) = after("-jar") {
        return Some(vec![jar]);
    }
    let path = ["-cp", "-classpath", "--class-path"]
        .iter()
        .find_map(|option| after(option))?;
    let parts = path.split(':').filter(|part| !part.is_empty());
    Some(parts.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAR: &[u8] = include_bytes!("../../tests/data/cache/class-path.jar");

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_jar_brings_the_neighbours_that_are_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = directory.path();
        std::fs::create_dir(home.join("lib")).expect("a directory");
        std::fs::write(home.join("app.jar"), JAR).expect("a file");
        std::fs::write(home.join("lib/spring-boot-3.5.16.jar"), "x").expect("a file");
        let application =
            JavaApplication::from_arguments(&words("-Xmx1g -jar app.jar --port=1"), home);
        let application = application.expect("an application");
        assert_eq!(application.main(), home.join("app.jar"));
        let class_path = application.class_path().expect("files");
        let paths: Vec<&str> = class_path.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["app.jar", "lib/spring-boot-3.5.16.jar"]);
        assert_eq!(class_path[0].size, JAR.len() as u64);
        let both = JavaApplication::from_arguments(&words("-cp app.jar:app.jar Main"), home);
        assert!(both.is_ok());
    }

    #[test]
    fn a_jar_in_an_image_is_read_and_not_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("app.jar");
        std::fs::write(&place, JAR).expect("a file");
        let open =
            |seen: &Path| (seen == Path::new("/app.jar")).then(|| File::open(&place).ok())?;
        let found = JavaApplication::in_image(&words("-jar /app.jar"), open);
        assert!(
            found.main_class.is_some() && !found.has_nested_jars,
            "{found:?}"
        );
        assert_eq!(found.class_path(), Ok(Vec::new()));
        // What a script starts is not seen.
        let script = JavaApplication::in_image(&words("serve"), open);
        assert_eq!(script.main_class, None);
    }

    #[test]
    fn what_cannot_be_cached_is_said() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = |text: &str| JavaApplication::from_arguments(&words(text), directory.path());
        assert_eq!(of("-version"), Err(ApplicationError::None));
        let missing = of("-jar none.jar").expect_err("it is missing").to_string();
        assert!(missing.contains("none.jar"), "{missing}");
        let classes = of("-cp . Main").expect_err("a directory");
        assert!(
            classes.application_hint().contains("pack its classes"),
            "{classes}"
        );
    }
}
