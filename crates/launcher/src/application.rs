//! What to start when no command is given: the layouts of jar, Spring Boot, Quarkus and Jib images.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

const BOOT_LAUNCHERS: &[&str] = &[
    "org.springframework.boot.loader.launch.JarLauncher",
    "org.springframework.boot.loader.JarLauncher",
];

const NOT_APPLICATIONS: &[&str] = &["-sources.jar", "-javadoc.jar", "-plain.jar", "-tests.jar"];

/// The words after `java` that start the application found, or why none was found.
pub fn find_application(environment: &Environment) -> Result<Vec<OsString>, String> {
    if let Some(words) = find_by_name(environment) {
        return Ok(words);
    }
    let directories = application_directories(environment);
    for directory in &directories {
        if let Some(words) = find_by_layout(directory)? {
            return Ok(words);
        }
    }
    let looked = directories.iter().map(|d| d.display().to_string());
    let looked: Vec<String> = looked.collect();
    Err(format!(
        "no command was given and no application was found in {}; give one after `--` or set JAVA_APP_JAR",
        looked.join(", ")
    ))
}

fn application_directories(environment: &Environment) -> Vec<PathBuf> {
    match set_directory(environment) {
        Some(set) => vec![set],
        None => ["/app", "/deployments", "."].map(PathBuf::from).to_vec(),
    }
}

fn set_directory(environment: &Environment) -> Option<PathBuf> {
    let mut names = ["LOADLINE_APP_DIR", "JAVA_APP_DIR"].into_iter();
    let set = names.find_map(|name| environment.raw_value(name));
    set.map(PathBuf::from)
}

fn find_by_name(environment: &Environment) -> Option<Vec<OsString>> {
    let directory = set_directory(environment);
    if let Some(class) = environment.raw_value("JAVA_MAIN_CLASS") {
        let path = environment.raw_value("JAVA_CLASSPATH").map(OsString::from);
        let path = path.unwrap_or_else(|| {
            let directory = directory.unwrap_or_else(|| PathBuf::from("."));
            let mut path = directory.clone().into_os_string();
            path.push(":");
            path.push(directory.join("*"));
            path
        });
        return Some(vec!["-cp".into(), path, class.to_owned()]);
    }
    let jar = PathBuf::from(environment.raw_value("JAVA_APP_JAR")?);
    let jar = directory.map_or(jar.clone(), |directory| directory.join(jar));
    Some(vec!["-jar".into(), jar.into()])
}

fn find_by_layout(directory: &Path) -> Result<Option<Vec<OsString>>, String> {
    let at = |name: &str| directory.join(name);
    let argument = |path: PathBuf| {
        let mut word = OsString::from("@");
        word.push(path);
        word
    };
    if at("jib-main-class-file").is_file() && at("jib-classpath-file").is_file() {
        let [path, class] = ["jib-classpath-file", "jib-main-class-file"].map(|f| argument(at(f)));
        return Ok(Some(vec!["-cp".into(), path, class]));
    }
    for quarkus in ["quarkus-run.jar", "quarkus-app/quarkus-run.jar"] {
        if at(quarkus).is_file() {
            return Ok(Some(vec!["-jar".into(), at(quarkus).into()]));
        }
    }
    for class in BOOT_LAUNCHERS {
        let file = format!("{}.class", class.replace('.', "/"));
        if at(&file).is_file() {
            return Ok(Some(vec!["-cp".into(), directory.into(), (*class).into()]));
        }
    }
    let jars = list_jars(directory);
    match jars.as_slice() {
        [] => Ok(None),
        [jar] => Ok(Some(vec!["-jar".into(), jar.into()])),
        _ => Err(format!(
            "{} holds {} jars; set JAVA_APP_JAR to the one to start",
            directory.display(),
            jars.len()
        )),
    }
}

fn list_jars(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut jars: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_jar = name.ends_with(".jar") || name.ends_with(".war");
            let is_application = !NOT_APPLICATIONS.iter().any(|ending| name.ends_with(ending))
                && !name.starts_with("original-");
            is_jar && is_application && path.is_file()
        })
        .collect();
    jars.sort();
    jars
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[&str]) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let here = directory.path().to_str().unwrap().to_owned();
        let words = find_application(&Environment::from_pairs(&[(
            "LOADLINE_APP_DIR",
            here.as_str(),
        )]))?;
        let text = |word: OsString| word.to_string_lossy().replace(&here, "D");
        Ok(words.into_iter().map(text).collect())
    }

    #[test]
    fn every_layout_is_known() {
        assert_eq!(
            found(&["a.jar", "a-sources.jar"]).unwrap(),
            ["-jar", "D/a.jar"]
        );
        assert_eq!(
            found(&["quarkus-app/quarkus-run.jar"]).unwrap(),
            ["-jar", "D/quarkus-app/quarkus-run.jar"]
        );
        assert_eq!(
            found(&[
                "org/springframework/boot/loader/launch/JarLauncher.class",
                "BOOT-INF/x"
            ])
            .unwrap(),
            [
                "-cp",
                "D",
                "org.springframework.boot.loader.launch.JarLauncher"
            ]
        );
        assert_eq!(
            found(&["jib-main-class-file", "jib-classpath-file", "libs/x.jar"]).unwrap(),
            ["-cp", "@D/jib-classpath-file", "@D/jib-main-class-file"]
        );
    }

    #[test]
    fn nothing_or_too_much_is_said() {
        assert!(found(&[]).unwrap_err().contains("JAVA_APP_JAR"));
        assert!(found(&["a.jar", "b.jar"]).unwrap_err().contains("2 jars"));
    }

    #[test]
    fn names_of_run_java_are_known() {
        let environment =
            Environment::from_pairs(&[("JAVA_APP_DIR", "/d"), ("JAVA_APP_JAR", "x.jar")]);
        assert_eq!(
            find_application(&environment).unwrap(),
            ["-jar", "/d/x.jar"]
        );
        let environment =
            Environment::from_pairs(&[("JAVA_APP_DIR", "/d"), ("JAVA_MAIN_CLASS", "M")]);
        assert_eq!(
            find_application(&environment).unwrap(),
            ["-cp", "/d:/d/*", "M"]
        );
    }
}
