//! What a jar says about itself: class path and main class of its manifest, whether it has jars
//! inside, and how many classes there are.
//!
//! Nothing is unpacked to disk, sizes are capped. Source: JAR specification, "Class-Path" and line
//! continuation.

use std::io::{self, Cursor, Read, Seek};
use std::mem;
use std::path::Path;

use super::zip::{ZipEntry, central_directory, directory_entries, no_zip};
use crate::beneath::open_regular_file;

const MANIFEST: u64 = 1 << 20;

/// Header of a jar that loadline wrote: the name of the one it was taken out of.
pub(super) const EXTRACTED_FROM: &str = "Extracted-From:";
pub(super) const MANIFEST_NAME: &[u8] = b"META-INF/MANIFEST.MF";
pub(super) const LIBRARIES: &[u8] = b"BOOT-INF/lib/";

/// Largest nested jar with counted classes, and the sum of all: entries may share their bytes.
const NESTED: u64 = 256 << 20;
const ALL_NESTED: u64 = 1 << 30;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jar {
    /// `Class-Path` of the manifest, as written: relative to the jar's directory.
    pub class_path: Vec<String>,
    pub main_class: Option<String>,
    /// It holds the jars of its libraries, as Spring Boot packs them; no cache can serve those.
    pub has_nested_jars: bool,
    pub extracted_from: Option<String>,
}

impl Jar {
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::from_jar_file(&mut open_regular_file(path)?)
    }

    pub fn from_jar_file(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        let directory = central_directory(file)?;
        let (mut jar, mut has_manifest) = (Self::default(), false);
        for entry in directory_entries(&directory) {
            if is_library(entry.name) {
                jar.has_nested_jars = true;
            }
            if entry.name == MANIFEST_NAME && !mem::replace(&mut has_manifest, true) {
                let manifest = read_manifest(&entry, file)?;
                jar.class_path = class_path(&manifest);
                jar.main_class = header_value(&manifest, "Main-Class:");
                jar.extracted_from = header_value(&manifest, EXTRACTED_FROM);
            }
        }
        Ok(jar)
    }
}

/// Classes in a jar and in the jars inside it. Errors: When a jar cannot be read or is no zip file.
pub fn count_classes(path: &Path) -> io::Result<u64> {
    count_class_entries(&mut open_regular_file(path)?, Some(ALL_NESTED))
}

/// `left`: how many bytes of nested jars may be unpacked; none in a nested jar.
fn count_class_entries(file: &mut (impl Read + Seek), mut left: Option<u64>) -> io::Result<u64> {
    let directory = central_directory(file)?;
    let mut classes = 0;
    for entry in directory_entries(&directory) {
        if entry.name.ends_with(b".class") {
            classes += 1;
        }
        if let Some(left) = left.as_mut().filter(|_| entry.name.ends_with(b".jar")) {
            let inner = entry.unpacked_bytes(file, NESTED.min(*left))?;
            if inner.len() != entry.size {
                return Err(no_zip("a nested jar is cut or too large"));
            }
            *left -= inner.len() as u64;
            classes += count_class_entries(&mut Cursor::new(inner), None)?;
        }
    }
    Ok(classes)
}

pub(super) fn is_library(name: &[u8]) -> bool {
    name.starts_with(LIBRARIES) && name.ends_with(b".jar")
}

pub(super) fn read_manifest(
    entry: &ZipEntry<'_>,
    file: &mut (impl Read + Seek),
) -> io::Result<String> {
    let bytes = entry.unpacked_bytes(file, MANIFEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A manifest with a header a line. Lines are at most 72 bytes; a continuation begins with a blank.
pub(super) fn unfold_manifest(manifest: &str) -> String {
    manifest.replace("\r\n ", "").replace("\n ", "")
}

pub(super) fn header_value(manifest: &str, header: &str) -> Option<String> {
    let text = unfold_manifest(manifest);
    let value = text.lines().find_map(|l| l.strip_prefix(header))?;
    Some(value.trim().to_owned())
}

fn class_path(manifest: &str) -> Vec<String> {
    let value = header_value(manifest, "Class-Path:").unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Made by `jar --create` of JDK 17.0.15 with this manifest line, stored here byte for byte.
    const REAL: &[u8] = include_bytes!("../../tests/data/cache/class-path.jar");

    fn read(bytes: &[u8]) -> io::Result<Jar> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.jar");
        std::fs::write(&path, bytes).expect("a file");
        Jar::read(&path)
    }

    #[test]
    fn the_class_path_of_a_real_jar_is_read_over_its_line_breaks() {
        let jar = read(REAL).expect("a jar");
        assert!(!jar.has_nested_jars);
        assert_eq!(jar.class_path.len(), 6);
        let main = header_value(
            "Manifest-Version: 1.0\r\nMain-Class: a.\r\n b.Main\r\n",
            "Main-Class:",
        );
        assert_eq!(main.as_deref(), Some("a.b.Main"));
        assert_eq!(jar.class_path[0], "lib/spring-boot-3.5.16.jar");
        assert_eq!(jar.class_path[5], "lib/tomcat-embed-core-10.1.59.jar");
    }

    #[test]
    fn what_is_no_jar_is_an_error_and_no_panic() {
        assert!(read(b"").is_err());
        assert!(read(b"no zip at all").is_err());
        for cut in 0..REAL.len() {
            // Whatever it gives, it must give something.
            drop(read(&REAL[..cut]));
        }
        for at in 0..REAL.len() {
            let mut bytes = REAL.to_vec();
            bytes[at] ^= 0xff;
            drop(read(&bytes));
        }
    }

    /// A zip file of stored entries, as `jar --create --no-compress` writes it, without checksums.
    pub(in crate::cache) fn stored(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut file, mut directory) = (Vec::new(), Vec::new());
        for (name, content) in entries {
            let at = u32::try_from(file.len()).expect("a small file");
            let size = u32::try_from(content.len()).expect("a small entry");
            let name_size = u16::try_from(name.len()).expect("a short name");
            // From the version to the length of the extra field: the same in both places.
            let mut head = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            head.extend(size.to_le_bytes());
            head.extend(size.to_le_bytes());
            head.extend(name_size.to_le_bytes());
            head.extend([0, 0]);
            file.extend(b"PK\x03\x04");
            file.extend(&head);
            file.extend(name.as_bytes());
            file.extend(*content);
            directory.extend(b"PK\x01\x02\x14\x00");
            directory.extend(&head);
            directory.extend([0; 10]);
            directory.extend(at.to_le_bytes());
            directory.extend(name.as_bytes());
        }
        let at = u32::try_from(file.len()).expect("a small file");
        let size = u32::try_from(directory.len()).expect("a small directory");
        file.extend(directory);
        file.extend(b"PK\x05\x06");
        file.extend([0; 8]);
        file.extend(size.to_le_bytes());
        file.extend(at.to_le_bytes());
        file.extend([0, 0]);
        file
    }

    #[test]
    fn classes_are_counted_in_a_jar_and_in_the_jars_inside_it() {
        let inner = stored(&[("a/B.class", b"b"), ("a/C.class", b"c"), ("x.txt", b"x")]);
        let outer = [
            ("BOOT-INF/lib/inner.jar", &inner[..]),
            ("Main.class", b"m"),
            ("README", b"r"),
        ];
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.jar");
        std::fs::write(&path, stored(&outer)).expect("a file");
        assert_eq!(count_classes(&path).expect("a jar"), 3);
        std::fs::write(&path, stored(&[("lib/inner.jar", b"no zip")])).expect("a file");
        assert!(count_classes(&path).is_err());
    }

    #[test]
    fn jars_that_unpack_without_end_are_not_counted() {
        let inner = stored(&[("a/B.class", b"b")]);
        let outer = stored(&[("a.jar", &inner[..]), ("b.jar", &inner[..])]);
        let count = |left: usize| count_class_entries(&mut Cursor::new(&outer), Some(left as u64));
        assert_eq!(count(2 * inner.len()).expect("a jar"), 2);
        assert!(count(2 * inner.len() - 1).is_err());
    }

    #[test]
    fn of_many_manifests_the_first_is_read() {
        let one = b"Main-Class: a.First\n";
        let many = stored(&[("META-INF/MANIFEST.MF", one), ("META-INF/MANIFEST.MF", b"")]);
        assert_eq!(
            read(&many).expect("a jar").main_class.as_deref(),
            Some("a.First")
        );
    }

    #[test]
    fn a_line_that_begins_with_a_blank_goes_on() {
        let text = "Manifest-Version: 1.0\r\nClass-Path: a.jar li\r\n b.jar\r\nX: y\r\n";
        assert_eq!(class_path(text), ["a.jar", "lib.jar"]);
        assert!(class_path("Main-Class: A\n").is_empty());
    }
}
