//! Builds the Java workloads into `build/workloads`, and only when their sources changed.
//!
//! A stamp next to the output holds a hash of its build recipe and of every source file. Maven is
//! called only if plain Java does not suffice: it costs seconds even when there is nothing to do,
//! and needs the network the first time.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::error::Error;
use crate::process::{entries, remove, stdout_of};

/// The time in every jar entry, so that equal sources give equal bytes.
const JAR_TIME: &str = "2026-01-01T00:00:00Z";

struct Workload {
    name: &'static str,
    /// Files and directories that affect the build, relative to its directory.
    sources: &'static str,
    recipe: Recipe,
}

const fn workload(name: &'static str, sources: &'static str, recipe: Recipe) -> Workload {
    Workload {
        name,
        sources,
        recipe,
    }
}

#[derive(Hash)]
enum Recipe {
    /// `mvn package`; the jar comes out as `target/NAME.jar`.
    Maven,
    /// The same for Spring Boot; `NAME/` gets the extracted layout, with classes that a start-up
    /// cache can serve (it cannot serve classes from jars inside a jar).
    SpringBoot,
    /// `javac` and `jar`, no network; the main class.
    Javac(&'static str),
    /// The same with a manifest.
    Agent(&'static str),
    /// `mvn package`; a server comes out as a directory of `target`, and `NAME/` is a copy that
    /// every account may read.
    Server {
        built: &'static str,
        script: &'static str,
    },
}

impl Workload {
    fn product(&self, out: &Path) -> PathBuf {
        match self.recipe {
            Recipe::Server { script, .. } => out.join(self.name).join(script),
            _ => out.join(format!("{}.jar", self.name)),
        }
    }
}

const WORKLOADS: &[Workload] = &[
    workload(
        "allocation",
        "Allocation.java Allocator.java Latencies.java PauseFile.java",
        Recipe::Javac("Allocation"),
    ),
    workload("grpc", "pom.xml src", Recipe::Maven),
    workload(
        "hiccup",
        "Hiccup.java MANIFEST.MF",
        Recipe::Agent("MANIFEST.MF"),
    ),
    workload("leak", "Leak.java", Recipe::Javac("Leak")),
    workload("liberty", "pom.xml src", LIBERTY),
    workload("ping", "Ping.java", Recipe::Javac("Ping")),
    workload("spring-web", "pom.xml src", Recipe::SpringBoot),
    workload("tomcat", "pom.xml src", Recipe::Maven),
    workload("tomcat-installed", "pom.xml conf webapps", TOMCAT),
];

const LIBERTY: Recipe = Recipe::Server {
    built: "liberty/wlp",
    script: "bin/server",
};

const TOMCAT: Recipe = Recipe::Server {
    built: "apache-tomcat-10.1.59",
    script: "bin/catalina.sh",
};

pub fn build(root: &Path) -> Result<(), Error> {
    let out = root.join("build/workloads");
    fs::create_dir_all(&out).map_err(Error::file(&out))?;
    for workload in WORKLOADS {
        match build_one(root, &out, workload) {
            // Tests of a server say SKIP without it; nothing else needs one.
            Err(error) if matches!(workload.recipe, Recipe::Server { .. }) => {
                println!("workload {}: not built: {error}", workload.name);
            }
            built => built?,
        }
    }
    Ok(())
}

fn build_one(root: &Path, out: &Path, workload: &Workload) -> Result<(), Error> {
    let home = root.join("workloads").join(workload.name);
    let product = workload.product(out);
    let stamp = out.join(format!("{}.hash", workload.name));
    let hash = hash(&home, workload)?;
    if product.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == hash) {
        println!("workload {}: up to date", workload.name);
        return Ok(());
    }
    println!("workload {}: building", workload.name);
    let start = Instant::now();
    match workload.recipe {
        Recipe::Maven => maven(&home, workload.name, &product)?,
        Recipe::SpringBoot => {
            maven(&home, workload.name, &product)?;
            extract(&product, &out.join(workload.name))?;
        }
        Recipe::Server { built, .. } => {
            package(&home)?;
            install(&home.join("target").join(built), &out.join(workload.name))?;
        }
        Recipe::Javac(main_class) => {
            let manifest = ["--main-class", main_class];
            javac(&home, out, workload, &manifest, &product)?;
        }
        Recipe::Agent(manifest) => {
            let manifest = home.join(manifest).display().to_string();
            javac(&home, out, workload, &["--manifest", &manifest], &product)?;
        }
    }
    // Last, so that a build that was cut short is done again.
    fs::write(&stamp, hash).map_err(Error::file(&stamp))?;
    let time = start.elapsed();
    println!("workload {}: built in {time:.0?}", workload.name);
    Ok(())
}

fn package(home: &Path) -> Result<(), Error> {
    let mut command = Command::new("mvn");
    command
        .args(["-q", "-B", "-f"])
        .arg(home.join("pom.xml"))
        .arg("package");
    stdout_of(&mut command).map(drop)
}

/// Copies a server; in a trial it runs under a separate account.
fn install(built: &Path, to: &Path) -> Result<(), Error> {
    remove(to)?;
    stdout_of(Command::new("cp").arg("-R").arg(built).arg(to))?;
    stdout_of(Command::new("chmod").args(["-R", "a+rX"]).arg(to)).map(drop)
}

fn maven(home: &Path, name: &str, jar: &Path) -> Result<(), Error> {
    package(home)?;
    let built = home.join("target").join(format!("{name}.jar"));
    fs::copy(&built, jar).map_err(Error::file(built))?;
    Ok(())
}

/// Source: Spring Boot reference, "Efficient deployments": `-Djarmode=tools ... extract`.
fn extract(jar: &Path, to: &Path) -> Result<(), Error> {
    remove(to)?;
    let mut command = Command::new("java");
    command.args(["-Djarmode=tools", "-jar"]).arg(jar);
    stdout_of(command.args(["extract", "--destination"]).arg(to)).map(drop)
}

fn javac(
    home: &Path,
    out: &Path,
    workload: &Workload,
    manifest: &[&str],
    jar: &Path,
) -> Result<(), Error> {
    let classes = out.join(workload.name).join("classes");
    remove(&classes)?;
    let mut command = Command::new("javac");
    command
        .args(["--release", "17", "-Xlint:all", "-Werror", "-d"])
        .arg(&classes);
    let sources = workload.sources.split(' ');
    let java = sources.filter(|s| s.ends_with(".java"));
    command.args(java.map(|source| home.join(source)));
    stdout_of(&mut command)?;
    let mut command = Command::new("jar");
    command
        .args(["--create", "--date", JAR_TIME])
        .args(manifest);
    command.arg("--file").arg(jar).arg("-C").arg(&classes);
    stdout_of(command.arg(".")).map(drop)
}

/// Changes when a source or the recipe changes. A change of the Rust toolchain may change it too,
/// which costs one rebuild.
fn hash(home: &Path, workload: &Workload) -> Result<String, Error> {
    let mut files = Vec::new();
    for source in workload.sources.split(' ') {
        files_below(&home.join(source), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    workload.recipe.hash(&mut hasher);
    JAR_TIME.hash(&mut hasher);
    for file in &files {
        file.strip_prefix(home).unwrap_or(file).hash(&mut hasher);
        fs::read(file).map_err(Error::file(file))?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn files_below(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut below = entries(path)?.into_iter();
    below.try_for_each(|path| files_below(&path, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKLOAD: Workload = workload("sample", "pom.xml src", Recipe::Maven);

    #[test]
    fn the_hash_changes_with_content_and_names_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(home.path().join(name), text).unwrap();
        fs::create_dir(home.path().join("src")).unwrap();
        write("pom.xml", "<project/>");
        write("src/A.java", "class A {}");
        let first = hash(home.path(), &WORKLOAD).unwrap();

        write("README.md", "no source");
        assert_eq!(hash(home.path(), &WORKLOAD).unwrap(), first);
        write("src/A.java", "class A { }");
        let second = hash(home.path(), &WORKLOAD).unwrap();
        assert_ne!(second, first);
        write("src/B.java", "");
        assert_ne!(hash(home.path(), &WORKLOAD).unwrap(), second);
    }

    #[test]
    fn a_missing_source_is_named() {
        let home = tempfile::tempdir().unwrap();
        let error = hash(home.path(), &WORKLOAD).unwrap_err();
        assert!(error.to_string().contains("pom.xml"), "{error}");
    }
}
