//! The files that a load names: profile, bodies, tables of values, certificates, credentials.
//!
//! Owns that each is looked up next to the file that names it, and that a settled load means the
//! same wherever it is read again: paths are absolute, the profile is included.

use std::path::{Path, PathBuf};

use loadline_files::FileKind;

use super::{LoadSpec, ProfileSource};
use crate::error::LoadError;
use crate::profile::{LoadProfile, MixRequest};
use crate::target::instance_url;
use crate::template;

impl LoadSpec {
    /// Reads the profile and makes every path absolute; those of the load are relative to `base`,
    /// those of the profile to its own directory.
    pub fn resolve_files(&mut self, base: &Path) -> Result<(), LoadError> {
        if let Some(ProfileSource::File(path)) = &self.profile {
            let path = base.join(path);
            let mut profile = read_profile(&path)?;
            let beside = path.parent().unwrap_or(base);
            profile
                .requests
                .iter_mut()
                .for_each(|r| r.resolve_paths(beside));
            // Replay does not use it, and it may be long.
            profile.observed = None;
            self.profile = Some(ProfileSource::Inline(Box::new(profile)));
        }
        for request in &mut self.request {
            request.resolve_paths(base);
        }
        let schema = self
            .proto
            .as_mut()
            .filter(|path| instance_url(path).is_none());
        let paths = [self.body_file.as_mut(), self.cacert.as_mut(), schema];
        for path in paths.into_iter().flatten() {
            *path = base.join(&*path);
        }
        for credential in [&mut self.basic, &mut self.bearer].into_iter().flatten() {
            if let Some(path) = credential.strip_prefix('@') {
                *credential = format!("@{}", base.join(path).display());
            }
        }
        if let Some(url) = &mut self.url {
            url.path = template::absolute_tables(&url.path, base);
        }
        if let Some(body) = &mut self.body {
            *body = template::absolute_tables(body, base);
        }
        for value in self.headers.values_mut() {
            *value = template::absolute_tables(value, base);
        }
        Ok(())
    }

    pub fn content_files(&self) -> Vec<PathBuf> {
        let mix = self.mix().iter();
        let mut files: Vec<PathBuf> = mix.clone().filter_map(|r| r.body_file.clone()).collect();
        files.extend(self.body_file.clone());
        files.extend(self.cacert.clone());
        let texts = mix.flat_map(MixRequest::template_texts);
        let own = self.url.iter().map(|url| url.path.as_str());
        let own = own.chain(self.body.as_deref());
        let own = own.chain(self.headers.values().map(String::as_str));
        files.extend(own.chain(texts).flat_map(template::table_files));
        files
    }
}

impl MixRequest {
    fn resolve_paths(&mut self, base: &Path) {
        self.path = template::absolute_tables(&self.path, base);
        self.body = template::absolute_tables(&self.body, base);
        for value in self.headers.values_mut() {
            *value = template::absolute_tables(value, base);
        }
        if let Some(path) = &mut self.body_file {
            *path = base.join(&*path);
        }
    }

    fn template_texts(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.values().map(String::as_str);
        [self.path.as_str(), self.body.as_str()]
            .into_iter()
            .chain(headers)
    }
}

fn read_profile(path: &Path) -> Result<LoadProfile, LoadError> {
    let text = super::read(path, "profile")?;
    let other = FileKind::of_bytes(path, &text).filter(|kind| kind.name != "a load profile");
    let parsed = LoadProfile::parse_load_profile(&String::from_utf8_lossy(&text));
    parsed.map_err(|error| match (error, other) {
        (LoadError::Plan { field, .. }, Some(kind)) => {
            let (name, next) = (kind.name, kind.next_step(path));
            let why = format!("{} is {name}, not a load profile; {next}", path.display());
            LoadError::plan(field, why)
        }
        (LoadError::Plan { field, why }, None) => {
            LoadError::plan(field, format!("{}: {why}", path.display()))
        }
        (error, _) => error,
    })
}
