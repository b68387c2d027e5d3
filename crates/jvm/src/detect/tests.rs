use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

const TEMURIN_25: &str = include_str!("../../tests/data/release/temurin-25");
const DEBIAN_17: &str = include_str!("../../tests/data/release/debian-17");

/// A directory that looks like a JDK.
fn fake_jdk(home: &Path, release: &str) {
    fs::create_dir_all(home.join("bin")).unwrap();
    fs::write(home.join("release"), release).unwrap();
    fs::write(home.join("bin/java"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(home.join("bin/java"), fs::Permissions::from_mode(0o755)).unwrap();
}

fn places(root: &Path) -> JdkPlaces {
    JdkPlaces {
        parents: vec![root.join("jvm")],
        path: vec![root.join("bin")],
        ..JdkPlaces::default()
    }
}

#[test]
fn versions_of_all_times_are_read() {
    for (text, feature) in [
        ("25.0.3+9-LTS", 25),
        ("17", 17),
        ("1.8.0_402-b06", 8),
        ("11.0.22", 11),
        ("26-ea+1", 26),
    ] {
        let version = JdkVersion::from_version_text(text).unwrap();
        assert_eq!((version.feature, version.full.as_str()), (feature, text));
    }
    assert_eq!(JdkVersion::from_version_text("ea"), None);
    assert_eq!(JdkVersion::from_version_text("99999999999"), None);
}

#[test]
fn release_files_tell_version_vendor_and_modules() {
    let temurin = ReleaseFile::from_release_text(TEMURIN_25).unwrap();
    assert_eq!(temurin.version.full, "25.0.3+9-LTS");
    assert_eq!(temurin.vendor().as_deref(), Some("temurin"));
    assert!(temurin.modules.contains(&"jdk.jcmd".to_owned()));

    let debian = ReleaseFile::from_release_text(DEBIAN_17).unwrap();
    assert_eq!(debian.version.feature, 17);
    assert_eq!(debian.vendor().as_deref(), Some("debian"));

    let old =
        ReleaseFile::from_release_text("JAVA_VERSION=\"1.8.0_402\"\nOS_NAME=\"Linux\"\n").unwrap();
    assert_eq!((old.version.feature, old.vendor()), (8, None));
    assert_eq!(ReleaseFile::from_release_text("IMPLEMENTOR=\"x\"\n"), None);
}

#[test]
fn links_to_one_home_are_one_jdk() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("jvm/a");
    fake_jdk(&home, DEBIAN_17);
    symlink(&home, root.path().join("jvm/b")).unwrap();
    fs::create_dir(root.path().join("bin")).unwrap();
    symlink(home.join("bin/java"), root.path().join("bin/java")).unwrap();

    let found = DetectedJdks::scan_places(&places(root.path()));
    assert_eq!(found.jdks.len(), 1, "{found:?}");
    assert_eq!(found.jdks[0].name, "17");
    assert_eq!(found.jdks[0].kind, Vm::HotSpot);
    let by_path = home.to_string_lossy().into_owned();
    assert_eq!(found.select(&by_path).unwrap(), found.jdks[0]);
}

#[test]
fn two_of_one_feature_version_are_named_apart() {
    let root = tempfile::tempdir().unwrap();
    let other = DEBIAN_17.replace("Debian", "Eclipse Adoptium");
    fake_jdk(&root.path().join("jvm/a"), DEBIAN_17);
    fake_jdk(&root.path().join("jvm/b"), &other);
    fake_jdk(&root.path().join("jvm/c"), &other);
    fake_jdk(&root.path().join("jvm/d"), TEMURIN_25);

    let found = DetectedJdks::scan_places(&places(root.path()));
    let names: Vec<&str> = found.jdks.iter().map(|jdk| jdk.name.as_str()).collect();
    let full = &found.jdks[1].version.full;
    assert_eq!(
        names,
        [
            "debian-17",
            &format!("temurin-{full}#2"),
            &format!("temurin-{full}#3"),
            "25"
        ]
    );
    assert_eq!(found.select("temurin-25").unwrap().name, "25");
    let error = found.select("21").unwrap_err().to_string();
    assert!(
        error.contains("no JDK `21` here; there are: debian-17"),
        "{error}"
    );
}

#[test]
fn what_is_no_jdk_is_reported_not_hidden() {
    let root = tempfile::tempdir().unwrap();
    fake_jdk(&root.path().join("jvm/a"), "nothing");
    let found = DetectedJdks::scan_places(&places(root.path()));
    assert!(found.jdks.is_empty());
    assert!(found.unusable[0].to_string().contains("no JAVA_VERSION"));
    assert!(matches!(
        InstalledJdk::inspect(root.path()),
        Err(DetectError::NoJava { .. })
    ));
}

#[test]
fn openj9_is_told_by_its_file_or_its_library() {
    let root = tempfile::tempdir().unwrap();
    let (said, seen) = (root.path().join("jvm/said"), root.path().join("jvm/seen"));
    fake_jdk(
        &said,
        "JAVA_VERSION=\"21.0.2\"\nIMPLEMENTOR=\"IBM Corporation\"\nJVM_VARIANT=\"Openj9\"\n",
    );
    fake_jdk(&seen, "JAVA_VERSION=\"1.8.0_402\"\n");
    fs::create_dir_all(seen.join("jre/lib/amd64/j9vm")).unwrap();
    let jdk = InstalledJdk::inspect(&said).unwrap();
    assert_eq!((jdk.kind, jdk.vendor.as_str()), (Vm::OpenJ9, "semeru"));
    assert_eq!(InstalledJdk::inspect(&seen).unwrap().kind, Vm::OpenJ9);
}

#[test]
fn an_openj9_without_a_vendor_is_called_by_its_virtual_machine() {
    let root = tempfile::tempdir().unwrap();
    let bare = "JAVA_VERSION=\"25\"\nMODULES=\"java.base\"\n";
    fake_jdk(&root.path().join("jvm/a"), TEMURIN_25);
    fake_jdk(&root.path().join("jvm/b"), bare);
    fs::create_dir_all(root.path().join("jvm/b/lib/j9vm")).unwrap();
    fs::write(root.path().join("jvm/b/lib/j9vm/libjvm.so"), "").unwrap();
    let semeru =
        "JAVA_VERSION=\"21.0.2\"\nIMPLEMENTOR=\"IBM Corporation\"\nJVM_VARIANT=\"Openj9\"\n";
    fake_jdk(&root.path().join("jvm/c"), semeru);

    let found = DetectedJdks::scan_places(&places(root.path()));
    let names: Vec<&str> = found.jdks.iter().map(|jdk| jdk.name.as_str()).collect();
    assert_eq!(names, ["25", "openj9-25", "21"]);
    let hotspot = found.select("25").unwrap();
    assert_eq!(
        (hotspot.kind, hotspot.vendor.as_str()),
        (Vm::HotSpot, "temurin")
    );
    for wanted in ["openj9-21", "semeru-21", "21"] {
        assert_eq!(found.select(wanted).unwrap().name, "21", "{wanted}");
    }
}

#[test]
fn a_command_means_its_own_java_a_script_the_one_of_the_environment() {
    let root = tempfile::tempdir().unwrap();
    let (home, other) = (root.path().join("jvm/a"), root.path().join("jvm/b"));
    fake_jdk(&home, DEBIAN_17);
    fake_jdk(&other, TEMURIN_25);
    let mut places = places(root.path());
    places.path = vec![home.join("bin")];
    let other_java = other.join("bin/java");
    assert_eq!(places.java_of("java"), Some(home.join("bin/java")));
    assert_eq!(places.java_of("./run.sh"), Some(home.join("bin/java")));
    assert_eq!(
        places.java_of(&other_java.to_string_lossy()),
        Some(other_java.clone())
    );
    places.java_home = Some(other);
    assert_eq!(places.java_of("java"), Some(home.join("bin/java")));
    assert_eq!(places.java_of("./run.sh"), Some(other_java));
    assert_eq!(JdkPlaces::default().java_of("java"), None);
}

#[test]
fn a_java_of_jdk_8_belongs_to_the_jdk_around_its_jre() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("jvm/jdk8");
    fake_jdk(&home, "JAVA_VERSION=\"1.8.0_402\"\n");
    fake_jdk(&home.join("jre"), "");
    let java = home.join("jre/bin/java");
    assert_eq!(places::home_of(&java), home.canonicalize().ok());
}
