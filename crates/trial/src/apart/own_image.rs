//! loadline's own image in an engine: this program, and its libraries if it was linked dynamically.
//!
//! Owns the content. The image is made if an engine lacks the one of this very program, and kept:
//! `loadline clean` removes it. No registry is asked, so both sides always run the same version.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use loadline_protocol::{ContainerEngine, RunRefusal};

use super::tar::TarArchive;
use super::{LABEL, TMP, WORK};
use crate::oci::engine;

pub(super) const PROGRAM: &str = "/loadline";
const NAME: &str = "localhost/loadline-part";

#[derive(Debug)]
pub(super) struct LinkedProgram {
    path: PathBuf,
    pub(super) loader: Option<String>,
    libraries: Vec<PathBuf>,
}

impl LinkedProgram {
    pub(super) fn of_this_process() -> io::Result<Self> {
        let path = PathBuf::from("/proc/self/exe");
        let loader = loader(&fs::read(&path)?);
        let libraries = match &loader {
            Some(_) => libraries(&fs::read_to_string("/proc/self/maps")?),
            None => Vec::new(),
        };
        Ok(Self {
            path,
            loader,
            libraries,
        })
    }

    /// Puts it below a directory of an archive; the libraries where they lie here, or all into the
    /// directory.
    pub(super) fn pack(&self, tar: &mut TarArchive, below: &str, is_flat: bool) -> io::Result<()> {
        let put = |tar: &mut TarArchive, from: &Path, to: &str| {
            tar.add_file(&format!("{below}{to}"), 0o755, (0, 0), &fs::read(from)?)
        };
        put(tar, &self.path, PROGRAM)?;
        let flat = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format!("/{name}")
        };
        let libraries = self.libraries.iter().map(PathBuf::as_path);
        for file in libraries.chain(self.loader.iter().map(Path::new)) {
            let to = if is_flat {
                flat(file)
            } else {
                file.display().to_string()
            };
            put(tar, file, &to)?;
        }
        Ok(())
    }

    pub(super) fn flat_command(&self, below: &str) -> Vec<String> {
        let program = format!("{below}{PROGRAM}");
        let Some(loader) = &self.loader else {
            return vec![program];
        };
        let name = Path::new(loader).file_name().unwrap_or_default();
        let loader = format!("{below}/{}", name.to_string_lossy());
        vec![
            loader,
            "--library-path".to_owned(),
            below.to_owned(),
            program,
        ]
    }

    fn build_tag(&self) -> io::Result<String> {
        let file = fs::metadata(&self.path)?;
        let mut hasher = DefaultHasher::new();
        (file.len(), file.ino(), file.mtime(), file.mtime_nsec()).hash(&mut hasher);
        let version = env!("CARGO_PKG_VERSION");
        Ok(format!("{version}-{:016x}", hasher.finish()))
    }
}

/// The name of the image, which the engine has then.
pub(super) fn ensure_image(engine: &ContainerEngine) -> Result<String, RunRefusal> {
    let what = format!("putting loadline's own image into {}", engine.kind);
    let failed = |why: &dyn ToString| {
        let why = why.to_string();
        let hint = engine::full_disk_hint(engine, &why);
        let alone = "try `import` with the engine alone: it will report the same error";
        RunRefusal::new(&what, &why, hint.as_deref().unwrap_or(alone))
    };
    let program = LinkedProgram::of_this_process().map_err(|e| failed(&e))?;
    let name = format!("{NAME}:{}", program.build_tag().map_err(|e| failed(&e))?);
    if engine::run(engine, &["image", "inspect", "--format", "{{.Id}}", &name]).is_ok() {
        return Ok(name);
    }
    let packed = packed_image(&program).map_err(|e| failed(&e))?;
    let file = std::env::temp_dir().join(format!("loadline-image-{}.tar", std::process::id()));
    let written = write(&file, &packed);
    let label = format!("LABEL {LABEL}=image");
    let path = file.display().to_string();
    let import = ["import", "--change", &label, &path, &name];
    let imported = written
        .map_err(|e| failed(&e))
        .and_then(|()| engine::run(engine, &import).map_err(|e| failed(&e)));
    // It lies in a directory that is emptied anyway.
    let _ = fs::remove_file(&file);
    imported.map(|_| name)
}

pub(super) fn remove_all(engine: &ContainerEngine) -> usize {
    let filter = format!("label={LABEL}=image");
    let listed = engine::run(engine, &["images", "--quiet", "--filter", &filter]);
    let listed = listed.unwrap_or_default();
    let all: BTreeSet<&str> = listed.lines().collect();
    let is_gone = |id: &&&str| engine::run(engine, &["rmi", id]).is_ok();
    all.iter().filter(is_gone).count()
}

fn packed_image(program: &LinkedProgram) -> io::Result<Vec<u8>> {
    let mut tar = TarArchive::default();
    // The engines copy rights and all to a volume that is mounted there.
    for directory in [WORK, TMP, "/tmp"] {
        tar.add_directory(directory, 0o1777)?;
    }
    program.pack(&mut tar, "", false)?;
    Ok(tar.finish_archive())
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::File::options();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file?.write_all(bytes)
}

/// The dynamic linker that a program names. Source: elf(5), PT_INTERP; both architectures that
/// loadline is built for have 64 bits, the lowest byte first.
fn loader(elf: &[u8]) -> Option<String> {
    const INTERPRETER: u64 = 3;
    let add = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at.checked_add(length)?)?;
        Some(bytes.iter().rev().fold(0, add))
    };
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let entry = |n: u64| usize::try_from(table.checked_add(n.checked_mul(size)?)?).ok();
    let found = (0..count)
        .filter_map(entry)
        .find(|at| number(*at, 4) == Some(INTERPRETER))?;
    let begin = usize::try_from(number(found + 8, 8)?).ok()?;
    let length = usize::try_from(number(found + 32, 8)?).ok()?;
    let text = elf.get(begin..begin.checked_add(length)?)?;
    let text = text.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok().map(str::to_owned)
}

/// The libraries in a process's list of mappings. Source: proc_pid_maps(5).
fn libraries(maps: &str) -> Vec<PathBuf> {
    let path = |line: &str| line.find('/').map(|at| line[at..].to_owned());
    let all: BTreeSet<String> = maps.lines().filter_map(path).collect();
    let is_library = |path: &String| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.ends_with(".so") || name.contains(".so.")
    };
    let libraries = all.into_iter().filter(is_library);
    libraries.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_what_it_is_linked_with() {
        let own = LinkedProgram::of_this_process().expect("it is read");
        assert_eq!(own.loader.is_some(), !own.libraries.is_empty(), "{own:?}");
        if let Some(loader) = &own.loader {
            assert!(Path::new(loader).is_file(), "{loader}");
            assert_eq!(own.flat_command("/x").len(), 4);
        }
        assert_eq!(loader(b"#!/bin/sh"), None);
        assert_eq!(loader(b"\x7fELF\x02\x01"), None);
    }

    #[test]
    fn libraries_are_told_from_everything_else_that_is_mapped() {
        let maps = "55-56 r-xp 00000000 fe:00 7 /usr/bin/loadline\n\
            7f-80 r-xp 00000000 fe:00 8    /usr/lib/libc.so.6\n\
            7f-80 r--p 00000000 fe:00 8    /usr/lib/libc.so.6\n\
            80-81 rw-p 00000000 00:00 0    [stack]\n";
        assert_eq!(libraries(maps), [PathBuf::from("/usr/lib/libc.so.6")]);
    }
}
