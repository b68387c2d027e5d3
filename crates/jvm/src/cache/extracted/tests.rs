use std::time::{Duration, SystemTime};

use super::*;
use crate::cache::application::JavaApplication;
use crate::cache::jar::Jar;
use crate::cache::jar::tests::stored;

const MANIFEST: &str = "Manifest-Version: 1.0\r\nMain-Class: org.springframework.boot.loader.launch.JarLauncher\r\nStart-Class: a.\r\n Main\r\nSpring-Boot-Version: 3.3.2\r\nSpring-Boot-Classes: BOOT-INF/classes/\r\nSpring-Boot-Classpath-Index: BOOT-INF/classpath.idx\r\n\r\nName: a/\r\nSealed: true\r\n";

/// A Spring Boot jar as its plugin packs it, behind a launch script.
fn boot(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut all: Vec<(&str, &[u8])> = vec![
        ("META-INF/", b""),
        ("META-INF/MANIFEST.MF", MANIFEST.as_bytes()),
        ("META-INF/spring.factories", b"outer"),
        ("META-INF/LIST.SF", b"signed"),
        (
            "META-INF/services/java.nio.file.spi.FileSystemProvider",
            b"org.springframework.boot.loader.nio.file.NestedFileSystemProvider",
        ),
        (
            "org/springframework/boot/loader/launch/JarLauncher.class",
            b"x",
        ),
        ("BOOT-INF/classes/", b""),
        ("BOOT-INF/classes/a/Main.class", b"main"),
        ("BOOT-INF/classes/META-INF/spring.factories", b"inner"),
        (
            "BOOT-INF/classpath.idx",
            b"- \"BOOT-INF/lib/z-1.jar\"\n- \"BOOT-INF/lib/b-2.jar\"\n",
        ),
    ];
    all.extend(entries);
    stored(&all)
}

/// Two libraries, and a library that the index leaves out, in a different order from the index.
const LIBRARIES: [(&str, &[u8]); 3] = [
    ("BOOT-INF/lib/left-out.jar", b"3"),
    ("BOOT-INF/lib/b-2.jar", b"2"),
    ("BOOT-INF/lib/z-1.jar", b"1"),
];

fn place(jar: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app-1.2.jar");
    fs::write(&path, jar).expect("a file");
    (directory, path)
}

#[test]
fn the_libraries_lie_beside_the_jar_in_the_order_of_the_index() {
    let (_directory, path) = place(&boot(&LIBRARIES));
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(&path).expect("a file");
    file.set_modified(old).expect("a time");
    let to = place_of(&path);
    assert!(to.ends_with("app-1.2"));
    let extracted = extract(&path, &to, None).expect("a layout");
    assert_eq!(extracted.jar, to.join("app-1.2.jar"));
    assert_eq!(extracted.libraries, 3);
    assert_eq!(fs::read(to.join("lib/b-2.jar")).expect("there"), b"2");
    let jar = Jar::read(&extracted.jar).expect("a jar");
    assert!(!jar.has_nested_jars);
    assert_eq!(jar.main_class.as_deref(), Some("a.Main"));
    assert_eq!(jar.extracted_from.as_deref(), Some("app-1.2.jar"));
    assert_eq!(
        jar.class_path,
        ["lib/z-1.jar", "lib/b-2.jar", "lib/left-out.jar"]
    );
    let words = ["-jar".to_owned(), extracted.jar.display().to_string()];
    let application = JavaApplication::from_arguments(&words, Path::new("/")).expect("it starts");
    // The same jar again gives the same files, as a cache compares them.
    let before = application.class_path().expect("files");
    assert!(
        before.iter().all(|file| file.modified == 1_000_000_000),
        "{before:?}"
    );
    extract(&path, &to, None).expect("again");
    assert_eq!(application.class_path().expect("files"), before);
}

#[test]
fn the_jar_has_the_applications_own_files_and_no_launcher() {
    let (_directory, path) = place(&boot(&LIBRARIES));
    let extracted = extract(&path, &place_of(&path), None).expect("a layout");
    let mut file = File::open(extracted.jar).expect("a file");
    let list = central_directory(&mut file).expect("a jar");
    let entries = ZipEntries::from_directory(&list);
    let names: Vec<_> = entries
        .0
        .iter()
        .map(|e| String::from_utf8_lossy(e.name))
        .collect();
    assert_eq!(
        names,
        [
            "META-INF/MANIFEST.MF",
            "a/Main.class",
            "META-INF/spring.factories",
            "META-INF/"
        ]
    );
    let mut content = |name: &[u8]| {
        entries
            .find_entry(name)
            .expect("there")
            .unpacked_bytes(&mut file, 9999)
    };
    assert_eq!(
        content(b"META-INF/spring.factories").expect("read"),
        b"inner"
    );
    let manifest = content(MANIFEST_NAME).expect("read");
    insta::assert_snapshot!(String::from_utf8_lossy(&manifest).replace('\r', ""), @r"
    Manifest-Version: 1.0
    Main-Class: a.Main
    Class-Path: lib/z-1.jar lib/b-2.jar lib/left-out.jar
    Extracted-From: app-1.2.jar
    Spring-Boot-Version: 3.3.2
    ");
}

#[test]
fn a_folded_line_is_read_as_it_was() {
    let line = format!("Class-Path: {}", "lib/a-library-1.2.3.jar ".repeat(20));
    let folded = folded(line.trim_end());
    assert!(folded.lines().all(|line| line.len() <= LINE), "{folded}");
    assert_eq!(jar::unfold_manifest(&folded).trim_end(), line.trim_end());
}

#[test]
fn what_cannot_be_extracted_is_said_and_nothing_is_written() {
    let refused = |jar: &[u8]| {
        let (_directory, path) = place(jar);
        let error = extract(&path, &place_of(&path), None).expect_err("refused");
        assert!(!place_of(&path).exists(), "{error}");
        let text = format!("{error}\nhint: {}", error.extract_hint());
        text.replace(&path.display().to_string(), "app.jar")
    };
    assert!(refused(b"no zip").contains("no zip file"));
    let plain = stored(&[("META-INF/MANIFEST.MF", b"Main-Class: a.Main\n")]);
    insta::assert_snapshot!(refused(&plain), @r"
    app.jar is not a Spring Boot jar: it holds no BOOT-INF/lib/*.jar
    hint: leave --extract out: its classes are found as it is
    ");
    let odd = boot(&[("BOOT-INF/lib/../../evil.jar", b"x")]);
    insta::assert_snapshot!(refused(&odd), @r"
    app.jar holds BOOT-INF/lib/../../evil.jar, which cannot stand in a class path
    hint: give the library another name
    ");
    let manifest = b"Main-Class: org.springframework.boot.loader.launch.PropertiesLauncher\n";
    let nameless = stored(&[("META-INF/MANIFEST.MF", manifest), LIBRARIES[0]]);
    insta::assert_snapshot!(refused(&nameless), @r"
    the manifest of app.jar has no Start-Class
    hint: build it with Spring Boot's plugin, which writes it there
    ");
}

#[test]
fn libraries_of_another_version_are_not_mixed_in() {
    let (_directory, path) = place(&boot(&LIBRARIES));
    let to = place_of(&path);
    fs::create_dir_all(to.join("lib")).expect("a directory");
    fs::write(to.join("lib/old-1.jar"), "x").expect("a file");
    let error = extract(&path, &to, None).expect_err("refused");
    assert!(
        error.to_string().contains("lib/old-1.jar is there already"),
        "{error}"
    );
    assert!(!to.join("app-1.2.jar").exists());
}

#[test]
fn no_damaged_jar_makes_it_panic() {
    let whole = boot(&LIBRARIES);
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let (_directory, path) = place(&bytes);
        // Whatever it gives, it must give something.
        drop(extract(&path, &place_of(&path), None));
    }
}
