//! A schema's text, and what it imports.
//!
//! Owns which files an import may open. Its own directory and the standard files of Protocol Buffers
//! are all.

use std::io;
use std::path::{Path, PathBuf};

use loadline_load::spec::read_bounded;
use prost_reflect::prost_types::FileDescriptorSet;
use protox::Compiler;
use protox::file::{ChainFileResolver, File as SchemaFile, FileResolver, GoogleFileResolver};

/// A schema file that the user named, and its directory: whatever it imports, nothing else is opened.
pub(super) struct SchemaFiles {
    name: String,
    text: String,
    directory: PathBuf,
}

impl SchemaFiles {
    pub(super) fn beside_file(path: &Path) -> io::Result<Self> {
        let beside = path.parent().filter(|beside| *beside != Path::new(""));
        let name = path.file_name().unwrap_or_default();
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            text: String::from_utf8_lossy(&read_bounded(path)?).into_owned(),
            directory: beside.unwrap_or(Path::new(".")).canonicalize()?,
        })
    }

    pub(super) fn compile(self) -> Result<FileDescriptorSet, protox::Error> {
        let (name, mut all) = (self.name.clone(), ChainFileResolver::new());
        all.add(self);
        all.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(all);
        let compiled = compiler.include_imports(true).open_file(name)?;
        Ok(compiled.file_descriptor_set())
    }
}

impl FileResolver for SchemaFiles {
    fn open_file(&self, name: &str) -> Result<SchemaFile, protox::Error> {
        if name == self.name {
            return SchemaFile::from_source(name, &self.text);
        }
        let real = self.directory.join(name).canonicalize().ok();
        let inside = real.filter(|real| real.starts_with(&self.directory) && real.is_file());
        let bytes = inside.and_then(|real| read_bounded(&real).ok());
        let bytes = bytes.ok_or_else(|| protox::Error::file_not_found(name))?;
        SchemaFile::from_source(name, &String::from_utf8_lossy(&bytes))
    }
}
