//! A start-up cache next to a real application on a real JVM: used when it fits; when it does not,
//! the reason is named and the application starts without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use loadline_sizing::cache::shared::CacheLayer;
use loadline_sizing::cache::{CacheKind, CacheManifest, Checksum, ClassPathFile, SharedCacheInfo};

const LAUNCHER: &str = env!("CARGO_BIN_EXE_loadline-launch");

/// What ping says to an option that it does not know: the application has started.
const STARTED: &str = "usage: java -jar ping.jar";

struct Shipped {
    directory: tempfile::TempDir,
    jdks: Vec<PathBuf>,
}

impl Shipped {
    /// `Err` is why it cannot be tried here.
    fn new() -> Result<Self, String> {
        let jar = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/ping.jar");
        if !jar.is_file() {
            return Err("no build/workloads/ping.jar (make workloads)".to_owned());
        }
        let jdks = jdks();
        let Some(first) = jdks.first() else {
            return Err("no JDK 13 or later in /usr/lib/jvm".to_owned());
        };
        let directory = tempfile::tempdir().expect("a directory");
        let app = directory.path().join("app.jar");
        fs::copy(jar, &app).expect("a copy");
        let output = Command::new(first.join("bin/java"))
            .args([
                "-XX:ArchiveClassesAtExit=app.jsa",
                "-jar",
                "app.jar",
                "--nonsense",
            ])
            .current_dir(directory.path())
            .output()
            .expect("java runs");
        let shipped = Self { directory, jdks };
        assert!(shipped.path("app.jsa").is_file(), "{output:?}");
        shipped.write_manifest();
        Ok(shipped)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write_manifest(&self) {
        let archive = fs::read(self.path("app.jsa")).expect("an archive");
        let mut sum = Checksum::default();
        sum.add_bytes(&archive);
        let jar = self.path("app.jar").metadata().expect("a jar");
        let modified = jar.modified().expect("a time");
        let made = CacheManifest {
            kind: CacheKind::AppCds,
            build: build(&self.jdks[0]),
            collector: "G1".to_owned(),
            compressed_oops: true,
            compact_headers: false,
            size: archive.len() as u64,
            checksum: sum.final_checksum(),
            cpu: Vec::new(),
            class_path: vec![ClassPathFile {
                path: "app.jar".to_owned(),
                size: jar.len(),
                modified: modified
                    .duration_since(UNIX_EPOCH)
                    .expect("after 1970")
                    .as_secs(),
            }],
            shared: None,
        };
        fs::write(self.path("app.jsa.manifest"), made.to_text()).expect("a file");
    }

    /// Starts it with a JDK; what the launcher explained. The application must have started.
    fn launch(&self, jdk: &Path, options: &[&str]) -> String {
        let output = Command::new(LAUNCHER)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LOADLINE_JAVA", jdk.join("bin/java"))
            .env("LOADLINE_EXPLAIN", "1")
            .args(["--", "java"])
            .args(options)
            .args(["-jar", "app.jar", "--nonsense"])
            .current_dir(self.directory.path())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let all = said.clone() + &String::from_utf8_lossy(&output.stdout);
        assert!(all.contains(STARTED), "it did not start: {output:?}");
        said
    }
}

/// JDKs that have dynamic archives, by the name of their directory.
fn jdks() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let homes = entries.map(|entry| entry.path());
    let mut homes: Vec<PathBuf> = homes
        .filter(|home| !home.is_symlink() && home.join("lib/server/classes.jsa").is_file())
        .filter(|home| feature(home) >= 13)
        .collect();
    homes.sort();
    homes
}

fn build(home: &Path) -> String {
    let text = fs::read_to_string(home.join("release")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("JAVA_RUNTIME_VERSION="));
    line.unwrap_or_default().trim_matches('"').to_owned()
}

fn feature(home: &Path) -> u32 {
    let build = build(home);
    let digits = build.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|d| d.parse().ok()).unwrap_or(0)
}

fn shipped(test: &str) -> Option<Shipped> {
    match Shipped::new() {
        Ok(shipped) => Some(shipped),
        Err(reason) => {
            println!("SKIP {test}: {reason}");
            None
        }
    }
}

#[test]
fn a_cache_that_fits_is_used() {
    let Some(shipped) = shipped("a_cache_that_fits_is_used") else {
        return;
    };
    let said = shipped.launch(&shipped.jdks[0], &["-XX:+UseG1GC"]);
    assert!(
        said.contains("app.jsa lies next to the application and fits"),
        "{said}"
    );
    // -Xshare:on ends a JVM that cannot use its archive: it can.
    let output = Command::new(shipped.jdks[0].join("bin/java"))
        .args([
            "-Xshare:on",
            "-XX:SharedArchiveFile=app.jsa",
            "-Xlog:class+load",
            "-jar",
            "app.jar",
        ])
        .arg("--nonsense")
        .current_dir(shipped.directory.path())
        .output()
        .expect("java runs");
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(
        log.contains("Ping source: shared objects file (top)"),
        "{log}"
    );
}

#[test]
fn what_does_not_fit_is_named_and_the_application_starts() {
    let Some(shipped) = shipped("what_does_not_fit_is_named_and_the_application_starts") else {
        return;
    };
    let jdk = &shipped.jdks[0];
    let said = shipped.launch(jdk, &["-XX:+UseZGC"]);
    assert!(said.contains("passed over: it was made with G1"), "{said}");
    // A start with another collector that can still use it reports the loss.
    let said = shipped.launch(jdk, &["-XX:+UseSerialGC"]);
    assert!(
        said.contains("made with G1, this start has Serial"),
        "{said}"
    );
    match shipped.jdks.get(1) {
        Some(other) => {
            let said = shipped.launch(other, &[]);
            assert!(said.contains("made by another build of the JDK"), "{said}");
        }
        None => println!("SKIP a swapped JDK: there is one JDK only"),
    }
}

#[test]
fn a_damaged_cache_never_reaches_the_jvm() {
    let Some(shipped) = shipped("a_damaged_cache_never_reaches_the_jvm") else {
        return;
    };
    // JDK 17 aborts on such a file when it is given it.
    let archive = shipped.path("app.jsa");
    let mut bytes = fs::read(&archive).expect("an archive");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xa5);
    fs::write(&archive, &bytes).expect("a file");
    let said = shipped.launch(&shipped.jdks[0], &[]);
    assert!(said.contains("the file is damaged: its checksum"), "{said}");
    fs::write(&archive, &bytes[..middle]).expect("a file");
    let said = shipped.launch(&shipped.jdks[0], &[]);
    assert!(said.contains("the file is damaged: its length"), "{said}");
}

#[test]
fn a_changed_class_path_is_named() {
    let Some(shipped) = shipped("a_changed_class_path_is_named") else {
        return;
    };
    let jar = fs::File::options()
        .append(true)
        .open(shipped.path("app.jar"));
    let touched = jar.and_then(|file| file.set_modified(UNIX_EPOCH));
    touched.expect("its time can be set");
    let said = shipped.launch(&shipped.jdks[0], &[]);
    assert!(
        said.contains("the class path changed: app.jar has another time"),
        "{said}"
    );
}

/// ping with a shared class cache of a real OpenJ9, and the cache's file.
fn shared(jdk: &Path) -> Result<(Shipped, PathBuf), String> {
    let jar = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/workloads/ping.jar");
    if !jar.is_file() || !jdk.join("bin/java").is_file() {
        return Err("no ping.jar (make workloads) or no OpenJ9 in /usr/lib/jvm".to_owned());
    }
    let directory = tempfile::tempdir().expect("a directory");
    fs::copy(jar, directory.path().join("app.jar")).expect("a copy");
    let output = Command::new(jdk.join("bin/java"))
        .args(["-Xshareclasses:name=loadline,cacheDir=scc", "-Xscmx16m"])
        .args(["-jar", "app.jar", "--nonsense"])
        .current_dir(directory.path())
        .output()
        .expect("java runs");
    let files = fs::read_dir(directory.path().join("scc")).expect("a cache");
    let file = files.flatten().next().map(|entry| entry.path());
    let file = file.unwrap_or_else(|| panic!("no cache: {output:?}"));
    let jdks = vec![jdk.to_owned()];
    Ok((Shipped { directory, jdks }, file))
}

/// The build of an OpenJ9, by its release file.
fn build_of(jdk: &Path) -> String {
    let release = fs::read_to_string(jdk.join("release")).expect("a release");
    let value = |key: &str| {
        let mut lines = release.lines();
        lines.find_map(|line| Some(line.strip_prefix(key)?.trim_matches('"').to_owned()))
    };
    let build = value("JAVA_RUNTIME_VERSION=").or_else(|| value("JAVA_VERSION="));
    build.expect("a version")
}

/// Length and checksum of a file.
fn measured(file: &Path) -> (u64, u64) {
    let bytes = fs::read(file).expect("a cache");
    let mut sum = Checksum::default();
    sum.add_bytes(&bytes);
    (bytes.len() as u64, sum.final_checksum())
}

fn write_manifest(file: &Path, build: &str, shared: Option<SharedCacheInfo>) {
    let (size, checksum) = measured(file);
    let made = CacheManifest {
        kind: CacheKind::Scc,
        build: build.to_owned(),
        collector: "gencon".to_owned(),
        compressed_oops: true,
        compact_headers: false,
        size,
        checksum,
        cpu: Vec::new(),
        class_path: Vec::new(),
        shared,
    };
    let manifest = format!("{}.manifest", file.display());
    fs::write(manifest, made.to_text()).expect("a file");
}

#[test]
fn an_openj9_starts_with_its_cache_and_without_a_bad_one() {
    let jdk = Path::new("/usr/lib/jvm/openj9-25");
    let (shipped, file) = match shared(jdk) {
        Ok(shared) => shared,
        Err(reason) => {
            println!("SKIP an_openj9_starts_with_its_cache_and_without_a_bad_one: {reason}");
            return;
        }
    };
    let write_manifest = |build: &str| write_manifest(&file, build, None);
    let build = build_of(jdk);
    write_manifest(&build);
    let said = shipped.launch(jdk, &[]);
    assert!(
        said.contains("holds a shared class cache that fits"),
        "{said}"
    );
    // That of an older release of the JVM sorts before it.
    let name = file.file_name().and_then(|name| name.to_str());
    let other = name.expect("a name").replacen("M25", "M21", 1);
    let other = file.with_file_name(other);
    fs::copy(&file, &other).expect("a copy");
    let said = shipped.launch(jdk, &[]);
    assert!(
        said.contains("holds a shared class cache that fits"),
        "{said}"
    );
    fs::remove_file(other).expect("it was there");
    write_manifest("25.0.99+1");
    let said = shipped.launch(jdk, &[]);
    assert!(
        said.contains("passed over: it was made by another build"),
        "{said}"
    );
    write_manifest(&build);
    let cut = fs::File::options()
        .write(true)
        .open(&file)
        .expect("a cache");
    cut.set_len(1 << 20).expect("it is cut");
    let said = shipped.launch(jdk, &[]);
    assert!(said.contains("damaged: its length"), "{said}");
    // Without a manifest the JVM decides: it may go on without the cache.
    fs::remove_file(format!("{}.manifest", file.display())).expect("a manifest");
    shipped.launch(jdk, &["-Xdump:none"]);
}

#[test]
fn an_openj9_starts_with_the_layers_that_are_whole() {
    let jdk = Path::new("/usr/lib/jvm/openj9-25");
    let (shipped, base) = match shared(jdk) {
        Ok(shared) => shared,
        Err(reason) => {
            println!("SKIP an_openj9_starts_with_the_layers_that_are_whole: {reason}");
            return;
        }
    };
    let scc = shipped.path("scc");
    let java = |option: &str, more: &[&str]| {
        let option = format!(
            "-Xshareclasses:name=loadline,cacheDir={}{option}",
            scc.display()
        );
        let output = Command::new(jdk.join("bin/java"))
            .arg(option)
            .args(more)
            .current_dir(shipped.directory.path())
            .output()
            .expect("java runs");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    java(
        ",createLayer",
        &["-Xscmx4m", "-jar", "app.jar", "--nonsense"],
    );
    let above = base.display().to_string().replace("L00", "L01");
    let above = Path::new(&above);
    assert!(above.is_file(), "no layer above {}", base.display());
    let build = build_of(jdk);
    let (size, checksum) = measured(&base);
    let name = base
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let made = SharedCacheInfo {
        hard_limit: 4 << 20,
        soft_limit: 4 << 20,
        directory: Some(scc.display().to_string()),
        below: vec![CacheLayer {
            name,
            size,
            checksum,
        }],
    };
    write_manifest(&base, &build, None);
    write_manifest(above, &build, Some(made));
    let said = shipped.launch(jdk, &[]);
    assert!(said.contains("fits, with the layers below it"), "{said}");
    // The JVM's own word: it takes the uppermost where no number is given, else that one.
    let app = ["-jar", "app.jar", "--nonsense"];
    let found = "Found class java/util/HashMap in shared cache";
    let said = java(",readonly,verboseIO", &app);
    assert!(said.contains(found), "{said}");
    let bytes = fs::read(above).expect("a layer");
    fs::write(above, &bytes[..bytes.len() / 2]).expect("it is cut");
    let said = shipped.launch(jdk, &[]);
    assert!(said.contains("damaged: its length"), "{said}");
    assert!(said.contains(",layer=0,readonly,nonfatal"), "{said}");
    let said = java(",layer=0,readonly,verboseIO", &app);
    assert!(said.contains(found), "{said}");
    fs::write(above, &bytes).expect("it is whole again");
    let mut below = fs::read(&base).expect("a layer");
    let middle = below.len() / 2;
    below[middle] ^= 1;
    fs::write(&base, &below).expect("it is changed");
    let said = shipped.launch(jdk, &[]);
    assert!(said.contains("the layer below it, C"), "{said}");
    assert!(!said.contains("-Xshareclasses:name"), "{said}");
}
