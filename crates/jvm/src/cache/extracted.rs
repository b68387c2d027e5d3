//! A Spring Boot jar in the JVM's preferred layout: its libraries next to it, where the JDK's own
//! class loaders, and so a start-up cache, find their classes.
//!
//! Owns the layout of `java -Djarmode=tools -jar app.jar extract`: a jar of the application's own
//! classes with a manifest that names `lib/*.jar` in the order of the class path index. Starts no
//! JVM: loadline may be root, and that program is the application's; it also rejects jars that
//! begin with a launch script, and needs Spring Boot 3.3. Source: Spring Boot reference, "The
//! Executable Jar Format" and "Class Data Sharing".

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::destination::{FileOwner as Owner, OutputDirectory};
use super::jar::{self, EXTRACTED_FROM, LIBRARIES, MANIFEST_NAME};
use super::manifest::ManifestError;
use super::zip::{self, ZipEntry, central_directory};
use crate::beneath::open_regular_file;

const LIBRARY: u64 = 256 << 20;
const ALL: u64 = 2 << 30;
const INDEX: u64 = 1 << 20;
const CLASSES: &[u8] = b"BOOT-INF/classes/";
const METADATA: &[u8] = b"META-INF/";

/// A provider that Spring Boot's launcher brings for jars inside a jar, and that stays behind with it.
const LAUNCHERS: &[u8] = b"META-INF/services/java.nio.file.spi.FileSystemProvider";

/// Headers that are written again, or describe the old layout.
const REPLACED: &str = "Manifest-Version: Main-Class: Start-Class: Class-Path: \
    Spring-Boot-Classes: Spring-Boot-Lib: Spring-Boot-Classpath-Index: Spring-Boot-Layers-Index:";

/// Bytes of a manifest's line without its end.
const LINE: usize = 72;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedJar {
    pub jar: PathBuf,
    pub libraries: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ExtractError {
    #[error("{path} is not a Spring Boot jar: it holds no BOOT-INF/lib/*.jar")]
    NoLibraries { path: String },
    #[error("the manifest of {path} has no Start-Class")]
    NoStartClass { path: String },
    #[error("{path} holds {name}, which cannot stand in a class path")]
    Name { path: String, name: String },
    #[error("{path} is there already, and no library of this jar")]
    Foreign { path: String },
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    #[error(transparent)]
    File(#[from] ManifestError),
}

impl ExtractError {
    pub fn extract_hint(&self) -> &'static str {
        match self {
            Self::NoLibraries { .. } => "leave --extract out: its classes are found as it is",
            Self::NoStartClass { .. } => {
                "build it with Spring Boot's plugin, which writes it there"
            }
            Self::Name { .. } => "give the library another name",
            Self::Foreign { .. } => {
                "an earlier version may have left it: remove that directory, it will be made again"
            }
            Self::Unreadable { .. } => "check the path, and that it is a jar",
            Self::File(error) if error.is_disk_full() => "free some space",
            Self::File(_) => "the directory must be writable",
        }
    }
}

/// The default place: a directory next to the jar with its name.
pub fn place_of(jar: &Path) -> PathBuf {
    match jar.extension() {
        Some(_) => jar.with_extension(""),
        None => jar.with_extension("extracted"),
    }
}

/// Writes the layout of a jar into a directory. All files have the jar's own time, so the same jar
/// gives the same files, as a cache compares them.
/// Errors: [`ExtractError`]; then the application's jar is what it was, or not there.
pub fn extract(
    jar: &Path,
    directory: &Path,
    caller: Option<Owner>,
) -> Result<ExtractedJar, ExtractError> {
    let shown = jar.display().to_string();
    let unreadable = |e| unreadable_jar(&shown, e);
    let mut file = open_regular_file(jar).map_err(unreadable)?;
    let metadata = file.metadata().and_then(|m| m.modified());
    let modified = metadata.map_err(unreadable)?;
    let entries = central_directory(&mut file).map_err(unreadable)?;
    let entries = ZipEntries::from_directory(&entries);
    let layout = entries.layout(&mut file, &shown)?;
    let beside = directory.join("lib");
    nothing_else(&beside, &layout.libraries)?;
    let there = OutputDirectory::open_for_caller(directory, caller)?;
    let libraries = OutputDirectory::open_for_caller(&beside, caller)?;
    let mut left = ALL;
    for (name, entry) in &layout.libraries {
        let bytes = entry
            .unpacked_bytes(&mut file, LIBRARY.min(left))
            .map_err(unreadable)?;
        if bytes.len() != entry.size {
            return Err(unreadable(zip::no_zip("a library is cut or too large")));
        }
        left -= bytes.len() as u64;
        libraries.put_one(name, |to| {
            to.write_all(&bytes)?;
            to.set_modified(modified)
        })?;
    }
    let name = jar.file_name().map(|n| n.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    let manifest = manifest(&layout, &name);
    there.put_one(&name, |to| {
        entries.write(&manifest, &mut file, to)?;
        to.set_modified(modified)
    })?;
    Ok(ExtractedJar {
        jar: there.file_path(&name),
        libraries: layout.libraries.len(),
    })
}

fn unreadable_jar(path: &str, error: io::Error) -> ExtractError {
    ExtractError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

fn nothing_else(
    directory: &Path,
    libraries: &[(String, &ZipEntry<'_>)],
) -> Result<(), ExtractError> {
    let Ok(there) = fs::read_dir(directory) else {
        return Ok(());
    };
    let is_ours = |name: &str| libraries.iter().any(|(library, _)| library == name);
    let names = there
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned());
    match names.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => Err(ExtractError::Foreign {
            path: directory.join(name).display().to_string(),
        }),
    }
}

struct JarLayout<'a> {
    manifest: String,
    start_class: String,
    libraries: Vec<(String, &'a ZipEntry<'a>)>,
}

struct ZipEntries<'a>(Vec<ZipEntry<'a>>);

impl<'a> ZipEntries<'a> {
    fn from_directory(directory: &'a [u8]) -> Self {
        Self(zip::directory_entries(directory).collect())
    }

    fn find_entry(&self, name: &[u8]) -> Option<&ZipEntry<'a>> {
        self.0.iter().find(|entry| entry.name == name)
    }

    fn layout(&self, file: &mut File, shown: &str) -> Result<JarLayout<'_>, ExtractError> {
        let path = || shown.to_owned();
        let unreadable = |e| unreadable_jar(shown, e);
        let mut libraries = self.libraries(shown)?;
        if libraries.is_empty() {
            return Err(ExtractError::NoLibraries { path: path() });
        }
        let manifest = self.find_entry(MANIFEST_NAME);
        let manifest = manifest.map(|entry| jar::read_manifest(entry, file));
        let manifest = manifest.transpose().map_err(unreadable)?;
        let manifest = manifest.unwrap_or_default();
        let start_class = jar::header_value(&manifest, "Start-Class:");
        let start_class = start_class.ok_or_else(|| ExtractError::NoStartClass { path: path() })?;
        let index = jar::header_value(&manifest, "Spring-Boot-Classpath-Index:");
        let index = index.and_then(|name| self.find_entry(name.as_bytes()));
        let index = index.map(|entry| entry.unpacked_bytes(file, INDEX));
        let index = index.transpose().map_err(unreadable)?.unwrap_or_default();
        let order = class_path_order(&String::from_utf8_lossy(&index));
        // What the index leaves out goes last, as in Spring Boot's own class path.
        let places = order.iter().enumerate().rev();
        let places: HashMap<&String, usize> = places.map(|(at, name)| (name, at)).collect();
        libraries.sort_by_key(|(name, _)| places.get(name).copied().unwrap_or(order.len()));
        Ok(JarLayout {
            manifest: main_section(&manifest),
            start_class,
            libraries,
        })
    }

    fn libraries(&self, shown: &str) -> Result<Vec<(String, &ZipEntry<'a>)>, ExtractError> {
        let inside = self.0.iter().filter(|entry| jar::is_library(entry.name));
        let named = inside.map(|entry| {
            let name = String::from_utf8_lossy(&entry.name[LIBRARIES.len()..]).into_owned();
            let whole = String::from_utf8_lossy(entry.name);
            if is_plain(&name) {
                Ok((name, entry))
            } else {
                Err(ExtractError::Name {
                    path: shown.to_owned(),
                    name: whole.escape_debug().to_string(),
                })
            }
        });
        named.collect()
    }

    /// The application's jar: its classes and what its metadata says, without Spring Boot's launcher.
    fn write(&self, manifest: &str, from: &mut File, to: &mut impl Write) -> io::Result<()> {
        let Some(first) = self.0.first() else {
            return Ok(());
        };
        let mut jar = zip::ZipWriter::new(io::BufWriter::new(to));
        let mut written = BTreeSet::from([MANIFEST_NAME]);
        jar.store(MANIFEST_NAME, manifest.as_bytes(), first)?;
        let own = self.0.iter().map(|e| (e.name.strip_prefix(CLASSES), e));
        // Where both have a file, the classes' own is what the application found.
        let metadata = self.0.iter().filter(|e| e.name.starts_with(METADATA));
        let metadata = metadata.map(|e| (Some(e.name), e));
        for (name, entry) in own.chain(metadata) {
            let Some(name) = name.filter(|name| !name.is_empty() && !is_left(name)) else {
                continue;
            };
            if written.insert(name) {
                jar.copy_entry(name, entry, from)?;
            }
        }
        jar.finish_zip()
    }
}

fn is_left(name: &[u8]) -> bool {
    let is_signature = |end: &&[u8]| name.starts_with(METADATA) && name.ends_with(end);
    let endings: [&[u8]; 4] = [b".SF", b".RSA", b".DSA", b".EC"];
    name == LAUNCHERS || name == b"META-INF/INDEX.LIST" || endings.iter().any(is_signature)
}

fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._+~@,()=$!".contains(c);
    name.chars().all(is_plain) && !name.starts_with('.')
}

/// Names of libraries: `- "BOOT-INF/lib/spring-core-6.1.11.jar"`, or without the directory in older
/// ones.
fn class_path_order(index: &str) -> Vec<String> {
    let named = index.lines().filter_map(|line| line.strip_prefix("- "));
    let named = named.map(|name| name.trim().trim_matches('"'));
    named
        .map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
        .collect()
}

fn main_section(manifest: &str) -> String {
    let text = jar::unfold_manifest(manifest);
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.map(|line| format!("{line}\n")).collect()
}

fn manifest(layout: &JarLayout<'_>, from: &str) -> String {
    let libraries = layout.libraries.iter();
    let libraries: Vec<String> = libraries.map(|(name, _)| format!("lib/{name}")).collect();
    let ours = [
        "Manifest-Version: 1.0".to_owned(),
        format!("Main-Class: {}", layout.start_class),
        format!("Class-Path: {}", libraries.join(" ")),
        format!("{EXTRACTED_FROM} {from}"),
    ];
    let is_kept = |line: &&str| !REPLACED.split(' ').any(|header| line.starts_with(header));
    let kept = layout.manifest.lines().filter(is_kept).map(str::to_owned);
    let lines = ours.into_iter().chain(kept).map(|line| folded(&line));
    lines.chain(["\r\n".to_owned()]).collect()
}

fn folded(line: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in line.chars() {
        if length + c.len_utf8() > LINE {
            out.push_str("\r\n ");
            length = 1;
        }
        out.push(c);
        length += c.len_utf8();
    }
    out + "\r\n"
}

#[cfg(test)]
mod tests;
