//! What a jar says about itself: class path and main class of its manifest, whether it has jars
//! inside, and how many classes there are.
//!
//! Owns as much of the zip form as that takes: the central directory and one entry, stored or
//! deflated. Nothing is unpacked to disk, sizes are capped. Source: PKWARE APPNOTE 6.3, sections
//! 4.3.7, 4.3.12, 4.3.16; JAR specification, "Class-Path" and line continuation.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// The end record with the longest comment.
const END: u64 = 22 + 65_535;

/// Largest central directory and manifest that are read.
const DIRECTORY: usize = 64 << 20;
const MANIFEST: u64 = 1 << 20;

/// Largest jar inside a jar whose classes are counted.
const NESTED: u64 = 256 << 20;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jar {
    /// `Class-Path` of the manifest, as written: relative to the jar's directory.
    pub class_path: Vec<String>,
    /// `Main-Class` of the manifest.
    pub main_class: Option<String>,
    /// It holds the jars of its libraries, as Spring Boot packs them; no cache can serve those.
    pub has_nested_jars: bool,
}

impl Jar {
    /// Reads a jar.
    ///
    /// # Errors
    /// When it cannot be read or is no zip file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::of(&mut File::open(path)?)
    }

    /// Reads a jar that is open.
    ///
    /// # Errors
    /// As [`Jar::read`].
    pub fn of(file: &mut (impl Read + Seek)) -> io::Result<Self> {
        let directory = central_directory(file)?;
        let mut jar = Self::default();
        let mut rest = directory.as_slice();
        while let Some((entry, next)) = Entry::first(rest) {
            if entry.name.starts_with(b"BOOT-INF/lib/") && entry.name.ends_with(b".jar") {
                jar.has_nested_jars = true;
            }
            if entry.name == b"META-INF/MANIFEST.MF" {
                let manifest = entry.text(file)?;
                jar.class_path = class_path(&manifest);
                jar.main_class = value(&manifest, "Main-Class:");
            }
            rest = next;
        }
        Ok(jar)
    }
}

/// Classes in a jar and in the jars inside it.
///
/// # Errors
/// When one of them cannot be read or is no zip file.
pub fn classes(path: &Path) -> io::Result<u64> {
    count(&mut File::open(path)?, true)
}

fn count(file: &mut (impl Read + Seek), has_inner: bool) -> io::Result<u64> {
    let directory = central_directory(file)?;
    let (mut classes, mut rest) = (0, directory.as_slice());
    while let Some((entry, next)) = Entry::first(rest) {
        if entry.name.ends_with(b".class") {
            classes += 1;
        }
        if has_inner && entry.name.ends_with(b".jar") {
            let inner = entry.bytes(file, NESTED)?;
            classes += count(&mut Cursor::new(inner), false)?;
        }
        rest = next;
    }
    Ok(classes)
}

fn no_zip(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(usize::from(u16::from_le_bytes(bytes)))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

fn central_directory(file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let begin = length.saturating_sub(END);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.take(END).read_to_end(&mut tail)?;
    let at = memchr::memmem::rfind(&tail, b"PK\x05\x06").ok_or_else(|| no_zip("no zip file"))?;
    let (size, offset) = long(&tail, at + 12)
        .zip(long(&tail, at + 16))
        .filter(|(size, _)| *size <= DIRECTORY)
        .ok_or_else(|| no_zip("a zip file whose directory is cut or too large"))?;
    file.seek(SeekFrom::Start(offset as u64))?;
    let mut directory = vec![0; size.min(usize::try_from(length).unwrap_or(size))];
    file.read_exact(&mut directory)?;
    Ok(directory)
}

struct Entry<'a> {
    name: &'a [u8],
    method: usize,
    packed: usize,
    offset: usize,
}

impl<'a> Entry<'a> {
    /// The first entry of a directory and what comes after it.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        if bytes.get(..4)? != b"PK\x01\x02" {
            return None;
        }
        let (name, extra, comment) = (short(bytes, 28)?, short(bytes, 30)?, short(bytes, 32)?);
        let entry = Self {
            name: bytes.get(46..46 + name)?,
            method: short(bytes, 10)?,
            packed: long(bytes, 20)?,
            offset: long(bytes, 42)?,
        };
        Some((entry, bytes.get(46 + name + extra + comment..)?))
    }

    fn text(&self, file: &mut (impl Read + Seek)) -> io::Result<String> {
        let bytes = self.bytes(file, MANIFEST)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The entry unpacked, no more than `most` of it.
    fn bytes(&self, file: &mut (impl Read + Seek), most: u64) -> io::Result<Vec<u8>> {
        let mut header = [0; 30];
        file.seek(SeekFrom::Start(self.offset as u64))?;
        file.read_exact(&mut header)?;
        let skip = short(&header, 26).zip(short(&header, 28));
        let (name, extra) = skip.ok_or_else(|| no_zip("an entry is cut"))?;
        file.seek(SeekFrom::Current((name + extra) as i64))?;
        let packed = file.take(self.packed as u64);
        let mut bytes = Vec::new();
        match self.method {
            0 => packed.take(most).read_to_end(&mut bytes)?,
            8 => flate2::read::DeflateDecoder::new(packed)
                .take(most)
                .read_to_end(&mut bytes)?,
            _ => return Err(no_zip("an entry is packed in an unknown way")),
        };
        Ok(bytes)
    }
}

/// The value of a header. Lines of a manifest are at most 72 bytes; a line that begins with a blank
/// goes on.
fn value(manifest: &str, header: &str) -> Option<String> {
    let text = manifest.replace("\r\n ", "").replace("\n ", "");
    let value = text.lines().find_map(|l| l.strip_prefix(header))?;
    Some(value.trim().to_owned())
}

fn class_path(manifest: &str) -> Vec<String> {
    let value = value(manifest, "Class-Path:").unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
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
        let main = value(
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
    fn stored(entries: &[(&str, &[u8])]) -> Vec<u8> {
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
        assert_eq!(classes(&path).expect("a jar"), 3);
        std::fs::write(&path, stored(&[("lib/inner.jar", b"no zip")])).expect("a file");
        assert!(classes(&path).is_err());
    }

    #[test]
    fn a_line_that_begins_with_a_blank_goes_on() {
        let text = "Manifest-Version: 1.0\r\nClass-Path: a.jar li\r\n b.jar\r\nX: y\r\n";
        assert_eq!(class_path(text), ["a.jar", "lib.jar"]);
        assert!(class_path("Main-Class: A\n").is_empty());
    }
}
